# SPDX-License-Identifier: Apache-2.0
"""What every kernel gives, and what sonde says where it gives less. `make test-kernels` runs this file in emulated guests, too,
and writes docs/record.md's table from it: nothing here asks for a fast machine. The settings of a guest, which SONDE_GUEST names,
may be changed; ours are left as they are."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from forbidden import BPF, MADVISE, PERF_EVENT_OPEN, forbidden

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
LOCKDOWN = Path("/sys/kernel/security/lockdown")
HAS_LOOPS = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= (5, 17)

EMULATED = "SONDE_GUEST" in os.environ
# Emulated, a program's start takes longer than a second of it, and has stacks of files that nobody has read yet.
SPIN_SECONDS = 10 if EMULATED else 1
# For a recording, before it is given up: other processors than ours are emulated more slowly.
SECONDS = 3000 if EMULATED and os.uname().machine == "aarch64" else 600

needs_guest = pytest.mark.skipif(not EMULATED, reason="changes settings of the machine: make test-kernels")
needs_loops = pytest.mark.skipif(not HAS_LOOPS, reason="BPF programs of kernels before 5.17 cannot loop")
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


def has_kernel_frames(data):
    return any(frame["kind"] == "kernel" for row in data["tables"]["stack"]["rows"] for frame in row["frames"])


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
# Each takes a millisecond of a processor, or fifty of an emulated one: often enough that samples meet some.
SHORT = f"for i in $(seq {8 if EMULATED else 80}); do /bin/ls / | /usr/bin/wc -l; done"


@pytest.fixture(scope="module")
def launching(sonde_path):
    """A program that launches, and what it needs to be recorded."""
    doubles = sonde_path.parent / "tests/doubles/cupti"
    double = str(doubles / "libcupti-double-13.so")
    return [str(doubles / "cuda-program"), double, "300", "late"], {"SONDE_CUPTI": double}


@pytest.fixture
def note(record_property):
    """note(situation, report or None, sentence): for the table of kernels, the mode, what it shows, and sonde's sentence"""

    def write(situation, data, sentence=""):
        mode = data["session"]["unwind_mode"] if data else "none"
        shows = "nothing" if not data else "kernel stacks" if has_kernel_frames(data) else "user stacks"
        sentence = data["session"].get("unwind_mode_reason") or "" if data else sentence
        record_property(situation, json.dumps([mode, shows, sentence.strip()]))

    return write


@pytest.fixture
def count_stacks(record_property):
    """count_stacks(name, report): how many stacks are complete, for the table of kernels"""

    def write(name, data):
        record_property(name, json.dumps([data["completeness"]["user_stacks"], data["completeness"]["samples_by_stop"]]))

    return write


