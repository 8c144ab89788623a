# SPDX-License-Identifier: Apache-2.0
"""CUDA against a stand-in for libcupti (tests/doubles/cupti): no device, no driver, no CUDA. From the library in the
program through rings and stacks to the report."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from device_report import counts, record_device

STEPS = 100  # of each of two threads: 2 scale, 1 add, 1 write
REPLAYS = 10
LAYERS = ["norm", "attention", "mlp"]
COUNTS = {"scale": 4 * STEPS, "add": 2 * STEPS, "write": 2 * STEPS} | {layer: REPLAYS for layer in LAYERS}
TOTAL = sum(COUNTS.values())
LAUNCHES = 8 * STEPS + REPLAYS  # calls that gave work to the device

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="launch stacks are taken by BPF, which needs root")


@pytest.fixture
def doubles(sonde_path):
    return sonde_path.parent / "tests" / "doubles" / "cupti"


@pytest.fixture
def program(doubles):
    """program(steps, what) -> the command line of the program; it has the stand-in of CUDA 13."""
    return lambda *arguments: [str(doubles / "cuda-program"), str(doubles / "libcupti-double-13.so"),
                               *map(str, arguments)]


@pytest.fixture
def device(sonde, doubles, tmp_path):
    """device(command, ...) -> the report's device part, the whole report, the recording's end"""

    def run(*command, options=(), env=None):
        settings = {"SONDE_CUPTI": str(doubles / "libcupti-double-13.so"), **(env or {})}
        part, data, done = record_device(sonde, tmp_path / "device.pftrace", *options, "--", *command, env=settings)
        if part:
            part["graphs"] = data["graphs"]
        return part, data, done

    return run


def computed(steps):
    return f"computed {8 * steps + 3 + REPLAYS}\n"


def gpu_stacks(sonde, capture):
    out = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    return [line.rsplit(" ", 1)[0] for line in out.splitlines()]


@needs_root
def test_every_kernel_has_its_stack(device, program, sonde, tmp_path):
    part, data, done = device(*program(STEPS))
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert counts(part) == COUNTS
    assert part["attribution"] == {"matched": TOTAL, "no_stack": 0, "stacks_off": 0, "launched_on_device": 0}
    launches = part["launches"]
    assert launches["count"] == LAUNCHES
    assert launches["without_work"] == {**dict.fromkeys(launches["without_work"], 0), "captured": 3}
    assert part["started_before_launch"] == part["records_lost"] == part["stacks_lost"] == 0
    assert part["clock_error_ns"] < 1e6 and part["host_wait_count"] == 2
    assert not [note for note in data["notes"] if "device" in note or "CUDA" in note]
    stacks = gpu_stacks(sonde, tmp_path / "device.pftrace")
    for kernel in ("scale", "add"):
        ends = [stack for stack in stacks if stack.endswith(f"[gpu] {kernel}")]
        assert len(ends) == 2, "from the main thread and from the other"
        assert all(re.search(rf";train;train_step;launch_{kernel};cuda_launch_kernel;call;\[gpu\]", s) for s in ends)


@needs_root
def test_launches_alone(device, program):
    """CUPTI is not asked when work ran; the stacks come all the same."""
    part, data, done = device(*program(STEPS), options=("--launch-only",))
    assert (done.status, done.stdout) == (5, computed(STEPS))
    launches = part["launches"]
    assert part["count"] == 0 and launches["count"] == launches["without_work"]["not_asked"] == LAUNCHES
    assert launches["stacks"] >= LAUNCHES and part["stacks_lost"] == 0
    assert not [note for note in data["notes"] if "CUPTI" in note or "another tool" in note.lower()]


@needs_root
def test_graphs_are_charged_to_their_capture(device, program, sonde, tmp_path):
    part, _, _ = device(*program(STEPS))
    stacks = gpu_stacks(sonde, tmp_path / "device.pftrace")
    for layer in LAYERS:
        (stack,) = [stack for stack in stacks if stack.endswith(f"[gpu] {layer}")]
        assert re.search(rf"main;capture_model;layer_{layer};.*;\[graph replay\];\[gpu\] {layer}$", stack)
    assert (part["cuda"]["replayed"], part["cuda"]["replayed_without_capture"]) == (3 * REPLAYS, 0)
    (graph,) = part["graphs"]
    assert (graph["graph"], graph["captured_graph"], graph["captured_nodes"]) == (20, 10, 3)
    assert (graph["replays"], graph["instantiations"], graph["timed_as_whole"]) == (REPLAYS, 1, False)
    assert graph["capture_ns"] > 0 and 0 < graph["span_ns"] <= graph["work_ns"]
    assert {node["name"]: node["count"] for node in graph["nodes"]} == dict.fromkeys(LAYERS, REPLAYS)
    assert graph["work_ns"] == sum(node["total_ns"] for node in graph["nodes"])
    assert graph["captured_by"] and graph["replayed_by"]
    text = sonde("report", "--by", "graph", tmp_path / "device.pftrace", check=0).stdout
    assert "CUDA graphs" in text and "attention" in text and "Hottest functions" not in text


@needs_root
def test_graphs_as_a_whole(device, program):
    part, _, done = device(*program(STEPS), options=("--graph", "graph"))
    assert done.stdout == computed(STEPS)
    assert counts(part) == {"scale": 4 * STEPS, "add": 2 * STEPS, "write": 2 * STEPS, "graph": REPLAYS}
    assert part["attribution"]["matched"] == part["count"]
    (graph,) = part["graphs"]
    assert graph["timed_as_whole"] and graph["replays"] == REPLAYS
    assert [node["total_ns"] for node in graph["nodes"]] == [None] * 3
    assert all(node["captured_by"] for node in graph["nodes"])


def test_what_is_known_of_kernels_and_gpus(device, program, sonde, tmp_path):
    part, data, _ = device(*program(STEPS), options=("--launch-stacks", "off"))
    (gpu,) = part["cuda"]["gpus"]
    assert gpu["name"] == "Double of a GPU (GPU-abcdef01)" == part["devices"][0]["name"]
    assert gpu["uuid"] == "GPU-abcdef01-0203-0000-0000-000000000000"
    (scale,) = [row for row in part["kernels"] if row["name"] == "scale"]
    assert (scale["block"], scale["registers"]) == ([256, 1, 1], 64)
    assert (scale["shared_bytes"], scale["configurations_differ"]) == (1024 + 2048, False)
    # 65,536 registers of a multiprocessor are enough for 4 blocks of 8 warps with 64 registers a thread.
    assert (scale["theoretical_occupancy"], scale["occupancy_limit"]) == (0.5, "registers")
    (write,) = [row for row in part["kernels"] if row["name"] == "write"]
    assert write["registers"] is None and write["theoretical_occupancy"] is None
    assert [row["bytes"] for row in data["bandwidth"]] == [2 * STEPS * 4096]
    cuda = part["cuda"]
    assert cuda["launch_calls"] == LAUNCHES and cuda["launch_call_ns"] > 0
    assert cuda["overhead_count"] == 1
    (memory,) = data["memory"]
    assert (memory["device_name"], memory["allocations"], memory["releases"]) == (gpu["name"], 1, 1)
    assert (memory["peak_bytes"], memory["unreleased_bytes"]) == (1 << 20, 0)
    words = ("export", "-f", "folded", "--weight", "gpu-bytes", "--roots", "none", "-o", "-")
    assert sonde(*words, tmp_path / "device.pftrace", check=0).stdout == "[memory of GPU 0];[no stack recorded] 1048576\n"
    tables = json.loads(sonde("report", "--json", "--weight", "gpu-bytes", tmp_path / "device.pftrace", check=0).stdout)
    assert [row["self_bytes"] for row in tables["tables"]["module"]["rows"]] == [1 << 20]
    assert tables["own_code"]["other_bytes"] == 1 << 20
    assert cuda["counts"]["launches"] == LAUNCHES and cuda["counts"]["activities"] == TOTAL
    assert len(cuda["tracers"]) == 1 and "CUPTI 13.5" in cuda["tracers"][0]
    text = sonde("report", "--by", "kernel", tmp_path / "device.pftrace", check=0).stdout
    assert "Theoretical occupancy" in text and "registers" in text


def test_mig_instances_have_their_own_uuid(device, doubles, sonde_path):
    """CUPTI describes all instances of the GPU with one number; the program's own is the visible one."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    part, _, _ = device(doubles / "play-cupti", library, doubles / "libcupti-double-13.so", "mig",
                        options=("--launch-stacks", "off"))
    assert [row["name"] for row in part["devices"]] == ["Double of a GPU (MIG-0b000000)"]


