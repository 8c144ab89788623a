# SPDX-License-Identifier: Apache-2.0
"""sonde.training_profiler: each defect of the profiler that it replaces is a test here, named in its text."""

import json
import re

import pytest
from sonde.training import Schedule, shortage, training_profiler

LOOP = """
import json, logging, os, sys
import sonde
def loop(prof, steps):
    import torch
    for _ in range(steps):
        torch.ones(4, 4) @ torch.ones(4, 4)
        if prof is not None:
            prof.step()
"""


def traces(folder):
    return sorted(folder.glob("*.pt.trace.json"))


def events(path):
    """Of a Chrome trace: torch without Kineto writes only the list."""
    data = json.loads(path.read_text())
    return data["traceEvents"] if isinstance(data, dict) else data


# ---- too few steps: both numbers, what to change, cycles and a partial one ----


@pytest.mark.parametrize(
    "schedule, steps, expected",
    [
        ((1, 1, 3, 1), 5, None),
        ((1, 1, 3, 1), 50, None),
        ((1, 1, 3, 2), 10, None),
        ((0, 0, 1, 0), 7, None),
        ((1, 1, 3, 0), 10, None),
        ((1, 1, 3, 1), 0, "step() was never called"),  # defect: a loop that never steps got an empty trace, unsaid
        ((1, 1, 3, 1), 1, "no trace was captured: the loop ran 1 step, and a cycle needs 5"),
        ((1, 1, 3, 1), 4, "a partial cycle of 2 of 3 active steps: the loop ran 4 steps, and a cycle needs 5"),
        # Defect: the warning ignored repeat, and a partial last cycle.
        ((1, 1, 3, 4), 11, "captured 2 of 4 cycles: the loop ran 11 steps, and all cycles need 20"),
        ((1, 1, 3, 2), 9, "captured 1 of 2 cycles, and a partial cycle of 2 of 3 active steps: the loop ran 9 steps"),
        ((1, 1, 3, 0), 8, "the last trace holds only a partial cycle of 1 of 3 active steps"),
        ((10**12, 1, 3, 1), 8, "the loop ran 8 steps, and a cycle needs 1000000000004"),
    ],
)
def test_too_few_steps_are_said_with_both_numbers(schedule, steps, expected):
    said = shortage(Schedule(*schedule), steps)
    if expected is None:
        assert said is None
    else:
        assert expected in said
        assert steps == 0 or "run more steps" in said or schedule[3] == 0


