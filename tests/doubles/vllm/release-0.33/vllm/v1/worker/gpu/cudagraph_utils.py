# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import Any, Optional

from engine import CUDAGraph


@dataclass(frozen=True)
class BatchExecutionDescriptor:
    cg_mode: Any
    num_tokens: int
    num_reqs: Optional[int]
    uniform_token_count: Optional[int] = None


class CudaGraphManager:
    def __init__(self):
        self.graphs = {}

    def capture(self, create_forward_fn, progress_bar_desc="Capturing CUDA graphs"):
        for desc in create_forward_fn():
            self.graphs[desc] = CUDAGraph()

    def run_fullgraph(self, desc):
        self.graphs[desc].replay()
