# SPDX-License-Identifier: Apache-2.0
"""How many user stacks of the PyTorch example reach the thread's entry, and how deep they are.

One rule for both profilers, by the name of the outermost user frame, so that neither is believed on its own word.
"""

import re

from needs import DISTRIBUTION_TORCH, PERF, PRIVILEGES, TORCH2
from workbench import Missing, report_progress

NEEDS = (PRIVILEGES, PERF)
NEEDS_OF_PARTS = (DISTRIBUTION_TORCH, TORCH2)

FREQUENCY = 99
MAX_FRAMES = 1024

# What calls a thread's first function, and what that is: any of these at the outer end means the stack is whole.
ENTRIES = {
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "_dl_start",
    "_dl_start_user",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "start_thread",
}

PERF_MODES = {
    "perf -g": ["-g"],
    "perf dwarf": ["--call-graph", "dwarf"],
    "perf dwarf, 64 KB": ["--call-graph", "dwarf,65528"],
}

PERF_HEADER = re.compile(r"^\s*\d+/\d+\s")
PERF_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*)$")
KERNEL_BEGIN = 1 << 63


class Tally:
    """Counts user stacks; `frames` is the stack's user frames from the outermost on."""

    def __init__(self):
        self.samples = self.stacks = self.whole = self.frames = 0

    def add(self, outermost, depth, count=1):
        self.samples += count
        if depth == 0:
            return
        self.stacks += count
        self.frames += depth * count
        self.whole += count if outermost.split("@")[0] in ENTRIES else 0

    def result(self):
        return {
            "samples": self.samples,
            "user_stacks": self.stacks,
            "whole_stacks": self.whole,
            "whole_share": self.whole / self.stacks if self.stacks else None,
            "mean_depth": self.frames / self.stacks if self.stacks else None,
        }


def is_kernel(frame):
    return frame["module"] == "[kernel]" or (frame.get("address") or 0) >= KERNEL_BEGIN


def tally_sonde(report):
    tally = Tally()
    for row in report["tables"]["stack"]["rows"]:
        frames = [frame for frame in row["frames"] if not frame["inlined"] and not is_kernel(frame)]
        known = row["stop"] != "no_user_stack"
        tally.add(frames[0]["function"] if frames else "", len(frames) if known else 0, row["self_samples"])
    return tally


def tally_perf(text):
    """`text`: what `perf script -F pid,tid,ip,sym` prints, frames from the innermost on."""
    tally = Tally()
    names = None
    for line in text.splitlines() + [" 0/0 "]:
        frame = PERF_FRAME.match(line)
        if PERF_HEADER.match(line):
            if names is not None:
                tally.add(names[-1] if names else "", len(names))
            names = []
        elif frame and names is not None and int(frame[1], 16) < KERNEL_BEGIN:
            names.append(frame[2])
    return tally


def measure_sonde(bench, command):
    """Twice: with an empty cache, when the first samples come before the tables, and with a filled one."""
    results = {}
    bench.clear_cache()
    for name in ("sonde, first run", "sonde"):
        bench.record("train.pftrace", "-F", FREQUENCY, "--", *command)
        report = bench.report("train.pftrace", "--by", "stack", "--show-interpreter", "-n", 1_000_000_000)
        results[name] = tally_sonde(report).result() | {
            "samples_lost": report["losses"]["samples_lost"],
            "claimed_whole_share": report["completeness"]["complete_share"],
            "stops": {k: v for k, v in report["completeness"]["samples_by_stop"].items() if v},
            "unwind_mode": report["session"]["unwind_mode"],
        }
    bench.remove("train.pftrace")
    return results


def measure_perf(bench, name, command):
    bench.perf_record("perf.data", FREQUENCY, PERF_MODES[name], "--", *command)
    options = ["--no-inline", "--max-stack", MAX_FRAMES, "-F", "pid,tid,ip,sym"]
    text = bench.run(bench.perf(), "script", "-i", bench.path("perf.data"), *options).output
    bench.remove("perf.data")
    return tally_perf(text).result()


def torch_release(bench, python):
    return bench.run(python, "-W", "ignore", "-c", "import torch; print(torch.__version__)").output.split()[-1]


def measure_torch(bench, python):
    command = bench.train(python, bench.pick(20, 5))
    profilers = measure_sonde(bench, command)
    for name in PERF_MODES:
        profilers[name] = measure_perf(bench, name, command)
    return {"torch": torch_release(bench, python), "profilers": profilers}


def measure(bench):
    results = {}
    for name, find in (("debian", bench.debian_python), ("pypi", bench.torch2_python)):
        report_progress(f"stacks of examples/train.py, PyTorch of {name}")
        try:
            results[name] = measure_torch(bench, find())
        except Missing as error:
            results[name] = {"missing": str(error)}
            bench.leave_out(f"PyTorch of {name}", error)
    return results
