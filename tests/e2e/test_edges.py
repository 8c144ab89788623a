# SPDX-License-Identifier: Apache-2.0
"""Odd surroundings and odd targets of a recording: each ends in a right result or one clear sentence."""

import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="sampling by BPF needs root")


def one_sentence(done):
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("sonde: ")
    return lines[0]


def wait_until(condition, timeout=10):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


def state(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]


# ---- what the command finds ----


def test_the_command_finds_its_surroundings_unchanged(sonde, tmp_path):
    """sonde raises its own descriptor limit, blocks signals and watches children: none of that is inherited."""
    script = (
        "import resource, signal; "
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0]); "
        "print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))); "
        "print(signal.getsignal(signal.SIGCHLD), signal.getsignal(signal.SIGHUP)); "
        "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1])"
    )

    def surroundings():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    direct = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=surroundings,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    process = sonde.start(
        "record", "-q", "-o", tmp_path / "x.pftrace", "--", sys.executable, "-c", script, preexec_fn=surroundings
    )
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert output == direct.stdout


def test_ignored_child_signals_keep_the_exit_status(sonde, tmp_path):
    process = sonde.start(
        "record", "-q", "-o", tmp_path / "x.pftrace", "--", "sh", "-c", "exit 3",
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )  # fmt: skip
    assert process.wait(30) == 3


# ---- signals and streams ----


