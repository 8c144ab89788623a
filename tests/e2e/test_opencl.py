# SPDX-License-Identifier: Apache-2.0
"""OpenCL on the CPU (PoCL): every piece of device work is timed, and joined to the stack that launched it."""

import glob
import os
import re
import subprocess
import time

import pytest

LAUNCHES = 100  # of `scale` by each of two threads; `add` half as often; two writes, fills, copies and reads
COUNTS = {"scale": 200, "add": 100, "write": 2, "fill": 2, "copy": 2, "read": 2}
TOTAL = sum(COUNTS.values())


@pytest.fixture
def opencl(workload, workload_directory):
    """The command line of the OpenCL program; skipped where it was not built or there is no driver."""
    if not (workload_directory / "opencl").exists():
        pytest.skip("built without OpenCL: tools/deps test")
    if not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.skip("no OpenCL driver: tools/deps test")
    return lambda *arguments: workload("opencl", *arguments)


@pytest.fixture
def device(sonde, tmp_path):
    """device(command, ...) -> the report's device part, the whole report, the recording's end"""

    def run(*command, options=(), env=None):
        capture = tmp_path / "device.pftrace"
        done = sonde("record", *options, "-o", capture, "--", *command, env=env)
        data = sonde("report", "--json", capture, check=0).json()
        return data["device_work"], data, done

    return run


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="launch stacks are taken by BPF, which needs root")


def counts(part):
    return {row["name"]: row["count"] for row in part["kernels"]}


def plain(command, env=None):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})


@needs_root
def test_every_launch_has_its_stack(device, opencl):
    part, data, done = device(*opencl(LAUNCHES))
    before = plain(opencl(LAUNCHES))
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 5
    assert counts(part) == COUNTS
    assert part["attribution"] == {"matched": TOTAL, "no_stack": 0, "stacks_off": 0}
    launches = part["launches"]
    assert launches["count"] == launches["stacks"] == TOTAL and not any(launches["without_work"].values())
    assert launches["complete_stacks"] >= 0.995 * TOTAL
    assert part["records_lost"] == part["stacks_lost"] == part["started_before_launch"] == 0
    assert part["host_wait_count"] == 4
    assert part["clock_error_ns"] < 1e6
    (used,) = part["devices"]
    assert 0 < used["busy_ns"] <= used["work_ns"] == part["total_ns"]
    assert not [note for note in data["notes"] if "device" in note]


