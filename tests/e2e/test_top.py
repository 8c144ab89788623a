# SPDX-License-Identifier: Apache-2.0
"""sonde top: its tables as text, and its screen on a terminal of the test's own."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the whole machine is watched by BPF, which needs root")

COLUMNS, LINES = 100, 24
ESCAPE = "\x1b"


class Screen:
    """sonde top on a terminal; what it writes is kept with its control sequences taken out."""

    def __init__(self, sonde, *arguments):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(sonde.path, [sonde.path, *map(str, arguments)], {**sonde.environment, "TERM": "xterm"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def read(self, seconds):
        """What is written within the time, without attributes and movements."""
        text, until = "", time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and select.select([self.fd], [], [], left)[0]:
            try:
                text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # the other end is closed
                break
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]", " ", text)
        self.text += text
        return text

    def wait_for(self, pattern, seconds=15):
        text, until = "", time.monotonic() + seconds
        while not re.search(pattern, text):
            assert time.monotonic() < until, f"no {pattern!r} in: {self.text}"
            text += self.read(0.2)
        return text

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """The exit status."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it goes on: {self.text}")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGINT)
            self.end()
        os.close(self.fd)


@pytest.fixture
def screen(sonde):
    opened = []

    def open_screen(*arguments):
        opened.append(Screen(sonde, *arguments))
        return opened[-1]

    yield open_screen
    for one in opened:
        one.close()


def tables(text):
    return text.split("sonde top")[1:]


def test_tables_one_after_another(sonde, workload):
    text = sonde("top", "-b", "-i", "1.5", "-n", "3", "--", *workload("threads", 6), check=0).stdout
    pictures = tables(text)
    assert len(pictures) == 3
    assert "functions by CPU time" in pictures[0]
    for picture in pictures[1:]:
        share = re.search(r"^ *([\d.]+) %.*thread_spin", picture, re.M)
        assert share and float(share[1]) > 80, picture


def test_attach_by_thread(sonde, start_workload):
    running = start_workload("threads", 30)
    text = sonde("top", "-b", "-i", "1", "-n", "1", "-p", running.pid, "--by", "thread", check=0).stdout
    assert "threads by CPU time" in text
    assert f"({running.pid})" in text


def test_a_program_that_waits_is_seen_waiting(sonde, workload):
    text = sonde("top", "-b", "-n", "1", "-i", "2", "--weight", "wait", "--", *workload("waits", 4), check=0).stdout
    assert re.search(r"%.*\[waiting: poll\]", text), text
    assert float(re.search(r"([\d.]+) threads waiting", text)[1]) > 3


def test_the_whole_machine_is_what_is_watched_without_a_target(sonde):
    text = sonde("top", "-b", "-n", "1", "-i", "0.5", "--by", "process", check=0).stdout
    assert "processes by CPU time" in text


def test_keys_change_the_picture(screen, workload):
    top = screen("top", "-i", "0.3", "--", *workload("threads", 20))
    top.wait_for(r"functions by CPU time[\s\S]* %")
    top.press("t")
    top.wait_for("threads")
    top.press("w")
    top.wait_for("waiting")
    top.press("w")
    top.wait_for("and")
    top.press("w?")
    top.wait_for("freeze the picture")
    top.press("qf")  # the first q leaves the help
    top.wait_for("Function")
    top.press("/no such function\n")
    top.wait_for("Nothing passes the filters")
    top.press(ESCAPE)
    top.wait_for(" %")
    top.press("/(\n")
    top.wait_for("not an extended regular expression")
    top.press("t")
    top.wait_for("threads")
    top.press("\n")  # into the first row
    top.wait_for(r"thread \d+")
    top.press(" ")
    top.wait_for("FROZEN")
    top.read(0.5)
    assert not top.read(1).strip(), "a frozen picture does not change"
    top.press("q")
    top.wait_for("is still running")


def test_the_last_table_stays_when_the_command_ends(screen, sonde):
    top = screen("top", "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 7")
    assert top.end() == 7
    assert re.search(r"functions by CPU time[^$]* %", top.text.split("sonde top")[-1]), top.text


def test_the_commands_output_goes_to_a_file(screen, tmp_path):
    output = tmp_path / "said"
    top = screen("top", "--output", output, "--", "sh", "-c", "echo it speaks; sleep 1; echo and again >&2")
    assert top.end() == 0
    assert output.read_text() == "it speaks\nand again\n"
    assert "it speaks" not in top.text


def test_interrupt_ends_it(screen, start_workload):
    running = start_workload("threads", 30)
    top = screen("top", "-p", running.pid)
    top.wait_for("functions")
    top.press("\x03")
    assert top.end() == 0
    os.kill(running.pid, 0)  # it still runs


@pytest.mark.parametrize(
    "arguments, status, part",
    [
        (["-p", "1", "-a"], 2, "give only one of"),
        (["-p", "x"], 2, "is not a process id"),
        (["-b", "-p", "4194304"], 1, "no such process"),
        (["-p", "1"], 1, "--batch"),
        (["-b", "--", "/no/such/program"], 127, "not found"),
    ],
)
def test_refusals_are_a_sentence(sonde, arguments, status, part):
    done = sonde("top", *arguments, check=status)
    assert part in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_reader_that_goes_away_ends_it(sonde):
    process = sonde.start("top", "-b", "-i", "0.2", "-a")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 1
    assert "Traceback" not in process.stderr.read()
