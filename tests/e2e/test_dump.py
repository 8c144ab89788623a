# SPDX-License-Identifier: Apache-2.0
"""sonde dump: where every thread of a process is now."""

import os
import subprocess
import sys

import pytest

needs_bpf = pytest.mark.skipif(os.geteuid() != 0, reason="stacks of sleeping threads are read by BPF, which needs root")

PROGRAM = """
import threading, time
lock = threading.Lock()
lock.acquire()

def take():
    with lock:
        pass

def inner():
    time.sleep(1000)

def outer():
    inner()

def spin():
    while True:
        pass

for function in (take, outer, spin)[:COUNT]:
    threading.Thread(target=function, daemon=True).start()
while len(threading.enumerate()) < COUNT + 1:
    pass
print("ready", flush=True)
threading.Event().wait(1000)
"""


@pytest.fixture
def start_python():
    started = []

    def start(count):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("COUNT", str(count))], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def functions(thread, kind="python"):
    return [frame["function"] for frame in thread["frames"] if frame["kind"] == kind]


def dump(sonde, pid):
    """Its threads: by their innermost function of the program, "" for the main thread."""
    document = sonde("dump", "--json", "-p", pid, check=0).json()
    assert document["format"] == "sonde-dump" and document["pid"] == pid
    threads = document["threads"]
    assert threads[0]["tid"] == pid
    own = {"take", "inner", "spin", "Event.wait"}
    return {next((name for name in functions(thread) if name in own), ""): thread for thread in threads}


@needs_bpf
def test_every_thread_of_a_python_program_that_sleeps(sonde, start_python):
    process = start_python(2)
    threads = dump(sonde, process.pid)
    assert set(threads) == {"take", "inner", "Event.wait"}
    assert {name: thread["waits_for"] for name, thread in threads.items()} == {
        "take": "lock",
        "inner": "sleep",
        "Event.wait": "lock",
    }
    for thread in threads.values():
        assert thread["state"] == "waiting" and thread["interpreter_lock"] == "released"
        assert thread["stack_end"] == "complete"
        assert functions(thread, "native") and functions(thread, "kernel")
    names = functions(threads["inner"])
    assert names.index("inner") + 1 == names.index("outer"), "innermost first"
    lines = {frame["function"]: frame["line"] for frame in threads["inner"]["frames"]}
    assert lines["inner"] == PROGRAM.splitlines().index("    time.sleep(1000)") + 1


@needs_bpf
def test_who_holds_the_interpreter_lock(sonde, start_python):
    process = start_python(3)
    spinning = dump(sonde, process.pid)["spin"]
    assert spinning["interpreter_lock"] in ("held", "waiting")
    assert spinning["state"] == "running" or spinning["waits_for"] in ("cpu", "gil")
    text = sonde("dump", "-p", process.pid, check=0).stdout
    assert f"Process {process.pid}: " in text and text.count("\nThread ") == 4
    assert "    spin (<string>:" in text


@needs_bpf
def test_waits_of_a_native_program(sonde, start_workload):
    running = start_workload("waits", 30)
    text = sonde("dump", "-p", running.pid, check=0).stdout
    threads = {block.split("\n")[0]: block for block in text.split("\nThread ")[1:]}
    for what, function in (
        ("a lock or condition", "wait_for_lock"),
        ("a pipe", "wait_for_pipe"),
        ("a socket", "wait_for_socket"),
        ("poll, select, epoll", "wait_in_poll"),
        ("sleep", "wait_in_sleep"),
    ):
        found = [block for head, block in threads.items() if f"waiting: {what}" in head and function in block]
        assert len(found) == 1, (what, text)
        assert "waits.c:" in found[0]


@needs_bpf
def test_the_process_goes_on(sonde, start_python):
    process = start_python(1)
    dump(sonde, process.pid)
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{process.pid}/status").read().splitlines())
    assert status["State"].startswith("S") and status["TracerPid"] == "0"


@needs_bpf
def test_the_interpreter_is_shown_when_asked_for(sonde, start_python):
    process = start_python(1)
    text = sonde("dump", "--show-interpreter", "-p", process.pid, check=0).stdout
    assert "_PyEval_EvalFrameDefault" in text
    assert "_PyEval_EvalFrameDefault" not in sonde("dump", "-p", process.pid, check=0).stdout


def test_what_cannot_be_dumped_is_one_sentence(sonde):
    gone = sonde("dump", "-p", 2**22 - 1, check=1)
    assert gone.stdout == "" and gone.stderr.count("\n") == 1 and "there is no process" in gone.stderr
    assert "sonde dump -p PID" in sonde("dump", check=2).stderr
    assert "one process" in sonde("dump", "-p", 1, "-p", 2, check=2).stderr


def test_without_privileges_it_says_why(sonde_unprivileged, start_python):
    refused = sonde_unprivileged("dump", "-p", start_python(1).pid, check=1)
    assert refused.stdout == "" and refused.stderr.count("\n") == 1, refused.stderr
    assert "CAP_BPF" in refused.stderr or "root" in refused.stderr
