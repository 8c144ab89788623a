# SPDX-License-Identifier: Apache-2.0
"""Replays of graphs, and counters, of traces."""

import csv

import pytest
from trace_files import write_kineto

NODE = 3 << 32  # of graph 3, as CUPTI numbers nodes


def replay(number, start_us, nodes, call="cudaGraphLaunch", pid=10):
    """A call, and a kernel for each (name, us, arguments) one after the other."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": call, "pid": pid, "tid": pid, "ts": start_us, "dur": 5,
              "args": {"correlation": number}}
    kernels, at_us = [], start_us + 10
    for name, duration_us, arguments in nodes:
        kernels.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at_us, "dur": duration_us,
                        "args": {"device": 0, "stream": 7, "correlation": number, **arguments}})
        at_us += duration_us + 1
    return [launch, *kernels]


def value(name, time_us, pid=10, **series):
    return {"ph": "C", "name": name, "pid": pid, "ts": time_us, "args": series}


def layers(scale, **graph):
    return [("gemm", 5 * scale, {"graph node id": NODE + 1, **graph}), ("add", 3, {"graph node id": NODE + 2, **graph})]


def test_replays_of_a_trace(sonde, tmp_path):
    """Of a file that names graphs, and of one that has ids of nodes alone, which say the graph."""
    for graph in ({"graph id": 3}, {}):
        path = write_kineto(tmp_path / "graphs.json", replay(1, 100, layers(1, **graph)) + replay(2, 200, layers(2, **graph)))
        (found,) = sonde("report", "--json", path, check=0).json()["graphs"]
        assert (found["graph"], found["pid"], found["replays"], found["rank"]) == (3, 10, 2, None)
        assert (found["work_ns"], found["span_ns"], found["timed_as_whole"]) == (21_000, 9_000 + 14_000, False)
        assert [(node["name"], node["node"], node["count"], node["total_ns"], node["maximum_ns"])
                for node in found["nodes"]] == [("gemm", NODE + 1, 2, 15_000, 10_000), ("add", NODE + 2, 2, 6_000, 3_000)]
    text = sonde("report", "--by", "graph", path, check=0).stdout
    assert "CUDA graphs" in text and "gemm" in text and "Capture" not in text and "Replayed by" not in text
    assert sonde("report", "--by", "graph", "--time", "0.00005..", "--json", path,
                 check=0).json()["graphs"][0]["replays"] == 1


def test_replays_that_name_no_graph(sonde, tmp_path):
    """As ROCm's: only the call tells. What other calls launched is none of it."""
    nodes = [("gemm", 5, {}), ("add", 3, {}), ("gemm", 5, {})]
    events = replay(1, 100, nodes, call="hipGraphLaunch") + replay(2, 200, nodes[:1], call="hipLaunchKernel")
    (found,) = sonde("report", "--json", write_kineto(tmp_path / "rocm.json", events), check=0).json()["graphs"]
    assert (found["graph"], found["replays"], found["work_ns"]) == (None, 1, 13_000)
    assert [(node["name"], node["node"], node["count"]) for node in found["nodes"]] == [("gemm", None, 2), ("add", None, 1)]


def test_a_graph_that_is_timed_as_one(sonde, tmp_path):
    events = replay(1, 100, [("[CUDA graph 3]", 50, {"graph id": 3})])
    (found,) = sonde("report", "--json", write_kineto(tmp_path / "one.json", events), check=0).json()["graphs"]
    assert found["timed_as_whole"] and found["nodes"] == [] and found["work_ns"] == 50_000


def test_graphs_of_processes_and_ranks(sonde, tmp_path):
    """The same number is another graph in another process."""
    for rank in range(2):
        write_kineto(tmp_path / f"rank{rank}.json", replay(1, 100, layers(1)) + replay(2, 200, layers(2), pid=11),
                     distributedInfo={"rank": rank, "world_size": 2})
    found = sonde("report", "--json", tmp_path, check=0).json()["graphs"]
    assert sorted((row["rank"], row["pid"], row["work_ns"]) for row in found) == [
        (0, 10, 8_000), (0, 11, 13_000), (1, 10, 8_000), (1, 11, 13_000)]


