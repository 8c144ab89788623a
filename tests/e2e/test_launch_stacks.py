# SPDX-License-Identifier: Apache-2.0
"""Stacks of launches: known from earlier launches, copied by the program, and alone."""

import glob
import os
import re
import shutil

import pytest
from test_python import PYTHONS, each_python

LAUNCHES, TOTAL = 1000, 3008  # of the workload `opencl`
PATHS = ["left", "right", "outer_room", "inner_room", "deep", "shallow", "signal"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="BPF needs root")
# How stacks are taken; what of the launches is sure to have one.
HOW = [pytest.param("bpf", marks=needs_root), "inprocess"]


@pytest.fixture
def program(workload, workload_directory):
    """program(name, ...) -> the command line of an OpenCL workload; fails without a driver."""
    if not (workload_directory / "opencl").exists() or not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.fail("built without OpenCL, or no driver: run tools/deps test, then make")
    return workload


@pytest.fixture
def record(sonde, tmp_path):
    """record(options, command) -> the report, the stacks of device time, the recording's end"""

    def run(options, command, env=None):
        capture = tmp_path / "launches.pftrace"
        done = sonde("record", *options, "-o", capture, "--", *command, env=env)
        report = sonde("report", "--json", capture, check=0).json()
        stacks = []
        if report["device_work"] and report["device_work"]["count"]:
            folded = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", capture, check=0).stdout
            stacks = [line.rsplit(" ", 1)[0] for line in folded.splitlines()]
        return report, stacks, done

    return run


def notes_on(report, what):
    return [note for note in report["notes"] if what in note]


@pytest.mark.parametrize("how", HOW)
def test_stacks_are_known_from_earlier_launches(record, program, how):
    report, stacks, done = record(["--launch-stacks", how], program("opencl", LAUNCHES))
    launches = report["device_work"]["launches"]
    assert done.status == 5 and launches["count"] == TOTAL
    # Copies may find no room where everything is launched at once.
    assert launches["stacks"] + report["device_work"]["stacks_lost"] == TOTAL
    assert launches["known_stacks"] > TOTAL / 4 and launches["checked_stacks"] > 0
    assert launches["wrong_stacks"] == 0
    assert launches["complete_stacks"] == launches["stacks"]
    known = [stack for stack in stacks if "[unattributed" not in stack]
    assert all(re.search(r"run;(launch_scale|launch_add|clEnqueue)", stack) for stack in known)
    assert all(re.search(r"launch_(\w+);launch[.\w]*;clEnqueueNDRangeKernel;\[gpu\] \1$", stack)
               for stack in known if "NDRange" in stack)


@pytest.mark.parametrize("how", HOW)
def test_stacks_are_known_in_later_processes(record, program, how):
    """Each is told what its launches need, not only the first."""
    command = " ".join(map(str, program("opencl", LAUNCHES)))
    report, _, done = record(["--launch-stacks", how], ["sh", "-c", f"{command}; {command}; {command}"])
    launches = report["device_work"]["launches"]
    assert done.status == 5 and launches["count"] == 3 * TOTAL
    assert launches["known_stacks"] > 3 * TOTAL / 2 and launches["wrong_stacks"] == 0


@pytest.mark.parametrize("how", HOW)
def test_launches_before_the_probe_was_there_are_told(record, program, how):
    """sonde stands still, as on a machine that has no time for it, until the program has ended."""
    command = " ".join(map(str, program("opencl", LAUNCHES)))
    stopped = f"kill -STOP $PPID; {command}; status=$?; kill -CONT $PPID; exit $status"
    report, _, done = record(["--launch-stacks", how], ["sh", "-c", stopped])
    assert done.status == 5 and report["device_work"]["launches"]["count"] == TOTAL
    assert report["device_work"]["launches"]["stacks"] < TOTAL
    assert len(notes_on(report, "the first launches of a program have no stack")) == 1


@needs_root
def test_every_stack_is_taken_when_asked(record, program):
    report, _, done = record(["--launch-memo", "off"], program("opencl", LAUNCHES))
    launches = report["device_work"]["launches"]
    assert done.status == 5 and launches["stacks"] == TOTAL
    assert launches["known_stacks"] == launches["checked_stacks"] == 0
    assert report["device_work"]["stack_run_count"] in (None, TOTAL)


@pytest.mark.parametrize("how", HOW)
def test_callers_that_look_alike(record, program, how, sonde, tmp_path):
    """Launches from frames at the same place, recursions, room on the stack, a signal's handler, a fiber."""
    report, stacks, done = record(["--launch-stacks", how], program("callers", 2000))
    part = report["device_work"]
    assert done.stdout == "16000 launches\n" and part["count"] == 16000
    assert part["launches"]["wrong_stacks"] == 0 < part["launches"]["known_stacks"]
    for path in PATHS:
        of_path = [stack for stack in stacks if stack.endswith(f"[gpu] from_{path}") and "[unattributed" not in stack]
        assert of_path and all(f";by_{path};" in stack for stack in of_path)
    deep = next(stack for stack in stacks if ";by_deep;" in stack)
    assert deep.count(";recurse") == 41
    # On a stack that is not the thread's nothing is copied: where it ends is not known.
    fiber = [stack for stack in stacks if stack.endswith("[gpu] from_fiber")]
    assert fiber and all(";by_fiber;" in stack if how == "bpf" else "[unattributed" in stack for stack in fiber)
    text = sonde("report", "--by", "kernel", tmp_path / "launches.pftrace", check=0).stdout
    text = " ".join(text.split())
    assert "known from an earlier launch" in text and "and 0 (0.00 %) differed" in text


