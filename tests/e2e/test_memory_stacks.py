# SPDX-License-Identifier: Apache-2.0
"""--weight gpu-bytes: what is in use at the device's peak, by stack, in every format: sums equal the peak."""

import gzip
import json
from xml.etree import ElementTree

import memory_snapshot
import pprof
import pytest
from memory_snapshot import MIB
from trace_files import write_kineto

PEAK_0 = 512 + 1024 + 256
PEAK_1 = 4096 + 64


def row(category, name, start_us, duration_us):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us, "args": {}}


def memory(start_us, bytes_, total, address, type_=1, device=0):
    args = {"Addr": address, "Bytes": bytes_, "Total Allocated": total, "Total Reserved": 8192, "Device Type": type_,
            "Device Id": device}
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": start_us, "args": args}


EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python3"}},
    row("python_function", "train.py(12): step", 0, 100),
    row("cpu_op", "aten::linear", 10, 30),
    row("cpu_op", "aten::empty", 15, 5),
    memory(16, 1024, 512 + 1024, 100),  # 512 bytes are from before the trace
    memory(17, 9999, 9999, 100, 0, -1),  # of the host
    row("cpu_op", "aten::relu", 50, 30),
    memory(55, 256, PEAK_0, 200),
    memory(60, 4096, 4096, 100, 1, 1),  # the same address on another GPU
    memory(70, -1024, PEAK_0 - 1024, 100),
    memory(75, 128, PEAK_0 - 1024 + 128, 300),  # after the peak
    memory(120, 64, PEAK_1, 200, 1, 1),  # in no row
]
STACKS = {
    "python3;[memory of GPU 0];step;aten::linear;aten::empty": 1024,
    "python3;[memory of GPU 0];step;aten::relu": 256,
    "python3;[memory of GPU 0];[allocated before the trace]": 512,
    "python3;[memory of GPU 1];step;aten::relu": 4096,
    "python3;[memory of GPU 1];[no stack recorded]": 64,
}


@pytest.fixture
def trace(tmp_path):
    return write_kineto(tmp_path / "trace.json", EVENTS)


@pytest.fixture
def export(sonde):
    def text(path, form, *options):
        return sonde("export", "-f", form, "--weight", "gpu-bytes", "-o", "-", *options, path, check=0).stdout

    return text


def folded(text):
    return {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in text.splitlines())}


def test_each_byte_of_the_peaks_has_a_stack(export, trace, report):
    assert folded(export(trace, "folded")) == STACKS
    peaks = {device["device"]: device["peak_bytes"] for device in report(trace, "--by", "memory")["memory"]}
    assert (peaks["GPU 0"], peaks["GPU 1"]) == (PEAK_0, PEAK_1) and sum(STACKS.values()) == PEAK_0 + PEAK_1


def test_formats_say_that_they_count_bytes(export, sonde, trace, tmp_path):
    (profile,) = json.loads(export(trace, "speedscope"))["profiles"]
    assert profile["unit"] == "bytes" and sum(profile["weights"]) == PEAK_0 + PEAK_1
    (thread,) = json.loads(export(trace, "firefox"))["threads"]
    assert thread["samples"]["weightType"] == "bytes" and sum(thread["samples"]["weight"]) == PEAK_0 + PEAK_1
    heads = [line.split() for line in export(trace, "perf-script").splitlines() if line.endswith("gpu-bytes: ")]
    assert sum(int(words[-2]) for words in heads) == PEAK_0 + PEAK_1
    graph = export(trace, "flamegraph")
    assert "5.81 KiB in use at the device's peak" in " ".join(ElementTree.fromstring(graph.encode()).itertext())
    assert "width: share of memory" in graph and "68.82 % · 4.00 KiB" in graph
    path = tmp_path / "memory.pb.gz"
    sonde("export", "-f", "pprof", "--weight", "gpu-bytes", "-o", path, trace, check=0)
    plain = gzip.decompress(path.read_bytes())
    assert all(word in plain for word in (b"inuse_objects", b"inuse_space", b"bytes")) and b"nanoseconds" not in plain
    assert sum(count for *_, count in pprof.read(path, 1)) == PEAK_0 + PEAK_1
    path = tmp_path / "memory.otlp"
    sonde("export", "-f", "otlp", "--weight", "gpu-bytes", "-o", path, trace, check=0)
    written = path.read_bytes()
    assert b"inuse_space" in written and b"bytes" in written and b"nanoseconds" not in written


def test_tables_count_bytes(report, sonde, trace):
    data = report(trace, "--by", "function", "--weight", "gpu-bytes")
    assert data["tables_weight"] == "gpu-bytes"
    rows = {row["name"]: row for row in data["tables"]["function"]["rows"]}
    assert (rows["aten::relu"]["self_bytes"], rows["step"]["total_bytes"]) == (4096 + 256, 4096 + 256 + 1024)
    assert all(row["self_time_ns"] is None and row["self_samples"] is None for row in rows.values())
    assert sum(row["self_bytes"] for row in rows.values()) == PEAK_0 + PEAK_1
    shown = sonde("report", "--by", "line", "--weight", "gpu-bytes", "--fold-libraries", "yes", trace, check=0).stdout
    assert "Hottest lines (memory in use at the device's peak)" in shown
    (line,) = [line for line in shown.splitlines() if "train.py:12" in line]
    assert "5.25 KiB" in line


