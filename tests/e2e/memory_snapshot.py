# SPDX-License-Identifier: Apache-2.0
"""A snapshot of PyTorch's memory as torch.cuda.memory._snapshot() returns it, made by hand: on one device a block from
before the history, three allocations in it of which one is released, and a segment that came with it."""

import json
import pickle
import sys

EPOCH_US = 1_700_000_000_000_000
MIB = 1 << 20
TRAIN = {"filename": "/home/me/train.py", "line": 12, "name": "step"}
LINEAR = {"filename": "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", "line": 134, "name": "forward"}
NATIVE = {"filename": "??", "line": 0, "name": "at::_ops::empty_memory_format::call"}
FORWARD = [NATIVE, LINEAR, TRAIN]  # innermost first
LOAD = [{"filename": "/home/me/data.py", "line": 7, "name": "load; all"}]


def entry(action, address, size, time, frames=(), **more):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": EPOCH_US + time, "frames": frames, **more}


def block(address, size, state, frames, **more):
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames, **more}


def snapshot():
    blocks = [
        block(0x1000, 4 * MIB, "active_allocated", LOAD),
        block(0x1000 + 4 * MIB, 2 * MIB, "inactive", []),
        block(0x1000 + 6 * MIB, 2 * MIB, "active_allocated", FORWARD),
        block(0x1000 + 8 * MIB, 1 * MIB, "inactive", []),
        block(0x1000 + 9 * MIB, 1 * MIB, "active_pending_free", FORWARD),
    ]
    history = [
        entry("free_completed", 0x1000 + 4 * MIB, 1 * MIB, 0),  # allocated before the history begins
        entry("segment_alloc", 0x1000, 10 * MIB, 5),
        entry("alloc", 0x1000 + 4 * MIB, 2 * MIB, 10, FORWARD),
        entry("alloc", 0x1000 + 6 * MIB, 2 * MIB, 20, FORWARD),
        entry("alloc", 0x1000 + 9 * MIB, 1 * MIB, 30, FORWARD),
        entry("free_requested", 0x1000 + 4 * MIB, 2 * MIB, 40),
        entry("free_completed", 0x1000 + 4 * MIB, 2 * MIB, 41),
        entry("oom", 0, 90 * MIB, 50, FORWARD, device_free=MIB),
        entry("snapshot", 0, 0, 60),
    ]
    segment = {"device": 1, "address": 0x1000, "total_size": 10 * MIB, "stream": 0, "segment_type": "large", "blocks": blocks}
    return {"segments": [segment], "device_traces": [[], history], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""}}


def pickled(protocol=4):
    return pickle.dumps(snapshot(), protocol=protocol)


def as_json():
    return json.dumps(snapshot()).encode()


if __name__ == "__main__":
    open(sys.argv[1], "wb").write(pickled())
