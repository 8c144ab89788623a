# SPDX-License-Identifier: Apache-2.0
"""Stands in for the C extension sonde._core where this Python cannot load it: nothing is recorded, and nothing breaks.

Builds without the interpreter lock (3.13t, 3.14t) cannot run an extension of the stable ABI, which ours is.
"""

import os
import sys
from itertools import count as _count
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar, Union

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Fields = Optional[Dict[str, Union[int, float, str, bool]]]

ABSENT = ""  # the sentence that says why; of the extension itself there is no such name
__version__ = "unknown"
_steps = _count(1)


def _reason(error: BaseException) -> str:
    release = "%d.%d" % sys.version_info[:2]
    if "t" in getattr(sys, "abiflags", ""):
        return "Python %st has no interpreter lock, and runs no extension of the stable ABI; use python%s" % (release, release)
    return "%s; install sonde again for this Python %s" % (error, release)


def _installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("sonde-profiler")
    except metadata.PackageNotFoundError:
        return "unknown"


def take_place(error: BaseException) -> None:
    """Is imported as sonde._core from now on. A program that is recorded gets a sentence on its standard error."""
    global ABSENT, __version__
    __version__ = _installed_version()
    ABSENT = "ranges, marks, counters and steps of Python are not recorded: sonde._core cannot be imported: " + _reason(error)
    package = __name__.rpartition(".")[0]
    module = sys.modules[package + "._core"] = sys.modules[__name__]
    setattr(sys.modules[package], "_core", module)
    if "SONDE_SESSION" not in os.environ or sys.stderr is None:
        return
    try:
        sys.stderr.write("sonde: %s\n" % ABSENT)
    except (OSError, ValueError):  # closed
        pass


class range:
    def __init__(self, name: str, domain: Optional[str] = None, fields: _Fields = None) -> None:
        pass

    def __enter__(self) -> "range":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        pass

    def __call__(self, function: _Function) -> _Function:
        return function


class part:
    def __init__(self, owner: object, name: str, domain: str, fields: _Fields = None) -> None:
        pass

    def begin(self) -> None:
        pass

    def begin_outermost(self, lets_inside: bool) -> None:
        pass

    def end(self) -> None:
        pass


def parts_open() -> List[object]:
    return []


def parts_end(count: int) -> None:
    pass


def range_push(name: str, domain: Optional[str] = None, fields: _Fields = None) -> None:
    pass


def range_pop(domain: Optional[str] = None) -> None:
    pass


def range_start(name: str, domain: Optional[str] = None, fields: _Fields = None) -> int:
    return 0


def range_end(number: int, domain: Optional[str] = None) -> None:
    pass


def mark(name: str, domain: Optional[str] = None, fields: _Fields = None) -> None:
    pass


def counter(name: str, value: Union[int, float]) -> None:
    pass


def token(
    index: int, request: Union[str, int, None] = None, text: Optional[str] = None, phase: Optional[str] = None
) -> None:
    pass


def step(name: str = "step") -> int:
    return next(_steps)


def is_open() -> bool:
    return False


def window() -> int:
    return 0


def open_session(path: Union[str, "os.PathLike[str]"]) -> bool:
    return False
