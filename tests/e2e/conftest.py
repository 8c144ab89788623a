# SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test can ask for: the program, workloads, a cache of its own, who it runs as.

SONDE names the program and SONDE_WORKLOADS the folder of the built workloads; without them the build in build/
is tested. Fixtures:

    sonde(*arguments, ...)     runs sonde to its end, returns a Finished (status, stdout, stderr, seconds)
    sonde.start(*arguments)    starts it, returns a subprocess.Popen that is ended with the test
    report(capture, ...)       `sonde report --json` as Python objects
    workload(name, *arguments) the command line of a workload
    start_workload(name, ...)  starts one, waits until it is ready, returns a Running (pid, lines, ...)
    unprivileged               a command prefix that runs the rest as nobody
    sonde_unprivileged(...)    sonde as nobody, in a folder of nobody's; .directory, .start(...)
    shared_traces              the folder of real traces, SONDE_TRACES or ../shared/traces beside the checkout
    torch2                     a Python with PyTorch 2
    open_page(address, ...)    a page in a real browser (browser.py)
    start_server("serve", ...) a Server (server_client.py) on a free port
    pairs(kind)                the folder of a pair of traces that PyTorch 2 made (pairs/make_pairs.py)
"""

import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from browser import browser, open_page  # noqa: F401 (fixtures)
from server_client import Server

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Finished:
    status: int
    stdout: str
    stderr: str
    seconds: float

    def json(self):
        return json.loads(self.stdout)

    def __str__(self):
        return f"exit status {self.status}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


@functools.cache
def report_validator():
    """Of the JSON Schema of the report; None without jsonschema, as test_report_schema.py says."""
    try:
        import jsonschema
    except ImportError:
        return None
    schema = json.loads((ROOT / "schema" / "report.schema.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def members_once(pairs):
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member is there twice: {[key for key, _ in pairs]}"
    return {key: value[:20] + value[-20:] if isinstance(value, list) else value for key, value in members.items()}


def check_report(text):
    """Every document that a test has made fits the schema; of long arrays the ends are enough."""
    if text.startswith('{\n  "format": "sonde-report",') and report_validator():
        report_validator().validate(json.loads(text, object_pairs_hook=members_once))


class Sonde:
    """The program under test with an environment of its own."""

    def __init__(self, path, environment, directory):
        self.path = str(path)
        self.environment = environment
        self.directory = directory
        self.started = []

    def __call__(self, *arguments, prefix=(), env=None, timeout=120, cwd=None, check=None, stdin=None):
        """Runs to the end. `check` is the exit status that is expected, None for any."""
        begin = time.monotonic()
        done = subprocess.run(
            [*prefix, self.path, *map(str, arguments)],
            env={**self.environment, **(env or {})},
            cwd=cwd or self.directory,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
        finished = Finished(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)
        check_report(finished.stdout)
        if check is not None:
            assert finished.status == check, f"sonde {' '.join(map(str, arguments))}: {finished}"
        return finished

    def start(self, *arguments, prefix=(), env=None, cwd=None, **options):
        process = subprocess.Popen(
            [*prefix, self.path, *map(str, arguments)],
            env={**self.environment, **(env or {})},
            cwd=cwd or self.directory,
            stdin=subprocess.DEVNULL,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE),
            text=True,
            errors="replace",
            **options,
        )
        self.started.append(process)
        return process

    def end_all(self):
        for process in self.started:
            end(process)


def end(process):
    """Ends a process that a test left behind, the polite way first."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    process.wait()


@dataclass
class Running:
    process: subprocess.Popen
    lines: list  # what it printed up to and with "ready PID"

    @property
    def pid(self):
        return self.process.pid

    def wait(self, timeout=60):
        """The exit status; what it printed meanwhile is appended to lines."""
        # Not communicate(): it would lose what is already in the stream's buffer. The output is small.
        status = self.process.wait(timeout)
        self.lines += self.process.stdout.read().splitlines()
        return status


@pytest.fixture(scope="session")
def sonde_path():
    path = Path(os.environ.get("SONDE", ROOT / "build" / "sonde"))
    if not os.access(path, os.X_OK):
        pytest.exit(f"there is no program {path}; build it with 'make' or name it in SONDE", 2)
    return path.resolve()


@pytest.fixture(scope="session")
def workload_directory(sonde_path):
    standard = sonde_path.parent / "tests" / "e2e" / "workloads"
    path = Path(os.environ.get("SONDE_WORKLOADS", standard))
    if not path.is_dir():
        pytest.exit(f"there are no workloads in {path}; build them or name them in SONDE_WORKLOADS", 2)
    return path.resolve()


@pytest.fixture(scope="session")
def is_root():
    return os.geteuid() == 0


