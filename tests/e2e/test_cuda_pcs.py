# SPDX-License-Identifier: Apache-2.0
"""PC sampling of CUDA kernels, against a stand-in for libcupti (tests/doubles/cupti/pc.c, pcs.c): no device samples
anything. From CUPTI's records through rings and captures to the tables of stalls."""

import json

import pytest

# What pcs.c says that the device found: (kernel, reason) -> samples, of which not issued
REASONS = {("scale(float*)", "long_scoreboard"): (70, 65), ("scale(float*)", "selected"): (60, 0),
           ("scale(float*)", "math_pipe_throttle"): (20, 0), ("gemm", "math_pipe_throttle"): (40, 0), ("gemm", "selected"): (10, 0)}
LINES = {("/src/app/scale.cu", 12): (90, "long_scoreboard"), ("/src/app/scale.cu", 11): (60, "selected")}
INSTRUCTIONS = {("scale(float*)", 0x10): (60, 11), ("scale(float*)", 0x20): (70, 12), ("scale(float*)", 0x30): (20, 12),
                ("gemm", 0x100): (40, None), ("gemm", 0x110): (10, None)}
SAMPLES = 200


@pytest.fixture
def doubles(sonde_path):
    return sonde_path.parent / "tests" / "doubles" / "cupti"


@pytest.fixture
def record(sonde, doubles, tmp_path):
    """record(how, option, …) -> the capture, and the recording's end"""

    def run(how, *options, cupti="13", env=None, check=0):
        capture = tmp_path / "pcs.pftrace"
        double = doubles / f"libcupti-double-{cupti}.so"
        done = sonde("record", "--launch-stacks", "off", "-o", capture, *options, "--", doubles / "cuda-pcs", double,
                     how, env={"SONDE_CUPTI": str(double), **(env or {})}, check=check)
        return capture, done

    return run


def stalls(sonde, capture, *options):
    return sonde("report", "--json", "--by", "stalls", *options, capture, check=0).json()["stalls"]


def notes(sonde, capture):
    return " ".join(sonde("report", "--json", capture, check=0).json()["notes"])


@pytest.mark.parametrize("cupti, version", [("13", "130500"), ("12", "28"), ("12", "18")])
@pytest.mark.parametrize("how", ["exit", "destroy"])
def test_samples_by_reason_line_and_instruction(sonde, record, how, cupti, version):
    """Reads of few instructions each, numbers of reasons with gaps, and both sizes of CUPTI's record."""
    capture, done = record(how, "--pc-sampling", cupti=cupti, env={"DOUBLE_CUPTI_VERSION": version})
    assert done.stdout == f"sampled {int(how == 'exit')}, faults 0\n"
    found = stalls(sonde, capture)
    assert {(row["kernel"], row["reason"]): (row["samples"], row["not_issued"]) for row in found["reasons"]} == REASONS
    assert {(row["source_file"], row["line"]): (row["samples"], row["reason"]) for row in found["lines"]} == LINES
    assert {(row["kernel"], row["pc_offset"]): (row["samples"], row["line"]) for row in found["instructions"]} == INSTRUCTIONS
    assert [row["samples"] for row in found["instructions"]] == [70, 60, 40, 20, 10]
    assert found["samples"] == SAMPLES and found["not_issued"] == 65 and found["without_line"] == 50
    assert found["device_samples"] == SAMPLES + 12 and (found["dropped"], found["foreign"]) == (7, 5)
    assert found["lost"] == found["full_reads"] == found["failed_reads"] == 0 < found["reads"]
    assert found["period_cycles"] == 4096
    first = found["reasons"][0]
    assert first["share"] == pytest.approx(70 / 200, abs=1e-4) and first["kernel_share"] == pytest.approx(70 / 150, abs=1e-4)
    assert "pc-sampling" not in notes(sonde, capture)


def test_it_is_off_by_default(sonde, record):
    """Nothing of it is called; the table says what would have it."""
    capture, done = record("exit")
    assert done.stdout == "sampled 0, faults 0\n"
    assert stalls(sonde, capture) is None
    text = sonde("report", "--by", "stalls", capture, check=0).stdout
    assert "sonde record --pc-sampling does that" in text
    assert "Stalls of kernels" not in sonde("report", capture, check=0).stdout


def test_tables(sonde, record):
    capture, _ = record("exit", "--pc-sampling")
    text = " ".join(sonde("report", "--by", "stalls", capture, check=0).stdout.split())
    assert "Of 212" in text and "it dropped 7, and 5 were in code of which CUPTI gives no instructions" in text
    assert "200 samples have an instruction" in text and "25 % of them have no source line" in text
    assert "scale.cu:12" in text and "0x20" in text
    assert "Stalls of kernels" in sonde("report", capture, check=0).stdout
    limited = stalls(sonde, capture, "--limit", 1)
    assert len(limited["reasons"]) == 1 and limited["reasons_total"] == 5
    lines = [json.loads(line) for line in sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines()]
    assert lines


@pytest.mark.parametrize("answer, words", [
    (35, "NVreg_RestrictProfilingToAdminUsers=0"),
    (27, "compute capability 7.0"),
    (33, "virtual GPU"),
    (40, "the host of this virtual gpu does not allow"),
    (43, "MIG instance"),
    (26, "Another profiler"),
    (999, "error 999"),
])
def test_refusals_are_sentences(sonde, record, answer, words):
    """The kernels are recorded all the same."""
    capture, done = record("exit", "--pc-sampling", env={"DOUBLE_CUPTI_PC": str(answer)})
    assert done.stdout == "sampled 0, faults 0\n"
    assert words.lower() in notes(sonde, capture).lower() and "--pc-sampling has nothing" in notes(sonde, capture)
    text = " ".join(sonde("report", "--by", "stalls", capture, check=0).stdout.split())
    assert words.lower() in text.lower()
    work = sonde("report", "--json", capture, check=0).json()["device_work"]
    assert work["count"] == 2


def test_a_full_buffer_is_said(sonde, record):
    capture, _ = record("exit", "--pc-sampling", env={"DOUBLE_CUPTI_PC_FULL": "1000"})
    found = stalls(sonde, capture)
    assert found["samples"] == 0 < found["full_reads"] <= found["reads"]
    text = " ".join(sonde("report", "--by", "stalls", capture, check=0).stdout.split())
    assert "reads found the device's buffer for samples full" in text


def test_it_needs_a_command_that_is_asked(sonde):
    for arguments in (("-p", 1), ("--cpu-only", "--", "true"), ("--launch-only", "--", "true")):
        done = sonde("record", "--pc-sampling", *map(str, arguments), check=2)
        assert "--pc-sampling is for a command" in done.stderr


def test_processes_are_chosen_and_other_filters_refused(sonde, record):
    capture, _ = record("exit", "--pc-sampling")
    # By its number: a program that is over at once may have no name.
    lines = map(json.loads, sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines())
    pids = {line["pid"] for line in lines if "pid" in line}
    assert max(stalls(sonde, capture, "--process", pid)["samples"] for pid in pids) == SAMPLES
    assert not stalls(sonde, capture, "--process", "other")
    done = sonde("report", "--by", "stalls", "--symbol", "main", capture, check=2)
    assert "--symbol" in done.stderr and "samples of instructions" in done.stderr
