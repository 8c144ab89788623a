# SPDX-License-Identifier: Apache-2.0
"""Replays of graphs, and counters, of traces."""

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
