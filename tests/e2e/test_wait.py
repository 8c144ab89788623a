# SPDX-License-Identifier: Apache-2.0
"""Waiting threads: how long, for what, and where."""

import os
import signal
import time

import pytest
from test_python import PYTHONS, each_python

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="waiting is recorded by BPF, which needs root")

SECONDS = 3
# How waiting is recorded: options, environment, how near times are. The last is what kernels before 6.18 do.
AT_SWITCH = {"SONDE_WAIT_AT_SWITCH": "1"}
MODES = {
    "sample": (("--wait", "sample"), {}, 0.05),
    "exact": (("--wait", "exact"), {}, 0.02),
    "exact-at-switch": (("--wait", "exact"), AT_SWITCH, 0.02),
}
EXACT = {name: mode for name, mode in MODES.items() if name != "sample"}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
exact_modes = pytest.mark.parametrize("mode", EXACT.values(), ids=EXACT.keys())


@pytest.fixture
def waiting(sonde, tmp_path):
    """waiting(command, *options) -> the report's waiting part, the report"""

    def run(*command, options=(), env=None):
        capture = tmp_path / "waiting.pftrace"
        sonde("record", "-q", *options, "-o", capture, "--", *command, check=0, env=env)
        data = sonde("report", "--json", capture, check=0).json()
        return data["waiting"], data

    return run


def by_function(part):
    times = {}
    for row in part["rows"]:
        key = (row["function"], row["reason"])
        times[key] = times.get(key, 0) + row["time_ns"] / 1e9
    return times


@pytest.mark.alone
@every_mode
def test_known_waits_are_found(waiting, workload, mode):
    """Sleep, lock, pipe, socket and poll, each in a thread of its own, within 5 %, or 2 % where measured."""
    options, env, near = mode
    part, data = waiting(*workload("waits", SECONDS), options=options, env=env)
    times = by_function(part)
    assert part["mode"] == options[1]
    # The main thread sleeps as long.
    assert times.get(("sleep_for", "sleep"), 0) == pytest.approx(2 * SECONDS, rel=near), times
    for function, reason in {
        "wait_for_lock": "lock",
        "wait_for_pipe": "pipe",
        "wait_for_socket": "socket",
        "wait_in_poll": "poll",
    }.items():
        assert times.get((function, reason), 0) == pytest.approx(SECONDS, rel=near), times
    assert data["losses"]["samples_lost"] == 0


@every_mode
def test_waits_in_calls_are_named(waiting, workload, mode):
    options, env, _ = mode
    part, _ = waiting(*workload("wait_calls", SECONDS), options=options, env=env)
    times = by_function(part)
    for function, reason in {
        "wait_in_flock": "file_lock",
        "wait_in_fcntl": "file_lock",
        "wait_in_vfork": "child",
        "wait_for_signal": "other",
    }.items():
        assert times.get((function, reason), 0) >= 0.9 * SECONDS, times
    calls = {row["function"]: row["system_call"] for row in part["rows"] if row["reason"] == "other"}
    assert calls["wait_for_signal"] == "rt_sigtimedwait"
    # It may wait for a CPU as well.
    uninterruptible = [row for row in part["rows"] if row["function"] == "wait_in_membarrier" and row["reason"] != "cpu"]
    if os.cpu_count() > 1:
        assert {(row["reason"], row["system_call"]) for row in uninterruptible} == {("unknown", "membarrier")}


@every_mode
def test_waiting_is_no_cpu_time(waiting, workload, mode):
    _, data = waiting(*workload("waits", 1), options=mode[0], env=mode[1])
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


def test_off(waiting, workload):
    part, _ = waiting(*workload("waits", 0.5), options=("--wait", "off"))
    assert part is None


@every_mode
def test_attached(sonde, start_workload, tmp_path, mode):
    """All waits began before the recording and end after it: each counts for as long as it was recorded."""
    options, env, _ = mode
    running = start_workload("waits", 30)
    capture = tmp_path / "attached.pftrace"
    sonde("record", "-q", *options, "-d", 1, "-o", capture, "-p", running.pid, check=0, env=env)
    data = sonde("report", "--json", capture, check=0).json()
    part = data["waiting"]
    if options[1] == "sample":
        # It counts from before its program is loaded, which takes long on a busy machine.
        assert 0.85e9 <= part["time_by_reason_ns"]["pipe"] <= 2e9
        return
    times = by_function(part)
    recorded = data["totals"]["duration_ns"] / 1e9
    for function in ("wait_for_lock", "wait_for_pipe", "wait_for_socket", "wait_in_poll"):
        (row,) = [row for row in part["rows"] if row["function"] == function]
        assert (row["waits"], row["open_waits"]) == (1, 1), row
        assert row["time_ns"] / 1e9 == pytest.approx(recorded, rel=0.02), times
    assert part["open_waits"] == 6


