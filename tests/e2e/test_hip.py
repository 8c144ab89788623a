# SPDX-License-Identifier: Apache-2.0
"""HIP against stand-ins for rocprofiler-sdk and HIP (tests/doubles/rocprofiler): no device, no ROCm. From the library in
the program through rings and stacks to the report."""

import json
import os
import re
import signal
from collections import Counter

import pytest
from device_report import counts, record_device

STEPS = 50  # of each of two threads: 2 scale, 1 add, 1 copy
REPLAYS, NODES = 10, 3
SCALE = "scale(float*, float)"
COUNTS = {SCALE: 4 * STEPS, "add": 2 * STEPS + NODES * REPLAYS, "write": 2 * STEPS}
TOTAL = sum(COUNTS.values())
LAUNCHES = 8 * STEPS + REPLAYS  # calls that gave work to the device
GPU = "Double of an Instinct (gfx942) 1"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="launch stacks are taken by BPF, which needs root")


@pytest.fixture
def program(sonde_path):
    """program(steps, what) -> the command line of the program, which uses the stand-ins."""
    path = sonde_path.parent / "tests" / "doubles" / "rocprofiler" / "hip-program"
    return lambda *arguments: [str(path), *map(str, arguments)]


@pytest.fixture
def device(sonde, tmp_path):
    """device(command, ...) -> the report's device part, the whole report, the recording's end"""

    def run(*command, options=("--launch-stacks", "off"), hip=("--hip",), env=None):
        return record_device(sonde, tmp_path / "device.pftrace", *hip, *options, "--", *command, env=env)

    return run


def computed(steps):
    return f"computed {6 * steps + 3}\n"


@needs_root
@pytest.mark.parametrize("stacks", ["bpf", "inprocess"])
def test_every_piece_of_work_has_its_stack(device, program, sonde, tmp_path, stacks):
    part, data, done = device(*program(STEPS), options=("--launch-stacks", stacks))
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert "double" not in done.stderr, "nothing of rocprofiler-sdk is called after its end"
    assert counts(part) == COUNTS
    assert part["attribution"] == {"matched": TOTAL, "no_stack": 0, "stacks_off": 0, "launched_on_device": 0}
    assert part["launches"]["count"] == LAUNCHES + 2
    assert {name: count for name, count in part["launches"]["without_work"].items() if count} == {
        "failed": 1, "no_event": 1, "captured": 3}
    assert part["started_before_launch"] == part["records_lost"] == part["stacks_lost"] == 0
    assert part["clock_error_ns"] < 1e6 and part["host_wait_count"] == 2
    assert not [note for note in data["notes"] if "device" in note or "HIP" in note]
    rows = json.loads(sonde("export", "-f", "chrome", "-o", "-", tmp_path / "device.pftrace", check=0).stdout)["traceEvents"]
    calls = Counter(row["name"] for row in rows if row.get("cat") == "cuda_runtime")
    assert calls == {"hipLaunchKernel": 6 * STEPS, "hipMemcpyAsync": 2 * STEPS, "hipGraphLaunch": REPLAYS,
                     "[a wait: hipDeviceSynchronize or the like]": 2}
    out = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", tmp_path / "device.pftrace", check=0).stdout
    found = [line.rsplit(" ", 1)[0] for line in out.splitlines()]
    for call, line in (("hipLaunchKernel", "launch_add"), ("hipLaunchKernel", "launch_scale"), ("hipMemcpyAsync", "train_step")):
        ends = [stack for stack in found if re.search(rf";train;train_step(;{line})?;{call}(;enter[^;]*)?;\[gpu\] \w+$", stack)
                and f"{line};{call}" in stack]
        assert len(ends) == 2, (call, line, found)  # from the main thread and from the other
    assert any(re.search(r";replay_model;hipGraphLaunch(;enter[^;]*)?;\[gpu\] add$", stack) for stack in found), found


