# SPDX-License-Identifier: Apache-2.0
"""sonde chakra link: real pairs against Chakra's own linker, and against what the times say."""

import gzip
import json
import shutil
from bisect import bisect_right

import pytest

ID = "[pytorch|profiler|execution_trace|"


def load(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        return json.load(file)


@pytest.fixture
def link(sonde, tmp_path):
    """link(host, device, *options) -> the linked trace; .said is what was said."""

    def run(host, device, *options):
        output = tmp_path / "linked.json"
        done = sonde("chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device,
                     "--output-file", output, *options, check=0)
        run.said = done.stderr
        return load(output)

    return run


@pytest.fixture
def megatron(shared_traces):
    def pair(rank, folder="megatron-tp8"):
        return [shared_traces / folder / f"{kind}_{rank}.json.gz" for kind in ("et", "kineto")]

    return pair


def operators_by_thread(events, known):
    """{tid: operators that `known` has, by start}"""
    threads = {}
    for event in sorted(events, key=lambda event: event["ts"]):
        if event.get("cat") in ("cpu_op", "user_annotation") and (event["name"], event["ts"]) in known:
            threads.setdefault(event["tid"], []).append(event)
    return threads


def enclosing_operator(operators, call):
    """The shortest of them around the call."""
    began = operators[:bisect_right([event["ts"] for event in operators], call["ts"])]
    end = call["ts"] + call["dur"]
    return min((event for event in began if event["ts"] + event["dur"] >= end), key=lambda event: event["dur"])


def check_enclosure(linked, kineto):
    """Each kernel, copy and fill is a node below the operator that encloses its launch. Returns how many."""
    events = [event for event in kineto["traceEvents"] if event.get("ph") == "X"]
    calls = {event["args"]["correlation"]: event for event in events
             if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event["args"]}
    nodes = {node["id"]: node for node in linked["nodes"]}
    known = {(node["name"], node["ts"]) for node in nodes.values() if "ts" in node and "cat" not in node}
    found = {}
    for node in nodes.values():
        if "cat" in node:
            found.setdefault((node["correlation"], node["name"], node["ts"]), []).append(node)
    operators = operators_by_thread(events, known)
    work = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    for event in work:
        node = found[(event["args"]["correlation"], event["name"], event["ts"])].pop()
        call = calls[node["correlation"]]
        parent, expected = nodes[node["ctrl_deps"]], enclosing_operator(operators[call["tid"]], call)
        assert (parent["name"], parent["ts"], parent["inclusive_dur"]) == (
            expected["name"], expected["ts"], expected["dur"])
        assert (node["cat"], node["stream"], node["inclusive_dur"]) == (
            event["cat"], event["args"]["stream"], event["dur"])
    assert not any(found.values())
    return len(work)


@pytest.mark.parametrize("rank", [0, 1])
def test_all_device_work_is_on_the_operator_around_its_launch(link, megatron, rank):
    """As published, without record-function ids: Chakra's linker links none of 777, and of the upgraded 565 right."""
    host, device = megatron(rank)
    linked = link(host, device, "--rank", rank)
    assert check_enclosure(linked, load(device)) == 777
    assert "777 of 777 kernels, copies and fills linked" in link.said
    assert "5422 of 5422 operators matched by External id" in link.said
    assert {node.get("match") for node in linked["nodes"] if "cat" not in node and ID not in node["name"]} == {"offset"}


@pytest.mark.parametrize("host, device", [
    ("simple_add/benchmark_simple_add_et.json.gz", "simple_add/benchmark_simple_add_trace.json.gz"),
    ("simple_add-upgraded/host_0.json.gz", "simple_add-upgraded/device_0.json.gz"),
])
def test_a_small_pair_without_steps(link, shared_traces, host, device):
    """Chakra's linker ends with a traceback where there is no ProfilerStep."""
    linked = link(shared_traces / host, shared_traces / device)
    assert check_enclosure(linked, load(shared_traces / device)) == 4
    assert "36 of 36 operators matched" in link.said


@pytest.mark.parametrize("rank", [0, 1])
def test_compat_is_what_chakra_trace_link_makes(link, megatron, shared_traces, rank):
    linked = link(*megatron(rank, "megatron-tp8-upgraded"), "--rank", rank, "--compat")
    assert linked == load(shared_traces / "reference" / "chakra" / f"megatron_{rank}.linked.json.gz")


def test_dependencies_are_on_nodes_that_are_there_and_ended_before(link, megatron):
    nodes = {node["id"]: node for node in link(*megatron(0))["nodes"]}
    assert list(nodes) == list(range(len(nodes)))
    edges = [(on, node) for node in nodes.values()
             for on in [*node.get("sync_dep", []), *node.get("order_dep", []), node.get("inter_thread_dep")]
             if on is not None]
    assert len(edges) > 700
    for on, node in edges:
        assert nodes[on]["ts"] + nodes[on]["inclusive_dur"] <= node["ts"]
    streams = {node["stream"] for node in nodes.values() if "cat" in node}
    first = [node for node in nodes.values() if "cat" in node and not node.get("order_dep")]
    assert len(first) == len(streams), "all work but the first of each stream comes after other work"


def test_without_ids_names_along_the_call_tree_match(link, megatron, tmp_path):
    host, device = megatron(0)
    kineto = load(device)
    for event in kineto["traceEvents"]:
        event.get("args", {}).pop("External id", None)
    (tmp_path / "kineto.json").write_text(json.dumps(kineto))
    linked = link(host, tmp_path / "kineto.json")
    assert "5422 of 5422 operators matched by names along the call tree" in link.said
    assert check_enclosure(linked, kineto) == 777


def refused(sonde, host, device, tmp_path, *options, status=1):
    output = tmp_path / "out.json"
    done = sonde("chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device,
                 "--output-file", output, *options, check=status)
    assert done.stderr.startswith("sonde: ") and done.stderr.count("\n") == 1, done.stderr
    assert not output.exists(), "no file, rather than an empty one"
    return done.stderr


def test_traces_of_different_runs_are_refused(sonde, megatron, shared_traces, tmp_path):
    (et, kineto), (_, kineto_1) = megatron(0), megatron(1)
    said = refused(sonde, et, kineto_1, tmp_path)
    assert "of process 2590092" in said and "of process 2590093" in said
    other = shared_traces / "et" / "resnet_1.0.1.json.gz"
    said = refused(sonde, other, kineto, tmp_path, "--any-process")
    assert "are of different runs: of 1310 and 5424 operators" in said, said
    assert "is Kineto's trace, not an execution trace" in refused(sonde, kineto, kineto, tmp_path)
    assert "Record function id" in refused(sonde, et, kineto, tmp_path, "--compat")


def test_ids_of_another_run_are_refused(sonde, megatron, shared_traces, tmp_path):
    """Ranks of one image have one process number, and ids that begin alike: names tell them apart."""
    et, kineto = megatron(0, "megatron-tp8-upgraded")
    trace = load(et)
    names = [node["name"] for node in trace["nodes"]]
    for node, name in zip(trace["nodes"], names[7:] + names[:7]):
        node["name"] = name
    (tmp_path / "et.json").write_text(json.dumps(trace))
    said = refused(sonde, tmp_path / "et.json", kineto, tmp_path, "--any-process")
    assert "ids of record functions that are in both" in said, said


def test_what_comes_twice_is_said(link, megatron, tmp_path):
    et, kineto = map(load, megatron(0, "megatron-tp8-upgraded"))
    calls = [event for event in kineto["traceEvents"] if "correlation" in event.get("args", {}) and
             event.get("cat") == "cuda_runtime"]
    calls[1]["args"]["correlation"] = calls[0]["args"]["correlation"]
    et["nodes"].append({**et["nodes"][100], "attrs": et["nodes"][100]["attrs"]})
    (tmp_path / "et.json").write_text(json.dumps(et))
    (tmp_path / "kineto.json").write_text(json.dumps(kineto))
    nodes = link(tmp_path / "et.json", tmp_path / "kineto.json")["nodes"]
    assert len({node["id"] for node in nodes}) == len(nodes)
    assert "1 nodes of" in link.said and "have the id of another one" in link.said
    assert "1 calls of" in link.said and "have the correlation of another one" in link.said


def test_a_device_trace_that_was_imported(sonde, link, megatron, tmp_path):
    host, device = megatron(0)
    straight = link(host, device)
    sonde("import", "-o", tmp_path / "capture.pftrace", device, check=0)
    assert link(host, tmp_path / "capture.pftrace") == straight


@pytest.mark.parametrize("level, said", [("INFO", 3), ("warning", 1), ("ERROR", 0)])
def test_log_level_as_chakra_trace_link_has_it(link, megatron, tmp_path, level, said):
    host, device = megatron(0)
    trace = load(host)
    trace["nodes"].append(trace["nodes"][100])
    (tmp_path / "et.json").write_text(json.dumps(trace))
    link(tmp_path / "et.json", device, "--log-level", level)
    assert ("operators matched" in link.said, "have the id of another one" in link.said) == (said > 1, said > 0)


def test_convert_writes_a_log(sonde, megatron, tmp_path):
    host, device = megatron(0)
    sonde("chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device, "--output-file",
          tmp_path / "linked.0.json", check=0)
    convert = ["chakra", "convert", "--input", tmp_path / "linked.0.json", "--output", tmp_path / "a.0.et"]
    done = sonde(*convert, "--log-filename", tmp_path / "log", check=0)
    assert (tmp_path / "log").read_text() == done.stderr and "nodes" in done.stderr
    done = sonde(*convert, "--log-filename", tmp_path / "none" / "log", check=1)
    assert "cannot write the log" in done.stderr
    assert "is incomplete" in sonde(*convert, "--log-filename", "/dev/full", check=1).stderr


def test_what_cannot_be_done_is_said(sonde, megatron, tmp_path):
    host, device = megatron(0)
    assert "No such file" in refused(sonde, tmp_path / "none.json", device, tmp_path)
    assert "one is a folder" in refused(sonde, host.parent, device, tmp_path, status=2)
    done = sonde("chakra", "link", "--chakra-host-trace", host, check=2)
    assert "--chakra-device-trace is missing" in done.stderr
    said = refused(sonde, host, device, tmp_path, "--log-level", "loud", status=2)
    assert "no --log-level loud: name DEBUG" in said
    done = sonde("chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device,
                 "--output-file", "/dev/full", check=1)
    assert "No space left on device" in done.stderr
    done = sonde("chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device,
                 "--output-file", tmp_path / "none" / "out.json", check=1)
    assert "make the folder first" in done.stderr


def test_a_cut_execution_trace_is_linked_and_said(link, megatron, tmp_path):
    """PyTorch writes the process's node last: a trace that was cut off has no root."""
    host, device = megatron(0)
    with gzip.open(host) as file:
        (tmp_path / "et.json").write_bytes(file.read()[:2_000_000])
    linked = link(tmp_path / "et.json", device)
    assert "cut off" in link.said and "without" not in link.said
    assert len([node for node in linked["nodes"] if "cat" not in node]) > 3000
    assert all("ctrl_deps" not in node or node["ctrl_deps"] < len(linked["nodes"]) for node in linked["nodes"])


def test_folders_of_ranks(sonde, megatron, shared_traces, tmp_path):
    for kind in ("et", "kineto"):
        (tmp_path / kind).mkdir()
        for rank in (0, 1):
            shutil.copy(shared_traces / "megatron-tp8" / f"{kind}_{rank}.json.gz", tmp_path / kind)
    arguments = ["chakra", "link", "--chakra-host-trace", tmp_path / "et", "--chakra-device-trace",
                 tmp_path / "kineto", "--output-file", tmp_path / "out"]
    sonde(*arguments, check=0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["linked.0.json", "linked.1.json"]
    host, device = megatron(1)
    sonde("chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device, "--output-file",
          tmp_path / "alone.json", check=0)
    assert (tmp_path / "alone.json").read_bytes() == (tmp_path / "out" / "linked.1.json").read_bytes()

    (tmp_path / "kineto" / "kineto_0.json.gz").unlink()
    done = sonde(*arguments, check=1)
    assert "et_0.json.gz has no partner of rank 0" in done.stderr
    assert "linked.1.json: 5422 of 5422" in done.stderr, "the others are linked all the same"


def test_names_of_pytorch_with_the_rank_inside(sonde, shared_traces, tmp_path):
    """The rank is that of distributedInfo, before or behind the events; a name is the last resort, and may be wrong."""
    source = shared_traces / "megatron-tp8"
    for rank, name in ((0, "worker3_step_12.1700000000123.pt.trace.json"), (1, "host_4711.1700000000456.pt.trace.json")):
        trace = json.loads(gzip.decompress((source / f"kineto_{rank}.json.gz").read_bytes()))
        if rank:
            trace["distributedInfo"] = trace.pop("distributedInfo")  # the last member
        (tmp_path / name).write_text(json.dumps(trace))
        shutil.copy(source / f"et_{rank}.json.gz", tmp_path / f"et_{rank}.json.gz")
    done = sonde("chakra", "link", "--chakra-host-trace", tmp_path, "--chakra-device-trace", tmp_path, "--output-file",
                 tmp_path / "out", check=0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["linked.0.json", "linked.1.json"]
    assert done.stderr.count("777 of 777") == 2


def test_names_are_the_last_resort(sonde, shared_traces, tmp_path):
    source = shared_traces / "megatron-tp8"
    trace = json.loads(gzip.decompress((source / "kineto_0.json.gz").read_bytes()))
    del trace["distributedInfo"]
    (tmp_path / "worker0_step_12.1700000000123.pt.trace.json").write_text(json.dumps(trace))
    shutil.copy(source / "et_0.json.gz", tmp_path)
    sonde("chakra", "link", "--chakra-host-trace", tmp_path, "--chakra-device-trace", tmp_path, "--output-file",
          tmp_path / "out", check=0)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["linked.0.json"]


def test_one_folder_with_both_kinds(sonde, shared_traces, tmp_path):
    """As torch programs write them: each option takes the files of its kind."""
    folder = tmp_path / "run"
    folder.mkdir()
    for path in (shared_traces / "megatron-tp8").glob("*_[01].json.gz"):
        shutil.copy(path, folder)
    (folder / "notes_0.txt").write_text("not a trace")
    done = sonde("chakra", "link", "--chakra-host-trace", folder, "--chakra-device-trace", folder, "--output-file",
                 tmp_path / "out", "--format", "et", check=0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["chakra.0.et", "chakra.1.et"]
    assert done.stderr.count("777 of 777") == 2


def test_one_step_makes_the_bytes_of_two(sonde, megatron, tmp_path):
    host, device = megatron(0)
    pair = ["chakra", "link", "--chakra-host-trace", host, "--chakra-device-trace", device, "--output-file"]
    sonde(*pair, tmp_path / "linked.0.json", check=0)
    sonde("chakra", "convert", "--input", tmp_path / "linked.0.json", "--output", tmp_path / "two.0.et", check=0)
    sonde(*pair, tmp_path / "one.0.et", "--rank", 0, check=0)
    assert (tmp_path / "one.0.et").read_bytes() == (tmp_path / "two.0.et").read_bytes()
