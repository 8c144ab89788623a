# SPDX-License-Identifier: Apache-2.0
"""Waiting threads: how long, for what, and where."""

import os

import pytest
from test_python import PYTHONS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="waiting is recorded by BPF, which needs root")

SECONDS = 3


@pytest.fixture
def waiting(sonde, tmp_path):
    """waiting(command, *options) -> the report's waiting part, the report"""

    def run(*command, options=()):
        capture = tmp_path / "waiting.pftrace"
        sonde("record", "-q", *options, "-o", capture, "--", *command, check=0)
        data = sonde("report", "--json", capture, check=0).json()
        return data["waiting"], data

    return run


def by_function(part):
    times = {}
    for row in part["rows"]:
        key = (row["function"], row["reason"])
        times[key] = times.get(key, 0) + row["time_ns"] / 1e9
    return times


def test_known_waits_are_found(waiting, workload):
    """Sleep, lock, pipe, socket and poll, each in a thread of its own, within 5 %."""
    part, data = waiting(*workload("waits", SECONDS))
    times = by_function(part)
    # The main thread sleeps as long.
    assert times.get(("sleep_for", "sleep"), 0) == pytest.approx(2 * SECONDS, rel=0.05), times
    for function, reason in {
        "wait_for_lock": "lock",
        "wait_for_pipe": "pipe",
        "wait_for_socket": "socket",
        "wait_in_poll": "poll",
    }.items():
        assert times.get((function, reason), 0) == pytest.approx(SECONDS, rel=0.05), times
    assert data["losses"]["samples_lost"] == 0


def test_waiting_is_no_cpu_time(waiting, workload):
    _, data = waiting(*workload("waits", 1))
    assert data["totals"]["cpu_time_ns"] < 0.3e9
    assert data["completeness"]["user_stacks"] <= data["totals"]["samples"]


def test_tables_weighed_by_waiting(sonde, tmp_path, workload):
    """CPU time, waiting and both: shares are of the time, samples are not counted, totals stay those of the CPU."""
    capture = tmp_path / "weighed.pftrace"
    sonde("record", "-q", "-o", capture, "--", *workload("waits", 2), check=0)
    cpu = sonde("report", "--json", capture, check=0).json()
    assert cpu["tables_weight"] == "cpu"
    times = {}
    for weight in ("wait", "wall"):
        data = sonde("report", "--json", "--weight", weight, capture, check=0).json()
        rows = data["tables"]["function"]["rows"]
        assert data["totals"] == cpu["totals"] and data["completeness"] == cpu["completeness"]
        assert data["tables_weight"] == weight
        assert all(row["self_samples"] is None for row in rows)
        times[weight] = sum(row["self_time_ns"] for row in rows)
        poll = next(row for row in rows if row["name"] == "[waiting: poll]")
        assert poll["self_time_ns"] == pytest.approx(2e9, rel=0.05)
        assert next(row for row in rows if row["name"] == "wait_in_poll")["total_time_ns"] >= poll["self_time_ns"]
    assert times["wait"] == pytest.approx(cpu["waiting"]["time_ns"], rel=0.001)
    assert times["wall"] - times["wait"] == pytest.approx(cpu["totals"]["cpu_time_ns"], rel=0.01)
    folded = sonde("export", "-f", "folded", "--weight", "wait", "-o", "-", capture, check=0).stdout
    assert "[waiting: poll]" in folded
    text = sonde("report", "--by", "wait", capture, check=0).stdout
    assert "poll, select, epoll" in text and "Hottest functions" not in text


def test_no_waiting_is_said(sonde, tmp_path):
    capture = tmp_path / "none.pftrace"
    sonde("record", "-q", "--wait", "off", "-o", capture, "--", "true", check=0)
    for options in (["--by", "wait"], ["--weight", "wait"]):
        assert "Waiting was not recorded" in sonde("report", *options, capture, check=0).stdout