def test_a_child_is_the_first_to_use_cuda(device, doubles, sonde_path):
    """The parent has opened the session with NVTX before it forked: the child writes to a file of its own."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    part, _, done = device(doubles / "play-cupti", library, doubles / "libcupti-double-13.so", "first-in-child",
                           options=("--launch-stacks", "off"))
    assert done.status == 0
    assert part["count"] == 1000 and part["launches"]["count"] == 1000


def test_faults_are_said(device, program):
    """Kernels without times, records that CUPTI dropped, work of a launch that nobody saw."""
    part, data, done = device(*program(1, "faults"), options=("--launch-stacks", "off"))
    assert done.status == 5
    assert counts(part) == {"odd": 1, "orphan": 1}
    assert part["launches"]["without_work"]["no_times"] == 1
    assert part["launches"]["without_work"]["lost"] == 2
    assert any("2 records of device work were dropped by the driver's tracing library" in note for note in data["notes"])
    assert any("1 pieces of device work have no times" in note for note in data["notes"])


@pytest.mark.parametrize("answer, holder, words", [
    (999, None, "finds no NVIDIA driver"),
    (39, "Nsight Systems", "CUPTI is held by Nsight Systems"),
    (35, None, "does not allow this user to trace"),
])
def test_refusals_are_said(device, program, answer, holder, words):
    env = {"DOUBLE_CUPTI_SUBSCRIBE": str(answer)} | ({"DOUBLE_CUPTI_HOLDER": holder} if holder else {})
    part, data, done = device(*program(STEPS), env=env)
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert part["count"] == 0
    assert any(words in note for note in data["notes"]), data["notes"]
    assert words in done.stderr.replace("\n", " ")


def test_no_tracer(device, program):
    """Without any libcupti the program runs as ever, and it is said how to get one."""
    part, data, done = device(*program(STEPS), env={"SONDE_CUPTI": "/nonexistent"})
    if any("traced by CUPTI" in tracer for tracer in (part["cuda"]["tracers"])):
        pytest.skip("this machine has a libcupti")
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert any("no libcupti that fits" in note for note in data["notes"])
    assert any("libcupti was looked for in the loader's path, /" in note for note in data["notes"])


@pytest.mark.parametrize("how", ["called", "mapped"])
def test_the_tracer_of_a_virtual_environment(device, doubles, sonde_path, tmp_path, how):
    """CuPy and numba bring CUDA's runtime within: no libcudart is mapped, beside which libcupti would be."""
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    cupti = packages / "nvidia" / "cuda_cupti" / "lib" / "libcupti.so.12"
    extension = packages / "cupy" / "core.so"
    python = tmp_path / "env" / "bin" / "python3"
    for path in (cupti, extension, python):
        path.parent.mkdir(parents=True)
    shutil.copy(doubles / "libcupti-double-12.so", cupti)
    shutil.copy(doubles / "libcupti-double-12.so", extension)
    python.symlink_to("/usr/bin/python3")
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    load = f"ctypes.CDLL({str(extension)!r}); " if how == "mapped" else ""
    code = f"import ctypes; {load}ctypes.CDLL({str(library)!r}).InitializeInjection()"
    program = python if how == "called" else "/usr/bin/python3"
    part, data, done = device(program, "-c", code, env={"SONDE_CUPTI": "/nonexistent"})
    assert done.status == 0
    assert part["cuda"]["tracers"] == [f"CUDA is traced by CUPTI 12.9.1, {cupti}."]


@pytest.mark.parametrize("end, status", [("_exit", 5), ("kill", 137), ("fork", 5)])
def test_ends(device, program, end, status):
    """What was flushed is in the capture however the program ends, and a forked child writes nothing."""
    part, _, done = device(*program(STEPS, end), options=("--launch-stacks", "off"),
                           env={"SONDE_CUDA_FLUSH_MS": "50"})
    assert done.status == status
    more = 2 if end == "fork" else 0  # the parent's one step after the child
    assert counts(part)["scale"] == COUNTS["scale"] + more
    assert counts(part)["mlp"] == REPLAYS
    assert part["records_lost"] == 0
    if end == "fork":
        assert "child ended with 7" in done.stdout


def test_the_end_of_a_window_loses_nothing(device, program):
    """Work that runs when the recording ends is told before the gate closes."""
    part, data, done = device(*program(150, "late"), options=("-d", "0.7", "--launch-stacks", "off"))
    assert done.status == 5
    assert 0 < part["count"] < 150, "the recording ended before the program"
    assert part["count"] == part["launches"]["count"] and part["launches"]["without_work"]["lost"] == 0
    assert not [note for note in data["notes"] if "did not hand over" in note]


def test_gpus_have_their_names_in_a_later_window(device, program):
    """CUPTI says what they are when CUDA starts, before the window."""
    part, _, done = device(*program(150, "late"), options=("--window", "time:0.2..60", "--launch-stacks", "off"))
    assert done.status == 5 and part["count"]
    assert [row["name"] for row in part["devices"]] == ["Double of a GPU (GPU-abcdef01)"]