@pytest.mark.parametrize("how, says", [("sample", "sampled 10 times a second"), ("exact", "measured exactly")])
def test_the_report_shows_it(sonde, workload, tmp_path, how, says):
    capture = tmp_path / "shown.pftrace"
    sonde("record", "-q", "--wait", how, "-o", capture, "--", *workload("waits", 1), check=0)
    text = sonde("report", capture, check=0).stdout
    assert "Waiting (" in text and "wait_for_pipe" in text and "a pipe" in text
    assert says in text


@exact_modes
def test_short_waits_are_counted(waiting, sonde, workload, tmp_path, mode):
    """10 threads that sleep for 10 ms each time, all shorter than the given minimum: no stacks, no time missing."""
    options, env, _ = mode
    command = workload("switches", 2, 10, 100)
    part, data = waiting(*command, options=(*options, "--wait-min", 500000), env=env)
    short = {row["reason"]: row for row in part["rows"] if not row["stack_taken"]}
    assert not any(row["function"] == "sleep_often" for row in part["rows"]), part["rows"]
    # Few wake late; a machine with much to do wakes them later, and fewer times.
    assert 200 <= short["sleep"]["waits"] <= 2100, short
    asleep = short["sleep"]["time_ns"]
    assert asleep >= short["sleep"]["waits"] * 10e6
    runnable = sum(row["time_ns"] for row in part["rows"] if row["reason"] == "cpu")
    ran = data["totals"]["cpu_time_ns"]
    assert (asleep + runnable + ran) / 1e9 == pytest.approx(10 * 2, rel=0.1), part
    assert part["waits_without_stack"] >= short["sleep"]["waits"]
    assert part["time_without_stack_ns"] >= asleep
    text = sonde("report", tmp_path / "waiting.pftrace", check=0).stdout
    assert "were shorter than 500 ms" in text and "[counted: no stack]" in text


def test_every_wait_has_its_stack(waiting, workload):
    part, data = waiting(*workload("switches", 2, 10, 100), options=("--wait", "exact", "--wait-min", 0))
    slept = sum(row["waits"] for row in part["rows"] if row["function"] == "sleep_often" and row["reason"] == "sleep")
    short = sum(row["waits"] for row in part["rows"] if row["reason"] == "sleep" and not row["stack_taken"])
    assert 200 <= slept <= 2100 and not short, part
    assert data["losses"]["samples_lost"] == 0


@exact_modes
def test_waits_that_are_open_at_the_end(waiting, workload, mode):
    options, env, near = mode
    part, data = waiting(*workload("waits", 3), options=(*options, "-d", 1), env=env)
    times = by_function(part)
    assert part["open_waits"] == 6, part
    for function, reason in {"wait_for_pipe": "pipe", "wait_for_lock": "lock", "wait_in_poll": "poll"}.items():
        assert times.get((function, reason), 0) == pytest.approx(1, rel=5 * near), times


def test_a_busy_cpu_is_told_apart(waiting, workload):
    """More threads that compute than CPUs: they wait for nothing but a CPU."""
    part, data = waiting(*workload("crowd", 2, 4 * os.cpu_count()), options=("--wait", "exact"))
    times = part["time_by_reason_ns"]
    assert times["cpu"] > 0
    # Every one of the threads' moments is in one of the two.
    members = 4 * os.cpu_count() + 1
    accounted = (part["time_ns"] + data["totals"]["cpu_time_ns"]) / 1e9
    assert accounted == pytest.approx(members * 2, rel=0.15), data["totals"]


SLEEPS = """
import time
def inner():
    time.sleep(0.1)
def outer():
    for _ in range(9):
        inner()
outer()
"""


@each_python
@exact_modes
def test_python_stacks(sonde, python, tmp_path, mode):
    options, env, _ = mode
    script, capture = tmp_path / "sleeps.py", tmp_path / "sleeps.pftrace"
    script.write_text(SLEEPS)
    sonde("record", "-q", *options, "-o", capture, "--", python, script, check=0, env=env)
    done = sonde("export", "-f", "folded", "--weight", "wait", "-o", "-", capture, check=0)
    slept = 0
    # Before 3.11 Python sleeps in select().
    ends = ("[waiting: sleep]_[k]", "[waiting: poll]_[k]")
    for line in done.stdout.splitlines():
        stack, count = line.rsplit(" ", 1)
        if "<module>" in stack and "outer" in stack and "inner" in stack and stack.endswith(ends):
            assert stack.index("<module>") < stack.index("outer") < stack.index("inner")
            slept += int(count) / 1e9
    # At the switch, the kernel does not run the program for every switch: a note says how often.
    assert slept == pytest.approx(0.9, rel=0.4 if env else 0.05), done.stdout


