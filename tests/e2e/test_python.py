# SPDX-License-Identifier: Apache-2.0
"""Python stacks against the truth, on every CPython that is found."""

import json
import os
import re
import shutil
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
    """Interpreters of 3.8 to 3.15 by version, those without the lock end in t; SONDE_PYTHONS adds more, colon-separated."""
    candidates = [Path(path) for path in os.environ.get("SONDE_PYTHONS", "").split(":") if path]
    candidates += sorted(Path("/usr/bin").glob("python3.*"))
    candidates += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3.*"))
    found = {}
    for path in candidates:
        if not re.fullmatch(r"python3\.(8|9|1[0-5]t?)", path.name) or not os.access(path, os.X_OK):
            continue
        done = subprocess.run([path, "-c", "import ctypes, zlib"], capture_output=True)
        if done.returncode == 0:
            found.setdefault(f"{path.name[6:]}-{'system' if path.parent == Path('/usr/bin') else 'pyenv'}", path)
    return found


def releases_between(pythons):
    """Names of all but the distribution's, the oldest and the newest."""
    names = sorted((name for name in pythons if not name.endswith("system")), key=lambda name: int(name[2:].split("-")[0].rstrip("t")))
    return names[1:-1]


PYTHONS = found_pythons()
BETWEEN = releases_between(PYTHONS)
every_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
# What depends less on the release: the others are slow tests.
each_python = pytest.mark.parametrize("python", [
    pytest.param(path, id=name, marks=[pytest.mark.slow] if name in BETWEEN else []) for name, path in PYTHONS.items()])


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


@every_python
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
    assert judged > 200, "most of the program is work()"
    assert right / judged >= 0.99, f"{right} of {judged} right; wrong: {worst}"
    by_reason = data["completeness"]["samples_by_python"]
    # On a busy machine more of the first moments are over before sonde has found the interpreter.
    assert data["completeness"]["python_complete_share"] > 0.9, by_reason
    assert by_reason["unknown_interpreter"] == by_reason["user_mode"] == 0


def without_main_line(stack):
    """main() and the module are at other lines when traced."""
    return tuple(
        frame if frame[0] not in ("main", "<module>", "in_thread") else (frame[0], frame[1], 0) for frame in stack
    )


@each_python
def test_native_frames_stand_between(python, library, stacks):
    """py → C → py: call_back() lies between by_library() and back_in_python(), or a frame says that frames are missing."""
    samples, data = stacks(python, SCRIPTS / "truth.py", "run", 1.5, library, show_interpreter=True)
    seen = cut = 0
    for frames, count in samples:
        names = [frame.function for frame in frames]
        if "back_in_python" not in names:
            continue
        outer, inner = names.index("by_library"), names.index("back_in_python")
        if "[… native frames missing …]" in names[outer:inner]:
            cut += count
            continue
        assert "call_back" in names[outer:inner], names
        assert any("_PyEval_EvalFrameDefault" in name for name in names[:outer])
        seen += count
    assert seen > 5 and cut <= 1 + 0.02 * seen
    assert data["completeness"]["complete_share"] > 0.95


@pytest.fixture
def script(tmp_path):
    """script(text) -> the path of a Python file"""

    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def functions(samples):
    """Function name -> samples with it anywhere."""
    counts = {}
    for frames, count in samples:
        for name in {frame.function for frame in frames}:
            counts[name] = counts.get(name, 0) + count
    return counts


