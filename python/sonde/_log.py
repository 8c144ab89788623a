# SPDX-License-Identifier: Apache-2.0
"""What the package says when something fails that must not end the program: one line, through `logging`, once."""

import os
import threading
from typing import Set

_lock = threading.Lock()
_said: Set[str] = set()
_SAID_MAX = 1000


def _begin_anew() -> None:
    """In a forked child, where nobody may be left to give the lock back."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def warn(message: str) -> None:
    """Says `message` through the logger "sonde". Never raises, not even where warnings are errors."""
    import logging

    try:
        logging.getLogger("sonde").warning("%s", message)
    except Exception:
        pass  # a handler of the program's that fails is not for us to report


def warn_once(key: str, message: str) -> None:
    """As warn(), but only the first time for `key` in this process."""
    with _lock:
        if key in _said or len(_said) >= _SAID_MAX:
            return
        _said.add(key)
    warn(message)


def describe(error: BaseException) -> str:
    """An exception as one line: its type where it has no text, and what it says."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
