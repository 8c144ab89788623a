# SPDX-License-Identifier: Apache-2.0
"""How long the answer takes: `sonde report` against perf's readers, on recordings of the same two processes."""

import re
import statistics

from needs import DISTRIBUTION_TORCH, PERF, PRIVILEGES
from workbench import report_progress

NEEDS = (PRIVILEGES, PERF, DISTRIBUTION_TORCH)

FREQUENCY = 1999
LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?:? lost (\d+)")


def seconds_for(bench, targets, samples):
    """How long to record for so many samples, from a short recording, which also fills the cache."""
    bench.record("try.pftrace", "-F", FREQUENCY, "-d", 3, *targets)
    taken = bench.report("try.pftrace", "--by", "process")["totals"]["samples_in_capture"]
    return min(60, max(1, round(3 * samples / max(taken, 1), 1)))


def record_both(bench):
    with bench.two_trainers() as pids:
        targets = [word for pid in pids for word in ("-p", pid)]
        seconds = seconds_for(bench, targets, bench.pick(60_000, 6_000))
        bench.record("read.pftrace", "-F", FREQUENCY, "-d", seconds, *targets)
        perf_targets = ["-p", ",".join(map(str, pids))]
        stacks = ["--call-graph", "dwarf"]
        bench.perf_record("read.data", FREQUENCY, stacks, *perf_targets, "--", "sleep", seconds)
    return seconds


def measure_sonde(bench):
    path = bench.path("read.pftrace")
    samples = bench.report("read.pftrace", "--by", "process")["totals"]["samples_in_capture"]
    runs = [bench.run(bench.sonde, "report", path, output=False) for _ in range(bench.pick(7, 3))]
    return {
        "samples": samples,
        "bytes": bench.size("read.pftrace"),
        "seconds": statistics.median(run.seconds for run in runs),
        "slowest_s": max(run.seconds for run in runs),
    }


def lost_events(bench):
    options = ["-F", "tid", "-G", "--show-lost-events"]
    text = bench.run(bench.perf(), "script", "-i", bench.path("read.data"), *options).output
    return sum(int(count) for count in LOST.findall(text))


def measure_perf(bench):
    """Without inlined functions, which perf would ask another program for, many times slower."""
    data = ["-i", bench.path("read.data")]
    script = bench.run(bench.perf(), "script", "--no-inline", *data, output=False)
    report = bench.run(bench.perf(), "report", "--no-inline", "--stdio", "-g", "none", *data, output=False)
    return {
        "samples": bench.perf_sample_count("read.data"),
        "samples_lost": lost_events(bench),
        "bytes": bench.size("read.data"),
        "script_s": script.seconds,
        "report_s": report.seconds,
    }


def measure(bench):
    report_progress("recording for the reading benchmark")
    seconds = record_both(bench)
    report_progress("reading: sonde report, perf script, perf report")
    results = {"recorded_s": seconds, "frequency": FREQUENCY}
    results |= {"sonde": measure_sonde(bench), "perf": measure_perf(bench)}
    bench.remove("read.pftrace", "read.data")
    return results
