# SPDX-License-Identifier: Apache-2.0
"""What report, export and diff make of a capture with windows: tests/golden/windows-2-*, whose second did not end."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = [ROOT / "tests/golden" / f"windows-2-{kind}.pftrace" for kind in ("plain", "deflated")]
WHOLE = ROOT / "tests/golden/capture-2-plain.pftrace"


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
        assert done.status != 0 and "is no choice of windows" in done.stderr, str(done)
        assert len(done.stderr.splitlines()) == 1, str(done)


def test_choice_of_what_is_not_there(sonde):
    done = sonde("report", "--window", "1,7", CAPTURES[0])
    assert done.status != 0 and "--window 7" in done.stderr and "has 2 windows" in done.stderr, str(done)
    done = sonde("report", "--window", "1", WHOLE)
    assert done.status != 0 and "recorded as a whole" in done.stderr and "--time" in done.stderr, str(done)


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
    assert slices["window 1"]["dur"] == 0.2 and slices["window 1"]["args"]["opened_by"] == "steps"
    assert slices["the second"]["args"]["number"] == 2
    steps = [event for event in trace if event["name"] == "step"]
    assert [event["args"]["number"] for event in steps] == [3, 4, 9]
    assert {event["pid"] for event in steps} == {500}
    of_one = json.loads(export(sonde, capture, "chrome", "--window", "1"))["traceEvents"]
    assert {event["name"] for event in of_one if event["ph"] == "X"} >= {"window 1", "step"}
    assert "the second" not in {event["name"] for event in of_one}
    for form, samples in (("folded", "[no stack] {}\n"), ("csv", ",{},")):
        assert samples.format(2) in export(sonde, capture, form)
        assert samples.format(1) in export(sonde, capture, form, "--window", "2")
    profile = json.loads(export(sonde, capture, "speedscope", "--window", "2"))["profiles"]
    assert [len(one["samples"]) for one in profile] == [1]
    assert "291 ns recorded" in export(sonde, capture, "flamegraph")
    assert "91 ns recorded" in export(sonde, capture, "flamegraph", "--window", "2")


def test_diff(sonde, capture):
    done = sonde("diff", "--json", "--window", "1", capture, capture, check=0).json()
    assert done["before"]["samples"] == done["after"]["samples"] == 1
    assert done["before"]["duration_ns"] == 200
