# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs in recordings, against a stand-in for libcupti (tests/doubles/cupti/graphs.c): what replays run belongs
to the operators that were open when it was captured, as if it had run eagerly."""

import json
import re

import pytest
from device_report import counts, record_device

COUNT = 5  # of each of two models
LAYERS = {"encoder": 3, "decoder": 3}
NODES = COUNT * sum(LAYERS.values())


@pytest.fixture
def run(sonde, sonde_path, tmp_path):
    """run(how, options) -> the capture of the program, and the report's device part"""
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"

    def record(how, *options, count=COUNT, env=None):
        capture = tmp_path / f"{how}.pftrace"
        command = [doubles / "cuda-graphs", doubles / "libcupti-double-13.so", how, count]
        part, _, done = record_device(sonde, capture, "--launch-stacks", "off", *options, "--", *command,
                                      env={"SONDE_CUPTI": str(doubles / "libcupti-double-13.so"), **(env or {})})
        assert done.status == 0
        return capture, part

    return record


def report(sonde, capture, by, *options):
    return sonde("report", "--json", "--by", by, *options, capture, check=0).json()


def operators(sonde, capture, *options):
    """(name, kernels, count) -> time"""
    rows = report(sonde, capture, "operators", *options)["operators"]
    return {(row["name"], tuple(row["kernels"]), row["count"]): row["gpu_ns"] for row in rows}


def is_near(found, expected):
    """The ends of a kernel are rounded to the nanosecond of another clock."""
    return found.keys() == expected.keys() and all(abs(found[key] - expected[key]) <= 2 * NODES for key in expected)


def test_replays_have_the_operators_of_an_eager_run(run, sonde):
    """Two graphs, of which another thread captures the second."""
    eager, _ = run("eager")
    replay, part = run("replay")
    found = operators(sonde, replay)
    assert is_near(found, operators(sonde, eager))
    assert is_near(found, {("aten::add", ("add",), 5): 15_000, ("aten::copy_", ("write",), 5): 10_000,
                           ("aten::embedding", ("gather",), 5): 25_000, ("aten::layer_norm", ("norm",), 5): 50_000,
                           ("aten::mm", ("gemm",), 10): 235_000})
    kernels = {row["name"]: row["sum_ns"] for row in part["kernels"]}
    assert {key[1][0]: found[key] for key in found} == kernels, "to the nanosecond of what ran"
    cuda = part["cuda"]
    assert (cuda["replayed"], cuda["replayed_captured_before"], cuda["replayed_call_missing"]) == (NODES, 0, 0)
    assert part["launches"]["without_work"]["captured"] == 6
    kinds = [{row["category"]: row["count"] for row in report(sonde, path, "category")["categories"]}
             for path in (eager, replay)]
    assert kinds[0] == kinds[1] == {"GEMM": 10, "norm": 5, "copy": 10, "elementwise": 5}


def test_roofline_of_replays(run, sonde):
    """The sizes of inputs are in the names of emit_nvtx()'s ranges."""
    rows = [{(row["name"], str(row["dims"])): (row["count"], row["flop"])
             for row in report(sonde, run(how)[0], "roofline")["roofline"]["shapes"]} for how in ("eager", "replay")]
    assert rows[0] == rows[1]
    assert rows[0]["aten::mm", "[[64, 32], [32, 16]]"] == (COUNT, 2 * 64 * 32 * 16)
    assert len(rows[0]) == 6, "the two products have rows of their own"


def test_captured_before_the_recording(run, sonde):
    capture, part = run("before")
    assert {name for name, *_ in operators(sonde, capture)} == {None}
    assert (part["cuda"]["replayed"], part["cuda"]["replayed_captured_before"]) == (NODES, NODES)
    text = sonde("report", "--by", "kernel", capture, check=0).stdout
    assert f"{NODES} of them have no operators: their graphs were made before the recording began" in " ".join(text.split())