SPIN = """
import time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""


@each_python
def test_recursion_of_900(python, script, stacks):
    text = SPIN + "def down(n):\n    return down(n - 1) if n else spin(0.5)\nimport sys\nsys.setrecursionlimit(2000)\ndown(900)\n"
    samples, _ = stacks(python, script(text))
    deep = [count for frames, count in samples if sum(frame.function == "down" for frame in frames) == 901]
    spinning = functions(samples)["spin"]
    # Before 3.11 each call takes native frames too, of which 512 are kept; Python's are all there.
    assert sum(deep) > 0.97 * spinning > 40


@each_python
def test_deep_recursion_keeps_both_ends(python, script, stacks):
    """Before 3.11 native and Python frames are left out together, from 3.11 on Python's alone."""
    text = SPIN + """
def down(n):
    return down(n - 1) if n else bottom()
def bottom():
    spin(0.5)
def outer():
    down(2000)
import sys, threading
sys.setrecursionlimit(5000)
threading.stack_size(64 << 20)
thread = threading.Thread(target=outer)
thread.start()
thread.join()
"""
    samples, data = stacks(python, script(text), show_interpreter=True)
    spinning = right = 0
    for frames, count in samples:
        names = [frame.function for frame in frames]
        if "spin" not in names:
            continue
        spinning += count
        gaps = [at for at, name in enumerate(names) if "left out" in name]
        if len(gaps) != 1 or "outer" not in names[: gaps[0]]:
            continue
        right += count * (
            names[: gaps[0]].index("outer") < names.index("down")
            and len(python_frames(frames[: gaps[0]])) == 256
            and len(python_frames(frames[gaps[0] :])) == 768
            and names.index("bottom") < names.index("spin")
        )
    assert right > 0.97 * spinning > 40
    assert data["completeness"]["samples_by_python"]["depth"] == 0


@each_python
def test_names_that_are_not_ascii(python, script, stacks):
    names = {"größe", "模型_前向", "𝔵𝔶", "f" * 10000}
    text = SPIN + "".join(f"def {name}():\n    spin(0.15)\n" for name in names) + "".join(f"{name}()\n" for name in names)
    samples, _ = stacks(python, script(text), env={"PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"})
    seen = functions(samples)
    # Python normalises identifiers (NFKC).
    assert {"größe", "模型_前向", "xy", "f" * 10000} <= set(seen)


@each_python
def test_code_objects_that_are_freed(python, script, stacks):
    """Ever new code at addresses used before: a name must be the one of the code that ran."""
    text = (
        SPIN
        + """
for number in range(400):
    exec(f"def made_{number}():\\n    marker_{number} = 1\\n    spin(0.004)\\nmade_{number}()\\ndel made_{number}",
         {"spin": spin})
"""
    )
    samples, data = stacks(python, script(text))
    made = [name for name in functions(samples) if name.startswith("made_")]
    assert len(made) > 100
    for frames, _ in samples:
        names = [frame.function for frame in frames]
        assert sum(name.startswith("made_") for name in names) <= 1
        if "[unknown Python function]" in names:
            assert any("code object" in note for note in data["notes"])


def test_a_process_of_a_moment(stacks, script):
    """What it ran is named although it is gone before anybody could look; the first that runs an interpreter may be over before
    sonde has read the interpreter's file."""
    python = next(iter(PYTHONS.values()), None) or pytest.skip("there is no CPython")
    path = script(SPIN + "def brief():\n    spin(0.06)\nbrief()\n")
    samples, _ = stacks("sh", "-c", 'for i in 1 2 3 4 5; do "$0" "$1"; done', python, path, options=("-F", 1999))
    assert functions(samples).get("brief", 0) > 5


@each_python
def test_children_that_fork(python, script, stacks):
    text = (
        SPIN
        + """
import os
def in_child():
    spin(0.4)
def in_grandchild():
    spin(0.3)
pid = os.fork()
if pid == 0:
    if os.fork() == 0:
        in_grandchild()
        os._exit(0)
    in_child()
    os.wait()
    os._exit(0)
os.waitpid(pid, 0)
"""
    )
    samples, _ = stacks(python, script(text))
    seen = functions(samples)
    assert seen.get("in_child", 0) > 40 and seen.get("in_grandchild", 0) > 30


