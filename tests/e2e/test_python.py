# SPDX-License-Identifier: Apache-2.0
"""Python stacks against the truth, on every CPython that is found."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pprof
import pytest

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "python"
NATIVE = "native"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="Python frames need BPF, which needs root")


def found_pythons():
    """Interpreters of 3.8 to 3.14 by version; SONDE_PYTHONS adds more, colon-separated."""
    candidates = [Path(path) for path in os.environ.get("SONDE_PYTHONS", "").split(":") if path]
    candidates += sorted(Path("/usr/bin").glob("python3.*"))
    candidates += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3.*"))
    found = {}
    for path in candidates:
        if not re.fullmatch(r"python3\.(8|9|1[0-4])", path.name) or not os.access(path, os.X_OK):
            continue
        done = subprocess.run([path, "-c", "import ctypes, zlib"], capture_output=True)
        if done.returncode == 0:
            found.setdefault(f"{path.name[6:]}-{'system' if path.parent == Path('/usr/bin') else 'pyenv'}", path)
    return found


PYTHONS = found_pythons()
each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A C library without unwind information that calls back."""
    path = tmp_path_factory.mktemp("library") / "libcallback.so"
    source = SCRIPTS / "call_back.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


@pytest.fixture
def stacks(sonde, tmp_path):
    """stacks(command, *options) -> [(frames, samples)], the report"""

    def run(*command, options=("-F", 997), show_interpreter=False, status=0, env=None):
        capture, profile = tmp_path / "python.pftrace", tmp_path / "python.pprof"
        sonde("record", "-q", "-o", capture, *options, "--", *command, check=status, env=env)
        shown = ("--show-interpreter",) if show_interpreter else ()
        sonde("export", "-f", "pprof", *shown, "-o", profile, capture, check=0)
        return pprof.read(profile), sonde("report", "--json", capture, check=0).json()

    return run


def python_frames(frames, names=None):
    """The Python frames: those whose file is one, or is made up like '<made>'."""
    return tuple(frame for frame in frames if frame.file.endswith(".py") or frame.file.startswith("<"))


def truth_of(python, library, folder):
    path = folder / "truth.json"
    subprocess.run([python, SCRIPTS / "truth.py", "trace", path, library], check=True, timeout=60)
    return {tuple(tuple(frame) for frame in stack) for stack in json.loads(path.read_text())}


def comparable(stack):
    """Without what differs between both runs by design: tracing itself, the interpreter's own modules."""
    return tuple(
        tuple(frame)
        for frame in stack
        if frame[0] not in ("trace", "note", "ended") and not frame[1].startswith("<frozen")
    )


def is_judged(stack):
    """Stacks in work() that lie in this program's code throughout; library code has lines of its own
    that tracing perturbs, and main's start and end are seen once."""
    return any(frame[0] == "work" for frame in stack) and all(
        frame[1].endswith("truth.py") or frame[1] == "<made>" or "/lib/python" in frame[1] for frame in stack
    )


@each_python
def test_stacks_are_the_truth(python, library, stacks, tmp_path):
    possible = {without_main_line(comparable(stack)) for stack in truth_of(python, library, tmp_path)}
    samples, data = stacks(python, SCRIPTS / "truth.py", "run", 2.5, library)
    right, wrong = 0, {}
    for frames, count in samples:
        stack = without_main_line(comparable(python_frames(frames)))
        if not is_judged(stack):
            continue
        if stack in possible:
            right += count
        else:
            wrong[stack] = wrong.get(stack, 0) + count
    judged = right + sum(wrong.values())
    worst = sorted(wrong.items(), key=lambda item: -item[1])[:3]
    assert judged > 500, "most of the program is work()"
    assert right / judged >= 0.99, f"{right} of {judged} right; wrong: {worst}"
    by_reason = data["completeness"]["samples_by_python"]
    assert data["completeness"]["python_complete_share"] > 0.97, by_reason
    assert by_reason["unknown_interpreter"] == by_reason["user_mode"] == 0


def without_main_line(stack):
    """main() and the module are at other lines when traced."""
    return tuple(
        frame if frame[0] not in ("main", "<module>", "in_thread") else (frame[0], frame[1], 0) for frame in stack
    )


@each_python
def test_native_frames_stand_between(python, library, stacks):
    """py → C → py: call_back() lies between by_library() and back_in_python()."""
    samples, _ = stacks(python, SCRIPTS / "truth.py", "run", 1.5, library, show_interpreter=True)
    seen = 0
    for frames, count in samples:
        names = [frame.function for frame in frames]
        if "back_in_python" not in names:
            continue
        outer, inner = names.index("by_library"), names.index("back_in_python")
        assert "call_back" in names[outer:inner], names
        assert any("_PyEval_EvalFrameDefault" in name for name in names[:outer])
        seen += count
    assert seen > 5
