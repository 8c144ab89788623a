# SPDX-License-Identifier: Apache-2.0
"""Traces made by hand for the tests: small true ones, and what is wrong with real ones, made large."""

import gzip
import json


def launch_and_kernel(number, start_us, name="gemm", thread=1, stream=7, wait_us=5, duration_us=40):
    """An operator, the call in it, and its kernel: 20, 10 and `duration_us` long."""
    return [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 1,
            "tid": thread,
            "ts": start_us,
            "dur": 20,
            "args": {"External id": number, "Record function id": number},
        },
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 1,
            "tid": thread,
            "ts": start_us + 5,
            "dur": 10,
            "args": {"correlation": number, "External id": number},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "pid": 0,
            "tid": stream,
            "ts": start_us + 15 + wait_us,
            "dur": duration_us,
            "args": {"correlation": number, "External id": number, "device": 0, "context": 1, "stream": stream},
        },
    ]


def write_kineto(path, events, **header):
    text = json.dumps({"schemaVersion": 1, **header, "traceEvents": events})
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def kineto_of_rank(path, rank, world_size, shift_us=0):
    events = [event for number in range(1, 6) for event in launch_and_kernel(number, shift_us + 100 * number)]
    return write_kineto(path, events, distributedInfo={"backend": "nccl", "rank": rank, "world_size": world_size})


def kineto_bomb(path, size):
    """`size` bytes that compress to a thousandth, in a true trace."""
    events = launch_and_kernel(1, 0)
    head, tail = json.dumps({"schemaVersion": 1, "traceEvents": events}).rsplit("]", 1)
    block = b" " * (1 << 20)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head.encode())
        for _ in range(size >> 20):
            file.write(block)
        file.write(b"]" + tail.encode())
    return path
