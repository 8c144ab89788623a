# SPDX-License-Identifier: Apache-2.0
"""sonde chakra convert, dump, stat, check and graph: the references of chakra_converter, and traces made by hand."""

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List
from xml.etree import ElementTree

import pytest

SCHEMA = Path(__file__).resolve().parents[2] / "schema"

THREAD = "[pytorch|profiler|execution_trace|thread]"
PROCESS = "[pytorch|profiler|execution_trace|process]"


def node(number: int, parent: int, name: str, **more: Any) -> Dict[str, Any]:
    """A node of a linked execution trace, schema 1.0.2."""
    numbers = {"rf_id": number, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0}
    attrs = [{"name": key, "type": "uint64", "value": value} for key, value in numbers.items()]
    attrs.append({"name": "op_schema", "type": "string", "value": ""})
    lists = {"values": [], "shapes": [], "types": []}
    whole = {"id": number, "name": name, "ctrl_deps": parent, "inputs": lists, "outputs": lists, "attrs": attrs}
    whole.update(more)
    return whole


def host(number: int, parent: int, name: str, start: float, duration: float, **more: Any) -> Dict[str, Any]:
    """An operator that was timed, in microseconds."""
    times = {"ts": start, "inclusive_dur": duration, "exclusive_dur": duration, "inter_thread_dep": None}
    return node(number, parent, name, **times, **more)


def device(number: int, parent: int, name: str, start: float, duration: float, **more: Any) -> Dict[str, Any]:
    """A kernel on stream 7."""
    return host(number, parent, name, start, duration, cat="kernel", ph="X", stream=7, **more)


@pytest.fixture
def linked(tmp_path: Path) -> Callable[..., Path]:
    """linked(nodes, name="linked.json") -> a file below a process and a thread"""

    def write(nodes: List[Dict[str, Any]], name: str = "linked.json") -> Path:
        path = tmp_path / name
        whole = {
            "schema": "1.0.2-chakra.0.0.4",
            "pid": 1,
            "time": "2026-11-21 10:00:00",
            "start_ts": 1,
            "nodes": [node(0, 0, PROCESS), node(1, 0, THREAD), *nodes],
            "finish_ts": 2,
        }
        path.write_text(json.dumps(whole))
        return path

    return write


def dumped(sonde: Any, trace: Path) -> List[Dict[str, Any]]:
    """The metadata and all nodes."""
    return [json.loads(line) for line in sonde("chakra", "dump", trace, check=0).stdout.splitlines()]


@pytest.mark.parametrize("rank", [0, 1])
def test_compat_is_chakra_converter_byte_for_byte(sonde, shared_traces, tmp_path, rank):
    reference = shared_traces / "reference" / "chakra"
    trace = tmp_path / "out.et"
    source = reference / f"megatron_{rank}.linked.json.gz"
    sonde("chakra", "convert", "--compat", "--input", source, "--output", trace, check=0)
    assert trace.read_bytes() == gzip.open(reference / f"megatron_{rank}.et.gz").read()
    pretty = tmp_path / "out.jsonl"
    sonde("chakra", "dump", "--pretty", "-o", pretty, trace, check=0)
    assert pretty.read_bytes() == gzip.open(reference / f"megatron_{rank}.et.jsonl.gz").read()


def test_a_rank_that_a_simulator_can_run(sonde, shared_traces, tmp_path):
    """Ours by default passes the check that chakra_converter's fails, and says what it has more."""
    reference = shared_traces / "reference" / "chakra"
    trace = tmp_path / "megatron.0.et"
    source = reference / "megatron_0.linked.json.gz"
    done = sonde("chakra", "convert", "--input", source, "--output", trace, check=0)
    assert "84 collectives, 3 memory" in done.stderr
    assert "a simulator can run it" in sonde("chakra", "check", trace, check=0).stdout
    theirs = sonde("chakra", "check", reference / "megatron_0.et.gz")
    assert theirs.status == 1
    assert "node 1 (" + THREAD in theirs.stdout and "on node 0, which is not in the file" in theirs.stdout
    nodes = dumped(sonde, trace)
    names = {attr["name"] for attr in nodes[0]["attr"]}
    assert {"schema", "pid", "rank"} <= names
    work = [row for row in nodes[1:] if {"name": "is_cpu_op", "boolVal": False} in row["attr"]]
    ids = {row["id"] for row in work}
    assert len(work) == 696
    assert all(int(row["startTimeMicros"]) > 0 for row in work)
    # All but the first of each stream wait for device work.
    streams = {attr["int64Val"] for row in work for attr in row["attr"] if attr["name"] == "stream"}
    assert sum(bool(ids & set(row.get("dataDeps", []))) for row in work) == len(work) - len(streams)
    stat = sonde("chakra", "stat", "--json", trace, check=0).json()
    assert stat["nodes"] == 6119 and stat["types"]["COMM_COLL_NODE"] == 84
    assert [(row["kind"], row["count"]) for row in stat["collectives"]] == [("ALL_REDUCE", 84)]
    assert stat["critical_path_us"] <= stat["host_us"] + stat["device_us"]


