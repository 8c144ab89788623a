# SPDX-License-Identifier: Apache-2.0
"""sonde's own API: a C program, a C++ program, and the Python extension under the CPythons that are here."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from c_api import check_found, own_places

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ["/usr/bin/python3", *map(str, sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")))]
ABI3 = (3, 8)

EXERCISE = """
import asyncio, gc, sys, threading
import sonde
from sonde import _core

outer = sonde.range("outer")

@sonde.range("deco")
def recurse(n):
    "its own words"
    with outer:
        return recurse(n - 1) + 1 if n else 0

@sonde.range("coroutine", domain="async")
async def wait():
    await asyncio.sleep(0.002)
    return 3

@sonde.range("generator")
def generate():
    got = yield 1
    try:
        yield got
    except KeyError:
        yield "caught"
    return 5

@sonde.range("async generator")
async def count():
    for i in range(3):
        yield i

class Thing:
    @sonde.range("method")
    def method(self):
        return self

    @sonde.range("static")
    @staticmethod
    def static(a, *, b):
        return a, b

async def gather():
    return await asyncio.gather(wait(), wait(), wait()), [i async for i in count()]

assert recurse.__name__ == "recurse" and recurse.__doc__ == "its own words"
fields = {"int": 1, "real": 2.5, "text": "t", "yes": True, "big": 2**63, "huge": 10**400, "less": -10**400, "minus": -5}
with sonde.range("with fields", domain="torch", fields=fields) as manager:
    assert isinstance(manager, sonde.range) and recurse(3) == 3