@pytest.fixture
def cache_directory(tmp_path):
    path = tmp_path / "cache"
    path.mkdir()
    return path


@pytest.fixture
def sonde(sonde_path, tmp_path, cache_directory):
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache_directory), "LC_ALL": "C.UTF-8"}
    runner = Sonde(sonde_path, environment, tmp_path)
    yield runner
    runner.end_all()


@pytest.fixture
def report(sonde):
    """report(capture, *arguments) -> the parsed JSON of `sonde report --json`."""

    def load(capture, *arguments):
        return sonde("report", "--json", *arguments, capture, check=0).json()

    return load


@pytest.fixture
def workload(workload_directory):
    def command(name, *arguments):
        return [str(workload_directory / name), *map(str, arguments)]

    return command


@pytest.fixture
def start_workload(workload):
    started = []

    def start(name, *arguments, prefix=(), env=None):
        process = subprocess.Popen(
            [*prefix, *workload(name, *arguments)],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("ready"):
                return Running(process, lines)
        raise AssertionError(f"{name} ended before it was ready: {lines}")

    yield start
    for process in started:
        end(process)


@pytest.fixture(scope="session")
def unprivileged_program(sonde_path):
    """The program where nobody can reach and execute it, wherever the build folder lies."""
    directory = Path(tempfile.gettempdir()) / f"sonde-e2e-{os.getpid()}"
    directory.mkdir(mode=0o755)
    copy = directory / "sonde"
    shutil.copy(sonde_path, copy)
    directory.chmod(0o755)
    copy.chmod(0o755)
    yield copy
    shutil.rmtree(directory)


@pytest.fixture
def unprivileged(is_root):
    """A command prefix that runs the rest without any privilege; empty when there are none anyway."""
    if not is_root:
        return []
    if not shutil.which("setpriv"):
        pytest.fail("setpriv (package util-linux) is needed to test as nobody")
    nobody = pwd.getpwnam("nobody")
    return [
        "setpriv",
        f"--reuid={nobody.pw_uid}",
        f"--regid={nobody.pw_gid}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
    ]


@pytest.fixture
def sonde_unprivileged(unprivileged_program, unprivileged):
    """As `sonde`, but run as nobody, in a folder and with a cache that nobody can write."""
    directory = unprivileged_program.parent / f"home-{time.monotonic_ns()}"
    directory.mkdir()
    directory.chmod(0o777)
    environment = {
        **os.environ,
        "HOME": str(directory),
        "XDG_CACHE_HOME": str(directory / "cache"),
        "LC_ALL": "C.UTF-8",
    }
    runner = Sonde(unprivileged_program, environment, directory)

    def run(*arguments, prefix=(), **options):
        return runner(*arguments, prefix=[*unprivileged, *prefix], **options)

    run.directory = directory
    run.start = lambda *arguments, **options: runner.start(*arguments, prefix=unprivileged, **options)
    yield run
    runner.end_all()


# ---- traces ----


@pytest.fixture(scope="session")
def shared_traces():
    path = Path(os.environ.get("SONDE_TRACES", ROOT.parent / "shared" / "traces"))
    if not path.is_dir():
        pytest.skip(f"there are no real traces in {path}; SONDE_TRACES names their folder")
    return path


PAIRS = ("train", "threads", "gloo", "names")


@pytest.fixture(scope="session")
def torch2():
    """A Python with PyTorch 2."""
    python = ROOT / ".venv-torch2" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no PyTorch 2; 'tools/venv torch2' installs it from PyPI")
    return python


@pytest.fixture(scope="session")
def pairs(tmp_path_factory, torch2):
    """pairs(kind) -> folder; all kinds but the slow ones are made together, once."""
    folder, made = tmp_path_factory.mktemp("pairs"), {}

    def make(kinds):
        script = ROOT / "tests" / "e2e" / "pairs" / "make_pairs.py"
        done = subprocess.run(
            [torch2, "-W", "ignore", script, folder, *kinds], capture_output=True, text=True, timeout=600
        )
        made.update(line.split(maxsplit=1) for line in done.stdout.splitlines())
        assert all(made.get(kind, "failed") != "failed" for kind in kinds), done.stdout + done.stderr[-2000:]

    def pair(kind):
        if kind not in made:
            make(PAIRS if kind in PAIRS else [kind])
        return folder / kind

    return pair

@pytest.fixture
def start_server(sonde):
    servers = []

    def run(command, *arguments, **options):
        listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
        servers.append(Server(sonde.start(command, *listen, *arguments, **options)))
        return servers[-1]

    yield run
    for server in servers:
        if server.process.poll() is None:
            assert server.end() == 0, server.process.stderr.read()
