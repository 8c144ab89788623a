# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges of a C program and a C library, each with its own NVTX (tests/doubles/nvtx): no GPU is needed."""

import glob
import json
import re
import subprocess

import pytest

RANGES_OF_ALL = {
    ("NVTX", "outer"): 1,
    ("NVTX", "inner"): 3,
    ("one", "crossing"): 1,
    ("two", "crossing"): 1,
    ("one", "with payload"): 1,
    ("NCCL", "ncclAllReduce"): 1,
    ("NCCL", "AllReduce"): 1,
    ("NVTX", "first"): 1,
    ("NVTX", "second"): 1,
    ("NVTX", "step 0"): 1,
    ("NVTX", "step 1"): 2,  # at two addresses
    ("NVTX", "step 2"): 1,
    ("NVTX", "x" * 1024): 1,  # of 10,000
    ("NVTX", "bad \ufffd\ufffd bytes"): 1,
    ("NVTX", "wide \u00e4\u20ac\U0001f600"): 1,
    ("NVTX", None): 2,  # NULL and ""
    ("NVTX", "left open"): 1,
    ("NVTX", "left open too"): 1,
    ("library", "library work"): 20,
    ("NVTX", "after the library"): 1,
}


@pytest.fixture
def nvtx(sonde, report, workload, workload_directory, tmp_path):
    """nvtx(scenario, ...) -> the report's ranges, {(domain, name): row}, the whole report, the recording's end"""

    def run(*arguments, program="nvtx", options=(), env=None):
        capture = tmp_path / "nvtx.pftrace"
        done = sonde("record", *options, "-o", capture, "--", *workload(program, *arguments),
                     env={"NVTX_CHECK": "1", **(env or {})})
        data = report(capture)
        part = data["ranges"]
        rows = {(row["domain"], row["name"]): row for row in part["rows"] if row["kind"] != "mark"} if part else {}
        return part, rows, data, done

    run.library = str(workload_directory / "libnvtx_library.so")
    return run


def counts(rows):
    return {key: row["count"] for key, row in rows.items()}


def plain(command):
    return subprocess.run(command, capture_output=True, text=True)


def test_ranges_of_a_program_and_a_library(nvtx, workload):
    part, rows, data, done = nvtx("all", 1, nvtx.library, options=("-F", "997"))
    before = plain(workload("nvtx", "all", 1, nvtx.library))
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 5, done
    assert counts(rows) == RANGES_OF_ALL
    assert part["ranges"] == sum(RANGES_OF_ALL.values()) and part["marks"] == 2
    marks = {(row["domain"], row["name"]) for row in part["rows"] if row["kind"] == "mark"}
    assert marks == {("one", "a mark"), ("NVTX", "plain mark")}
    assert {name for (_, name), row in rows.items() if row["kind"] == "process"} == {"first", "second"}
    wrong = {"unbalanced_ends": 2, "open_at_thread_end": 2, "names_cut": 1, "ends_lost": 0, "open_at_end": 0,
             "too_many_at_once": 0, "names_lost": 0, "records_damaged": 0, "calls_dropped": 0}
    assert {name: part[name] for name in wrong} == wrong
    assert any("ends of ranges had no begin" in note for note in data["notes"])
    assert "leaver" in {row["name"] for row in data["tables"]["thread"]["rows"]}, "the name that NVTX gave"


def test_times_and_samples(nvtx, sonde, tmp_path):
    part, rows, data, _ = nvtx("nested", options=("-F", "997"))
    outer, inner = rows["NVTX", "outer"], rows["NVTX", "inner"]
    assert 90e6 <= outer["total_ns"] and 60e6 <= inner["total_ns"] <= outer["total_ns"] - 30e6
    assert 20e6 <= inner["minimum_ns"] <= inner["total_ns"] / 3 <= inner["maximum_ns"]
    assert 0 < inner["samples"] < outer["samples"] <= part["samples"] == data["totals"]["samples"]
    capture = tmp_path / "nvtx.pftrace"
    only = sonde("report", "--json", "--range", "^inner$", capture, check=0).json()
    assert only["totals"]["samples"] == inner["samples"] and only["filters"]["range"] == "^inner$"
    text = sonde("report", "--by", "range", capture, check=0).stdout
    assert "outer" in text and "inner" in text and "Hottest functions" not in text
    assert "Ranges" in sonde("report", capture, check=0).stdout
    assert sonde("report", "--range", "(", capture).status != 0


