#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
ranks.py SONDE [RANKS] [MEGABYTES] [--traces]: captures of a run of so many ranks, of so many megabytes each, and how long
the report of all of them takes, in how much memory. One capture is recorded, of Python programs with many stacks, until it
is that large; the others are copies of it whose host and rank differ. --traces: Kineto traces in place of recordings.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS_US, KERNELS = 100_000, 300


def rows_of_step(step: int, rank: int, number: random.Random) -> "list[str]":
    """With the members that Kineto writes with record_shapes=True."""
    at = step * STEPS_US
    rows = ['{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1, "ts": %d, "dur": %d, '
            '"args": {"External id": %d, "Record function id": 0, "Ev Idx": %d}}' % (step, at, STEPS_US - 1, step, step)]
    for kernel in range(KERNELS):
        id, host_at = step * KERNELS + kernel + 1, at + kernel * 200
        is_collective = kernel % 50 == 49
        start, stream = at + kernel * 250 + (3000 if rank == 5 else 0), 20 if is_collective else 7
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)" if is_collective else f"gemm_{kernel % 60}<float, 128>"
        duration = at + kernel * 250 + 5000 - start if is_collective else 150 + number.random()
        rows.append('{"ph": "X", "cat": "cpu_op", "name": "aten::op%d", "pid": 1, "tid": 1, "ts": %d.000, "dur": 20.000, "args": {"External id": %d, '
                    '"Record function id": 0, "Concrete Inputs": ["", "", "", ""], "Input type": ["float", "float", "float", "Scalar"], '
                    '"Input Strides": [[1024, 1], [1, 1024], [1024, 1], []], "Input Dims": [[512, 1024], [1024, 4096], [512, 4096], []], "Ev Idx": %d}}'
                    % (kernel % 40, host_at, id, id))
        rows.append('{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": %d.000, "dur": 5.000, '
                    '"args": {"External id": %d, "cbid": 211, "correlation": %d}}' % (host_at + 5, id, id))
        rows.append('{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d, "ts": %d.000, "dur": %.3f, "args": {"External id": %d, "queued": 0, '
                    '"device": 0, "context": 1, "stream": %d, "correlation": %d, "registers per thread": 96, "shared memory": 49152, '
                    '"blocks per SM": 1.185185, "warps per SM": 4.740741, "grid": [64, 2, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 7}}'
                    % (name, stream, start, duration, id, stream, id))
        rows.append('{"ph": "s", "id": %d, "pid": 1, "tid": 1, "ts": %d.000, "cat": "ac2g", "name": "ac2g"}' % (id, host_at + 5))
        rows.append('{"ph": "f", "id": %d, "pid": 0, "tid": %d, "ts": %d.000, "cat": "ac2g", "name": "ac2g", "bp": "e"}' % (id, stream, start))
    return rows


def trace_of_rank(path: Path, rank: int, ranks: int, megabytes: float) -> None:
    """Steps of operators, kernels and all-reduces, until the file is large enough; rank 5 is 3 ms late in each step."""
    number = random.Random(rank)
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "distributedInfo": {"rank": %d, "world_size": %d}, "traceEvents": [\n' % (rank, ranks))
        step = written = 0
        while written < megabytes * 1e6:
            text = (",\n" if step else "") + ",\n".join(rows_of_step(step, rank, number))
            written += file.write(text)
            step += 1
        file.write("\n]}\n")


PROGRAM = """
import os, sys, time
import sonde
sys.setrecursionlimit(10000)
def make(i):
    text = f"def f{i}(n, g):\\n    if n <= 0:\\n        t = time.perf_counter()\\n        while time.perf_counter() - t < 0.0004: pass\\n        return\\n    g[(n * {i * 7 + 3}) % len(g)](n - 1, g)\\n"
    scope = {"time": time}
    exec(compile(text, f"module{i % 20}.py", "exec"), scope)
    return scope[f"f{i}"]
g = [make(i) for i in range(200)]
until, depth, calls = time.monotonic() + float(sys.argv[1]), 0, 0
while time.monotonic() < until:
    depth, calls = (depth * 31 + 17) % 60, calls + 1
    with sonde.range("forward"):
        g[depth % 200](depth, g)
    if calls % 20 == 0:
        with sonde.range("all_reduce"):
            pass
        sonde.step("train")
"""


def recordings(sonde: Path, folder: Path, ranks: int, megabytes: float) -> None:
    """Recorded for a few seconds, and repeated one behind the other: a capture of a longer run has as many stacks, and more samples."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(sonde.parent / "python"), "RANK": "0", "WORLD_SIZE": str(ranks)}
    one = folder / "one.pftrace"
    subprocess.run([sonde, "record", "-q", "-F", "9999", "-o", one, "--", "/usr/bin/python3", program, "10"], env=environment, check=True)
    size = one.stat().st_size / 1e6
    print(f"recorded {size:.1f} MB; each rank has {max(1, round(megabytes / size))} of them")
    piece = one.read_bytes()
    one.unlink()
    for rank in range(ranks):
        with (folder / f"rank{rank}.pftrace").open("wb") as file:
            for _ in range(max(1, round(megabytes / size))):
                file.write(piece)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sonde", type=Path)
    parser.add_argument("ranks", type=int, nargs="?", default=64)
    parser.add_argument("megabytes", type=float, nargs="?", default=50)
    parser.add_argument("--traces", action="store_true")
    given = parser.parse_args()
    sonde = given.sonde.resolve()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        folder = Path(name)
        if given.traces:
            for rank in range(given.ranks):
                trace_of_rank(folder / f"rank{rank}.json", rank, given.ranks, given.megabytes)
        else:
            recordings(sonde, folder, given.ranks, given.megabytes)
        total = sum(path.stat().st_size for path in folder.iterdir())
        begin = time.monotonic()
        done = subprocess.run([sonde, "report", folder], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{given.ranks} ranks, {total / 1e6:.0f} MB: {seconds:.1f} s, {usage.ru_maxrss / 2**20:.2f} GiB at most, load {os.getloadavg()[0]:.1f}")
        print(done.stderr[-500:], *[line for line in done.stdout.splitlines() if "waited most" in line or " samples at " in line])
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