def test_another_tools_variable_stays(device, program, tmp_path):
    part, data, done = device(*program(STEPS), env={"CUDA_INJECTION64_PATH": "/opt/tool/libother.so"})
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert part is None
    assert any("CUDA_INJECTION64_PATH names another tool, /opt/tool/libother.so" in note for note in data["notes"])


@pytest.mark.parametrize("script", ["graph-family", "graph-places", "wrap", "threads", "clones", "long-name", "many"])
def test_scripts(device, doubles, sonde_path, script):
    """The scripts of the unit test (their exit status tells of what they saw) through the whole of sonde."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    part, _, done = device(doubles / "play-cupti", library, doubles / "libcupti-double-13.so", script,
                           options=("--launch-stacks", "off"))
    assert done.status == 0
    expected = {"graph-family": 5, "graph-places": 2, "wrap": 6, "threads": 400, "clones": 2000, "long-name": 1,
                "many": 50000}[script]
    assert part["count"] == expected
    assert part["started_before_launch"] == 0
    if script != "many":  # the launching thread does nothing but launch, and does not wait for room
        assert part["records_lost"] == 0
    if script == "long-name":
        assert counts(part) == {"n" * 1200: 1}


def test_no_session_is_left_behind(sonde, program, doubles, tmp_path):
    running = sonde.start("record", "-q", "-o", tmp_path / "x.pftrace", "--", *program(STEPS),
                          env={"SONDE_CUPTI": str(doubles / "libcupti-double-13.so")})
    assert running.wait(60) == 5
    assert not glob.glob(f"/dev/shm/sonde-{running.pid}-*")


def test_the_program_alone_is_the_same(program):
    done = subprocess.run(program(STEPS), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (5, computed(STEPS))


def test_critical_path_of_a_recording(device, program, sonde, tmp_path):
    """It stands in the recording's own report, and leads through launches and the work that they gave."""
    _, data, _ = device(*program(3))
    capture = tmp_path / "device.pftrace"
    text = sonde("report", "--by", "critical-path", "--annotation", "", capture, check=0).stdout
    assert "Critical path" in text and "[whole trace]" in text
    (rank,) = sonde("report", "--json", "--by", "critical-path", "--annotation", "", capture, check=0).json()["critical_path"]
    (window,) = rank["windows"]
    assert 0 < sum(window["by_bound_ns"].values()) == window["path_ns"] <= window["until_ns"]
    named = {row["name"] for row in window["rows"] if row["bound_by"] == "gpu_compute_bound"}
    assert named and named <= {row["name"] for row in data["kernel"]["kernels"]}


def test_waits_are_rows_and_edges(device, program, sonde, tmp_path):
    """A kernel of one stream waits for one of another by an event, which each step records again, then the host for all."""
    device(*program(STEPS, "sync"), options=("--launch-stacks", "off"))
    capture = tmp_path / "device.pftrace"
    rows = json.loads(sonde("export", "-f", "chrome", "-o", "-", capture).stdout)["traceEvents"]
    calls = {row["args"]["correlation"]: row["name"] for row in rows
             if row.get("cat") == "cuda_runtime" and "correlation" in row["args"]}
    syncs = [row for row in rows if row.get("cat") == "cuda_sync"]
    waits = [row for row in syncs if row["name"] == "Stream Wait Event"]
    assert len(waits) == STEPS and len([row for row in syncs if row["name"] == "Context Sync"]) == STEPS
    records = [wait["args"]["wait_on_cuda_event_record_corr_id"] for wait in waits]
    assert len(set(records)) == STEPS, "each wait is for the record before it"
    assert {calls[record] for record in records} == {"cudaEventRecord"}
    for wait in waits:
        args = wait["args"]
        assert (args["stream"], args["wait_on_stream"], args["wait_on_cuda_event_id"]) == (8, 7, 40)
        assert calls[args["correlation"]] == "cudaStreamWaitEvent"
    assert len([name for name in calls.values() if "a wait" in name]) == STEPS
    (rank,) = sonde("report", "--json", "--by", "critical-path", "--annotation", "", capture, check=0).json()["critical_path"]
    (window,) = rank["windows"]
    named = {row["name"] for row in window["rows"] if row["bound_by"] == "gpu_compute_bound"}
    assert {"produce", "consume"} <= named, "the path goes on in the other stream"


WAITED_NS = 180000  # by stream 8 in a step, where its kernel is launched before stream 7 begins


def test_waits_are_a_table_and_a_cause(device, program, sonde, tmp_path):
    """What streams and the host waited for, how often and how long; a stream was idle because of it."""
    device(*program(STEPS, "sync"), options=("--launch-stacks", "off"))
    capture = tmp_path / "device.pftrace"
    waits = sonde("report", "--json", "--by", "device-waits", capture, check=0).json()["device_waits"]
    rows = {row["kind"]: row for row in waits}
    assert len(waits) == len(rows) == 2
    stream, host = rows["stream_wait_event"], rows["device"]
    assert (stream["count"], stream["unknown"], stream["waited_for"]) == (STEPS, 0, "event of stream 7")
    assert (host["count"], host["unknown"], host["waited_for"]) == (STEPS, 0, "Double of a GPU (GPU-abcdef01)")
    # Begin and end are times on the device, each with the error of its pair of clocks, and rounded. On a busy machine pairs are less sure.
    error_ns = 2 * sonde("report", "--json", capture, check=0).json()["device_work"]["clock_error_ns"] + 1
    assert abs(stream["longest_ns"] - WAITED_NS) <= error_ns, "the launch is 2 ms before, once at least"
    assert stream["longest_ns"] <= stream["waited_ns"] <= STEPS * (WAITED_NS + error_ns)
    assert 0 < host["longest_ns"] <= host["waited_ns"]
    idle = sonde("report", "--json", "--by", "idle", capture, check=0).json()["idle"]
    (place,) = [place for place in idle if place["stream"] == 8]
    (event,) = [cause for cause in place["causes"] if cause["cause"] == "event"]
    assert event["gaps_ns"]["max"] == stream["longest_ns"] and event["idle_ns"] == stream["waited_ns"]
    table = sonde("report", "--csv", "--by", "device-waits", capture, check=0).stdout
    assert f"stream_wait_event,event of stream 7," in table
    events = [json.loads(line) for line in sonde("export", "-f", "jsonl", "-o", "-", capture).stdout.splitlines()]
    syncs = [event for event in events if event["type"] == "device_sync"]
    records = {event["correlation"] for event in syncs if event["kind"] == "event_record"}
    assert len(records) == STEPS and len(syncs) == 3 * STEPS
    assert records == {event["waited_correlation"] for event in syncs if event["kind"] == "stream_wait_event"}
    text = sonde("report", "--by", "device-waits", capture, check=0).stdout
    assert "Waits for devices" in text and "Stream waits for event" in text