@each_python
def test_execution_and_a_violent_end(python, script, stacks):
    text = (
        SPIN
        + """
import os, signal, sys
def first_life():
    spin(0.3)
def second_life():
    spin(0.3)
if len(sys.argv) == 1:
    first_life()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
second_life()
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    samples, _ = stacks(python, script(text), status=137)
    seen = functions(samples)
    assert seen.get("first_life", 0) > 30 and seen.get("second_life", 0) > 30
    for frames, _ in samples:
        assert not {"first_life", "second_life"} <= {frame.function for frame in frames}


@each_python
def test_thread_that_python_did_not_make(python, script, stacks, library):
    text = (
        SPIN
        + """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
def called_back(number):
    spin(0.4)
    return 0
library.call_back_in_thread(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(called_back))
"""
    )
    samples, data = stacks(python, script(text), library)
    found = [frames for frames, _ in samples if any(frame.function == "called_back" for frame in frames)]
    # The library's unwind table may not be there for the very first samples.
    found = [frames for frames in found if "call_back" in [frame.function for frame in frames]]
    assert found
    for frames in found:
        names = [frame.function for frame in frames]
        assert names.index("call_back") < names.index("called_back") < names.index("spin")


@each_python
def test_lock_states(python, script, sonde, tmp_path):
    """One thread that computes in Python, one that computes without the lock."""
    text = """
import hashlib, threading, time
data = bytes(1 << 20)
end = time.monotonic() + 1.2
def with_lock():
    while time.monotonic() < end:
        sum(range(100))
def without_lock():
    while time.monotonic() < end:
        hashlib.sha256(data).digest()
thread = threading.Thread(target=without_lock)
thread.start()
with_lock()
thread.join()
"""
    capture = tmp_path / "lock.pftrace"
    sonde("record", "-q", "-F", 997, "-o", capture, "--", python, script(text), check=0)

    def states(function):
        data = sonde("report", "--json", "--by", "gil", "--symbol", f"^{function}$", capture, check=0).json()
        return {row["gil"]: row["self_share"] for row in data["tables"]["gil"]["rows"]}

    if python.name.endswith("t"):  # without the lock
        assert set(states("with_lock")) | set(states("without_lock")) <= {"none"}
        return
    assert states("with_lock").get("held", 0) > 0.8
    assert states("without_lock").get("released", 0) > 0.7


@each_python
def test_sub_interpreter(python, script, stacks):
    text = (
        SPIN
        + """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
CODE = '''
import time
def in_sub_interpreter():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        pass
in_sub_interpreter()
'''
def outer():
    made = interpreters.create()
    (getattr(interpreters, "run_string", None) or interpreters.exec)(made, CODE)
outer()
"""
    )
    samples, data = stacks(python, script(text))
    found = [frames for frames, _ in samples if any(frame.function == "in_sub_interpreter" for frame in frames)]
    assert sum(count for frames, count in samples if frames in found) > 60
    for frames in found:
        names = [frame.function for frame in frames]
        assert names.index("outer") < names.index("in_sub_interpreter")


UNKNOWN = """
unsigned long Py_Version = 0x03630000;
char _PyRuntime[4096];
void _PyEval_EvalFrameDefault(void) {}
static volatile unsigned long sum;
__attribute__((noinline)) void spin_here(void) { for (unsigned long i = 0; i < 600000000; i++) sum += i; }
int main(void) { spin_here(); return 0; }
"""


def test_unknown_interpreter_is_said_once(sonde, tmp_path):
    source, program = tmp_path / "unknown.c", tmp_path / "python3.99"
    source.write_text(UNKNOWN)
    subprocess.run(["cc", "-O1", "-rdynamic", "-o", program, source], check=True)
    capture = tmp_path / "unknown.pftrace"
    done = sonde("record", "-F", 499, "-o", capture, "--", program, check=0)
    data = sonde("report", "--json", capture, check=0).json()
    said = [note for note in data["notes"] if "Python 3.99 " in note and str(program) in note]
    assert len(said) == 1 and "is not known" in said[0]
    assert any(row["name"] == "spin_here" for row in data["tables"]["function"]["rows"])
    assert data["completeness"]["samples_by_python"]["unknown_interpreter"] > 20
    assert "python3.99" in done.stderr


def test_pypy_is_said_once(sonde, tmp_path):
    """By what its library offers to programs that embed it."""
    source, program = tmp_path / "pypy.c", tmp_path / "pypy3"
    source.write_text(UNKNOWN.replace("void _PyEval_EvalFrameDefault", "void pypy_execute_source").replace("_PyRuntime", "unused"))
    subprocess.run(["cc", "-O1", "-rdynamic", "-o", program, source], check=True)
    capture = tmp_path / "pypy.pftrace"
    sonde("record", "-q", "-F", 499, "-o", capture, "--", program, check=0)
    notes = [note for note in sonde("report", "--json", capture, check=0).json()["notes"] if str(program) in note]
    assert len(notes) == 1 and "is PyPy" in notes[0] and "CPython" in notes[0]


def test_user_mode_says_that_python_needs_bpf(sonde, script, tmp_path):
    python = next(iter(PYTHONS.values()), None) or pytest.skip("there is no CPython")
    capture = tmp_path / "user.pftrace"
    sonde("record", "-q", "--mode", "user", "-F", 499, "-o", capture, "--", python, script(SPIN + "spin(0.5)\n"), check=0)
    data = sonde("report", "--json", capture, check=0).json()
    assert data["completeness"]["samples_by_python"]["user_mode"] > 20
    assert "Python frames need the BPF mode." in " ".join(sonde("report", capture, check=0).stdout.split())


@each_python
def test_virtual_environment(python, script, stacks, tmp_path):
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    samples, _ = stacks(tmp_path / "venv" / "bin" / "python", script(SPIN + "def here():\n    spin(0.3)\nhere()\n"))
    assert functions(samples).get("here", 0) > 40


def copied_python(python, prefix):
    """The interpreter as conda and uv lay one out: PREFIX/bin/python3.X, without symbols; and the environment to run it in."""
    show = "import sys, sysconfig; print(*sys.version_info[:2], sep='.'); print(sysconfig.get_path('stdlib'))"
    release, standard = subprocess.run([python, "-c", show], capture_output=True, text=True, check=True).stdout.split()
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    program = prefix / "bin" / f"python{release}"
    files = {program: Path(python).resolve()}
    for line in subprocess.run(["ldd", python], capture_output=True, text=True).stdout.splitlines():
        if "libpython" in line:
            library = Path(line.split("=>")[1].split()[0])
            files[prefix / "lib" / library.name] = library
    for copy, original in files.items():
        shutil.copy(original, copy)
        subprocess.run(["strip", "-s", copy], check=True)
    (prefix / "lib" / f"python{release}").symlink_to(standard)
    return program, {"LD_LIBRARY_PATH": str(prefix / "lib")}


@each_python
def test_stripped_interpreter_in_a_prefix_of_its_own(python, script, stacks, tmp_path):
    program, environment = copied_python(python, tmp_path / "prefix")
    show = "import sys; print(sys.prefix)"
    done = subprocess.run([program, "-c", show], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.stdout == f"{tmp_path / 'prefix'}\n", done
    samples, data = stacks(program, script(SPIN + "def here():\n    spin(0.3)\nhere()\n"), env=environment)
    assert functions(samples).get("here", 0) > 40
    by_reason = data["completeness"]["samples_by_python"]
    assert by_reason["unknown_interpreter"] == by_reason["not_merged"] == 0, by_reason


def test_another_pid_and_mount_namespace(script, stacks):
    python = next(iter(PYTHONS.values()), None) or pytest.skip("there is no CPython")
    text = SPIN + "def inside():\n    spin(0.4)\ninside()\n"
    command = ("unshare", "--pid", "--mount", "--fork", "--mount-proc", python, script(text))
    samples, _ = stacks(*command)
    assert functions(samples).get("inside", 0) > 40


@pytest.mark.parametrize("arguments", [("-X", "perf"), ("-X", "importtime"), ("-O",), ("-I",)])
def test_options_of_the_interpreter(arguments, script, stacks):
    python = next((path for name, path in PYTHONS.items() if name.startswith(("3.12", "3.13"))), None)
    if not python:
        pytest.skip("there is no CPython 3.12 or 3.13")
    samples, _ = stacks(python, *arguments, script(SPIN + "def here():\n    spin(0.3)\nhere()\n"))
    found = [frames for frames, _ in samples if any(frame.function == "here" for frame in frames)]
    assert sum(count for frames, count in samples if frames in found) > 40
