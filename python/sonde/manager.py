# SPDX-License-Identifier: Apache-2.0
"""The trace manager of vLLM's workers: PyTorch execution trace and Kineto trace of windows that a flag file opens.

    from sonde import get_global_manager
    manager = get_global_manager()
    ...
    manager.tick_by_flag()          # once per step of the worker

It is off unless VLLM_CHAKRA_TRACE says otherwise, and nothing of torch is imported before a window opens. No call
raises: what fails has a status in the manifest, beside the files, and is said once. The variables:

    VLLM_CHAKRA_TRACE            0     master switch
    VLLM_CHAKRA_TRACE_DIR        $XDG_STATE_HOME/sonde/chakra, by default ~/.local/state/sonde/chakra
    VLLM_CHAKRA_FLAG             trace_on in that folder; it must belong to this user or to root
    VLLM_CHAKRA_AUTO_CONVERT     0     link and convert with `sonde chakra`
    VLLM_CHAKRA_RECORD_SHAPES    1     shapes in the Kineto trace
    VLLM_CHAKRA_WITH_STACK       0     stacks in the Kineto trace
    VLLM_CHAKRA_PROFILE_MEMORY   0     memory in the Kineto trace
    VLLM_CHAKRA_SYNC_CUDA        0     torch.cuda.synchronize() at each step of a window, which changes what is measured
    VLLM_CHAKRA_DEBUG            0     say what is done
    VLLM_CHAKRA_TRACE_MAX_STEPS  0     close a window after so many steps; the flag must be made again for another one
    VLLM_CHAKRA_TRACE_MAX_MB     4096  close a window when the process has grown by so much memory since it opened

torch's profiler belongs to the thread that started it. Where torch can record all threads (2.13 can, 1.13 cannot), a
window whose worker idles is closed by the watching thread; with an older torch it stays open until the worker's next
step or its end, which the manifest says.
"""

import atexit
import os
import signal
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

from . import _core
from ._log import describe, warn, warn_once

STEP = "chakra"
_IDLE_S = 2.0  # without a step after the flag was removed: the worker idles
_EXIT_S = 60.0  # at the process's end the files are waited for, at most so long
_TRUE = ("1", "true", "yes", "y", "on")


def _boolean(name: str, default: str) -> bool:
    return os.environ.get("VLLM_CHAKRA_" + name, default).strip().lower() in _TRUE


def _count(name: str, default: int) -> int:
    value = os.environ.get("VLLM_CHAKRA_" + name, "").strip() or str(default)
    if value.isdigit():
        return int(value)
    warn_once(name, f"VLLM_CHAKRA_{name} must be a whole number, 0 or more, and is '{value}'; {default} is used")
    return default


class Options(NamedTuple):
    """Options from the environment; the module's docstring lists them."""

    enabled: bool
    directory: str
    flag: str
    auto_convert: bool
    record_shapes: bool
    with_stack: bool
    profile_memory: bool
    sync_cuda: bool
    debug: bool
    max_steps: int
    max_mb: int

    @classmethod
    def from_environment(cls) -> "Options":
        state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        directory = os.environ.get("VLLM_CHAKRA_TRACE_DIR") or os.path.join(state, "sonde", "chakra")
        return cls(
            enabled=_boolean("TRACE", "0"),
            directory=directory,
            flag=os.environ.get("VLLM_CHAKRA_FLAG") or os.path.join(directory, "trace_on"),
            auto_convert=_boolean("AUTO_CONVERT", "0"),
            record_shapes=_boolean("RECORD_SHAPES", "1"),
            with_stack=_boolean("WITH_STACK", "0"),
            profile_memory=_boolean("PROFILE_MEMORY", "0"),
            sync_cuda=_boolean("SYNC_CUDA", "0"),
            debug=_boolean("DEBUG", "0"),
            max_steps=_count("TRACE_MAX_STEPS", 0),
            max_mb=_count("TRACE_MAX_MB", 4096),
        )


