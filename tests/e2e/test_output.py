# SPDX-License-Identifier: Apache-2.0
"""Where output goes: private captures, and folders in which another user left links, files and pipes."""

import grp
import os
import signal
import stat

import pytest
from forbidden import forbidden

from test_faults import wait_for_size

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user's files are made by root for him")
NOBODY = 65534


def plant_link(path, target, user=NOBODY):
    path.symlink_to(target)
    os.chown(path, user, -1, follow_symlinks=False)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def capture(sonde, workload, tmp_path):
    path = tmp_path / "own.pftrace"
    sonde("record", "-q", "-o", path, "--", *workload("spin", 0.3), check=0)
    return path


def test_a_capture_is_private(sonde, report, capture):
    assert mode(capture) == 0o600
    os.chmod(capture, 0o644)
    sonde("record", "-q", "-o", capture, "--", "true", check=0)
    assert mode(capture) == 0o600
    assert [path.name for path in capture.parent.iterdir() if path.name.startswith("own.")] == ["own.pftrace"]


@needs_root
def test_a_capture_for_a_group(sonde, workload, tmp_path):
    group = grp.getgrall()[-1]
    path = tmp_path / "shared.pftrace"
    sonde("record", "-q", "--group", group.gr_name, "-o", path, "--", "true", check=0)
    assert (mode(path), path.stat().st_gid) == (0o640, group.gr_gid)
    sonde("record", "-q", "--group", str(group.gr_gid), "-o", path, "--", "true", check=0)
    assert (mode(path), path.stat().st_gid) == (0o640, group.gr_gid)
    done = sonde("record", "-q", "--group", "no-such-group", "-o", path, "--", "true", check=2)
    assert "there is no group no-such-group" in done.stderr


def test_a_group_of_others(sonde_unprivileged):
    done = sonde_unprivileged("record", "-q", "--group", "0", "-o", "x.pftrace", "--", "true", check=1)
    assert "only to a group that you are in" in done.stderr
    assert not list(sonde_unprivileged.directory.glob("x.pftrace*"))