def test_many_switches_cost_little(waiting, workload):
    """1,000 threads that sleep 20 times a second: looked at 10 times a second, unwound as far as the budget goes."""
    part, data = waiting(*workload("switches", 3, 1000, 20))
    overhead = data["overhead"]
    # A bound for any machine; docs/benchmarks.md has the figures.
    assert overhead["wait_run_time_ns"] < 0.25 * data["totals"]["duration_ns"]
    waited = part["time_ns"] / 1e9
    assert waited == pytest.approx(3 * 1000, rel=0.15), "nearly all of the threads' time"


def test_off_and_attached(waiting, workload, sonde, start_workload, tmp_path):
    part, _ = waiting(*workload("waits", 0.5), options=("--wait", "off"))
    assert part is None
    running = start_workload("waits", 3)
    capture = tmp_path / "attached.pftrace"
    sonde("record", "-q", "--wait", "sample", "-d", 1, "-o", capture, "-p", running.pid, check=0)
    part = sonde("report", "--json", capture, check=0).json()["waiting"]
    assert part["time_by_reason_ns"]["pipe"] == pytest.approx(1e9, rel=0.15)


def test_the_report_shows_it(sonde, workload, tmp_path):
    capture = tmp_path / "shown.pftrace"
    sonde("record", "-q", "-o", capture, "--", *workload("waits", 1), check=0)
    text = sonde("report", capture, check=0).stdout
    assert "Waiting (" in text and "wait_for_pipe" in text and "a pipe" in text


def test_user_mode_says_that_it_cannot(waiting, workload):
    part, data = waiting(*workload("spin", 1), options=("--mode", "user", "--wait", "sample"))
    assert part is None
    assert any("waiting threads are not recorded" in note for note in data["notes"])


def test_exports_with_waiting(sonde, workload, tmp_path):
    """Running and waiting in one picture; the reason is the innermost frame."""
    capture = tmp_path / "shown.pftrace"
    sonde("record", "-q", "-o", capture, "--", *workload("waits", 1), check=0)

    def folded(weight):
        done = sonde("export", "-f", "folded", "--weight", weight, "-o", "-", capture, check=0)
        lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        return {stack: int(count) * 1e-5 for stack, count in lines}

    waits, wall = folded("wait"), folded("wall")
    pipe = sum(time for stack, time in waits.items() if "wait_for_pipe" in stack and "[waiting: pipe]" in stack)
    assert pipe == pytest.approx(1, rel=0.1)
    assert sum(wall.values()) >= sum(waits.values()) > 4.5
    assert all("[waiting: " in stack for stack in waits)
    graph = sonde("export", "-f", "flamegraph", "--weight", "wall", "-o", "-", capture, check=0).stdout
    assert "running and waiting" in graph and "[waiting: socket]" in graph
    refused = sonde("export", "-f", "chrome", "--weight", "wall", "-o", "-", capture)
    assert refused.status == 2 and "flamegraph" in refused.stderr


GIL = """
import threading, time
end = time.monotonic() + 2
def hog():
    while time.monotonic() < end:
        sum(range(200000))
def victim():
    while time.monotonic() < end:
        [number * number for number in range(300)]
threads = [threading.Thread(target=hog), threading.Thread(target=victim)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_who_held_the_interpreter_lock(waiting, python, tmp_path):
    """Two threads that compute: each waits about half of the time, while the other holds the lock."""
    script = tmp_path / "lock.py"
    script.write_text(GIL)
    part, data = waiting(python, script, options=("-F", 499))
    assert part["time_by_reason_ns"]["gil"] > 0.3e9, part["time_by_reason_ns"]
    # A list comprehension is a function of its own before 3.12.
    pairs = {}
    for row in part["gil_holders"]:
        names = [(row[key] or "").split(".")[0] for key in ("waiter_function", "holder_function")]
        names = tuple("victim" if name in ("victim", "<listcomp>") else name for name in names)
        pairs[names] = pairs.get(names, 0) + row["time_ns"]
    other = pairs.get(("victim", "hog"), 0) + pairs.get(("hog", "victim"), 0)
    assert other > 0.6 * sum(pairs.values()), pairs
