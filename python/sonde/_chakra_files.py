# SPDX-License-Identifier: Apache-2.0
"""The files of the trace manager: written beside the worker's thread, each with its status in a manifest.

    pytorch_et_<tag>.json        PyTorch execution trace
    kineto_<tag>.json            Chrome trace
    pytorch_et_plus_<tag>.json   both, linked                  } with VLLM_CHAKRA_AUTO_CONVERT
    chakra_trace_<tag>/          Chakra execution trace        }
    manifest_<worker>.json       what each window was, and what became of each of its files

A torch that writes a trace keeps the interpreter lock until it is written: the file is written by a forked child, that
does nothing else, and by this process's own thread where the child fails.
"""

import os
import queue
import re
import signal
import subprocess
import threading
import time
from array import array
from typing import Any, Callable, Dict, List, Optional

from . import _place, _torch
from ._log import describe, warn_once
from ._program import program_path, why_no_program

PENDING_MAX = 2  # windows whose files are being written; one more is not opened
WINDOWS_MAX = 1000  # that a manifest lists, the latest ones
_CHILD_S = 600.0
_CONVERT_S = 3600.0

Record = Dict[str, Any]


def _copy(record: Record) -> Record:
    """A copy of a window's record, which another thread may be adding to: each dict is copied in one step."""
    return {name: dict(value) if isinstance(value, dict) else value for name, value in dict(record).items()}


class Manifest:
    """All windows of this process, in a file that is replaced atomically at each change."""

    def __init__(self, directory: str, options: Record) -> None:
        self._lock = threading.Lock()
        self._windows: List[Record] = []
        self._omitted = 0
        self._head: Record = {"format": "sonde.chakra-manifest", "version": 1, "options": options, "skipped": {}}
        self._directory = directory

    @property
    def path(self) -> str:
        return os.path.join(self._directory, f"manifest_{_place.worker_name(_place.here())}.json")

    def add(self, window: Record) -> None:
        with self._lock:
            self._windows.append(window)
            if len(self._windows) > WINDOWS_MAX:
                del self._windows[0]
                self._omitted += 1

    def skip(self, reason: str) -> None:
        """Counts a window that was not opened."""
        with self._lock:
            self._head["skipped"][reason] = self._head["skipped"].get(reason, 0) + 1

    def write(self) -> None:
        """Never raises: a failure to write is reported once."""
        with self._lock:
            place = _place.here()
            windows = [_copy(window) for window in self._windows]
            value = dict(self._head, **place._asdict(), windows_omitted=self._omitted, windows=windows)
            try:
                _torch.write_json(self.path, value)
            except Exception as error:
                warn_once("manifest", f"the manifest {self.path} could not be written: {describe(error)}")


