# SPDX-License-Identifier: Apache-2.0
"""The report as text: the answer before the account, whole names in pipes, files and lines at 80 columns."""

import re
import sys

import pytest

NAME = "a_function_with_a_name_that_is_longer_than_any_column_of_a_table_would_like_it_to_be"
SCRIPT = f"""
import time

def {NAME}(end):
    while time.thread_time() < end:
        sum(range(1000))

{NAME}(time.thread_time() + 1)
"""


@pytest.fixture
def capture(sonde, tmp_path):
    folder = tmp_path / "a-folder-with-a-long-name" / "in-another-one" / "and-yet-another-of-them"
    folder.mkdir(parents=True)
    script = folder / "program.py"
    script.write_text(SCRIPT)
    path = tmp_path / "layout.pftrace"
    sonde("record", "-q", "--wait", "off", "-F", "499", "-o", path, "--", sys.executable, script, check=0)
    return path, script


def test_pipes_are_not_shortened(sonde, capture):
    path, script = capture
    text = sonde("report", path, check=0).stdout
    line = SCRIPT.splitlines().index("        sum(range(1000))") + 1
    assert f"{script}:{line}" in text
    assert f"  {NAME}  " in text
    for table in text.split("\n\n"):
        rows = [row for row in table.splitlines()[2:] if not row.startswith("\u2026")]
        assert not [row for row in rows if re.match(r" *[\d.]+ %", row) and "\u2026" in row], table


@pytest.mark.parametrize("section", [(), ("--by", "function")])
def test_file_and_line_survive_at_80_columns(sonde, capture, section):
    path, script = capture
    text = sonde("report", *section, path, env={"COLUMNS": "80"}, check=0).stdout
    assert not [row for row in text.splitlines() if re.match(r" *[\d.]+ %", row) and len(row) > 80], text
    pattern = rf"\b{re.escape(script.name)}" + (":\\d+ " if not section else "")
    assert re.search(pattern, text), text


def test_the_answer_comes_before_the_account(sonde, capture):
    text = sonde("report", capture[0], check=0).stdout
    places = [text.index(part) for part in ("recorded \u00b7", "Your code", "Hottest functions", "The recording\n")]
    assert places == sorted(places), text
    account = text[places[-1] :]
    for line in ("Linux ", "Stacks: ", "Lost samples: none.", "Cost: "):
        assert line in account and line not in text[: places[-1]], text


def test_what_is_wrong_comes_first(sonde, tmp_path, capture):
    whole = capture[0].read_bytes()
    cut = tmp_path / "cut.pftrace"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    text = sonde("report", cut, check=0).stdout
    # A recording that took longer has an account of its losses in what is left.
    lost = re.search("Lost samples: (unknown|none before it was cut off)", text)
    places = [lost.start() if lost else -1, text.index("Note: "), text.index("The recording\n")]
    assert places == sorted(places) and lost, text
