# SPDX-License-Identifier: Apache-2.0
"""sonde import: logs of vLLM as captures. The logs in import-logs have the form of releases 0.6 and 0.20."""

import os
import shutil
from pathlib import Path

import pytest

LOGS = Path(__file__).parent / "import-logs"


@pytest.fixture
def imported(sonde, report, tmp_path):
    """imported(log name) -> (ranges by name, the whole report)"""

    def run(name, modified=None):
        log = tmp_path / name
        shutil.copy(LOGS / name, log)
        if modified:
            os.utime(log, (modified, modified))
        capture = tmp_path / "out.pftrace"
        sonde("import", "--format", "vllm-log", "-o", capture, log, check=0, env={"TZ": "UTC"})
        whole = report(capture)
        return {row["name"]: row for row in whole["ranges"]["rows"]}, whole

    return run


def test_iterations_and_requests(imported):
    ranges, whole = imported("vllm-0.20.log")
    assert ranges["iteration: prefill"]["count"] == ranges["iteration: mixed"]["count"] == 1
    assert ranges["iteration: decode"]["count"] == 2
    assert ranges["iteration: decode"]["total_ns"] == 21_000_000  # durations are the log's
    assert ranges["request"]["count"] == 2
    assert sorted((ranges["request"]["minimum_ns"], ranges["request"]["maximum_ns"])) == [3_000_000_000, 4_000_000_000]
    assert ranges["queued"]["count"] == 2
    counters = {row["name"]: row["last"] for row in whole["counters"]}
    assert counters["KV cache %"] == 3.1 and counters["waiting requests"] == 0
    assert whole["totals"]["processes_in_capture"] == 2


def test_what_the_log_does_not_say_is_said(imported):
    """ProfileMate 14: times of 1 s are called that, and no end of a request is guessed."""
    ranges, whole = imported("vllm-0.20.log")
    notes = " ".join(whole["notes"])
    assert "whole seconds" in notes
    assert "1 of 3 requests have no end" in notes
    assert ranges["request without an end"]["count"] == 1
    assert "1 ends are of requests" in notes
    assert "1 lines have no time" in notes


def test_milliseconds_and_the_old_form(imported):
    ranges, whole = imported("vllm-0.6-milliseconds.log")
    assert ranges["request"]["total_ns"] == 6_000_000_000
    assert ranges["queued"]["total_ns"] == 250_000_000
    assert ranges["metrics"]["count"] == 1
    assert "whole seconds" not in str(whole)


def test_the_year_is_that_of_the_file(sonde, report, tmp_path):
    """ProfileMate 14: no year is fixed in the program."""
    for new_year in (1767225600, 1798761600):  # of 2026, 2027
        log = tmp_path / "year.log"
        log.write_text("INFO 12-31 23:59:59 [async_llm.py:283] Added request a.\n")
        os.utime(log, (new_year + 10, new_year + 10))
        sonde("import", "-f", "vllm-log", "-o", tmp_path / "year.pftrace", log, check=0, env={"TZ": "UTC"})
        began = report(tmp_path / "year.pftrace")["session"]["start_unix_time_ns"]
        assert began == (new_year - 1) * 1_000_000_000


@pytest.mark.parametrize("text", ["", "no log\n", "INFO 11-21 13:24:53 [api_server.py:1] started\n"])
def test_a_file_without_anything(sonde, tmp_path, text):
    log = tmp_path / "x.log"
    log.write_text(text)
    done = sonde("import", "--format", "vllm-log", log)
    assert done.status == 1
    assert "--enable-log-requests" in done.stderr
    assert not (tmp_path / "x.pftrace").exists()


def test_default_output_and_refusals(sonde, tmp_path):
    log = tmp_path / "server.log"
    shutil.copy(LOGS / "vllm-0.6-milliseconds.log", log)
    sonde("import", "--format", "vllm-log", log, check=0)
    assert (tmp_path / "server.pftrace").exists()
    assert sonde("import", log).status == 2
    same = sonde("import", "--format", "vllm-log", "-o", log, log)
    assert same.status == 1 and "over itself" in same.stderr
    assert "Added request" in log.read_text()
    missing = sonde("import", "--format", "vllm-log", tmp_path / "none.log")
    assert missing.status == 1 and "none.log" in missing.stderr
