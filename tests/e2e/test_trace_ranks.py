# SPDX-License-Identifier: Apache-2.0
"""Traces of several ranks: every table has one row for all of them, with the least and most and their ranks."""

import re

import pytest
from trace_files import write_kineto

SECTIONS = ("temporal", "idle", "launches", "queue", "bandwidth", "operators", "cpu-operators", "sequences", "memory",
            "critical-path", "step", "counter", "graph", "kernel")
STEP_US = 1000


def kernel(name, number, start_us, duration_us, category="kernel", **arguments):
    """A call and its work."""
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel" if category == "kernel" else "cudaMemcpyAsync",
            "pid": 1, "tid": 1, "ts": start_us, "dur": 5, "args": {"correlation": number}}
    return [call, {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start_us + 10, "dur": duration_us,
                   "args": {"device": 0, "stream": 7, "correlation": number, **arguments}}]


def events_of(rank):
    """Three steps: three kernels in an operator, which are longer on later ranks, a copy, a counter, memory."""
    events = []
    for step in range(3):
        at, number = STEP_US * step, 10 * step + 1
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at,
                       "dur": 600 + 100 * rank})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at + 10, "dur": 200})
        for i in range(3):
            events += kernel("gemm", number + i, at + 20 + 60 * i, 20 + 10 * rank, **{"graph id": 3, "graph node id": 9 + i})
        events += kernel("Memcpy HtoD", number + 3, at + 300, 100, "gpu_memcpy", bytes=100_000 * (rank + 1))
        events.append({"ph": "C", "name": "loss", "pid": 1, "ts": at + 5, "args": {"loss": 2 + rank}})
        events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + 12,
                       "args": {"Total Allocated": 1024 * (rank + 1), "Total Reserved": 4096, "Bytes": 1024, "Addr": 100 + step,
                                "Device Type": 1, "Device Id": rank}})
    return events


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(3):
        write_kineto(folder / f"rank{rank}.json", events_of(rank), distributedInfo={"rank": rank, "world_size": 3})
    return folder


def row_of(text, name):
    """A line of a table that ends in a name, as its cells."""
    (line,) = [line for line in text.splitlines() if re.search(rf"(^|  ){re.escape(name)}( |$)", line)]
    return re.split(r"\s{2,}", line.strip())


def test_every_table_has_one_row_for_all_ranks(sonde, job):
    for by in SECTIONS:
        done = sonde("report", "--by", by, job, check=0)
        header = [line for line in done.stdout.splitlines() if "Least (rank)" in line]
        assert header and "Most (rank)" in header[0], (by, done.stdout)
        assert not re.search(r"^(Rank|rank) [0-9]", done.stdout, re.MULTILINE), (by, done.stdout)
        one = sonde("report", "--by", by, "--rank", 1, job, check=0).stdout
        assert "Least (rank)" not in one and "one row for all ranks" not in one, (by, one)
    assert "Tables have one row for all ranks" in sonde("report", job, check=0).stdout


def test_what_the_rows_say(sonde, job):
    """Sums, means, least and most, worked out by hand."""
    text = sonde("report", "--by", "launches", job, check=0).stdout
    assert row_of(text, "cudaLaunchKernel")[:2] == ["27", "27"]
    cells = row_of(sonde("report", "--by", "bandwidth", job, check=0).stdout, "Memcpy HtoD")
    assert cells == ["9", "1.72 MiB", "900 µs", "2", "1 (0)", "3 (2)", "1", "3", "Memcpy HtoD"]
    cells = row_of(sonde("report", "--by", "operators", job, check=0).stdout, "aten::mm")
    assert cells[:4] == ["810 µs", "180 µs (0)", "360 µs (2)", "9"]
    cells = row_of(sonde("report", "--by", "counter", job, check=0).stdout, "loss")
    assert cells == ["9", "2", "3", "2 (0)", "4 (2)", "3", "4", "3", "loss"], "p95: the mean of the ranks'"
    text = sonde("report", "--by", "step", job, check=0).stdout
    assert row_of(text[:text.index("Slowest")], "ProfilerStep")[3:8] == ["600 µs", "700 µs", "600 µs (0)", "800 µs (2)", "700 µs"]
    steps = [line for line in text[text.index("All steps"):].splitlines() if re.match(r" +[0-9]", line)]
    assert len(steps) == 3 and all("700 µs  600 µs (0)    800 µs (2)" in line for line in steps)
    text = sonde("report", "--by", "graph", job, check=0).stdout
    (graph,) = [line for line in text[:text.index("Nodes of")].splitlines() if "%" in line]
    assert re.split(r"\s{2,}", graph.strip())[:5] == ["100.00 %", "810 µs", "180 µs (0)", "360 µs (2)", "27"]
    text = sonde("report", "--by", "memory", job, check=0).stdout
    assert "GPUs" in text and "2.00 KiB  1.00 KiB (0)  3.00 KiB (2)" in text, "devices of other numbers are one row"
    assert text.count("Allocated on GPUs by:") == 1


