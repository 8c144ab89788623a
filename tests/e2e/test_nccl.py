# SPDX-License-Identifier: Apache-2.0
"""Collectives of NCCL in recordings, against stand-ins (tests/doubles/cupti/nccl.c): what its ranges of NVTX say they
move, joined with the kernels that were launched in them; of two ranks, by each kind of release."""

import json
import re
import xml.etree.ElementTree as xml

import pytest

RANKS = 2
GROUP = "0xfeed000012345678"
MS, TRANSFER_NS = 1_000_000, 100_000
# What the program runs, in order: function, bytes of the message as NCCL's tests count them; None: not known.
REDUCE, GATHER, SCATTER = "ncclAllReduce", "ncclAllGather", "ncclReduceScatter"
ALL_TO_ALL, SEND_RECV = "all-to-all by ncclSend and ncclRecv", "send/recv group"
PIECE = 1 << 16  # rank 0 receives one from each rank, rank 1 two
RUN = [
    (REDUCE, 1 << 20),
    (GATHER, RANKS << 16),
    (SCATTER, RANKS << 15),
    (REDUCE, 3 * 4096),  # three calls of a group in one kernel
    (REDUCE, 2 << 20),  # two of one size, in a kernel each
    (REDUCE, 2 << 20),
    (REDUCE, None),  # two that differ: which kernel ran which?
    (REDUCE, None),
    ("ncclBroadcast", None),  # does not count
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", None),  # launched outside of NCCL's calls
    *[(REDUCE, 1 << 18)] * 3,  # replays of a graph
    (ALL_TO_ALL, 4 * PIECE),  # what rank 1 receives
    (SEND_RECV, None),  # with rank 0 alone; does not count
]
ONE_SIDED = ("ncclBroadcast", SEND_RECV)
OUTSIDE, SEVERAL = "launched outside of NCCL's calls", "several kernels ran the calls of one group"
FACTORS = {REDUCE: 2 * (RANKS - 1) / RANKS, **dict.fromkeys((GATHER, SCATTER, ALL_TO_ALL), (RANKS - 1) / RANKS)}


def left_out(release):
    """names of what does not count: without communicators it is not known that sends go to all ranks"""
    return ONE_SIDED if release == "2.25" else (*ONE_SIDED, ALL_TO_ALL)


def expected(release="2.25"):
    """(name, bytes) -> (count, time) of what counts"""
    kinds = {}
    for i, (name, size) in enumerate(RUN):
        if name in left_out(release):
            continue
        count, time_ns = kinds.get((name, size), (0, 0))
        kinds[name, size] = (count + 1, time_ns + (i + 1) * TRANSFER_NS)
    return kinds


@pytest.fixture
def doubles(sonde_path):
    return sonde_path.parent / "tests" / "doubles" / "cupti"


@pytest.fixture
def record(sonde, doubles, tmp_path):
    """record(release) -> the folder with a capture of each rank"""

    def run(release):
        folder = tmp_path / release
        folder.mkdir()
        library = doubles / "libcupti-double-13.so"
        running = [sonde.start("record", "-q", "-o", folder / f"{rank}.pftrace", "--", doubles / "cuda-nccl", library,
                               folder / "meet", RANKS, release,
                               env={"SONDE_CUPTI": str(library), "RANK": str(rank), "WORLD_SIZE": str(RANKS)})
                   for rank in range(RANKS)]
        for one in running:
            _, errors = one.communicate(timeout=120)
            assert one.returncode == 0, errors
        (folder / "meet").unlink()
        return folder

    return run


def collectives_of(sonde, *paths):
    return sonde("report", "--json", "--by", "stragglers", *paths, check=0).json()["ranks"]["collectives"]


def reasons_of(data):
    return {row["reason"]: row["parts"] for row in data["without_size"]}


def check_kinds(data, release="2.25", group=GROUP):
    kinds = {(re.sub(r"\(.*", "", kind["name"]), kind["bytes"]): kind for kind in data["kinds"]}
    assert len(kinds) == len(data["kinds"]), data["kinds"]
    assert {key: kind["count"] for key, kind in kinds.items()} == {
        key: count for key, (count, _) in expected(release).items()}
    for (name, size), (count, time_ns) in expected(release).items():
        kind = kinds[name, size]
        assert kind["mean_transfer_ns"] == pytest.approx(time_ns / count, rel=0.01)
        assert kind["mean_skew_ns"] == pytest.approx(MS, rel=0.01)
        assert kind["ranks"] == RANKS and kind["elements"] is None
        assert kind["group"] == (group if name in FACTORS else None)
        algorithm = size and size * count / time_ns
        assert kind["algorithm_bandwidth"] == (size and pytest.approx(algorithm, rel=0.01))
        assert kind["bus_bandwidth"] == (size and pytest.approx(algorithm * FACTORS[name], rel=0.01))


def check_waits(data, release="2.25"):
    matched = sum(count for count, _ in expected(release).values())
    assert data["matched"] == matched and data["one_sided"] == RANKS * len(left_out(release)) and data["unmatched"] == data["apart"] == 0
    late, early = data["ranks"]
    assert (late["rank"], late["last"], early["rank"], early["last"]) == (1, matched, 0, 0)
    assert late["caused_ns"] == pytest.approx(early["suffered_ns"]) == pytest.approx(matched * MS, rel=0.01)


