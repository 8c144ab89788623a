#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the seed inputs of corpus/control, line-answer, proc-maps, proc-ranks, text-input and windows.

They are committed: run this only to add some.
"""

import gzip
import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


# ---- fuzz-control.c: pieces, each after a client's number and a quarter of its length ----


def send(client, text):
    data = text + b"\n" * (-len(text) % 4)  # empty lines are lines, too
    pieces = [data[at : at + 240] for at in range(0, len(data), 240)]
    return b"".join(bytes([client, len(piece) // 4]) + piece for piece in pieces)


def read(client):
    return bytes([client, 62])


def hang_up(client):
    return bytes([client, 63])


CONTROL = {
    "lines": send(0, b"status\n") + send(0, b"start a label\nstop\n") + read(0) + hang_up(0),
    "in-pieces": send(0, b"stat") + send(1, b"step") + send(0, b"us\n\n") + send(1, b" 5\n") + read(0) + read(1),
    "too-long": send(0, b"x" * 600) + send(0, b"status\n") + read(0),
    "nearly-too-long": send(0, b"x" * 508) + send(0, b"x\r\0\n") + read(0),
    "many": b"".join(send(client, b"status\n") for client in range(18)) + hang_up(3) + send(17, b"stop\n") + read(17),
    "nobody-reads": send(2, b"y" * 400 + b"\n") * 3 + read(2),
    "hang-up": send(0, b"stat") + hang_up(0) + send(0, b"us\n") + hang_up(0),
    "zeros": send(0, bytes(12) + b"\nstart \0x\n") + read(0),
}


# ---- fuzz-line-answer.c: a byte for the pieces, then struct line_answer with what follows ----

FILE, LINES, FAILED = range(3)


def answer(kind, index=0, count=0, body=b"", length=None):
    return struct.pack("<4I", kind, index, count, len(body) if length is None else length) + body


def lines(index, *chain):
    heads = b"".join(struct.pack("<3I", line, len(function), len(file)) for line, function, file in chain)
    return answer(LINES, index, len(chain), heads + b"".join(function + file for _, function, file in chain))


ONE = (12, b"main\0", b"a.c\0")
FIRST = answer(FILE, 0) + lines(0, ONE) + lines(1, (3, b"inlined\0", b"b.h\0"), ONE)
SECOND = answer(FILE, 1) + lines(2)
THIRD = answer(FILE, 2) + lines(3, (0, b"", b"")) + lines(4, ONE) + lines(5, ONE)
LINE_ANSWER = {
    "all": b"\xff" + FIRST + SECOND + THIRD,
    "in-pieces": b"\x06" + FIRST + SECOND + THIRD,
    "failed": b"\xff" + answer(FILE, 0) + lines(0, ONE) + answer(FAILED, body=b"damaged\0") + SECOND + THIRD,
    "failed-twice": b"\xff" + answer(FILE, 0) + answer(FAILED, body=b"a\0") + answer(FAILED, body=b"b\0"),
    "failed-without-end": b"\xff" + answer(FILE, 0) + answer(FAILED, body=b"damaged"),
    "answered-twice": b"\xff" + FIRST + lines(1, ONE),
    "back": b"\xff" + FIRST + SECOND + answer(FILE, 0),
    "over": b"\xff" + FIRST + answer(FILE, 2),
    "text-beyond": b"\xff" + answer(FILE, 0) + answer(LINES, 0, 1, struct.pack("<3I", 1, 2**32 - 1, 4) + b"a.c\0"),
    "text-without-end": b"\xff" + answer(FILE, 0) + lines(0, (1, b"main", b"a.c")),
    "too-many": b"\xff" + answer(FILE, 0) + answer(LINES, 0, 2**31, bytes(64)),
    "too-long": b"\xff" + answer(FILE, 0) + answer(LINES, 0, 1, bytes(12), 2**31),
    "cut": b"\xff" + (FIRST + SECOND)[:-9],
}


# ---- fuzz-proc-maps.c ----

MAPS = {
    "usual": b"""5581c0a00000-5581c0a02000 r--p 00000000 fe:01 1183 /opt/a b/program
