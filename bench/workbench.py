# SPDX-License-Identifier: Apache-2.0
"""What every measurement needs: the programs, a folder, commands run with their cost, workloads in the background."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import needs
from needs import ROOT

TRAIN = ROOT / "examples" / "train.py"
FOREVER = 1_000_000


class Missing(Exception):
    """Something a measurement needs is not on this machine; the text says what and how to get it."""


class Failed(Exception):
    """A command did not do what was asked; the text ends with what it printed."""


@dataclass
class Finished:
    """A command that ended: what it printed, what it and the children it waited for cost, and the most memory that it
    had itself where that was watched."""

    status: int
    output: str
    seconds: float
    cpu_seconds: float
    peak_rss_bytes: int | None


def report_progress(text):
    print(f"bench: {text}", flush=True)


class Workbench:
    """`quick` shortens every run: good to see that all works, too short to quote; `shortest` shortens it again: to see that it
    works at all. `peers`: a folder of repositories, or None. `declared`: the needs of the measurement that runs."""

    def __init__(self, build, quick=False, peers=None, shortest=False):
        self.build = Path(build).resolve()
        self.quick, self.shortest = quick or shortest, shortest
        self.peers = peers
        self.declared = ()
        self.present = {}
        self.failed_parts, self.left_out = [], []  # of the measurement that runs
        self.sonde = str(self.build / "sonde")
        self.folder = Path(tempfile.mkdtemp(prefix="sonde-bench-"))
        self.cache = self.folder / "cache"
        self.commands = []
        if not os.access(self.sonde, os.X_OK):
            raise Missing(f"there is no program {self.sonde}; build it with 'make'")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def pick(self, full, quick, shortest=None):
        if self.shortest and shortest is not None:
            return shortest
        return quick if self.quick else full

    # What measurements need: needs.py.

    def has(self, need):
        if need not in self.present:
            self.present[need] = bool(need.is_there(self))
        return self.present[need]

    def take(self, need):
        """Before it is used: it is there, and run.py has looked for it."""
        if need not in self.declared:
            raise AssertionError(f"'{need.name}' is not among what the measurement declares: NEEDS, NEEDS_OF_PARTS")
        if not self.has(need):
            raise Missing(f"no {need.name} here: {need.get}")

    def leave_out(self, part, error, is_ours=True):
        """A part of the measurement was not made. What is missing was said before; what failed is a failure, unless it is a program
        of somebody else that did."""
        report_progress(f"left out: {part}: {error}")
        if not isinstance(error, Missing):
            (self.failed_parts if is_ours else self.left_out).append(part)

    def program(self, need):
        """The path of a program that is named as its need."""
        self.take(need)
        return shutil.which(need.name)

    def path(self, name):
        return str(self.folder / name)

    def clear_cache(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def environment(self):
        return {**os.environ, "XDG_CACHE_HOME": str(self.cache), "LC_ALL": "C.UTF-8", "HOME": str(self.folder)}

    def run(self, *command, check=True, output=True, during=None, watch_memory=False):
        """Runs a command to its end. Output that is not wanted goes to /dev/null, as a benchmark of reading needs it.
        `during` is called with its pid once it runs."""
        peak = None
        command = [str(word) for word in command]
        log = self.folder / "output.txt"
        with open(log if output else os.devnull, "wb") as sink:
            begin = time.monotonic()
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=self.folder, env=self.environment()
            )
            if during:
                during(child.pid)
            if watch_memory:
                peak = peak_memory_until_end(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        text = log.read_text(errors="replace") if output else ""
        if check and child.returncode != 0:
            raise Failed(f"{' '.join(command[:6])} … ended with status {child.returncode}: {text[-500:].strip()}")
        return Finished(child.returncode, text, seconds, usage.ru_utime + usage.ru_stime, peak)

    @contextmanager
    def background(self, *command, ready=None):
        """Runs a command while the body runs; `ready`: a text to wait for in its output. Yields its Popen."""
        command = [str(word) for word in command]
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if ready else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.environment(),
            text=True,
        )
        try:
            if ready and not any(ready in line for line in child.stdout):
                raise Failed(f"{' '.join(command[:4])} … ended before it was ready")
            yield child
        finally:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()

    @contextmanager
    def two_trainers(self):
        """Two training loops of one thread each: two busy CPUs. Yields their pids."""
        command = [*self.train(self.debian_python(), FOREVER, threads=1), "--every", str(FOREVER)]
        with self.background(*command, ready="step") as one, self.background(*command, ready="step") as other:
            yield [one.pid, other.pid]

    # What is profiled.

    def debian_python(self):
        self.take(needs.DISTRIBUTION_TORCH)
        return needs.DISTRIBUTION_PYTHON

    def peers_python(self):
        """The distribution's Python, which has its PyTorch, with other profilers beside it."""
        self.take(needs.DISTRIBUTION_TORCH)
        self.take(needs.PEERS)
        return needs.environment_python("peers")

    def torch2_python(self):
        self.take(needs.TORCH2)
        return needs.environment_python("torch2")

    def page_python(self):
        """A Python that drives a browser with the page."""
        for need in (needs.PAGE, needs.CHROMIUM, needs.PLAYWRIGHT):
            self.take(need)
        return needs.environment_python("tests")

    def train(self, python, seconds, threads=2, steps=None):
        command = [python, str(TRAIN), "--seconds", str(seconds), "--threads", str(threads)]
        return command + (["--steps", str(steps)] if steps else [])

    # The two profilers.

    def record(self, capture, *arguments, **options):
        self.take(needs.PRIVILEGES)
        return self.run(self.sonde, "record", "-q", "-o", self.path(capture), *arguments, **options)

    def report(self, capture, *arguments):
        """The report as Python objects."""
        return json.loads(self.run(self.sonde, "report", "--json", *arguments, self.path(capture)).output)

    def perf(self):
        return self.program(needs.PERF)

    def perf_record(self, data, frequency, stacks, *arguments, **run_options):
        """`stacks`: the options that choose the unwinder. With --buildid-mmap the kernel says the build-ids: no pass
        over the files is needed at the end, and perf does not abort while somebody else on the machine asks for them,
        too (docs/benchmarks.md says why)."""
        self.take(needs.PRIVILEGES)
        options = ["--buildid-mmap", "-e", "cpu-clock", "-F", str(frequency), *stacks, "-o", self.path(data)]
        return self.run(self.perf(), "record", *options, *arguments, **run_options)

    def perf_sample_count(self, data):
        stats = self.run(self.perf(), "report", "--stats", "-i", self.path(data)).output
        counts = [line.split(":")[1].split()[0] for line in stats.splitlines() if "SAMPLE events:" in line]
        if not counts:
            raise Failed(f"perf report --stats names no samples: {stats[-300:]}")
        return int(counts[0])

    def size(self, name):
        return os.path.getsize(self.path(name))

    def remove(self, *names):
        for name in names:
            Path(self.path(name)).unlink(missing_ok=True)


def cpu_seconds(pid):
    """User and system time of a running process, all its threads, without its children; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid):
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def peak_memory_until_end(pid):
    """The high-water mark of a process, looked at ten times a second until it ends. wait4() would tell as much as the
    process that started it had, when that is more."""
    peak = 0
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = max(peak, int(line.split()[1]) * 1024)
        time.sleep(0.1)
    return peak


def is_over(pid):
    """A child's, which is then reaped."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


@contextmanager
def children_end():
    """Processes that the body started and left behind are ended: the polite way first, so that a recording leaves nothing."""
    before = set(children_of(os.getpid()))
    try:
        yield
    finally:
        left = [pid for pid in children_of(os.getpid()) if pid not in before]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            left = [pid for pid in left if not is_over(pid)]
            for pid in left:
                os.kill(pid, number)
            for _ in range(100 if left else 0):
                left = [pid for pid in left if not is_over(pid)]
                time.sleep(0.1 if left else 0)
