# SPDX-License-Identifier: Apache-2.0
"""A test double of a model runner: CUDA graphs of the stand-in of vLLM 0.33 that is on PYTHONPATH."""

import sys
from types import SimpleNamespace

import vllm  # noqa: F401
from vllm.compilation.cuda_graph import CUDAGraphMode, CUDAGraphWrapper
from vllm.forward_context import BatchDescriptor, set_forward_context
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, CudaGraphManager

# Of PyTorch's allocator: a captured graph takes 2 MiB.
reserved = [0]
sys.modules["torch"] = SimpleNamespace(
    cuda=SimpleNamespace(is_initialized=lambda: True, memory_reserved=lambda: reserved[0]))


def model(number):
    reserved[0] += 2 << 20
    return PIECES[0](number)


PIECES = [CUDAGraphWrapper(lambda number: number, None, CUDAGraphMode.PIECEWISE) for _ in range(3)]
FULL = CUDAGraphWrapper(model, None, CUDAGraphMode.FULL)


def forward(mode, descriptor):
    with set_forward_context(mode, descriptor):
        if mode is CUDAGraphMode.FULL:
            return FULL(7)
        return [piece(7) for piece in PIECES]


small, large = BatchDescriptor(8), BatchDescriptor(64, num_reqs=4, uniform=True)
for _ in range(5):  # one capture, four replays, in three pieces
    assert forward(CUDAGraphMode.PIECEWISE, small) == [7, 7, 7]
for _ in range(3):  # one capture, two replays
    assert forward(CUDAGraphMode.FULL, large) == 7
for _ in range(10):  # a mode that is not that of any wrapper, with entries that have graphs
    assert forward(CUDAGraphMode.NONE, small) == [7, 7, 7]
assert PIECES[0](7) == 7  # outside of a forward pass


def fail(number):
    raise KeyError(number)


PIECES[1].runnable = fail
try:
    forward(CUDAGraphMode.PIECEWISE, BatchDescriptor(16))
except KeyError as error:
    assert error.args == (7,) and error.__context__ is None
else:
    raise AssertionError("the exception was swallowed")
assert [piece.concrete_cudagraph_entries[small].cudagraph.replays for piece in PIECES] == [4, 4, 4]

manager = CudaGraphManager()
descriptors = [BatchExecutionDescriptor(CUDAGraphMode.FULL, tokens, tokens) for tokens in (1, 2)]
manager.capture(lambda: descriptors)
for _ in range(3):
    manager.run_fullgraph(descriptors[0])
