# SPDX-License-Identifier: Apache-2.0
"""A command prefix under which perf_event_open(2) and bpf(2) fail: by a seccomp filter, for all that runs behind it."""

import errno
import os
import sys

SCRIPT = """
import ctypes, os, struct, sys
calls, refuse, command = [int(call) for call in sys.argv[1].split(",")], 0x00050000 | int(sys.argv[2]), sys.argv[3:]
LOAD, EQUAL, RETURN, ALLOW = 0x20, 0x15, 0x06, 0x7FFF0000
tests = [(EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
code = [(LOAD, 0, 0, 0), *tests, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, refuse)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
given = Filter(len(code), ctypes.addressof(program))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(given), 0, 0) == 0
os.execv(command[0], command)
"""
PERF_EVENT_OPEN, BPF, MADVISE = (298, 321, 28) if os.uname().machine == "x86_64" else (241, 280, 233)


def forbidden(error, *calls):
    """EPERM is what Docker's standard profile gives a container without the capabilities, ENOSYS what gVisor does."""
    return [sys.executable, "-c", SCRIPT, ",".join(map(str, calls or (PERF_EVENT_OPEN, BPF))), str(getattr(errno, error))]
