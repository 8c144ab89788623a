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

Importing it imports only its C extension; the rest is imported when it is first used, and torch only if
torch.profiler is.
"""

from typing import TYPE_CHECKING, Any, Dict, List

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