5581c0a02000-5581c0a07000 r-xp 00002000 fe:01 1183 /opt/a b/program
7f1200000000-7f1200021000 rwxp 00000000 00:00 0
7f1210000000-7f1210001000 r-xs 00000000 00:05 77 /memfd:code (deleted)
7ffd3f1fe000-7ffd3f200000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
""",
    "escaped": b"1000-2000 r-xp 00000000 00:00 5 /a\\012b\xff\x1b[31m\n",
    "no-path": b"1000-2000 r-xp 00000000 00:00 5\n2000-3000 r-xp 00001000 00:00 5",
    "short-permissions": b"1000-2000 r 00000000 00:00 5 /a\n",
    "numbers": b"ffffffffffffffffff-1 r-xp ffffffffffffffffffff 123456789:123456789 99999999999999999999 /a\n",
    "cut": b"1000-2000 r-xp 0000\n",
    "empty-lines": b"\n\n1000-2000 r-xp 0 0:0 0 x\n\n",
}

# ---- fuzz-proc-ranks.c ----

RANKS = {
    "torchrun": b"HOME=/\0RANK=3\0WORLD_SIZE=8\0LOCAL_RANK=1\0",
    "open-mpi": b"OMPI_COMM_WORLD_RANK=1\0OMPI_COMM_WORLD_SIZE=2\0OMPI_COMM_WORLD_LOCAL_RANK=0\0",
    "mpich": b"PMI_RANK=0\0PMI_SIZE=4\0MPI_LOCALRANKID=0\0",
    "slurm": b"SLURM_PROCID=15\0SLURM_NTASKS=16\0SLURM_LOCALID=7\0",
    "mixed": b"RANK=x\0PMI_RANK= 5\0PMI_SIZE=-1\0MPI_LOCALRANKID=99999999999999999999\0",
    "without-end": b"WORLD_SIZE=8\0RANK=2147483647",
    "empty": b"\0\0RANK=\0RANK\0=\0",
}

# ---- fuzz-text-input.c: a byte that says how it is read ----

TEXT = b"".join(b'{"name":"event %d","ts":%d},\n' % (i, i * i) for i in range(40))


def packed(data):
    return gzip.compress(data, mtime=0)


def zstd(data, kind=0, last=1, length=None):
    """A frame of one block as it is (kind 0), or of a byte again and again (1)."""
    size = len(data) if length is None else length
    head = b"\x28\xb5\x2f\xfd" + b"\x60" + struct.pack("<H", max(size - 256, 0))
    return head + struct.pack("<I", last | kind << 1 | size << 3)[:3] + data


INPUT = {
    "plain": b"\x10" + TEXT,
    "empty": b"\0",
    "gzip": b"\x10" + packed(TEXT),
    "gzip-members": b"\xff" + packed(TEXT[:100]) + packed(b"") + packed(TEXT[100:]),
    "gzip-trailing": b"\x10" + packed(TEXT) + bytes(100),
    "gzip-cut": b"\x10" + packed(TEXT)[:-20],
    "gzip-damaged": b"\x10" + packed(TEXT)[:60] + b"\xff" * 8 + packed(TEXT)[68:],
    "gzip-checksum": b"\x10" + packed(TEXT)[:-8] + bytes(8),
    "gzip-large": b"\x80" + packed(bytes(600_000)),
    "zstd": b"\x10" + zstd(TEXT),
    "zstd-frames": b"\x40" + zstd(TEXT) + zstd(TEXT),
    "zstd-cut": b"\x10" + zstd(TEXT)[:-20],
    "zstd-run": b"\x10" + zstd(b"a", kind=1, length=40_000),
    "zstd-skippable": b"\x10" + zstd(TEXT) + b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip" + zstd(TEXT),
    "zstd-head": b"\x10\x28\xb5\x2f\xfd",
    "gzip-head": b"\x10\x1f\x8b",
}

# ---- fuzz-windows.c: a byte that chooses, then acts ----

CLOSED, WARMUP, ACTIVE = range(3)


def edge(phase, time_ns=0, step=0, window=1, reason=1):
    return b"\0" + struct.pack("<QQIHH", time_ns, step, window, phase, reason)


def gate(offset, data):
    return b"\1" + struct.pack("<HB", offset, len(data)) + data


def ask(line):
    return b"\2" + line + b"\n"


def step(number, time_ns=1):
    return b"\3" + struct.pack("<HHIQQ4I", 96, 0, 40, time_ns, number, 78, 1, 0, 0)


SIGNAL = b"\4"
FOLLOWED = edge(WARMUP, step=1) + edge(ACTIVE, step=2) + edge(CLOSED, step=5)
WINDOWS = {
    "by-hand": b"\0" + ask(b"status") + ask(b"start a label") + ask(b"start") + ask(b"stop") + ask(b"text stop"),
    "by-hand-steps": b"\x08" + ask(b"start") + ask(b"step") + ask(b"step x") + ask(b"text step y") + ask(b"text status"),
    "by-steps": b"\1" + FOLLOWED + FOLLOWED + ask(b"status"),
    "by-calls": b"\2" + edge(ACTIVE, step=2) + ask(b"step") + edge(CLOSED, step=4),
    "by-signal": b"\3" + SIGNAL + ask(b"status") + SIGNAL + SIGNAL,
    "twice-open": b"\1" + edge(ACTIVE) + edge(ACTIVE, step=9) + ask(b"text status") + edge(CLOSED),
    "to-come": b"\1" + edge(ACTIVE, 2**64 - 1, 2**64 - 1) + edge(CLOSED, 2**63) + edge(ACTIVE, 1) + edge(CLOSED, 2),
    "no-phase": b"\1" + edge(7) + edge(2**16 - 1) + edge(WARMUP) + edge(CLOSED, reason=99),
    "gate": b"\1" + gate(0, bytes(120)) + ask(b"step") + gate(112, b"\xff" * 16) + gate(72, b"\xff" * 40) + FOLLOWED,
    "steps": b"\0" + ask(b"start") + step(1) + step(2, 2**64 - 1) + ask(b"stop"),
    "other-lines": b"\0" + ask(b"") + ask(b"text ") + ask(b"begin \x1b[31m \xff") + ask(b"start \"\\\r\n"),
}

FOLDERS = {
    "control": CONTROL,
    "line-answer": LINE_ANSWER,
    "proc-maps": MAPS,
    "proc-ranks": RANKS,
    "text-input": INPUT,
    "windows": WINDOWS,
}

if __name__ == "__main__":
    for folder, inputs in FOLDERS.items():
        (CORPUS / folder).mkdir(exist_ok=True)
        for name, data in inputs.items():
            (CORPUS / folder / name).write_bytes(data)
