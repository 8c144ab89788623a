# SPDX-License-Identifier: Apache-2.0
"""Waiting threads: how long, for what, and where.

Programs say how long they waited by their own clocks and the kernel's account of each thread, so that the truth is known on
a busy machine, too. Where waits are sampled, sonde may look late: by as much as it waited for a CPU itself.
"""

import os
import re
import signal
import time
from dataclasses import dataclass

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


@dataclass
class Recorded:
    stdout: str
    late_s: float  # how long sonde's event loop could have run and did not
    data: dict  # the report

    @property
    def part(self):
        return self.data["waiting"]

    def waited(self):
        """What the program measured: {function: seconds}."""
        times = {}
        for function, seconds in re.findall(r"^waited (\S+) ([\d.]+)$", self.stdout, re.MULTILINE):
            times[function] = times.get(function, 0) + float(seconds)
        return times


def waited_for_a_cpu(pid):
    """Seconds; None: it has ended, or the kernel does not count them."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return None


@pytest.fixture
def recorded(sonde, tmp_path):
    """recorded(command, *options) -> Recorded"""

    def run(*command, options=(), env=None):
        capture, printed = tmp_path / "waiting.pftrace", tmp_path / "printed"
        with printed.open("w") as stdout:
            process = sonde.start("record", "-q", *options, "-o", capture, "--", *command, env=env, stdout=stdout)
        late_s = 0
        while process.poll() is None:
            late_s = waited_for_a_cpu(process.pid) or late_s
            time.sleep(0.02)
        assert process.returncode == 0, process.stderr.read()
        return Recorded(printed.read_text(), late_s, sonde("report", "--json", capture, check=0).json())

    return run


@pytest.fixture
def waiting(recorded):
    """waiting(command, *options) -> the report's waiting part, the report"""

    def run(*command, options=(), env=None):
        data = recorded(*command, options=options, env=env).data
        return data["waiting"], data

    return run


def by_function(part):
    times = {}
    for row in part["rows"]:
        key = (row["function"], row["reason"])
        times[key] = times.get(key, 0) + row["time_ns"] / 1e9
    return times


def assert_waited(run, mode, reasons, times):
    """For each function and reason as long as the program says, within 5 %, or 2 % where measured."""
    options, _, near = mode
    truth, late_s = run.waited(), run.late_s if options[1] == "sample" else 0
    assert run.part["mode"] == options[1] and set(truth) == set(reasons)
    for function, reason in reasons.items():
        allowed = near * truth[function] + late_s
        assert times.get((function, reason), 0) == pytest.approx(truth[function], abs=allowed), (truth, times, late_s)


REASONS = {
    "sleep_for": "sleep",  # twice: the main thread sleeps, too
    "wait_for_lock": "lock",
    "wait_for_pipe": "pipe",
    "wait_for_socket": "socket",
    "wait_in_poll": "poll",
}


@every_mode
def test_known_waits_are_found(recorded, workload, mode):
    """Sleep, lock, pipe, socket and poll, each in a thread of its own."""
    run = recorded(*workload("waits", SECONDS), options=mode[0], env=mode[1])
    assert all(seconds > 0.9 * SECONDS for seconds in run.waited().values()), run.stdout
    assert_waited(run, mode, REASONS, by_function(run.part))
    assert run.data["losses"]["samples_lost"] == 0


@every_mode
def test_waits_in_calls_are_named(recorded, workload, mode):
    run = recorded(*workload("wait_calls", SECONDS), options=mode[0], env=mode[1])
    part = run.part
    reasons = {
        "wait_in_flock": "file_lock",
        "wait_in_fcntl": "file_lock",
        "wait_in_vfork": "child",
        "wait_for_signal": "other",
    }
    assert_waited(run, mode, reasons, by_function(part))
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


def test_tables_weighed_by_waiting(sonde, tmp_path, workload, recorded):
    """CPU time, waiting and both: shares are of the time, samples are not counted, totals stay those of the CPU."""
    run = recorded(*workload("waits", 2))
    capture, cpu = tmp_path / "waiting.pftrace", run.data
    slept = sum(row["time_ns"] for row in cpu["waiting"]["rows"] if row["reason"] == "poll")
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
        assert poll["self_time_ns"] == slept
        assert slept / 1e9 == pytest.approx(run.waited()["wait_in_poll"], abs=0.1 + run.late_s)
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