class Exporter:
    """One thread that writes files. It is a daemon and ends with the process: finish() waits for it."""

    def __init__(self) -> None:
        self._jobs: "queue.Queue[Optional[Callable[[], None]]]" = queue.Queue()
        self._thread: Optional[threading.Thread] = None
        self._pending = threading.Semaphore(PENDING_MAX)

    def reserve(self) -> bool:
        """Reserves a place in the queue for the files of a window that is about to open. False if the queue is full."""
        return self._pending.acquire(blocking=False)

    def release(self) -> None:
        """Releases the place that reserve() took."""
        self._pending.release()

    def submit(self, job: Callable[[], None]) -> None:
        """Runs `job` in the thread, then releases the place of its window."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sonde-export", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def finish(self, timeout_s: float) -> bool:
        """Waits until everything is written. False if that takes longer."""
        thread, self._thread = self._thread, None
        if thread is None or thread is threading.current_thread():
            return True
        self._jobs.put(None)
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job()
            except Exception as error:
                warn_once("export", "a window could not be written: " + describe(error))
            finally:
                self.release()


def _wait_for(pid: int) -> int:
    """The exit status of a child, which is killed when it takes too long: a lock it inherited may never be free."""
    end = time.monotonic() + _CHILD_S
    pause_s = 0.001
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        time.sleep(pause_s)
        pause_s = min(0.05, pause_s * 1.5)


def _in_child(write: Callable[[str], Any]) -> Callable[[str], Any]:
    """Runs `write` in a forked child, or in the caller if the child fails."""

    def apart(path: str) -> None:
        try:
            pid = os.fork()
        except OSError:
            write(path)
            return
        if pid == 0:
            status = 1
            try:
                signal.alarm(int(_CHILD_S))  # should the parent be gone
                write(path)
                status = 0
            finally:
                os._exit(status)
        try:
            failed = _wait_for(pid) != 0
        except ChildProcessError:  # the program waits for any child, or for none: look at the file
            failed = not os.path.exists(path)
        if failed:
            write(path)

    return apart


def export_kineto(window: Record, profile: Any, path: str) -> None:
    """Writes the Chrome trace of a profile that has stopped, and its status."""
    begin = time.monotonic()
    try:
        size = _torch.write_whole(path, _in_child(profile.export_chrome_trace))
        window["kineto"].update(status="ok", file=os.path.basename(path), bytes=size)
    except Exception as error:
        window["kineto"].update(status="failed: the file could not be written: " + describe(error))
        warn_once("kineto", f"{path} could not be written: {describe(error)}")
    window["kineto"]["export_s"] = round(time.monotonic() - begin, 3)


def export_et(window: Record, part: str, path: str) -> None:
    """Renames the execution trace, which torch wrote during the window, and sets its status."""
    if window["et"]["status"] != "open":
        return
    try:
        _torch.check_whole(part)
        os.replace(part, path)
        window["et"].update(status="ok", file=os.path.basename(path), bytes=os.stat(path).st_size)
    except Exception as error:
        window["et"]["status"] = "failed: the file could not be written: " + describe(error)
        warn_once("et", f"{path} could not be written: {describe(error)}")


# ---- checks ----

# Names of keys, which no text inside a value can be taken for: its quotes are escaped.
_NODE_ID = re.compile(rb'"id": (\d+)')
_NODE_OPERATOR = re.compile(rb'"rf_id"(?:, "type": "uint64", "value")?: ([1-9]\d*)')
_KINETO_OPERATOR = re.compile(rb'"Record function id": ([1-9]\d*)')
_FEW = 100  # operators at the edges of a window, that only one of the traces has


def _numbers(path: str, *patterns: "re.Pattern[bytes]") -> "List[array[int]]":
    """The numbers that each pattern finds in a file; torch writes a line for each of them."""
    found = [array("Q") for _ in patterns]
    with open(path, "rb") as file:
        for line in file:
            for numbers, pattern in zip(found, patterns):
                numbers.extend(map(int, pattern.findall(line)))
    return found


def _check_nodes(et: str, kineto: Optional[str], all_threads: bool) -> None:
    """Raises ValueError if two nodes have the same id, or the operators differ from those of Kineto's trace."""
    ids, operators = _numbers(et, _NODE_ID, _NODE_OPERATOR)
    repeated = len(ids) - len(set(ids))
    if repeated:
        raise ValueError(f"{repeated} of its {len(ids)} nodes have the id of another one")
    if kineto is None:
        return
    (recorded,) = _numbers(kineto, _KINETO_OPERATOR)
    expected, present = set(recorded), set(operators)
    common = len(expected & present)
    few = max(_FEW, len(expected) // 20)
    if len(expected) - common > few:
        raise ValueError(f"it lacks {len(expected) - common} of the {len(expected)} operators of the Kineto trace")
    if all_threads and len(present) - common > few:
        raise ValueError(f"{len(present) - common} of its {len(present)} operators are not in the Kineto trace")


def check_et(window: Record, et: str, kineto: str, all_threads: bool) -> None:
    """Looks through an execution trace that has its name: what is wrong with it becomes its status.

    Ids agree where torch ran the observer with the profile. Without `all_threads` Kineto has a part of the operators.
    """
    if window["et"]["status"] != "ok":
        return
    comparable = window["kineto"]["status"] == "ok" and "missing" not in window["et"]
    other = kineto if comparable else None
    try:
        # In a child, since the check would hold the worker's lock and take its memory. If the child fails, it is done
        # again here, to have the reason.
        _in_child(lambda path: _check_nodes(path, other, all_threads))(et)
    except Exception as error:
        window["et"]["status"] = "failed: " + str(error)
        warn_once("et", f"the execution trace {et} is not usable: {error}")


# ---- conversion ----


def _sonde_chakra() -> "tuple[Optional[str], str]":
    """The program that has the command chakra, or None and the reason."""
    program = program_path()
    if program is None:
        return None, "not converted: " + why_no_program()
    try:
        done = subprocess.run(
            [program, "chakra", "--help"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"not converted: {program} does not run: {describe(error)}"
    if done.returncode != 0:
        return None, (
            f"not converted: {program} has no command 'chakra'; a later sonde converts the files that are here"
        )
    return program, ""


def _run_step(command: List[str]) -> str:
    """ "ok", or what went wrong."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_CONVERT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "failed: " + describe(error)
    if done.returncode != 0:
        return "failed: " + " ".join(done.stderr.decode("utf-8", "replace").split())[-500:]
    return "ok"


def _run_steps(program: str, steps: List[List[str]]) -> str:
    """ "ok", or the message of the first command that failed."""
    for step in steps:
        status = _run_step([program, "chakra", *step])
        if status != "ok":
            return f"{status} (sonde chakra {step[0]})"
    return "ok"


def _in_folder(folder: str, fill: Callable[[], str]) -> str:
    """The status of `fill`, which writes into the folder; one that stayed empty is not left behind."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        return "failed: " + describe(error)
    status = fill()
    try:
        os.rmdir(folder)
    except OSError:  # it has something in it
        pass
    return status


def convert(window: Record, directory: str) -> None:
    """Links both traces, converts the result and checks that with `sonde chakra`, or says in the window why it is not
    done."""
    if window["et"]["status"] != "ok" or window["kineto"]["status"] != "ok":
        window["convert"] = {"status": "not converted: it needs both traces"}
        return
    program, problem = _sonde_chakra()
    if program is None:
        window["convert"] = {"status": problem}
        warn_once("convert", problem)
        return
    rank = str(window["rank"] or 0)
    linked = f"pytorch_et_plus_{window['tag']}.json"
    folder = f"chakra_trace_{window['tag']}"
    converted = os.path.join(folder, f"chakra_trace.{rank}.et")  # simulators look for PREFIX.RANK.et
    et, kineto = (os.path.join(directory, window[name]["file"]) for name in ("et", "kineto"))
    linked_path, converted_path = os.path.join(directory, linked), os.path.join(directory, converted)
    pair = ["--rank", rank, "--chakra-host-trace", et, "--chakra-device-trace", kineto]
    steps = [
        ["link", *pair, "--format", "json", "--output-file", linked_path],
        ["convert", "--input", linked_path, "--output", converted_path],
        ["check", converted_path],
    ]
    status = _in_folder(os.path.join(directory, folder), lambda: _run_steps(program, steps))
    window["convert"] = {"status": status}
    for key, name in (("linked", linked), ("converted", converted)):
        if os.path.exists(os.path.join(directory, name)):
            window["convert"][key] = name
    if status != "ok":
        warn_once("convert", f"the traces of a window could not be converted: {status}")
