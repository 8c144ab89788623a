# SPDX-License-Identifier: Apache-2.0
"""Gives threads of the operating system the names that the program gives them: threading.Thread(name=...).

CPython does so itself from 3.14 on; before, a profiler, top and a debugger see the process's name for each. `finder`
executes this file when `threading` has been imported, and it imports nothing itself.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BYTES = 15  # of a name, which is all that Linux keeps


def short(name: str) -> bytes:
    """The name cut to BYTES. The number at its end is kept, because it distinguishes the threads of a pool."""
    text = name.encode("utf-8", "replace")
    if len(text) <= BYTES:
        return text
    head = text.rstrip(b"0123456789_-")
    tail = text[len(head) :][-8:]
    return head[: BYTES - len(tail)].decode("utf-8", "ignore").encode() + tail


def write_name(place: str, name: str) -> None:
    try:
        file = os.open("/proc/%s/comm" % place, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, short(name))
        finally:
            os.close(file)
    except (OSError, ValueError):
        pass  # no /proc, or the thread has ended


def apply(threading: "Any") -> None:
    """Wraps what a new thread calls first, and the setter of its name."""
    if sys.version_info >= (3, 14):
        return
    thread_class = threading.Thread
    # The main thread has the process's name; Python did not start the dummy ones.
    others = (threading._MainThread, threading._DummyThread)
    begin, name = thread_class._set_native_id, thread_class.name

    def _set_native_id(self: "Any") -> None:
        begin(self)
        if not isinstance(self, others):
            write_name("thread-self", str(self._name))

    def set_name(self: "Any", value: str) -> None:
        name.fset(self, value)
        native = getattr(self, "_native_id", None)
        if native and not isinstance(self, others) and self.is_alive():
            write_name("self/task/%d" % native, str(self._name))

    thread_class._set_native_id = _set_native_id
    thread_class.name = property(name.fget, set_name, name.fdel, name.__doc__)