def test_sizes_bandwidths_and_groups(sonde, record, tmp_path):
    folder = record("2.25")
    data = collectives_of(sonde, folder)
    check_kinds(data)
    check_waits(data)
    assert data["by_sequence"] == 6, "replays, what was launched outside, and mixed sizes have no number"
    assert data["absent"] == data["sizes_by_ranks_here"] == 0
    assert {(row["name"], row["bytes"], row["group"]): row["parts"] for row in data["left_out"]} == {
        ("ncclBroadcast", 512, GROUP): RANKS, (SEND_RECV, PIECE, GROUP): 1, (SEND_RECV, 2 * PIECE, GROUP): 1}
    found = reasons_of(data)
    assert sorted(found.values()) == [2, 4]
    assert [found[reason] for name in (OUTSIDE, SEVERAL) for reason in found if name in reason] == [2, 4]
    text = sonde("report", "--by", "stragglers", folder, check=0).stdout
    assert "The size of 4 kernels of NCCL is not known: several kernels" in text
    assert re.search(r"Broadcasts, sends and others .*\n.*Parts +Time +Mean +Size +Group +Name\n(.*\n)*.*128 KiB .* send/recv group", text)
    assert re.search(r"64\.0 KiB +0\.22 +0\.11 .* ncclReduceScatter", sonde(
        "report", "--by", "stragglers", folder, check=0, env={"COLUMNS": "240"}).stdout)

    merged = tmp_path / "merged.pftrace"
    sonde("merge", "-o", merged, folder, check=0)
    whole = collectives_of(sonde, merged)
    check_kinds(whole)
    assert (whole["by_sequence"], whole["without_size"]) == (data["by_sequence"], data["without_size"])


def test_both_ranks_in_one_recording(sonde, doubles, tmp_path):
    library, capture = doubles / "libcupti-double-13.so", tmp_path / "node.pftrace"
    program = f"{doubles / 'cuda-nccl'} {library} {tmp_path / 'meet'} {RANKS} 2.25"
    sonde("record", "-q", "-o", capture, "--", "/bin/sh", "-c", f"RANK=0 {program} & RANK=1 {program} & wait", check=0,
          env={"SONDE_CUPTI": str(library)})
    data = collectives_of(sonde, capture)
    check_kinds(data)
    check_waits(data)


def test_the_plot_has_their_bandwidths(sonde, record, tmp_path):
    folder = record("2.25")
    plot = tmp_path / "collectives.svg"
    sonde("export", "-f", "collectives", "-o", plot, folder, check=0)
    titles = [title.text for title in xml.parse(plot).iter("{http://www.w3.org/2000/svg}title")]
    sized = [(name, size) for name, size in expected() if size]
    for name, size in sized:
        found = [title for title in titles if title.startswith(name) and f"\n{size} bytes" in title]
        assert len(found) == 2, (name, size, titles)  # the bus's and the algorithm's
        assert all(GROUP in title for title in found)
    assert len(titles) == 2 * len(sized)


def test_traces_made_of_them_say_the_same(sonde, record, tmp_path):
    folder, traces = record("2.25"), tmp_path / "traces"
    traces.mkdir()
    for rank in range(RANKS):
        sonde("export", "-f", "chrome", "-o", traces / f"{rank}.json", folder / f"{rank}.pftrace", check=0)
    of_recordings = {(kind["name"], kind["bytes"]): kind["count"] for kind in collectives_of(sonde, folder)["kinds"]}
    of_traces = {(kind["name"], kind["bytes"]): kind["count"] for kind in collectives_of(sonde, traces)["kinds"]}
    assert of_traces == of_recordings
    wide = {"COLUMNS": "240"}  # every column of the table is there: some collectives have a group, some a kernel
    assert re.search(r"Count .* Elements .* Group +Name +Kernel", sonde("report", "--by", "stragglers", traces, check=0,
                                                                        env=wide).stdout)
    events = json.loads((traces / "0.json").read_text())["traceEvents"]
    scatters = [event["args"] for event in events if event.get("cat") == "kernel" and "ReduceScatter" in event["name"]]
    (args,) = scatters
    assert (args["Collective name"], args["dtype"], args["Group size"], args["Process Group Name"], args["Seq"]) == (
        SCATTER, "Byte", RANKS, GROUP, 3)
    assert (args["In msg nelems"], args["Out msg nelems"]) == (RANKS << 15, 1 << 15)
    exchanges = [event["args"] for event in events if event.get("cat") == "kernel" and "SendRecv" in event["name"]]
    assert [(one["Collective name"], one["In msg nelems"], one["Out msg nelems"], one["Process Group Name"])
            for one in exchanges] == [(ALL_TO_ALL, 3 * PIECE, 2 * PIECE, GROUP), (SEND_RECV, PIECE, PIECE, GROUP)]


def test_before_communicators_were_reported(sonde, record):
    data = collectives_of(sonde, record("2.16"))
    check_kinds(data, "2.16", group=None)
    check_waits(data, "2.16")
    assert data["by_sequence"] == 0 and data["sizes_by_ranks_here"] == 2, "an all-gather and a reduce-scatter"


@pytest.mark.parametrize("release, reason", [("2.12", "do not say what they move"), ("none", "NCCL_NVTX_DISABLE")])
def test_without_sizes_the_reason_is_said(sonde, record, release, reason):
    folder = record(release)
    data = collectives_of(sonde, folder)
    check_waits(data, release)
    assert all(kind["bytes"] is kind["algorithm_bandwidth"] is None for kind in data["kinds"])
    parts = RANKS * sum(count for count, _ in expected(release).values())
    (found,) = [count for text, count in reasons_of(data).items() if reason in text]
    assert found == (parts if release == "none" else parts - RANKS)
    assert sum(reasons_of(data).values()) == parts
    refused = sonde("export", "-f", "collectives", "-o", "-", folder, check=1).stderr
    assert "no collective here says its size" in refused and "--by stragglers says why" in refused