class ChakraTraceManager:
    """Opens and closes windows. Use one per process, get_global_manager(); every thread may use it."""

    def __init__(self, options: Optional[Options] = None) -> None:
        self.options = options or Options.from_environment()
        self._kept: List[Any] = []
        self._begin_anew()
        _managers.add(self)

    def _begin_anew(self) -> None:
        """Resets everything: for a new manager, and for that of a forked child."""
        self._lock = threading.Lock()
        self._owner = 0  # the thread that holds the lock
        self._late_signal: Optional[Callable[[], None]] = None
        self._window: Any = None  # _chakra_window.Window
        self._number = 0
        self._watch: Any = None  # _flag.FlagWatch
        self._flag_off_s: Optional[float] = None
        self._wanted_close: Optional[str] = None  # by a thread that may not, see the head of this module
        self._used_serial = -1  # the flag that had its window
        self._manifest: Any = None
        self._exporter: Any = None
        self._exit_is_hooked = False
        self._sigterm_before: Any = None
        # tick_by_flag() looks at this only: is there anything to do? At first the flag's watch is to be started.
        self._due = self.options.enabled

    # ---- what the worker calls ----

    @property
    def is_open(self) -> bool:
        """Is a window open?"""
        return self._window is not None

    def start(self) -> bool:
        """Opens a window, unless one is open. Is one open now?"""
        with self._entered() as entered:
            if entered and self.options.enabled and self._window is None:
                self._open("start")
            return self._window is not None

    maybe_start = start

    def step(self) -> None:
        """Marks the end of a step; closes the window when it has had its steps."""
        self.step_and_maybe_stop()

    def step_and_maybe_stop(self) -> bool:
        """Like step(). Did it close the window?"""
        if self._window is None:
            return False
        with self._entered() as entered:
            return entered and self._window is not None and self._step()

    def stop(self) -> None:
        """Closes the window; its files are written by another thread."""
        if self._window is not None:
            with self._entered() as entered:
                if entered:
                    self._close("stop")

    def tick_by_flag(self) -> None:
        """Once per step: opens a window when the flag appears, closes it when it is gone, otherwise counts a step."""
        if self._due:
            self._tick()

    def wait(self, timeout_s: float = _EXIT_S) -> bool:
        """Waits until the files of all closed windows are written. False if that takes longer."""
        exporter = self._exporter
        return exporter is None or bool(exporter.finish(timeout_s))

    # ---- inside, with the lock ----

    @contextmanager
    def _entered(self) -> Iterator[bool]:
        """Holds the lock; yields False in a signal handler that interrupted this thread while it held the lock."""
        me = threading.get_ident()
        if self._owner == me:
            yield False
            return
        with self._lock:
            self._owner = me
            try:
                yield True
            finally:
                self._owner = 0
        late, self._late_signal = self._late_signal, None
        if late is not None:
            late()

    def _tick(self) -> None:
        with self._entered() as entered:
            if not entered:
                return
            try:
                self._follow_flag()
            except Exception as error:  # the worker goes on, whatever it is
                self._due = False
                warn_once("tick", "the trace manager is off after an error: " + describe(error))

    def _follow_flag(self) -> None:
        if self._watch is None:
            from ._flag import FlagWatch

            self._watch = FlagWatch(self.options.flag, self._flag_changed)
        elif self._watch.is_stale:
            self._watch.look()
        if self._window is None:
            if self._watch.is_on and self._watch.serial != self._used_serial:
                self._used_serial = self._watch.serial
                self._open("flag")
        elif not self._watch.is_on:
            self._close(self._wanted_close or "flag")
        else:
            self._step()
        # In this order: the watching thread, which may say the opposite meanwhile, has the last word.
        self._due = False
        if self._has_work():
            self._due = True

    def _has_work(self) -> bool:
        watch = self._watch
        is_new = watch.is_on and watch.serial != self._used_serial
        return self._window is not None or watch.is_stale or is_new

    def _flag_changed(self, watch: Any) -> None:
        """In the watching thread, after each change and each check of the flag."""
        if self._watch is not watch:
            return
        if self._has_work():
            self._due = True
        window = self._window
        if watch.is_on or window is None or window.record["opened_by"] != "flag":
            self._flag_off_s = None
        elif self._flag_off_s is None:
            self._flag_off_s = time.monotonic()
        elif time.monotonic() - self._flag_off_s >= _IDLE_S:
            self._close_idle()

    def _close_idle(self) -> None:
        with self._entered():
            if self._window is not None and not self._watch.is_on:
                self._close("idle")

    def _open(self, opened_by: str) -> None:
        from . import _chakra_files, _chakra_window

        if self._manifest is None:
            self._manifest = _chakra_files.Manifest(self.options.directory, self.options._asdict())
            self._exporter = _chakra_files.Exporter()
        if not _take_process(self):
            self._skip(
                "another manager of this process has a window open",
                "sonde.get_global_manager() is one for the whole process",
            )
            return
        if not self._exporter.reserve():
            _give_process(self)
            self._skip(
                f"the files of {_chakra_files.PENDING_MAX} earlier windows are still being written",
                "open windows less often",
            )
            return
        self._number += 1
        window = _chakra_window.Window(self.options, self._number, opened_by)
        if opened_by == "flag":
            window.record["flag_made_unix_ns"] = self._watch.made_ns
        self._manifest.add(window.record)
        if window.open():
            self._hook_exit(window)
            self._window = window
        else:
            self._exporter.release()
            _give_process(self)
        self._say(f"window {self._number}: {window.record['status']}")
        self._manifest.write()

    def _skip(self, reason: str, advice: str) -> None:
        self._manifest.skip(reason)
        self._manifest.write()
        warn_once(reason, f"a window was not opened: {reason}; {advice}")

    def _step(self) -> bool:
        window = self._window
        _core.step(STEP)
        if self._wanted_close and window.may_close():
            return self._close(self._wanted_close)
        window.step()
        if self.options.max_steps and window.record["steps"] >= self.options.max_steps:
            return self._close("max-steps")
        if self.options.max_mb and window.grown_mb() > self.options.max_mb:
            return self._close("max-memory")
        return False

    def _close(self, closed_by: str, at_the_end: bool = False) -> bool:
        window = self._window
        if window is None:
            return False
        if not at_the_end and not window.may_close():
            if self._wanted_close is None:
                self._wanted_close = closed_by
                self._manifest.write()
            return False
        self._window = self._wanted_close = self._flag_off_s = None
        self._restore_sigterm()
        window.close(closed_by)
        manifest = self._manifest
        manifest.write()

        def export() -> None:
            window.export()
            manifest.write()

        self._exporter.submit(export)
        _give_process(self)
        self._say(f"window {window.record['window']}: closed by {closed_by} after {window.record['steps']} steps")
        return True

    def _say(self, message: str) -> None:
        if self.options.debug:
            warn(f"trace manager, process {os.getpid()}: {message}")

    # ---- the end of the process ----

    def _hook_exit(self, window: Any) -> None:
        """The window is closed and its files are written when the process exits, or gets SIGTERM."""
        if not self._exit_is_hooked:
            self._exit_is_hooked = True
            atexit.register(_close_at_exit, weakref.ref(self), os.getpid())
            # A child of multiprocessing leaves without atexit, by its own list.
            util = sys.modules.get("multiprocessing.util")
            if util is not None:
                util.Finalize(None, _close_at_exit, args=(weakref.ref(self), os.getpid()), exitpriority=100)
        before = signal.getsignal(signal.SIGTERM)
        if before == self._on_sigterm:
            return
        if threading.current_thread() is not threading.main_thread() or before is None:
            window.record["sigterm"] = "not handled: the window was not opened by the main thread"
            return
        signal.signal(signal.SIGTERM, self._on_sigterm)
        self._sigterm_before = before

    def _restore_sigterm(self) -> None:
        ours = self._sigterm_before is not None and signal.getsignal(signal.SIGTERM) == self._on_sigterm
        if ours and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._sigterm_before)
            self._sigterm_before = None

    def _on_sigterm(self, number: int, frame: Any) -> None:
        """Closes the window, then does what the program or the system would have done."""
        before = self._sigterm_before
        with self._entered() as entered:
            if not entered:  # interrupted one of our own calls: when it is done
                self._late_signal = lambda: self._on_sigterm(number, frame)
                return
            self._close("SIGTERM", at_the_end=True)
        self.wait()
        if signal.getsignal(number) == self._on_sigterm:
            signal.signal(number, before)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            os.kill(os.getpid(), number)

    def _after_fork(self) -> None:
        """In a forked child: keeps the parent's objects untouched, so that none of them ends here."""
        self._kept.append((self._window, self._exporter))
        if self._watch is not None:
            self._watch.close_inherited()
        inherited_sigterm = self._sigterm_before
        if inherited_sigterm is not None and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            signal.signal(signal.SIGTERM, inherited_sigterm)
        self._begin_anew()


