# SPDX-License-Identifier: Apache-2.0
"""Flame graphs and tables of functions of other tools' traces: device work by what launched it, and threads' time."""

import csv
import glob
import gzip
import io
import json
import re
import subprocess
from collections import Counter

import pprof
import pytest
from trace_files import kineto_of_rank, write_kineto

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
TRACES = [
    "megatron-tp8/kineto_0.json.gz", "kineto/df_index_resolver.json.gz", "kineto/ns_resolution.json.gz",
    "kineto/mi250_minitoy_train_ROCm6_2_kineto.json.gz", "kineto/critical_path_alexnet.json.gz",
    "simple_add/benchmark_simple_add_trace.json.gz"
]


def slice_of(category, name, start_us, duration_us, tid=1, **arguments):
    event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start_us, "dur": duration_us}
    return {**event, "args": arguments} if arguments else event


def launch(number, start_us, name, stream=7, duration_us=40):
    return [
        slice_of("cuda_runtime", "cudaLaunchKernel", start_us, 2, correlation=number),
        {**slice_of("kernel", name, start_us + 50, duration_us, stream, correlation=number, device=0, stream=stream),
         "pid": 0},
    ]


@pytest.fixture
def trace(tmp_path):
    """One step: Python, an operator in an operator, two kernels, and a copy that nobody launched."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "thread 1 (python3)"}},
        slice_of("user_annotation", "ProfilerStep#3", 0, 200),
        slice_of("python_function", "train.py(12): main", 10, 150.5, **{"Python id": 1}),
        slice_of("python_function", "torch/nn/modules/module.py(1501): _call_impl", 15, 90, **{"Python id": 2}),
        slice_of("cpu_op", "aten::linear", 20, 80),
        slice_of("cpu_op", "aten::addmm", 30, 40),
        *launch(1, 35, "void gemm<float, 4>(float*)"),
        slice_of("user_annotation", "my loss", 120, 20),
        *launch(2, 130, "relu;fused", duration_us=1.125),
        {**slice_of("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 300, 3, 8, correlation=99, device=0, stream=8),
         "pid": 0},
    ]
    return write_kineto(tmp_path / "trace.json", events)


def folded(sonde, path, *options, weight="gpu"):
    text = sonde("export", "-f", "folded", "--weight", weight, "-o", "-", *options, path, check=0).stdout
    return {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in text.splitlines())}


def test_device_work_is_below_what_launched_it(sonde, trace):
    assert folded(sonde, trace) == {
        "python3;ProfilerStep;main;_call_impl;aten::linear;aten::addmm;cudaLaunchKernel;"
        "[gpu] void gemm<float, 4>(float*)": 40000,
        r"python3;ProfilerStep;main;my loss;cudaLaunchKernel;[gpu] relu\x3bfused": 1125,
        "python3;[unattributed: no launch stack];[gpu] Memcpy HtoD (Pageable -> Device)": 3000,
    }
    stacks = folded(sonde, trace, "--roots", "thread")
    assert any(stack.startswith("python3;thread 1 (python3);ProfilerStep;main") for stack in stacks)
    assert any(stack.startswith("python3;tid 8;[unattributed") for stack in stacks), "its stream"


def test_time_of_threads_is_that_of_the_innermost_row(sonde, trace):
    for weight in ("wall", "cpu"):
        stacks = folded(sonde, trace, weight=weight)
        assert sum(stacks.values()) == 200_000
        assert stacks["python3;ProfilerStep"] == 49_500
        assert stacks["python3;ProfilerStep;main"] == 40_500
        assert stacks["python3;ProfilerStep;main;_call_impl;aten::linear"] == 40_000
        assert stacks["python3;ProfilerStep;main;_call_impl;aten::linear;aten::addmm;cudaLaunchKernel"] == 2_000
    both = folded(sonde, trace, weight="cpu+gpu")
    assert sum(both.values()) == 200_000 + 44_125
    done = sonde("export", "-f", "folded", "-o", "-", trace, check=0)
    assert "A trace has no samples" in done.stderr
    assert "samples" not in sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", trace, check=0).stderr


def test_filters_select(sonde, trace):
    assert set(folded(sonde, trace, "--range", "^my loss$").values()) == {1125}
    assert set(folded(sonde, trace, "--symbol", "addmm").values()) == {40000}
    assert set(folded(sonde, trace, "--thread", 8).values()) == {3000}
    assert sum(folded(sonde, trace, "--time", "0..0.0001").values()) == 40000
    assert folded(sonde, trace, "--stacks", "kernel") and not folded(sonde, trace, "--process", "77")
    refused = sonde("export", "-f", "folded", "-o", "-", "--window", "1", trace, check=1)
    assert "has no windows" in refused.stderr


def test_own_code_is_charged(sonde, trace):
    """Frames have classes: what a framework does can be folded into the line that called it."""
    stacks = folded(sonde, trace, "--fold-libraries", "yes")
    assert stacks["python3;ProfilerStep;main"] == 40000 and stacks["python3;ProfilerStep;main;my loss"] == 1125


@pytest.mark.parametrize("weight", ["gpu", "wall", "cpu+gpu"])
def test_all_formats_hold_the_same(sonde, trace, tmp_path, weight):
    total = sum(folded(sonde, trace, weight=weight).values())
    document = sonde("export", "-f", "speedscope", "--weight", weight, "-o", "-", trace, check=0).json()
    assert sum(sum(profile["weights"]) for profile in document["profiles"]) == total
    assert {profile["unit"] for profile in document["profiles"]} == {"nanoseconds"}
    assert "train.py" in {frame["file"] for frame in document["shared"]["frames"]}
    sonde("export", "-f", "pprof", "--weight", weight, "-o", tmp_path / "a.pb.gz", trace, check=0)
    samples = pprof.read(tmp_path / "a.pb.gz", value_type=1)
    assert sum(value for _, value in samples) == total
    assert pprof.Frame("main", "train.py", 12) in {frame for stack, _ in samples for frame in stack}
    text = sonde("export", "-f", "perf-script", "--weight", weight, "-o", "-", trace, check=0).stdout
    assert sum(int(found) for found in re.findall(r"(\d+) cpu-clock:", text)) == total
    rows = csv.DictReader(io.StringIO(
        sonde("export", "-f", "csv", "--weight", weight, "-o", "-", trace, check=0).stdout))
    assert sum(int(row["self_time_ns"]) for row in rows) == total


def test_idle_devices_are_charged_to_what_the_thread_was_in(sonde, tmp_path):
    events = [
        slice_of("python_function", "train.py(12): main", 0, 1000),
        *launch(1, 10, "first"),  # runs from 60 to 100
        slice_of("cpu_op", "aten::slow", 90, 300),
        slice_of("cpu_op", "aten::mm", 500, 20),
        *launch(2, 505, "second"),  # runs from 555
    ]
    path = write_kineto(tmp_path / "trace.json", events)
    stacks = folded(sonde, path, weight="gpu-idle")
    assert sum(stacks.values()) == 455_000
    assert stacks["pid 1;main;aten::slow;[idle: host wait]"] == 290_000
    assert stacks["pid 1;main;[idle: host wait]"] == 110_000
    assert stacks["pid 1;main;aten::mm;[idle: host wait]"] == 5_000
    assert stacks["pid 1;main;aten::mm;cudaLaunchKernel;[idle: launch]"] == 50_000
    graph = sonde("export", "-f", "flamegraph", "--weight", "gpu-idle", "-o", "-", path, check=0).stdout
    assert "of idle time of devices" in graph


def test_flame_graph_says_what_it_is(sonde, trace):
    graph = sonde("export", "-f", "flamegraph", "--weight", "gpu", "-o", "-", trace, check=0).stdout
    assert "44.1 µs of device work" in graph and str(trace) in graph and "[gpu] relu;fused" in graph
    graph = sonde("export", "-f", "flamegraph", "-o", "-", trace, check=0).stdout
    assert "running and waiting, all threads together" in graph


@pytest.mark.parametrize(
    "weight, words",
    [("wait", "does not say what of its time a thread waited"), ("energy", "has no energy")])
def test_what_a_trace_cannot_tell_is_refused(sonde, trace, weight, words):
    done = sonde("export", "-f", "folded", "--weight", weight, "-o", "-", trace, check=1)
    assert words in done.stderr and "it has gpu (the time of device work)" in done.stderr and not done.stdout


def test_what_a_trace_does_not_have_is_refused(sonde, tmp_path):
    host = write_kineto(tmp_path / "host.json", [slice_of("cpu_op", "aten::mm", 0, 10)])
    done = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", host, check=1)
    assert "has no work of a device: it has wall" in done.stderr
    assert folded(sonde, host, weight="wall") == {"pid 1;aten::mm": 10000}
    device = write_kineto(tmp_path / "device.json", launch(1, 0, "gemm")[1:])
    done = sonde("export", "-f", "folded", "-o", "-", device, check=1)
    assert "has no operators, calls or annotations: it has gpu" in done.stderr
    assert sum(folded(sonde, device).values()) == 40000


def tables(sonde, path, by, *options):
    data = sonde("report", "--json", "--by", by, *options, path, check=0).json()
    return data, data["tables"][by]["rows"]


def test_tables_are_by_the_same_stacks(sonde, trace):
    data, rows = tables(sonde, trace, "function", "--weight", "gpu")
    assert data["tables_weight"] == "gpu" and data["traces"][0]["path"] == str(trace)
    assert sum(row["self_time_ns"] for row in rows) == 44125
    total = {row["name"]: row["total_time_ns"] for row in rows}
    assert (total["aten::linear"], total["main"], total["_call_impl"]) == (40000, 41125, 40000)
    _, rows = tables(sonde, trace, "line", "--weight", "gpu")
    assert {(row["source_file"], row["line"], row["total_time_ns"]) for row in rows if row["line"]} == {
        ("train.py", 12, 41125), ("torch/nn/modules/module.py", 1501, 40000)}
    data, rows = tables(sonde, trace, "thread")
    assert data["tables_weight"] == "wall" and [row["self_time_ns"] for row in rows] == [200_000]
    _, rows = tables(sonde, trace, "class", "--weight", "gpu")
    assert {row["class"]: row["total_time_ns"] for row in rows}["user"] == 41125
    for by in ("function", "line", "module", "class", "stack", "thread", "process"):
        text = sonde("report", "--by", by, "--weight", "gpu", trace, check=0).stdout
        assert text.splitlines()[0].startswith(str(trace)) and "(device time)" in text
    text = sonde("report", "--by", "function", "--range", "^my loss$", "--sort", "total", trace, check=0).stdout
    assert "CPU time and waiting" in text and "aten::linear" not in text
    rows = csv.DictReader(io.StringIO(
        sonde("report", "--csv", "--by", "function", "--weight", "gpu", trace, check=0).stdout))
    assert sum(int(row["self_time_ns"]) for row in rows) == 44125


@pytest.mark.parametrize(
    "options, words",
    [(["--weight", "gpu"], "--weight is for tables of samples"), (["--by", "cpu"], "--by cpu is for recordings"),
     (["--by", "gil"], "--by gil is for recordings"), (["--window", "1", "--by", "function"], "--window is for recordings")])
def test_reports_that_a_trace_cannot_have_are_refused(sonde, trace, options, words):
    done = sonde("report", *options, trace, check=2)
    assert words in done.stderr and not done.stdout


def test_ranks_are_one_picture(sonde, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(3):
        kineto_of_rank(folder / f"rank{rank}.json.gz", rank, 3)
    stacks = folded(sonde, folder)
    assert stacks == {"pid 1;aten::mm;cudaLaunchKernel;[gpu] gemm": 3 * 5 * 40000}


def work_of(events):
    """Nanoseconds of device work by name, of the events of a Kineto file."""
    total = Counter()
    for event in events:
        if event.get("cat", "").lower() in WORK and event.get("ph") == "X":
            total[event["name"]] += round(float(event["dur"]) * 1000)
    return total


def leaves_of(stacks):
    total = Counter()
    for stack, count in stacks.items():
        total[stack.rsplit(";[gpu] ", 1)[1].replace(r"\x3b", ";")] += count
    return total


@pytest.mark.parametrize("name", TRACES)
def test_widths_are_the_device_work_of_real_traces(sonde, shared_traces, name):
    """To the nanosecond, by kernel; and the time of threads is that of the table of operators."""
    path = shared_traces / name
    events = json.loads(gzip.decompress(path.read_bytes()), strict=False)["traceEvents"]
    expected = work_of(events)
    assert expected and leaves_of(folded(sonde, path)) == expected
    rows = sonde("report", "--json", "--by", "cpu-operators", path, check=0).json()["cpu_operators"]
    functions = csv.DictReader(io.StringIO(sonde("export", "-f", "csv", "-o", "-", path, check=0).stdout))
    self_ns = Counter()
    for row in functions:
        if row["module"] != "[annotation]":
            self_ns[row["name"]] += int(row["self_time_ns"])
    by_name = Counter()
    for row in rows:
        if row["kind"] != "annotation":
            by_name[row["name"]] += row["self_ns"]
    assert {name: time for name, time in by_name.items() if time} == {
        name: time for name, time in self_ns.items() if time}


def test_a_recording_and_its_export_have_the_same_kernels(sonde, workload, workload_directory, tmp_path):
    if not (workload_directory / "opencl").exists() or not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.fail("built without OpenCL's libraries, or no driver: run tools/deps test, then make")
    recording, exported = tmp_path / "run.pftrace", tmp_path / "run.json"
    sonde("record", "-o", recording, "--", *workload("opencl", 50))
    sonde("export", "-f", "chrome", "-o", exported, recording, check=0)
    sonde("import", "-o", tmp_path / "imported.pftrace", exported, check=0)
    expected = leaves_of(folded(sonde, recording))
    assert expected["scale"] and leaves_of(folded(sonde, exported)) == expected
    assert folded(sonde, tmp_path / "imported.pftrace") == folded(sonde, exported)


PROGRAM = """
import sys, torch
def mine(a):
    return torch.mm(a, a)
model = torch.nn.Linear(64, 64)
with torch.profiler.profile(with_stack=True) as prof:
    for _ in range(20):
        mine(torch.rand(256, 256))
        model(torch.rand(8, 64))
prof.export_chrome_trace(sys.argv[1])
"""


def test_python_functions_of_pytorch(sonde, torch2, tmp_path):
    """Recorded with_stack: the program's own lines, the framework's, and operators below them."""
    program, path = tmp_path / "train.py", tmp_path / "trace.json"
    program.write_text(PROGRAM)
    subprocess.run([torch2, program, path], check=True)
    stacks = folded(sonde, path, weight="wall")
    assert any(re.search(r";mine;.*aten::mm", stack) for stack in stacks), stacks
    assert any("nn.Module: Linear_0" in stack for stack in stacks)
    assert not any(" at 0x" in stack for stack in stacks)
    rows = {row["name"]: row for row in csv.DictReader(
        io.StringIO(sonde("export", "-f", "csv", "-o", "-", path, check=0).stdout))}
    assert (rows["mine"]["class"], rows["_call_impl"]["class"]) == ("user", "framework")
    assert rows["mine"]["source_file"].endswith("train.py")
