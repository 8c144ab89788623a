# SPDX-License-Identifier: Apache-2.0
"""Names that a program gave itself, its threads and its files: no byte of them controls the terminal."""

import shutil

import pytest

ESCAPES = "\x1b]0;owned\x07\x1b[2J\r\n\u009b31m\u202e"
SCRIPT = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.prctl(15, "t\\x1b[5m\\u009bx".encode(), 0, 0, 0)
end = time.process_time() + 0.4
while time.process_time() < end: pass
"""


def check_safe(text):
    unsafe = [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert not unsafe, text


@pytest.fixture
def hostile(sonde, workload, tmp_path):
    """A capture of a program whose path and arguments are hostile, and what record printed."""
    folder = tmp_path / f"d{ESCAPES}"
    folder.mkdir()
    program = folder / f"p{ESCAPES}"
    shutil.copy(workload("spin")[0], program)
    capture = folder / "hostile.pftrace"
    done = sonde("record", "-F", 999, "-o", capture, "--", program, 0.4, ESCAPES, check=0)
    return capture, done


def test_record_and_report(sonde, hostile):
    capture, done = hostile
    check_safe(done.stderr)
    for arguments in [[], ["--by", "process"], ["--by", "thread"], ["--json"]]:
        done = sonde("report", *arguments, capture, check=0)
        check_safe(done.stdout)
        check_safe(done.stderr)


@pytest.mark.parametrize("form", ["csv", "folded", "flamegraph"])
def test_exports(sonde, hostile, form):
    done = sonde("export", "-f", form, "-o", "-", hostile[0], check=0)
    check_safe(done.stdout.replace("\t", "") if form == "flamegraph" else done.stdout)


def test_csv_cells_are_no_formulas(sonde, workload, tmp_path):
    program = tmp_path / "=1+1"
    shutil.copy(workload("spin")[0], program)
    capture = tmp_path / "formula.pftrace"
    sonde("record", "-q", "-F", 999, "-o", capture, "--", program, 0.3, check=0)
    lines = sonde("export", "-f", "csv", "-o", "-", capture, check=0).stdout.splitlines()
    assert any("=1+1" in line for line in lines)
    assert not any(cell.startswith("=") for line in lines for cell in line.split(","))


def test_a_thread_that_names_itself(sonde, record_python, tmp_path):
    capture = record_python(SCRIPT)
    for arguments in [["--by", "thread"], ["--by", "process"], []]:
        check_safe(sonde("report", *arguments, capture, check=0).stdout)


@pytest.fixture
def record_python(sonde, tmp_path):
    def record(script):
        path = tmp_path / "script.py"
        path.write_text(script)
        capture = tmp_path / "python.pftrace"
        sonde("record", "-q", "-F", 499, "-o", capture, "--", "python3", path, check=0)
        return capture

    return record


def test_a_command_that_is_not_there(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "x", "--", f"no{ESCAPES}", check=127)
    check_safe(done.stderr)
