# SPDX-License-Identifier: Apache-2.0
"""sonde report --regress: the exit status of a comparison with a baseline. Captures come from logs, so that every
duration is known."""

import pytest


@pytest.fixture
def capture(sonde, tmp_path):
    """capture(name, durations in ms) -> a capture with iterations that take so long"""

    def make(name, durations):
        lines = [
            f"INFO 2026-03-01 10:00:{i:02d}.000 [core.py:381] Iteration({i}): 0 context requests, 0 context tokens, "
            f"1 generation requests, 1 generation tokens, iteration elapsed time: {duration:.2f} ms"
            for i, duration in enumerate(durations)
        ]
        log = tmp_path / f"{name}.log"
        log.write_text("\n".join(lines) + "\n")
        sonde("import", "--format", "vllm-log", log, check=0)
        return tmp_path / f"{name}.pftrace"

    return make


def test_exit_status_and_table(sonde, capture):
    """In place of ProfileMate's check_regression.py."""
    before = capture("before", [10 + i % 3 for i in range(20)])
    after = capture("after", [13 + i % 3 for i in range(20)])
    done = sonde("report", "--regress", before, after)
    assert done.status == 1
    assert "slower" in done.stdout and "iteration: decode" in done.stdout
    assert "1 of 1 got slower" in done.stderr and "+27.3 %" in done.stderr
    assert sonde("report", "--regress", before, "--threshold", 30, after).status == 0
    assert sonde("report", "--regress", before, before).status == 0
    faster = sonde("report", "--regress", after, before, check=0)
    assert "faster" in faster.stdout


def test_noise_is_no_regression(sonde, capture):
    before = capture("before", [5 + i for i in range(20)])
    after = capture("after", [8 + i for i in range(20)])
    done = sonde("report", "--regress", before, after, check=0)
    assert "noise" in done.stdout


def test_json(sonde, capture):
    before = capture("before", [10] * 20)
    after = capture("after", [20] * 20)
    done = sonde("report", "--regress", before, "--json", after, check=1)
    data = done.json()
    assert (data["format"], data["slower"], data["threshold_percent"]) == ("sonde-regress", 1, 10)
    assert data["version"] == 2
    (row,) = data["rows"]
    assert (row["kind"], row["verdict"], row["change_percent"]) == ("range", "slower", 100)
    assert (data["judged"], data["blocks"]) == (1, 5)
    assert (data["noise_false_alarm_rate"], data["run_false_alarm_rate"]) == (0.01, 0.5)
    assert (data["baselines"], data["captures"]) == ([str(before)], [str(after)])
    known = {key: value for key, value in row["after"].items() if value is not None}
    assert known == {"count": 20, "median_ns": 20_000_000, "low_ns": 20_000_000, "high_ns": 20_000_000}


def test_several_recordings_know_how_runs_differ(sonde, capture):
    """One against one cannot tell a slow run from a slower program, and says so; several can."""
    quick = [capture(f"quick{i}", [10 + j % 3 for j in range(20)]) for i in range(3)]
    slow = [capture(f"slow{i}", [14 + j % 3 for j in range(20)]) for i in range(4)]
    one = sonde("report", "--regress", quick[0], slow[0])
    assert one.status == 1
    text = " ".join(one.stdout.split())
    assert "1 against 1 fail once in 2" in text and "Give more recordings" in text
    mixed = sonde("report", "--regress", quick[0], "--regress", slow[0], slow[1], slow[2], slow[3], check=0)
    assert "noise" in mixed.stdout
    all_slower = sonde("report", *(word for path in quick for word in ("--regress", path)), *slow)
    assert all_slower.status == 1
    text = " ".join(all_slower.stdout.split())
    assert "slow0.pftrace and 3 more against" in text and "fail once in 35" in text


def test_few_values_do_not_fail_a_build(sonde, capture):
    done = sonde("report", "--regress", capture("before", [10] * 19), capture("after", [20] * 19), check=0)
    assert "too_few" in done.stdout and "fewer than 20 values" in " ".join(done.stdout.split())


def test_nothing_in_common(sonde, capture, tmp_path):
    log = tmp_path / "requests.log"
    log.write_text("INFO 2026-03-01 10:00:00.000 [a.py:1] Added request a.\n")
    sonde("import", "--format", "vllm-log", log, check=0)
    done = sonde("report", "--regress", capture("before", [10]), tmp_path / "requests.pftrace")
    assert done.status == 1 and "nothing in common" in done.stderr


def test_wrong_use(sonde, capture):
    before = capture("before", [10])
    assert sonde("report", "--threshold", 5, before).status == 2
    missing = sonde("report", "--regress", "none.pftrace", before)
    assert missing.status == 1 and "none.pftrace" in missing.stderr