def test_filters_keep_what_captured(run, sonde):
    """Replays are chosen by their launch; what captured them is elsewhere, and is not counted itself."""
    capture, _ = run("replay")
    every = operators(sonde, capture)
    assert operators(sonde, capture, "--range", "^serve$") == every
    assert operators(sonde, capture, "--range", "^encoder$") == {}
    ranges = {row["name"]: row["count"] for row in report(sonde, capture, "range", "--range", "^serve$")["ranges"]["rows"]}
    assert ranges == {"serve": 2 * COUNT}


def test_exports_of_replays(run, sonde):
    """Operators are rows of their own kind, and what was captured is a call without work."""
    capture, _ = run("replay")
    rows = json.loads(sonde("export", "-f", "chrome", "-o", "-", capture, check=0).stdout)["traceEvents"]
    ops = [row for row in rows if row.get("cat") == "cpu_op"]
    assert sorted(row["name"] for row in ops) == ["aten::add", "aten::copy_", "aten::embedding", "aten::layer_norm",
                                                  "aten::mm", "aten::mm"]
    assert [[64, 32], [32, 16]] in [row["args"].get("Input Dims") for row in ops]
    calls = [row for row in rows if row.get("cat") == "cuda_runtime"]
    worked = {row["args"]["correlation"] for row in rows if row.get("cat") in ("kernel", "gpu_memcpy")}
    captured = [row["name"] for row in calls if row["args"]["correlation"] not in worked]
    assert sorted(captured) == ["cudaLaunchKernel"] * 5 + ["cudaMemcpyAsync"]
    assert len([row for row in rows if row.get("cat") == "NVTX" and row["name"] == "serve"]) == 2 * COUNT


def levels(run, sonde, cost, *options, version=130101, count=400):
    """-> the graph's row, the device part, the notes of the recording, the report on graphs"""
    env = {"DOUBLE_CUPTI_VERSION": str(version), "DOUBLE_CUPTI_NODE_COST": str(cost), "SONDE_CUDA_FLUSH_MS": "5"}
    capture, part = run("levels", *options, count=count, env=env)
    (graph,) = report(sonde, capture, "graph")["graphs"]
    text = " ".join(word for by in ("graph", "kernel")
                    for word in sonde("report", "--by", by, capture, check=0).stdout.split())
    notes = sonde("report", "--json", capture, check=0).json()["notes"]
    assert graph["replays"] == count, "each counts once, whatever it was timed by"
    assert part["cuda"]["whole_replays"] == graph["whole_replays"]
    assert graph["timed_as_whole"] == (graph["whole_replays"] > 0)
    return graph, part, [note for note in notes if "--graph auto" in note], text


def check_nodes(graph, by_node):
    """The times of nodes are of the replays in which they were timed, and say so."""
    assert {node["name"]: node["count"] for node in graph["nodes"]} == dict.fromkeys(("norm", "gemm", "add"), by_node)
    assert sum(node["total_ns"] for node in graph["nodes"]) == pytest.approx(60_000 * by_node, rel=0.01)


def test_levels_where_nodes_are_dear(run, sonde):
    """Nodes add 40 % to a replay: after a trial graphs are timed as a whole, and few replays by node."""
    graph, part, notes, text = levels(run, sonde, 40)
    by_node = graph["replays"] - graph["whole_replays"]
    assert by_node >= 8 and graph["whole_replays"] >= 8
    check_nodes(graph, by_node)
    assert graph["median_by_node_ns"] == pytest.approx(84_000, abs=100)
    assert graph["median_whole_ns"] == pytest.approx(60_000, abs=100)
    (note,) = notes
    assert "adds 40.0 % to a replay" in note and "nodes in one replay of 40," in note
    assert "graph 20: 0.084 ms by node, 0.060 ms as a whole" in note
    assert f"Graph 20: the times of nodes are of {by_node} of 400 replays (median 84" in text
    assert f"{graph['whole_replays']} of them are replays that were timed as a whole" in text