def test_chrome_trace_has_the_ranges(nvtx, sonde, tmp_path):
    _, rows, _, _ = nvtx("all", 1, nvtx.library)
    out = tmp_path / "trace.json"
    sonde("export", "-f", "chrome", "-o", out, tmp_path / "nvtx.pftrace", check=0)
    events = json.loads(out.read_text())["traceEvents"]
    slices = {(event["cat"], event["name"]): event for event in events if event["ph"] == "X"}
    assert {key for key in RANGES_OF_ALL if key[1] and key[1].isascii()} <= set(slices)
    nccl = {"Message size [bytes]": 1 << 20, "Peer rank": -3, "Reduction operation": "Max", "Ratio": 0.5}
    assert {name for (domain, name), row in rows.items() if row["bytes"]} == {"ncclAllReduce", "AllReduce"}
    assert rows["NCCL", "ncclAllReduce"]["bytes"] == 1 << 20
    assert re.search(r"1\.00 MiB +NCCL +ncclAllReduce", sonde("report", "--by", "range", tmp_path / "nvtx.pftrace").stdout)
    nccl["range domain"] = "NCCL"
    assert slices["NCCL", "ncclAllReduce"]["args"] == slices["NCCL", "AllReduce"]["args"] == nccl
    assert slices["one", "with payload"]["args"] == {"range domain": "one", "category": "seventh", "payload": -42}
    (mark,) = [event for event in events if event["name"] == "a mark"]
    assert mark["ph"] == "i" and mark["args"] == {"range domain": "one", "category": "category 8", "payload": 2.5}
    # They overlap one another: each has a line of its own, which is of no thread.
    first, second = (slices["NVTX", name] for name in ("first", "second"))
    assert first["dur"] > 5000 and second["dur"] > 5000 and first["tid"] != second["tid"]
    owners = {event["tid"]: event["args"]["owner tid"] for event in events
              if event["name"] == "thread_name" and "owner tid" in event["args"]}
    assert owners[first["tid"]] == owners[second["tid"]] == -1
    assert owners[slices["NVTX", "outer"]["tid"]] == slices["NVTX", "outer"]["pid"]
    inner = [event for event in events if event["name"] == "inner"]
    outer = slices["NVTX", "outer"]
    assert len(inner) == 3 and all(
        event["tid"] == outer["tid"] and outer["ts"] <= event["ts"]
        and event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] for event in inner
    )


def test_ranges_of_an_exported_recording_keep_their_domains(nvtx, sonde, tmp_path):
    """In the report of the Chrome trace, and in that of the capture imported from it."""
    _, rows, _, _ = nvtx("all", 1, nvtx.library)
    export, imported = tmp_path / "trace.json", tmp_path / "imported.pftrace"
    sonde("export", "-f", "chrome", "-o", export, tmp_path / "nvtx.pftrace", check=0)
    sonde("import", "-o", imported, export, check=0)
    expected = {key: (row["kind"], row["count"]) for key, row in rows.items() if key[1]}
    for path in export, imported:
        ranges = sonde("report", "--json", "--by", "range", path, check=0).json()["ranges"]["rows"]
        found = {(row["domain"], row["name"]): row for row in ranges if row["name"] != "[no name]"}
        assert {key: (row["kind"], row["count"]) for key, row in found.items() if row["kind"] != "mark"} == expected
        assert {key for key, row in found.items() if row["kind"] == "mark"} == {("one", "a mark"), ("NVTX", "plain mark")}


@pytest.mark.parametrize("end, status", [("_exit", 5), ("kill", 137)])
def test_open_ranges_at_the_end(nvtx, end, status):
    """What was open when the program ended is there, and lasts as long as the program is known to have."""
    part, rows, data, done = nvtx(end, options=("-F", "997"))
    assert done.status == status
    assert {name: row["open_count"] for (_, name), row in rows.items()} == {
        "open outer": 1, "open started": 1, "open inner": 1}
    assert all(50e6 < row["total_ns"] < 5e9 for row in rows.values())
    assert part["open_at_end"] == 3
    assert any("still open when their program ended" in note for note in data["notes"])


def test_forked_child_writes_nothing(nvtx):
    part, rows, _, done = nvtx("fork")
    assert done.status == 5 and "child ended with 7" in done.stdout
    assert counts(rows) == {("NVTX", "around the fork"): 1} and part["unbalanced_ends"] == 0