def test_a_trace_without_graphs_says_so(sonde, tmp_path):
    path = write_kineto(tmp_path / "none.json", replay(1, 100, [("gemm", 5, {})], call="cudaLaunchKernel"))
    assert "no launch of a CUDA graph" in sonde("report", "--by", "graph", path, check=0).stdout
    assert "no counters in the trace" in sonde("report", "--by", "counter", path, check=0).stdout
    document = sonde("report", "--json", path, check=0).json()
    assert document["graphs"] is None and document["counters"] is None


def test_counters_of_a_trace(sonde, tmp_path):
    """By process, name and series; the last is the last in time, wherever it stands."""
    events = [*replay(1, 100, [("gemm", 5, {})]), value("power", 130, GPU0=300.5, GPU1=200), value("loss", 120, loss=2.5),
              value("power", 110, GPU0=310.5), value("loss", 125, pid=11, value=-1)]
    path = write_kineto(tmp_path / "counters.json", events)
    rows = sonde("report", "--json", path, check=0).json()["counters"]
    figures = [(row["pid"], row["name"], row["count"], row["minimum"], row["mean"], row["last"]) for row in rows]
    assert figures == [(10, "loss", 1, 2.5, 2.5, 2.5), (10, "power: GPU0", 2, 300.5, 305.5, 300.5),
                       (10, "power: GPU1", 1, 200, 200, 200), (11, "loss", 1, -1, -1, -1)]
    assert "Counters" in sonde("report", path, check=0).stdout
    narrow = sonde("report", "--json", "--by", "counter", "--time", "..0.00001", path, check=0).json()["counters"]
    assert [(row["name"], row["last"]) for row in narrow] == [("power: GPU0", 310.5)]
    assert sonde("report", "--by", "counter", "--csv", path, check=0).stdout.count("\n") == 5


def call(name, start_us, duration_us=2, pid=10, **arguments):
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": pid, "tid": pid, "ts": start_us, "dur": duration_us,
            "args": {"correlation": int(start_us * 10) + 10_000, **arguments}}


