# SPDX-License-Identifier: Apache-2.0
"""Launches of OpenCL: joined to their stacks, timed, and what recording adds to them, beside the same program alone."""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import needs
from workbench import ROOT, Failed

TRAIN = ROOT / "examples" / "train_opencl.py"


def opencl_program(bench, name):
    bench.take(needs.OPENCL)
    return bench.build / name


def opencl_python(bench):
    bench.take(needs.PYOPENCL)
    return needs.DISTRIBUTION_PYTHON


def said(done):
    """The JSON that a program of ours printed last."""
    lines = [line for line in done.output.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed(f"a program gave no figures: {done.output[-300:]}")
    return json.loads(lines[-1])


# Joined, and timed.


def recorded_work(bench, command):
    bench.record("device.pftrace", "--", *command, check=False)
    work = bench.report("device.pftrace")["device_work"]
    if not work:
        raise Failed(f"no device work was recorded of {command[-2:]}")
    return work, bench.size("device.pftrace")


def joined(bench, command, short, long):
    """Two runs, so that the capture's bytes are those of launches, not of symbols."""
    fewer, fewer_bytes = recorded_work(bench, command(short))
    work, size = recorded_work(bench, command(long))
    launches = work["launches"]
    return {
        "launches": launches["count"],
        "joined_share": launches["stacks"] / launches["count"],
        "complete_share": launches["complete_stacks"] / launches["stacks"],
        "records_lost": work["records_lost"],
        "clock_error_ns": work["clock_error_ns"],
        "started_before_launch": work["started_before_launch"],
        "known_share": launches["known_stacks"] / launches["count"],
        "checked": launches["checked_stacks"],
        "wrong": launches["wrong_stacks"],
        "unwinding_ns": work["stack_run_time_ns"] / work["stack_run_count"],
        "bytes_per_launch": (size - fewer_bytes) / (work["count"] - fewer["count"]),
    }


def measure_joined(bench):
    program, python = opencl_program(bench, "tests/e2e/workloads/opencl"), opencl_python(bench)
    c_runs, python_runs = bench.pick((2000, 10000), (200, 1000)), bench.pick((500, 2500), (50, 250))
    return {
        "C program, two threads": joined(bench, lambda count: [program, count], *c_runs),
        "PyOpenCL training": joined(bench, lambda count: [python, TRAIN, "--steps", count], *python_runs),
    }


# What a launch costs more.


# Name → options of `sonde record`. The memo skips the unwinding of launches that came the same way before.
WAYS = {
    "no stacks": ["--launch-stacks", "off"],
    "full unwind": ["--launch-stacks", "bpf", "--launch-memo", "off"],
    "memo hit": ["--launch-stacks", "bpf"],
}


def record_said(bench, options, *command):
    return said(bench.record("launch.pftrace", *options, "--", *command))


def spread(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def measure_added(bench):
    """On PoCL: nanoseconds of a launch alone, and by how much more it takes in each way, against alone right before."""
    program = [opencl_program(bench, "bench/launch-cost"), bench.pick(60, 20)]
    rounds = bench.pick(9, 2)
    alone, added = [], {name: [] for name in WAYS}
    record_said(bench, [], *program)  # caches are warm from here on
    for _ in range(rounds):
        for name, options in WAYS.items():
            before = said(bench.run(*program))["launch_ns"]
            alone.append(before)
            added[name].append(record_said(bench, options, *program)["launch_ns"] - before)
    return {"rounds": rounds, "alone_ns": spread(alone), "added_ns": {name: spread(added[name]) for name in WAYS}}


def layer_added(run):
    return run["layer_ns"] - run["direct_ns"]


def measure_double(bench):
    """The same with a double of the driver, whose cost is not in the figures."""
    program = [bench.build / "bench" / "layer-double", "recorded", bench.pick(500, 100)]
    rounds = bench.pick(5, 2)
    added = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, options in WAYS.items():
            added[name].append(layer_added(record_said(bench, options, *program)))
    return {"rounds": rounds, "added_ns": {name: spread(added[name]) for name in WAYS}}


# The closed window. One entry for each door of the injected library.


def closed_session(bench, variable, *command):
    """Runs a program with the library in its variable, in a session whose gate it closes itself."""
    library = bench.build / "src" / "inject" / "libsonde-inject.so"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as session:
        return bench.run("env", f"SONDE_SESSION={session}", f"{variable}={library}", *command)


def closed_double(bench, *arguments, tool=()):
    program = bench.build / "bench" / "layer-double"
    return closed_session(bench, "OPENCL_LAYERS", *tool, program, "closed", *arguments)


def instructions(bench, way, bursts):
    """Of all bursts, as callgrind counts them."""
    counting = [bench.program(needs.VALGRIND), "--tool=callgrind", "--toggle-collect=burst*", "--callgrind-out-file=/dev/null"]
    done = closed_double(bench, bursts, way, tool=counting)
    counts = [line.split(":")[1] for line in done.output.splitlines() if "Collected :" in line]
    if not counts:
        raise Failed(f"callgrind counted nothing: {done.output[-300:]}")
    return int(counts[0]), said(done)["launches"] * 2  # each pair of bursts goes this way twice


def closed_launch(bench):
    runs = [said(closed_double(bench, bench.pick(1000, 200))) for _ in range(bench.pick(9, 3))]
    result = {"direct_ns": statistics.median(run["direct_ns"] for run in runs)}
    result["added_ns"] = spread([layer_added(run) for run in runs])
    result["added_instructions"] = None
    if bench.has(needs.VALGRIND):
        direct, count = instructions(bench, "direct", 50)
        layer, _ = instructions(bench, "layer", 50)
        result["added_instructions"] = (layer - direct) / count
    return result


def closed_range(bench):
    """A push and a pop: in turns alone, and with a closed gate."""
    program, bursts = bench.build / "bench" / "nvtx-cost", bench.pick(2000, 400)
    alone, added = [], []
    for _ in range(bench.pick(9, 3)):
        alone.append(said(bench.run(program, "alone", bursts))["range_ns"])
        closed = said(closed_session(bench, "NVTX_INJECTION64_PATH", program, "closed", bursts))["range_ns"]
        added.append(closed - alone[-1])
    return {"direct_ns": statistics.median(alone), "added_ns": spread(added), "added_instructions": None}


def measure_closed(bench):
    return {"launch (OpenCL)": closed_launch(bench), "push and pop (NVTX)": closed_range(bench)}


def measure_ranges(bench):
    """Nanoseconds of a push and pop that are recorded, beyond the same alone."""
    program, bursts = bench.build / "bench" / "nvtx-cost", bench.pick(300, 60)
    added = []
    for _ in range(bench.pick(5, 2)):
        alone = said(bench.run(program, "alone", bursts))["range_ns"]
        added.append(record_said(bench, [], program, "recorded", bursts)["range_ns"] - alone)
    return {"added_ns": spread(added)}


# Slow-down of the example.

TIMED = Path(__file__).with_name("timed.py")


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


def training_time(bench, steps, *recorder):
    timing = Path(bench.path("timing.json"))
    command = [sys.executable, TIMED, timing, opencl_python(bench), TRAIN, "--steps", steps]
    if recorder:
        bench.record("slow.pftrace", *recorder, "--", *command)
    else:
        bench.run(*command)
    return json.loads(timing.read_text())


def measure_slowdown(bench):
    rounds, steps = bench.pick(9, 2), bench.pick(2500, 300)
    recorders = {"alone": [], "sonde": ["-F", 99], "sonde, no launch stacks": ["-F", 99, "--launch-stacks", "off"]}
    times = {name: [] for name in recorders}
    for number in range(rounds):
        names = list(recorders)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            times[name].append(training_time(bench, steps, *recorders[name]))
    summaries = {name: summarise(times[name], times["alone"]) for name in recorders}
    for name, summary in summaries.items():
        ratios = [run["wall_s"] / base["wall_s"] for run, base in zip(times[name], times["alone"])]
        summary["wall_ratio"] = statistics.median(ratios)
    return {"rounds": rounds, "steps": steps, "configurations": summaries}
