#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the seed inputs of corpus/perf-ring and corpus/wire. They are committed: run this only to add some."""

import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
PROGRAM, VDSO, CODE = 0x10000000, 0x20000000, 0x30000000  # as in fuzz-wire.c
SAMPLE, MMAP2, COMM, FORK, EXIT, LOST = 9, 10, 3, 7, 4, 2


# ---- struct wire_sample ----


def wire_copy(pc, stack):
    registers = [pc, 0x7000_0000, 0x7000_0020, 0] + list(range(16)) + [len(stack)]
    return struct.pack("<21Q", *registers) + stack


def python_frame(code, entry, offset=4):
    return struct.pack("<QIiII", code, 77, offset, entry, 0)


def wire(
    kernel=(),
    user=(),
    python=(),
    stop=0,
    flags=0,
    copy=b"",
    time_ns=10**9,
    gil=0,
    wait=0,
    waited_ns=0,
    runnable_ns=0,
    left_out=(0, 0, 0, 0),
):
    frames = struct.pack(f"<{len(kernel)}Q", *kernel) + b"".join(python) + struct.pack(f"<{len(user)}Q", *user)
    length = 128 + len(frames) + len(copy)
    head = struct.pack("<HHI", 1, 0, length) + struct.pack("<QQ", time_ns, 7)
    head += struct.pack("<III", 1, 2, 0) + struct.pack("<HH", len(user), len(kernel))
    head += struct.pack("<BBBBI", stop, flags, bool(python), gil, 1) + b"thread".ljust(16, b"\0")
    head += b"process".ljust(16, b"\0") + struct.pack(
        "<HBBIQQQQ4H", len(python), wait, 0, 1, waited_ns, 99, 3, runnable_ns, *left_out
    )
    assert len(head) == 128
    return head + frames + copy


def wake(waited_ns, time_ns=2 * 10**9, pid=0x7FFFFF00, runnable_ns=0, flags=0):
    return struct.pack("<HHIQQIIQII", 3, 0, 48, time_ns, waited_ns, pid, 2, runnable_ns, flags, 0)


def wait_count(wait, count, waited_ns, time_ns=2 * 10**9, pid=0x7FFFFF00):
    return struct.pack("<HHIQQQIIII", 4, 0, 48, time_ns, waited_ns, count, pid, 2, wait, 0)


def code(pieces):
    body = b"".join(piece + bytes(-len(piece) % 8) for piece in pieces)
    head = struct.pack("<HHIQQIIII4I", 2, 0, 56 + len(body), 1, 5, 77, 1, 9, 3, *map(len, pieces))
    return head + body


def from_ring(record):
    return record[:2] + b"\1\0" + record[4:]


def same(correlation, same_as, check=False):
    return from_ring(struct.pack("<HHIQQQ", 81 if check else 80, 0, 32, correlation, same_as, 10**9))


def wire_input(*records):
    return b"".join(struct.pack("<H", len(record)) + record for record in records)


