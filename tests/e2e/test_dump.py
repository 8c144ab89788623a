# SPDX-License-Identifier: Apache-2.0
"""sonde dump: where every thread of a process is now."""

import os
import re
import subprocess
import sys

import pytest

needs_bpf = pytest.mark.skipif(os.geteuid() != 0, reason="stacks of sleeping threads are read by BPF, which needs root")
modes = pytest.mark.parametrize("mode", [pytest.param("bpf", marks=needs_bpf), "ptrace"])

# Where Yama lets parents alone trace, a process may allow everybody.
ALLOW_TRACING = """
import ctypes
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
"""

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
ALLOW_TRACING
print("ready", flush=True)
threading.Event().wait(1000)
"""


@pytest.fixture
def start_python():
    started = []

    def start(count, prefix=(), python=sys.executable, program=PROGRAM):
        program = program.replace("ALLOW_TRACING", ALLOW_TRACING).replace("COUNT", str(count))
        process = subprocess.Popen([*prefix, python, "-c", program], stdout=subprocess.PIPE, text=True)
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


def dump(sonde, pid, mode):
    """Its threads: by their innermost function of the program, "" for the main thread."""
    document = sonde("dump", "--json", "--mode", mode, "-p", pid, check=0).json()
    assert document["format"] == "sonde-dump" and document["pid"] == pid and document["mode"] == mode
    threads = document["threads"]
    assert threads[0]["tid"] == pid
    own = {"take", "inner", "spin", "Event.wait"}
    return {next((name for name in functions(thread) if name in own), ""): thread for thread in threads}


def assert_all_sleep(threads, mode):
    assert set(threads) == {"take", "inner", "Event.wait"}
    assert {name: thread["waits_for"] for name, thread in threads.items()} == {
        "take": "lock",
        "inner": "sleep",
        "Event.wait": "lock",
    }
    for thread in threads.values():
        assert thread["state"] == "waiting" and thread["interpreter_lock"] == "released"
        assert thread["stack_end"] == "complete"
        assert functions(thread, "native")
        assert bool(functions(thread, "kernel")) == (mode == "bpf")
    names = functions(threads["inner"])
    assert names.index("inner") + 1 == names.index("outer"), "innermost first"
    lines = {frame["function"]: frame["line"] for frame in threads["inner"]["frames"]}
    assert lines["inner"] == PROGRAM.splitlines().index("    time.sleep(1000)") + 1


@modes
def test_every_thread_of_a_python_program_that_sleeps(sonde, start_python, mode):
    process = start_python(2)
    assert_all_sleep(dump(sonde, process.pid, mode), mode)
    assert_all_sleep(dump(sonde, process.pid, mode), mode)  # after a stop the kernel restarts calls


@modes
def test_who_holds_the_interpreter_lock(sonde, start_python, mode):
    process = start_python(3)
    spinning = dump(sonde, process.pid, mode)["spin"]
    assert spinning["interpreter_lock"] in ("held", "waiting")
    assert spinning["state"] == "running" or spinning["waits_for"] in ("cpu", "gil")
    text = sonde("dump", "--mode", mode, "-p", process.pid, check=0).stdout
    command = f"{sys.executable} -c import threading, time \u2026"  # of several lines: its first
    assert text.startswith(f"Process {process.pid}: {command}\n") and text.count("\nThread ") == 4
    assert "    spin (<string>:" in text
    if sys.version_info < (3, 14):
        assert text.splitlines()[-1].startswith("Python threads have the name of their process"), "why they are alike"


POOL = """
import queue, threading
jobs = queue.SimpleQueue()
named = threading.Semaphore(0)

def work(index):
    with open("/proc/thread-self/comm", "w") as name:
        name.write(f"worker-{index}")
    named.release()
    jobs.get()

for index in range(COUNT):
    threading.Thread(target=work, args=(index,), daemon=True).start()
for index in range(COUNT):
    named.acquire()
ALLOW_TRACING
print("ready", flush=True)
threading.Event().wait(1000)
"""


@modes
def test_threads_with_the_same_stack_are_one_entry(sonde, start_python, mode):
    """A pool's idle workers: one stack with the names and ids of all, and in JSON a thread each."""
    process = start_python(6, program=POOL)
    for _ in range(50):  # until every worker waits in get()
        blocks = sonde("dump", "--mode", mode, "-p", process.pid, check=0).stdout.split("\n\n")[-2:]
        if "\n6 threads " in f"\n{blocks[1]}":
            break
    head = blocks[1].splitlines()[0]
    ids, names = re.fullmatch(r"6 threads ([\d -]+) ((?:\"worker-\d\" ){4})and 2 more names: waiting: .*", head).groups()
    assert len(set(names.split())) == 4, head
    assert "Python threads have the name" not in blocks[1]
    assert "work (<string>:" in blocks[1] and "6 threads" not in blocks[0]
    threads = sonde("dump", "--json", "--mode", mode, "-p", process.pid, check=0).json()["threads"]
    assert {thread["name"] for thread in threads[1:]} == {f"worker-{index}" for index in range(6)}
    ranges = [[int(end) for end in part.split("-")] for part in ids.split()]
    assert sorted(tid for ends in ranges for tid in range(ends[0], ends[-1] + 1)) == [thread["tid"] for thread in threads[1:]]


