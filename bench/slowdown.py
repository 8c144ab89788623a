# SPDX-License-Identifier: Apache-2.0
"""How much slower the target runs: the same number of training steps under each profiler, in turns."""

import json
import statistics
import sys
from pathlib import Path

from needs import DISTRIBUTION_TORCH, PERF, PRIVILEGES
from workbench import FOREVER, report_progress

NEEDS = (PRIVILEGES, PERF, DISTRIBUTION_TORCH)

TIMED = Path(__file__).with_name("timed.py")


def alone(bench, command):
    bench.run(*command)


def under_sonde(frequency):
    return lambda bench, command: bench.record("slow.pftrace", "-F", frequency, "--", *command)


def under_perf(frequency, *stacks):
    return lambda bench, command: bench.perf_record("slow.data", frequency, stacks, "--", *command)


CONFIGURATIONS = {
    "alone": alone,
    "sonde, 99 Hz": under_sonde(99),
    "sonde, 999 Hz": under_sonde(999),
    "perf -g, 99 Hz": under_perf(99, "-g"),
    "perf dwarf, 99 Hz": under_perf(99, "--call-graph", "dwarf"),
    "perf dwarf, 999 Hz": under_perf(999, "--call-graph", "dwarf"),
}


def target_time(bench, run, steps):
    timing = Path(bench.path("timing.json"))
    target = bench.train(bench.debian_python(), FOREVER, threads=1, steps=steps)
    run(bench, [sys.executable, TIMED, timing, *target])
    bench.remove("slow.data", "slow.pftrace")
    return json.loads(timing.read_text())


def summarise(times, baseline):
    """Ratios to the run alone of the same round: what changes slowly on the machine cancels out."""
    ratios = [time["cpu_s"] / base["cpu_s"] for time, base in zip(times, baseline)]
    return {
        "cpu_s": statistics.median(time["cpu_s"] for time in times),
        "wall_s": statistics.median(time["wall_s"] for time in times),
        "cpu_ratio": statistics.median(ratios),
        "cpu_ratio_lowest": min(ratios),
        "cpu_ratio_highest": max(ratios),
    }


def measure(bench):
    rounds, steps = bench.pick(7, 2), bench.pick(60, 8)
    times = {name: [] for name in CONFIGURATIONS}
    target_time(bench, CONFIGURATIONS["sonde, 99 Hz"], steps)  # fills the caches, ours and the kernel's
    names = list(CONFIGURATIONS)
    for number in range(rounds):
        report_progress(f"slow-down of the target, round {number + 1} of {rounds}")
        for name in names[number % len(names) :] + names[: number % len(names)]:
            times[name].append(target_time(bench, CONFIGURATIONS[name], steps))
    summaries = {name: summarise(times[name], times["alone"]) for name in names}
    return {"rounds": rounds, "steps": steps, "configurations": summaries}
