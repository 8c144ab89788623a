# SPDX-License-Identifier: Apache-2.0
"""--step and --time on traces of other tools: reports, exports and comparisons of a part."""

import gzip
import json

import pytest
from test_trace_report import make

STEP_US = 1000


@pytest.fixture
def trace(tmp_path):
    return make(tmp_path / "trace.json.gz", steps=4)


def works_of(sonde, path, *options):
    document = sonde("report", "--json", *options, path, check=0).json()
    return document["kernel"] and sum(row["count"] for row in document["kernel"]["kernels"])


def test_a_step_has_the_work_that_was_launched_in_it(sonde, trace):
    assert works_of(sonde, trace) == 12
    document = sonde("report", "--json", "--step", "2-3", trace, check=0).json()
    assert sum(row["count"] for row in document["kernel"]["kernels"]) == 6
    assert document["steps"]["rows"][0]["count"] == 2
    assert {step["number"] for step in document["steps"]["slowest"]} == {2, 3}
    one = sonde("report", "--json", "--step", "3", trace, check=0).json()
    assert one["temporal"][0]["kernel_time_ns"] == 950_000
    assert one["steps"]["slowest"][0]["begin_ns"] == 2 * STEP_US * 1000, "since the first row of all"


def test_idle_time_is_known_of_a_step_and_a_time(sonde, trace):
    """Gaps between the work of a time are idle time; as much as the summary says."""
    for part in (("--step", "2"), ("--time", "0.001..0.002")):
        document = sonde("report", "--json", *part, trace, check=0).json()
        (device,) = [row for row in document["idle"] if row["of"] == "device"]
        assert device["idle_ns"] == document["temporal"][0]["idle_ns"] > 0
        assert sum(row["idle_ns"] for row in document["host"]) == device["idle_ns"]


def test_time_has_the_work_that_starts_in_it(sonde, trace):
    assert works_of(sonde, trace, "--time", "0.001..0.002") == 3
    assert works_of(sonde, trace, "--time", "0.001-0.002") == 3
    assert works_of(sonde, trace, "--time", "0.002..", "--step", "1-3") == 3
    assert works_of(sonde, trace, "--time", "900..901") is None


def test_stacks_and_rows_are_narrowed_alike(sonde, trace, tmp_path):
    def gpu_ns(*options):
        text = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", *options, trace, check=0).stdout
        return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())

    assert gpu_ns("--step", "2") * 4 == gpu_ns()
    wall = sonde("export", "-f", "folded", "-o", "-", "--weight", "wall", "--step", "2", trace, check=0).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in wall.splitlines()) == STEP_US * 1000
    sonde("export", "-f", "chrome", "--step", "2", "-o", tmp_path / "step.json", trace, check=0)
    names = [event["name"] for event in json.loads((tmp_path / "step.json").read_text())["traceEvents"]]
    assert "ProfilerStep#2" in names and "ProfilerStep#3" not in names and names.count("ncclDevKernel_AllReduce") == 1
    assert works_of(sonde, tmp_path / "step.json") == 3
    for name in ("pftrace", "chakra"):
        sonde("export", "-f", name, "--step", "2", "-o", tmp_path / f"step.{name}", trace, check=0)
    assert works_of(sonde, tmp_path / "step.pftrace") == 3


def test_two_steps_of_a_trace_can_be_compared(sonde, trace, tmp_path):
    slow = make(tmp_path / "slow.json.gz", steps=4, compute=700)
    changes = sonde("diff", "--json", "--step", "2", trace, slow, check=0).json()["work"]["rows"]
    gemm = next(row for row in changes if row["name"] == "gemm")
    assert (gemm["count_before"], gemm["time_change_ns"]) == (1, 200_000)


def test_ranks_without_the_step_have_its_time(sonde, tmp_path):
    make(tmp_path / "rank0.json.gz", rank=0, world=2)
    other = make(tmp_path / "rank1.json.gz", rank=1, world=2)
    text = json.loads(gzip.decompress(other.read_bytes()))
    text["traceEvents"] = [event for event in text["traceEvents"] if "ProfilerStep" not in event["name"]]
    other.write_bytes(gzip.compress(json.dumps(text).encode()))
    rows = sonde("report", "--json", "--step", "2", tmp_path, check=0).json()["kernel"]["kernels"]
    assert {rank: sum(row["count"] for row in rows if row["rank"] == rank) for rank in (0, 1)} == {0: 3, 1: 3}


@pytest.mark.parametrize("step, sentence", [("7", "there is no such step; there are 1 to 4"), ("x", "is no step"),
                                            ("3-2", "is no step"), ("-1", "is no step"), ("99999999999999999999", "is no step")])
def test_what_is_no_step(sonde, trace, step, sentence):
    for command in (["report"], ["export", "-f", "folded", "-o", "-"], ["diff", trace]):
        done = sonde(*command, f"--step={step}", trace)
        assert done.status != 0 and sentence in done.stderr


def test_other_filters_are_of_samples(sonde, trace):
    assert "--thread" in sonde("report", "--thread", "x", trace, check=2).stderr
    assert "--time and --step" in sonde("export", "-f", "chrome", "--range", "x", trace, check=1).stderr
