# SPDX-License-Identifier: Apache-2.0
"""What is wrong with traces of real life, made worse: everything is read that can be, and what cannot is said."""

import gzip
import json
import os
import re
import subprocess

import pytest
from trace_files import kineto_bomb, kineto_of_rank, launch_and_kernel, write_kineto

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
SMALL = ["prlimit", "--as=500000000"]


def one_line(text):
    lines = text.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("sonde: "), text
    return lines[0]


def one_sentence(done):
    return one_line(done.stderr)


@pytest.fixture
def kernels(sonde):
    """kernels(trace) -> ({name: count} of kernels in the report, what was said, the trace's part of the report)"""

    def read(path, prefix=()):
        done = sonde("report", "--json", path, prefix=prefix, check=0)
        whole = done.json()
        rows = whole["kernel"]["kernels"] if whole["kernel"] else []
        return {row["name"]: row["count"] for row in rows}, done.stderr, whole["traces"][0]

    return read


def test_a_gzip_bomb_takes_no_memory(kernels, tmp_path):
    bomb = kineto_bomb(tmp_path / "bomb.json.gz", 256 << 20)
    assert bomb.stat().st_size < 2 << 20
    assert kernels(bomb, prefix=SMALL)[0] == {"gemm": 1}


def test_what_stands_behind_a_trace(kernels, tmp_path):
    """A second document, and bytes behind what is compressed."""
    path = write_kineto(tmp_path / "two.json", launch_and_kernel(1, 0))
    text = path.read_bytes()
    path.write_bytes(text + b"\n" + text)
    packed = tmp_path / "more.json.gz"
    packed.write_bytes(gzip.compress(text) + b"behind")
    for file, count in ((path, len(text)), (packed, len(b"behind"))):
        found, said, trace = kernels(file)
        assert found == {"gemm": 1}
        assert trace["damage"]["skipped_bytes"] == count
        assert f"{count} bytes" in one_line(said)


def test_nesting_of_a_million(kernels, tmp_path):
    """In the arguments of an event, and where an event should be."""
    deep = "[" * 10**6 + "]" * 10**6
    events = launch_and_kernel(1, 0) + ["@"] + launch_and_kernel(2, 100)
    events[0]["args"]["Input Dims"] = "@"
    path = write_kineto(tmp_path / "deep.json", events)
    path.write_text(path.read_text().replace('"@"', deep))
    found, said, trace = kernels(path, prefix=SMALL)
    assert found == {"gemm": 2}
    assert trace["damage"]["skipped_events"] >= 1 and "damaged" in said


def test_names_of_a_megabyte(kernels, sonde, tmp_path):
    names = [digit * 10**6 for digit in "0123"]
    events = [event for number, name in enumerate(names) for event in launch_and_kernel(number + 1, 100 * number, name)]
    path = write_kineto(tmp_path / "long.json", events)
    assert kernels(path)[0] == {name: 1 for name in names}
    assert max(map(len, sonde("report", path, check=0).stdout.splitlines())) < 10000


@pytest.mark.slow
def test_a_hundred_thousand_threads(kernels, tmp_path):
    events = [event for number in range(10**5) for event in launch_and_kernel(number + 1, number, thread=number)]
    found, _, trace = kernels(write_kineto(tmp_path / "threads.json", events), prefix=SMALL)
    assert found == {"gemm": 10**5}
    assert trace["works_without_launch"] == 0


def test_a_schema_of_the_future(kernels, tmp_path):
    """What is new is kept or left out, and that is said; what is known is read."""
    events = launch_and_kernel(1, 0)
    events[2]["args"]["quantum lanes"] = {"left": [1, 2], "right": None}
    events.append({"ph": "Z", "cat": "teleport", "name": "x", "where": [1, {}], "ts": "noon"})
    events.append({"ph": "X", "cat": "teleport", "name": "there", "pid": 1, "tid": 1, "ts": 90, "dur": 1})
    path = write_kineto(tmp_path / "future.json", events, schemaVersion=99, newHeader={"a": [1]})
    found, said, trace = kernels(path)
    assert found == {"gemm": 1}
    assert trace["rows"] == 4 and trace["damage"]["skipped_events"] == 1 and "1 of its events" in said


