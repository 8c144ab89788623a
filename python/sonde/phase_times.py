# SPDX-License-Identifier: Apache-2.0
"""sonde.phase: what the phases of a program cost, summed up as they end. A phase is also a range in the capture.

Always on, with or without a recording: two clocks are read at each end of a phase. What each figure is:

    wall_ns           from begin to end, CLOCK_MONOTONIC
    cpu_ns            CPU time of the thread that ran the phase, and cpu_share = cpu_ns / wall_ns
    known_wait_ns     what `with sonde.waiting():` inside the phase waited: its wall time less its CPU time
    gil_hold_max_ns   = cpu_ns: a thread holds the interpreter lock at most while it runs. Native code that gives the
                      lock back runs, too, so that this is an upper bound
    gil_wait_max_ns   = wall_ns - cpu_ns - known_wait_ns, which is waiting for the lock, for I/O, for a CPU or for
                      anything that nobody named: an upper bound, too
    gpu_starvation    1 - device_busy_ns / device_wall_ns: the share of the time, where device work is known, in which
                      no device worked. None where nothing is known, never 0

Device work is known while a torch.profiler of sonde.training_profiler or sonde.profile records a device; its events
are looked at when it has written them, so that nothing is synchronised. Exact figures for the interpreter lock and
for devices are in the capture: `sonde report --by range`.
"""

import os
import threading
import time
from bisect import bisect_right
from collections import deque
from functools import wraps
from types import TracebackType
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple, Type, TypeVar, Union

from . import _core

DOMAIN = "sonde.phase"
_OCCURRENCES_MAX = 65536  # that wait for a profiler's device work; older ones are dropped and counted

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Interval = Tuple[int, int]


class PhaseTimes(NamedTuple):
    """What all occurrences of one phase cost together. The module's docstring says what each figure is."""

    name: str
    occurrences: int
    wall_ns: int
    cpu_ns: int
    known_wait_ns: int
    device_busy_ns: Optional[int]
    device_wall_ns: Optional[int]

    @property
    def cpu_share(self) -> Optional[float]:
        return self.cpu_ns / self.wall_ns if self.wall_ns else None

    @property
    def gil_hold_max_ns(self) -> int:
        return self.cpu_ns

    @property
    def gil_wait_max_ns(self) -> int:
        return max(0, self.wall_ns - self.cpu_ns - self.known_wait_ns)

    @property
    def gpu_starvation(self) -> Optional[float]:
        if self.device_busy_ns is None or not self.device_wall_ns:
            return None
        return 1 - self.device_busy_ns / self.device_wall_ns

    def as_dict(self) -> Dict[str, Union[str, int, float, None]]:
        """Every figure by its name, the derived ones included."""
        derived = ("cpu_share", "gil_hold_max_ns", "gil_wait_max_ns", "gpu_starvation")
        return dict(self._asdict(), **{name: getattr(self, name) for name in derived})


class Phases(List[PhaseTimes]):
    """All phases, the longest first: a list of PhaseTimes. str() and table() give a table."""

    # Occurrences that were dropped before a profiler's device work came: gpu_starvation is of the others.
    occurrences_dropped: int = 0

    def as_dicts(self) -> List[Dict[str, Union[str, int, float, None]]]:
        return [row.as_dict() for row in self]

    def table(self) -> str:
        """The phases as a table. A dash means unknown; upper bounds have "at most" in their header."""
        head = ("phase", "times", "wall ms", "CPU ms", "CPU", "GIL held ms <=", "GIL wait ms <=", "GPU starved")
        rows = [head] + [tuple(self._cells(row)) for row in self]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = []
        for row in rows:
            cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            lines.append("  ".join(cells))
        return "\n".join(lines)

    __str__ = table

    @staticmethod
    def _cells(row: PhaseTimes) -> Iterator[str]:
        yield row.name
        yield str(row.occurrences)
        for value in (row.wall_ns, row.cpu_ns):
            yield f"{value / 1000000.0:.3f}"
        yield "-" if row.cpu_share is None else f"{row.cpu_share:.1%}"
        for value in (row.gil_hold_max_ns, row.gil_wait_max_ns):
            yield f"{value / 1000000.0:.3f}"
        yield "-" if row.gpu_starvation is None else f"{row.gpu_starvation:.1%}"


class _Sum:
    """The accumulators of one phase."""

    __slots__ = ("occurrences", "wall_ns", "cpu_ns", "known_wait_ns", "device_busy_ns", "device_wall_ns")

    def __init__(self) -> None:
        self.occurrences = self.wall_ns = self.cpu_ns = self.known_wait_ns = 0
        self.device_busy_ns = self.device_wall_ns = 0


class _Occurrence:
    """A phase, or a known wait, that has begun and not ended."""

    __slots__ = ("owner", "wall_ns", "cpu_ns", "known_wait_ns")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.known_wait_ns = 0
        self.wall_ns = time.monotonic_ns()
        self.cpu_ns = time.thread_time_ns()


class _Open(threading.local):
    """The phases of this thread that have begun, the innermost last."""

    def __init__(self) -> None:
        self.stack: List[_Occurrence] = []


class _State:
    """All sums of this process; a forked child begins with new ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sums: Dict[str, _Sum] = {}
        self.open = _Open()
        self.watching = False
        self.occurrences: Deque[Tuple[str, int, int]] = deque(maxlen=_OCCURRENCES_MAX)
        self.dropped = 0


_state = _State()


def _begin_anew() -> None:
    global _state
    _state = _State()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _take(owner: object) -> Optional[_Occurrence]:
    """Takes the innermost occurrence of `owner` off this thread's stack; None when it began in another process."""
    stack = _state.open.stack
    for index in range(len(stack) - 1, -1, -1):
        if stack[index].owner is owner:
            return stack.pop(index)
    return None


