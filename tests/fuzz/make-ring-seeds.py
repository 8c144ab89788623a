#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz-ring: whole records, and ones that are not.

    tests/fuzz/make-ring-seeds.py tests/fuzz/corpus/ring
"""

import struct
import sys
from pathlib import Path

LAUNCH, ACTIVITY, NAME, DEVICE = 33, 34, 35, 36
TEXT, CATEGORY, THREAD, FIELDS, PUSH, POP, MARK, THREAD_END, START, END = range(64, 74)
COUNTER, SHORT_PUSH, SHORT_POP = range(74, 77)
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


def range_text(number, name, at=0, total=None, image=1):
    padded = name + b"\0" * (-len(name) % 8)
    return record(TEXT, struct.pack("<IIHHHH", image, number, at, len(name), total or len(name), 0) + padded)


def range_event(kind, time=1000, name=0, depth=0, domain=0, number=0, image=1, length=None):
    return record(kind, struct.pack("<QIIIIIHHQ", time, 78, name, domain, 3, image, depth, 0, number), length)


def range_fields(*fields, time=1000, count=None):
    body = struct.pack("<QIIII", time, 78, 1, len(fields) if count is None else count, 0)
    return record(FIELDS, body + b"".join(struct.pack("<IIQ", *field) for field in fields))


def short_level(kind, depth, time=1000, name=0, domain=0, length=None):
    head = struct.pack("<HHI", kind, depth, length or 32)
    return head + struct.pack("<QIIII", time, 78, 1, name, domain)


def counter(value, time=1000, name=1, length=None):
    return record(COUNTER, struct.pack("<QIIIId", time, 78, 1, name, 0, value), length)


NAMES = range_text(1, b"outer") + range_text(2, b"inner") + range_text(3, b"a domain")

PART, NOTE = 49, 48
CUDA_ID = 0x80000001


def gpu_activity(correlation=1, start=2000, end=3000, kind=1, device=CUDA_ID, untimed=0, graph=0, length=None):
    body = activity(0, start, end, 0, 0, kind)[8:]
    body = struct.pack("<Q", correlation) + body[8:]
    body = body[:-20] + struct.pack("<4I", device, CUDA_ID, CUDA_ID, 0) + body[-4:]
    extra = struct.pack("<QQ", graph and 7, graph << 32) + struct.pack("<11I", graph, 1, 7, 32, 0, 0, 0, 1, 1, 1, 0)
    return record(ACTIVITY, body + extra[:-4] + struct.pack("<8B", untimed, 1, 3, 0, 0, 0, 0, 0), length)


def timed_launch(correlation=1, kind=1, enter=100):
    return record(LAUNCH, struct.pack("<QQQIIBB6x", correlation, enter, enter + 100, 78, 2, kind, 0))


def clock(host=1000, device=500, width=100, length=None):
    return record(50, struct.pack("<QQQII", host, device, host, width, 0), length)


def graph_event(event=1, enter=100, leave=200):
    return record(51, struct.pack("<QQQIIIIBB6x", enter, leave, 5, 78, 10, 20, 3, event, 0))


def overhead(start=2000, end=2100):
    return record(52, struct.pack("<QQQII", start, end, 1, 1, 78))


def device_counts(dropped=3, time=100):
    return record(53, struct.pack("<12Q", time, 1, 1, 1, 1, dropped, 1, 1, 1, 1, 1, 1))


def gpu(device=CUDA_ID):
    return record(54, struct.pack("<II16sQ12I", device, 0, bytes(range(16)), 1 << 30, *range(1, 13)))


def memory(time=2000, released=0):
    return record(55, struct.pack("<6Q3IBBBB", time, 1, 0x7000, 4096, 0, 0, CUDA_ID, 1, 7, 3, released, 0, 0))


def node(text_bytes=8, length=None):
    return record(56, struct.pack("<QQQIIII", 9, 0, 5, 10, 0, text_bytes, 0) + b"a kernel", length)


CUDA = (clock() + text(DEVICE, CUDA_ID, b"a GPU") + gpu() + text(NAME, CUDA_ID, b"gemm") + text(PART, CUDA_ID, b"_more")
        + timed_launch() + gpu_activity() + gpu_activity(2) + timed_launch(2) + clock(1000000, 999500)
        + overhead() + memory() + memory(released=1) + device_counts() + text(NOTE, 4, b"Held.") + node())

SEEDS = {
    "ranges": NAMES + range_event(PUSH, 1000, 1) + range_event(PUSH, 2000, 2, 1, 3) + range_event(POP, 3000, 0, 1, 3)
    + range_event(POP, 4000) + range_event(START, 1500, 1, number=9) + range_event(END, 2500, number=9)
    + range_event(MARK, 2600, 2) + record(CATEGORY, struct.pack("<IIII", 1, 2, 0, 3))
    + record(THREAD, struct.pack("<IIII", 1, 1, 0, 78)),
    "ranges-unbalanced": range_event(POP, 1000, 1, 0xFFFE) + range_event(PUSH, 2000, 9, 0xFFFF)
    + range_event(POP, 3000, 0, 7) + range_event(END, 3000, number=1 << 63) + range_event(PUSH, 4000, 1, 5)
    + range_event(THREAD_END, 5000) + range_event(PUSH, 6000, 1) + range_event(PUSH, 7000, 1, image=2),
    "ranges-fields": NAMES + range_fields((1, 1, 5), (0, 3, 6), (2, 4, 3), (2, 9, 3)) + range_event(PUSH, 1000, 1)
    + range_fields((1, 4, 99), time=2000) + range_event(POP, 2000) + range_fields(count=16) + range_event(MARK, 1000),
    "ranges-pieces": range_text(1, b"x" * 16, 0, 24) + range_text(1, b"y" * 8, 16, 24) + range_event(MARK, 1000, 1)
    + range_text(2, b"z" * 8, 8, 24) + range_text(3, b"w" * 8, 0, 2000) + range_text(4, b"v" * 8, 0, 16)
    + range_text(4, b"v" * 8, 0, 16) + range_event(PUSH, 2000, 4),
    "ranges-short": range_event(PUSH, length=24) + range_event(MARK, time=2**64 - 1) + record(TEXT, b"\0" * 8),
    "levels": NAMES + short_level(SHORT_PUSH, 0, 1000, 1, 3) + short_level(SHORT_PUSH, 1, 2000, 2, 3)
    + range_event(POP, 3000, 0, 1, 3) + short_level(SHORT_POP, 0, 4000, 0, 3) + short_level(SHORT_POP, 0xFFFE, 5000)
    + short_level(SHORT_PUSH, 0xFFFF, 6000, 9) + short_level(SHORT_POP, 3, 7000, length=24),
    "counters": NAMES + counter(1.5) + counter(float("nan"), 2000, 2) + counter(2.5, 500) + counter(1, name=0)
    + counter(3, 3000, 99) + counter(1, 2**64 - 1) + counter(1, length=32),
    "cuda": CUDA,
    "cuda-graph": clock() + graph_event(1) + graph_event(2) + graph_event(3) + timed_launch(5, 10)
    + gpu_activity(5, graph=20) + gpu_activity(5, graph=20) + gpu_activity(5, kind=10, graph=20) + clock(5000, 4500),
    "cuda-jump": clock() + gpu_activity(1) + clock(2000000, 1 << 40) + gpu_activity(2) + clock(3000000, 5) + timed_launch(1),
    "cuda-no-clock": timed_launch() + gpu_activity() + overhead() + memory(),
    "cuda-untimed": clock() + timed_launch() + gpu_activity(start=0, end=0, untimed=6) + gpu_activity(9, 0, 0, untimed=6),
    "cuda-odd": clock(0) + clock(2**63, 2**63) + gpu_activity(device=1) + gpu_activity(kind=8) + gpu_activity(start=9, end=8)
    + gpu_activity(end=2**64 - 1) + gpu_activity(untimed=99) + graph_event(0) + graph_event(9) + graph_event(1, 2, 1)
    + node(500) + node(length=16) + gpu(5) + memory(released=7) + device_counts(time=0) + text(NOTE, 200, b"?")
    + text(PART, 77, b"of no name") + clock(length=24) + gpu_activity(length=144) + record(57, b"\0" * 8),
    "cuda-small": b"".join(record(kind, b"\0" * 8) for kind in range(48, 58)),
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
