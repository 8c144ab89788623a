# SPDX-License-Identifier: Apache-2.0
"""What can go wrong while recording, made to go wrong."""

import os
import re
import signal
import subprocess
import time

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="sampling by BPF needs root")


def one_sentence(done):
    """The message is one line that begins with the program's name."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("sonde: ")
    return lines[0]


def wait_for_size(path, size, timeout=20):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if path.exists() and path.stat().st_size >= size:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} did not grow to {size} bytes")


def child_of(pid, name, timeout=10):
    """The pid of the child with this comm."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                children = open(f"/proc/{pid}/task/{task}/children").read().split()
            except FileNotFoundError:
                continue
            for child in children:
                if open(f"/proc/{child}/comm").read().strip() == name:
                    return int(child)
        time.sleep(0.05)
    raise AssertionError(f"{pid} has no child {name}")


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_target_killed(sonde, report, workload, tmp_path):
    capture = tmp_path / "killed.pftrace"
    process = sonde.start("record", "-o", capture, "--", *workload("spin", 60))
    target = child_of(process.pid, "spin")
    time.sleep(1)
    os.kill(target, signal.SIGKILL)
    assert process.wait(30) == 128 + signal.SIGKILL
    data = report(capture)
    assert data["totals"]["samples"] > 10
    assert data["losses"]["recording_complete"]


def test_collector_killed_leaves_the_target_and_a_capture(sonde, report, workload, tmp_path):
    capture = tmp_path / "prefix.pftrace"
    process = sonde.start("record", "-o", capture, "--", *workload("spin", 6))
    target = child_of(process.pid, "spin")
    begin = time.monotonic()
    time.sleep(3)
    process.kill()
    recorded_s = time.monotonic() - begin
    process.wait()
    assert alive(target), "the target runs on unharmed"
    data = report(capture)
    assert not data["losses"]["recording_complete"]
    assert "spin_half" in {row["name"] for row in data["tables"]["function"]["rows"]}
    # Up to the last flush: at most a second is missing (and the time a busy machine takes to start sampling).
    assert data["totals"]["duration_ns"] / 1e9 > recorded_s - 2.0
    while alive(target):
        time.sleep(0.1)


def test_interrupt_ends_cleanly(sonde, report, workload, tmp_path):
    capture = tmp_path / "interrupted.pftrace"
    process = sonde.start("record", "-o", capture, "--", *workload("spin", 60))
    target = child_of(process.pid, "spin")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 128 + signal.SIGINT, "the command got the signal, its status is ours"
    assert not alive(target)
    assert report(capture)["losses"]["recording_complete"]


@needs_root
def test_interrupt_while_attached_leaves_the_target(sonde, report, start_workload, tmp_path):
    running = start_workload("spin", 20)
    capture = tmp_path / "attached.pftrace"
    process = sonde.start("record", "-o", capture, "-p", running.pid)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert running.process.poll() is None
    assert report(capture)["totals"]["samples"] > 10


