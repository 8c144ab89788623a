# SPDX-License-Identifier: Apache-2.0
"""torch.profiler traces the GPU by CUPTI, as sonde does, and CUPTI serves one of them: the library hears when the
profiler is about to start and when it has stopped, and acts by `sonde record --cuda`."""

import ctypes
import os
from functools import wraps
from typing import Any, Callable, Iterable, Tuple

from .registry import Function, Hook, guard

MODULE = "torch.autograd.profiler"
_runs = False


def _say(runs: bool) -> None:
    global _runs
    if runs == _runs:
        return
    _runs = runs
    try:
        library = ctypes.CDLL(os.environ["SONDE_LIBRARY"], mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (KeyError, OSError):
        return  # the program has not used CUDA
    library.sonde_profiler(int(runs))


def _traces_cuda(activities: Iterable[Any] = ()) -> bool:
    return any(str(activity).endswith("CUDA") for activity in activities)


def _before_start(original: Function) -> Function:
    """_prepare_profiler(config, activities) and _enable_profiler(config, activities, ...): the first starts Kineto."""
    ours = guard()

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if ours.run(_traces_cuda, *args[1:2]):
            ours.run(_say, True)
        return original(*args, **kwargs)

    return wrapper


def _after_stop(original: Function) -> Function:
    ours = guard()

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            ours.run(_say, False)

    return wrapper


def _hook(attribute: str, make: Callable[[Function], Function]) -> Hook:
    return Hook("torch", MODULE, attribute, make, optional=True)


HOOKS: Tuple[Hook, ...] = (
    _hook("_prepare_profiler", _before_start),
    _hook("_enable_profiler", _before_start),
    _hook("_disable_profiler", _after_stop),
)