def test_filters_narrow_what_is_counted(export, trace):
    """Of a part of the trace it is the peak of that part; what was there before has no stack."""
    assert folded(export(trace, "folded", "--time", "0.000065..")) == {
        "python3;[memory of GPU 0];step;aten::relu": 128,
        "python3;[memory of GPU 0];[allocated before the time shown]": PEAK_0 - 1024,
        "python3;[memory of GPU 1];[no stack recorded]": 64,
        "python3;[memory of GPU 1];[allocated before the time shown]": 4096,
    }
    assert folded(export(trace, "folded", "--symbol", "linear")) == {
        "python3;[memory of GPU 0];step;aten::linear;aten::empty": 1024}


def test_a_snapshot_has_its_own_stacks(export, sonde, tmp_path):
    path, capture = tmp_path / "snapshot.pickle", tmp_path / "run.pftrace"
    path.write_bytes(memory_snapshot.pickled())
    stacks = {
        "allocator;[memory of GPU 1];load, all": 4 * MIB,
        "allocator;[memory of GPU 1];step;forward;at::_ops::empty_memory_format::call": 5 * MIB,
    }
    assert folded(export(path, "folded")) == stacks
    lines = sonde("report", "--by", "line", "--weight", "gpu-bytes", "--fold-libraries", "yes", path, check=0).stdout
    assert "/home/me/train.py:12" in lines and "/home/me/data.py:7" in lines and "linear.py" not in lines
    sonde("import", "-o", capture, path, check=0)
    assert folded(export(capture, "folded")) == stacks


def test_the_call_tree_and_that_of_two_runs(start_server, tmp_path):
    """What the page's flame graphs are made of: of one trace, and of two."""
    folder = tmp_path / "runs"
    folder.mkdir()
    write_kineto(folder / "before.json", EVENTS)
    write_kineto(folder / "after.json", [event for event in EVENTS if event.get("ts") != 60])
    server = start_server("serve", folder)
    ids = {row["name"]: row["id"] for row in server.get("/api/captures").json()["captures"]}
    tree = server.get(f"/api/captures/{ids['before.json']}/call-tree?weight=gpu-bytes").json()
    assert (tree["unit"], tree["totals"]) == ("bytes", [PEAK_0 + PEAK_1])
    both = server.get(f"/api/captures/{ids['before.json']}/call-tree/{ids['after.json']}?weight=gpu-bytes").json()
    assert both["totals"] == [PEAK_0 + PEAK_1, PEAK_0 + PEAK_1]
    at = {both["names"][label]: node for node, label in enumerate(both["label"])}
    assert [side[at["aten::relu"]] for side in both["total"]] == [4096, 0]
    assert [side[at["[allocated before the trace]"]] for side in both["total"]] == [0, 4096]


def test_what_has_no_allocations_says_how_to_get_them(sonde, tmp_path):
    plain = write_kineto(tmp_path / "plain.json", [row("cpu_op", "aten::mm", 0, 5)])
    refused = sonde("export", "-f", "folded", "--weight", "gpu-bytes", "-o", "-", plain)
    assert refused.status != 0 and "profile_memory=True" in refused.stderr and "_dump_snapshot" in refused.stderr
    refused = sonde("report", "--by", "function", "--weight", "gpu-bytes", plain)
    assert refused.status != 0 and "profile_memory=True" in refused.stderr
    host = write_kineto(tmp_path / "host.json", [row("cpu_op", "aten::mm", 0, 5), memory(1, 64, 64, 1, 0, -1)])
    refused = sonde("export", "-f", "folded", "--weight", "gpu-bytes", "-o", "-", host)
    assert refused.status != 0 and "of the host's memory, but none of a device's" in refused.stderr


def test_formats_that_count_no_bytes_refuse(sonde, trace, tmp_path):
    for form in ("chrome", "pftrace", "jsonl"):
        refused = sonde("export", "-f", form, "--weight", "gpu-bytes", "-o", tmp_path / "out", trace)
        assert refused.status != 0 and f"--weight gpu-bytes is not for the format {form}" in refused.stderr
    refused = sonde("diff", "--weight", "gpu-bytes", trace, trace)
    assert refused.status != 0 and "gpu-bytes" in refused.stderr


@pytest.mark.parametrize("size", [2**62, 2**63 - 1])
def test_sizes_that_no_memory_has(export, sonde, tmp_path, size):
    """Of a damaged file: sums stay numbers."""
    events = [memory(at, size, size, at) for at in range(1, 6)]
    path = write_kineto(tmp_path / "large.json", events)
    assert 0 < sum(folded(export(path, "folded")).values()) <= 2**62
    profile = tmp_path / "large.pb.gz"
    sonde("export", "-f", "pprof", "--weight", "gpu-bytes", "-o", profile, path, check=0)
    assert sum(count for *_, count in pprof.read(profile, 1)) <= 2**62


def test_a_real_trace(export, report, shared_traces):
    path = shared_traces / "kineto/df_index_resolver.json.gz"
    (device,) = [device for device in report(path, "--by", "memory")["memory"] if device["device"] != "CPU"]
    assert sum(folded(export(path, "folded")).values()) == device["peak_bytes"]