@pytest.mark.parametrize(
    "wrong",
    [{"wait": -1}, {"warmup": -2}, {"active": 0}, {"repeat": -1}, {"active": "3"}, {"wait": 1.5}, {"warmup": True}],
)
def test_a_schedule_that_cannot_be_is_refused_before_training(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole number of steps"):
        training_profiler(**wrong)


# ---- disabled ----


def test_disabled_imports_and_allocates_nothing(run):
    """Defect: no test of the disabled mode."""
    text = """
    import sys, sonde
    sonde.training_profiler
    before = set(sys.modules)
    with sonde.training_profiler("/nowhere/at/all", enabled=False) as prof:
        assert prof is None
    assert sonde.training_profiler(enabled=False) is sonde.training_profiler(enabled=False)
    new = set(sys.modules) - before
    assert not new, new
    assert "torch" not in sys.modules and "logging" not in sys.modules and "subprocess" not in sys.modules
    """
    run(text)


# ---- with torch ----


def test_traces_say_host_rank_worker_and_process_and_hold_the_active_steps(every_torch, run, tmp_path):
    """Defect: no rank or worker in the file's name."""
    text = LOOP + """
with sonde.training_profiler(sys.argv[1], repeat=2, record_shapes=True) as prof:
    loop(prof, 12)
    assert prof.key_averages() is not None  # torch.profiler's own, reachable
print(os.uname().nodename, os.getpid())
"""
    done = run(text, tmp_path / "t", python=every_torch, env={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"})
    host, pid = done.stdout.split()
    found = traces(tmp_path / "t")
    assert len(found) == 2
    for path in found:
        # What TensorBoard's plug-in reads: worker name, time, suffix.
        worker = re.fullmatch(r"(.*?)(\.\d+)?\.pt\.trace\.json(?:\.gz)?", path.name).group(1)
        assert worker == f"{host}_rank3_worker1_{pid}"
        names = [event["name"] for event in events(path)]
        assert names.count("aten::mm") == 3
        assert sum(name.startswith("ProfilerStep#") for name in names) >= 3
    assert "training_profiler:" not in done.stderr
    assert not list((tmp_path / "t").glob(".part*"))


def test_an_exception_closes_the_profiler_and_surfaces_as_it_is(torch, run, tmp_path):
    """Defects: B11-CR-05, not closed on exceptions; the exception hidden from the profiler, masked by the summary."""
    text = LOOP + """
import torch
class Mine(Exception): pass
from sonde import torch_summary
def fails(*_):
    raise RuntimeError("the summary fails")
torch_summary.text = fails
def inner():
    raise Mine("original")
try:
    with sonde.training_profiler(sys.argv[1], summary=True) as prof:
        loop(prof, 3)
        inner()
except Mine as error:
    import traceback
    print("".join(traceback.format_exception(type(error), error, error.__traceback__)))
with torch.profiler.profile() as again:  # would fail were the first still running
    torch.ones(2)
assert again.key_averages()
"""
    done = run(text, tmp_path / "t", python=torch)
    assert "in inner" in done.stdout and "Mine: original" in done.stdout
    assert "the summary fails" in done.stderr and "During handling" not in done.stdout
    assert len(traces(tmp_path / "t")) == 1  # what was recorded up to there
    assert "a partial cycle of 1 of 3 active steps" in done.stderr


def test_a_profiler_that_fails_is_said_once_and_training_goes_on(torch, run, tmp_path):
    """Defect: makedirs and the profiler's own failures ended the run; here in every call that can fail."""
    text = LOOP + """
import torch, torch.profiler
real = torch.profiler.profile
out = sys.argv[1]
def trained(**options):
    with sonde.training_profiler(out, **options) as prof:
        loop(prof, 6)
        assert prof.steps == 6
    return prof
def failing(*names):
    def fail(self, *_, **__):
        raise RuntimeError(names[0] + " fails")
    return type("profile", (real,), {name: fail for name in names})
from sonde import _log
for names in (("__init__",), ("start", "__enter__"), ("step",), ("export_chrome_trace",), ("stop", "__exit__")):
    torch.profiler.profile = failing(*names)
    _log._said.clear()
    assert names[0] + " fails" in trained().failure, names
torch.profiler.profile = real
"""
    done = run(text, tmp_path / "t", python=torch)
    assert done.stderr.count("training_profiler: ") == 5
    assert len(traces(tmp_path / "t")) == 1  # of the one that failed only after it had written it


@pytest.mark.parametrize("case", ["a file", "read-only", "full", "vanishes", "no torch"])
def test_an_output_folder_that_cannot_be_used_is_said_and_training_goes_on(case, run, tmp_path):
    """Defect: an unwritable folder killed the run before training; also full, and gone before the trace is written."""
    from .conftest import TORCH

    text = LOOP + """
import shutil
out, case = sys.argv[1:]
if case == "no torch":
    sys.modules["torch"] = None
with sonde.training_profiler(out) as prof:
    for step in range(6):
        prof.step()
        if case == "vanishes" and step == 2:
            shutil.rmtree(out)
    assert prof.steps == 6
"""
    if case != "no torch" and "torch1" not in TORCH:
        pytest.skip("there is no Debian torch")
    out = {"a file": tmp_path / "file" / "t", "read-only": "/proc/t", "full": "/dev/full/t"}.get(case, tmp_path / "t")
    (tmp_path / "file").write_text("")
    done = run(text, out, case, python=TORCH.get("torch1", "python3"))
    said = done.stderr.count("training_profiler: ")
    # A folder that vanished is made again.
    assert said == (0 if case == "vanishes" else 1), done.stderr
    assert len(traces(tmp_path / "t")) == (case == "vanishes")


def test_a_trace_that_was_cut_off_is_never_left_behind(tmp_path):
    """torch does not say that the disk was full."""
    from sonde import _torch

    def write_half(path):
        with open(path, "w") as file:
            file.write('{"traceEvents": [{"name": "x"')

    with pytest.raises(OSError, match="is the disk full"):
        _torch.write_whole(str(tmp_path / "t.pt.trace.json"), write_half)
    assert not list(tmp_path.iterdir())


def test_summary_prints_the_top_operators_and_says_when_there_are_none(torch, run, tmp_path):
    """Defect: an empty summary on short runs."""
    text = LOOP + """
with sonde.training_profiler(sys.argv[1], repeat=2, summary=True) as prof:
    loop(prof, 6)
print("----")
with sonde.training_profiler(sys.argv[1], summary=True) as prof:
    loop(prof, 1)
"""
    long, short = run(text, tmp_path / "t", python=torch).stdout.split("----\n")
    # Of the cycle that was recorded, though the next one had begun to warm up.
    assert "top 30 operators by CPU time" in long and "aten::mm" in long
    assert "no device work was recorded" in long
    assert "no summary: no step was recorded" in short


def test_threads_that_step_at_once_and_a_forked_child_leave_the_profiler_whole(torch, run, tmp_path):
    text = LOOP + """
import threading
with sonde.training_profiler(sys.argv[1], active=100, wait=0, warmup=0) as prof:
    child = os.fork()
    if child == 0:
        try:
            for _ in range(50):
                prof.step()
            assert prof.steps == 0
            prof.__exit__(None, None, None)
        finally:
            os._exit(0)
    threads = [threading.Thread(target=lambda: [prof.step() for _ in range(25)]) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    os.waitpid(child, 0)
    assert prof.steps == 100
"""
    done = run(text, tmp_path / "t", python=torch)
    assert len(traces(tmp_path / "t")) == 1
    assert "training_profiler:" not in done.stderr, done.stderr


# ---- flags ----


def test_flags_are_those_of_old_and_say_what_is_wrong(run):
    text = """
    import argparse, sonde
    parser = sonde.add_profiler_args(argparse.ArgumentParser())
    plain = parser.parse_args([])
    assert plain.torch_profiler is False and plain.torch_profiler_dir == "./profiler_traces"
    assert (plain.torch_profiler_wait, plain.torch_profiler_warmup, plain.torch_profiler_active,
            plain.torch_profiler_repeat) == (1, 1, 3, 1)
    with sonde.profiler_from_args(plain) as prof:
        assert prof is None
    args = parser.parse_args("--torch-profiler --torch-profiler-dir d --torch-profiler-wait 0 --torch-profiler-repeat 0 "
        "--torch-profiler-active 7 --torch-profiler-record-shapes --torch-profiler-profile-memory "
        "--torch-profiler-with-stack --torch-profiler-summary".split())
    made = sonde.profiler_from_args(args)
    assert made.directory == "d" and made.schedule == (0, 1, 7, 0) and made._summary
    assert made._options == {"record_shapes": True, "profile_memory": True, "with_stack": True}
    parser.format_help()
    import sys
    parser.parse_args(["--torch-profiler-active", sys.argv[1]])
    """
    for value in ("0", "-1", "x", "1.5", "9" * 30, "9" * 5000):
        done = run(text, value, check=2)
        assert "must be a whole number of steps, 1 or more" in done.stderr or "expected one argument" in done.stderr
