# SPDX-License-Identifier: Apache-2.0
"""How much a profiler slows its target down: the time that is taken from a thread that only spins, 40 calls deep.

Under a profiler and alone, in turns. bench/stolen-time counts what is missing between two reads of the processor's
counter. The share that is stolen under a profiler, less that of the run alone right before it, is the profiler's.
"""

import json
import statistics
from dataclasses import dataclass
from typing import Callable

from needs import PERF, PRIVILEGES
from workbench import Failed, report_progress

NEEDS = (PRIVILEGES, PERF)
CPU = -1  # the last one
SETTLE_S = (1, 1, 0.05)  # a profiler reads the program's files meanwhile


@dataclass(frozen=True)
class Profiler:
    """`record` runs a command under it; `samples`: how many it then has."""

    rate_hz: int
    record: Callable
    samples: Callable


def sonde(rate_hz):
    return Profiler(
        rate_hz,
        lambda bench, command: bench.record("slow.pftrace", "-F", rate_hz, "--", *command),
        lambda bench: bench.report("slow.pftrace", "--by", "process")["totals"]["samples_in_capture"],
    )


def perf(rate_hz, *stacks):
    return Profiler(
        rate_hz,
        lambda bench, command: bench.perf_record("slow.data", rate_hz, stacks, "--", *command),
        lambda bench: bench.perf_sample_count("slow.data"),
    )


PROFILERS = {
    "sonde": sonde,
    "perf -g": lambda rate_hz: perf(rate_hz, "-g"),
    "perf dwarf": lambda rate_hz: perf(rate_hz, "--call-graph", "dwarf"),
}
RATES_HZ = (99, 999)
ENOUGH_SAMPLES = 10
KINDS = ("stolen", "interrupted")


def on_cpu_s(run):
    """How long no other program had the CPU."""
    return run["seconds"] - (run["stolen_s"] - run["short_gaps_s"])


def shares(run):
    """Of all of its time, what was taken from the thread; and of the time in which no other program had the CPU, what
    interrupts and samples took."""
    return {"stolen": run["stolen_s"] / run["seconds"], "interrupted": run["short_gaps_s"] / on_cpu_s(run)}


def spin(bench, profiler, seconds):
    """`profiler`: None for a run alone."""
    command = [bench.build / "bench" / "stolen-time", CPU, bench.pick(*SETTLE_S), seconds]
    done = profiler.record(bench, command) if profiler else bench.run(*command)
    run = json.loads(next(line for line in done.output.splitlines() if line.startswith("{")))
    if profiler and not profiler.samples(bench) and profiler.rate_hz * on_cpu_s(run) > ENOUGH_SAMPLES:
        raise Failed("a profiler took no samples: what it costs is not known")
    bench.remove("slow.data", "slow.pftrace")
    return shares(run)


def spread(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def summarise(pairs):
    """Of pairs of a run alone and one under a profiler."""
    return {kind: spread([under[kind] - before[kind] for before, under in pairs]) for kind in KINDS}


def measure(bench):
    rounds, seconds = bench.pick(9, 2, 1), bench.pick(1, 0.5, 0.1)
    profilers = {f"{name}, {rate} Hz": make(rate) for rate in RATES_HZ for name, make in PROFILERS.items()}
    pairs = {name: [] for name in profilers}
    spin(bench, sonde(99), seconds)  # fills the caches, sonde's and the kernel's
    for number in range(rounds):
        report_progress(f"time stolen from a thread, round {number + 1} of {rounds}")
        for name, profiler in profilers.items():
            pairs[name].append((spin(bench, None, seconds), spin(bench, profiler, seconds)))
    before = [base for each in pairs.values() for base, _ in each]
    return {
        "rounds": rounds,
        "seconds": seconds,
        "alone": {kind: spread([base[kind] for base in before]) for kind in KINDS},
        "profilers": {name: summarise(each) for name, each in pairs.items()},
    }
