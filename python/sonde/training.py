# SPDX-License-Identifier: Apache-2.0
"""sonde.training_profiler: torch.profiler around the steps of a training loop.

    with sonde.training_profiler("./profiler_traces", enabled=args.torch_profiler) as prof:
        for batch in loader:
            train_step(batch)
            if prof is not None:
                prof.step()

If the profiler fails, training goes on: the failure is logged once, through the logger "sonde", and
exceptions of the loop itself pass through unchanged. torch is not imported until an enabled profiler begins.
"""

import os
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, Type

from . import _core
from ._log import describe, warn, warn_once

if TYPE_CHECKING:
    from typing_extensions import Literal

STEP = "training_profiler"
SUMMARY_ROWS = 30


class Schedule(NamedTuple):
    """Steps to wait, to warm up and to record, in cycles; `repeat` 0 is as many cycles as there are steps for."""

    wait: int
    warmup: int
    active: int
    repeat: int

    @property
    def cycle(self) -> int:
        return self.wait + self.warmup + self.active

    def check(self) -> "Schedule":
        """Returns itself. Raises ValueError before anything has begun if it makes no sense."""
        for name, value, least in zip(self._fields, self, (0, 0, 1, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f"sonde.training_profiler: {name} must be a whole number of steps, {least} or more,"
                    f" and is {value!r}"
                )
        return self


def shortage(schedule: Schedule, steps: int) -> Optional[str]:
    """What a loop of `steps` steps missed of its schedule: both numbers, and what to change. None: nothing."""
    if steps == 0:
        return "no trace was captured: step() was never called; call it at the end of every step of the loop"
    cycles = steps // schedule.cycle
    if schedule.repeat and cycles >= schedule.repeat:
        return None
    # Below 0: torch had not begun to record. At 0 it had, and wrote a trace without a whole step.
    recorded = steps % schedule.cycle - schedule.wait - schedule.warmup
    partial = f"a partial cycle of {recorded} of {schedule.active} active steps"
    ran = f"the loop ran {steps} step{'' if steps == 1 else 's'}"
    of_cycle = f"wait {schedule.wait} + warmup {schedule.warmup} + active {schedule.active}"
    if cycles == 0:
        what = f"the trace holds only {partial}" if recorded >= 0 else "no trace was captured"
        advice = "run more steps, or lower wait, warmup or active"
        return f"{what}: {ran}, and a cycle needs {schedule.cycle} ({of_cycle}); {advice}"
    if schedule.repeat:
        what = f"captured {cycles} of {schedule.repeat} cycles{f', and {partial}' if recorded >= 0 else ''}"
        needed = f"all cycles need {schedule.cycle * schedule.repeat} ({schedule.repeat} times {of_cycle})"
        return f"{what}: {ran}, and {needed}; run more steps, or lower repeat"
    if recorded > 0:
        return f"the last trace holds only {partial}: {ran}, and each cycle needs {schedule.cycle} ({of_cycle})"
    return None


class TrainingProfiler:
    """What `with sonde.training_profiler(...)` gives: step(), and everything else that torch.profiler.profile has.

    Without a schedule everything is recorded, as sonde.profile() wants it.
    Any thread may call step(). torch's profiler belongs to the thread that began it, which passes on the steps of the
    others with its own. A forked child's calls count for sonde, and leave the parent's profiler alone.
    """

    def __init__(self, directory: str, schedule: Optional[Schedule], summary: bool, **options: bool) -> None:
        self.directory = directory
        self.schedule = schedule
        self.steps = 0
        self.traces: List[str] = []
        self.failure: Optional[str] = None
        self._summary = summary
        self._options = options
        self._pid = os.getpid()
        self._thread = 0
        self._passed_on = 0  # steps that torch knows of
        self._lock = threading.RLock()
        self._profiler: Any = None  # torch.profiler.profile
        self._running = False
        self._recorded: Any = None  # torch.autograd.profiler.profile of the last cycle that was recorded
        self._has_device = False
        # Between these, since 1970, torch records: device work is known there, and only there.
        self._opened_ns = 0
        self._closed_ns = 0

    def __enter__(self) -> "TrainingProfiler":
        try:
            self._start()
        except Exception as error:
            self._fail("training goes on without a trace", error)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> "Literal[False]":
        if os.getpid() == self._pid:
            with self._lock:
                if self._running:
                    self._pass_on()
                self._stop(kind, error, trace)
            if self._summary:
                self._print_summary()
            missed = shortage(self.schedule, self.steps) if self.schedule and self.failure is None else None
            if missed:
                warn("training_profiler: " + missed)
        return False

    def step(self) -> None:
        """Marks the end of a step. Never raises errors of the profiler."""
        _core.step(STEP)
        if os.getpid() != self._pid:
            return
        with self._lock:
            self.steps += 1
            if self._running and threading.get_ident() == self._thread:
                self._pass_on()

    def _pass_on(self) -> None:
        """Makes torch do all steps that it does not know of yet."""
        self._closed_ns = time.time_ns()
        try:
            while self._passed_on < self.steps:
                self._passed_on += 1
                self._profiler.step()
                self._note_opening()
        except Exception as error:
            self._fail(f"the profiler failed at step {self._passed_on} and is off; training goes on", error)
            self._stop(None, None, None)

    def __getattr__(self, name: str) -> Any:
        # Only for what this class has not: key_averages, events, add_metadata, export_stacks and so on.
        profiler = self.__dict__.get("_profiler")
        if profiler is None or name.startswith("__"):
            reason = self.__dict__.get("failure") or "the profiler has not begun"
            raise AttributeError(f"training_profiler has no '{name}': {reason}")
        return getattr(profiler, name)

    def _fail(self, consequence: str, error: BaseException) -> None:
        self.failure = f"{consequence} ({describe(error)})"
        warn_once("training_profiler", "training_profiler: " + self.failure)

    def _start(self) -> None:
        from . import _torch

        _torch.check_directory(self.directory)
        profiler = _torch.load()
        kinds = _torch.activities(profiler)
        self._has_device = _torch.has_device(profiler, kinds)
        self._profiler = profiler.profile(
            activities=kinds, schedule=self._torch_schedule(profiler), on_trace_ready=self._write_trace, **self._options
        )
        self._profiler.__enter__()
        self._running = True
        self._thread = threading.get_ident()
        self._note_opening()

    def _torch_schedule(self, profiler: Any) -> Callable[[int], Any]:
        if self.schedule is None:
            return lambda step: profiler.ProfilerAction.RECORD
        schedule: Callable[[int], Any] = profiler.schedule(**self.schedule._asdict())
        return schedule

    def _opens_now(self) -> bool:
        """Is the next step the first active one of a cycle?"""
        if self.schedule is None:
            return self._passed_on == 0
        return self._passed_on % self.schedule.cycle == self.schedule.wait + self.schedule.warmup

    def _note_opening(self) -> None:
        if not self._opens_now():
            return
        self._opened_ns = time.time_ns()
        if self._has_device:
            from . import phase_times

            phase_times.watch_device()

    def _stop(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if not self._running:
            return
        self._running = False
        self._closed_ns = time.time_ns()
        try:
            self._profiler.__exit__(kind, error, trace)
        except Exception as failure:
            self._fail("the profiler could not be closed", failure)

    def _write_trace(self, profiler: Any) -> None:
        """torch calls this at the end of each cycle, and if the loop ends inside one."""
        from . import _place, _torch

        self._recorded = profiler.profiler
        name = f"{_place.worker_name(_place.here())}.{time.time_ns()}.pt.trace.json"
        path = os.path.join(self.directory, name)
        try:
            _torch.write_whole(path, profiler.export_chrome_trace)
            self.traces.append(path)
        except Exception as error:
            self._fail(f"the trace {path} could not be written; training goes on", error)
        if self._has_device:
            self._account_phases(profiler.profiler)

    def _account_phases(self, profile: Any) -> None:
        from . import _torch, phase_times

        try:
            phase_times.add_device_work(_torch.device_work(profile), (self._opened_ns, self._closed_ns))
        except Exception as error:
            warn_once("phases", "sonde.phases: no device work of this trace: " + describe(error))

    def _print_summary(self) -> None:
        from . import torch_summary

        try:
            print(torch_summary.text(self._recorded, SUMMARY_ROWS))
        except Exception as error:
            warn("training_profiler: no summary: " + describe(error))


class _Disabled:
    """What training_profiler(enabled=False) returns, always the same object: its block gets None."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> "Literal[False]":
        return False


DISABLED = _Disabled()


def training_profiler(
    output_dir: str = "./profiler_traces",
    enabled: bool = True,
    wait: int = 1,
    warmup: int = 1,
    active: int = 3,
    repeat: int = 1,
    record_shapes: bool = False,
    profile_memory: bool = False,
    with_stack: bool = False,
    *,
    summary: bool = False,
) -> Any:
    """A context manager that profiles the steps of a training loop with torch.profiler.

    Its block gets an object with .step(), to be called at the end of every step, which also has everything that
    torch.profiler.profile has (key_averages() and so on), or None if it is not enabled.

    output_dir      where the traces go: HOST[_rankR][_workerW]_PID.NANOSECONDS.pt.trace.json, one for each cycle, which
                    TensorBoard and Perfetto open; R and W are left out if they are not known
    enabled         False: nothing is imported, allocated or done
    wait, warmup    steps of a cycle that are not recorded, and that are recorded and discarded
    active          steps of a cycle that are recorded
    repeat          cycles; 0 for as many as there are steps for
    record_shapes, profile_memory, with_stack   as in torch.profiler.profile
    summary         print the top 30 operators, by device time and by CPU time, at the end

    An unwritable folder, a missing torch or a failing profiler is logged once, and training goes on. Exceptions of
    the loop pass through, after the profiler has been closed. Too few steps are logged with both numbers. Each step
    is also a step of `sonde record --window steps:...`.

    Raises ValueError, at once, for an impossible schedule.
    """
    if not enabled:
        return DISABLED
    schedule = Schedule(wait, warmup, active, repeat).check()
    return TrainingProfiler(
        os.fspath(output_dir),
        schedule,
        summary,
        record_shapes=record_shapes,
        profile_memory=profile_memory,
        with_stack=with_stack,
    )
