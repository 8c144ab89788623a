#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NCCL itself tells of its collectives through NVTX, in a recording: names, bytes, peers, reductions. Its libraries come
from the wheels on PyPI. There is no GPU: a call with no communicator tells its range, and then returns an error.

    check-nccl.py FOLDER-FOR-LIBRARIES SONDE

Exit status 77: no wheel can be had.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from wheels import Unavailable, unpack

RELEASES = ("2.21.5", "2.28.9")  # before and after the payload got the communicator
MAX, FLOAT, INVALID_ARGUMENT = 2, 7, 4

CALLS = f"""
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
pointer, size, integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
buffer = ctypes.create_string_buffer(64)
assert nccl.ncclGetUniqueId(ctypes.create_string_buffer(128)) == 0
for name, types, values in (
    ("ncclAllReduce", (pointer, pointer, size, integer, integer), (buffer, buffer, 256, {FLOAT}, {MAX})),
    ("ncclAllReduce", (pointer, pointer, size, integer, integer), (buffer, buffer, 1 << 20, {FLOAT}, {MAX})),
    ("ncclBroadcast", (pointer, pointer, size, integer, integer), (buffer, buffer, 128, {FLOAT}, 1)),
    ("ncclSend", (pointer, size, integer, integer), (buffer, 512, {FLOAT}, 3)),
    ("ncclRecv", (pointer, size, integer, integer), (buffer, 512, {FLOAT}, 2)),
):
    call = getattr(nccl, name)
    call.argtypes = (*types, pointer, pointer)
    assert call(*values, None, None) == {INVALID_ARGUMENT}, name
"""
# name, bytes, and what else is told
EXPECTED = [
    ("ncclAllReduce", 1 << 10, {"Reduction operation": "Max"}),
    ("ncclAllReduce", 1 << 22, {"Reduction operation": "Max"}),
    ("ncclBroadcast", 512, {"Root": 1}),
    ("ncclSend", 2048, {"Peer rank": 3}),
    ("ncclRecv", 2048, {"Peer rank": 2}),
]


def fetch(release, folder):
    library = "nvidia/nccl/lib/libnccl.so.2"
    return unpack(folder, f"nvidia-nccl-cu12=={release}", (library,)) / library


def told(sonde, library):
    with tempfile.TemporaryDirectory() as folder:
        capture, script = Path(folder) / "nccl.pftrace", Path(folder) / "calls.py"
        script.write_text(CALLS)
        subprocess.run([sonde, "record", "-q", "-o", capture, "--", sys.executable, script, library], check=True,
                       stdout=subprocess.DEVNULL)
        trace = subprocess.run([sonde, "export", "-f", "chrome", "-o", "-", capture], check=True, capture_output=True)
    slices = [event for event in json.loads(trace.stdout)["traceEvents"]
              if event.get("cat") == "NCCL" and not event["name"].startswith("ncclGroup")]
    return [(event["name"], event["args"]) for event in sorted(slices, key=lambda event: event["ts"])]


def check(release, got):
    names = [name for name, _ in got]
    assert names == [name for name, _, _ in EXPECTED], f"NCCL {release}: {names}"
    for (name, args), (_, size, others) in zip(got, EXPECTED):
        sizes = {value for key, value in args.items() if "bytes" in key.lower()}
        assert sizes == {size}, f"NCCL {release}, {name}: {args}"
        assert others.items() <= args.items(), f"NCCL {release}, {name}: {args}"


def main():
    folder, sonde = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(exist_ok=True)
    for release in RELEASES:
        try:
            library = fetch(release, folder)
        except Unavailable as reason:
            print(f"skipped: {reason}")
            return 77
        check(release, told(sonde, library))
        print(f"NCCL {release}: {len(EXPECTED)} operations with bytes, peers and reductions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
