# SPDX-License-Identifier: Apache-2.0
"""Long text on a terminal goes through a pager; short text, pipes and --no-pager do not."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
MARK = "paged: "
PAGER = f"sed 's/^/{MARK}/'"


@pytest.fixture
def capture():
    return next(iter(sorted(GOLDEN.glob("*.pftrace"))))


def on_terminal(sonde, *arguments, rows=24, **variables):
    """What it prints on a terminal of so many rows and 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
    environment = {name: value for name, value in sonde.environment.items() if name not in ("PAGER", "SONDE_PAGER")}
    process = subprocess.Popen(
        [sonde.path, *map(str, arguments)],
        env={**environment, "TERM": "xterm", "NO_COLOR": "1", **variables},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(60) == 0, text
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["report", "--help"])
def test_long_text_is_paged(sonde, capture, command):
    arguments = [command, capture] if command == "report" else ["record", command]
    for variable in ("SONDE_PAGER", "PAGER"):
        text = on_terminal(sonde, *arguments, **{variable: PAGER})
        lines = text.splitlines()
        assert len(lines) > 24 and all(line.startswith(MARK) for line in lines), text
    both = on_terminal(sonde, *arguments, SONDE_PAGER=PAGER, PAGER="false")
    assert both == text


def test_what_is_not_paged(sonde, capture):
    plain = sonde("report", capture, env={"COLUMNS": "100"}, check=0).stdout
    assert on_terminal(sonde, "report", capture, rows=500, SONDE_PAGER=PAGER) == plain
    assert on_terminal(sonde, "report", "--no-pager", capture, SONDE_PAGER=PAGER) == plain
    assert on_terminal(sonde, "report", capture, SONDE_PAGER="", PAGER=PAGER) == plain
    assert on_terminal(sonde, "report", capture, SONDE_PAGER=PAGER, TERM="dumb") == plain
    assert MARK not in sonde("report", capture, env={"SONDE_PAGER": PAGER}, check=0).stdout
    assert MARK not in on_terminal(sonde, "report", "--json", capture, SONDE_PAGER=PAGER)


def test_a_pager_that_cannot_run_or_ends_early(sonde, capture):
    plain = sonde("report", capture, env={"COLUMNS": "100"}, check=0).stdout
    text = on_terminal(sonde, "report", capture, SONDE_PAGER="/nonexistent/pager 2>/dev/null")
    assert text.endswith(plain)
    assert on_terminal(sonde, "report", capture, SONDE_PAGER="head -n 1") == plain.splitlines()[0] + "\n"


BOLD = "\x1b[1m"


def test_colours(sonde, capture):
    """auto: on a terminal, without NO_COLOR; --color decides before it."""
    assert BOLD in on_terminal(sonde, "report", capture, rows=500, NO_COLOR="")
    assert BOLD not in on_terminal(sonde, "report", capture, rows=500)
    assert BOLD in on_terminal(sonde, "report", "--color", "always", capture, rows=500)
    assert BOLD not in on_terminal(sonde, "report", "--color", "never", capture, rows=500, NO_COLOR="")
    assert BOLD not in sonde("report", capture, check=0).stdout
    for command in (("report", capture), ("diff", "--all", capture, capture)):
        assert BOLD in sonde(*command, "--color=always", check=0).stdout
        assert BOLD not in sonde(*command, "--color=always", "--json", check=0).stdout
    assert "always" in sonde("report", "--color", "sometimes", capture, check=2).stderr
