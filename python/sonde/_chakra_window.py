# SPDX-License-Identifier: Apache-2.0
"""One window of the trace manager: execution trace and Kineto trace of the same steps, taken in one profile.

Every call says what fails in the window's record, which the manifest shows, and raises nothing.
"""

import os
import threading
import time
from typing import Any, Dict, Optional

from . import _chakra_files, _place, _torch
from ._log import describe, warn_once

_OLD_ET = (
    "torch {} does not take execution_trace_observer=: the observer was started around the profile, so that its window "
    "is a little wider and record-function ids of both need not agree"
)
_NO_KINETO = "torch {} was built without Kineto: the trace has operators, and no device work or ids to link by"
_WRONG_THREAD = "open: torch {} can be stopped only by the thread that started it: at its next step"
_FORKED = (
    "process {} had a window open when it forked this one, in which torch can begin no other; start the workers "
    "before the window, or with multiprocessing's spawn"
)


def _resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# The window that torch records in this process; in a forked child the one that its parent had open.
_recording: Optional["Window"] = None


def _stop_in_child() -> None:
    """In a forked child, which has one thread: torch's observer would go on there, in the parent's file and with the
    parent's ids. What torch still holds for the file goes nowhere, whenever torch writes it."""
    if _recording is None or _recording._observer is None:
        return
    observer, path = _recording._observer, _recording._et_part
    with open(os.devnull, "wb") as nowhere:
        try:
            _redirect(path, nowhere.fileno())
        except OSError as error:
            warn_once("et-fork", f"a forked process may write into {path}: {describe(error)}")
        stderr = os.dup(2)  # torch says it to the terminal of the program, once for each worker
        os.dup2(nowhere.fileno(), 2)
        try:
            observer.stop()
        except Exception:
            pass
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _redirect(path: str, to: int) -> None:
    """Replaces each of this process's descriptors of the file by `to`."""
    file = os.stat(path)
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.path.samestat(os.fstat(int(name)), file):
                os.dup2(to, int(name), inheritable=False)
        except OSError:
            continue  # that of the listing


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stop_in_child)


