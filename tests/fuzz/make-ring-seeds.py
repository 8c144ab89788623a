#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz-ring: whole records, and ones that are not.

    tests/fuzz/make-ring-seeds.py tests/fuzz/corpus/ring
"""

import struct
import sys
from pathlib import Path

LAUNCH, ACTIVITY, NAME, DEVICE = 33, 34, 35, 36
WHOLE = b"\xff\xff"  # the head is at the end of the bytes


def record(kind, body, length=None):
    return struct.pack("<HHI", kind, 0, length if length is not None else 8 + len(body)) + body


def text(kind, number, name):
    padded = name + b"\0" * (-len(name) % 8)
    return record(kind, struct.pack("<IIII", number, 0, len(name), 0) + padded)


def activity(queued=1000, start=2000, end=3000, before=5000, after=6000, kind=1, length=None):
    times = struct.pack("<5Q", 1 << 40 | 1, queued, start, start, end)
    sizes = struct.pack("<QQQQ", 0, 64, 1, 1) + struct.pack("<3I", 8, 1, 1)
    ids = struct.pack("<4IBB2x", 1, 2, 3, 78, kind, 0)
    host = struct.pack("<3Q", before, after, before)
    return record(ACTIVITY, times + host + sizes + ids, length)


def launch(kind=8, length=None):
    return record(LAUNCH, struct.pack("<QQQIIBB6x", 0, 100, 200, 78, 2, kind, 0), length)


SEEDS = {
    "whole": text(DEVICE, 1, b"a device") + text(NAME, 3, b"a kernel") + activity() + launch(),
    "name-after-work": activity() + text(NAME, 3, b"late"),
    "times-backwards": activity(start=4000, end=3000) + activity(before=7000),
    "bad-kinds": activity(kind=0) + activity(kind=99) + launch(kind=200),
    "short": launch(length=16) + activity(length=24),
    "zero-length": launch(length=0),
    "length-beyond": launch(length=1 << 30),
    "text-beyond": record(NAME, struct.pack("<IIII", 1, 0, 4096, 0) + b"x" * 8),
    "unknown-type": record(7, b"\0" * 8) + launch(),
    "padding": record(32, b"\0" * 24) + launch(),
    "huge-times": activity(queued=2**63, start=2**63, end=2**64 - 1) + activity(after=2**63),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in SEEDS.items():
        (folder / name).write_bytes(WHOLE + content)
    (folder / "odd-head").write_bytes(struct.pack("<H", 13) + SEEDS["whole"])
    (folder / "far-head").write_bytes(struct.pack("<H", 65528) + SEEDS["whole"])