@needs_root
def test_disk_full(sonde, tmp_path, workload):
    """One clear error, the target runs on, what was written reads."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", mount], check=True)
    try:
        capture = mount / "full.pftrace"
        script = "; ".join([" ".join(workload("spin", 4)), "echo the target ended"])
        done = sonde("record", "--uncompressed", "-F", 1999, "-o", capture, "--", "sh", "-c", script)
        assert "the target ended" in done.stdout
        assert done.status == 1
        sentences = [line for line in done.stderr.splitlines() if line.startswith("sonde: ")]
        assert len(sentences) == 1, done.stderr
        assert str(capture) in sentences[0] and "space" in sentences[0].lower()
        data = sonde("report", "--json", capture, check=0).json()
        assert data["totals"]["samples"] > 10
    finally:
        subprocess.run(["umount", mount], check=True)


def test_output_directory_missing(sonde, tmp_path):
    marker = tmp_path / "started"
    done = sonde("record", "-o", tmp_path / "no" / "such" / "x.pftrace", "--", "touch", marker, check=1)
    assert "no/such" in one_sentence(done)
    assert not marker.exists(), "it is said before the target starts"


def test_output_not_writable(sonde_unprivileged):
    marker = sonde_unprivileged.directory / "started"
    done = sonde_unprivileged("record", "-o", "/proc/x.pftrace", "--", "touch", marker, check=1)
    one_sentence(done)
    assert not marker.exists()


def test_command_not_found(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "x.pftrace", "--", "no-such-command-anywhere", check=127)
    assert "not found" in one_sentence(done)


def test_command_not_executable(sonde, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    done = sonde("record", "-o", tmp_path / "x.pftrace", "--", plain, check=126)
    assert "chmod" in one_sentence(done)


def test_process_gone(sonde, tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = sonde("record", "-o", tmp_path / "x.pftrace", "-p", gone.pid, check=1)
    assert f"process {gone.pid}" in one_sentence(done)


def test_nothing_to_record(sonde):
    done = sonde("record", check=2)
    assert "nothing to record" in done.stderr


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("count", [10000])
def test_many_short_lived_processes(sonde, report, workload, tmp_path, count):
    capture = tmp_path / "swarm.pftrace"
    done = sonde("record", "-o", capture, "--", *workload("swarm", 1, count), check=0, timeout=300)
    assert f"processes {count}" in done.stdout
    data = report(capture, "--limit", 100000)
    assert data["losses"]["samples_lost"] == 0
    assert [place for place in data["losses"]["places"] if place["where"] == "sample_ring"] == []
    assert data["totals"]["processes_in_capture"] > 50
    assert data["completeness"]["complete_share"] > 0.75
    assert data["overhead"]["collector_peak_rss_bytes"] < 150e6


@pytest.mark.slow
@needs_root
def test_five_thousand_threads(sonde, report, workload, tmp_path):
    capture = tmp_path / "crowd.pftrace"
    done = sonde("record", "-o", capture, "--", *workload("crowd", 4, 5000), check=0, timeout=300)
    assert "threads 5000" in done.stdout
    data = report(capture, "--limit", 100000)
    assert data["totals"]["threads_in_capture"] > 50
    assert data["losses"]["samples_lost"] == 0
    assert data["completeness"]["complete_share"] > 0.93
    assert data["overhead"]["collector_peak_rss_bytes"] < 150e6


@needs_root
def test_binary_replaced_while_it_runs(sonde, report, workload, tmp_path):
    """The stacks are those of the file that runs, not of the one that now has its name."""
    program = tmp_path / "program"
    program.write_bytes(open(workload("spin")[0], "rb").read())
    program.chmod(0o755)
    running = subprocess.Popen([program, "8"], stdout=subprocess.PIPE)
    running.stdout.readline()
    replacement = tmp_path / "replacement"
    replacement.write_bytes(open(workload("threads")[0], "rb").read())
    replacement.rename(program)
    capture = tmp_path / "replaced.pftrace"
    sonde("record", "-F", 999, "-d", 2, "-o", capture, "-p", running.pid, check=0)
    running.kill()
    running.communicate()
    data = report(capture)
    rows = {row["name"]: row for row in data["tables"]["function"]["rows"]}
    assert rows["spin_half"]["self_share"] == pytest.approx(0.5, abs=0.15)
    assert data["completeness"]["complete_share"] > 0.93


@needs_root
def test_no_cache_directory(sonde, report, workload, tmp_path):
    capture = tmp_path / "uncached.pftrace"
    environment = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    sonde("record", "-o", capture, "--", *workload("spin", 1), env=environment, check=0)
    assert report(capture)["completeness"]["complete_share"] > 0.9


def wreck(kind, good):
    if kind == "empty":
        return b""
    if kind == "text":
        return b"this is no capture at all\n" * 20
    if kind == "elf":
        return open("/bin/true", "rb").read()
    if kind == "json":
        return b'{"what": ["no trace"]}'
    if kind == "zeros":
        return b"\0" * 4096
    middle = len(good) // 2
    return good[:middle] + b"\xff" * 64 + good[middle + 64 :]


@pytest.fixture(scope="module")
def good_capture(sonde_path, workload_directory, tmp_path_factory):
    capture = tmp_path_factory.mktemp("good") / "good.pftrace"
    subprocess.run(
        [sonde_path, "record", "-q", "--uncompressed", "-o", capture, "--", workload_directory / "spin", "1"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return capture


@pytest.mark.parametrize("command", ["report", "export", "diff"])
@pytest.mark.parametrize("kind", ["empty", "text", "elf", "json", "zeros"])
def test_foreign_files(sonde, tmp_path, command, kind):
    bad = tmp_path / "bad.pftrace"
    bad.write_bytes(wreck(kind, b""))
    arguments = {"report": [bad], "export": ["-f", "folded", bad], "diff": [bad, bad]}[command]
    sentence = one_sentence(sonde(command, *arguments, check=1))
    assert "bad.pftrace" in sentence
    assert kind in ("empty", "json") or re.search(r"offset \d+", sentence), sentence


@pytest.mark.parametrize("command", ["report", "export", "diff"])
def test_corrupt_middle(sonde, tmp_path, command, good_capture):
    bad = tmp_path / "bad.pftrace"
    bad.write_bytes(wreck("middle", good_capture.read_bytes()))
    arguments = {"report": [bad], "export": ["-f", "folded", "-o", "-", bad], "diff": [bad, bad]}[command]
    done = sonde(command, *arguments)
    assert done.status in (0, 1)
    if done.status == 1:
        assert re.search(r"offset \d+", one_sentence(done))


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9, 0.999])
def test_truncated_capture_reads_up_to_the_cut(sonde, tmp_path, good_capture, part):
    whole = good_capture.read_bytes()
    cut = tmp_path / "cut.pftrace"
    cut.write_bytes(whole[: int(len(whole) * part)])
    data = sonde("report", "--json", cut, check=0).json()
    assert data["capture"]["truncated_at_byte"] is not None or data["capture"]["bytes"] <= len(whole)
    at = data["capture"]["truncated_at_byte"]
    assert (f"is cut off after {at} bytes" in sonde("report", cut, check=0).stderr) == (at is not None)


@pytest.mark.parametrize("command", ["report", "export", "diff"])
def test_missing_file(sonde, command):
    arguments = {"report": ["gone.pftrace"], "export": ["-f", "folded", "gone.pftrace"], "diff": ["gone.pftrace"] * 2}
    assert "gone.pftrace" in one_sentence(sonde(command, *arguments[command], check=1))