_B = TypeVar("_B", bound="_Block")


class _Block:
    """A block whose times are taken, and a range in the recording."""

    __slots__ = ("name",)
    name: str

    def __enter__(self: _B) -> _B:
        _core.range_push(self.name, DOMAIN)
        _state.open.stack.append(_Occurrence(self))
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        cpu_ns, wall_ns = time.thread_time_ns(), time.monotonic_ns()
        _core.range_pop(DOMAIN)
        begun = _take(self)
        if begun is not None:
            self._end(begun, wall_ns, cpu_ns)

    def _end(self, begun: _Occurrence, wall_ns: int, cpu_ns: int) -> None:
        raise NotImplementedError


class phase(_Block):
    """`with sonde.phase("train"):` or `@sonde.phase("train")` adds what the block costs to the phase of that name.

    Phases nest, each with all that is inside it, and run in several threads at once, each with the CPU time of its
    own thread. One object may be used again. For threads, not for coroutines, which take turns in one.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.name = str(name)

    def _end(self, begun: _Occurrence, wall_ns: int, cpu_ns: int) -> None:
        _add(self.name, begun, wall_ns, cpu_ns)

    def __call__(self, function: _Function) -> _Function:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


class waiting(_Block):
    """`with sonde.waiting("data"):` names what a phase waits for, so it is not counted as the interpreter lock."""

    __slots__ = ()

    def __init__(self, name: str = "waiting") -> None:
        self.name = str(name)

    def _end(self, begun: _Occurrence, wall_ns: int, cpu_ns: int) -> None:
        waited_ns = max(0, wall_ns - begun.wall_ns - (cpu_ns - begun.cpu_ns))
        for outer in _state.open.stack:
            # What waits inside this one waited has been added already.
            outer.known_wait_ns += waited_ns - begun.known_wait_ns


def _add(name: str, begun: _Occurrence, wall_ns: int, cpu_ns: int) -> None:
    state = _state
    with state.lock:
        total = state.sums.get(name)
        if total is None:
            total = state.sums[name] = _Sum()
        total.occurrences += 1
        total.wall_ns += wall_ns - begun.wall_ns
        total.cpu_ns += cpu_ns - begun.cpu_ns
        total.known_wait_ns += begun.known_wait_ns
        if state.watching:
            state.dropped += len(state.occurrences) == _OCCURRENCES_MAX
            state.occurrences.append((name, begun.wall_ns, wall_ns))


def phases(reset: bool = False) -> Phases:
    """What all ended phases cost so far; with `reset` they start again from zero, without a gap."""
    state = _state
    with state.lock:
        sums, dropped = state.sums, state.dropped
        if reset:
            state.sums, state.dropped = {}, 0
        rows = [_times(name, total) for name, total in sums.items()]
    result = Phases(sorted(rows, key=lambda row: -row.wall_ns))
    result.occurrences_dropped = dropped
    return result


def _times(name: str, total: _Sum) -> PhaseTimes:
    known = total.device_wall_ns > 0
    return PhaseTimes(
        name,
        total.occurrences,
        total.wall_ns,
        total.cpu_ns,
        total.known_wait_ns,
        total.device_busy_ns if known else None,
        total.device_wall_ns if known else None,
    )


# ---- device work, reported by the profilers of this package ----


def watch_device() -> None:
    """From now on keeps the times of each phase, until add_device_work() adds what the devices did."""
    state = _state
    with state.lock:
        state.watching = True
        state.occurrences.clear()


class _Busy:
    """The union of device work, and how much of it was before a point in time."""

    def __init__(self, intervals: List[_Interval]) -> None:
        self._begins: List[int] = []
        self._ends: List[int] = []
        self._sums = [0]
        for begin, end in sorted(intervals):
            if self._ends and begin <= self._ends[-1]:
                longer = max(0, end - self._ends[-1])
                self._ends[-1] += longer
                self._sums[-1] += longer
            else:
                self._begins.append(begin)
                self._ends.append(end)
                self._sums.append(self._sums[-1] + end - begin)

    def before_ns(self, moment: int) -> int:
        index = bisect_right(self._begins, moment)
        return self._sums[index] - (max(0, self._ends[index - 1] - moment) if index else 0)


def add_device_work(busy: List[_Interval], window: _Interval) -> None:
    """Adds device work, and the window in which all of it is known; both in nanoseconds since 1970.

    A phase counts with the part of it that lies in the window, also one that the calling thread is in.
    """
    offset = time.time_ns() - time.monotonic_ns()
    work = _Busy([(begin - offset, end - offset) for begin, end in busy])
    opened, closed = window[0] - offset, window[1] - offset
    state = _state
    with state.lock:
        found = list(state.occurrences)
        found += [(one.owner.name, one.wall_ns, closed) for one in state.open.stack if isinstance(one.owner, phase)]
        state.occurrences.clear()
        state.watching = False
        for name, begin, end in found:
            begin, end = max(begin, opened), min(end, closed)
            if end > begin:
                total = state.sums.setdefault(name, _Sum())
                total.device_wall_ns += end - begin
                total.device_busy_ns += work.before_ns(end) - work.before_ns(begin)