def test_levels_where_nodes_are_cheap(run, sonde):
    graph, part, notes, text = levels(run, sonde, 4)
    assert notes == [], "nothing is amiss"
    assert "adds 4.0 % to a replay" in part["cuda"]["tracers"][-1]
    assert 8 <= graph["whole_replays"] < graph["replays"]
    check_nodes(graph, graph["replays"] - graph["whole_replays"])


@pytest.mark.parametrize("version, why", [(130100, "wrong correlation ids"), (130500, "several tools may trace")])
def test_levels_that_are_not_switched(run, sonde, version, why):
    graph, _, notes, text = levels(run, sonde, 40, version=version)
    (note,) = [note for note in notes if why in note]
    assert "28.5 % lie between nodes" in note
    assert graph["whole_replays"] == 0 and graph["median_whole_ns"] is None
    check_nodes(graph, graph["replays"])
    assert "timed as a whole" not in text and "as one" not in text


def test_one_level_where_it_is_asked_for(run, sonde):
    """With several subscribers CUPTI is told before it is asked for records."""
    for version in (130101, 130500):
        graph, part, notes, text = levels(run, sonde, 40, "--graph", "graph", version=version)
        assert (graph["whole_replays"], graph["median_by_node_ns"], notes) == (400, None, [])
        assert [node["total_ns"] for node in graph["nodes"]] == [None] * 3
        assert "their nodes have no times" in text
        graph, part, notes, text = levels(run, sonde, 40, "--graph", "node", version=version)
        assert (graph["whole_replays"], notes) == (0, [])


# ---- graphs that the device launches ----

STEPS = 4
BY_20, BY_21, BY_99 = (f"graph launched on the device by graph {launcher}" for launcher in
                       ("20, fire and forget", "21, tail", "99, sibling"))


@pytest.fixture
def launch_on_device(sonde, sonde_path, tmp_path):
    """launch_on_device(options, env) -> the capture of the program, the report's device part, its notes"""
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"

    def record(*options, env=None, double="libcupti-double-13.so"):
        capture = tmp_path / "device.pftrace"
        part, data, done = record_device(sonde, capture, "--gpu-only", *options, "--", doubles / "cuda-program", doubles / double,
                                         STEPS, "device-graphs", env={"SONDE_CUPTI": str(doubles / double), **(env or {})})
        assert done.status == 5
        return capture, part, data["notes"]

    return record


@pytest.mark.parametrize("double, version", [("libcupti-double-12.so", "26"), ("libcupti-double-13.so", "130000"),
                                             ("libcupti-double-13.so", "130500")])
def test_graphs_that_the_device_launches(launch_on_device, sonde, tmp_path, double, version):
    """Each is work of its own, charged to the host's launch of its launcher where that is known."""
    capture, part, notes = launch_on_device("--graph", "device", "--launch-stacks", "inprocess", double=double,
                                            env={"DOUBLE_CUPTI_VERSION": version})
    assert not [note for note in notes if "--graph device" in note]
    assert counts(part) == {"graph": STEPS, BY_20: STEPS, BY_21: STEPS, BY_99: 1}
    assert part["attribution"] == {"matched": 3 * STEPS, "no_stack": 0, "stacks_off": 0, "launched_on_device": 1}
    assert part["launches"]["count"] == STEPS
    lines = map(json.loads, sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines())
    works = sorted((line for line in lines if line["type"] == "graph"), key=lambda line: line["start_ns"])
    assert [(work["name"], work["graph"], work["launched_by_graph"]) for work in works] == (
        [("graph", 20, None), (BY_20, 21, 20), (BY_21, 21, 21)] * STEPS + [(BY_99, 21, 99)])
    for i in range(0, 3 * STEPS, 3):
        assert len({(work["correlation"], work["launch_ns"], str(work["stack"])) for work in works[i:i + 3]}) == 1
    assert len({work["correlation"] for work in works}) == STEPS + 1
    assert works[-1]["correlation"] is None and works[-1]["why_no_stack"] == "launched on the device"
    stacks = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    assert f"[unattributed: launched on the device];[graph replay];[gpu] {BY_99} " in stacks
    assert all(re.search(rf"main;.*replay_with_device_graphs;.*;\[graph replay\];\[gpu\] {name} ", stacks) for name in (BY_20, BY_21))
    text = sonde("report", capture, check=0).stdout
    assert f"{3 * STEPS} of {3 * STEPS + 1} kernels" in text and "1 were launched on the device" in text