def test_the_next_program_has_its_own_names(nvtx):
    part, rows, _, done = nvtx("exec")
    assert done.status == 5
    assert counts(rows) == {("NVTX", "before"): 1, ("NVTX", "outer"): 1, ("NVTX", "inner"): 3}
    assert part["open_at_end"] == 1 and part["names_lost"] == part["ends_lost"] == 0


def test_many_threads_at_once(nvtx):
    part, rows, data, done = nvtx("threads", 64)
    assert done.status == 5
    assert counts(rows) == {("NVTX", "many outer"): 64 * 200, ("NVTX", "many inner"): 64 * 200}, (part, data["notes"])
    assert not any(part[name] for name in ("unbalanced_ends", "ends_lost", "open_at_end", "names_lost"))


def test_another_tool_stays(nvtx, sonde_path, tmp_path):
    other = tmp_path / "libother.so"
    part, _, data, done = nvtx("nested", env={"NVTX_INJECTION64_PATH": str(other), "NVTX_CHECK": ""})
    assert part is None
    assert any(f"NVTX_INJECTION64_PATH names another tool, {other}" in note for note in data["notes"])


def test_programs_without_nvtx_have_none(nvtx):
    part, _, data, _ = nvtx(0.2, program="spin")
    assert part is None and not [note for note in data["notes"] if "range" in note]


def test_user_mode(nvtx):
    part, rows, data, done = nvtx("nested", options=("--mode", "user"))
    assert done.status == 5 and counts(rows) == {("NVTX", "outer"): 1, ("NVTX", "inner"): 3}
    assert data["device_work"] is None
    assert not [note for note in data["notes"] if "launch" in note], "there was nothing to launch"


def test_full_rings_are_counted(nvtx):
    """More than the rings hold, faster than they are read: what is left nests, and the loss is said."""
    part, rows, data, done = nvtx("bench", 100000)
    assert done.status == 5
    if rows["NVTX", "a range of the program"]["count"] < 50 * 100000:
        assert any("records of device work and ranges were lost" in note for note in data["notes"])
    assert part["records_damaged"] == 0


def test_a_device_that_was_known_before_the_window(nvtx, workload_directory):
    if not (workload_directory / "nvtx_opencl").exists() or not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.fail("built without OpenCL, or no driver: run tools/deps test, then make")
    # Its queue is made while the gate is closed; the window begins at the mark.
    window = ("--window", "steps:wait=1,warmup=0,active=9", "--step-on", "^half$")
    part, rows, data, done = nvtx(program="nvtx_opencl", options=window)
    assert done.status == 5
    work = data["device_work"]
    assert [kernel["count"] for kernel in data["kernel"]["kernels"]] == [15]
    assert all(device["name"] for device in work["devices"]), work["devices"]


def test_work_of_devices_in_ranges(nvtx, sonde, workload_directory, tmp_path):
    if not (workload_directory / "nvtx_opencl").exists() or not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.fail("built without OpenCL, or no driver: run tools/deps test, then make")
    part, rows, data, done = nvtx(program="nvtx_opencl")
    assert done.status == 5
    rows = {name: row for (_, name), row in rows.items()}
    assert {name: row["device_work_count"] for name, row in rows.items()} == {
        "forward": 20, "backward": 10, "step": 30, "process": 30}
    (kernel,) = data["kernel"]["kernels"]
    assert kernel["count"] == 35
    for row in rows.values():
        assert 0 < row["device_busy_ns"] <= row["device_span_ns"]
    # One queue runs one kernel at a time, and has finished forward's before backward's are launched.
    assert rows["forward"]["device_busy_ns"] + rows["backward"]["device_busy_ns"] == rows["step"]["device_busy_ns"]
    assert rows["step"]["device_busy_ns"] == rows["process"]["device_busy_ns"] < kernel["sum_ns"]
    assert rows["step"]["device_span_ns"] > rows["forward"]["device_span_ns"] + rows["backward"]["device_span_ns"]
    capture = tmp_path / "nvtx.pftrace"
    out = sonde("export", "-f", "folded", "--weight", "gpu", "--range", "^forward$", "-o", "-", capture, check=0).stdout
    total_ns = sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())
    assert total_ns == rows["forward"]["device_busy_ns"]
    assert "On device" in sonde("report", "--by", "range", capture, check=0).stdout

