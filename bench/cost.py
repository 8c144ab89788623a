# SPDX-License-Identifier: Apache-2.0
"""What recording costs besides the target's own time: BPF time, collector CPU and memory, bytes, losses."""

import time

from needs import DISTRIBUTION_TORCH, PERF, PRIVILEGES
from workbench import Failed, cpu_seconds, report_progress

NEEDS = (PRIVILEGES, PERF, DISTRIBUTION_TORCH)

FREQUENCY = 99
HIGH_FREQUENCY = 1999
PERF_MODES = {"perf -g": ["-g"], "perf dwarf": ["--call-graph", "dwarf"]}
END_S = 2  # a recording goes on for so long after the time that is looked at


class Watch:
    """CPU use of a recorder between its start-up and its end."""

    def __init__(self, settle_s, window_s):
        self.settle_s, self.window_s = settle_s, window_s
        self.seconds = settle_s + window_s + END_S
        self.cpu_share = None

    def __call__(self, pid):
        time.sleep(self.settle_s)
        begin, cpu_begin = time.monotonic(), cpu_seconds(pid)
        time.sleep(self.window_s)
        cpu_end, end = cpu_seconds(pid), time.monotonic()
        if cpu_begin is None or cpu_end is None:
            raise Failed("a recorder ended before its time")
        self.cpu_share = (cpu_end - cpu_begin) / (end - begin)


def sonde_targets(pids):
    return [word for pid in pids for word in ("-p", pid)]


def collector(watch, done, samples, size):
    return {
        "cpu_share": watch.cpu_share,
        "cpu_s": done.cpu_seconds,
        "seconds": done.seconds,
        "peak_rss_bytes": done.peak_rss_bytes,
        "samples": samples,
        "bytes_per_sample": size / samples,
    }


def collector_of_sonde(bench, pids, watch):
    targets = sonde_targets(pids)
    bench.record("cost.pftrace", "-d", 3, *targets)  # fills the cache
    done = bench.record("cost.pftrace", "-F", FREQUENCY, "-d", watch.seconds, *targets, during=watch, watch_memory=True)
    samples = bench.report("cost.pftrace", "--by", "process")["totals"]["samples_in_capture"]
    return collector(watch, done, samples, bench.size("cost.pftrace"))


def collector_of_perf(bench, name, pids, watch):
    rest = ["-p", ",".join(map(str, pids)), "--", "sleep", watch.seconds]
    done = bench.perf_record("perf.data", FREQUENCY, PERF_MODES[name], *rest, during=watch, watch_memory=True)
    result = collector(watch, done, bench.perf_sample_count("perf.data"), bench.size("perf.data"))
    bench.remove("perf.data")
    return result


def measure_collectors(bench):
    window = bench.pick((5, 60), (3, 6))
    with bench.two_trainers() as pids:
        results = {"sonde": collector_of_sonde(bench, pids, Watch(*window))}
        for name in PERF_MODES:
            results[name] = collector_of_perf(bench, name, pids, Watch(*window))
    return {"settle_s": window[0], "window_s": window[1], "profilers": results}


class TargetTime:
    """The targets' CPU time in a window inside a recording, and when that was."""

    def __init__(self, pids, settle_s, window_s):
        self.pids, self.settle_s, self.window_s = pids, settle_s, window_s
        self.begin_ns = self.end_ns = self.cpu_s = 0

    def cpu_now(self):
        return sum(cpu_seconds(pid) or 0 for pid in self.pids)

    def __call__(self, _):
        time.sleep(self.settle_s)
        self.begin_ns, before = time.time_ns(), self.cpu_now()
        time.sleep(self.window_s)
        self.end_ns, self.cpu_s = time.time_ns(), self.cpu_now() - before


def covered_share(bench, report, targets):
    """An independent count of losses: the samples of a window against the targets' CPU time in it."""
    start_ns = report["session"]["start_unix_time_ns"]
    window = [f"{(at - start_ns) / 1e9:.6f}" for at in (targets.begin_ns, targets.end_ns)]
    inside = bench.report("cost.pftrace", "--by", "process", "--time", "..".join(window))["totals"]
    return inside["cpu_time_ns"] / 1e9 / targets.cpu_s


def measure_losses(bench):
    seconds, settle_s = bench.pick((60, 10), (8, 4))
    with bench.two_trainers() as pids:
        targets = TargetTime(pids, settle_s, seconds - settle_s - END_S)
        arguments = ["-F", HIGH_FREQUENCY, "-d", seconds, *sonde_targets(pids)]
        done = bench.record("cost.pftrace", *arguments, during=targets, watch_memory=True)
    report = bench.report("cost.pftrace", "--by", "process")
    samples = report["totals"]["samples_in_capture"]
    return {
        "frequency": HIGH_FREQUENCY,
        "seconds": seconds,
        "samples": samples,
        "samples_lost": report["losses"]["samples_lost"],
        "places": report["losses"]["places"],
        "covered_share": covered_share(bench, report, targets),
        "bytes_per_sample": bench.size("cost.pftrace") / samples,
        "cpu_share": done.cpu_seconds / done.seconds,
        "peak_rss_bytes": done.peak_rss_bytes,
    }


def measure_bpf_time(bench, frequency, cold):
    """The kernel's own count of the sampler's run time, over a whole run of the example."""
    if cold:
        bench.clear_cache()
    command = bench.train(bench.debian_python(), bench.pick(20, 5))
    done = bench.record("bpf.pftrace", "-F", frequency, "--", *command, watch_memory=True)
    report = bench.report("bpf.pftrace", "--by", "process")
    overhead, samples = report["overhead"], report["totals"]["samples_in_capture"]
    if not overhead["bpf_run_count"]:
        return {"missing": f"recorded without BPF: {report['session']['unwind_mode_reason']}"}
    return {
        "samples": samples,
        "bpf_us_per_sample": overhead["bpf_run_time_ns"] / samples / 1e3,
        "bpf_us_per_run": overhead["bpf_run_time_ns"] / overhead["bpf_run_count"] / 1e3,
        "stacks_unwound_in_user_space": overhead["stacks_unwound_in_user_space"],
        "peak_rss_bytes": done.peak_rss_bytes,
        "tables_built": overhead["tables_built"],
        "tables_from_cache": overhead["tables_from_cache"],
    }


def measure(bench):
    report_progress("BPF time per sample")
    bpf = {
        "99 Hz, first run": measure_bpf_time(bench, FREQUENCY, cold=True),
        "99 Hz": measure_bpf_time(bench, FREQUENCY, cold=False),
        "999 Hz": measure_bpf_time(bench, 999, cold=False),
    }
    report_progress("collector CPU and memory on two busy CPUs")
    collectors = measure_collectors(bench)
    report_progress(f"losses at {HIGH_FREQUENCY} Hz on two busy CPUs")
    return {"bpf": bpf, "collectors": collectors, "losses": measure_losses(bench)}