threads = [threading.Thread(target=lambda: [recurse(2) for _ in range(100)]) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
try:
    with outer:
        raise KeyError("x")
except KeyError as error:
    assert error.args == ("x",)
else:
    raise SystemExit("an exception was lost")
assert asyncio.run(gather()) == ([3, 3, 3], [0, 1, 2])
steps = generate()
assert next(steps) == 1 and steps.send(7) == 7 and steps.throw(KeyError()) == "caught"
try:
    next(steps)
except StopIteration as end:
    assert end.value == 5
thing = Thing()
assert thing.method() is thing and Thing.static(1, b=2) == (1, 2)
_core.range_push("pushed", domain="torch")
_core.range_pop("torch")
sonde.mark("mark", fields={"\\u00e9": "\\udcff"})
sonde.counter("loss", 0.5)
sonde.counter("loss", 2)
sonde.token(0, request="r1", phase="prefill")
for index in range(4):
    sonde.token(index, request="r1", text="a", phase="decode")
assert [sonde.step() for _ in range(3)] == [1, 2, 3] and sonde.step(name="other") >= 1
for i in range(2000):  # more names than are kept by address
    sonde.mark("name %d" % (i % 7), fields={"i": i})
gc.collect()

WRONG = [
    (TypeError, lambda: sonde.range(3)), (TypeError, lambda: sonde.range(None)), (TypeError, lambda: sonde.range()),
    (TypeError, lambda: sonde.mark()), (TypeError, lambda: sonde.mark("a", fields={"x": None})),
    (TypeError, lambda: sonde.mark("a", fields={1: 2})), (TypeError, lambda: sonde.mark("a", fields=[])),
    (TypeError, lambda: sonde.mark("a", "b", {}, 4)), (TypeError, lambda: sonde.mark("a", nope=1)),
    (TypeError, lambda: sonde.mark("a", name="b")), (TypeError, lambda: sonde.counter("x", "y")),
    (TypeError, lambda: sonde.token("0")), (TypeError, lambda: outer(1, 2)), (TypeError, lambda: outer(3)),
    (ValueError, lambda: sonde.mark("a", fields={str(i): i for i in range(17)})),
    (TypeError, lambda: _core.range_push(b"bytes")), (TypeError, lambda: sonde.step(1)),
]
for kind, call in WRONG:
    try:
        call()
    except kind:
        pass
    else:
        raise SystemExit("no error")
print(sonde.is_open(), sonde.window(), _core.open_session("/nonexistent"))
"""

RANGES_OF_PYTHON = {
    ("sonde", "outer"): 4 + 4 * 300 + 1,
    ("sonde", "deco"): 4 + 4 * 300,
    ("torch", "with fields"): 1,
    ("torch", "pushed"): 1,
    ("sonde", "generator"): 4,
    ("sonde", "method"): 1,
    ("sonde", "static"): 1,
    ("async", "coroutine"): 3,
    ("sonde", "async generator"): 1,
}


@pytest.fixture(scope="session")
def package(sonde_path):
    path = sonde_path.parent / "python"
    if not (path / "sonde" / "_core.abi3.so").exists():
        pytest.fail("the Python package was not built; run make")
    return str(path)


@pytest.fixture
def recorded(sonde, report, tmp_path):
    """recorded(command, ...) -> {(domain, name): range}, the whole report, the recording's end"""

    def run(command, *options, env=None):
        capture = tmp_path / "api.pftrace"
        done = sonde("record", *options, "-o", capture, "--", *command, env={"API_CHECK": "1", **(env or {})})
        data = report(capture)
        rows = data["ranges"]["rows"] if data["ranges"] else []
        return {(row["domain"], row["name"]): row for row in rows if row["kind"] != "mark"}, data, done

    return run


def counts(rows):
    return {key: row["count"] for key, row in rows.items()}


def faults(data):
    return {name: value for name, value in data["ranges"].items()
            if name not in ("ranges", "marks", "samples", "rows") and value}


def test_c_program(recorded, workload, sonde, tmp_path):
    rows, data, done = recorded(workload("api", "all"))
    assert done.status == 0, done
    assert counts(rows) == {("sonde", name): n for name, n in {
        "outer": 1, "inner": 3, "first": 1, "second": 1, "a name that has more than fifteen bytes": 1, None: 1}.items()}
    assert not faults(data), data["ranges"]
    inner = rows["sonde", "inner"]
    assert inner["minimum_ns"] >= 2e6 and inner["total_ns"] <= rows["sonde", "outer"]["total_ns"] < 5e9
    (counter,) = data["counters"]
    assert {key: counter[key] for key in ("name", "count", "minimum", "mean", "maximum", "last", "not_numbers")} == {
        "name": "loss", "count": 3, "minimum": 2, "mean": 3, "maximum": 4, "last": 2, "not_numbers": 0}
    (request,) = data["inference"]["requests"]
    assert (request["id"], request["tokens"], request["between_tokens_ns"]["count"]) == ("r1", 5, 4)
    assert request["ttft_ns"] >= 2e6 and request["between_tokens_ns"]["p50"] >= 2e6
    assert [(row["name"], row["count"] + row["cut_count"]) for row in data["steps"]["rows"]] == [("batch", 3)]
    capture = tmp_path / "api.pftrace"
    assert "loss" in sonde("report", "--by", "counter", capture, check=0).stdout
    assert "r1" in sonde("report", "--by", "token", capture, check=0).stdout
    trace = tmp_path / "trace.json"
    sonde("export", "-f", "chrome", "-o", trace, capture, check=0)
    values = [event["args"]["value"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "C"]
    assert values == [4, 3, 2]


def test_without_a_session(workload, package):
    assert subprocess.run(workload("api", "all"), capture_output=True).returncode == 0
    for value in ("/nonexistent", "/etc/passwd"):
        env = {**os.environ, "SONDE_SESSION": "/nonexistent", "SONDE_LIBRARY": value, "PYTHONPATH": package}
        done = subprocess.run(workload("api", "all"), env=env, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        script = "import sonde; assert not sonde.is_open(); print(sonde.step(), sonde.step())"
        done = subprocess.run(["/usr/bin/python3", "-c", script], env=env, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("1 2\n", "")


def test_threads(recorded, workload):
    rows, data, done = recorded(workload("api", "threads"))
    assert done.status == 0, done
    assert counts(rows) == {("sonde", "round"): 4000, ("sonde", "part"): 4000} and not faults(data), data["ranges"]


FORKS = """
import multiprocessing, os, threading
import sonde

def work(who, times):
    for i in range(times):
        with sonde.range("shared", domain="d"), sonde.range(who):
            sonde.mark("mark", "d")
        sonde.counter("count", i)
        sonde.step("s")

def threads(who):
    both = [threading.Thread(target=work, args=(who, 50)) for _ in range(3)]
    [thread.start() for thread in both]
    work(who, 50)
    [thread.join() for thread in both]

def fork():
    with sonde.range("around the fork"):  # its end is the parent's
        child = os.fork()
        if child == 0:
            threads("child")
            grandchild = os.fork()
            if grandchild == 0:
                work("grandchild", 7)
                os._exit(0)
            os._exit(os.waitpid(grandchild, 0)[1] >> 8)
        assert os.waitpid(child, 0)[1] == 0

work("parent", 5)
other = threading.Thread(target=fork)  # with a ring of its own
other.start()
work("parent", 5)
other.join()
worker = multiprocessing.get_context("fork").Process(target=work, args=("worker", 11))
worker.start()
worker.join()
assert worker.exitcode == 0
work("parent", 5)
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_forked_pythons_write_as_processes_of_their_own(recorded, python):
    if python_release(python) < ABI3:
        pytest.skip("older than 3.8")
    rows, data, done = recorded([python, "-c", FORKS])
    assert done.status == 0, done
    assert not faults(data), data["ranges"]
    assert data["ranges"]["marks"] == 233 and sum(row["count"] for row in data["counters"]) == 233
    assert counts(rows) == {
        ("sonde", "parent"): 15, ("sonde", "child"): 200, ("sonde", "grandchild"): 7, ("sonde", "worker"): 11,
        ("d", "shared"): 233, ("sonde", "around the fork"): 1,
    }
    assert sorted(row["count"] for row in data["counters"]) == [7, 11, 15, 200]


MOMENTS = """
import os
import sonde

def child():
    for _ in range(3):
        sonde.step("train")
    os._exit(0)

for _ in range(40):
    pid = os.fork()
    if pid == 0:
        child()
    os.waitpid(pid, 0)
"""


def test_steps_of_processes_of_a_moment(recorded):
    """Their files are gone when their last records are looked at; the names of their steps are not."""
    _, data, done = recorded(["/usr/bin/python3", "-c", MOMENTS])
    assert done.status == 0, done
    assert [row["count"] for row in data["steps"]["rows"]] == [2] * 40, data["notes"]  # the last has no end


def test_fork_and_exec(recorded, workload):
    """A forked child says nothing; the program that it executes does."""
    rows, data, done = recorded(workload("api", "fork"))
    assert done.status == 0, done
    assert counts(rows) == {("sonde", "around the fork"): 1, ("sonde", "after exec"): 1} and not faults(data)
    assert data["counters"] is None


def test_killed_in_a_range(recorded, workload):
    rows, _, done = recorded(workload("api", "kill"))
    assert done.status == 128 + signal.SIGKILL
    assert rows["sonde", "left open"]["open_count"] == 1


CPP = """
#include <sonde/sonde.h>
#include <stdexcept>
int main()
{
    try {
        sonde_range outer("outer");
        sonde_range inner("thrown out of");
        throw std::runtime_error("x");
    } catch (const std::exception &) {
    }
    sonde_range after("after");
    sonde_token token = SONDE_TOKEN_INIT;
    sonde_token(nullptr);
    return 0;
}
"""


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_cpp_program(recorded, tmp_path, sonde_path, standard):
    """Objects end their ranges when an exception passes; the header gives no warnings."""
    if not shutil.which("g++"):
        pytest.fail("there is no C++ compiler; tools/deps test installs one")
    (tmp_path / "program.cc").write_text(CPP.replace("sonde_token token", "struct sonde_token token"))
    subprocess.run(["g++", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-variable",
                    f"-I{ROOT / 'include'}", str(tmp_path / "program.cc"), f"-L{sonde_path.parent / 'src' / 'api'}",
                    "-lsonde", "-ldl", "-pthread", "-o", str(tmp_path / "program")], check=True)
    rows, data, done = recorded([str(tmp_path / "program")])
    assert done.status == 0
    assert counts(rows) == {("sonde", name): 1 for name in ("outer", "thrown out of", "after")} and not faults(data)
    assert rows["sonde", "thrown out of"]["total_ns"] <= rows["sonde", "outer"]["total_ns"]


@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_header_alone(tmp_path, standard):
    (tmp_path / "only.c").write_text("#include <sonde/sonde.h>\nint main(void) { sonde_mark(\"x\"); return 0; }\n")
    for compiler in filter(shutil.which, ("gcc", "clang")):
        subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                        f"-I{ROOT / 'include'}", str(tmp_path / "only.c")], check=True)


def python_release(python):
    done = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0, 0)


def test_python(recorded, package):
    rows, data, done = recorded(["/usr/bin/python3", "-X", "dev", "-c", EXERCISE], env={"PYTHONPATH": package})
    assert (done.status, done.stdout) == (0, "True 1 False\n"), done
    assert counts(rows) == RANGES_OF_PYTHON and not faults(data), data["ranges"]
    assert rows["async", "coroutine"]["kind"] == "process" and rows["async", "coroutine"]["minimum_ns"] >= 2e6
    assert [(row["name"], row["count"], row["last"]) for row in data["counters"]] == [("loss", 2, 2)]
    assert data["inference"]["requests"][0]["tokens"] == 4
    assert data["ranges"]["marks"] == 1 + 5 + 2000


WITHOUT_EXTENSION = """
import sonde, sys
from sonde import _core, phase

@sonde.range("deco")
def add(a, b):
    return a + b

with sonde.range("outer", "domain", {"n": 1}) as outer, phase("prefill"):
    assert add(1, 2) == 3
sonde.mark("m"), sonde.counter("c", 1), sonde.token(0, request="r")
part = _core.part(None, "p", "d")
part.begin(), part.begin_outermost(True), part.end()
_core.parts_end(len(_core.parts_open()))
_core.range_push("a"), _core.range_pop(), _core.range_end(_core.range_start("b"))
assert len(NAMES) > 10 and set(NAMES) <= set(dir(_core)), dir(_core)
assert sys.modules["sonde._core"] is _core and sonde._core is _core
print(sonde.is_open(), sonde.window(), sonde.step(), sonde.step(), _core.open_session("/nonexistent"))
"""


def test_where_the_extension_cannot_be_loaded(recorded, package, tmp_path):
    """As in builds without the interpreter lock: the program runs, and is told when it is recorded."""
    alone = tmp_path / "alone"
    shutil.copytree(Path(package) / "sonde", alone / "sonde", ignore=shutil.ignore_patterns("_core.*"))
    show = "from sonde import _core; print([name for name in dir(_core) if name[0] != '_'])"
    names = subprocess.run(["/usr/bin/python3", "-c", show], env={**os.environ, "PYTHONPATH": package},
                           capture_output=True, text=True, check=True).stdout
    script = f"NAMES = {names}\n" + WITHOUT_EXTENSION
    command = ["/usr/bin/python3", "-X", "dev", "-W", "error", "-c", script]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(alone)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False 0 1 2 False\n", "")
    rows, _, done = recorded(command, env={"PYTHONPATH": str(alone)})
    assert (done.status, done.stdout) == (0, "False 0 1 2 False\n") and not rows
    (said,) = [line for line in done.stderr.splitlines() if "sonde._core cannot be imported" in line]
    assert "No module named 'sonde._core'" in said and "install sonde again" in said


def test_fields_of_python(recorded, package, sonde, tmp_path):
    recorded(["/usr/bin/python3", "-c", EXERCISE], env={"PYTHONPATH": package})
    trace = tmp_path / "trace.json"
    sonde("export", "-f", "chrome", "-o", trace, tmp_path / "api.pftrace", check=0)
    events = json.loads(trace.read_text())["traceEvents"]
    (event,) = [event for event in events if event["name"] == "with fields"]
    args = dict(event["args"])
    assert args.pop("huge") is None and args.pop("less") is None  # infinity, which JSON has not
    assert args == {"int": 1, "real": 2.5, "text": "t", "yes": 1, "big": 2**63, "minus": -5, "range domain": "torch"}
    # A sample may have found the function of that name.
    (mark,) = [event for event in events if event["name"] == "mark" and event["ph"] == "i"]
    assert mark["args"] == {"\u00e9": "?"}


@pytest.mark.parametrize("python", PYTHONS)
def test_stable_abi(package, python):
    """One file for all releases: without a recording, warnings of the debug mode being errors."""
    if python_release(python) < ABI3:
        pytest.skip("older than the stable ABI that the extension has")
    done = subprocess.run([python, "-X", "dev", "-W", "error", "-c", EXERCISE], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": package})
    assert (done.returncode, done.stdout, done.stderr) == (0, "False 0 False\n", "")


def session_folders():
    return set(Path("/dev/shm").glob("sonde-*"))


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.01)


def test_sessions_that_begin_later(sonde, report, start_workload, workload, tmp_path):
    """A program joins a recording that attached to it, and when that is over the next."""
    program = subprocess.Popen(workload("api", "late"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    sonde.started.append(program)
    assert program.stdout.readline().startswith("ready")

    def say(folder):
        program.stdin.write(f"{folder}\n")
        program.stdin.flush()
        return [program.stdout.readline().strip() for _ in range(2)]

    assert say("/nonexistent") == ["joined 0", "open 0"] and say("/tmp") == ["joined 0", "open 0"]
    for number in range(2):
        before = session_folders()
        capture = tmp_path / f"late-{number}.pftrace"
        recording = sonde.start("record", "-p", program.pid, "-o", capture)
        wait_for(lambda: any((folder / "gate").exists() for folder in session_folders() - before))
        folder = next(folder for folder in session_folders() - before
                      if folder.name.startswith(f"sonde-{recording.pid}-"))
        wait_for(lambda: say(folder) == ["joined 1", "open 1"])
        assert say("/tmp") == ["joined 0", "open 1"], "it stays in the session that it is in"
        recording.send_signal(signal.SIGINT)
        assert recording.wait(60) == 0
        assert say(folder) == ["joined 0", "open 0"]
        rows = {row["name"]: row for row in report(capture)["ranges"]["rows"]}
        assert list(rows) == ["late"] and rows["late"]["count"] >= 2


def test_ranges_over_many_windows(sonde, report, package, tmp_path):
    """Ranges that are open when a window begins or ends are cut there, and no note calls that a fault."""
    script = """
import threading, time, sonde
end = time.monotonic() + 2.5
def work():
    with sonde.range("whole"):
        while time.monotonic() < end:
            with sonde.range("outer"):
                for _ in range(20):
                    with sonde.range("inner"):
                        pass
                time.sleep(0.001)  # what rings hold is enough on a busy machine
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
print("ready", flush=True)
[thread.join() for thread in threads]
"""
    capture = tmp_path / "windows.pftrace"
    recording = sonde.start("record", "--window", "signal:USR2", "-o", capture, "--", "/usr/bin/python3", "-c", script,
                            env={"PYTHONPATH": package})
    assert recording.stdout.readline() == "ready\n"
    while recording.poll() is None:
        recording.send_signal(signal.SIGUSR2)
        time.sleep(0.02)
    assert recording.returncode == 0
    data = report(capture)
    assert data["windows"]["windows_in_capture"] >= 2 and not faults(data), data["ranges"]
    rows = {row["name"]: row for row in data["ranges"]["rows"]}
    assert rows["inner"]["count"] > 100 and "whole" not in rows, "its begin was in no window"
    assert not [note for note in data["notes"] if "ranges" in note], data["notes"]
    longest = max(row["duration_ns"] for row in data["windows"]["rows"])
    assert max(row["maximum_ns"] for row in rows.values()) <= longest


def test_pkg_config_finds_what_make_install_installs(sonde_path, tmp_path):
    done = subprocess.run(["meson", "install", "-C", sonde_path.parent, "--no-rebuild", "--quiet"], capture_output=True, text=True,
                          env={**os.environ, "DESTDIR": str(tmp_path / "root")})
    assert done.returncode == 0, done.stdout + done.stderr
    check_found(tmp_path, tmp_path / "root", own_places())
