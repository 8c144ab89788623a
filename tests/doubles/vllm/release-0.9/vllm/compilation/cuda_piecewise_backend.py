# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from engine import CUDAGraph
from vllm.forward_context import get_forward_context


class CUDAPiecewiseBackend:
    def __init__(self, sizes, runnable):
        self.sym_shape_indices = [0]
        self.runnable = runnable
        self.concrete_size_entries = {size: SimpleNamespace(cudagraph=None) for size in sizes}

    def __call__(self, *args):
        entry = self.concrete_size_entries.get(args[0])
        if entry is None or get_forward_context().skip_cuda_graphs:
            return self.runnable(*args)
        if entry.cudagraph is None:
            entry.output = self.runnable(*args)
            entry.cudagraph = CUDAGraph()
            return entry.output
        entry.cudagraph.replay()
        return entry.output