def test_folders_of_ranks_at_once(sonde, shared_traces, tmp_path):
    reference = shared_traces / "reference" / "chakra"
    (tmp_path / "linked").mkdir()
    for rank in (0, 1):
        shutil.copy(reference / f"megatron_{rank}.linked.json.gz", tmp_path / "linked")
    out = tmp_path / "chakra"
    sonde("chakra", "convert", "--input", tmp_path / "linked", "--output", out, check=0)
    assert sorted(path.name for path in out.iterdir()) == ["chakra.0.et", "chakra.1.et"]
    both = sonde("chakra", "check", *sorted(out.iterdir()), check=0)
    assert both.stdout.count("a simulator can run it") == 2


def test_protoc_reads_what_is_written(sonde, linked, tmp_path):
    """Another reader of protobuf, with names and lists that break naive writers."""
    lists = {"values": ["it's \"so\"", 1e-5, None, True], "shapes": [[], [], [], []], "types": ["String"] * 4}
    source = linked([host(2, 1, "aten::\u00e9\n\u2028mm", 10, 5.25, inputs=lists), device(3, 2, "gemm", 20, 0.5)])
    trace = tmp_path / "out.et"
    sonde("chakra", "convert", "--input", source, "--output", trace, check=0)
    bytes_left, texts = trace.read_bytes(), []
    while bytes_left:
        length = shift = 0
        while True:
            byte, bytes_left = bytes_left[0], bytes_left[1:]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        message, bytes_left = bytes_left[:length], bytes_left[length:]
        kind = "ChakraProtoMsg." + ("Node" if texts else "GlobalMetadata")
        command = ["protoc", f"--decode={kind}", "-I", str(SCHEMA), str(SCHEMA / "chakra.proto")]
        texts.append(subprocess.run(command, input=message, stdout=subprocess.PIPE, check=True).stdout.decode())
    assert len(texts) == 4
    assert 'name: "aten::\\303\\251\\n\\342\\200\\250mm"' in texts[2]
    assert "values: \"[\\'it\\\\\\'s \\\"so\\\"\\', 1e-05, None, True]\"" in texts[2]
    node_of_host = dumped(sonde, trace)[2]
    assert node_of_host["durationMicros"] == "5" and {"name": "duration_ns", "int64Val": "5250"} in node_of_host["attr"]


def graph_of(nodes: List[Dict[str, Any]]) -> List[Any]:
    """(from, to, kind) of each dependency, of the nodes as they are dumped."""
    kinds = {"dataDeps": "data", "ctrlDeps": "control"}
    return [
        (dep, each["id"], kind) for each in nodes for key, kind in kinds.items() for dep in each.get(key, [])
    ]


def read_graphml(path: Path) -> Any:
    root = ElementTree.parse(path).getroot()
    space = "{http://graphml.graphdrawing.org/xmlns}"

    def data(of: Any) -> Dict[str, str]:
        return {each.get("key"): each.text or "" for each in of.findall(f"{space}data")}

    nodes = {each.get("id"): data(each) for each in root.iter(f"{space}node")}
    edges = [(each.get("source"), each.get("target"), data(each)["dependency"]) for each in root.iter(f"{space}edge")]
    return nodes, edges


@pytest.fixture
def chain(sonde, linked, tmp_path) -> Path:
    """Operators with odd names, each with a kernel, of which each waits for the one before."""
    nodes: List[Dict[str, Any]] = []
    for number, name in enumerate(['say "a" \\ b', "<c> & 'd'\n\x01", "aten::\u00e9", "plain"]):
        nodes += [host(2 + number, 1, name, 10 * number, 5), device(20 + number, 2 + number, "gemm<1>", 5 + 10 * number, 4)]
    trace = tmp_path / "chain.et"
    sonde("chakra", "convert", "--input", linked(nodes), "--output", trace, check=0)
    return trace