@pytest.mark.parametrize("cuda, who, count, words", [
    ("own", "kept, theirs", 1, "its trace lacks the GPU's work"),
    ("share", "given, ours", 2, "torch.profiler had CUPTI for 0."),
    ("yield", "given, theirs", 1, "CUPTI is left to it"),
])
def test_a_profiler_in_the_program(device, doubles, sonde_path, cuda, who, count, words):
    """Three launches: before, during and after it. Both sides get what --cuda says, and it is said."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    part, data, done = device(doubles / "play-cupti", library, doubles / "libcupti-double-13.so", "profiler",
                              options=("--launch-stacks", "off", "--cuda", cuda))
    assert (done.status, done.stdout) == (0, who + "\n")
    assert part["count"] == count
    assert part["launches"]["count"] == (3 if cuda == "own" else count)
    assert any(words in note for note in data["notes"]), data["notes"]


def test_a_program_goes_from_session_to_session(sonde, doubles, sonde_path, tmp_path):
    """It was started by one recording, and joins others that attach to it: each has names of devices and kernels."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    cupti = doubles / "libcupti-double-13.so"
    folders = tmp_path / "folders"
    os.mkfifo(folders)
    play = f"exec {doubles}/play-cupti {library} {cupti} joins < {folders}"
    first = sonde.start("record", "-q", "--launch-stacks", "off", "-o", tmp_path / "first", "--", "sh", "-c", play,
                        env={"SONDE_CUPTI": str(cupti)})
    say = folders.open("w")
    pid = int(first.stdout.readline().split()[1])
    first.kill()
    first.wait(60)
    for folder in glob.glob(f"/dev/shm/sonde-{first.pid}-*"):
        shutil.rmtree(folder)
    for number in (2, 3):
        capture, session = tmp_path / f"joined-{number}", tmp_path / f"session-{number}"
        recording = sonde.start("record", "-p", pid, "--session-file", session, "-o", capture)
        end = time.monotonic() + 60
        while not (session.exists() and session.read_text().strip()):
            assert time.monotonic() < end
            time.sleep(0.01)
        say.write(session.read_text().strip() + "\n")
        say.flush()
        assert first.stdout.readline() == "launched\n"
        recording.send_signal(signal.SIGINT)
        assert recording.wait(60) == 0
        data = sonde("report", "--json", capture, check=0).json()
        assert data["device_work"]["count"] == number
        assert [(row["name"], row["count"]) for row in data["kernel"]["kernels"]] == [("gemms(float*, float*)", number)]
        assert data["device_work"]["cuda"]["counts"]["launches"] == number
        assert len(data["device_work"]["cuda"]["tracers"]) == 1
    say.close()


def test_it_is_said_why_an_attached_program_has_no_device_work(sonde, doubles, tmp_path):
    """As with OpenCL (test_opencl.py): no program joins unless it asks for it."""
    driver = tmp_path / "libcuda.so.1"
    shutil.copy(doubles / "libcupti-double-13.so", driver)
    code = f"import ctypes, sys; ctypes.CDLL({str(driver)!r}); print('ready', flush=True); sys.stdin.read()"
    program = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    sonde.started.append(program)
    assert program.stdout.readline() == "ready\n"
    done = sonde("record", "-d", "0.2", "-p", program.pid, "-o", tmp_path / "c", check=0)
    program.communicate()
    text = " ".join(done.stderr.split())
    assert f"device work of python3 ({program.pid}), which uses CUDA, is not recorded" in text, done.stderr
    assert "may join this session with sonde_open_session()" in text


@pytest.mark.parametrize("activity, is_said", [("CUDA", True), ("CPU", False)])
def test_torch_profiler_is_seen_by_its_hooks(device, sonde_path, tmp_path, activity, is_said):
    """With a stand-in for the functions of PyTorch that start and stop Kineto."""
    module = tmp_path / "torch" / "autograd" / "profiler.py"
    module.parent.mkdir(parents=True)
    for folder in (module.parent, module.parent.parent):
        (folder / "__init__.py").write_text("")
    module.write_text("def _prepare_profiler(config, activities): pass\ndef _enable_profiler(config, activities): pass\n"
                      "def _disable_profiler(): pass\n")
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    code = (f"import ctypes; ctypes.CDLL({str(library)!r}).InitializeInjection()\n"
            "from torch.autograd import profiler\n"
            f"profiler._prepare_profiler(None, {{'ProfilerActivity.{activity}'}})\n"
            f"profiler._enable_profiler(None, {{'ProfilerActivity.{activity}'}})\n"
            "profiler._disable_profiler()\n")
    _, data, done = device("/usr/bin/python3", "-c", code, options=("--launch-stacks", "off", "--cuda", "share"),
                           env={"PYTHONPATH": str(tmp_path)})
    assert done.status == 0, done.stderr
    assert any("torch.profiler had CUPTI" in note for note in data["notes"]) == is_said


@pytest.mark.parametrize("cuda, count", [("own", TOTAL), ("yield", 0)])
def test_dynolog_may_ask_kineto_at_any_time(device, program, cuda, count):
    part, data, done = device(*program(STEPS), options=("--launch-stacks", "off", "--cuda", cuda),
                              env={"KINETO_USE_DAEMON": "1"})
    assert (done.status, done.stdout) == (5, computed(STEPS))
    assert part["count"] == count
    assert any("KINETO_USE_DAEMON is set" in note for note in data["notes"])


WORKER = """
import ctypes, multiprocessing, os, struct, sys, time

library, double = sys.argv[1:]

def work():
    cupti = ctypes.CDLL(double)
    ctypes.CDLL(library).InitializeInjection()
    functions = (ctypes.c_void_p * 4).in_dll(cupti, "double_cupti")
    call = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int, ctypes.c_int32)(functions[0])
    emit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(functions[3])
    for number in range(1, 1001):
        call(2, 211, number, 0, 0)  # cudaLaunchKernel of the runtime
        call(2, 211, number, 1, 0)
        kernel, now = bytearray(%d), time.time_ns()
        struct.pack_into("<I", kernel, 0, 10)
        struct.pack_into("<QQ", kernel, 16, now, now + 100)
        struct.pack_into("<I", kernel, 92, number)
        emit(bytes(kernel), len(kernel))

worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
raise SystemExit(worker.exitcode)
"""
KERNEL_BYTES = 248  # of struct cupti_kernel
MEMORY_BYTES = 120  # of struct cupti_memory


