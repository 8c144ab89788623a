# SPDX-License-Identifier: Apache-2.0
"""astra-sim's log as a timeline beside the Chakra trace that it was fed. Logs are made: see astra_log.py."""

import json

import astra_log
import pytest
from test_trace_stacks import launch, slice_of
from trace_files import write_kineto

COLLECTIVE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"


@pytest.fixture
def run(sonde, tmp_path):
    """Kineto's traces of two ranks, Chakra traces made of them, and the log of a simulator in which collectives take three
    times as long."""
    lines = ["[2026-03-07 11:55:08.600] [topology::RingTopology] [info] ring of node 0, id: 0 dimension: local total nodes in "
             "ring: 2 index in ring: 0 offset: 1total nodes in ring: 2"] * 60
    (tmp_path / "kineto").mkdir()
    (tmp_path / "et").mkdir()
    for rank in range(2):
        events = []
        for step in range(30):
            events += [slice_of("cpu_op", "aten::mm, all", 1000 * step, 60),
                       *launch(2 * step + 1, 1000 * step + 5, "gemm", duration_us=100),
                       slice_of("cpu_op", "LinearFunction", 1000 * step + 300, 60),
                       *launch(2 * step + 2, 1000 * step + 305, COLLECTIVE, duration_us=200)]
        kineto, et = tmp_path / f"kineto/rank{rank}.json", tmp_path / f"et/chakra.{rank}.et"
        write_kineto(kineto, events, distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        sonde("export", "-f", "chakra", "-o", et, kineto, check=0)
        nodes = astra_log.read_nodes(sonde("chakra", "dump", et, check=0).stdout)
        lines += astra_log.simulate(nodes, rank, lambda node: int(node.get("durationMicros", 0)) * (
            3000 if node["type"].startswith("COMM") else 1000))
    (tmp_path / "log.log").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_milliseconds_are_milliseconds(run, sonde, report):
    found = report(run / "log.log", "--by", "kernel")["kernel"]["kernels"]
    assert [(row["sum_ns"], row["count"]) for row in found if row["name"] == COLLECTIVE] == [(30 * 600_000, 30)] * 2
    assert [trace["rank"] for trace in report(run / "log.log")["traces"]] == [0, 1]
    sonde("export", "-f", "pftrace", "-o", run / "log.pftrace", run / "log.log", check=0)
    assert [trace["rank"] for trace in report(run / "log.pftrace")["traces"]] == [0, 1], "one Perfetto file of all systems"


def test_a_track_for_each_system_and_kind(run, sonde):
    lines = [line for line in (run / "log.log").read_text().splitlines() if "sys->id=1" not in line]
    (run / "one.log").write_text("\n".join(lines))
    sonde("export", "-f", "chrome", "-o", run / "log.json", run / "one.log", check=0)
    events = json.loads((run / "log.json").read_text())["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    assert set(tracks.values()) >= {"host", "compute", "communication"}
    (first, *_) = [event for event in events if event.get("name") == COLLECTIVE and event["ph"] == "X"]
    assert first["dur"] == 600 and tracks[first["pid"], first["tid"]] == "communication"


@pytest.mark.parametrize("fed", ["et/chakra.1.et", "kineto/rank1.json", "et", "kineto"])
def test_what_differs_from_the_trace_that_was_fed(run, sonde, fed):
    found = sonde("diff", "--json", "--all", run / fed, run / "log.log", check=0).json()
    ranks = 1 if "1" in fed else 2
    rows = {row["name"]: row for row in found["work"]["rows"]}
    collective = rows[COLLECTIVE]
    assert (collective["count_before"], collective["count_after"]) == (30 * ranks,) * 2
    assert (collective["mean_before_ns"], collective["mean_after_ns"]) == (200_000, 600_000)
    assert rows["gemm"]["kind"] == "kernel" and rows["gemm"]["time_change_ns"] == 0
    for name in ("aten::mm, all", "LinearFunction"):
        assert rows[name]["kind"] == "operator" and rows[name]["count_after"] == 30 * ranks, "the log alone does not say what it is"
    turned = sonde("diff", "--json", "--all", run / "log.log", run / fed, check=0).json()["work"]["rows"]
    assert {row["name"]: row["mean_before_ns"] for row in turned}[COLLECTIVE] == 600_000


def test_a_trace_without_a_rank_is_compared_with_all_and_that_is_said(run, sonde):
    whole = json.loads((run / "kineto/rank1.json").read_text())
    del whole["distributedInfo"]
    (run / "trace.json").write_text(json.dumps(whole))
    assert "compared with all 2 systems" in sonde("diff", run / "trace.json", run / "log.log", check=0).stderr


def test_old_lines_ends_without_a_begin_and_the_reverse(sonde, report, tmp_path):
    path = tmp_path / "log.log"
    path.write_text(
        "issue,sys->id=4,tick=5,node->id=1,node->name=COMM_COLL_NODE_conv1_ALLREDUCE\r\n"
        "issue,sys->id=4,tick=7,node->id=2,node->name=COMP_NODE_conv1,node->node_type=4\n"
        "callback,sys->id=4,tick=105,node->id=1,node->name=COMM_COLL_NODE_conv1_ALLREDUCE\n"
        "callback,sys->id=4,tick=8,node->id=9\nissue,sys->id=4,tick=x,node->id=2\nissue,sys->id=99999999999,tick=1,node->id=1\n"
        "callback,sys->id=4,tick=3,node->id=2\nissue,sys->id=4,tick=8,node->id=3")
    kernels = {row["name"]: row for row in report(path, "--by", "kernel")["kernel"]["kernels"]}
    assert kernels["COMM_COLL_NODE_conv1_ALLREDUCE"]["sum_ns"] == 100
    assert kernels["COMP_NODE_conv1"]["sum_ns"] == 0
    said = " ".join(sonde("report", path, check=0).stderr.split())
    assert "1 nodes that ended and were not issued" in said and "1 events without an end" in said and "1 durations" in said


def test_a_log_without_nodes(sonde, tmp_path):
    path = tmp_path / "log.log"
    path.write_text("[2026-03-07 11:55:08.600] [workload] [info] sys[0] finished, 12 cycles\n")
    refused = sonde("report", path)
    assert refused.status != 0 and "trace-enabled" in refused.stderr


def test_an_execution_trace_alone(run, report):
    (trace,) = report(run / "et/chakra.1.et")["traces"]
    assert trace["rank"] == 1 and trace["device_works"] == 60