def test_nohup_survives_a_hangup(sonde, report, workload, tmp_path):
    capture = tmp_path / "nohup.pftrace"
    process = sonde.start(
        "record", "-q", "-o", capture, "--", *workload("spin", 2),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    time.sleep(1)
    process.send_signal(signal.SIGHUP)
    assert process.wait(30) == 0
    assert report(capture)["totals"]["duration_ns"] > 1.8e9


@pytest.mark.parametrize("which", [signal.SIGHUP, signal.SIGTERM])
def test_signals_are_passed_on(sonde, report, workload, tmp_path, which):
    capture = tmp_path / "signal.pftrace"
    process = sonde.start(
        "record", "-q", "-o", capture, "--", *workload("spin", 60),
        preexec_fn=lambda: signal.signal(which, signal.SIG_DFL),  # nohup of the whole suite ignores it
    )  # fmt: skip
    assert process.stdout.readline().startswith("ready")
    process.send_signal(which)
    assert process.wait(30) == 128 + which
    assert report(capture)["losses"]["recording_complete"]


def test_signals_are_passed_on_after_the_recording_ended(sonde, workload, tmp_path):
    process = sonde.start("record", "-q", "-d", 0.2, "-o", tmp_path / "x.pftrace", "--", *workload("spin", 60))
    assert process.stdout.readline().startswith("ready")
    time.sleep(1.5)
    assert process.poll() is None, "the command is waited for"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM


def test_nobody_reads_the_account(sonde, report, workload, tmp_path):
    capture = tmp_path / "unread.pftrace"
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = sonde.start("record", "-o", capture, "--", *workload("spin", 1), stderr=write_end)
    os.close(write_end)
    assert process.wait(30) == 0
    assert report(capture)["losses"]["recording_complete"]


def test_closed_standard_streams(sonde, report, workload, tmp_path):
    capture = tmp_path / "closed.pftrace"
    script = f'"$0" record -o {capture} -- {" ".join(workload("spin", 1))} <&- >&- 2>&-'
    subprocess.run(["sh", "-c", script, sonde.path], env=sonde.environment, timeout=60)
    assert report(capture)["capture"]["truncated_at_byte"] is None
    assert b"reach the thread" not in capture.read_bytes()


def test_session_without_a_terminal(sonde, report, workload, tmp_path):
    capture = tmp_path / "setsid.pftrace"
    process = sonde.start("record", "-o", capture, "--", *workload("spin", 1), start_new_session=True)
    assert process.wait(30) == 0
    assert report(capture)["totals"]["samples"] > 5


# ---- output ----


def test_output_to_a_pipe(sonde, report, workload, tmp_path):
    fifo, capture = tmp_path / "fifo", tmp_path / "copied.pftrace"
    os.mkfifo(fifo)
    with open(capture, "wb") as file:
        reader = subprocess.Popen(["cat", fifo], stdout=file)
    sonde("record", "-q", "-o", fifo, "--", *workload("spin", 1), check=0)
    assert reader.wait(10) == 0
    assert report(capture)["losses"]["recording_complete"]


def test_output_to_a_pipe_that_nobody_reads_any_more(sonde, workload, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["head", "-c", "100", fifo], stdout=subprocess.DEVNULL)
    done = sonde("record", "--uncompressed", "-F", 4999, "-o", fifo, "--", *workload("spin", 2), check=1)
    reader.wait(10)
    assert "Broken pipe" in one_sentence(done)


def test_output_is_a_directory(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path, "--", "true", check=1)
    assert "irectory" in one_sentence(done)
    assert tmp_path.is_dir()


def test_output_to_nowhere(sonde, workload):
    sonde("record", "-o", "/dev/null", "--", *workload("spin", 0.3), check=0)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# ---- limits ----


@pytest.mark.parametrize("arguments", [["-d", "0.01"], ["-F", "20000"], ["-F", "1"]])
def test_extreme_options(sonde, report, workload, tmp_path, arguments):
    capture = tmp_path / "extreme.pftrace"
    sonde("record", *arguments, "-o", capture, "--", *workload("spin", 1), check=0)
    data = report(capture)
    assert data["losses"]["recording_complete"]
    assert data["losses"]["samples_lost"] == 0


def test_nothing_sampled_is_said(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "x.pftrace", "--", "sleep", "0.2", check=0)
    if "0 samples" in done.stderr:
        assert "no samples were taken" in done.stderr


def limited(sonde, kind, value, *arguments):
    return sonde(*arguments, prefix=["prlimit", f"--{kind}={value}:{value}"])


def test_few_descriptors(sonde, report, workload, tmp_path):
    capture = tmp_path / "few.pftrace"
    done = limited(sonde, "nofile", 88, "record", "-o", capture, "--", *workload("spin", 1))
    assert done.status == 0, done
    assert report(capture)["completeness"]["complete_share"] > 0.9


@needs_root
def test_too_few_descriptors(sonde, tmp_path):
    done = limited(sonde, "nofile", 16, "record", "-o", tmp_path / "x.pftrace", "--", "true")
    assert done.status == 1
    assert "ulimit -n" in one_sentence(done)


@pytest.mark.parametrize("megabytes", [30, 200])
def test_little_memory(sonde, workload, tmp_path, megabytes):
    """A result or a sentence; the command runs in the same limit."""
    arguments = ["record", "-q", "-o", tmp_path / "x.pftrace", "--", *workload("spin", 0.3)]
    done = limited(sonde, "as", megabytes << 20, *arguments)
    assert done.status in (0, 1), done
    if done.status:
        one_sentence(done)


@pytest.mark.parametrize("environment", [{"HOME": "", "XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "/proc"}])
def test_no_place_for_the_cache(sonde, report, workload, tmp_path, environment):
    capture = tmp_path / "x.pftrace"
    sonde("record", "-o", capture, "--", *workload("spin", 1), env=environment, check=0)
    assert report(capture)["completeness"]["complete_share"] > 0.9


def spoil(path, how):
    size = path.stat().st_size
    if how == "cut":
        os.truncate(path, size - 8)
    elif how == "empty":
        os.truncate(path, 0)
    elif how == "zeros":
        path.write_bytes(bytes(size))
    elif how == "noise":
        path.write_bytes(os.urandom(size))
    elif how == "flipped":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        path.write_bytes(data)
    else:
        path.unlink()
        {"folder": os.mkdir, "pipe": os.mkfifo, "endless": lambda p: os.symlink("/dev/zero", p)}[how](path)


@pytest.mark.parametrize("how", ["cut", "empty", "zeros", "noise", "flipped", "folder", "pipe", "endless"])
def test_spoiled_cache(sonde, report, workload, tmp_path, cache_directory, how):
    capture = tmp_path / "x.pftrace"
    sonde("record", "-o", capture, "--", *workload("spin", 1), check=0)
    files = [path for path in cache_directory.rglob("*") if path.is_file()]
    assert files
    for path in files:
        spoil(path, how)
    sonde("record", "-o", capture, "--", *workload("spin", 1), check=0, timeout=60)
    data = report(capture)
    assert data["completeness"]["complete_share"] > 0.9
    assert "spin_half" in {row["name"] for row in data["tables"]["function"]["rows"]}


def test_what_was_not_used_for_long_leaves_a_full_cache(sonde, workload, tmp_path, cache_directory):
    old = [cache_directory / "sonde" / folder / "old" for folder in ("unwind", "symbols")]
    sonde("record", "-q", "-o", tmp_path / "x.pftrace", "--", *workload("spin", 0.2), check=0)
    used = {path for path in cache_directory.rglob("*") if path.is_file()}
    assert used
    for path in old:
        path.touch()
        os.truncate(path, 2 << 30)
        os.utime(path, (1, 1))
    new = shutil.copy(workload("spin")[0], tmp_path / "new")
    sonde("record", "-q", "-o", tmp_path / "x.pftrace", "--", new, 0.2, check=0)
    assert not any(path.exists() for path in old)
    assert used < {path for path in cache_directory.rglob("*") if path.is_file()}


# ---- targets ----


@needs_root
def test_attach_twice_to_the_same(sonde, report, start_workload, tmp_path):
    running = start_workload("spin", 20)
    captures = {}
    for mode in ("bpf", "user"):
        captures[mode] = tmp_path / f"{mode}.pftrace"
        sonde("record", "--mode", mode, "-d", 1, "-o", captures[mode], "-p", running.pid, "-p", running.pid, check=0)
        data = report(captures[mode])
        assert len(data["tables"]["process"]["rows"]) == 1
        assert data["totals"]["samples"] < 130, "nothing is sampled twice"


@needs_root
def test_two_recordings_of_one_target(sonde, report, start_workload, tmp_path):
    running = start_workload("spin", 20)
    captures = [tmp_path / "one.pftrace", tmp_path / "two.pftrace"]
    both = [sonde.start("record", "-q", "-d", 2, "-o", capture, "-p", running.pid) for capture in captures]
    assert [process.wait(60) for process in both] == [0, 0]
    for capture in captures:
        data = report(capture)
        assert data["totals"]["samples"] > 10
        assert data["completeness"]["complete_share"] > 0.95


@needs_root
def test_sonde_records_itself(sonde, tmp_path):
    script = f'exec "$0" record -q -d 0.5 -o {tmp_path / "self.pftrace"} -p $$'
    done = subprocess.run(["sh", "-c", script, sonde.path], env=sonde.environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done


def test_attach_to_a_zombie(sonde, tmp_path):
    zombie = subprocess.Popen(["true"])
    wait_until(lambda: state(zombie.pid) == "Z")
    done = sonde("record", "-o", tmp_path / "x.pftrace", "-p", zombie.pid, check=1)
    assert f"process {zombie.pid}" in one_sentence(done)
    zombie.wait()


@needs_root
def test_attach_to_a_thread(sonde, start_workload, tmp_path):
    running = start_workload("threads", 20)
    thread = next(tid for tid in os.listdir(f"/proc/{running.pid}/task") if int(tid) != running.pid)
    done = sonde("record", "-o", tmp_path / "x.pftrace", "-p", thread, check=1)
    assert "it is a thread" in one_sentence(done)


@needs_root
def test_target_is_stopped_at_the_end(sonde, report, start_workload, tmp_path):
    running = start_workload("spin", 60)
    capture = tmp_path / "stopped.pftrace"
    process = sonde.start("record", "-q", "-d", 1.5, "-o", capture, "-p", running.pid)
    time.sleep(0.8)
    os.kill(running.pid, signal.SIGSTOP)
    assert process.wait(30) == 0
    assert state(running.pid) == "T", "it is left as it is"
    os.kill(running.pid, signal.SIGCONT)
    assert report(capture)["losses"]["recording_complete"]


def test_set_uid_program_without_privileges(sonde_unprivileged, workload, is_root):
    """The kernel ends sampling by users there: that is said, not guessed at."""
    if not is_root:
        pytest.skip("making a set-uid program needs root")
    program = sonde_unprivileged.directory / "spin-set-uid"
    shutil.copy(workload("spin")[0], program)
    program.chmod(0o4755)
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        pytest.skip("set-uid bits do not count here")
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
         sonde_unprivileged.directory.parent / "sonde",
         "record", "-o", sonde_unprivileged.directory / "x.pftrace", "--", program, "1"],
        env={**os.environ, "XDG_CACHE_HOME": str(sonde_unprivileged.directory)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert "set-uid" in done.stderr


@needs_root
def test_descendants_of_a_short_life_are_described(sonde, report, tmp_path):
    """What /proc could not tell in time comes from the parent: the cgroup always, arguments until exec."""
    capture = tmp_path / "short.pftrace"
    script = "import os\nfor i in range(300):\n p = os.fork()\n if p == 0: sum(range(200000)); os._exit(0)\n os.wait()"
    sonde("record", "-F", 999, "-o", capture, "--", sys.executable, "-c", script, check=0)
    rows = report(capture, "--limit", 1000)["tables"]["process"]["rows"]
    assert len(rows) > 50
    assert all(row["cgroup"] and row["command_line"] for row in rows)


@pytest.mark.slow
def test_more_files_than_may_stay_open(sonde, report, tmp_path, workload_directory):
    """Files beyond the limit are opened again when their tables and lines are needed. sonde itself takes about 70 descriptors."""
    for number in range(60):
        shutil.copy(workload_directory / "libplugin.so", tmp_path / f"libplugin{number}.so")
    script = (
        "import ctypes, time\n"
        f"libraries = [ctypes.CDLL('{tmp_path}/libplugin%d.so' % i) for i in range(60)]\n"
        "end = time.monotonic() + 2\n"
        "while time.monotonic() < end:\n for l in libraries: l.plugin_spin(100000)\n"
    )
    capture = tmp_path / "many.pftrace"
    done = limited(sonde, "nofile", 88, "record", "-F", 999, "-o", capture, "--", sys.executable, "-c", script)
    assert done.status == 0, done
    assert "could not be read" not in done.stderr
    data = report(capture, "--by", "line")
    assert data["completeness"]["complete_share"] > 0.9
    assert any("/plugin.c" in (row["source_file"] or "") for row in data["tables"]["line"]["rows"])


STRIPPED = """
#include <time.h>
#define SPIN(n) __attribute__((noinline)) static void spin_##n(void) \\
	{ static volatile unsigned sum; for (unsigned i = 0; i < n * 100000u; i++) sum += i; }
SPIN(1) SPIN(2) SPIN(3)
int main(void) { while (clock() < CLOCKS_PER_SEC / 2) { spin_1(); spin_2(); spin_3(); } return 0; }
"""


def test_functions_of_stripped_files_without_eh_frame(sonde, report, tmp_path):
    """They are told apart by what is called, each under its own start."""
    (tmp_path / "stripped.c").write_text(STRIPPED)
    options = ["-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    subprocess.run(["cc", *options, "-o", "whole", "stripped.c"], cwd=tmp_path, check=True)
    subprocess.run(["strip", "-o", "stripped", "whole"], cwd=tmp_path, check=True)
    nm = subprocess.run(["nm", "whole"], cwd=tmp_path, capture_output=True, text=True, check=True)
    symbols = {name: int(start, 16) for start, name in re.findall(r"^(\w+) [tT] (\w+)$", nm.stdout, re.M)}
    sonde("record", "-F", 997, "-o", "stripped.pftrace", "--", tmp_path / "stripped", check=0)
    rows = report("stripped.pftrace")["tables"]["function"]["rows"]
    own = {row["name"]: row["self_samples"] for row in rows if row["module"] == "stripped"}
    for name in "spin_1", "spin_2", "spin_3":
        assert own.get(f"[unknown] stripped+{symbols[name]:#x}", 0) > 0, own
    assert f"[unknown] stripped+{symbols['main']:#x}" in own