def test_clocks_and_durations_that_cannot_be(kernels, tmp_path):
    events = launch_and_kernel(1, 100) + launch_and_kernel(2, 300) + launch_and_kernel(3, 500)
    events[3]["dur"] = -20
    events[5]["dur"] = 2**64 // 1000 - 3  # unsigned, wrapped
    found, said, _ = kernels(write_kineto(tmp_path / "clocks.json", events))
    assert found == {"gemm": 3}
    assert "2 durations" in one_line(said)


def test_ranks_that_are_missing_are_said(sonde, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in (0, 1, 3):
        kineto_of_rank(folder / f"trace_{rank}.json.gz", rank, 4)
    done = sonde("report", folder, check=0)
    assert "rank 2 of 4 is missing" in one_sentence(done)


def cut(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def test_faults_of_many_ranks_are_said_in_their_order(sonde, tmp_path):
    """They are loaded at a time, and end in any order."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(12):
        cut(kineto_of_rank(folder / f"trace_{rank}.json", rank, 12), 0.5 if rank % 3 == 1 else 1)
    done = sonde("report", "--json", folder, check=0)
    assert [each["rank"] for each in json.loads(done.stdout)["traces"]] == list(range(12))
    assert re.findall(r"trace_(\d+).json is cut off", done.stderr) == ["1", "4", "7", "10"]
    for rank in (5, 8):
        (folder / f"trace_{rank}.json").write_text("{}")
    assert "trace_5.json" in one_sentence(sonde("report", folder, check=1))


def link(sonde, et, kineto, out, *options, **more):
    pair = ["--chakra-host-trace", et, "--chakra-device-trace", kineto]
    return sonde("chakra", "link", "--rank", 0, *pair, "--output-file", out, *options, **more)


def dumped(sonde, path):
    """The nodes of a Chakra trace, without its metadata."""
    return [json.loads(line) for line in sonde("chakra", "dump", path, check=0).stdout.splitlines()[1:]]


def test_traces_of_different_runs(sonde, pairs, tmp_path):
    out = tmp_path / "linked.json"
    done = link(sonde, pairs("train") / "et_0.json", pairs("gloo") / "kineto_0.json", out, check=1)
    assert "run" in one_sentence(done)
    assert not out.exists()


def test_traces_that_were_cut_off(sonde, pairs, tmp_path):
    et, kineto, out = (tmp_path / name for name in ("et.json", "kineto.json", "out.et"))
    et.write_bytes((pairs("train") / "et_0.json").read_bytes())
    kineto.write_bytes((pairs("train") / "kineto_0.json").read_bytes())
    cut(et, 0.6)
    cut(kineto, 0.7)
    done = link(sonde, et, kineto, out, "--format", "et", check=0)
    assert f"{et} is cut off" in done.stderr and "1 damaged events" in done.stderr
    assert len(dumped(sonde, out)) > 100


def test_names_that_torch_does_not_escape(sonde, pairs, tmp_path):
    folder = pairs("names")
    for name in ("et_0.json", "kineto_0.json"):
        with pytest.raises(json.JSONDecodeError):
            json.loads((folder / name).read_text())
    out = tmp_path / "out.et"
    link(sonde, folder / "et_0.json", folder / "kineto_0.json", out, "--format", "et", check=0)
    names = [node["name"] for node in dumped(sonde, out)]
    assert 'say "quoted"' in names and "plain" in names
    assert names.count("aten::ones") == 10 and names.count("aten::mm") == 5


@needs_root
@pytest.mark.parametrize("what", ["import", "link", "convert", "export"])
def test_a_full_disk(sonde, pairs, tmp_path, what):
    mount = tmp_path / "small"
    mount.mkdir()
    et, kineto = pairs("train") / "et_0.json", pairs("train") / "kineto_0.json"
    linked, capture = tmp_path / "linked.json", tmp_path / "capture.pftrace"
    link(sonde, et, kineto, linked, check=0)
    sonde("import", "-o", capture, kineto, check=0)
    out = mount / "out"
    commands = {
        "import": ["import", "-o", out, kineto],
        "link": [
            "chakra",
            "link",
            "--rank",
            0,
            "--chakra-host-trace",
            et,
            "--chakra-device-trace",
            kineto,
            "--output-file",
            out,
        ],
        "convert": ["chakra", "convert", "--input", linked, "--output", out],
        "export": ["export", "-f", "chrome", "-o", out, capture],
    }
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", mount], check=True)
    try:
        done = sonde(*commands[what], check=1)
        said = one_sentence(done)
        assert "No space left on device" in said and "it holds" not in said
        assert not list(mount.iterdir())
    finally:
        subprocess.run(["umount", mount], check=True)
