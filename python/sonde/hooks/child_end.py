# SPDX-License-Identifier: Apache-2.0
"""Has children that multiprocessing forks hand over their device work: they end by os._exit(), which skips atexit.

`finder` executes this file when `multiprocessing.util` has been imported, and it imports nothing that takes long.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAST = -1000  # after what the program itself does at a child's end


def flush() -> None:
    """Does nothing in a process that does not have the library: RTLD_NOLOAD."""
    import ctypes

    try:
        library = ctypes.CDLL(os.environ["SONDE_LIBRARY"], mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        library.sonde_flush()
    except (KeyError, OSError, AttributeError):
        pass


def apply(util: "Any") -> None:
    """A forked child begins with an empty list of finalizers: it adds its own."""

    def in_child(util: "Any") -> None:
        util.Finalize(None, flush, exitpriority=LAST)

    util.register_after_fork(util, in_child)
