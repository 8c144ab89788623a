# SPDX-License-Identifier: Apache-2.0
"""CUDA against a stand-in for libcupti (tests/doubles/cupti): no device, no driver, no CUDA. From the library in the
program through rings and stacks to the report."""

import glob
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

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
        capture = tmp_path / "device.pftrace"
        settings = {"SONDE_CUPTI": str(doubles / "libcupti-double-13.so"), **(env or {})}
        done = sonde("record", *options, "-o", capture, "--", *command, env=settings)
        data = sonde("report", "--json", capture, check=0).json()
        part = data["device_work"]
        if part:
            part["graphs"] = data["graphs"]
            part["kernels"] = data["kernel"]["kernels"] if part["count"] else []
        return part, data, done

    return run


def counts(part):
    return {row["name"]: row["count"] for row in part["kernels"]}


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
    assert part["attribution"] == {"matched": TOTAL, "no_stack": 0, "stacks_off": 0}
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
    assert any("2 records of device work were dropped by CUPTI" in note for note in data["notes"])
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


def test_a_worker_of_multiprocessing_hands_over_at_its_end(device, doubles, sonde_path, tmp_path):
    """It ends by os._exit(), long before records are asked for by the clock."""
    library = sonde_path.parent / "src" / "inject" / "libsonde-inject.so"
    script = tmp_path / "worker.py"
    script.write_text(WORKER % KERNEL_BYTES)
    part, _, done = device("/usr/bin/python3", script, library, doubles / "libcupti-double-13.so",
                           options=("--launch-stacks", "off"), env={"SONDE_CUDA_FLUSH_MS": "3600000"})
    assert done.status == 0
    assert part["count"] == part["launches"]["count"] == 1000