def test_what_is_known_of_kernels_and_gpus(device, program, sonde, tmp_path):
    part, data, _ = device(*program(STEPS))
    assert [row["name"] for row in part["devices"]] == [GPU]
    gpus = {row["name"]: row for row in part["cuda"]["gpus"]}
    assert set(gpus) == {"gfx90a 0", GPU}
    assert (gpus[GPU]["multiprocessors"], gpus[GPU]["memory_bytes"]) == (304, 192 << 30)
    (scale,) = [row for row in part["kernels"] if row["name"] == SCALE]
    assert (scale["block"], scale["registers"]) == ([256, 1, 1], 64)
    assert (scale["shared_bytes"], scale["theoretical_occupancy"]) == (3072, None)
    assert [row["bytes"] for row in data["bandwidth"]] == [2 * STEPS * 4096]
    assert part["cuda"]["counts"]["launches"] == LAUNCHES and part["cuda"]["counts"]["activities"] == TOTAL
    (tracer,) = part["cuda"]["tracers"]
    assert re.fullmatch(r"HIP is traced by rocprofiler-sdk 1\.0\.0, /.*/librocprofiler-sdk-double\.so\.", tracer)
    assert SCALE in sonde("report", "--by", "kernel", tmp_path / "device.pftrace", check=0).stdout


def test_launches_alone(device, program):
    part, _, done = device(*program(STEPS), options=("--launch-only", "--launch-stacks", "inprocess"))
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert part["count"] == 0 and part["launches"]["without_work"]["not_asked"] == LAUNCHES + NODES + 1


def test_not_without_being_asked_for(device, program):
    """AMD's libraries are left as they are."""
    part, data, done = device(*program(STEPS), hip=(), env={"DOUBLE_ROCPROFILER_MISSING": "1"})
    assert (done.status, done.stdout, part) == (5, computed(STEPS), None)
    assert any("which uses HIP, is not recorded without --hip" in note for note in data["notes"]), data["notes"]


def test_the_danger_is_real(sonde, program, tmp_path):
    """As `sonde record --help` says: AMD's libraries end a program in which they do not find rocprofiler-sdk."""
    done = sonde("record", "--hip", "-o", tmp_path / "x", "--", *program(1), env={"DOUBLE_ROCPROFILER_MISSING": "1"})
    assert done.status == 128 + signal.SIGABRT and done.stdout == ""


@pytest.mark.parametrize("env, words", [
    ({"DOUBLE_ROCPROFILER_VERSION": "600"}, "rocprofiler-sdk 0.6 is older than 1.0"),
    ({"DOUBLE_ROCPROFILER_REFUSE": "17"}, "rocprofiler-sdk refuses to trace (error 17, the double refuses)"),
])
def test_refusals_are_said(device, program, env, words):
    part, data, done = device(*program(STEPS), env=env)
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert part["count"] == 0
    assert any(words in note for note in data["notes"]), data["notes"]


def test_other_tools_stay_in_the_list(device, program):
    part, data, done = device(*program(STEPS), env={"ROCP_TOOL_LIBRARIES": "libm.so.6"})
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert counts(part) == COUNTS
    assert any("ROCP_TOOL_LIBRARIES was set to libm.so.6; sonde was added behind it" in note for note in data["notes"])


@pytest.mark.parametrize("end", ["_exit", "fork"])
def test_ends(device, program, end):
    """What was flushed is in the capture however the program ends, and a forked child writes nothing."""
    part, _, done = device(*program(STEPS, end))
    assert done.status == 5
    assert counts(part) == COUNTS and part["records_lost"] == 0
    if end == "fork":
        assert "child ended with 7" in done.stdout


def test_a_window(device, program, tmp_path):
    """Outside it HIP's calls are not traced; names of kernels and GPUs are known from before."""
    flag = tmp_path / "flag"
    part, _, done = device(*program(7, "window", flag), options=("--launch-stacks", "off", "--window", f"flag:{flag}"))
    assert (done.status, done.stdout) == (5, "computed 17\n")
    assert counts(part) == {"add": 7} and part["launches"]["count"] == 7
    assert [row["name"] for row in part["devices"]] == [GPU]
    assert len(part["cuda"]["tracers"]) == 1


def test_it_is_for_commands(sonde):
    done = sonde("record", "--hip", "-p", os.getpid())
    assert done.status == 2 and "--hip is for a command" in done.stderr