def test_device_graphs_have_rows_in_every_form(launch_on_device, sonde, tmp_path):
    """A recording, its export and what is imported of that: one table of graphs, of kernels and of launches."""
    capture, _, _ = launch_on_device("--graph", "device", "--launch-stacks", "off")
    export, imported = tmp_path / "run.json", tmp_path / "imported.pftrace"
    sonde("export", "-f", "chrome", "-o", export, capture, check=0)
    sonde("import", "-o", imported, export, check=0)
    for path in (capture, export, imported):
        graphs = {row["graph"]: row for row in report(sonde, path, "graph")["graphs"]}
        assert {graph: (row["replays"], row["whole_replays"]) for graph, row in graphs.items()} == {
            20: (STEPS, STEPS), 21: (2 * STEPS + 1, 2 * STEPS + 1)}
        for graph, expected_ns in ((20, STEPS * 60_000), (21, STEPS * 60_000 + 100_000)):
            assert graphs[graph]["work_ns"] == graphs[graph]["span_ns"] == pytest.approx(expected_ns, rel=0.01), "clocks are aligned"
        assert [(graphs[graph]["device_replays"], graphs[graph]["launched_by_graphs"]) for graph in (20, 21)] == [
            (0, None), (2 * STEPS + 1, "20, fire and forget; 21, tail; 99, sibling")]
        names = {row["name"]: row["count"] for row in report(sonde, path, "kernel")["kernel"]["kernels"]}
        assert names == {"graph": STEPS, BY_20: STEPS, BY_21: STEPS, BY_99: 1}
        (launches,) = report(sonde, path, "launches")["launches"]
        assert (launches["launches"], launches["works"]) == (STEPS, 3 * STEPS)
        text = sonde("report", "--by", "graph", path, check=0).stdout
        assert "On GPU" in text and "Launched by graph" in text and "20, fire and forget" in text
    rows = [row for row in json.loads(export.read_text())["traceEvents"] if row.get("name") in (BY_20, BY_21, BY_99)]
    assert {(row["cat"], row["args"]["graph id"], row["args"]["stream"]) for row in rows} == {("kernel", 21, 8)}


@pytest.mark.parametrize("options, env, words", [
    (("--graph", "device"), {"DOUBLE_CUPTI_DEVICE_GRAPHS": "7"}, "error 7, CUPTI_ERROR_OF_THE_DOUBLE. Record with --graph graph"),
    (("--graph", "device"), {"DOUBLE_CUPTI_VERSION": "24", "double": "libcupti-double-12.so"}, "needs CUDA 12.8 or later, and this one is 12.6"),
    (("--graph", "graph"), {}, None),
])
def test_where_there_are_no_device_graphs(launch_on_device, options, env, words):
    """Refused, which one sentence says, or not asked for: the launches of the host are there."""
    _, part, notes = launch_on_device(*options, "--launch-stacks", "off", env=env, double=env.pop("double", "libcupti-double-13.so"))
    said = [note for note in notes if "--graph device" in note]
    assert len(said) == (words is not None) and all(words in note for note in said), notes
    assert counts(part)["graph"] == STEPS and not [name for name in counts(part) if "on the device" in name]


@pytest.mark.parametrize("options, words", [
    (("--cpu-only", "--graph", "device", "--", "true"), "--cpu-only does not ask for"),
    (("--launch-only", "--graph", "device", "--", "true"), "--launch-only does not ask for"),
    (("--graph", "device", "-p", "1"), "--graph device is for a command"),
])
def test_what_does_not_go_with_device_graphs(sonde, tmp_path, options, words):
    assert words in sonde("record", "-o", tmp_path / "capture", *options, check=2).stderr
