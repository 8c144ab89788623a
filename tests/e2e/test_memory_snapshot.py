# SPDX-License-Identifier: Apache-2.0
"""Snapshots of PyTorch's memory: those of memory_snapshot.py, pickled by every protocol and as JSON. One of a GPU was not at
hand. And who holds memory at the peak, in traces with [memory] rows."""

import gzip
import json
import pickle
from xml.etree import ElementTree

import memory_snapshot
import pytest
from memory_snapshot import MIB


@pytest.fixture
def snapshot(tmp_path):
    def write(content, name="snapshot.pickle"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("protocol", [2, 3, 4, 5, "json", "gzip"])
def test_who_holds_memory_at_the_peak(snapshot, report, protocol):
    if protocol == "json":
        path = snapshot(memory_snapshot.as_json(), "snapshot.json")
    elif protocol == "gzip":
        path = snapshot(gzip.compress(memory_snapshot.pickled()))
    else:
        path = snapshot(memory_snapshot.pickled(protocol))
    (device,) = report(path, "--by", "memory")["memory"]
    assert (device["device"], device["peak_bytes"], device["peak_ns"]) == ("GPU 1", 9 * MIB, 30_000)
    held = {row["own"]: row for row in device["stacks"]}
    assert held["step (/home/me/train.py:12)"]["at_peak_bytes"] == 5 * MIB
    assert held["step (/home/me/train.py:12)"]["unreleased_bytes"] == 3 * MIB  # also what waits to be released
    assert held["load, all (/home/me/data.py:7)"]["at_peak_bytes"] == 4 * MIB  # from before the history
    assert held[None]["at_peak_bytes"] == 0 and held[None]["bytes"] == MIB
    assert held["step (/home/me/train.py:12)"]["stack"].split(";")[1].startswith("forward (/usr/lib/python3")
    assert held["step (/home/me/train.py:12)"]["frame"] == "at::_ops::empty_memory_format::call"


def test_what_is_reserved_and_not_used(snapshot, sonde, report):
    path = snapshot(memory_snapshot.pickled())
    (device,) = report(path, "--by", "memory")["memory"]
    assert (device["peak_reserved_bytes"], device["unused_at_peak_bytes"]) == (10 * MIB, MIB)
    assert device["most_unused_bytes"] == 4 * MIB
    shown = sonde("report", path, check=0)
    assert "in 2 blocks, the largest 2.00 MiB" in shown.stderr
    assert "out of memory: 94371840 bytes were asked for" in shown.stdout


def test_a_picture_over_time(snapshot, sonde):
    picture = ElementTree.fromstring(
        sonde("export", "-f", "memory", "-o", "-", snapshot(memory_snapshot.pickled()), check=0).stdout.encode()
    )
    text = " ".join(picture.itertext())
    assert "rank 0, GPU 1: at most 9 MiB in use (dark), 10 MiB reserved (light)" in text
    assert "peak: 9 MiB at 0.03 ms" in text
    assert len(picture.findall("{http://www.w3.org/2000/svg}path")) == 2


def test_blocks_without_a_history(snapshot, report):
    whole = memory_snapshot.snapshot()
    del whole["device_traces"]
    (device,) = report(snapshot(pickle.dumps(whole)), "--by", "memory")["memory"]
    assert (device["peak_bytes"], device["unreleased"]) == (7 * MIB, 3)


def test_an_import_is_the_same(snapshot, sonde, report, tmp_path):
    path, capture = snapshot(memory_snapshot.pickled()), tmp_path / "run.pftrace"
    sonde("import", "-o", capture, path, check=0)
    assert report(capture, "--by", "memory")["memory"] == report(path, "--by", "memory")["memory"]


class Harmful:
    def __reduce__(self):
        return (print, ("run",))


def test_nothing_of_a_pickle_is_run(snapshot, sonde):
    whole = {"segments": [], "device_traces": [], "x": Harmful()}
    refused = sonde("report", snapshot(pickle.dumps(whole)))
    assert refused.status != 0 and "would import or call something" in refused.stderr and "run" not in refused.stdout


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("form", [memory_snapshot.pickled, memory_snapshot.as_json])
def test_a_snapshot_that_is_cut(snapshot, sonde, form, kept):
    whole = form()
    refused = sonde("report", snapshot(whole[: int(len(whole) * kept)]))
    assert refused.status != 0 and "damaged or cut off" in refused.stderr


def test_nothing_in_it(snapshot, sonde):
    refused = sonde("report", snapshot(pickle.dumps({"segments": [], "device_traces": [[]]})))
    assert refused.status != 0 and "_record_memory_history" in refused.stderr


def test_a_value_in_many_places_is_bounded(snapshot, sonde):
    """A list of lists of one list: small in the file, endless to walk over."""
    blocks = [{"address": 1, "size": 1, "state": "inactive", "frames": []}] * 3000
    segments = [{"device": 0, "address": 1, "total_size": 1, "blocks": blocks}] * 3000
    shown = sonde("report", snapshot(pickle.dumps({"segments": segments, "device_traces": []})), timeout=20)
    assert shown.status != 0


def memory_row(start, bytes_, total, address):
    args = {"Addr": address, "Bytes": bytes_, "Total Allocated": total, "Total Reserved": 4096, "Device Type": 1, "Device Id": 0}
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": start, "args": args}


def test_rows_of_a_trace_have_their_operator_and_stack(report, tmp_path):
    def row(category, name, start, duration):
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": {}}

    events = [
        row("python_function", "train.py(12): step", 0, 100),
        row("cpu_op", "aten::linear", 10, 30),
        row("cpu_op", "aten::empty", 15, 5),
        memory_row(16, 1024, 1536, 100),
        row("cpu_op", "aten::relu", 50, 30),
        memory_row(55, 256, 1792, 200),
        memory_row(70, -1024, 768, 100),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (device,) = report(path, "--by", "memory")["memory"]
    assert device["peak_bytes"] == 1792 and device["peak_unseen_bytes"] == 512
    held = {row["stack"]: row["at_peak_bytes"] for row in device["stacks"]}
    assert held == {"train.py(12): step;aten::linear;aten::empty": 1024, "train.py(12): step;aten::relu": 256}
    assert {row["name"]: row["at_peak_bytes"] for row in device["operators"]} == {"aten::empty": 1024, "aten::relu": 256}
    assert device["unused_at_peak_bytes"] == 4096 - 1792