@needs_root
def test_record_does_not_write_through_what_was_planted(sonde, report, workload, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    planted = tmp_path / "planted"
    planted.mkdir()
    os.chown(planted, NOBODY, -1)
    link, file, pipe = planted / "sonde.pftrace", planted / "file.pftrace", planted / "pipe.pftrace"
    plant_link(link, precious)
    sonde("record", "-q", "--", *workload("spin", 0.3), check=0, cwd=planted)
    assert precious.read_text() == "precious"
    assert not link.is_symlink() and mode(link) == 0o600
    file.write_text("his")
    file.chmod(0o666)
    os.chown(file, NOBODY, -1)
    with open(file) as his:
        sonde("record", "-q", "-o", file, "--", "true", check=0)
        assert his.read() == "his"
    assert (mode(file), file.stat().st_uid) == (0o600, 0)
    os.mkfifo(pipe)
    os.chown(pipe, NOBODY, -1)
    done = sonde("record", "-q", "-o", pipe, "--", "true", check=1)
    assert "it is a pipe that user 65534 made" in done.stderr


@needs_root
@pytest.mark.parametrize("how", ["record", "export", "import", "chakra"])
def test_no_folder_is_another_users_link(sonde, capture, tmp_path, how):
    own = tmp_path / "own"
    own.mkdir()
    link = tmp_path / "link"
    plant_link(link, own)
    trace = tmp_path / "trace.json"
    trace.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    arguments = {
        "record": ["record", "-o", link / "x", "--", "true"],
        "export": ["export", "-f", "folded", "-o", link / "x", capture],
        "import": ["import", "-o", link / "x", trace],
        "chakra": ["export", "-f", "chakra", "-o", link / "x", trace],
    }[how]
    done = sonde(*arguments, check=1)
    assert "link is a link that user 65534 made" in done.stderr, done
    assert not list(own.iterdir())


def test_a_killed_recording_is_under_its_name(sonde, report, workload, tmp_path):
    path = tmp_path / "killed.pftrace"
    path.write_text("the capture before")
    process = sonde.start("record", "-o", path, "--", *workload("spin", 5))
    wait_for_size(path, 1000)
    process.kill()
    process.wait()
    assert mode(path) == 0o600
    assert [entry.name for entry in tmp_path.iterdir() if "killed" in entry.name] == ["killed.pftrace"]
    assert report(path)["totals"]["samples"] >= 0


def test_what_cannot_begin_leaves_the_capture_before(sonde, capture, tmp_path):
    before = capture.read_bytes()
    sonde("record", "-q", "-p", 2**22 + 1, "-o", capture, check=1)
    assert capture.read_bytes() == before


def test_standard_output(sonde, capture, tmp_path):
    expected = sonde("export", "-f", "folded", "-o", "-", capture, check=0).stdout
    assert sonde("export", "-f", "folded", "-o", "/dev/stdout", capture, check=0).stdout == expected
    assert os.path.islink("/dev/stdout")


def test_a_folded_file_that_may_not_be_read(sonde, sonde_unprivileged):
    path = sonde_unprivileged.directory / "root.pftrace"
    sonde("record", "-q", "-o", path, "--", "true", check=0)
    done = sonde_unprivileged("report", path, check=1)
    assert "sudo" in done.stderr and "--group" in done.stderr


RENAMEAT2 = 316 if os.uname().machine == "x86_64" else 276


@pytest.mark.parametrize("how", ["renameat2", "none"])
def test_recordings_at_once_keep_one_anothers_captures(sonde, report, workload, tmp_path, how):
    """NFS, for one, takes no flags of renameat2(2)."""
    prefix = [] if how == "renameat2" else forbidden("EINVAL", RENAMEAT2)
    # They end when all are being recorded.
    started = [sonde.start("record", "-o", "run.pftrace", "--", *workload("spin", 600 + i), prefix=prefix) for i in range(3)]
    captures = [tmp_path / name for name in ("run.pftrace", "run.2.pftrace", "run.3.pftrace")]
    for path in captures:
        wait_for_size(path, 1000)
    for process in started:
        process.send_signal(signal.SIGINT)
    outputs = [process.communicate(timeout=60)[1] for process in started]
    assert {report(path)["session"]["command"].split()[-1] for path in captures} == {"600", "601", "602"}
    for path in captures:
        assert sum(f"next: sonde report {path.name}" in text for text in outputs) == 1, outputs
    assert sum("and is kept: this capture is run." in text for text in outputs) == 2, outputs
    assert sorted(path.name for path in tmp_path.glob("run*")) == sorted(path.name for path in captures)


@pytest.mark.parametrize("options", [["-o", "sonde.pftrace"], []])
def test_a_capture_that_is_being_recorded_is_not_replaced(sonde, report, workload, tmp_path, options):
    path = tmp_path / "sonde.pftrace"
    first = sonde.start("record", "-q", *options, "--", *workload("spin", 600))
    wait_for_size(path, 1000)
    done = sonde("record", "-q", *options, "--", "true", check=0)
    assert "this capture is sonde.2.pftrace" in done.stderr
    first.send_signal(signal.SIGINT)
    first.wait(60)
    assert report(path)["totals"]["samples"] > 0
    sonde("record", "-q", *options, "--", "true", check=0)
    assert report(path)["totals"]["samples"] == 0
    # Of the default name the one before is kept.
    assert (tmp_path / "sonde.pftrace.old").exists() == (not options)


def test_what_cannot_begin_leaves_the_default_name(sonde, tmp_path):
    sonde("record", "-q", "--", "true", check=0)
    before = (tmp_path / "sonde.pftrace").read_bytes()
    sonde("record", "-q", "-p", 2**22 + 1, check=1)
    assert (tmp_path / "sonde.pftrace").read_bytes() == before
