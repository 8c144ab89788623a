# SPDX-License-Identifier: Apache-2.0
"""Continuous recording: windows that are captures by themselves, in a folder of bounded size, whatever happens."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

NAME = re.compile(r"^[A-Za-z0-9_-]+-\d{8}T\d{6}Z-(\d{6})\.pftrace$")


def windows(folder):
    """Complete windows, oldest first."""
    found = [path for path in folder.iterdir() if NAME.match(path.name)]
    return sorted(found, key=lambda path: int(NAME.match(path.name)[1]))


def wait_for(what, timeout=240):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "windows"


@pytest.fixture
def record(sonde, folder, workload):
    """record(*options, command=…) -> what was printed; windows of a second unless said otherwise."""

    def run(*options, command=None, check=0, **more):
        command = command or workload("spin", 4)
        return sonde("record", "--continuous", "--every", "1s", "-o", folder, *options, "--", *command, check=check, **more)

    return run


def test_windows_follow_one_another_without_a_gap(record, report, folder):
    done = record("-F", "499")
    made = windows(folder)
    assert len(made) >= 4 and len(list(folder.iterdir())) == len(made) + 1  # and the lock
    data = [report(path) for path in made]
    for one, next_one in zip(data, data[1:]):
        begin, length = one["session"]["start_unix_time_ns"], one["totals"]["duration_ns"]
        assert length == 1_000_000_000
        assert abs(next_one["session"]["start_unix_time_ns"] - begin - length) < 1_000_000, "but for the clock's slewing"
    assert all(one["losses"]["recording_complete"] for one in data)
    samples = [one["totals"]["samples"] for one in data]
    assert all(samples[:4])
    printed = int(re.search(r"sonde: ([\d,]+) samples in", done.stderr)[1].replace(",", ""))
    assert sum(samples) == printed, "each sample is in one window"
    assert f"sonde: {len(made)} windows of 1.00 s" in done.stderr


def test_each_window_has_names_processes_and_the_session(record, report, folder):
    record("-F", "499", "--wait", "exact")
    for path in windows(folder)[:4]:
        data = report(path)
        assert "spin_half" in {row["name"] for row in data["tables"]["function"]["rows"]}
        assert "spin" in {row["name"] for row in data["tables"]["process"]["rows"]}
        assert "spin" in data["session"]["command"] and data["session"]["host"]


def test_ranges_that_are_open_at_a_boundary_are_in_both_windows(record, report, folder, workload, tmp_path):
    program = tmp_path / "ranges.py"
    program.write_text(
        "import sonde, time\n"
        "with sonde.range('everything'):\n"
        "    for i in range(40):\n"
        "        with sonde.range('one'):\n"
        "            time.sleep(0.1)\n"
    )
    record("--hooks", "none", command=["python3", program], env=python_path())
    made = windows(folder)
    assert len(made) >= 4
    counts = []
    for path in made[:-1]:
        rows = {row["name"]: row for row in report(path)["ranges"]["rows"]}
        counts.append(rows["one"]["count"])
        assert rows["everything"]["count"] == 1
    assert all(counts)
    middle = {row["name"]: row for row in report(made[1])["ranges"]["rows"]}
    assert middle["everything"]["total_ns"] >= 999_000_000, "from its begin to its end"


def python_path():
    """Where the package `sonde` is, as it was built."""
    build = os.path.dirname(os.environ.get("SONDE", "build/sonde"))
    return {"PYTHONPATH": os.path.abspath(os.path.join(build, "python"))}


def test_the_oldest_go_first(record, report, folder):
    done = record("--keep", "2")
    made = windows(folder)
    assert len(made) == 2
    last = int(NAME.match(made[-1].name)[1])
    assert [int(NAME.match(path.name)[1]) for path in made] == [last - 1, last]
    assert f"{last - 2} old ones were removed (--keep)" in done.stderr


def test_a_bound_in_bytes(record, folder):
    record("--keep", "40K", "-F", "999", "--uncompressed")
    size = sum(path.stat().st_size for path in windows(folder))
    assert size <= 40 * 1024


# As an image's ENTRYPOINT is, whose default actions of signals the kernel leaves out.
PROCESS_1 = ("unshare", "--pid", "--mount-proc", "--fork", "--kill-child")


def children(process):
    return [int(pid) for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()]


@pytest.mark.skipif(os.geteuid() != 0, reason="the whole machine needs root")
@pytest.mark.parametrize("number, prefix", [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGTERM, PROCESS_1)],
                         ids=["ctrl-c", "sigterm", "sigterm-to-process-1"])
def test_a_signal_ends_it_with_the_last_window_complete(sonde, report, folder, number, prefix):
    process = sonde.start("record", "-a", "--continuous", "--every", "1s", "-o", folder, prefix=prefix)
    wait_for(lambda: folder.exists() and len(windows(folder)) >= 2)
    os.kill(children(process)[0] if prefix else process.pid, number)
    assert process.wait(240) == 0
    assert not list(folder.glob("*.open.pftrace"))
    assert all(report(path)["losses"]["recording_complete"] for path in windows(folder))


def test_attached(sonde, report, folder, start_workload):
    running = start_workload("spin", 60)
    sonde("record", "-p", running.pid, "--continuous", "--every", "1s", "-d", "3", "-o", folder, check=0)
    made = windows(folder)
    assert len(made) >= 3
    assert sum(report(path)["totals"]["samples"] for path in made) > 0


def test_a_recorder_that_was_killed_leaves_captures_and_the_next_one_goes_on(sonde, record, report, folder, workload):
    process = sonde.start("record", "--continuous", "--every", "1s", "-o", folder, "--", *workload("spin", 60))
    wait_for(lambda: folder.exists() and windows(folder))
    process.kill()
    process.wait()
    before = {path.name for path in folder.glob("*.pftrace")}
    for path in folder.glob("*.pftrace"):
        report(path)  # valid as it is
    done = record()
    assert "of a recorder that was killed" in done.stderr
    names = [path.name for path in windows(folder)]
    assert {name.replace(".open", "") for name in before} <= set(names)
    numbers = [int(NAME.match(name)[1]) for name in names]
    assert numbers == sorted(set(numbers)), "no number twice"


def test_two_recorders_on_one_folder(sonde, folder, workload):
    first = sonde.start("record", "--continuous", "-o", folder, "--", *workload("spin", 60))
    wait_for(lambda: list(folder.glob("*.open.pftrace")) if folder.exists() else None)
    second = sonde("record", "--continuous", "-o", folder, "--", *workload("spin", 1), check=1)
    assert "belongs to another `sonde record --continuous` that is running" in second.stderr
    assert first.poll() is None


def test_a_folder_that_vanishes_and_comes_back(sonde, report, folder, workload, tmp_path):
    process = sonde.start("record", "--continuous", "--every", "1s", "-o", folder, "--", *workload("spin", 60))
    wait_for(lambda: folder.exists() and windows(folder))
    folder.rename(tmp_path / "moved")
    shutil.rmtree(tmp_path / "moved")
    message = process.stderr.readline()
    assert f"the folder {folder} is gone" in message and "make it again" in message
    folder.mkdir()
    assert "windows can be written again" in process.stderr.readline()
    path = wait_for(lambda: windows(folder))[0]
    report(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_fills_up_in_a_window(sonde, report, workload, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=True)
    try:
        folder, ballast = disk / "windows", disk / "ballast"
        process = sonde.start("record", "--continuous", "--every", "1s", "-F", "999", "-o", folder,
                              "--", *workload("spin", 60))
        wait_for(lambda: folder.exists() and windows(folder))
        with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError):
            while file.write(bytes(4096)):  # all that is left
                pass
        assert "No space left on device" in process.stderr.readline()
        ballast.unlink()
        assert "windows can be written again" in process.stderr.readline()
        for path in windows(folder):
            report(path)
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGINT)
        assert "could not be written whole" in process.stderr.read()
        process.wait(30)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_links_in_the_folder_are_left_alone(record, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder.mkdir()
    links = [folder / "host-20200101T000000Z-000001.pftrace", folder / "host-20200101T000000Z-000002.open.pftrace"]
    for link in links:
        link.symlink_to(outside)
    record("--keep", "1")
    assert all(link.is_symlink() for link in links) and outside.read_text() == "mine"
    lock = folder / ".sonde-lock"
    lock.unlink()
    lock.symlink_to(outside)
    done = record(check=1)
    assert "cannot make" in done.stderr and outside.read_text() == "mine"


def test_a_clock_that_jumps_back_does_not_change_the_order(record, folder):
    folder.mkdir()
    future = folder / "host-29990101T000000Z-000041.pftrace"
    future.write_bytes(b"")
    record("--keep", "3")
    assert not future.exists(), "the oldest is the one with the lowest number"
    assert all(int(NAME.match(path.name)[1]) > 41 for path in windows(folder))


@pytest.mark.parametrize("options, sentence", [
    (["--every", "0s"], "--every 0s is not a time"),
    (["--every", "25h"], "--every 25h is not a time"),
    (["--every", "1x"], "--every 1x is not a time"),
    (["--keep", "0"], "--keep 0 is neither"),
    (["--keep", "1X"], "--keep 1X is neither"),
    (["--keep", "-1"], "--keep -1 is neither"),
    (["--split"], "--split needs windows"),
    (["--window", "manual"], "exclude each other"),
])
def test_options_that_are_wrong(record, folder, options, sentence):
    done = record(*options, check=None)
    assert done.status != 0 and sentence in done.stderr and not folder.exists()