def around(category, name, start_us, duration_us, pid=10, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": pid, "ts": start_us, "dur": duration_us, "args": arguments}


def capture(start_us, kernels=True):
    """A module's two operators, each with a call, as ROCm names kernels there."""
    named = (lambda name: {"kernel": name}) if kernels else (lambda _: {})
    return [
        call("hipStreamBeginCapture", start_us),
        around("python_function", "nn.Module: Linear_0", start_us + 5, 50, **{"Python id": 1}),
        around("cpu_op", "aten::mm", start_us + 10, 10, **{"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}),
        call("hipLaunchKernel", start_us + 12, **named("gemm")),
        around("cpu_op", "aten::add", start_us + 30, 10),
        call("hipLaunchKernel", start_us + 32, **named("add")),
        call("hipStreamEndCapture", start_us + 60),
    ]


CAPTURED = [("gemm", 5, {}), ("add", 3, {})]


def replays(start_us):
    return [event for number in range(3)
            for event in replay(number + 1, start_us + 100 * number, CAPTURED, call="hipGraphLaunch")]


def operators(report):
    return [(row["name"], row["count"], row["gpu_ns"])
            for row in report["operators"]]


def check_operators(sonde, *paths):
    """What the kernels of three replays belong to, and what that costs."""
    report = sonde("report", "--json", "--by", "operators", *paths, check=0).json()
    assert operators(report) == [("aten::mm", 3, 15_000), ("aten::add", 3, 9_000)]
    report = sonde("report", "--json", *paths, check=0).json()
    (trace,) = report["traces"]
    assert trace["graph_replays"] == {
        "captures": 1, "replays": 3, "nodes": 6, "known_nodes": 6, "unclear_nodes": 0, "alike": 0,
        "no_capture": 0, "no_fit": 0, "several": 0, "streams": 0}
    kinds = {row["category"]: row["sum_ns"] for row in report["categories"]}
    assert kinds == {"GEMM": 15_000, "elementwise": 9_000}
    roofline = sonde("report", "--json", "--by", "roofline", "--peak", "tflops=1,tbps=1", *paths, check=0).json()["roofline"]
    (matrix,) = [row for row in roofline["operators"] if row["name"] == "aten::mm"]
    assert (matrix["count"], matrix["flop"]) == (3, 3 * 2 * 64 * 32 * 16)
    stacks = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", *paths, check=0).stdout.splitlines()
    assert any("Linear_0" in line and "aten::mm" in line and line.endswith("gemm 15000") for line in stacks), stacks
    return trace


def test_operators_of_replays(sonde, tmp_path):
    """Of a trace with the capture in it, with and without names of kernels there; also when it was imported."""
    for kernels in (True, False):
        path = write_kineto(tmp_path / "both.json", capture(100, kernels) + replays(1000))
        assert check_operators(sonde, path)["rows"] == 16
    sonde("import", path, "-o", tmp_path / "both.pftrace", check=0)
    assert operators(sonde("report", "--json", "--by", "operators", tmp_path / "both.pftrace", check=0).json()) == [
        ("aten::mm", 3, 15_000), ("aten::add", 3, 9_000)]
    later = sonde("report", "--json", "--by", "operators", "--time", "0.00105..", path, check=0).json()
    assert operators(later) == [("aten::mm", 1, 5_000), ("aten::add", 1, 3_000)]
    modules = sonde("report", "--json", "--by", "nn-module", path, check=0).json()["modules"]
    assert "Linear" in str(modules)
    compatible = sonde("report", "--json", "--by", "operators", "--hta-compatible", path, check=0).json()
    assert compatible["operators"] is None or "aten::mm" not in [row["name"] for row in compatible["operators"]]


def test_the_trace_of_the_capture_is_a_second_file(sonde, tmp_path):
    """Its own rows do not count; a warning says what became of it."""
    rank = {"distributedInfo": {"rank": 0, "world_size": 1}}
    captured = write_kineto(tmp_path / "capture.json",
                            capture(100) + replay(7, 300, [("warm", 9, {})], call="hipLaunchKernel"), **rank)
    served = write_kineto(tmp_path / "serve.json", replays(1000), **rank)
    for paths in ([served, captured], [captured, served]):
        trace = check_operators(sonde, *paths)
        assert trace["rows"] == 9 and trace["device_works"] == 6
        done = sonde("report", *paths, check=0)
        assert f"{captured} has the captures of graphs that {served} replays: 6 nodes" in done.stderr
        assert "warm" not in done.stdout and "rank 0 of 1" in done.stdout
    alone = sonde("report", served, check=0).stdout
    assert "3 of 3 replays of graphs have no operators: the capture is not in the trace." in alone
    other = write_kineto(tmp_path / "other.json", capture(100), distributedInfo={"rank": 1, "world_size": 2})
    assert len(sonde("report", "--json", served, other, check=0).json()["traces"]) == 2


TRACELENS = {  # nodes of replays in each
    "sglang_decode": (1, 544),
    "vllm_decode_full": (1, 421),
    "vllm_prefilldecode_piecewise": (25, 361),
    "xdit_flux.1_aiter_sage": (4, 6264),
}


@pytest.mark.parametrize("name", TRACELENS)
def test_real_traces_read_as_tracelens_reads_them(sonde, shared_traces, name):
    """Device time by operator is that of TraceLens' own report of the traces that it publishes."""
    folder = shared_traces / "TraceLens" / "inference" / name
    if not (paths := [*folder.glob("*.json.gz"), *folder.glob("capture_traces/*.json.gz")]):
        pytest.skip(f"there are no traces of TraceLens in {folder}: they are in its repository's tests/traces/inference")
    report = sonde("report", "--json", *paths, check=0).json()
    (trace,) = report["traces"]
    found = trace["graph_replays"]
    assert (found["replays"], found["nodes"], found["known_nodes"], found["alike"]) == (*TRACELENS[name], TRACELENS[name][1], 0)
    own = {}
    for row in sonde("report", "--json", "--by", "operators", "--limit", "100000", *paths, check=0).json()["operators"]:
        own[row["name"]] = own.get(row["name"], 0) + row["gpu_ns"] / 1000
    theirs = {}
    with open(folder / "perf_csvs" / "ops_summary.csv", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            theirs[row["name"]] = theirs.get(row["name"], 0) + float(row["total_direct_kernel_time_sum"])
    compared = [name for name in theirs if name in own and name.startswith("aten::")]
    assert compared
    for operator in compared:
        assert own[operator] == pytest.approx(theirs[operator], rel=0.01), operator
