# SPDX-License-Identifier: Apache-2.0
import enum

from engine import CUDAGraph
from vllm.forward_context import get_forward_context, is_forward_context_available


class CUDAGraphMode(enum.Enum):
    NONE = 0
    PIECEWISE = 1
    FULL = 2


class CUDAGraphEntry:
    def __init__(self, batch_descriptor):
        self.batch_descriptor = batch_descriptor
        self.cudagraph = None


class CUDAGraphWrapper:
    def __init__(self, runnable, vllm_config, runtime_mode, cudagraph_options=None):
        self.runnable = runnable
        self.runtime_mode = runtime_mode
        self.concrete_cudagraph_entries = {}

    def __call__(self, *args, **kwargs):
        if not is_forward_context_available():
            return self.runnable(*args, **kwargs)
        context = get_forward_context()
        if context.cudagraph_runtime_mode != self.runtime_mode:
            return self.runnable(*args, **kwargs)
        entry = self.concrete_cudagraph_entries.setdefault(
            context.batch_descriptor, CUDAGraphEntry(context.batch_descriptor))
        if entry.cudagraph is None:
            result = self.runnable(*args, **kwargs)
            entry.cudagraph = CUDAGraph()
            entry.output = result
            return result
        entry.cudagraph.replay()
        return entry.output
