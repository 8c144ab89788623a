# SPDX-License-Identifier: Apache-2.0
"""What sonde uses of torch.profiler, and where its releases differ (1.13 to 2.13). Imported only if torch is used.

torch's profiler belongs to the thread that starts it. Releases with `profile_all_threads` may be stopped by another.
"""

import errno
import json
import os
import tempfile
from typing import Any, Callable, List, Optional, Tuple

Interval = Tuple[int, int]  # begin and end, nanoseconds since 1970


class Unavailable(Exception):
    """There is no torch.profiler here; the message says why."""


def load() -> Any:
    """The module torch.profiler."""
    try:
        import torch.profiler
    except Exception as error:  # a torch that is broken raises anything
        raise Unavailable(f"torch.profiler cannot be imported: {error}") from error
    return torch.profiler


def activities(profiler: Any) -> List[Any]:
    """What can be traced here: the CPU, and the devices that are present, not only compiled in."""
    import torch

    kinds = profiler.ProfilerActivity
    supported = set(profiler.supported_activities())
    found = [kinds.CPU]
    for name, module in (("CUDA", "cuda"), ("XPU", "xpu"), ("MTIA", "mtia"), ("HPU", "hpu")):
        kind, device = getattr(kinds, name, None), getattr(torch, module, None)
        if kind in supported and device is not None and device.is_available():
            found.append(kind)
    return found


def has_device(profiler: Any, kinds: List[Any]) -> bool:
    return any(kind != profiler.ProfilerActivity.CPU for kind in kinds)


def all_threads_config() -> Optional[Any]:
    """A configuration that records every thread and lets any thread stop it; None if torch has none (1.13)."""
    try:
        from torch._C import _profiler

        make: Any = _profiler._ExperimentalConfig
        return make(profile_all_threads=True)
    except (ImportError, AttributeError, TypeError):
        return None


def execution_trace_observer(profiler: Any) -> Any:
    """A new observer; torch 1.13 calls it ExecutionGraphObserver. None if there is none."""
    kind = getattr(profiler, "ExecutionTraceObserver", None) or getattr(profiler, "ExecutionGraphObserver", None)
    return None if kind is None else kind()


def takes_observer(profiler: Any) -> bool:
    """Does torch.profiler.profile start and stop the observer itself, so that ids agree? 1.13 does not."""
    import inspect

    return "execution_trace_observer" in inspect.signature(profiler.profile.__init__).parameters


# ---- files ----


def check_directory(directory: str) -> None:
    """Creates the folder and writes a file there, so that a failure shows now and not later. Raises OSError."""
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory):
        pass


def check_whole(path: str) -> None:
    """Raises OSError unless `path` is JSON to its end: torch does not say when the disk was full."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 64))
        tail = file.read().rstrip()
    if size == 0 or tail[-1:] not in (b"}", b"]"):
        raise OSError(errno.ENOSPC, "torch wrote only a part of it; is the disk full?", path)


def write_whole(path: str, write: Callable[[str], Any]) -> int:
    """Makes `write` create a file beside `path`, and renames it when it is complete. Returns its size. Raises."""
    directory, name = os.path.split(path)
    os.makedirs(directory or ".", exist_ok=True)
    # torch decides by the end of the name, and TensorBoard by its end, too: so the difference is at its begin.
    part = os.path.join(directory, ".part-" + name)
    try:
        write(part)
        check_whole(part)
        size = os.stat(part).st_size
        os.replace(part, path)
        return size
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise


def write_json(path: str, value: Any) -> None:
    """Like write_whole(), for a value."""

    def write(part: str) -> None:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
            file.write("\n")

    write_whole(path, write)


# ---- device work ----


def device_work(profile: Any) -> List[Interval]:
    """The device work in what a torch.autograd.profiler.profile has recorded. Nothing is synchronised for it."""
    import torch

    results = getattr(profile, "kineto_results", None)
    if results is None:
        return []
    cpu = torch.autograd.DeviceType.CPU
    found = []
    for event in results.events():
        if event.device_type() == cpu:
            continue
        if hasattr(event, "start_ns"):
            begin, duration = event.start_ns(), event.duration_ns()
        else:
            begin, duration = event.start_us() * 1000, event.duration_us() * 1000
        if duration > 0:
            found.append((begin, begin + duration))
    return found