class Window:
    """A window, from open() over step() and close(), on the worker's thread, to export(), on any."""

    def __init__(self, options: Any, number: int, opened_by: str) -> None:
        self._options = options
        self._place = _place.here()
        self._profile: Any = None
        self._observer: Any = None
        self._all_threads = False
        self._thread = threading.get_ident()
        self._resident_bytes = 0
        self.record: Dict[str, Any] = {
            "window": number,
            "tag": self._tag(number),
            "rank": self._place.rank,
            "world_size": self._place.world_size,
            "host": self._place.host,
            "pid": self._place.pid,
            "opened_by": opened_by,
            "closed_by": None,
            "status": "open",
            "begin_unix_ns": None,
            "begin_monotonic_ns": None,
            "end_unix_ns": None,
            "end_monotonic_ns": None,
            "steps": 0,
            "torch": None,
            "et": {"status": "not begun"},
            "kineto": {"status": "not begun"},
        }

    def _tag(self, number: int) -> str:
        """pid<PID>_<ms since 1970>[_rank<R>[of<W>]]_w<window>: the beginning is the original form of tags."""
        tag = f"pid{self._place.pid}_{time.time_ns() // 1000000}"
        if self._place.rank is not None:
            tag += f"_rank{self._place.rank}"
            if self._place.world_size is not None:
                tag += f"of{self._place.world_size}"
        return tag + f"_w{number}"

    def _path(self, name: str) -> str:
        return os.path.join(self._options.directory, name.format(self.record["tag"]))

    @property
    def _et_part(self) -> str:
        return self._path(".part-pytorch_et_{}.json")

    def open(self) -> bool:
        """Begins to record. False if it cannot; the record says why."""
        global _recording
        try:
            if _recording is not None:  # torch would say "already enabled", or wait
                raise RuntimeError(_FORKED.format(_recording._place.pid))
            _torch.check_directory(self._options.directory)
            profiler = _torch.load()
        except Exception as error:
            self._fail(error)
            return False
        _recording = self
        try:
            self._start(profiler)
        except Exception as error:
            self._fail(error)
            self._end_observer()
            _recording = None
            return False
        return True

    def _fail(self, error: BaseException) -> None:
        self.record["status"] = "failed: " + describe(error)
        warn_once("window", f"the trace of a window could not begin: {describe(error)}")

    def _start(self, profiler: Any) -> None:
        import torch

        kinds = _torch.activities(profiler)
        kineto_is_built = torch.autograd.kineto_available()
        self.record["torch"] = torch.__version__
        self.record["kineto"] = {"status": "open", "device": _torch.has_device(profiler, kinds)}
        if not kineto_is_built:
            self.record["kineto"]["missing"] = _NO_KINETO.format(torch.__version__)
        arguments = {
            "activities": kinds,
            "record_shapes": self._options.record_shapes,
            "with_stack": self._options.with_stack,
            "profile_memory": self._options.profile_memory,
            # A schedule, so that the trace has its ProfilerStep marks.
            "schedule": lambda step: profiler.ProfilerAction.RECORD,
        }
        config = _torch.all_threads_config()
        if config is not None:
            self._all_threads = True
            arguments["experimental_config"] = config
        together = self._register_observer(profiler, torch.__version__)
        if together:
            arguments["execution_trace_observer"] = self._observer
        self._profile = profiler.profile(**arguments)
        if self._observer is not None and not together:
            self._observer.start()
        self._profile.__enter__()
        self._resident_bytes = _resident_bytes()
        self.record["begin_unix_ns"], self.record["begin_monotonic_ns"] = time.time_ns(), time.monotonic_ns()

    def _register_observer(self, profiler: Any, release: str) -> bool:
        """Registers the execution trace's observer. Does the profile start and stop it?"""
        status = self.record["et"]
        try:
            observer = _torch.execution_trace_observer(profiler)
            if observer is None:
                status["status"] = f"missing: torch {release} has no ExecutionTraceObserver"
                return False
            observer.register_callback(self._et_part)
            if not observer._registered:
                status["status"] = "failed: torch could not register the observer; is another one registered?"
                warn_once("et", "the execution trace of a window " + status["status"])
                return False
        except Exception as error:
            status["status"] = "failed: " + describe(error)
            warn_once("et", "the execution trace of a window could not begin: " + describe(error))
            return False
        self._observer = observer
        status["status"] = "open"
        if _torch.takes_observer(profiler):
            return True
        status["missing"] = _OLD_ET.format(release)
        return False

    def step(self) -> None:
        """Counts a step and marks it in the trace."""
        self.record["steps"] += 1
        try:
            if self._options.sync_cuda:
                import torch

                if torch.cuda.is_available():
                    torch.cuda.synchronize()
            self._profile.step()
        except Exception as error:
            self.record["kineto"]["step_error"] = describe(error)
            warn_once("step", "a step could not be marked in the trace: " + describe(error))

    def grown_mb(self) -> int:
        """By how much the process has grown since the window opened."""
        return (_resident_bytes() - self._resident_bytes) >> 20

    def may_close(self) -> bool:
        """May this thread end the recording? If not, the record says what it waits for."""
        if self._all_threads or threading.get_ident() == self._thread:
            return True
        self.record["status"] = _WRONG_THREAD.format(self.record["torch"])
        return False

    def close(self, closed_by: str) -> None:
        """Ends the recording; export() writes the files."""
        global _recording
        self.record["closed_by"] = closed_by
        self.record["end_unix_ns"], self.record["end_monotonic_ns"] = time.time_ns(), time.monotonic_ns()
        try:
            # Stopped by another thread, torch loses what it has, or crashes.
            if not self.may_close():
                raise RuntimeError(_WRONG_THREAD.format(self.record["torch"]))
            self._profile.__exit__(None, None, None)
            self.record["kineto"]["status"] = "stopped"
        except Exception as error:
            self.record["kineto"]["status"] = "failed: the profiler could not be stopped: " + describe(error)
            warn_once("stop", "the profiler of a window could not be stopped: " + describe(error))
        self._end_observer()
        _recording = None
        self.record["status"] = "being written"

    def _end_observer(self) -> None:
        """Stops the observer and makes torch end its file."""
        if self._observer is None:
            return
        try:
            self._observer.stop()
            self._observer.unregister_callback()
        except Exception as error:
            self.record["et"]["status"] = "failed: the observer could not be stopped: " + describe(error)
            warn_once("et", "the execution trace of a window could not be ended: " + describe(error))
        self._observer = None

    def export(self) -> None:
        """Writes the files, each with its status, and frees the memory."""
        et, kineto = self._path("pytorch_et_{}.json"), self._path("kineto_{}.json")
        _chakra_files.export_et(self.record, self._et_part, et)
        if self.record["kineto"]["status"] == "stopped":
            _chakra_files.export_kineto(self.record, self._profile, kineto)
        _chakra_files.check_et(self.record, et, kineto, self._all_threads)
        self._profile = None
        if self._options.auto_convert:
            _chakra_files.convert(self.record, self._options.directory)
        good = self.record["et"]["status"] == "ok" and self.record["kineto"]["status"] == "ok"
        self.record["status"] = "ok" if good else "incomplete"