@exact_modes
def test_killed_while_it_waits(sonde, start_workload, tmp_path, mode):
    options, env, _ = mode
    running = start_workload("waits", 60)
    capture = tmp_path / "killed.pftrace"
    recording = sonde.start("record", "-q", *options, "-o", capture, "-p", running.pid, env=env)
    begin = time.monotonic()
    while not (capture.exists() and capture.stat().st_size):
        assert time.monotonic() - begin < 60, "the recording did not begin"
        time.sleep(0.05)
    time.sleep(2)  # that it waits while it is recorded
    os.kill(running.pid, signal.SIGKILL)
    assert recording.wait(30) == 0
    data = sonde("report", "--json", capture, check=0).json()
    times = by_function(data["waiting"])
    assert data["losses"]["recording_complete"]
    recorded = data["totals"]["duration_ns"] / 1e9
    assert 0.5 < times.get(("wait_for_pipe", "pipe"), 0) <= recorded, times
    assert times["wait_for_pipe", "pipe"] == pytest.approx(times["wait_for_socket", "socket"], rel=0.02)
    assert not data["waiting"]["open_waits"]


EXEC = """
import os, sys, threading, time
def sleep(seconds):
    begin = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - begin
if sys.argv[1:]:
    print(sleep(0.6) + float(sys.argv[1]))
    sys.exit()
begins = []
def wait_for_exec():
    begins.append(time.monotonic())
    time.sleep(60)
threading.Thread(target=wait_for_exec).start()
slept = sleep(0.4)
slept += time.monotonic() - begins[0]
os.execv(sys.executable, [sys.executable, __file__, str(slept)])
"""


@exact_modes
def test_exec_while_a_thread_waits(sonde, tmp_path, mode):
    """exec ends the other thread's wait; the program that it starts sleeps as long as it says."""
    options, env, _ = mode
    script, capture = tmp_path / "exec.py", tmp_path / "exec.pftrace"
    script.write_text(EXEC)
    command = (next(iter(PYTHONS.values())), script)
    done = sonde("record", "-q", *options, "-o", capture, "--", *command, check=0, env=env)
    data = sonde("report", "--json", capture, check=0).json()
    # 0.4 s of both threads, 0.6 s of the new program, and what a busy machine adds to each.
    slept, reasons = float(done.stdout), data["waiting"]["time_by_reason_ns"]
    assert slept > 1.4
    # Between the sum and the wait's end the thread that calls exec may wait for a CPU.
    assert 0.95 * slept < reasons["sleep"] / 1e9 < 1.05 * slept + reasons["cpu"] / 1e9, reasons
    assert data["losses"]["recording_complete"]


@pytest.mark.parametrize("how", ["sample", "exact"])
def test_user_mode_says_that_it_cannot(waiting, workload, how):
    part, data = waiting(*workload("spin", 1), options=("--mode", "user", "--wait", how))
    assert part is None
    assert any("waiting threads are not recorded" in note for note in data["notes"])


def test_exports_with_waiting(sonde, workload, tmp_path):
    """Running and waiting in one picture; the reason is the innermost frame."""
    capture = tmp_path / "shown.pftrace"
    sonde("record", "-q", "-o", capture, "--", *workload("waits", 1), check=0)

    def folded(weight):
        done = sonde("export", "-f", "folded", "--weight", weight, "-o", "-", capture, check=0)
        lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        return {stack: int(count) / 1e9 for stack, count in lines}

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


@pytest.mark.parametrize("how", ["sample", "exact"])
@each_python
def test_who_held_the_interpreter_lock(waiting, python, tmp_path, how):
    """Two threads that compute: each waits about half of the time, while the other holds the lock."""
    script = tmp_path / "lock.py"
    script.write_text(GIL)
    part, data = waiting(python, script, options=("-F", 499, "--wait", how))
    assert part["time_by_reason_ns"]["gil"] > 0.3e9, part["time_by_reason_ns"]
    # A list comprehension is a function of its own before 3.12.
    pairs = {}
    for row in part["gil_holders"]:
        assert row["has_holder"] or row["holder_function"] is None
        names = [(row[key] or "").split(".")[0] for key in ("waiter_function", "holder_function")]
        names = tuple("victim" if name in ("victim", "<listcomp>") else name for name in names)
        pairs[names] = pairs.get(names, 0) + row["time_ns"]
    other = pairs.get(("victim", "hog"), 0) + pairs.get(("hog", "victim"), 0)
    # On a busy machine the holder has not always a sample near enough.
    assert other > 0.4 * sum(pairs.values()), pairs