# OpenCL by ctypes alone, for every Python; each path to the one line that launches has a kernel of its own.
ALIKE = """
import ctypes, sys, threading
cl = ctypes.CDLL("libOpenCL.so.1")
P, N = ctypes.c_void_p, None
for f in ("clCreateContext", "clCreateCommandQueueWithProperties", "clCreateProgramWithSource", "clCreateKernel"):
    getattr(cl, f).restype = P
paths = ["first", "second", "generator", "recursion", "made", "key", "thread"]
source = "".join("__kernel void from_%s(void) {}" % p for p in paths).encode()
platform, device, size = P(), P(), ctypes.c_size_t(1)
cl.clGetPlatformIDs(1, ctypes.byref(platform), N)
cl.clGetDeviceIDs(platform, ctypes.c_ulong(0xFFFFFFFF), 1, ctypes.byref(device), N)
context = P(cl.clCreateContext(N, 1, ctypes.byref(device), N, N, N))
queue = P(cl.clCreateCommandQueueWithProperties(context, device, N, N))
program = P(cl.clCreateProgramWithSource(context, 1, ctypes.byref(ctypes.c_char_p(source)), N, N))
cl.clBuildProgram(program, 1, ctypes.byref(device), b"", N, N)
kernels = {p: P(cl.clCreateKernel(program, b"from_" + p.encode(), N)) for p in paths}

def launch(path):
    error = cl.clEnqueueNDRangeKernel(queue, kernels[path], 1, N, ctypes.byref(size), N, 0, N, N)
    if error:
        raise SystemExit(3)

def by_first(path):
    launch(path)

def by_second(path):
    launch(path)

def by_generator(path):
    launch(path)
    yield

def by_recursion(path, depth=4):
    if depth:
        by_recursion(path, depth - 1)
    else:
        launch(path)

def by_key(path):
    sorted([2, 1], key=lambda value: (launch(path), value)[1])

def by_thread(path):
    for _ in range(200):
        launch(path)

threads = [threading.Thread(target=by_thread, args=("thread",)) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(int(sys.argv[1])):
    by_first("first")
    by_second("second")
    list(by_generator("generator"))
    by_recursion("recursion")
    scope = {"launch": launch}
    exec("def by_made(path):\\n    launch(path)", scope)
    scope["by_made"]("made")
    by_key("key")
    if i % 20 == 0:
        cl.clFinish(queue)
for thread in threads:
    thread.join()
cl.clFinish(queue)
print("done")
"""


@pytest.mark.parametrize("how", HOW)
@each_python
def test_python_callers_that_look_alike(record, program, tmp_path, python, how):
    script = tmp_path / "alike.py"
    script.write_text(ALIKE)
    report, stacks, done = record(["--launch-stacks", how], [python, script, "300"])
    part = report["device_work"]
    assert (done.status, done.stdout) == (0, "done\n") and part["count"] == 300 * 7 + 600
    assert part["launches"]["wrong_stacks"] == 0 < part["launches"]["checked_stacks"]
    assert part["launches"]["known_stacks"] > 600
    for path in ("first", "second", "generator", "recursion", "made", "key", "thread"):
        of_path = [stack for stack in stacks if stack.endswith(f"[gpu] from_{path}") and "[unattributed" not in stack]
        assert of_path and all(f"by_{path}" in stack and ";launch;" in stack for stack in of_path)
    assert sum(stack.count("by_recursion;") for stack in stacks if "[unattributed" not in stack) == 5
    line = ALIKE.splitlines().index("    error = cl.clEnqueueNDRangeKernel("
                                    "queue, kernels[path], 1, N, ctypes.byref(size), N, 0, N, N)") + 1
    assert [row["line"] for row in part["lines"] if row["function"] == "launch"] == [line]
    assert not notes_on(report, "Python frames have no name")


# Threads that launch while the interpreter ends: their states are freed meanwhile.
DAEMON = ALIKE.replace("for thread in threads:\n    thread.join()", "") + """
def endless():
    while True:
        launch("thread")

for _ in range(2):
    threading.Thread(target=endless, daemon=True).start()
import time
time.sleep(0.2)
"""


@pytest.mark.parametrize("how", HOW)
def test_the_interpreter_ends_while_threads_launch(record, program, tmp_path, how):
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON)
    python = next(iter(PYTHONS.values()))
    report, _, done = record(["--launch-stacks", how], [python, script, "10"])
    assert (done.status, done.stdout) == (0, "done\n")
    assert report["device_work"]["launches"]["wrong_stacks"] == 0


