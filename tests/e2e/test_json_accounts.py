# SPDX-License-Identifier: Apache-2.0
"""What programs read of a recording: record --json, and top --json."""

import json
import os

import pytest

needs_bpf = pytest.mark.skipif(os.geteuid() != 0, reason="waiting threads are sampled by BPF, which needs root")


def test_the_account_as_json(sonde, workload, report, tmp_path):
    capture, account = tmp_path / "a.pftrace", tmp_path / "account.json"
    done = sonde("record", "-q", "--json", account, "-o", capture, "--", *workload("threads", 1), check=0)
    assert str(account) in done.stderr
    data = json.loads(account.read_text())
    assert data["format"] == "sonde-record" and data["version"] == 1
    assert data["error"] is None and data["exit_status"] == 0
    assert data["capture"] == str(capture) and data["capture_bytes"] == capture.stat().st_size
    document = report(capture)
    assert data["samples"] == document["totals"]["samples_in_capture"] > 0
    assert data["samples_lost"] == document["losses"]["samples_lost"]
    assert data["stacks_by_end"] == document["completeness"]["samples_by_stop"]
    assert data["collector_cpu_ns"] == document["overhead"]["collector_cpu_ns"]
    assert data["collector_start_cpu_ns"] == document["overhead"]["collector_start_cpu_ns"] > 0
    assert data["collector_end_cpu_ns"] == document["overhead"]["collector_end_cpu_ns"] > 0
    assert data["notes"] == document["notes"]


def test_the_account_on_standard_output(sonde, tmp_path):
    done = sonde("record", "--json", "-", "-o", tmp_path / "a.pftrace", "--", "sh", "-c", "exit 3", check=3)
    assert json.loads(done.stdout)["exit_status"] == 3
    assert "next: " in done.stderr


def test_a_recording_that_fails_says_so(sonde, tmp_path):
    capture = tmp_path / "a.pftrace"
    capture.write_text("earlier")
    done = sonde("record", "--json", "-", "-o", capture, "--", tmp_path / "nothing", check=127)
    data = json.loads(done.stdout)
    assert "command not found" in data["error"] and data["error"] in done.stderr
    assert data["capture_bytes"] is None and data["mode"] is None


def test_an_account_that_cannot_be_written(sonde, tmp_path):
    done = sonde("record", "-q", "--json", tmp_path / "no" / "a.json", "-o", tmp_path / "a.pftrace", "--", "true", check=1)
    assert "cannot write" in done.stderr and "a.json" in done.stderr


@needs_bpf
@pytest.mark.parametrize("by", ["function", "thread", "stack"])
def test_intervals_as_lines_of_json(sonde, workload, by):
    done = sonde("top", "--json", "-n", "2", "-i", "0.5", "--by", by, "--", *workload("threads", 10), check=0)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 2
    for line in lines:
        assert line["format"] == "sonde-top" and line["by"] == by and line["rows"]
    assert lines[1]["window_ns"] > lines[0]["window_ns"] > 0
    assert sum(row["self_share"] for row in lines[1]["rows"]) == pytest.approx(1, abs=0.01)
    if by == "function":
        assert any(row["name"] == "thread_spin" for row in lines[1]["rows"])
