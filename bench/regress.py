#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""False alarms of `sonde report --regress` between recordings of one program, which are equal.

usage: regress.py SONDE [RECORDINGS]

Records a small OpenCL program RECORDINGS times (default 41, at least 2), one after the other, and compares each with
the one before it; then 40 times five of them (or fewer, where there are fewer than ten), taken at random, with five
others: these comparisons share recordings. Needs pyopencl for /usr/bin/python3, and an OpenCL driver."""

import json
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
SEVERAL, COMPARISONS = 5, 40
ENVIRONMENT = {"PYOPENCL_CTX": "0", "PATH": "/usr/bin:/bin"}


def record(sonde, capture):
    command = [sonde, "record", "-o", capture, "--", "/usr/bin/python3", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        sys.exit(f"{sys.argv[0]}: recording failed: {done.stderr}")


def slower_rows(sonde, before, after):
    """The rows that got slower, as text."""
    words = [word for capture in before for word in ("--regress", capture)]
    done = subprocess.run([sonde, "report", "--json", *words, *after], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{sys.argv[0]}: {done.stderr}")
    rows = json.loads(done.stdout)["rows"]
    assert any(row["kind"] == "device" and row["verdict"] not in ("too_few", "too_small") for row in rows), "no kernel"
    return [f"{row['kind']} {row['name']} {row['change_percent']:+.1f} %" for row in rows if row["verdict"] == "slower"]


def print_result(what, results):
    failed = [rows for rows in results if rows]
    print(f"{what}: {len(failed)} of {len(results)} failed")
    for rows in failed:
        print("   ", ", ".join(rows))


def main():
    sonde, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 41
    several = min(SEVERAL, count // 2)
    chosen = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        captures = [Path(folder) / f"{number}.pftrace" for number in range(count)]
        record(sonde, captures[0])  # the driver compiles the kernel once, and keeps it
        for capture in captures:
            record(sonde, capture)
        print_result("one against the next", [slower_rows(sonde, [a], [b]) for a, b in zip(captures, captures[1:])])
        results = []
        for _ in range(COMPARISONS):
            taken = chosen.sample(captures, 2 * several)
            results.append(slower_rows(sonde, taken[:several], taken[several:]))
        print_result(f"{several} against {several} others", results)


if __name__ == "__main__":
    main()