# ---- all managers of this process ----

_managers: "weakref.WeakSet[ChakraTraceManager]" = weakref.WeakSet()
_global_lock = threading.Lock()
_global: Optional[ChakraTraceManager] = None
_open_manager: Optional[ChakraTraceManager] = None


def get_global_manager() -> ChakraTraceManager:
    """The trace manager of this process; a forked child has its own."""
    global _global
    if _global is None:
        with _global_lock:
            if _global is None:
                _global = ChakraTraceManager()
    return _global


def _take_process(manager: ChakraTraceManager) -> bool:
    """torch has one profiler per process. False if another manager has it."""
    global _open_manager
    with _global_lock:
        if _open_manager is not None and _open_manager is not manager:
            return False
        _open_manager = manager
        return True


def _give_process(manager: ChakraTraceManager) -> None:
    global _open_manager
    with _global_lock:
        if _open_manager is manager:
            _open_manager = None


def _close_at_exit(reference: "weakref.ref[ChakraTraceManager]", pid: int) -> None:
    manager = reference()
    if manager is None or os.getpid() != pid:
        return
    with manager._entered() as entered:
        if entered:
            manager._close("exit", at_the_end=True)
    manager.wait()


def _begin_anew_in_child() -> None:
    global _global_lock, _open_manager
    _global_lock = threading.Lock()
    _open_manager = None
    for manager in list(_managers):
        manager._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew_in_child)