def test_a_worker_of_multiprocessing_hands_over_at_its_end(device, doubles, sonde_path, tmp_path):
    """It ends by os._exit(), long before records are asked for by the clock."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    script = tmp_path / "worker.py"
    script.write_text(WORKER % KERNEL_BYTES)
    part, _, done = device("/usr/bin/python3", script, library, doubles / "libcupti-double-13.so",
                           options=("--launch-stacks", "off"), env={"SONDE_CUDA_FLUSH_MS": "3600000"})
    assert done.status == 0
    assert part["count"] == part["launches"]["count"] == 1000


WAIT = "[a wait: cudaDeviceSynchronize or the like]"
ALLOCATIONS = {"cudaMalloc": (2 * STEPS + 2, 1, False), "cudaFree": (2 * STEPS, 0, False)}
STACKS = [pytest.param("bpf", marks=needs_root), "inprocess"]


def calls_of(data):
    return {call["name"]: (call["count"], call["failed"], call["loads_code"]) for call in data["calls"]}


@pytest.mark.parametrize("calls", ["launches", "all"])
def test_calls_beyond_launches(sonde, device, program, tmp_path, calls):
    """The runtime's call and the driver's in it are one; code that a launch loads is a call of its own."""
    _, data, done = device(*program(STEPS, "calls"), options=("--launch-stacks", "off", "--cuda-api", calls))
    assert done.stdout == f"computed {8 * STEPS + 3}\n"
    found = calls_of(data)
    if calls == "launches":
        assert found == {"cudaLaunchKernel": (2 * STEPS + 1, None, False), WAIT: (1, None, False), **ALLOCATIONS}
        assert not any(call["lines"] for call in data["calls"]), "launch stacks were off"
        text = sonde("report", "--by", "calls", tmp_path / "device.pftrace", check=0).stdout
        assert "--cuda-api all also records" in " ".join(text.split())
        return
    assert found == {"cudaLaunchKernel": (2 * STEPS + 1, 0, False), WAIT: (1, 0, False), **ALLOCATIONS,
                     "cudaEventQuery": (2 * STEPS, 0, False),
                     "cuLibraryLoadData": (1, 0, True), "cuKernelGetFunction": (1, 0, True)}
    load = next(call for call in data["calls"] if call["name"] == "cuLibraryLoadData")
    assert load["total_ns"] == load["longest_ns"] == load["mean_ns"] >= 20_000_000
    text = sonde("report", tmp_path / "device.pftrace", check=0).stdout
    assert re.search(r"Threads were in these calls for .*; [\d.]+ m?s of it loaded or compiled code", text)
    rows = json.loads(sonde("export", "-f", "chrome", "-o", "-", tmp_path / "device.pftrace", check=0).stdout)["traceEvents"]
    slices = {name: [row for row in rows if row["name"] == name and row["ph"] == "X"] for name in found}
    assert {name: len(slices[name]) for name in found} == {name: count for name, (count, _, _) in found.items()}
    load, = slices["cuLibraryLoadData"]
    first = min(slices["cudaLaunchKernel"], key=lambda row: row["ts"])
    assert load["cat"] == "cuda_driver" and slices["cudaMalloc"][0]["cat"] == "cuda_runtime"
    assert load["tid"] == first["tid"] and first["ts"] <= load["ts"] < load["ts"] + load["dur"] <= first["ts"] + first["dur"]


def no_lost_launch(part):
    return part["launches"]["without_work"] == dict.fromkeys(part["launches"]["without_work"], 0)


@pytest.mark.parametrize("stacks", STACKS)
def test_waits_have_the_line_that_waited(device, program, sonde, tmp_path, stacks):
    """Each wait of the host is that of the line that called, not only where a sample saw it."""
    device(*program(STEPS, "sync"), options=("--launch-stacks", stacks, "--cuda-api", "all"))
    capture = tmp_path / "device.pftrace"
    waits = sonde("report", "--json", "--by", "device-waits", capture, check=0).json()["device_waits"]
    rows = {row["kind"]: row for row in waits}
    assert len(waits) == len(rows) == 2 and rows["device"]["count"] == STEPS, waits
    assert (rows["device"]["function"], rows["stream_wait_event"]["function"]) == ("call", "launch_on")
    assert all(re.search(rf";run_sync \(.*program\.c:\d+\);{row['function']} \(", row["stack"]) for row in waits)


@pytest.mark.parametrize("stacks", STACKS)
@pytest.mark.parametrize("calls", ["launches", "all"])
def test_lines_of_calls(device, program, sonde, tmp_path, stacks, calls):
    """Each call has the line that made it; no launch comes of its stack."""
    part, data, _ = device(*program(STEPS, "calls"), options=("--launch-stacks", stacks, "--cuda-api", calls))
    rows = {call["name"]: call for call in data["calls"]}
    lines = {name: {(line["function"], line["source_file"].rsplit("/", 1)[-1], line["count"])
                    for line in call["lines"] if line["line"]} for name, call in rows.items()}
    assert lines["cudaMalloc"] == {("call_with", "program.c", 2 * STEPS + 2)}
    assert lines["cudaFree"] == {("call_with", "program.c", 2 * STEPS)}
    assert lines["cudaLaunchKernel"] == {("load_model", "program.c", 1), ("cuda_launch_kernel", "program.c", 2 * STEPS)}
    assert re.search(r";free_cache \(.*;call_with \(.*program\.c:\d+\)", rows["cudaFree"]["lines"][0]["stack"])
    (wait,) = sonde("report", "--json", "--by", "device-waits", tmp_path / "device.pftrace", check=0).json()["device_waits"]
    assert (wait["kind"], wait["waited_for"], wait["count"]) == ("call", WAIT, 1), "the stand-in has no record of what it was for"
    if calls == "all":
        assert lines[WAIT] == {("cuda_synchronize", "program.c", 1)}
        assert wait["function"] == "cuda_synchronize" and re.search(r";cuda_synchronize \(.*program\.c:\d+\);", wait["stack"])
        assert lines["cuLibraryLoadData"] == {("load_model", "program.c", 1)}, "that of the launch that it lies in"
        assert lines["cudaEventQuery"] == {("call_with", "program.c", 2 * STEPS)}
    else:
        assert not lines[WAIT] and [line["count"] for line in rows[WAIT]["lines"]] == [1]
    launches = part["launches"]
    assert launches["count"] == launches["stacks"] == launches["complete_stacks"] == 2 * STEPS + 1
    assert part["attribution"] == {"matched": 2 * STEPS + 1, "no_stack": 0, "stacks_off": 0, "launched_on_device": 0}
    assert no_lost_launch(part) and launches["wrong_stacks"] == 0
    text = sonde("report", "--by", "calls", tmp_path / "device.pftrace", check=0).stdout
    assert re.search(r"Lines that made them:\n.*Call +Line +Function\n(.*\n)*.* cudaMalloc +\S*program\.c:\d+ +call_with", text)


def test_a_call_that_does_not_end_is_no_launch(device, program):
    part, data, _ = device(*program(1, "calls-ended"), options=("--launch-stacks", "inprocess", "--cuda-api", "all"))
    assert part["launches"]["count"] == part["launches"]["stacks"] == 1 and no_lost_launch(part)
    assert calls_of(data) == {"cudaLaunchKernel": (1, None, False), "cudaMalloc": (1, 0, False)}


def held_at_peak(memory):
    """by the functions around the call: (at the peak, of all allocations, what was not released)"""
    found = {}
    for stack in memory["stacks"]:
        names = [frame.split(" (")[0] for frame in (stack["stack"] or "").split(";")]
        key = ";".join(name for name in names if name in ("allocate_weights", "serve", "allocate_cache", "call_with"))
        sums = found.setdefault(key, [0, 0, 0])
        for i, figure in enumerate(("at_peak_bytes", "bytes", "unreleased_bytes")):
            sums[i] += stack[figure]
    return found


@pytest.mark.parametrize("stacks", STACKS)
def test_memory_by_the_line_that_allocated_it(device, program, sonde, tmp_path, stacks):
    """Without an option; and in what is exported for Chrome, too."""
    device(*program(STEPS, "calls"), options=("--launch-stacks", stacks))
    sonde("export", "-f", "chrome", "-o", tmp_path / "trace.json", tmp_path / "device.pftrace", check=0)
    mib = 1 << 20
    for file in (tmp_path / "device.pftrace", tmp_path / "trace.json"):
        (memory,) = sonde("report", "--json", "--by", "memory", file, check=0).json()["memory"]
        held = held_at_peak(memory)
        cache = memory["peak_bytes"] - 8 * mib
        assert cache in (mib, 2 * mib), "of one thread, or of both"
        assert held == {"": [0, mib, 0],  # of a call that was not seen
                        "allocate_weights;call_with": [8 * mib] * 3,
                        "serve;allocate_cache;call_with": [cache, 2 * STEPS * mib, 0]}
        if file.suffix == ".json":
            continue
        assert {stack["own"].split(" (")[0] for stack in memory["stacks"] if stack["stack"]} == {"call_with"}
        operators = {row["name"]: (row["at_peak_bytes"], row["allocations"]) for row in memory["operators"]}
        assert operators == {"aten::empty": (8 * mib, 1), None: (cache, 2 * STEPS + 1)}
    text = sonde("report", "--by", "memory", tmp_path / "device.pftrace", check=0).stdout
    assert re.search(r"8\.00 MiB +8\.00 MiB +1 +8\.00 MiB +call_with \(\S*program\.c:\d+\)", text)


ALLOCATOR = """
import ctypes, struct, sys, time
library, double = sys.argv[1:]
cupti = ctypes.CDLL(double)
ctypes.CDLL(library).InitializeInjection()
functions = (ctypes.c_void_p * 4).in_dll(cupti, "double_cupti")
call = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int, ctypes.c_int32)(functions[0])
emit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(functions[3])

