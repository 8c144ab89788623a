# SPDX-License-Identifier: Apache-2.0
"""What every kernel gives, and what sonde says where it gives less. Nothing here asks for a fast machine, and the machine's
settings are left as they are."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from forbidden import BPF, PERF_EVENT_OPEN, forbidden

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
SECONDS = 600  # for a recording, before it is given up

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="BPF, and being another user, need root")


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    return tmp_path_factory.mktemp("warm")


@pytest.fixture
def cache_directory(warm):
    """One for all: emulated, the tables of libc alone take a second."""
    return warm


@pytest.fixture
def record(sonde, tmp_path):
    def run(*command, options=(), env=None, prefix=(), status=0):
        capture = tmp_path / "kernel.pftrace"
        sonde("record", "-q", "-F", 199, *options, "-o", capture, *(["--", *command] if command else []), env=env,
              prefix=prefix, check=status, timeout=SECONDS)
        return sonde("report", "--json", "--limit", 100000, capture, check=0, timeout=SECONDS).json()

    return run


def functions(data):
    return {row["name"]: row for row in data["tables"]["function"]["rows"]}


def frames(data):
    return [[frame["function"] for frame in row["frames"]] for row in data["tables"]["stack"]["rows"]]


def processes(data):
    return {row["name"] for row in data["tables"]["process"]["rows"]}


PYTHON = """
import time
def inner():
    while time.thread_time() < end: sum(range(2000))
def outer():
    inner()
end = time.thread_time() + 1
outer()
"""
SHORT = "for i in 1 2 3 4 5 6 7 8; do /bin/ls / | /usr/bin/wc -l; done"


@pytest.fixture(scope="module")
def launching(sonde_path):
    """A program that launches, and what it needs to be recorded."""
    doubles = sonde_path.parent / "tests/doubles/cupti"
    double = str(doubles / "libcupti-double-13.so")
    return [str(doubles / "cuda-program"), double, "300", "late"], {"SONDE_CUPTI": double}


@pytest.fixture(scope="module")
def recorded(sonde_path, workload_directory, launching, tmp_path_factory, warm):
    """One recording of all programs: what a kernel takes longest for is to check the BPF programs."""
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    command, settings = launching
    programs = [f"{workload_directory}/threads 1", f"{workload_directory}/syscalls 1", f"{workload_directory}/waits 0.5",
                f"/usr/bin/python3 -c {shlex.quote(PYTHON)}", f"({SHORT}) >/dev/null", shlex.join(command)]
    script = "".join(f"{program} & " for program in programs) + "wait"
    capture = tmp_path_factory.mktemp("recorded") / "all.pftrace"
    environment = {**os.environ, **settings, "XDG_CACHE_HOME": str(warm)}

    def run(*words):
        done = subprocess.run([sonde_path, *words], env=environment, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done
        return done.stdout

    run("record", "-q", "--mode", "user", "-o", capture, "--", "/bin/sh", "-c", script)  # fills the cache
    run("record", "-q", "-F", "199", "--wait", "exact", "--launch-stacks", "bpf", "-o", capture, "--", "/bin/sh", "-c", script)
    data = json.loads(run("report", "--json", "--limit", "100000", capture))
    print("\n==== stacks", json.dumps(data["completeness"]["samples_by_stop"]))
    return data


def test_stacks_of_commands(recorded):
    assert recorded["session"]["unwind_mode"] == "bpf"
    stops = recorded["completeness"]["samples_by_stop"]
    # A busy machine gives sonde too little time to read files that have just been mapped.
    assert stops["complete"] + stops["new_mapping"] >= 0.9 * recorded["completeness"]["user_stacks"], stops
    assert {"ls", "wc", "threads", "python3"} <= processes(recorded)


def test_kernel_frames(recorded):
    kernel = [stack for stack in frames(recorded) if "read_zeroes" in stack and stack[-1] != "read_zeroes"]
    assert any(any("read_zero" in name or "vfs_read" in name for name in stack[stack.index("read_zeroes") + 1:]) for stack in kernel)


def test_python(recorded):
    assert any({"outer", "inner"} <= set(stack) and stack.index("outer") < stack.index("inner") for stack in frames(recorded))


def test_waits(recorded):
    assert recorded["waiting"]["mode"] == "exact"
    seen = {(row["function"], row["reason"]) for row in recorded["waiting"]["rows"]}
    assert {("wait_for_lock", "lock"), ("wait_for_pipe", "pipe"), ("wait_for_socket", "socket"), ("wait_in_poll", "poll")} <= seen


def check_launches(data):
    """Emulated, the first launches may be over before the probe is there."""
    work = data["device_work"]
    assert work["launches"]["complete_stacks"] == work["launches"]["stacks"] > 0
    assert work["attribution"]["matched"] > 0 and "cuda_launch_kernel" in {line["function"] for line in work["lines"]}


def test_launches(recorded):
    check_launches(recorded)


def test_launches_in_the_process(record, launching):
    command, settings = launching
    check_launches(record(*command, options=("--mode", "user", "--launch-stacks", "inprocess"), env=settings, status=5))


@needs_root
def test_a_running_process(record, start_workload):
    running = start_workload("spin", 600)
    data = record(options=("-d", 2, "-p", running.pid))
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9
    assert running.process.poll() is None


@needs_root
def test_the_machine(record, start_workload):
    running = start_workload("spin", 600)
    data = record(options=("-d", 2, "-a"))
    assert running.pid in {row["pid"] for row in data["tables"]["process"]["rows"]}
    assert "spin_half" in functions(data)


@needs_root
def test_dump(sonde, start_workload):
    text = sonde("dump", "-p", start_workload("waits", 600).pid, check=0, timeout=SECONDS).stdout
    assert {"wait_for_lock", "wait_for_pipe", "wait_for_socket", "wait_in_poll"} <= set(re.findall(r"\w+", text))


# ---- with less ----


@pytest.fixture
def as_user(sonde_unprivileged, workload_directory, sonde):
    """as_user() -> what an ordinary user's `sonde record` of `spin` said, and its report or None"""

    def run(prefix=()):
        spin = sonde_unprivileged.directory / "spin"
        shutil.copy(workload_directory / "spin", spin)
        capture = sonde_unprivileged.directory / "user.pftrace"
        done = sonde_unprivileged("record", "-o", capture, "-F", 199, "--", spin, 1, prefix=prefix, timeout=SECONDS)
        data = sonde("report", "--json", "--limit", 100000, capture, check=0).json() if done.status == 0 else None
        return done, data

    return run