@pytest.fixture(scope="module")
def recorded(sonde_path, workload_directory, launching, tmp_path_factory, warm):
    """One recording of all programs: what a kernel takes longest for is to check the BPF programs."""
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    if not HAS_LOOPS:
        pytest.skip("BPF programs of kernels before 5.17 cannot loop")
    command, settings = launching
    # The time that sonde needs to read a program's files, if emulated.
    seconds = 4 if EMULATED else 1
    programs = [f"{workload_directory}/threads {seconds}", f"{workload_directory}/syscalls {seconds}", f"{workload_directory}/waits 0.3 8",
                f"/usr/bin/python3 -c {shlex.quote(PYTHON)}", f"({SHORT}) >/dev/null", shlex.join(command)]
    # An emulated CPU has no time for all of them and sonde: their first stacks would be too many to be copied.
    script = "; ".join([*programs, "true"]) if EMULATED else " & ".join([*programs, "wait"])
    rate = ("-F", "99" if EMULATED else "199")
    capture = tmp_path_factory.mktemp("recorded") / "all.pftrace"
    environment = {**os.environ, **settings, "XDG_CACHE_HOME": str(warm)}

    def run(*words):
        done = subprocess.run([sonde_path, *words], env=environment, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done
        return done.stdout

    run("record", "-q", "--mode", "user", "-o", capture, "--", "/bin/sh", "-c", script)  # fills the cache
    run("record", "-q", *rate, "--wait", "exact", "--launch-stacks", "bpf", "-o", capture, "--", "/bin/sh", "-c", script)
    return json.loads(run("report", "--json", "--limit", "100000", capture))


def test_stacks_of_commands(recorded, count_stacks):
    count_stacks("stacks of commands", recorded)
    assert recorded["session"]["unwind_mode"] == "bpf"
    stops = recorded["completeness"]["samples_by_stop"]
    # A busy machine gives sonde too little time to read files that have just been mapped, an emulated one to make their tables, too.
    unread = stops["new_mapping"] + (stops["no_table"] if EMULATED else 0)
    assert stops["complete"] + unread >= 0.9 * recorded["completeness"]["user_stacks"], str(stops)
    assert {"ls", "wc", "threads", "python3"} <= processes(recorded)


def test_kernel_frames(recorded):
    kernel = [stack for stack in frames(recorded) if "read_zeroes" in stack and stack[-1] != "read_zeroes"]
    assert any(any("read_zero" in name or "vfs_read" in name for name in stack[stack.index("read_zeroes") + 1:]) for stack in kernel)


def test_python(recorded):
    assert any({"outer", "inner"} <= set(stack) and stack.index("outer") < stack.index("inner") for stack in frames(recorded))


def test_waits(recorded):
    """The first of them may begin before sonde has read the program's files."""
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


def test_launches_where_madvise_populates_nothing(record, launching):
    """So do kernels before 5.14."""
    command, settings = launching
    data = record(*forbidden("EINVAL", MADVISE), *command, env=settings, status=5,
                  options=("--mode", "user", "--launch-stacks", "inprocess"))
    check_launches(data)


@needs_root
def test_a_running_process(record, start_workload, note):
    running = start_workload("spin", 600)
    data = record(options=("-d", 2, "-p", running.pid))
    session = data["session"]
    assert session["unwind_mode"] == ("bpf" if HAS_LOOPS else "user"), session
    assert HAS_LOOPS or "lacks bpf_loop, which came with 5.17" in session["unwind_mode_reason"]
    note("root", data)
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9
    assert running.process.poll() is None


@pytest.mark.alone
@needs_root
@needs_loops
def test_the_machine(record, start_workload):
    running = start_workload("spin", 600)
    data = record(options=("-d", 2, "-a"))
    assert running.pid in {row["pid"] for row in data["tables"]["process"]["rows"]}
    assert "spin_half" in functions(data)


@needs_root
def test_dump(sonde, start_workload):
    done = sonde("dump", "-p", start_workload("waits", 600).pid, timeout=SECONDS)
    if not HAS_LOOPS:
        check_refused(done, "lacks bpf_loop, which came with 5.17")
        pytest.skip("BPF programs of kernels before 5.17 cannot loop")
    text = done.stdout
    assert done.status == 0 and {"wait_for_lock", "wait_for_pipe", "wait_for_socket", "wait_in_poll"} <= set(re.findall(r"\w+", text))


# ---- with less ----


@pytest.fixture
def as_user(sonde_unprivileged, workload_directory, sonde):
    """as_user() -> what an ordinary user's `sonde record` of `spin` said, and its report or None"""

    def run(prefix=()):
        spin = sonde_unprivileged.directory / "spin"
        shutil.copy(workload_directory / "spin", spin)
        capture = sonde_unprivileged.directory / "user.pftrace"
        done = sonde_unprivileged("record", "-o", capture, "-F", 199, "--", spin, SPIN_SECONDS, prefix=prefix, timeout=SECONDS)
        data = sonde("report", "--json", "--limit", 100000, capture, check=0).json() if done.status == 0 else None
        return done, data

    return run


def check_user_mode(data, kernel_stacks):
    session = data["session"]
    assert session["unwind_mode"] == "user" and "CAP_BPF and CAP_PERFMON" in session["unwind_mode_reason"]
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9
    assert kernel_stacks or not has_kernel_frames(data)


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
@needs_guest
@pytest.mark.parametrize("level", [-1, 0, 1, 2, 3, 4])
def test_levels_of_the_kernel(as_user, note, level):
    before = PARANOID.read_text()
    try:
        PARANOID.write_text(str(level))
        done, data = as_user()
        note(f"an ordinary user, kernel.perf_event_paranoid {level}", data, done.stderr)
        check_at_level(level, done, data)
    finally:
        PARANOID.write_text(before)


@needs_root
@needs_guest
def test_root_without_capabilities(sonde, workload, tmp_path, note):
    """As in a container whose root has none: it is an ordinary user for the kernel."""
    capture, before = tmp_path / "root.pftrace", PARANOID.read_text()
    try:
        PARANOID.write_text("2")
        done = sonde("record", "-o", capture, "-F", 199, "--", *workload("spin", 1), timeout=SECONDS,
                     prefix=("setpriv", "--inh-caps=-all", "--bounding-set=-all"))
        data = sonde("report", "--json", "--limit", 100000, capture, check=0).json() if done.status == 0 else None
        note("root without capabilities, kernel.perf_event_paranoid 2", data, done.stderr)
        check_at_level(2, done, data)
    finally:
        PARANOID.write_text(before)


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
def test_without_perf_events(sonde, note, error, words):
    for options in ((), ("--mode", "user")):
        done = sonde("record", *options, "--", "true", prefix=forbidden(error))
        check_refused(done, "cannot sample processes", *words)
    note(f"bpf(2) and perf_event_open(2) fail with {error}", None, done.stderr)
    check_refused(sonde("record", "--mode", "bpf", "--", "true", prefix=forbidden("ENOSYS")), "bpf(2) is missing", "gVisor")


@needs_root
def test_without_bpf(record, workload, note):
    """A kernel without bpf(2) has the other mode, with kernel stacks for root."""
    data = record(*workload("spin", SPIN_SECONDS), prefix=forbidden("ENOSYS", BPF))
    note("root, a kernel without bpf(2)", data)
    assert data["session"]["unwind_mode"] == "user" and "bpf(2) is missing" in data["session"]["unwind_mode_reason"]
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9


@needs_root
def test_without_btf(record, workload, note):
    """A kernel that was built without it, or a container that hides it."""
    mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"']
    if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")
    data = record(*workload("spin", 1), prefix=mounted)
    note("root, a kernel without BTF", data)
    session = data["session"]
    assert session["unwind_mode"] == "user" and "the kernel has no BTF" in session["unwind_mode_reason"]


@needs_root
@needs_loops
@needs_guest
def test_the_example(record, count_stacks):
    """Emulated, importing PyTorch takes most of the time."""
    data = record("python3", ROOT / "examples/train.py", "--steps", 2, "--batch", 2, options=("-F", 49))
    count_stacks("stacks of the example", data)
    assert "backward" in functions(data)


@needs_root
@needs_guest
def test_lockdown(record, sonde, workload, note):
    """The last of all: it cannot be taken back."""
    subprocess.run(["mount", "-t", "securityfs", "none", LOCKDOWN.parent], capture_output=True)
    if not LOCKDOWN.exists():
        pytest.skip("this kernel has no lockdown")
    LOCKDOWN.write_text("confidentiality")
    data = record(*workload("spin", SPIN_SECONDS))
    note("root, lockdown=confidentiality", data)
    session = data["session"]
    assert session["unwind_mode"] == "user"
    assert not HAS_LOOPS or "lockdown=confidentiality" in session["unwind_mode_reason"]
    assert "spin_half" in functions(data) and data["completeness"]["complete_share"] >= 0.9
    status = {entry["name"]: entry["status"] for entry in sonde("doctor", "--json").json()["sources"]}
    assert status["cpu-bpf"] == "no" and status["cpu-user"] != "no"