def allocate(number):
    call(2, 20, number, 0, 0)  # cudaMalloc
    call(2, 20, number, 1, 0)
    memory = bytearray(%d)
    struct.pack_into("<IIIIQQQ", memory, 0, 49, 1, 3, number, number << 24, 1 << 20, time.time_ns())
    emit(bytes(memory), len(memory))

def load_weights():
    for number in range(1, 101):
        allocate(number)

load_weights()
"""


@pytest.mark.parametrize("stacks", STACKS)
def test_memory_by_the_line_of_python(device, doubles, sonde, sonde_path, tmp_path, stacks):
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    script = tmp_path / "allocator.py"
    script.write_text(ALLOCATOR % MEMORY_BYTES)
    device("/usr/bin/python3", script, library, doubles / "libcupti-double-13.so", options=("--launch-stacks", stacks))
    (memory,) = sonde("report", "--json", "--by", "memory", tmp_path / "device.pftrace", check=0).json()["memory"]
    (stack,) = memory["stacks"]
    line = 1 + ALLOCATOR.splitlines().index("    call(2, 20, number, 1, 0)")
    assert stack["own"] == f"allocate ({script}:{line})" and stack["at_peak_bytes"] == memory["peak_bytes"] == 100 << 20
    assert [frame.split(" (")[0] for frame in stack["stack"].split(";")][:3] == ["<module>", "load_weights", "allocate"]
    words = ("export", "-f", "folded", "--weight", "gpu-bytes", "--roots", "none", "-o", "-")
    (line,) = sonde(*words, tmp_path / "device.pftrace", check=0).stdout.splitlines()
    assert line.startswith("[memory of GPU 0];<module>;load_weights;allocate") and line.endswith(f" {100 << 20}")


def test_all_calls_need_a_command(sonde):
    for arguments in (("-p", os.getpid()), ("--cpu-only", "--", "true")):
        done = sonde("record", "--cuda-api", "all", *map(str, arguments), check=2)
        assert "--cuda-api all is for a command" in done.stderr


def unified_rows(sonde, capture):
    return sonde("report", "--json", "--by", "unified-memory", capture, check=0).json()["unified_memory"]


MEGABYTES = 1 << 21  # that a migration of the program moves


@pytest.mark.parametrize("double, version", [("libcupti-double-13.so", "130500"), ("libcupti-double-12.so", "28"),
                                             ("libcupti-double-12.so", "18")])
def test_unified_memory(sonde, device, doubles, tmp_path, double, version):
    """Faults and migrations by allocation and by the kernel that ran meanwhile; what the program wrote is what is there."""
    steps = 5
    command = [doubles / "cuda-program", doubles / double, steps, "unified"]
    _, data, done = device(*command, options=("--gpu-only", "--launch-stacks", "inprocess", "--unified-memory"),
                           env={"SONDE_CUPTI": str(doubles / double), "DOUBLE_CUPTI_VERSION": version})
    assert done.status == 5, done.stderr
    capture = tmp_path / "device.pftrace"
    rows = {(row["address"], row["kernel"]): row for row in unified_rows(sonde, capture)}
    assert set(rows) == {("0x7f0000000000", "gather"), ("0x7f0000000000", None), (None, None)}
    gather, host, unknown = (rows[key] for key in [("0x7f0000000000", "gather"), ("0x7f0000000000", None), (None, None)])
    assert (gather["to_device_bytes"], gather["asked_bytes"]) == (2 * steps * MEGABYTES, steps * MEGABYTES)
    assert (gather["migrations"], gather["device_faults"], gather["host_faults"]) == (2 * steps, 3 * steps, 0)
    assert (gather["stream"], gather["call"], gather["allocated_bytes"]) == (7, "cudaMallocManaged", 4 * MEGABYTES)
    assert gather["source_file"].endswith("doubles/cupti/program.c") and gather["line"] == host["line"] > 0
    assert unknown["source_file"] is None and unknown["line"] is None
    assert gather["migration_ns"] > gather["fault_ns"] > 0
    assert (host["to_host_bytes"], host["to_device_bytes"], host["thrashing"]) == (65536 * steps, 0, steps)
    assert (host["host_faults"], host["device"]) == (steps, gather["device"])
    assert unknown["to_device_bytes"] == 4096 and unknown["call"] is None
    text = sonde("report", "--by", "unified-memory", capture, check=0).stdout
    assert "Unified memory" in text and "cudaMallocManaged" in text and "gather" in text


def test_unified_memory_is_advised_about(device, program):
    """One kernel of 200 us, of which pages move for 60: what the machine does meanwhile is no part of it."""
    _, data, _ = device(*program(1, "unified"), options=("--gpu-only", "--launch-stacks", "off", "--unified-memory"))
    advice = next(one for one in data["advice"] if one["id"] == "unified_memory")
    assert (advice["evidence"]["device_faults"], advice["evidence"]["unasked_bytes"]) == (3, MEGABYTES + 4096)
    assert advice["evidence"]["work_ns"] > advice["evidence"]["unasked_ns"] > 0
    assert "cudaMemPrefetchAsync" in advice["sentence"] and "go to and fro" in advice["sentence"]


def test_unified_memory_is_on_the_timeline(sonde, device, program, tmp_path):
    device(*program(2, "unified"), options=("--gpu-only", "--launch-stacks", "off", "--unified-memory"))
    capture = tmp_path / "device.pftrace"
    lines = sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines()
    events = [event for event in map(json.loads, lines) if event["type"] == "unified_memory"]
    kinds = {kind: sum(event["kind"] == kind for event in events) for kind in {event["kind"] for event in events}}
    assert kinds == {"to_device": 5, "to_host": 2, "device_fault": 2, "host_fault": 2, "thrashing": 2}
    host = next(event for event in events if event["kind"] == "host_fault")
    assert (host["instruction"], host["bytes"], host["from"], host["start_ns"]) == (0x401000, None, None, host["end_ns"])
    to_device = next(event for event in events if event["kind"] == "to_device")
    assert (to_device["from"], to_device["bytes"], to_device["cause"]) == (None, MEGABYTES, "access")
    assert to_device["to"].startswith("Double of a GPU")
    thrashing = next(event for event in events if event["kind"] == "thrashing")
    assert (thrashing["devices"], thrashing["on_host"], thrashing["bytes"]) == (1, True, 65536)
    trace = tmp_path / "trace.json"
    sonde("export", "-f", "chrome", "-o", trace, capture, check=0)
    rows = [row for row in json.loads(trace.read_text())["traceEvents"] if row.get("cat") == "unified_memory"]
    assert len(rows) == len(events)
    prefetch = next(row for row in rows if row["args"].get("cause") == "user")
    assert (prefetch["ph"], prefetch["name"], prefetch["args"]["bytes"]) == ("X", "Migration to device", MEGABYTES)
    assert all(row["ph"] == "i" for row in rows if row["name"] in ("Page fault of the host", "Thrashing"))
    exported = tmp_path / "rows.pftrace"
    sonde("export", "-f", "pftrace", "-o", exported, capture, check=0)
    again = tmp_path / "again.json"
    sonde("export", "-f", "chrome", "-o", again, exported, check=0)
    kept = [row for row in json.loads(again.read_text())["traceEvents"] if row.get("cat") == "unified_memory"]
    assert sorted((row["name"], row["args"]["address"]) for row in kept) == sorted(
        (row["name"], row["args"]["address"]) for row in rows)


def test_unified_memory_is_not_asked_for_by_default(sonde, device, program, tmp_path):
    _, data, done = device(*program(2, "unified"), options=("--gpu-only", "--launch-stacks", "off"))
    assert done.status == 5
    assert data["unified_memory"] == [] or data["unified_memory"] is None
    out = sonde("report", "--by", "unified-memory", tmp_path / "device.pftrace", check=0).stdout
    assert "sonde record --unified-memory asks CUPTI for them" in " ".join(out.split())


@pytest.mark.parametrize("result, what, words", [
    (28, "unified", "not on this system"),
    (29, "unified", "not with this GPU"),
    (30, "unified", "CUDA_VISIBLE_DEVICES"),
    (31, "unified", "not under MPS"),
    (14, "unified", "one before 13.2"),
    (27, "unified", "SONDE_CUPTI"),
    (7, "unified", "error 7, CUPTI_ERROR_OF_THE_DOUBLE"),
    (0, "unified-late", "the driver was not ready"),
])
def test_a_refusal_of_unified_memory_is_said(device, program, result, what, words):
    part, data, done = device(*program(2, what), options=("--gpu-only", "--launch-stacks", "off", "--unified-memory"),
                              env={"DOUBLE_CUPTI_UNIFIED": str(result)})
    assert done.status == 5
    assert part["count"] == 2  # the kernels are there
    said = [note for note in data["notes"] if "does not record unified memory (--unified-memory)" in note]
    assert len(said) == 1 and words in said[0], data["notes"]
    assert not data["unified_memory"]


@pytest.mark.parametrize("options, words", [
    (("--cpu-only", "--unified-memory", "--", "true"), "--cpu-only does not ask for"),
    (("--launch-only", "--unified-memory", "--", "true"), "--launch-only does not ask for"),
    (("--unified-memory", "-p", "1"), "--unified-memory is for a command"),
])
def test_what_does_not_go_with_unified_memory(sonde, tmp_path, options, words):
    done = sonde("record", "-o", tmp_path / "capture", *options, check=2)
    assert words in done.stderr


def latency_rows(sonde, capture):
    """(rows of launches, rows of kernels by name)"""
    data = sonde("report", "--json", capture, check=0).json()
    return data["launches"], {row["name"]: row for row in data["kernel"]["kernels"]}


KERNEL_NS = 20000


@pytest.mark.parametrize("double, version", [("libcupti-double-13.so", "130500"), ("libcupti-double-13.so", "130100"),
                                             ("libcupti-double-12.so", "28"), ("libcupti-double-12.so", "18")])
def test_latency(sonde, device, doubles, tmp_path, double, version):
    """The times of queueing and submitting, and the priority, are what the program had: differences of the device's clock."""
    command = [doubles / "cuda-program", doubles / double, 5, "latency"]
    _, data, done = device(*command, options=("--gpu-only", "--launch-stacks", "off", "--cuda-latency"),
                           env={"SONDE_CUPTI": str(doubles / double), "DOUBLE_CUPTI_VERSION": version})
    assert done.status == 5 and not [note for note in data["notes"] if "--cuda-latency" in note]
    capture = tmp_path / "device.pftrace"
    (launches,), kernels = latency_rows(sonde, capture)
    assert launches["submit_ns"]["count"] == launches["queue_ns"]["count"] == launches["launches"] == 10
    assert (launches["submit_ns"]["min"], launches["submit_ns"]["max"]) == (KERNEL_NS, KERNEL_NS)
    assert (launches["queue_ns"]["min"], launches["queue_ns"]["max"]) == (2 * KERNEL_NS, 5 * KERNEL_NS)
    assert {name: row["mean_queue_ns"] for name, row in kernels.items()} == {"soon": 2 * KERNEL_NS, "later": 5 * KERNEL_NS}
    has_priority = int(version) >= 130100
    assert {name: row["priority"] for name, row in kernels.items()} == (
        {"soon": 0, "later": -3} if has_priority else dict.fromkeys(["soon", "later"]))
    assert not any(row["priorities_differ"] for row in kernels.values())
    for by, columns in (("launches", ("Submit", "Queue")), ("kernel", ("Queue", "Priority")[:1 + has_priority])):
        heads = sonde("report", "--by", by, capture, check=0).stdout
        assert all(column in heads for column in columns), heads