def check_user_mode(data, kernel_stacks):
    session = data["session"]
    assert session["unwind_mode"] == "user" and "CAP_BPF and CAP_PERFMON" in session["unwind_mode_reason"]
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9
    kernel = [frame for row in data["tables"]["stack"]["rows"] for frame in row["frames"] if frame["kind"] == "kernel"]
    assert kernel_stacks or not kernel


def check_refused(done, *words):
    assert done.status == 1 and done.stderr.count("\n") == 1, done
    assert all(word in done.stderr for word in words), done.stderr


def check_at_level(level, done, data):
    """Upstream, 2 is the highest level that means something; Debian's kernels give nothing above."""
    if done.status == 0:
        check_user_mode(data, level < 2)
    else:
        assert level > 2
        check_refused(done, f"kernel.perf_event_paranoid is {level}", "sysctl kernel.perf_event_paranoid=2")


def test_an_ordinary_user(as_user):
    check_at_level(int(PARANOID.read_text()), *as_user())


@needs_root
@pytest.mark.parametrize("level", [3, 4])
def test_levels_that_give_nothing(unprivileged, unprivileged_program, tmp_path, level):
    """Debian's kernels answer EACCES above 2, others do not; so here are that answer and a file that names the level."""
    pretended = tmp_path / "level"
    pretended.write_text(f"{level}\n")
    mounted = ["unshare", "--mount", "sh", "-c", f'mount --bind {pretended} {PARANOID} && exec "$0" "$@"']
    if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")
    command = [*mounted, *unprivileged, *forbidden("EACCES", PERF_EVENT_OPEN), unprivileged_program]
    done = subprocess.run([*command, "record", "--", "true"], capture_output=True, text=True, cwd="/")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert f"kernel.perf_event_paranoid is {level}" in done.stderr and "kernel.perf_event_paranoid=2" in done.stderr
    doctor = json.loads(subprocess.run([*command, "doctor", "--json"], capture_output=True, text=True).stdout)
    source = next(entry for entry in doctor["sources"] if entry["name"] == "cpu-user")
    assert source["status"] == "no" and source["fix"] == "sudo sysctl kernel.perf_event_paranoid=2", source


@pytest.mark.parametrize("error, words", [("ENOSYS", ["no perf events", "gVisor"]), ("EPERM", ["seccomp filter", "PERFMON"])])
def test_without_perf_events(sonde, error, words):
    for options in ((), ("--mode", "user")):
        check_refused(sonde("record", *options, "--", "true", prefix=forbidden(error)), "cannot sample processes", *words)
    check_refused(sonde("record", "--mode", "bpf", "--", "true", prefix=forbidden("ENOSYS")), "bpf(2) is missing", "gVisor")


@needs_root
def test_without_bpf(record, workload):
    """A kernel without bpf(2) has the other mode, with kernel stacks for root."""
    data = record(*workload("spin", 1), prefix=forbidden("ENOSYS", BPF))
    assert data["session"]["unwind_mode"] == "user" and "bpf(2) is missing" in data["session"]["unwind_mode_reason"]
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9
