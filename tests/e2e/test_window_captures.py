# SPDX-License-Identifier: Apache-2.0
"""What report, export and diff make of a capture with windows: tests/golden/windows-2-*, whose second did not end."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CAPTURES = [GOLDEN / f"windows-2-{kind}.pftrace" for kind in ("plain", "deflated")]
WHOLE = GOLDEN / "capture-2-plain.pftrace"


@pytest.fixture(params=CAPTURES, ids=("plain", "deflated"))
def capture(request):
    return request.param


def test_json(report, capture):
    data = report(capture)
    windows, steps = data["windows"], data["steps"]
    assert windows["windows_in_capture"] == 2
    # The second window ends just after the last that is known of it.
    assert windows["duration_ns"] == data["totals"]["duration_ns"] == 200 + 91
    assert windows["recording_duration_ns"] == 991
    first, second = windows["rows"]
    assert (first["number"], first["begin_ns"], first["duration_ns"]) == (1, 100, 200)
    assert (first["opened_by"], first["closed_by"], first["leader_pid"]) == ("steps", "schedule", 500)
    assert (first["first_step"], first["last_step"], first["steps_begun"]) == (3, 4, 2)
    assert first["begin_unix_time_ns"] == data["session"]["start_unix_time_ns"] + 100
    assert first["label"] is None and second["label"] == "the second"
    assert (second["closed_by"], second["first_step"], second["leader_pid"]) == ("collector-gone", None, None)
    (row,) = steps["rows"]
    assert (row["name"], row["pid"], row["count"], row["cut_count"]) == ("step", 500, 2, 1)
    assert (row["minimum_ns"], row["p50_ns"], row["p95_ns"], row["maximum_ns"]) == (100,) * 4
    assert [step["number"] for step in steps["slowest"]] == [3, 4]
    # Slices of windows and steps are there for viewers: they are no ranges of the program.
    assert [range["name"] for range in data["ranges"]["rows"]] == ["forward"]


@pytest.mark.parametrize("choice, numbers", [("1", [1]), ("2", [2]), ("1,2", [1, 2]), ("1-2", [1, 2]), ("2-9", [2])])
def test_choice(sonde, capture, choice, numbers):
    data = sonde("report", "--json", "--window", choice, capture, check=0).json()
    assert data["filters"]["window"] == choice
    assert data["windows"]["windows_in_capture"] == 2
    assert [row["number"] for row in data["windows"]["rows"]] == numbers
    assert data["totals"]["samples"] == len(numbers)
    assert data["totals"]["duration_ns"] == sum({1: 200, 2: 91}[number] for number in numbers)
    assert bool(data["ranges"]) == (1 in numbers)


@pytest.mark.parametrize("choice", ["0", "x", "", "2-1", "1,,2", "-1", "1-", "99999999999"])
def test_choice_that_is_none(sonde, choice):
    for command in (("report",), ("export", "-f", "folded")):
        done = sonde(*command, f"--window={choice}", CAPTURES[0])
        assert done.status != 0 and "does not choose windows" in done.stderr, str(done)
        assert len(done.stderr.splitlines()) == 1, str(done)


def test_choice_of_what_is_not_there(sonde):
    done = sonde("report", "--window", "1,7", CAPTURES[0])
    assert done.status != 0 and "--window 7" in done.stderr and "has 2 windows" in done.stderr, str(done)
    done = sonde("report", "--window", "1", WHOLE)
    assert done.status != 0 and "has no windows" in done.stderr and "--time" in done.stderr, str(done)


def test_text(sonde, capture):
    header = sonde("report", capture, check=0).stdout
    assert "2 windows: 291 ns of the 991 ns" in header
    one = sonde("report", "--window", "1", capture, check=0).stdout
    assert "Window 1 of 2, opened by steps, closed by schedule, steps 3 to 4: 200 ns" in one
    table = sonde("report", "--by", "window", capture, check=0).stdout
    assert "collector-gone" in table and "steps 3 to 4" in table and "Closed by" in table
    assert "Hottest functions" not in table
    steps = sonde("report", "--by", "step", capture, check=0).stdout
    assert "p95" in steps and "Cut off" in steps and "Slowest steps" in steps


def test_whole_captures_say_so(sonde, report):
    assert report(WHOLE)["windows"] is None and report(WHOLE)["steps"] is None
    assert "There are no windows" in sonde("report", "--by", "window", WHOLE, check=0).stdout
    assert "There are no steps" in sonde("report", "--by", "step", WHOLE, check=0).stdout
    assert "indow" not in sonde("report", WHOLE, check=0).stdout


def export(sonde, capture, form, *options):
    return sonde("export", "-f", form, *options, "-o", "-", capture, check=0).stdout


def test_exports(sonde, capture):
    trace = json.loads(export(sonde, capture, "chrome"))["traceEvents"]
    slices = {event["name"]: event for event in trace if event["ph"] == "X"}
    # A duration is the difference of two doubles, which is what readers add to ts: rounded to ns it is exact.
    assert round(slices["window 1"]["dur"], 3) == 0.2 and slices["window 1"]["args"]["opened_by"] == "steps"
    assert slices["the second"]["args"]["number"] == 2
    steps = [event for event in trace if event.get("args", {}).get("name") == "step"]
    assert [event["args"]["number"] for event in steps] == [3, 4, 9]
    assert [event["name"] for event in steps] == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#9"]
    assert {event["pid"] for event in steps} == {500}
    of_one = json.loads(export(sonde, capture, "chrome", "--window", "1"))["traceEvents"]
    assert {event["name"] for event in of_one if event["ph"] == "X"} >= {"window 1", "ProfilerStep#3"}
    assert "the second" not in {event["name"] for event in of_one}
    for form, samples in (("folded", "[no stack] {}\n"), ("csv", ",{},")):
        assert samples.format(2) in export(sonde, capture, form)
        assert samples.format(1) in export(sonde, capture, form, "--window", "2")
    profile = json.loads(export(sonde, capture, "speedscope", "--window", "2"))["profiles"]
    assert [len(one["samples"]) for one in profile] == [1]
    assert "291 ns recorded" in export(sonde, capture, "flamegraph")
    assert "91 ns recorded" in export(sonde, capture, "flamegraph", "--window", "2")


def test_an_export_and_its_import_have_the_windows(sonde, report, capture, tmp_path):
    trace, imported = tmp_path / "trace.json", tmp_path / "trace.pftrace"
    trace.write_text(export(sonde, capture, "chrome"))
    sonde("import", trace, "-o", imported, check=0)
    recorded = report(capture)["windows"]["rows"]
    # Begins are since the first row of the trace: the first window's. It has no samples, and no time of day.
    without = ("rank", "samples", "cpu_time_ns", "begin_unix_time_ns")
    expected = [{k: v for k, v in row.items() if k not in without} | {"begin_ns": row["begin_ns"] - 100} for row in recorded]
    for file in (trace, imported):
        windows = report(file)["windows"]
        assert (windows["windows_in_capture"], windows["duration_ns"]) == (2, 291)
        # The rows of the file show step 9 in the second; recordings count it there, too.
        rows = [{k: v for k, v in row.items() if k not in without} for row in windows["rows"]]
        assert rows == expected
        assert {row["samples"] for row in windows["rows"]} == {None}
        text = sonde("report", "--by", "window", file, check=0).stdout
        assert "Opened by" in text and "CPU samples" not in text and "the second" in text


def test_a_trace_of_pytorch_has_the_window_of_its_profiler(sonde, report, tmp_path):
    def row(name, category, start, duration, **more):
        return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": 1, "ts": start, "dur": duration} | more

    def work(start, duration):
        return row("gemm", "kernel", start, duration, pid=0, tid=7, args={"device": 0, "stream": 7})

    events = [
        row("PyTorch Profiler (0)", "Trace", 100, 1000, pid="Spans", tid="PyTorch Profiler"),
        row("another tool's span", "Trace", 0, 50),
        row("ProfilerStep#4", "user_annotation", 150, 300),
        row("ProfilerStep#5", "user_annotation", 450, 400),
        work(200, 100),
        work(250, 100),
        work(1050, 100),  # half of it after the window
        work(1200, 10),
    ]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": events}))
    (window,) = report(file)["windows"]["rows"]
    assert (window["begin_ns"], window["duration_ns"], window["label"]) == (100_000, 1_000_000, "PyTorch Profiler (0)")
    assert (window["first_step"], window["last_step"], window["steps_begun"]) == (4, 5, 2)
    assert (window["device_work_count"], window["device_busy_ns"]) == (3, 200_000)
    assert (window["opened_by"], window["closed_by"], window["samples"]) == (None, None, None)
    # Windows follow one another: one that begins before the end of the one before is none.
    file.write_text(json.dumps({"traceEvents": [*events, row("PyTorch Profiler (1)", "Trace", 500, 9)]}))
    assert len(report(file)["windows"]["rows"]) == 1
    file.write_text(json.dumps({"traceEvents": events[1:]}))
    assert report(file)["windows"] is None
    assert "the trace has no row of them" in sonde("report", "--by", "window", file, check=0).stdout


def test_diff(sonde, capture):
    done = sonde("diff", "--json", "--window", "1", capture, capture, check=0).json()["samples"]
    assert done["before"]["samples"] == done["after"]["samples"] == 1
    assert done["before"]["duration_ns"] == 200


STEPS = """
import sys, time
sys.path.insert(0, sys.argv[1])
from package import _core
for number in range(int(sys.argv[2])):
    _core.step()
    with _core.range("body"):
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass
"""


@pytest.fixture
def steps(sonde, tmp_path):
    """The command of a program that makes 14 steps of 20 ms, or another number, with a range in each"""
    extension = Path(sonde.path).parent / "python/sonde/_core.abi3.so"
    if not extension.exists():
        pytest.fail(f"there is no {extension}: the program under test is not in its build folder")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(extension, package)
    program = tmp_path / "steps.py"
    program.write_text(STEPS)
    return lambda count=14: ["/usr/bin/python3", program, tmp_path, str(count)]


def record(sonde, command, path, *options):
    schedule = "steps:wait=1,warmup=1,active=3,repeat=2"
    return sonde("record", "-F", "499", "--window", schedule, *options, "-o", path, "--", *command, check=0,
                 env={"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"})


def manifest(path):
    return json.loads(Path(f"{path}.windows.json").read_text())


def check_windows(rows):
    assert [row["number"] for row in rows] == [1, 2]
    assert [(row["first_step"], row["last_step"]) for row in rows] == [(2, 4), (7, 9)]
    assert {(row["opened_by"], row["closed_by"]) for row in rows} == {("steps", "schedule")}
    (leader,) = {row["leader_pid"] for row in rows}
    return leader


def test_recording_and_manifest(sonde, report, steps, tmp_path):
    path = tmp_path / "run.pftrace"
    record(sonde, steps(), path)
    data, listed = report(path), manifest(path)
    windows = data["windows"]["rows"]
    leader = check_windows(windows)
    assert check_windows(listed["windows"]) == leader
    for row, told in zip(windows, listed["windows"]):
        assert told["file"] == listed["capture"] == "run.pftrace"
        assert told["begin_unix_time_ns"] == row["begin_unix_time_ns"]
        assert told["end_unix_time_ns"] - told["begin_unix_time_ns"] == row["duration_ns"]
        assert row["steps_begun"] == 3
    assert listed["recording_ended"] is True and listed["host"] == data["session"]["host"]
    (process,) = [process for process in listed["processes"] if process["pid"] == leader]
    assert process == {"pid": leader, "rank": 3, "world_size": 8, "local_rank": 1, "joined_late": False}
    assert [step["name"] for step in listed["steps"]] == ["step"]
    (row,) = data["steps"]["rows"]
    # The last step of each window ends with it, by the next call of step().
    assert (row["count"], row["cut_count"]) == (6, 0)
    assert row["minimum_ns"] >= 20e6
    assert row["total_ns"] == data["totals"]["duration_ns"] == sum(row["duration_ns"] for row in windows)
    assert row["samples"] == data["totals"]["samples"] == sum(row["samples"] for row in windows) > 0
    assert oct(path.stat().st_mode) == oct(Path(f"{path}.windows.json").stat().st_mode)


def test_split(sonde, report, steps, tmp_path):
    path = tmp_path / "run.pftrace"
    done = record(sonde, steps(), path, "--split")
    assert not path.exists()
    assert "2 windows, each in its own file" in done.stderr and "sonde report" in done.stderr
    listed = manifest(path)
    assert [row["file"] for row in listed["windows"]] == ["run.w1.pftrace", "run.w2.pftrace"]
    for number, (told, first_step) in enumerate(zip(listed["windows"], (2, 7)), 1):
        part = report(tmp_path / told["file"])
        (window,) = part["windows"]["rows"]
        assert (window["number"], window["first_step"]) == (number, first_step)
        assert window["duration_ns"] == part["totals"]["duration_ns"]
        assert part["totals"]["samples"] == part["losses"]["samples_lost"] + window["samples"] > 0
        assert part["losses"]["recording_complete"] is True
        assert any("recording that was split" in note for note in part["notes"])
        (range,) = part["ranges"]["rows"]
        assert (range["name"], range["count"]) == ("body", 3)
        functions = {row["name"]: row for row in part["tables"]["function"]["rows"]}
        assert functions["<module>"]["total_share"] > 0.9  # names are there, though they come at a capture's end
        assert sonde("report", "--window", str(number), tmp_path / told["file"]).status == 0


def test_split_without_windows(sonde, steps, tmp_path):
    done = sonde("record", "--split", "-o", tmp_path / "run.pftrace", "--", *steps())
    assert done.status != 0 and "--split" in done.stderr and "--window" in done.stderr, str(done)
    assert not (tmp_path / "run.pftrace").exists()


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_ends_in_an_open_window(sonde, report, steps, tmp_path, kill):
    """Killed: what was flushed is there, and the manifest does not know the end; ^C: all of it."""
    path = tmp_path / "run.pftrace"
    program = sonde.start("record", "--window", "steps:wait=0,active=100000", "-o", path, "--", *steps(100000))
    while not Path(f"{path}.windows.json").exists() or not manifest(path)["windows"]:
        assert program.poll() is None
        time.sleep(0.05)
    size = path.stat().st_size
    while path.stat().st_size < size + 2000:  # what was recorded in the window reaches the file
        assert program.poll() is None
        time.sleep(0.05)
    program.send_signal(kill)
    program.wait()
    data = report(path)
    (window,) = data["windows"]["rows"]
    (told,) = manifest(path)["windows"]
    if kill == signal.SIGINT:  # the program ends first, and sonde is told that it has
        assert window["closed_by"] == told["closed_by"] == "leader-ended"
        assert manifest(path)["recording_ended"] is True
        return
    os.kill(window["leader_pid"], signal.SIGKILL)
    assert window["closed_by"] == "collector-gone" and window["samples"] > 0
    assert told["closed_by"] is None and told["end_unix_time_ns"] is None
    assert manifest(path)["recording_ended"] is False
