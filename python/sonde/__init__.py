# SPDX-License-Identifier: Apache-2.0
"""sonde's Python package: marks what a program does, controls when to measure, and reports what its parts cost.

    range, mark, counter, token, step    recorded if the program runs under a recording; without one they do nothing
    is_open, window                      is a window of that recording open, and which
    profile                              record a block with sonde
    training_profiler                    trace steps of a training loop with torch.profiler
    watch                                what the layers of a model cost, as ranges of the recording
    phase, waiting, phases               what the phases of a program cost, always on
    get_global_manager                   execution traces of vLLM's workers, by a flag file
    add_profiler_args, profiler_from_args    the command-line flags of training_profiler

Importing it imports only its C extension, or, where Python cannot load that, what stands in for it; the rest is imported when it is first used, and torch only if
torch.profiler is.
"""

import sys as _sys
from typing import TYPE_CHECKING, Any, Dict, List

try:
    if "t" in _sys.abiflags:  # 3.13t finds the extension, whose objects are laid out otherwise, and crashes in it
        raise ImportError("no extension for builds without the interpreter lock")
    from sonde._core import __version__
except ImportError as _error:  # whatever is wrong with us, the program runs
    from sonde import _core_absent

    _core_absent.take_place(_error)

from sonde._core import __version__, counter, is_open, mark, range, step, token, window

if TYPE_CHECKING:
    from sonde._watch import watch
    from sonde.args import add_profiler_args, profiler_from_args
    from sonde.manager import get_global_manager
    from sonde.phase_times import phase, phases, waiting
    from sonde.recording import profile
    from sonde.training import training_profiler

__all__ = [
    "__version__",
    "add_profiler_args",
    "counter",
    "get_global_manager",
    "is_open",
    "mark",
    "phase",
    "phases",
    "profile",
    "profiler_from_args",
    "range",
    "step",
    "token",
    "training_profiler",
    "waiting",
    "watch",
    "window",
]

_MODULES: Dict[str, str] = {
    "add_profiler_args": "args",
    "get_global_manager": "manager",
    "phase": "phase_times",
    "phases": "phase_times",
    "profile": "recording",
    "profiler_from_args": "args",
    "training_profiler": "training",
    "waiting": "phase_times",
    "watch": "_watch",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'sonde' has no attribute '{name}'")
    from importlib import import_module

    value = globals()[name] = getattr(import_module("sonde." + module), name)
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