def test_latency_is_on_the_timeline(sonde, device, program, tmp_path):
    device(*program(2, "latency"), options=("--gpu-only", "--launch-stacks", "off", "--cuda-latency"))
    capture = tmp_path / "device.pftrace"
    lines = sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines()
    events = [event for event in map(json.loads, lines) if event["type"] == "kernel"]
    waits = {(e["name"], e["priority"], e["submitted_ns"] - e["queued_ns"], e["start_ns"] - e["submitted_ns"]) for e in events}
    assert len(events) == 4 and waits == {("soon", 0, KERNEL_NS, 2 * KERNEL_NS), ("later", -3, KERNEL_NS, 5 * KERNEL_NS)}
    trace = tmp_path / "trace.json"
    sonde("export", "-f", "chrome", "-o", trace, capture, check=0)
    rows = [row for row in json.loads(trace.read_text())["traceEvents"] if row.get("cat") == "kernel"]
    assert len(rows) == 4
    for row in rows:
        waits = {"soon": 2, "later": 5}[row["name"]]
        assert round(row["args"]["submitted"] - row["args"]["queued"], 3) == KERNEL_NS / 1000
        assert round(row["ts"] - row["args"]["submitted"], 3) == waits * KERNEL_NS / 1000
        assert row["args"]["priority"] == {"soon": 0, "later": -3}[row["name"]]