def test_graphs(sonde, chain, tmp_path):
    nodes = dumped(sonde, chain)[1:]
    done = sonde("chakra", "graph", "-o", tmp_path / "all.graphml", chain, check=0)
    labels, edges = read_graphml(tmp_path / "all.graphml")
    assert sorted(edges) == sorted(graph_of(nodes)) and f"{len(nodes)} nodes, {len(edges)} dependencies" in done.stderr
    assert set(labels) == {each["id"] for each in nodes}
    assert labels["2"] == {"label": 'say "a" \\ b', "type": "COMP_NODE", "duration_us": "5"}
    assert labels["3"]["label"].startswith("<c> & 'd'") and labels["4"]["label"] == "aten::\u00e9"
    dot = sonde("chakra", "graph", chain, check=0).stdout
    pattern = r'  "(\d+)" -> "(\d+)"( \[arrowhead=tee, style=dashed\])?'
    found = [(start, end, "control" if control else "data") for start, end, control in re.findall(pattern, dot)]
    assert sorted(found) == sorted(edges)
    assert '  "2" [label="say \\"a\\" \\\\ b\\n2 COMP_NODE, 5 us", fillcolor=lightblue]' in dot.splitlines()
    assert all(re.fullmatch(r'digraph trace \{|\}|  (".*\]|".*"|node .*)', line) for line in dot.splitlines())
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=dot.encode(), stdout=subprocess.DEVNULL, check=True)


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_graphs_of_what_is_near(sonde, chain, tmp_path, hops):
    edges = graph_of(dumped(sonde, chain)[1:])
    near = {"21"}
    for _ in range(hops):
        near |= {end for edge in edges if near & set(edge[:2]) for end in edge[:2]}
    path = tmp_path / "near.graphml"
    sonde("chakra", "graph", "--around", 21, "--hops", hops, "-o", path, chain, check=0)
    nodes, found = read_graphml(path)
    assert set(nodes) == near
    assert sorted(found) == sorted(edge for edge in edges if near >= set(edge[:2]))


def test_graphs_that_cannot_be(sonde, chain, tmp_path):
    assert "`dot -Tpdf FILE.dot -o x.pdf`" in sonde("chakra", "graph", "-o", "x.pdf", chain, check=1).stderr
    assert "there is no node 77" in sonde("chakra", "graph", "--around", 77, chain, check=1).stderr
    assert "No space left" in sonde("chakra", "graph", "-o", "/dev/full", chain, check=1).stderr
    before = tmp_path / "graph.dot"
    before.write_text("before")
    chain.write_bytes(chain.read_bytes()[:-3])
    assert "cut off" in sonde("chakra", "graph", "-o", before, chain, check=1).stderr
    assert before.read_text() == "before" and not list(tmp_path.glob("graph.dot.*"))


def test_cycles_are_told_with_their_path(sonde, linked, tmp_path):
    first = host(2, 1, "aten::mm", 10, 5)
    first["inter_thread_dep"] = 3
    del first["ts"]
    second = host(3, 1, "aten::add", 20, 5)
    source, trace = linked([first, second]), tmp_path / "out.et"
    failed = sonde("chakra", "convert", "--input", source, "--output", trace)
    assert failed.status == 1 and not trace.exists()
    assert "2 aten::mm -> 3 aten::add -> 2" in failed.stderr and "--break-cycles" in failed.stderr
    done = sonde("chakra", "convert", "--break-cycles", "--input", source, "--output", trace, check=0)
    assert "1 dependencies removed to break cycles" in done.stderr
    sonde("chakra", "check", trace, check=0)


def test_the_same_input_gives_the_same_bytes(sonde, linked, tmp_path):
    nodes = [host(2, 1, "aten::mm", 10, 5), device(3, 2, "a", 20, 5), device(4, 2, "b", 30, 5)]
    results = []
    for number, order in enumerate((nodes, nodes[::-1])):
        trace = tmp_path / f"{number}.out"
        sonde("chakra", "convert", "--input", linked(order), "--output", trace, check=0)
        results.append(trace.read_bytes())
    assert results[0] == results[1]


def test_mistakes_are_told_in_one_sentence(sonde, linked, tmp_path):
    source = linked([host(2, 1, "aten::mm", 10, 5)])
    assert sonde("chakra", "convert", "--input", source).status == 2
    full = sonde("chakra", "convert", "--input", source, "--output", "/dev/full")
    assert full.status == 1 and "No space left" in full.stderr
    for command in ("dump", "stat", "check", "graph"):
        wrong = sonde("chakra", command, source)
        assert wrong.status == 1 and "is not a Chakra execution trace" in wrong.stderr
    trace = tmp_path / "out.et"
    sonde("chakra", "convert", "--input", source, "--output", trace, check=0)
    trace.write_bytes(trace.read_bytes()[:-3])
    cut = sonde("chakra", "dump", trace)
    assert cut.status == 1 and "cut off in message 2" in cut.stderr and len(cut.stdout.splitlines()) == 2
    assert "cut off in message 2" in sonde("chakra", "check", trace).stdout


def test_export_of_a_kineto_trace(sonde, shared_traces, tmp_path):
    """Kernels wait for their operators, their stream, and for what events say."""
    trace = tmp_path / "out.et"
    source = shared_traces / "kineto" / "cuda_event_sync_multi_stream.json.gz"
    sonde("export", "-f", "chakra", "-o", trace, source, check=0)
    sonde("chakra", "check", trace, check=0)
    nodes = dumped(sonde, trace)[1:]
    work = [row for row in nodes if {"name": "is_cpu_op", "boolVal": False} in row["attr"]]
    assert work and all(row.get("ctrlDeps") for row in work)