@modes
def test_waits_of_a_native_program(sonde, start_workload, mode):
    running = start_workload("waits", 30)
    text = sonde("dump", "--mode", mode, "-p", running.pid, check=0).stdout
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


@modes
def test_the_process_goes_on(sonde, start_python, mode):
    process = start_python(1)
    dump(sonde, process.pid, mode)
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{process.pid}/status").read().splitlines())
    assert status["TracerPid"] == "0" and status["State"][0] in "SR", status["State"]


@modes
def test_the_interpreter_is_shown_when_asked_for(sonde, start_python, mode):
    process = start_python(1)
    text = sonde("dump", "--mode", mode, "--show-interpreter", "-p", process.pid, check=0).stdout
    assert "_PyEval_EvalFrameDefault" in text
    assert "_PyEval_EvalFrameDefault" not in sonde("dump", "--mode", mode, "-p", process.pid, check=0).stdout


def test_ones_own_program_without_privileges(sonde_unprivileged, unprivileged, start_python):
    process = start_python(2, prefix=unprivileged, python="/usr/bin/python3")
    done = sonde_unprivileged("dump", "--json", "-p", process.pid, check=0)
    assert done.json()["mode"] == "ptrace"
    said = done.stderr.splitlines()
    assert len(said) == 2 and "the process was stopped for " in said[0] and "CAP_BPF" in said[1], said
    assert_all_sleep(dump(sonde_unprivileged, process.pid, "ptrace"), "ptrace")


INTERRUPTED = """
import ctypes, os, select, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
ALLOW_TRACING
wake = os.eventfd(0)
poll = select.epoll()
poll.register(wake, select.EPOLLIN)
left, right = socket.socketpair()
os.set_blocking(left.fileno(), True)
left.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, b"\\x10\\x0e" + bytes(14)) # an hour
results = {}

def in_poll():
    results["poll"] = libc.epoll_wait(poll.fileno(), ctypes.create_string_buffer(64), 1, -1)

def in_socket():
    results["socket"] = libc.recv(left.fileno(), ctypes.create_string_buffer(8), 8, 0)

threads = [threading.Thread(target=function) for function in (in_poll, in_socket)]
for thread in threads:
    thread.start()

print("ready", flush=True)
input()
os.eventfd_write(wake, 1)
right.send(b"four")
for thread in threads:
    thread.join()
print(results, flush=True)
"""


def test_calls_that_a_stop_would_end_go_on(sonde):
    """A stop ends epoll_wait() and recv() with a timeout with EINTR: their threads are read without one."""
    command = [sys.executable, "-c", INTERRUPTED.replace("ALLOW_TRACING", ALLOW_TRACING)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        waits = {}
        while waits != {"in_poll": "poll", "in_socket": "socket"}:  # until both threads are there
            threads = sonde("dump", "--json", "--mode", "ptrace", "-p", process.pid, check=0).json()["threads"]
            names = {name: thread for thread in threads for name in functions(thread)}
            waits = {name: names[name]["waits_for"] for name in ("in_poll", "in_socket") if name in names}
        assert "epoll_wait" in functions(names["in_poll"], "native")
        output, _ = process.communicate("go\n")
        assert sorted(output.strip("{}\n").split(", ")) == ["'poll': 1", "'socket': 4"]
    finally:
        process.kill()
        process.wait()


def test_what_cannot_be_dumped_is_one_sentence(sonde):
    gone = sonde("dump", "-p", 2**22 - 1, check=1)
    assert gone.stdout == "" and gone.stderr.count("\n") == 1 and "there is no process" in gone.stderr
    assert "sonde dump -p PID" in sonde("dump", check=2).stderr
    assert "one process" in sonde("dump", "-p", 1, "-p", 2, check=2).stderr


def test_the_program_of_somebody_else_says_why(sonde_unprivileged):
    """This test's own process is root's, or, without root, process 1 is somebody else's."""
    pid = os.getpid() if os.geteuid() == 0 else 1
    refused = sonde_unprivileged("dump", "-p", pid, check=1)
    assert refused.stdout == "" and refused.stderr.count("\n") == 1, refused.stderr
    assert "sudo" in refused.stderr, refused.stderr