def test_many_switches_cost_little(recorded, workload):
    """1,000 threads that sleep 20 times a second: looked at 10 times a second, unwound as far as the budget goes."""
    run = recorded(*workload("switches", 3, 1000, 20))
    seconds = run.data["totals"]["duration_ns"] / 1e9
    threads = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in os.listdir("/proc") if pid.isdigit() and os.path.exists(f"/proc/{pid}/task"))
    looks = run.data["overhead"]["wait_run_count"]
    assert 1000 < looks <= (10 * seconds + 3) * (1000 + 2 * threads)
    slept, runnable, ran = map(float, re.search(r"slept \d+ (\S+) runnable (\S+) ran (\S+)", run.stdout).groups())
    waited = run.part["time_ns"] / 1e9
    assert waited == pytest.approx(slept + runnable, rel=0.15), "nearly all of the threads' time"


def test_off(waiting, workload):
    part, _ = waiting(*workload("waits", 0.5), options=("--wait", "off"))
    assert part is None


def wait_until_asleep(pid):
    """All threads of it, which go to sleep once."""
    states = {"R"}
    while states != {"S"}:
        time.sleep(0.02)
        folder = f"/proc/{pid}/task"
        states = {open(f"{folder}/{tid}/stat").read().rsplit(")", 1)[1].split()[0] for tid in os.listdir(folder)}


@every_mode
def test_attached(sonde, start_workload, tmp_path, mode):
    """All waits began before the recording and end after it: each counts for as long as it was recorded."""
    options, env, _ = mode
    running = start_workload("waits", 6000)
    wait_until_asleep(running.pid)
    capture = tmp_path / "attached.pftrace"
    sonde("record", "-q", *options, "-d", 1, "-o", capture, "-p", running.pid, check=0, env=env)
    data = sonde("report", "--json", capture, check=0).json()
    part, recorded_ns = data["waiting"], data["totals"]["duration_ns"]
    assert recorded_ns >= 1e9
    for (function, reason), times in {(name, why): 1 + (name == "sleep_for") for name, why in REASONS.items()}.items():
        (row,) = [row for row in part["rows"] if row["function"] == function]
        if options[1] == "exact":
            assert (row["waits"], row["open_waits"]) == (times, times), row
        assert row["reason"] == reason
        assert row["time_ns"] == pytest.approx(times * recorded_ns, abs=1), "to the nanosecond"
    assert part["open_waits"] == (6 if options[1] == "exact" else None)


@pytest.mark.parametrize("how, says", [("sample", "sampled 10 times a second"), ("exact", "measured exactly")])
def test_the_report_shows_it(sonde, workload, tmp_path, how, says):
    capture = tmp_path / "shown.pftrace"
    sonde("record", "-q", "--wait", how, "-o", capture, "--", *workload("waits", 1), check=0)
    text = sonde("report", capture, check=0).stdout
    assert "Waiting (" in text and "wait_for_pipe" in text and "a pipe" in text
    assert says in text


@exact_modes
def test_short_waits_are_counted(recorded, sonde, workload, tmp_path, mode):
    """10 threads that sleep for 10 ms each time, all shorter than the given minimum: no stacks, no time missing."""
    options, env, _ = mode
    command = workload("switches", 2, 10, 100)
    run = recorded(*command, options=(*options, "--wait-min", 500000), env=env)
    part = run.part
    short = {row["reason"]: row for row in part["rows"] if not row["stack_taken"]}
    assert not any(row["function"] == "sleep_often" for row in part["rows"]), part["rows"]
    times, slept, runnable, _ = map(float, re.search(r"slept (\d+) (\S+) runnable (\S+) ran (\S+)", run.stdout).groups())
    assert short["sleep"]["waits"] == pytest.approx(times, rel=0.02, abs=10), (run.stdout, short)
    asleep = short["sleep"]["time_ns"]
    assert asleep / 1e9 == pytest.approx(slept, rel=0.02), (run.stdout, short)
    # The kernel's count has what each of the ten waited for a CPU before its first sleep, too.
    assert sum(row["time_ns"] for row in part["rows"] if row["reason"] == "cpu") / 1e9 >= 0.95 * runnable - 0.05, (run.stdout, part)
    assert part["waits_without_stack"] >= short["sleep"]["waits"]
    assert part["time_without_stack_ns"] >= asleep
    text = sonde("report", tmp_path / "waiting.pftrace", check=0).stdout
    assert "were shorter than 500 ms" in text and "[counted: no stack]" in text