def test_what_only_some_ranks_have(sonde, job):
    """Another kernel on rank 2: its row says of how many ranks it is; figures are of those."""
    events = events_of(2) + kernel("softmax", 99, 5000, 50)
    write_kineto(job / "rank2.json", events, distributedInfo={"rank": 2, "world_size": 3})
    text = sonde("report", "--by", "operators", job, check=0).stdout
    (header,) = [line for line in text.splitlines() if "Least (rank)" in line]
    assert "  Ranks  " in header
    assert row_of(text, "softmax")[:4] == ["50.0 µs", "50.0 µs (2)", "50.0 µs (2)", "1"]
    assert row_of(text, "aten::mm")[3] == "3"


def test_limits_cut_what_is_shown_and_not_the_sums(sonde, job):
    whole = sonde("report", "--by", "operators", job, check=0).stdout
    cut = sonde("report", "--by", "operators", "--limit", 1, job, check=0).stdout
    assert row_of(cut, "[no operator]") == row_of(whole, "[no operator]") and "aten::mm" not in cut
    assert "1 more sequences" in cut


def test_json_and_csv_have_rows_of_each_rank(sonde, job):
    rows = sonde("report", "--json", "--by", "bandwidth", job, check=0).json()["bandwidth"]
    assert [(row["rank"], row["count"], row["gbps"]) for row in rows] == [(0, 3, 1), (1, 3, 2), (2, 3, 3)]
    assert len(sonde("report", "--csv", "--by", "bandwidth", job, check=0).stdout.splitlines()) == 4


def test_tables_of_hta_are_by_rank(sonde, job):
    text = sonde("report", "--hta-compatible", job, check=0).stdout
    assert "rank 0" in text and "rank 2" in text
    temporal = text[text.index("Temporal breakdown"):text.index("Launches")]
    assert "Least (rank)" not in temporal and "one row for all ranks" not in text


def test_real_ranks(sonde, shared_traces):
    """Two ranks of Megatron: the row of each table is of the two that JSON has."""
    folder = shared_traces / "megatron-tp8-upgraded"
    text = sonde("report", "--by", "temporal", folder, check=0).stdout
    ranks = sonde("report", "--json", "--by", "temporal", folder, check=0).json()["temporal"]
    least, most = sorted(ranks, key=lambda row: row["idle_ns"])
    (row,) = [line for line in text[:text.index("Copies and")].splitlines() if line.startswith("2 ranks")]
    assert f"{(least['idle_ns'] + most['idle_ns']) / 2e6:.0f} ms" in row
    assert f"({least['rank']})" in row.split("%")[1] and f"({most['rank']})" in row.split("%")[1]
    whole = sonde("report", folder, check=0).stdout
    assert not re.search(r"^rank [01] ", whole, re.MULTILINE)


