# SPDX-License-Identifier: Apache-2.0
"""Every view of a recording honours every filter, or names the one that it cannot honour."""

import json

import pytest

# Two processes, each with samples, a range, a mark, steps, a counter and tokens of its own names.
PROGRAM = """
import os, sys, time
import sonde

def child(number):
    exec("\\n" * number + f"def spin{number}(until):\\n while time.thread_time() < until: pass")  # a line of its own
    spin = locals()[f"spin{number}"]
    for step in range(4):
        with sonde.range(f"range{number}"):
            spin(time.thread_time() + 0.15)
            sonde.mark(f"mark{number}")
            sonde.counter(f"counter{number}", step)
            sonde.token(step, request=f"request{number}")
        sonde.step(f"step{number}")

if len(sys.argv) > 1:
    child(int(sys.argv[1]))
else:
    children = [os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, str(i)]) for i in range(2)]
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    print(*children)
"""

WORDS = ["spin", "range", "mark", "counter", "request", "step"]
FILTERS = {
    "--process": "fits no process", "--thread": "fits no thread", "--time": "900..901", "--range": "fits no range",
    "--symbol": "fits no symbol", "--window": "7", "--step": "900"
}
BY = ["function", "module", "line", "process", "thread", "cpu", "cgroup", "stack", "class", "gil", "rank", "counter",
      "expert", "kernel", "graph", "layer", "memory", "phase", "range", "request", "run", "step", "token", "wait",
      "window"]
WEIGHTS = ["cpu", "wait", "wall", "gpu", "gpu-idle", "gpu-bytes", "cpu+gpu"]
FORMATS = ["folded", "flamegraph", "speedscope", "firefox", "pprof", "chrome", "chakra", "pftrace", "csv", "json", "jsonl",
           "perf-script", "vllm-csv"]
VIEWS = [["report"], ["report", "--json"]]
VIEWS += [["report", "--by", by] for by in BY]
VIEWS += [["report", "--weight", weight] for weight in WEIGHTS]
VIEWS += [["export", "-f", name, "-o"] for name in FORMATS]


@pytest.fixture
def recording(sonde, sonde_path, tmp_path):
    """The capture, and the two pids. Each step takes longer than sonde needs to read Python's file on a busy machine."""
    program, capture = tmp_path / "program.py", tmp_path / "filters.pftrace"
    program.write_text(PROGRAM)
    done = sonde("record", "--energy", "off", "-F", 499, "-o", capture, "--", "/usr/bin/python3", program, check=0,
                 env={"PYTHONPATH": str(sonde_path.parent / "python")})
    return capture, list(map(int, done.stdout.split()))


def shown_in(text, number):
    return [word for word in WORDS if f"{word}{number}" in text]


def test_all_pairs_of_view_and_filter(recording, sonde, tmp_path):
    """A filter that nothing fits: nothing is shown, or the filter is refused by its name."""
    capture, _ = recording
    wrong = []
    for view in VIEWS:
        out = [tmp_path / "out"] if view[0] == "export" else []
        for option, value in FILTERS.items():
            done = sonde(*view, *out, option, value, capture)
            if done.status:
                fine = f"{option} does not apply to" in done.stderr or option == "--window" and "windows" in done.stderr
                fine = fine or "no allocation of a device's memory was recorded" in done.stderr
                fine = fine or option == "--step" and "there is no such step; there are 1 to" in done.stderr
            else:
                written = out[0].read_bytes().decode(errors="replace") if out else ""
                if "speedscope" in view:  # whose table has the frames of all samples
                    written = json.dumps({**json.loads(written), "shared": None})
                fine = not shown_in(done.stdout + written, 0) and option not in ("--window", "--step")
            if not fine:
                wrong.append((*view, option, done.stdout[-300:], done.stderr[-300:]))
    assert not wrong


def test_one_of_two_processes(recording, sonde, report):
    capture, (first, second) = recording
    assert shown_in(json.dumps(report(capture)), 1) == WORDS
    data = report(capture, "--process", first)
    text = json.dumps(data)
    assert shown_in(text, 0) == WORDS and not shown_in(text, 1) and data["left_out"] == []
    for view in ("range", "step", "counter", "token"):
        out = sonde("report", "--by", view, "--process", second, capture, check=0).stdout
        assert shown_in(out, 1) and not shown_in(out, 0), out


def test_what_a_filter_does_not_apply_to_is_named(recording, sonde, report):
    capture, _ = recording
    out = sonde("report", "--symbol", "^spin0$", capture, check=0).stdout
    assert "Left out, because a filter does not apply to them: ranges (--symbol), steps (--symbol), counters" in out
    assert not [word for word in ("range0", "step0", "counter0") if word in out] and "spin0" in out
    data = report(capture, "--symbol", "^spin0$")
    assert data["left_out"] == ["ranges", "steps", "counters"]
    assert data["ranges"] is None and data["steps"] is None and data["counters"] is None
    refused = sonde("report", "--by", "step", "--symbol", "spin0", capture)
    assert refused.status == 2 and "--symbol does not apply to steps: leave it out" in refused.stderr
    done = sonde("export", "-f", "jsonl", "-o", "-", "--symbol", "spin0", capture, check=0)
    assert "Left out" in done.stderr and "range0" not in done.stdout


def test_times_and_ranges_select_steps(recording, report):
    capture, (first, _) = recording
    whole = report(capture, "--process", first)
    steps = whole["steps"]["slowest"]
    assert len(steps) == 3  # the fourth is cut off by the end
    begins = sorted((step["begin_ns"], step["duration_ns"]) for step in steps)
    middle = (begins[1][0] + begins[1][1] / 2) / 1e9
    data = report(capture, "--process", first, "--time", f"{middle:.6f}..{middle:.6f}")
    assert [step["begin_ns"] for step in data["steps"]["slowest"]] == [begins[1][0]]
    assert data["ranges"]["ranges"] == 1
    data = report(capture, "--range", "^range0$")
    assert {row["name"] for row in data["ranges"]["rows"]} >= {"range0"} and not shown_in(json.dumps(data["ranges"]), 1)


def test_steps_select_what_ran_in_them(recording, sonde, report):
    capture, (first, _) = recording
    whole, part = report(capture), report(capture, "--step", "2")
    assert [row["count"] for row in part["steps"]["rows"]] == [1, 1], "one of each process"
    assert {step["number"] for step in part["steps"]["slowest"]} == {2}
    assert 0 < part["totals"]["samples"] < whole["totals"]["samples"] / 2
    assert part["ranges"]["rows"] and all(row["count"] < 4 for row in part["ranges"]["rows"])
    both = report(capture, "--step", "2-3", "--process", first)
    assert [row["count"] for row in both["steps"]["rows"]] == [2] and not shown_in(json.dumps(both["ranges"]), 1)
    folded = sonde("export", "-f", "folded", "-o", "-", "--step", "2", capture, check=0).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == part["totals"]["samples"]
