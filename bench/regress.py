#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""False alarms of `sonde report --regress` between recordings of one program, which are equal.

usage: regress.py SONDE [RECORDINGS]

Records a small OpenCL program RECORDINGS times (default 41), one after the other, and compares each with the one
before it; then 40 times five of them, taken at random and joined, with five others."""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import numpy, pyopencl
context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
values = numpy.ones(200000, numpy.float32)
buffer = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, values.nbytes)
source = "__kernel void scale(__global float *x) { x[get_global_id(0)] *= 1.5f; }"
scale = pyopencl.Program(context, source).build().scale
for step in range(200):
    pyopencl.enqueue_copy(queue, buffer, values, is_blocking=False)
    for _ in range(5):
        scale(queue, values.shape, None, buffer)
    if step % 10 == 0:
        queue.finish()
queue.finish()
"""
JOINED, COMPARISONS = 5, 40


def fails(sonde, before, after):
    return subprocess.run([sonde, "report", "--regress", before, after], capture_output=True).returncode != 0


def join(path, captures):
    path.write_bytes(b"".join(capture.read_bytes() for capture in captures))
    return path


def main():
    sonde, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 41
    chosen = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        captures = [Path(folder) / f"{number}.pftrace" for number in range(count)]
        for capture in captures:
            command = [sonde, "record", "-o", capture, "--", "/usr/bin/python3", "-c", PROGRAM]
            subprocess.run(command, check=True, capture_output=True, env={"PYOPENCL_CTX": "0", "PATH": "/usr/bin:/bin"})
        pairs = sum(fails(sonde, before, after) for before, after in zip(captures, captures[1:]))
        print(f"one against the next: {pairs} of {count - 1} failed")
        failed = 0
        for _ in range(COMPARISONS):
            taken = chosen.sample(range(count), 2 * JOINED)
            sides = [
                join(Path(folder) / f"joined{side}.pftrace", [captures[i] for i in sorted(taken[side::2])]) for side in (0, 1)
            ]
            failed += fails(sonde, *sides)
        print(f"{JOINED} joined against {JOINED} others: {failed} of {COMPARISONS} failed")


if __name__ == "__main__":
    main()
