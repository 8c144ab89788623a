# SPDX-License-Identifier: Apache-2.0
"""sonde.profile: a block recorded by a sonde of its own, and as a window of the recording around it."""

import json
import os
import subprocess
import time

import pytest

BLOCK = """
import os, sys, threading, time
import sonde
def hot(seconds=0.3):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def cold(seconds=0.3):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""
NEEDS_BPF = pytest.mark.skipif(os.geteuid() != 0, reason="Python frames need BPF, which needs root")


@pytest.fixture
def program(package):
    return str(package.parent / "sonde")


@pytest.fixture
def capture_of(program, environment):
    """capture_of(path, by) -> the report's JSON"""

    def load(path, *arguments):
        command = [program, "report", "--json", *arguments, path]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return load


@NEEDS_BPF
def test_a_block_is_recorded_by_a_sonde_of_its_own(run, program, capture_of, tmp_path):
    text = BLOCK + """
cold()
with sonde.profile(sys.argv[1], label="mine", options=("-F", "499")) as prof:
    assert prof.failure is None and prof.output == sys.argv[1]
    for _ in range(2):
        with sonde.phase("train"):
            hot()
        prof.step()
cold()
assert not sonde.is_open()
"""
    capture = tmp_path / "block.pftrace"
    done = run(text, capture, env={"SONDE": program})
    assert done.stderr == ""
    report = capture_of(capture)
    text = json.dumps(report)
    assert "hot" in text and '"cold"' not in text
    (window,) = report["windows"]["rows"]
    assert (window["label"], window["opened_by"]) == ("mine", "manual")
    # Ranges and steps of a program that was there before the recording.
    assert '"train"' in json.dumps(capture_of(capture, "--by", "range")) and window["steps_begun"] == 2


@NEEDS_BPF
@pytest.mark.parametrize("how, status", [("_exit", 3), ("SIGKILL", -9), ("fork", 0)])
def test_a_program_that_ends_or_forks_in_the_block_has_all_up_to_there(how, status, run, program, capture_of, tmp_path):
    """The recording is the program's child, and no part of what is recorded; it outlives the program and ends well."""
    text = BLOCK + """
import signal
with sonde.profile(sys.argv[1]) as prof:
    print(prof._recorder._process.pid, flush=True)
    hot()
    if sys.argv[2] == "_exit":
        os._exit(3)
    if sys.argv[2] == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    child = os.fork()
    if child == 0:
        sys.exit(0)  # leaves the block, which is the parent's
    os.waitpid(child, 0)
    assert sonde.is_open()
    hot()
"""
    capture = tmp_path / "block.pftrace"
    recorder = int(run(text, capture, how, env={"SONDE": program}, check=status).stdout.split()[0])
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{recorder}") and time.monotonic() < end:
        time.sleep(0.02)
    report = capture_of(capture)
    (window,) = report["windows"]["rows"]
    assert window["closed_by"] == ("trigger" if how == "fork" else "recording-ended")
    assert "hot" in json.dumps(report)
    names = [row["name"] for row in capture_of(capture, "--by", "process")["tables"]["process"]["rows"]]
    assert names and "sonde" not in names


@NEEDS_BPF
def test_under_a_recording_the_block_is_a_window_of_it(run, program, capture_of, tmp_path):
    text = BLOCK + """
cold()
for name in ("first", "second"):
    with sonde.profile("never-written.pftrace", label=name) as prof:
        assert prof.failure is None and prof.output is None and sonde.is_open() and sonde.window()
        with sonde.phase("train"):
            hot()
    assert not sonde.is_open()
cold()
"""
    capture = tmp_path / "run.pftrace"
    run(text, prefix=[program, "record", "-q", "-F", "499", "--window", "manual", "-o", capture, "--"])
    assert not (tmp_path / "never-written.pftrace").exists()
    assert [row["label"] for row in capture_of(capture)["windows"]["rows"]] == ["first", "second"]
    ranges = json.dumps(capture_of(capture, "--by", "range"))
    assert '"train"' in ranges and '"sonde.phase"' in ranges
    text = json.dumps(capture_of(capture))
    assert "hot" in text and '"cold"' not in text


@NEEDS_BPF
def test_under_a_recording_of_all_the_time_the_block_is_a_range(run, program, capture_of, tmp_path):
    text = BLOCK + """
with sonde.profile("never-written.pftrace", label="mine") as prof:
    assert prof.failure is None
    hot()
"""
    capture = tmp_path / "run.pftrace"
    done = run(text, prefix=[program, "record", "-q", "-o", capture, "--"])
    assert "sonde.profile:" not in done.stderr
    assert '"mine"' in json.dumps(capture_of(capture, "--by", "range"))


@pytest.mark.parametrize("case", ["no program", "refuses", "hangs"])
def test_what_fails_is_said_once_and_the_program_goes_on(case, run, tmp_path):
    stand_in = tmp_path / "sonde"
    stand_in.write_text("#!/bin/sh\n" + ("exec sleep 60\n" if case == "hangs" else "echo cannot do it >&2; exit 1\n"))
    stand_in.chmod(0o755)
    text = BLOCK + """
from sonde import recording
recording._START_S = 0.5
if "SONDE" not in os.environ:
    recording.program_path = lambda: None
for _ in range(2):
    with sonde.profile(sys.argv[1]) as prof:
        prof.step()
    assert prof.steps == 1 and prof.failure
try:
    with sonde.profile(sys.argv[1]):
        raise KeyError("mine")
except KeyError:
    print("mine surfaced")
"""
    env = {} if case == "no program" else {"SONDE": str(stand_in)}
    done = run(text, tmp_path / "x.pftrace", env=env)
    said = {"no program": "the program sonde is neither beside the package nor on PATH", "refuses": "cannot do it", "hangs": "was not ready within"}[case]
    assert done.stderr.count("sonde.profile: nothing is recorded: ") == 1 and said in done.stderr
    assert "mine surfaced" in done.stdout


def test_disabled_imports_and_allocates_nothing(run):
    text = """
    import sys, sonde
    sonde.profile
    before = set(sys.modules)
    with sonde.profile("/nowhere/x.pftrace", enabled=False, torch_trace=True) as prof:
        assert prof is None
    assert set(sys.modules) == before and "subprocess" not in before
    """
    run(text)


def test_torch_trace_is_written_beside_and_without_a_schedule(torch, run, tmp_path):
    text = BLOCK + """
import torch
with sonde.profile(sys.argv[1], torch_trace=True) as prof:
    for _ in range(2):
        torch.ones(4, 4) @ torch.ones(4, 4)
        prof.step()
(path,) = prof.traces
assert os.path.dirname(path) == os.path.dirname(sys.argv[1])
assert open(path).read().count('"aten::mm"') == 2
"""
    done = run(text, tmp_path / "t" / "x.pftrace", python=torch, env={"SONDE": "/bin/false"})
    assert "training_profiler:" not in done.stderr
