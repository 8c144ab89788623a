# SPDX-License-Identifier: Apache-2.0
"""Recordings without an end: killed, on a full disk, joined with others. The report, JSON and exports say so."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from test_faults import wait_for_size

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def killed(sonde, workload, tmp_path):
    """The capture of a recording that SIGKILL ended after its second flush."""
    path = tmp_path / "killed.pftrace"
    process = sonde.start("record", "-F", 499, "-o", path, "--", *workload("spin", 5))
    wait_for_size(path, 1)
    for _ in range(2):
        wait_for_size(path, path.stat().st_size + 1)
    process.kill()
    process.wait()
    return path


@pytest.fixture
def ended(sonde, workload, tmp_path):
    path = tmp_path / "ended.pftrace"
    sonde("record", "-q", "-o", path, "--", *workload("spin", 0.3), check=0)
    return path


def check_cut_off(sonde, report, path):
    text = sonde("report", path, check=0).stdout
    found = re.search(r"The recording was cut off at ([0-9.]+) s", " ".join(text.split()))
    assert found, text
    assert "Lost samples: none." not in text
    data = report(path)
    assert data["capture"]["recordings_cut_off"] == 1
    assert abs(data["capture"]["cut_off_ns"] / 1e9 - float(found[1])) < 0.01
    assert data["notes"][0].startswith("The recording was cut off at ")
    assert not (data["losses"] or {}).get("recording_complete")
    exported = sonde("export", "-f", "folded", "-o", "-", path, check=0)
    assert "was cut off at" in exported.stderr
    return float(found[1])


def test_killed(sonde, report, killed):
    seconds = check_cut_off(sonde, report, killed)
    samples = report(killed)["totals"]["samples"]
    assert samples and seconds > 0


def test_one_that_ended(sonde, report, ended):
    assert "cut off" not in sonde("report", ended, check=0).stdout
    assert report(ended)["capture"]["recordings_cut_off"] == 0
    assert report(ended)["capture"]["cut_off_ns"] is None


@pytest.mark.parametrize("name", ["capture-1-deflated", "capture-2-plain", "device-1-plain", "device-2-deflated"])
def test_captures_of_older_versions(report, name):
    assert report(GOLDEN / f"{name}.pftrace")["capture"]["recordings_cut_off"] == 0


def test_every_cut_of_the_file(sonde, report, ended, tmp_path):
    whole = ended.read_bytes()
    part = tmp_path / "part.pftrace"
    part.write_bytes(whole[:-1])
    check_cut_off(sonde, report, part)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_full_disk(sonde, report, workload, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        path = disk / "full.pftrace"
        done = sonde("record", "-F", 4999, "--uncompressed", "-o", path, "--", *workload("spin", 2))
        assert done.status == 1 and "No space left on device" in done.stderr, done
        check_cut_off(sonde, report, path)
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("killed_is_first", [True, False])
def test_joined(sonde, report, killed, ended, tmp_path, killed_is_first):
    joined = tmp_path / "joined.pftrace"
    parts = [killed, ended] if killed_is_first else [ended, killed]
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    data = report(joined)
    assert (data["capture"]["recordings"], data["capture"]["recordings_cut_off"]) == (2, 1)
    assert data["capture"]["cut_off_ns"] == report(killed)["capture"]["cut_off_ns"]
    assert data["notes"][0].startswith("Of 2 recordings 1 was cut off at ")


def test_parts_of_a_split(sonde, report, workload, tmp_path):
    """Each window's file is complete, although it ends before the recording did."""
    path = tmp_path / "run.pftrace"
    sonde("record", "-q", "--split", "--window", "time:100ms..300ms", "-o", path, "--", *workload("spin", 0.6), check=0)
    parts = sorted(tmp_path.glob("run.w*.pftrace"))
    assert parts
    for part in parts:
        assert report(part)["capture"]["recordings_cut_off"] == 0
