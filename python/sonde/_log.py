# SPDX-License-Identifier: Apache-2.0
"""Reports failures that must not end the program: one line each, through `logging`, once."""

import os
import threading
from typing import Set

_lock = threading.Lock()
_said: Set[str] = set()
_SAID_MAX = 1000


def _begin_anew() -> None:
    """In a forked child, where no thread may be left to release the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def warn(message: str) -> None:
    """Logs `message` through the logger "sonde". Never raises, not even if warnings are errors."""
    import logging

    try:
        logging.getLogger("sonde").warning("%s", message)
    except Exception:
        pass  # a handler of the program's that fails is not for us to report


def warn_once(key: str, message: str) -> None:
    """Like warn(), but only the first time for `key` in this process."""
    with _lock:
        if key in _said or len(_said) >= _SAID_MAX:
            return
        _said.add(key)
    warn(message)


def describe(error: BaseException) -> str:
    """An exception as one line: its text, or its type if it has none."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