AGAIN = """
import os, sys
again = int(sys.argv[1])
exec(open(sys.argv[2]).read().replace("int(sys.argv[1])", "100"))
sys.stdout.flush()
if again:
    os.execv(sys.executable, [sys.executable, sys.argv[0], str(again - 1), sys.argv[2]])
"""


@pytest.mark.parametrize("how", HOW)
def test_a_program_that_executes_itself_again(record, program, tmp_path, how):
    """What was told of one program's interpreter is not believed by the next."""
    script, again = tmp_path / "alike.py", tmp_path / "again.py"
    script.write_text(ALIKE)
    again.write_text(AGAIN)
    python = next(iter(PYTHONS.values()))
    report, _, done = record(["--launch-stacks", how], [python, again, "2", script])
    assert (done.status, done.stdout) == (0, "done\n" * 3)
    assert report["device_work"]["launches"]["wrong_stacks"] == 0


def test_without_privileges(sonde_unprivileged, unprivileged_program, sonde_path, program):
    """Times and stacks, all by the program itself."""
    library = "libsonde-inject.so"
    shutil.copy(sonde_path.parent / "src" / "inject" / library, unprivileged_program.parent / library)
    (unprivileged_program.parent / library).chmod(0o755)
    command = [str(word) for word in program("opencl", LAUNCHES)]
    copy = unprivileged_program.parent / "opencl"
    shutil.copy(command[0], copy)
    copy.chmod(0o755)
    done = sonde_unprivileged("record", "-o", "nobody.pftrace", "--", copy, *command[1:])
    report = sonde_unprivileged("report", "--json", "nobody.pftrace", check=0).json()
    part = report["device_work"]
    assert done.status == 5 and part["count"] == TOTAL
    assert part["launches"]["stacks"] + part["stacks_lost"] == TOTAL
    assert part["attribution"]["matched"] > TOTAL / 4
    assert part["launches"]["wrong_stacks"] == 0
    assert notes_on(report, "programs copied the stacks of their launches")


# ---- what is recorded ----


def test_cpu_only_loads_nothing(record, program):
    show = ["sh", "-c", 'echo "[$OPENCL_LAYERS$CUDA_INJECTION64_PATH$NVTX_INJECTION64_PATH]"']
    report, _, done = record(["--cpu-only"], show, env={"OPENCL_LAYERS": ""})
    assert done.stdout == "[]\n" and report["device_work"] is None
    report, _, done = record(["--cpu-only"], program("opencl", LAUNCHES))
    assert done.status == 5 and report["device_work"] is None


@pytest.mark.parametrize("mode", [pytest.param("bpf", marks=needs_root), "user"])
def test_gpu_only_takes_no_samples(record, program, mode, sonde, tmp_path):
    report, stacks, done = record(["--gpu-only", "--mode", mode], program("opencl", LAUNCHES))
    part = report["device_work"]
    assert done.status == 5 and part["count"] == TOTAL
    assert part["launches"]["stacks"] + part["stacks_lost"] == TOTAL and stacks
    assert report["totals"]["samples_in_capture"] == 0 and not notes_on(report, "no samples were taken")
    assert "Device work" in sonde("report", tmp_path / "launches.pftrace", check=0).stdout


@pytest.mark.parametrize("mode", [pytest.param("bpf", marks=needs_root), "user"])
def test_a_process_without_samples_and_stacks_has_its_name(record, program, mode, sonde, tmp_path):
    """The one that launches is a child of the command, and has ended before the recording does."""
    command = " ".join(map(str, program("opencl", LAUNCHES)))
    report, _, _ = record(["--gpu-only", "--launch-stacks", "off", "--mode", mode], ["sh", "-c", f"{command}; sleep 3"])
    assert report["device_work"]["count"] == TOTAL and report["totals"]["samples_in_capture"] == 0
    for pattern, count in [("opencl", TOTAL), ("sh", 0)]:
        part = sonde("report", "--json", "--process", pattern, tmp_path / "launches.pftrace", check=0).json()["device_work"]
        assert (part or {"count": 0})["count"] == count, pattern


@pytest.mark.parametrize("mode", [pytest.param("bpf", marks=needs_root), "user"])
def test_launch_only_does_not_time(record, program, mode, sonde, tmp_path):
    report, _, done = record(["--launch-only", "--mode", mode], program("opencl", LAUNCHES))
    part = report["device_work"]
    assert done.status == 5 and part["count"] == 0
    assert part["launches"]["count"] == part["launches"]["without_work"]["not_asked"] == TOTAL
    assert part["launches"]["stacks"] + part["stacks_lost"] == TOTAL
    text = " ".join(sonde("report", tmp_path / "launches.pftrace", check=0).stdout.split())
    assert "launches have their stack" in text


@pytest.mark.parametrize("options, why", [
    (("--cpu-only", "--gpu-only", "--", "true"), "exclude each other"),
    (("--launch-only", "--launch-stacks", "off", "--", "true"), "would record nothing"),
    (("--gpu-only", "-p", "1"), "works only for a command"),
])
def test_what_does_not_go_together(sonde, options, why):
    done = sonde("record", *options)
    assert done.status == 2 and why in done.stderr