def test_latency_is_not_asked_for_by_default(sonde, device, program, tmp_path):
    device(*program(2, "latency"), options=("--gpu-only", "--launch-stacks", "off"))
    (launches,), kernels = latency_rows(sonde, tmp_path / "device.pftrace")
    assert launches["queue_ns"]["count"] == launches["submit_ns"]["count"] == 0
    assert kernels["later"]["mean_queue_ns"] is None and kernels["later"]["priority"] == -3
    assert "Queue " not in sonde("report", "--by", "kernel", tmp_path / "device.pftrace", check=0).stdout


@pytest.mark.parametrize("env, words", [
    ({"DOUBLE_CUPTI_LATENCY": "27"}, "no function for it"),
    ({"DOUBLE_CUPTI_LATENCY": "1"}, "error 1, CUPTI_ERROR_OF_THE_DOUBLE"),
    ({"DOUBLE_CUPTI_LATENCY_NONE": "1"}, "for any kernel"),
])
def test_a_refusal_of_latency_is_said(device, program, env, words):
    part, data, _ = device(*program(2, "latency"), options=("--gpu-only", "--launch-stacks", "off", "--cuda-latency"), env=env)
    assert part["count"] == 4  # the kernels are there
    said = [note for note in data["notes"] if "--cuda-latency" in note]
    assert len(said) == 1 and words in said[0], data["notes"]
    assert data["launches"][0]["queue_ns"]["count"] == 0


@pytest.mark.parametrize("options, words", [
    (("--cpu-only", "--cuda-latency", "--", "true"), "--cpu-only does not ask for"),
    (("--cuda-latency", "-p", "1"), "--cuda-latency is for a command"),
])
def test_what_does_not_go_with_latency(sonde, tmp_path, options, words):
    assert words in sonde("record", "-o", tmp_path / "capture", *options, check=2).stderr


FUNCTION_NS = 5 * KERNEL_NS  # of a stream; of a graph's node twice that


def test_host_functions_are_waits_of_their_stream(sonde, device, program, tmp_path):
    """Functions that a stream and a graph have the host run: rows of the stream, a table, no work of the device."""
    steps = 3
    part, data, done = device(*program(steps, "host"), options=("--gpu-only", "--launch-stacks", "off"))
    assert done.status == 5 and counts(part) == dict.fromkeys(("before", "after", "graph kernel"), steps)
    capture = tmp_path / "device.pftrace"
    waits = sonde("report", "--json", "--by", "device-waits", capture, check=0).json()["device_waits"]
    (row,) = [row for row in waits if row["kind"] == "host_function"]
    assert (row["count"], row["unknown"], row["waited_for"]) == (2 * steps, 0, "function of the program")
    assert (row["waited_ns"], row["longest_ns"]) == (3 * steps * FUNCTION_NS, 2 * FUNCTION_NS)
    assert "Stream waits for function" in sonde("report", "--by", "device-waits", capture, check=0).stdout
    rows = json.loads(sonde("export", "-f", "chrome", "-o", "-", capture, check=0).stdout)["traceEvents"]
    functions = [row for row in rows if row.get("name") == "Host Function"]
    assert {(row["cat"], row["args"]["stream"], round(row["dur"] * 1000)) for row in functions} == {
        ("cuda_sync", 7, FUNCTION_NS), ("cuda_sync", 8, 2 * FUNCTION_NS)}
    assert len(functions) == 2 * steps
    after = {round(row["ts"], 3) for row in rows if row.get("name") in ("after", "graph kernel")}
    assert {round(row["ts"] + row["dur"], 3) for row in functions} == after, "work goes on when the function has returned"
    lines = map(json.loads, sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines())
    events = [event for event in lines if event["type"] == "device_sync"]
    assert {(event["kind"], event["stream"], event["event"], event["end_ns"] - event["start_ns"]) for event in events} == {
        ("host_function", 7, None, FUNCTION_NS), ("host_function", 8, None, 2 * FUNCTION_NS)}


def test_host_functions_are_asked_for_where_there_are_records(sonde, device, program, tmp_path):
    """Releases before 13.1 have none."""
    device(*program(2, "host"), options=("--gpu-only", "--launch-stacks", "off"), env={"DOUBLE_CUPTI_VERSION": "130000"})
    waits = sonde("report", "--json", "--by", "device-waits", tmp_path / "device.pftrace", check=0).json()["device_waits"]
    assert not waits
