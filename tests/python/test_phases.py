# SPDX-License-Identifier: Apache-2.0
"""sonde.phase: what each figure is, and what is not known is None."""

import os
import threading
import time

import pytest
import sonde
from sonde import phase_times


@pytest.fixture(autouse=True)
def anew():
    phase_times._begin_anew()


def the(name):
    return next(row for row in sonde.phases() if row.name == name)


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_wall_and_cpu_time_are_told_apart():
    with sonde.phase("train"):
        burn(0.05)
    with sonde.phase("sleep"):
        time.sleep(0.05)
    train, sleep = the("train"), the("sleep")
    assert train.cpu_ns >= 50e6 and train.wall_ns >= train.cpu_ns and train.gil_hold_max_ns == train.cpu_ns
    assert sleep.wall_ns >= 50e6 > sleep.cpu_ns and sleep.cpu_share < 0.5
    assert sleep.gil_wait_max_ns == sleep.wall_ns - sleep.cpu_ns


def test_a_known_wait_is_no_wait_for_the_lock():
    with sonde.phase("outer"):
        with sonde.phase("load"):
            with sonde.waiting("data"), sonde.waiting("disk"):
                time.sleep(0.05)
    for name in ("outer", "load"):
        assert 50e6 <= the(name).known_wait_ns <= the(name).wall_ns
        assert the(name).gil_wait_max_ns < 25e6


def test_what_is_not_known_is_none_and_not_0():
    """Defect by design rule: a starvation ratio of 0 would say that the device was always busy."""
    with sonde.phase("train"):
        pass
    row = the("train")
    assert row.gpu_starvation is None and row.device_busy_ns is None and row.device_wall_ns is None
    assert row.as_dict()["gpu_starvation"] is None
    assert sonde.phases().table().splitlines()[1].split()[-1] == "-"


def test_starvation_is_one_less_the_union_of_device_work_in_the_window():
    """A sum of overlapping kernels would say that a device was busier than the time that went by."""
    phase_times.watch_device()
    second, now = 10**9, time.monotonic_ns()
    # Two occurrences of a second each; the second one is known to its half only.
    phase_times._add("train", occurrence(now), now + second, 0)
    phase_times._add("train", occurrence(now + second), now + 2 * second, 0)
    offset = time.time_ns() - time.monotonic_ns()
    begin = now + offset
    busy = [(begin + second // 4, begin + second // 2), (begin + second // 4, begin + second // 2)]
    busy += [(begin + second * 3 // 8, begin + second * 5 // 8), (begin + 3 * second, begin + 4 * second)]
    phase_times.add_device_work(busy, (begin, begin + 3 * second // 2))
    row = the("train")
    assert row.occurrences == 2
    assert row.device_wall_ns == pytest.approx(1.5 * second, abs=1e6)
    assert row.device_busy_ns == pytest.approx(second * 3 / 8, abs=1e6)
    assert row.gpu_starvation == pytest.approx(0.75, abs=0.01)


def occurrence(begin):
    made = phase_times._Occurrence(None)
    made.wall_ns = begin
    return made


def test_a_device_that_never_worked_is_wholly_starved():
    phase_times.watch_device()
    begin = time.time_ns()
    with sonde.phase("train"):
        time.sleep(0.001)
        phase_times.add_device_work([], (begin, time.time_ns()))
    assert the("train").gpu_starvation == 1


def test_occurrences_that_were_dropped_are_counted(monkeypatch):
    phase_times.watch_device()
    for _ in range(phase_times._OCCURRENCES_MAX + 3):
        phase_times._add("p", occurrence(0), 1, 0)
    assert sonde.phases().occurrences_dropped == 3


def test_exceptions_threads_recursion_and_one_object_used_twice():
    marked = sonde.phase("shared")

    @marked
    def recurse(depth):
        return recurse(depth - 1) if depth else 7

    def thread():
        for _ in range(100):
            with marked:
                pass

    threads = [threading.Thread(target=thread) for _ in range(4)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert recurse(3) == 7 and recurse.__name__ == "recurse"
    with pytest.raises(KeyError):
        with marked:
            raise KeyError
    assert the("shared").occurrences == 405
    assert not phase_times._state.open.stack


def test_reset_begins_anew_and_the_table_is_in_order():
    begin = time.monotonic()
    with sonde.phase("short"):
        time.sleep(0.001)
    most = time.monotonic() - begin
    with sonde.phase("long"):
        begin = time.monotonic()
        while time.monotonic() <= begin + most:
            time.sleep(0.001)
    report = sonde.phases(reset=True)
    assert [row.name for row in report] == ["long", "short"]
    assert [line.split()[0] for line in str(report).splitlines()] == ["phase", "long", "short"]
    assert {row["name"] for row in report.as_dicts()} == {"long", "short"}
    assert sonde.phases() == []


def test_a_forked_child_begins_with_nothing():
    read, write = os.pipe()
    with sonde.phase("parent"):
        pid = os.fork()
        if pid == 0:
            with sonde.phase("child"):
                pass
            os.write(write, ",".join(row.name for row in sonde.phases()).encode())
            os._exit(0)
        os.waitpid(pid, 0)
    assert os.read(read, 100) == b"child"
    assert [row.name for row in sonde.phases()] == ["parent"]
