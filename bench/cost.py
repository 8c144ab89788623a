# SPDX-License-Identifier: Apache-2.0
"""What recording costs besides the target's own time: BPF time, collector CPU and memory, bytes, losses."""

from workbench import report_progress

FREQUENCY = 99
HIGH_FREQUENCY = 1999
PERF_MODES = {"perf -g": ["-g"], "perf dwarf": ["--call-graph", "dwarf"]}


def sonde_run(bench, pids, seconds, frequency=FREQUENCY):
    targets = [word for pid in pids for word in ("-p", pid)]
    done = bench.record("cost.pftrace", "-F", frequency, "-d", seconds, *targets)
    report = bench.report("cost.pftrace", "--by", "process")
    return done, report, bench.size("cost.pftrace")


def perf_run(bench, name, pids, seconds):
    targets = ["-p", ",".join(map(str, pids))]
    done = bench.perf_record("perf.data", FREQUENCY, PERF_MODES[name], *targets, "--", "sleep", seconds)
    return done, bench.perf_sample_count("perf.data"), bench.size("perf.data")


def steady_share(short, long):
    """CPU share of one core in the time by which one run is longer than the other: start and end cancel out."""
    return (long.cpu_seconds - short.cpu_seconds) / (long.seconds - short.seconds)


def collector_of_sonde(bench, pids, short_s, long_s):
    sonde_run(bench, pids, 3)  # fills the cache
    short, _, _ = sonde_run(bench, pids, short_s)
    long, report, size = sonde_run(bench, pids, long_s)
    samples = report["totals"]["samples_in_capture"]
    return {
        "cpu_share": steady_share(short, long),
        "peak_rss_bytes": long.peak_rss_bytes,
        "samples": samples,
        "bytes_per_sample": size / samples,
    }


def collector_of_perf(bench, name, pids, short_s, long_s):
    short, _, _ = perf_run(bench, name, pids, short_s)
    long, samples, size = perf_run(bench, name, pids, long_s)
    bench.remove("perf.data")
    return {
        "cpu_share": steady_share(short, long),
        "peak_rss_bytes": long.peak_rss_bytes,
        "samples": samples,
        "bytes_per_sample": size / samples,
    }


def measure_collectors(bench):
    short_s, long_s = bench.pick(10, 3), bench.pick(60, 9)
    with bench.two_trainers() as pids:
        results = {"sonde": collector_of_sonde(bench, pids, short_s, long_s)}
        for name in PERF_MODES:
            results[name] = collector_of_perf(bench, name, pids, short_s, long_s)
    return {"short_s": short_s, "long_s": long_s, "profilers": results}


def measure_losses(bench):
    seconds = bench.pick(60, 8)
    with bench.two_trainers() as pids:
        done, report, size = sonde_run(bench, pids, seconds, HIGH_FREQUENCY)
    samples = report["totals"]["samples_in_capture"]
    return {
        "frequency": HIGH_FREQUENCY,
        "seconds": seconds,
        "samples": samples,
        "samples_lost": report["losses"]["samples_lost"],
        "places": report["losses"]["places"],
        "bytes_per_sample": size / samples,
        "cpu_share": done.cpu_seconds / done.seconds,
        "peak_rss_bytes": done.peak_rss_bytes,
    }


def measure_bpf_time(bench, frequency, cold):
    """The kernel's own count of the sampler's run time, over a whole run of the example."""
    if cold:
        bench.clear_cache()
    command = bench.train(bench.debian_python(), bench.pick(20, 5))
    done = bench.record("bpf.pftrace", "-F", frequency, "--", *command)
    report = bench.report("bpf.pftrace", "--by", "process")
    overhead, samples = report["overhead"], report["totals"]["samples_in_capture"]
    if not overhead["bpf_run_count"]:
        return {"missing": f"recorded without BPF: {report['session']['unwind_mode_reason']}"}
    return {
        "samples": samples,
        "bpf_us_per_sample": overhead["bpf_run_time_ns"] / samples / 1e3,
        "bpf_us_per_run": overhead["bpf_run_time_ns"] / overhead["bpf_run_count"] / 1e3,
        "stacks_unwound_in_user_space": overhead["stacks_unwound_in_user_space"],
        "collector_peak_rss_bytes": overhead["collector_peak_rss_bytes"],
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
