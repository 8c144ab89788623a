# SPDX-License-Identifier: Apache-2.0
"""From a PyTorch program to answers and Chakra: traces that PyTorch 2 made here, and real ones."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from trace_scale import scale_pair  # noqa: E402
from trace_truth import placed  # noqa: E402

KINDS = ["train", "threads", "gloo", pytest.param("compile", marks=pytest.mark.slow)]
DEPENDENCIES = ("sync_dep", "order_dep")


def attribute(node, name):
    return next((each["value"] for each in node["attrs"] if each["name"] == name), None)


def read_pair(folder, rank=0):
    et = json.loads((folder / f"et_{rank}.json").read_text())
    kineto = json.loads((folder / f"kineto_{rank}.json").read_text())
    return et["nodes"], [event for event in kineto["traceEvents"] if event.get("ph") == "X"]


@pytest.fixture
def link(sonde, tmp_path):
    """link(et, kineto, *options) -> (the file that was written, what was said)"""

    def run(et, kineto, *options, name="linked.json", check=0):
        out = tmp_path / name
        pair = ["--chakra-host-trace", et, "--chakra-device-trace", kineto]
        done = sonde("chakra", "link", "--rank", 0, *pair, "--output-file", out, *options, check=check)
        return out, done.stderr

    return run


def check_dependencies(nodes):
    """Ids are there once, parents and dependencies are there, and began before."""
    by_id = {node["id"]: node for node in nodes}
    assert len(by_id) == len(nodes)
    for node in nodes:
        assert node.get("ctrl_deps", node["id"]) in by_id
        before = [dep for name in DEPENDENCIES for dep in node.get(name, [])]
        before += [node["inter_thread_dep"]] if node.get("inter_thread_dep") is not None else []
        assert all(by_id[dep]["ts"] <= node["ts"] for dep in before)
    return sum(len(node.get(name, [])) for node in nodes for name in DEPENDENCIES)


# ---- what PyTorch 2 writes here ----


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_what_the_other_tests_take_them_for(pairs, kind):
    """One run: each operator of the Kineto trace has the record-function id and the name of a node."""
    nodes, events = read_pair(pairs(kind))
    names = {attribute(node, "rf_id"): node["name"] for node in nodes}
    operators = [event for event in events if event["cat"] in ("cpu_op", "user_annotation")]
    assert len(operators) > 250
    assert all(names[event["args"]["Record function id"]] == event["name"] for event in operators)


@pytest.mark.parametrize("kind", KINDS)
def test_every_operator_gets_its_own_time(pairs, link, kind):
    nodes, events = read_pair(pairs(kind))
    times = {
        event["args"]["Record function id"]: event for event in events if "Record function id" in event.get("args", {})
    }
    path, said = link(pairs(kind) / "et_0.json", pairs(kind) / "kineto_0.json")
    linked = json.loads(path.read_text())["nodes"]
    assert len(linked) == len(nodes)
    matched = [node for node in linked if node.get("match") == "rf_id"]
    assert len(matched) == len(times)
    base_us = json.loads((pairs(kind) / "kineto_0.json").read_text())["baseTimeNanoseconds"] // 1000
    for node in matched:
        event = times[attribute(node, "rf_id")]
        assert node["name"] == event["name"]
        assert node["inclusive_dur"] == pytest.approx(event["dur"], abs=0.002)
        assert node["ts"] - base_us == pytest.approx(event["ts"], abs=0.5)  # as doubles: 0.25
    check_dependencies(linked)
    assert f"{len(times)} of" in said and "record function" in said


def test_threads_wait_for_one_another(pairs, link):
    """What a thread does first comes after what another one ended last before it: each backward pass, too."""
    path, _ = link(pairs("threads") / "et_0.json", pairs("threads") / "kineto_0.json")
    nodes = json.loads(path.read_text())["nodes"]
    by_id = {node["id"]: node for node in nodes}
    first = {}
    for node in sorted((node for node in nodes if node.get("match")), key=lambda node: node["ts"]):
        first.setdefault(attribute(node, "tid"), node)
    workers = list(first.values())[1:]
    assert len(workers) == 9
    for node in workers:
        before = by_id[node["inter_thread_dep"]]
        assert attribute(before, "tid") != attribute(node, "tid")
        assert before["ts"] + before["inclusive_dur"] <= node["ts"] + 0.5


def dumped(sonde, path):
    """The nodes of a Chakra trace, without its metadata."""
    return [json.loads(line) for line in sonde("chakra", "dump", path, check=0).stdout.splitlines()[1:]]


def check_order(nodes):
    """Every dependency is on a node that is there and, where both have times, began before; there is no circle."""
    starts = {node["id"]: int(node.get("startTimeMicros", 0)) for node in nodes}
    waiting = {}
    for node in nodes:
        before = set(node.get("ctrlDeps", [])) | set(node.get("dataDeps", []))
        assert before <= starts.keys()
        assert all(starts[dep] <= starts[node["id"]] for dep in before if starts[dep] and starts[node["id"]])
        waiting[node["id"]] = before
    while waiting:
        free = {node for node, before in waiting.items() if not before & waiting.keys()}
        assert free, "nodes wait for themselves"
        for node in free:
            del waiting[node]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_become_traces_that_a_simulator_runs(pairs, link, sonde, kind):
    folder = pairs(kind)
    nodes, events = read_pair(folder)
    path, _ = link(folder / "et_0.json", folder / "kineto_0.json", "--format", "et", name="trace.0.et")
    sonde("chakra", "check", path, check=0)
    converted = dumped(sonde, path)
    check_order(converted)
    assert len(converted) == len(nodes) - 1  # without the process
    assert sum("startTimeMicros" in node for node in converted) >= sum(
        "Record function id" in event.get("args", {}) for event in events
    )
    names = [node["name"] for node in converted]
    assert sorted(names) == sorted(node["name"] for node in nodes if "|process]" not in node["name"])


def test_collectives_of_gloo(pairs, link, sonde):
    """Both ranks begin the same ones, in one order; sends and receives name one another."""
    folder = pairs("gloo")
    files = []
    for rank in range(2):
        name = f"trace.{rank}.et"
        pair = [
            "--chakra-host-trace",
            folder / f"et_{rank}.json",
            "--chakra-device-trace",
            folder / f"kineto_{rank}.json",
        ]
        files.append(folder / name)
        sonde("chakra", "link", "--rank", rank, *pair, "--output-file", files[-1], "--format", "et", check=0)
    sonde("chakra", "check", *files, check=0)
    for rank, path in enumerate(files):
        communication = [node for node in dumped(sonde, path) if node["type"].startswith("COMM_")]
        types = [node["type"] for node in communication]
        assert types.count("COMM_SEND_NODE") == (rank == 0) and types.count("COMM_RECV_NODE") == (rank == 1)
        assert types.count("COMM_COLL_NODE") >= 3 + 3  # all_reduce, all_gather, broadcast; one in each step


# ---- real traces ----


def test_device_work_is_on_the_operator_that_encloses_its_launch(shared_traces, link):
    """chakra_trace_link: 565 of 777, 131 elsewhere, 81 dropped. With ids of record functions, and without."""
    upgraded = shared_traces / "megatron-tp8-upgraded"
    for name in ("megatron-tp8-upgraded", "megatron-tp8"):
        path, said = link(shared_traces / name / "et_0.json.gz", shared_traces / name / "kineto_0.json.gz")
        assert placed(upgraded / "kineto_0.json.gz", path) == (777, 777, 777), name
        assert "5422 of 5422" in said
        nodes = json.loads(path.read_text())["nodes"]
        streams = {node["stream"] for node in nodes if "cat" in node}
        assert check_dependencies(nodes) >= 777 - len(streams)


def test_ids_that_nobody_linked_before(shared_traces, link):
    """Without record-function ids in the Kineto trace and without ProfilerStep: not empty, and no crash."""
    path, said = link(
        shared_traces / "simple_add" / "benchmark_simple_add_et.json.gz",
        shared_traces / "simple_add" / "benchmark_simple_add_trace.json.gz",
    )
    nodes = json.loads(path.read_text())["nodes"]
    assert [node["name"] for node in nodes if node.get("cat") == "kernel"]
    assert "External id" in said


@pytest.mark.parametrize("rank", [0, 1])
def test_compat_gives_the_bytes_of_chakra_converter(shared_traces, sonde, tmp_path, rank):
    reference, out = shared_traces / "reference" / "chakra", tmp_path / "out.et"
    sonde(
        "chakra",
        "convert",
        "--compat",
        "--input",
        reference / f"megatron_{rank}.linked.json.gz",
        "--output",
        out,
        check=0,
    )
    assert out.read_bytes() == gzip.decompress((reference / f"megatron_{rank}.et.gz").read_bytes())


def test_the_reference_itself_cannot_be_simulated(shared_traces, sonde):
    """What chakra_converter wrote of a real pair: a dependency on a node that is not there, no times, no sizes."""
    done = sonde("chakra", "check", shared_traces / "reference" / "chakra" / "megatron_0.et.gz", check=1)
    said = done.stdout + done.stderr
    assert "node 0, which is not in the file" in said and "no node has a start time" in said


def test_a_pair_repeated_in_time_is_linked_alike(shared_traces, link, tmp_path):
    source = shared_traces / "megatron-tp8-upgraded"
    scale_pair(
        source / "et_0.json.gz",
        source / "kineto_0.json.gz",
        [1, 3],
        lambda kind, count: tmp_path / f"{kind}_{count}.json",
    )
    counts = {}
    for count in (1, 3):
        path, _ = link(tmp_path / f"et_{count}.json", tmp_path / f"kineto_{count}.json")
        nodes = json.loads(path.read_text())["nodes"]
        counts[count] = (len(nodes) - 2, sum("cat" in node for node in nodes))  # without process and thread
    assert counts[3] == tuple(3 * each for each in counts[1])


def count_rows(path):
    with gzip.open(path, "rt") if path.name.endswith(".gz") else open(path) as file:
        document = json.load(file)
    return sum(event.get("ph") in ("X", "i", "I") for event in document["traceEvents"])


def without(report, *names):
    """A report without what says where it came from."""
    report["traces"] = [{name: trace[name] for name in trace if name not in names} for trace in report["traces"]]
    return report


def test_a_trace_its_capture_and_the_export_have_one_report(shared_traces, sonde, tmp_path):
    """Every real trace is read directly, comes back from a capture, and from the Kineto file that is made of that."""
    files = sorted((shared_traces / "kineto").glob("*.json*"))
    assert len(files) >= 14
    capture, exported = tmp_path / "one.pftrace", tmp_path / "exported.json"
    for path in files:
        read = sonde("report", "--json", path, check=0).json()
        assert read["traces"][0]["rows"] == count_rows(path), path
        sonde("import", "-o", capture, path, check=0)
        sonde("export", "-f", "chrome", "-o", exported, capture, check=0)
        origin = ("path", "damage")
        read = without(read, *origin)
        assert without(sonde("report", "--json", capture, check=0).json(), *origin) == read, path
        assert without(sonde("report", "--json", exported, check=0).json(), *origin) == read, path


# ---- the documentation ----


def commands_of(page):
    """The lines of its blocks of commands, up to the headings on what there is beside them."""
    lines, inside = [], False
    for line in page.read_text().partition("\n## What the report has\n")[0].splitlines():
        if line.startswith("```"):
            inside = line == "```sh"
        elif inside:
            lines.append(line)
    return lines


def test_the_commands_of_the_guide_run_as_they_stand(sonde, sonde_path, torch2, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sonde").symlink_to(sonde_path)
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{torch2}" -W ignore "$@"\n')
    (programs / "python3").chmod(0o755)
    environment = {**sonde.environment, "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "2"}
    commands = commands_of(ROOT / "docs" / "traces.md")
    assert len(commands) >= 10
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.stderr[-1000:]}"
    assert (tmp_path / "run" / "one.0.et").read_bytes() == (tmp_path / "run" / "chakra.0.et").read_bytes()
