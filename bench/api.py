# SPDX-License-Identifier: Apache-2.0
"""What it costs a program to say what it does: sonde's API in C and in Python, and the clock of ranges."""

import statistics
import sys
import tempfile

from device_launches import record_said, said
import needs
from workbench import ROOT

NEEDS = (needs.PRIVILEGES,)

C_CALLS = {"range_ns": "push and pop", "step_ns": "step", "counter_ns": "counter"}


def spread(runs):
    """Of each figure the median and the extremes over the rounds."""
    return {
        name: {"median": statistics.median(run[name] for run in runs), "lowest": min(run[name] for run in runs),
               "highest": max(run[name] for run in runs)}
        for name in runs[0]
    }


def variables(bench, session):
    library = bench.build / "src" / "inject" / "libsonde-inject.so"
    return [f"SONDE_SESSION={session}", f"SONDE_LIBRARY={library}", f"PYTHONPATH={bench.build / 'python'}"]


def in_c(bench, way, bursts):
    program = bench.build / "bench" / "api-cost"
    if way == "recorded":
        found = record_said(bench, [], program, way, bursts)
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as session:
            environment = variables(bench, session) if way == "closed" else []
            found = said(bench.run("env", *environment, program, way, bursts))
    return {name: found[key] for key, name in C_CALLS.items()}


def in_python(bench, way, bursts):
    program = [sys.executable, ROOT / "bench" / "api_python.py", bursts]
    path = f"PYTHONPATH={bench.build / 'python'}"
    if way == "recorded":
        return record_said(bench, [], "env", path, *program, 0.002)["ns"]
    if way == "alone":
        return said(bench.run("env", path, *program))["ns"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as session:
        closed = [bench.build / "bench" / "api-cost", "closed", 1]  # makes the gate
        bench.run("env", *variables(bench, session), *closed)
        return said(bench.run("env", *variables(bench, session), *program))["ns"]


def measure(bench):
    rounds = bench.pick(9, 2, 1)
    result = {"rounds": rounds, "python": ".".join(map(str, sys.version_info[:2]))}
    for name, measure_one, bursts in (("c", in_c, bench.pick(600, 60, 5)), ("with_python", in_python, bench.pick(200, 30, 3))):
        ways = ("alone", "closed", "recorded")
        runs = {way: [] for way in ways}
        for _ in range(rounds):
            for way in ways:
                runs[way].append(measure_one(bench, way, bursts))
        result[name] = {way: spread(found) for way, found in runs.items()}
    result["clock"] = said(bench.run(bench.build / "bench" / "clock-cost", bench.pick(10, 1, 0.1)))
    return result