def test_every_wait_has_its_stack(recorded, workload):
    run = recorded(*workload("switches", 2, 10, 100), options=("--wait", "exact", "--wait-min", 0))
    rows = [row for row in run.part["rows"] if row["reason"] == "sleep"]
    slept, times = sum(row["waits"] for row in rows), int(re.search(r"slept (\d+)", run.stdout)[1])
    assert slept == pytest.approx(times, rel=0.02, abs=10) and all(row["stack_taken"] for row in rows), (run.stdout, rows)
    # The first stacks may be cut, before the tables of libc are there.
    assert sum(row["waits"] for row in rows if row["function"] == "sleep_often") > 0.8 * times, rows
    assert run.data["losses"]["samples_lost"] == 0


@exact_modes
def test_waits_that_are_open_at_the_end(recorded, workload, mode):
    options, env, _ = mode
    # On a busy machine the recording may end later.
    run = recorded(*workload("waits", 8), options=(*options, "-d", 2), env=env)
    assert run.part["open_waits"] == 6, run.part
    times, ends = by_function(run.part), run.data["totals"]["duration_ns"] / 1e9
    begins = dict(re.findall(r"^began (\S+) (\S+)$", run.stdout, re.MULTILINE))
    # Of one thread to another: by how much later it began.
    for function in ("wait_for_lock", "wait_for_socket", "wait_in_poll"):
        later = float(begins[function]) - float(begins["wait_for_pipe"])
        waited = times["wait_for_pipe", "pipe"] - later
        assert times.get((function, REASONS[function]), 0) == pytest.approx(waited, abs=0.05), (times, run.stdout)
        assert 0.3 < waited <= ends, (times, run.stdout)


def test_a_busy_cpu_is_told_apart(recorded, workload):
    """More threads that compute than CPUs: they wait for nothing but a CPU."""
    run = recorded(*workload("crowd", 2, 4 * os.cpu_count()), options=("--wait", "exact"))
    assert run.part["time_by_reason_ns"]["cpu"] > 0
    # Every one of the threads' moments is in one of the two.
    accounted = (run.part["time_ns"] + run.data["totals"]["cpu_time_ns"]) / 1e9
    least, most = map(float, re.search(r"lived (\S+) to (\S+)", run.stdout).groups())
    assert 0.95 * least <= accounted <= 1.05 * most, (run.stdout, run.data["totals"])


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


def test_exports_with_waiting(sonde, workload, recorded, tmp_path):
    """Running and waiting in one picture; the reason is the innermost frame."""
    run, capture = recorded(*workload("waits", 1)), tmp_path / "waiting.pftrace"

    def folded(weight):
        done = sonde("export", "-f", "folded", "--weight", weight, "-o", "-", capture, check=0)
        lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        return {stack: int(count) / 1e9 for stack, count in lines}

    waits, wall = folded("wait"), folded("wall")
    pipe = sum(time for stack, time in waits.items() if "wait_for_pipe" in stack and "[waiting: pipe]" in stack)
    assert pipe == pytest.approx(run.waited()["wait_for_pipe"], abs=0.1 + run.late_s)
    assert sum(wall.values()) >= sum(waits.values()) == pytest.approx(run.part["time_ns"] / 1e9, rel=0.001)
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
    known = sum(time for (_, holder), time in pairs.items() if holder)
    assert other > 0.5 * known > 0, pairs