STACK = struct.pack("<16Q", *[VDSO + 0x9F0, CODE + 8, 0x7000_0030, PROGRAM + 0x2000] * 4)
WIRE = {
    "user-stack": wire_input(wire(user=[PROGRAM + 0x2000, CODE + 64, VDSO + 0x9F0, 5])),
    "kernel-stack": wire_input(wire(kernel=[0xFFFFFFFF81000000, 0xFFFFFFFF81000100], stop=1, flags=1)),
    "copied": wire_input(wire(stop=3, flags=2, copy=wire_copy(CODE + 16, STACK))),
    "copied-vdso": wire_input(wire(user=[VDSO + 0x9F0], stop=3, flags=2, copy=wire_copy(VDSO + 0x9F0, STACK))),
    "two-out-of-order": wire_input(wire(user=[CODE], time_ns=5), wire(user=[CODE + 1], time_ns=3)),
    "counts-beyond-length": wire_input(wire(user=[1] * 4)[:90], wire()[:40], b"\1\0\0\0\xff\xff\xff\xff"),
    "python": wire_input(
        wire(user=[CODE, PROGRAM + 0x2000], python=[python_frame(5, 0), python_frame(6, 1), python_frame(7, 1)], gil=1)
    ),
    "waiting": wire_input(wire(user=[CODE], wait=2, waited_ns=10**8, gil=2, flags=4), wake(10**8), wake(5, pid=9)),
    "waiting-exactly": wire_input(
        wire(kernel=[0xFFFFFFFF81000000], user=[CODE], wait=6, waited_ns=10**8, runnable_ns=10**6, flags=8 | 16),
        wire(user=[CODE], wait=2, flags=0),
        wake(10**7, runnable_ns=10**8, flags=8 | 16 | 32),
        wait_count(5, 1000, 10**6),
        wait_count(99, 1, 1),
    ),
    "code-object": wire_input(code([bytes(48) + b"a.py", bytes(48) + b"f", b"", bytes(40)]), code([b"", b"", b"", b"x"])),
    "launches-from-a-ring": wire_input(
        from_ring(code([bytes(48) + b"a.py", bytes(48) + b"f", b"", bytes(40)])),
        from_ring(wire(waited_ns=5, copy=wire_copy(CODE + 16, STACK))),
        same(6, 5),
        same(7, 5, check=True),
        same(8, 8),
        from_ring(wire(copy=wire_copy(CODE + 16, STACK)[:-8])),
        from_ring(wire(python=[python_frame(5, 0)], copy=wire_copy(CODE + 16, STACK))),
        same(9, 5)[:24],
    ),
    "deep": wire_input(
        wire(
            user=[PROGRAM + 0x2000] * 200,
            python=[python_frame(5, index % 2) for index in range(100)],
            left_out=(700, 3, 500, 2),
        ),
        wire(user=[CODE], left_out=(65535, 65535, 65535, 65535)),
    ),
    "last-moment": wire_input(wire(time_ns=2**64 - 1)),
}


# ---- perf records ----


def record(kind, body, misc=2):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(time_ns=1000):
    return struct.pack("<IIQII", 5, 6, time_ns, 0, 0)


def named(kind, fixed, name, misc=2):
    text = name + b"\0" * (8 - len(name) % 8)
    return record(kind, fixed + text + trailer(), misc)


def sample(kernel=None, abi=2, stack=b"", copied=None):
    body = struct.pack("<QIIQII", CODE, 5, 6, 1000, 1, 0)
    if kernel is not None:
        body += struct.pack(f"<{len(kernel) + 1}Q", len(kernel), *kernel)
    body += struct.pack("<Q", abi) + (struct.pack("<17Q", *range(100, 117)) if abi else b"")
    body += struct.pack("<Q", len(stack)) + stack
    return record(SAMPLE, body + (struct.pack("<Q", len(stack) if copied is None else copied) if stack else b""))


TASK = struct.pack("<IIIIQ", 5, 5, 6, 5, 1000) + trailer()
RING = {
    "user-sample": b"\0" + sample(stack=STACK),
    "kernel-sample": b"\x80" + sample([2**64 - 128, 0xFFFFFFFF81000000, 0xFFFFFFFF81000100], stack=STACK, copied=64),
    "no-registers": b"\0" + sample(abi=0),
    "compat": b"\0" + sample(abi=1, stack=STACK),
    "long-chain": b"\x80" + sample([1] * 300),
    "chain-beyond-record": b"\x80" + record(SAMPLE, struct.pack("<QIIQIIQ", 1, 5, 6, 9, 1, 0, 2**61)),
    "stack-beyond-record": b"\0" + record(SAMPLE, struct.pack("<QIIQIIQQ", 1, 5, 6, 9, 1, 0, 0, 2**60)),
    "copied-beyond-stack": b"\0" + sample(stack=STACK, copied=2**63),
    "over-the-end": b"\x06" + sample(stack=STACK) + sample(stack=STACK),
    "names": b"\0" + record(FORK, TASK) + named(COMM, struct.pack("<II", 5, 6), b"renamed", 0x2000)
    + record(EXIT, TASK) + record(LOST, struct.pack("<QQ", 1, 2) + trailer()),
    "name-without-end": b"\0" + record(COMM, struct.pack("<II", 5, 6) + b"x" * 16 + trailer()),
    "short-header": b"\0" + struct.pack("<IHH", SAMPLE, 0, 4) + bytes(8),
    "torn": b"\0" + sample(stack=STACK)[:100],
}  # fmt: skip

for folder, inputs in (("wire", WIRE), ("perf-ring", RING)):
    (CORPUS / folder).mkdir(exist_ok=True)
    for name, data in inputs.items():
        (CORPUS / folder / name).write_bytes(data)