@needs_root
def test_stacks_lead_to_the_launch(device, opencl, sonde, tmp_path):
    part, _, _ = device(*opencl(LAUNCHES))
    capture = tmp_path / "device.pftrace"
    out = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    stacks = [line.rsplit(" ", 1) for line in out.splitlines()]
    assert stacks and all("[gpu] " in stack for stack, _ in stacks)
    scale = [stack for stack, _ in stacks if stack.endswith("[gpu] scale")]
    assert len(scale) == 2, "from the main thread and from the other"
    assert all(re.search(r"run;launch_scale;launch.*;clEnqueueNDRangeKernel;\[gpu\] scale$", s) for s in scale)
    assert any("main;run;" in s for s in scale) and any("start_thread;run;" in s for s in scale)
    # 100 ns a unit; the rounding of each piece of work is half of one.
    assert sum(int(count) for _, count in stacks) * 100 == pytest.approx(part["total_ns"], abs=50 * TOTAL)
    graph = sonde("export", "-f", "flamegraph", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    assert "of device work" in graph and "[gpu] add" in graph
    weighed = sonde("report", "--weight", "gpu", "--symbol", "launch_scale", capture, check=0).stdout
    assert "Device time" in weighed and "[gpu] scale" in weighed and "[gpu] add" not in weighed
    text = sonde("report", "--by", "kernel", capture, check=0).stdout
    assert "scale" in text and f"{TOTAL} of {TOTAL} have the stack" in text and "Hottest functions" not in text
    assert "Device work" in sonde("report", capture, check=0).stdout


def test_without_launch_stacks(device, opencl, sonde, tmp_path):
    part, _, done = device(*opencl(LAUNCHES), options=("--launch-stacks", "off"))
    assert done.status == 5 and counts(part) == COUNTS
    assert part["attribution"] == {"matched": 0, "no_stack": 0, "stacks_off": TOTAL}
    folded = sonde(
        "export", "-f", "folded", "--weight", "gpu", "-o", "-", tmp_path / "device.pftrace", check=0
    ).stdout
    assert "[unattributed: launch stacks were off];[gpu] scale" in folded


def test_user_mode_times_and_says_why_no_stacks(device, opencl):
    part, data, done = device(*opencl(LAUNCHES), options=("--mode", "user", "--launch-stacks", "bpf"))
    assert done.status == 5 and counts(part) == COUNTS
    assert part["attribution"]["matched"] == 0
    assert any("launches of device work have no stacks" in note for note in data["notes"])


@pytest.mark.parametrize("end, status", [("_exit", 5), ("kill", 137), ("fork", 5)])
def test_ends(device, opencl, end, status):
    """What was finished is in the capture however the program ends, and a forked child writes nothing."""
    part, _, done = device(*opencl(LAUNCHES, end))
    assert done.status == status
    assert counts(part) == COUNTS
    assert part["records_lost"] == 0
    if end == "fork":
        assert "child ended with 7" in done.stdout


@needs_root
def test_many_threads_launch_at_once(device, opencl):
    threads, launches = 64, 20
    part, _, done = device(*opencl(launches, "exit", threads))
    assert done.status == 5 and done.stdout.count("sum") == threads
    assert counts(part) == {name: count * threads // 2 * launches // 100 if name in ("scale", "add")
                            else threads for name, count in COUNTS.items()}
    assert part["attribution"]["matched"] == part["count"]
    assert part["records_lost"] == part["stacks_lost"] == 0


def test_another_layer_stays(device, opencl, sonde_path, tmp_path):
    """A layer that is there already is called first; ours comes behind it, which a note says."""
    other = tmp_path / "libother.so"
    other.write_bytes((sonde_path.parent / "src" / "inject" / "libsonde-inject.so").read_bytes())
    before = plain(opencl(LAUNCHES), env={"OPENCL_LAYERS": str(other)})
    part, data, done = device(*opencl(LAUNCHES), env={"OPENCL_LAYERS": str(other)})
    assert (done.status, done.stdout) == (before.returncode, before.stdout)
    assert any(f"OPENCL_LAYERS was set to {other}" in note for note in data["notes"])
    assert part["count"] >= TOTAL


def test_full_rings_are_counted(device, opencl):
    """More than the rings hold, faster than they are read: nothing is lost unseen."""
    launches = 40000
    part, data, done = device(*opencl(launches), options=("--launch-stacks", "off"))
    assert done.status == 5
    assert part["count"] + part["records_lost"] + part["launches"]["without_work"]["too_many_in_flight"] == (
        pytest.approx(3 * launches + 8, abs=8)
    ), "lost waits are records, too"
    if part["records_lost"]:
        assert any("records of device work were lost" in note for note in data["notes"])


def test_no_session_is_left_behind(sonde, opencl, tmp_path):
    running = sonde.start("record", "-q", "-o", tmp_path / "x.pftrace", "--", *opencl(LAUNCHES))
    assert running.wait(60) == 5
    assert not glob.glob(f"/dev/shm/sonde-{running.pid}-*")


def test_collector_killed(sonde, opencl, tmp_path):
    """The program goes on to its own end."""
    marker = tmp_path / "status"
    script = f'{" ".join(opencl(30000))} >/dev/null; echo $? > {marker}'
    running = sonde.start("record", "-q", "-o", tmp_path / "x.pftrace", "--", "sh", "-c", f"sleep 0.5; {script}")
    time.sleep(0.9)
    running.kill()
    running.wait()
    for _ in range(300):
        if marker.exists() and marker.read_text():
            break
        time.sleep(0.1)
    assert marker.read_text().strip() == "5"
    assert glob.glob(f"/dev/shm/sonde-{running.pid}-*")
    sonde("record", "-q", "-o", tmp_path / "next.pftrace", "--", "true", check=0)
    assert not glob.glob(f"/dev/shm/sonde-{running.pid}-*"), "the next recording cleans up"


def test_programs_without_opencl_have_none(device, workload):
    part, data, _ = device(*workload("spin", 0.2))
    assert part is None
    assert not [note for note in data["notes"] if "device" in note]


TRAIN = """
import numpy as np
import pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, "__kernel void forward(__global float *x, float w) { x[get_global_id(0)] *= w; }"
                              "__kernel void backward(__global float *x) { x[get_global_id(0)] += 1; }").build()
x = np.ones(4096, dtype=np.float32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)

def step_forward():
    program.forward(queue, x.shape, None, buffer, np.float32(1))

def step_backward():
    program.backward(queue, x.shape, None, buffer)

for _ in range(200):
    step_forward()
    step_backward()
cl.enqueue_copy(queue, x, buffer)
print(x.sum())
"""


@needs_root
def test_python(device, opencl, tmp_path):
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pyopencl, numpy"], capture_output=True).returncode:
        pytest.skip("python3-pyopencl is not installed: tools/deps test")
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    env = {"PYOPENCL_NO_CACHE": "1", "PYOPENCL_CTX": "0", "PYTHONWARNINGS": "ignore"}
    part, _, done = device(python, script, env=env)
    before = plain([python, str(script)], env=env)
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 0
    assert counts(part) == {"forward": 200, "backward": 200, "read": 1}
    assert part["attribution"]["matched"] == 401
    assert part["launches"]["complete_stacks"] >= 0.995 * 401
    lines = {row["function"]: (row["source_file"], row["line"], row["count"]) for row in part["lines"]}
    line = TRAIN.splitlines().index("    program.forward(queue, x.shape, None, buffer, np.float32(1))") + 1
    assert lines["step_forward"] == (str(script), line, 200)
    assert lines["step_backward"][2] == 200


FEED = """
import time
import numpy as np
import pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, "__kernel void add_one(__global float *x) { x[get_global_id(0)] += 1; }").build()
x = np.ones(4096, dtype=np.float32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
add_one = program.add_one
slept_ns = 0

def load_batch():
    global slept_ns
    start_ns = time.monotonic_ns()
    time.sleep(0.04)
    slept_ns += time.monotonic_ns() - start_ns

def train_step():
    add_one(queue, x.shape, None, buffer)
    queue.finish()

train_step()
for _ in range(60):
    load_batch()
    train_step()
print(slept_ns)
"""


@needs_root
@pytest.mark.parametrize("wait", ["sample", "exact"])
def test_why_the_device_was_idle(device, sonde, tmp_path, wait):
    """The device waits for a thread that sleeps a known time between launches."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pyopencl, numpy"], capture_output=True).returncode:
        pytest.skip("python3-pyopencl is not installed: tools/deps test")
    script = tmp_path / "feed.py"
    script.write_text(FEED)
    env = {"PYOPENCL_NO_CACHE": "1", "PYOPENCL_CTX": "0", "PYTHONWARNINGS": "ignore"}
    _, data, done = device(python, script, options=("-F", "199", "--wait", wait), env=env)
    slept_ns = int(done.stdout)
    (used,), rows = data["device_idle"]["devices"], data["device_idle"]["rows"]
    assert used["gaps"] == 60 and slept_ns < used["idle_ns"] < used["span_ns"]
    assert sum(used["time_by_cause_ns"].values()) == sum(row["time_ns"] for row in rows) == used["idle_ns"]
    assert used["time_by_cause_ns"]["sleep"] == pytest.approx(slept_ns, rel=0.1)
    first = rows[0]
    line = FEED.splitlines().index("    time.sleep(0.04)") + 1
    assert (first["cause"], first["function"], first["line"]) == ("sleep", "load_batch", line)
    assert first["gaps"] > 50 and 0 < first["samples"] <= 60
    text = sonde("report", tmp_path / "device.pftrace", check=0).stdout
    assert "Why the device was idle (" in text and "sleep" in text
    check_idle_stacks(sonde, tmp_path / "device.pftrace", used, slept_ns)


def check_idle_stacks(sonde, capture, used, slept_ns):
    """The idle time as stacks: of what the thread did, ending in the cause."""
    out = sonde("export", "-f", "folded", "--weight", "gpu-idle", "-o", "-", capture, check=0).stdout
    stacks = [(stack, int(units) * 100) for stack, units in (line.rsplit(" ", 1) for line in out.splitlines())]
    assert all(re.search(r"\[idle: [a-z_]+\]$", stack) for stack, _ in stacks)
    assert sum(ns for _, ns in stacks) == pytest.approx(used["idle_ns"], rel=0.001)
    slept = sum(ns for stack, ns in stacks if "load_batch" in stack and stack.endswith("[idle: sleep]"))
    assert slept == pytest.approx(slept_ns, rel=0.1)
    graph = sonde("export", "-f", "flamegraph", "--weight", "gpu-idle", "-o", "-", capture, check=0).stdout
    assert "of idle time of devices" in graph and "[idle: sleep]" in graph
    weighed = sonde("report", "--weight", "gpu-idle", capture, check=0).stdout
    assert "Idle time" in weighed and "[idle: sleep]" in weighed and "Why the device was idle (" in weighed
