# SPDX-License-Identifier: Apache-2.0
"""Watches for a flag file with inotify, in a separate thread, so that a tick without a change reads one attribute.

The thread sleeps until something changes in the flag's folder, or in the nearest folder above it that exists, and says
so at once, so that a worker that keeps the interpreter busy can look itself. Once a second it looks by itself, too, for
file systems where inotify does not see what other hosts do. A flag counts when it belongs to this user
or to root, is no link, and so cannot have been put there by someone else.
"""

import ctypes
import os
import select
import stat
import struct
import threading
from typing import Callable, Optional

from ._log import describe, warn_once

_ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = (
    0x4,
    0x40,
    0x80,
    0x100,
    0x200,
    0x400,
    0x800,
)
_MASK = _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_LOOK_S = 1.0


class FlagWatch:
    """`is_on` says whether the flag file was there at the last look, `is_stale` that something changed since then.

    In the watching thread, `changed` is called when it is stale, and after each look.
    """

    def __init__(self, path: str, changed: Callable[["FlagWatch"], None]) -> None:
        self.path = os.path.abspath(path)
        self.is_on = False
        self.is_stale = True
        self.made_ns: Optional[int] = None  # when the flag was made, by its file system: the same for every worker
        self.serial = 0  # how often the flag was seen being made
        self._changed = changed
        self._lock = threading.Lock()
        self._descriptor = self._open()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        for descriptor in (self._descriptor, self._wake_read):
            if descriptor >= 0:
                self._poll.register(descriptor, select.POLLIN)
        self.look()
        self._thread = threading.Thread(target=self._run, name="sonde-flag", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread. Not for a forked child, which has no such thread."""
        os.write(self._wake_write, b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def close_inherited(self) -> None:
        """In a forked child: closes the descriptors."""
        self._close_descriptors()

    def look(self) -> None:
        """Checks the file now. A flag that was removed and created again since the last check is a new one."""
        with self._lock:
            self.is_stale = False
            self._watch_folder()
            if self._descriptor >= 0 and self._was_removed():
                self.is_on = False
            self._look()

    def _look(self) -> None:
        try:
            found = os.lstat(self.path)
        except OSError:
            self.is_on = False
            return
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
            self.is_on = False
            kind = "a file" if stat.S_ISREG(found.st_mode) else "no file"
            warn_once(
                "flag " + self.path,
                f"the flag {self.path} is not counted: it must be a file of user {os.geteuid()} or of root, and is"
                f" {kind} of user {found.st_uid}",
            )
            return
        self.made_ns = found.st_mtime_ns
        if not self.is_on:
            self.serial += 1
        self.is_on = True

    def _open(self) -> int:
        self._libc = ctypes.CDLL(None, use_errno=True)
        descriptor = int(self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        if descriptor < 0:
            reason = os.strerror(ctypes.get_errno())
            warn_once("inotify", f"inotify: {reason}; flags are looked for once a second instead")
        return descriptor

    def _watch_folder(self) -> None:
        """Watches the flag's folder, or its nearest existing parent, before the folder is checked."""
        wanted = os.path.dirname(self.path)
        # Again where the folder below was made meanwhile, which may have gone unseen; not for ever, since there are
        # folders that exist and cannot be watched.
        for _ in range(3):
            folder = wanted
            while self._descriptor >= 0 and not self._watches(folder) and folder != "/":
                folder = os.path.dirname(folder)
            if folder == wanted or not os.path.isdir(self._below(folder, wanted)):
                return

    def _watches(self, folder: str) -> bool:
        return bool(self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK) >= 0)

    @staticmethod
    def _below(folder: str, wanted: str) -> str:
        """The folder in `folder` that leads to `wanted`."""
        return os.path.join(folder, os.path.relpath(wanted, folder).split(os.sep)[0])

    def _run(self) -> None:
        try:
            while self._round():
                pass
        except Exception as error:  # e.g. at the interpreter's end
            warn_once("flag watch", f"the flag {self.path} is not watched any more: {describe(error)}")
        finally:
            self._close_descriptors()

    def _round(self) -> bool:
        self.look()
        self._changed(self)
        ready = {descriptor for descriptor, _ in self._poll.poll(_LOOK_S * 1000)}
        if self._descriptor in ready:
            self.is_stale = True
            self._changed(self)
        return self._wake_read not in ready

    def _was_removed(self) -> bool:
        """Reads all events. Was the flag removed by one of them?"""
        removed = False
        head, name = struct.Struct("iIII"), os.fsencode(os.path.basename(self.path))
        while True:
            try:
                events = os.read(self._descriptor, 65536)
            except BlockingIOError:
                return removed
            offset = 0
            while offset + head.size <= len(events):
                _, mask, _, length = head.unpack_from(events, offset)
                offset += head.size + length
                if mask & (_DELETE | _MOVED_FROM) and events[offset - length : offset].rstrip(b"\0") == name:
                    removed = True

    def _close_descriptors(self) -> None:
        for descriptor in (self._descriptor, self._wake_read, self._wake_write):
            if descriptor >= 0:
                try:
                    os.close(descriptor)
                except OSError:
                    pass
        self._descriptor = -1