def test_shares_of_ranks_of_different_length_are_those_of_the_sums(sonde, tmp_path):
    """Idle for 800 us of 1,000, and for 50 of 250: 68 % in the answer and in the table, not 50 %. Half of each is a call that blocks."""
    for rank, (second, duration) in enumerate([(900, 100), (150, 100)]):
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 1, "tid": 1, "ts": 110, "dur": second // 2,
                "args": {"correlation": 9}}
        events = [*kernel("gemm", 1, -10, 100), call, *kernel("gemm", 2, second - 10, duration)]
        write_kineto(tmp_path / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    text = re.sub(r"\n +", " ", sonde("report", tmp_path, check=0).stdout)
    assert "were idle for 68.0 %" in text and "shares are those of the sums" in text
    (row,) = [line for line in text[text.index("Temporal breakdown"):].splitlines() if line.startswith("2 ranks")][:1]
    assert row.split()[2:10] == ["625", "µs", "425", "µs", "68.00", "%", "50.0", "µs"]
    blocked_ns = sonde("report", "--json", tmp_path, check=0).json()["summary"]["idle_by_cause_ns"]["blocking_call"]
    (row,) = [line for line in text[text.index("Idle time breakdown"):].splitlines() if line.startswith("2 ranks")][:1]
    assert f"{blocked_ns / 8500:.2f} %" in row


def gloo(start_us, duration_us, name="gloo:all_reduce", **arguments):
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 9, "ts": start_us, "dur": duration_us,
            "args": arguments}


def job_of_gloo(folder, more=()):
    """Rank 1 comes 300 us later to each of ten collectives. The operator around one is over when it is issued."""
    for rank in range(2):
        events = list(more)
        for i in range(10):
            start_us = 1000 * i + 300 * rank
            events += [gloo(start_us, 400 - 300 * rank), gloo(start_us, 20, "gloo:send"),
                       {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 1, "tid": 1, "ts": start_us - 9, "dur": 5}]
        write_kineto(folder / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    return folder


def test_rows_of_gloo_are_collectives(sonde, tmp_path):
    collectives = sonde("report", "--json", job_of_gloo(tmp_path), check=0).json()["ranks"]["collectives"]
    assert collectives["matched"] == 10
    ranks = {row["rank"]: row for row in collectives["ranks"]}
    assert (ranks[1]["caused_ns"], ranks[0]["caused_ns"]) == (3_000_000, 0)
    assert [(row["name"], row["count"]) for row in collectives["kinds"]] == [("gloo:all_reduce", 10)]


def test_beside_work_of_a_device_that_communicates_it_stands_for_them(sonde, tmp_path):
    device = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 1, 50, 100)
    collectives = sonde("report", "--json", job_of_gloo(tmp_path, device), check=0).json()["ranks"]["collectives"]
    assert not any("gloo" in row["name"] for row in collectives["kinds"])


def test_ranks_that_are_missing_or_there_twice_are_named(sonde, tmp_path):
    """In the report, not on standard error alone: a page or a file has no other."""
    for name, rank in [(f"rank{rank}", rank) for rank in (0, 1, 2, 3, 4, 5, 7)] + [("again", 3)]:
        write_kineto(tmp_path / f"{name}.json", events_of(0), distributedInfo={"rank": rank, "world_size": 8})
    done = sonde("report", tmp_path, check=0)
    sentence = (f"ank 3 is there twice ({tmp_path}/again.json, {tmp_path}/rank3.json) and counts as two ranks; "
                "rank 6 of 8 is missing: figures over ranks cover the others")
    assert " · the first of 8 traces of 7 ranks of 8 · " in done.stdout
    assert f"r{sentence}" in done.stderr and f"R{sentence}." in re.sub(r"\n +", " ", done.stdout)
    (tmp_path / "again.json").unlink()
    done = sonde("report", tmp_path, check=0)
    assert "\nRank 6 of 8 is missing: figures over ranks cover the others.\n" in done.stdout
    assert "missing: fig" not in sonde("report", "--rank", 5, tmp_path, check=0).stdout


def test_many_ranks_that_are_there_several_times_are_counted(sonde, tmp_path):
    for rank in range(5):
        for number in range(6 if rank == 4 else 2):
            write_kineto(tmp_path / f"rank{rank}-{number}.json", events_of(0), distributedInfo={"rank": rank, "world_size": 5})
    text = re.sub(r"\n +", " ", sonde("report", tmp_path, check=0).stdout)
    assert "Rank 0 is there twice (" in text and "; 1 more rank is there more than once." in text and "missing: fig" not in text
    for rank in range(4):
        for number in range(2):
            (tmp_path / f"rank{rank}-{number}.json").unlink()
    text = re.sub(r"\n +", " ", sonde("report", tmp_path, check=0).stdout)
    assert "Rank 4 is there 6 times (" in text and " and 2 more) and counts as 6 ranks; ranks 0, 1, 2, 3 of 5 are missing" in text
