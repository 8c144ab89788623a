# SPDX-License-Identifier: Apache-2.0
import contextlib
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class BatchDescriptor:
    num_tokens: int
    num_reqs: Optional[int] = None
    uniform: bool = False
    has_lora: bool = False
    num_active_loras: int = 0


@dataclass
class ForwardContext:
    cudagraph_runtime_mode: Any
    batch_descriptor: Optional[BatchDescriptor] = None


_context = None


def is_forward_context_available():
    return _context is not None


def get_forward_context():
    assert _context is not None, "Forward context is not set."
    return _context


@contextlib.contextmanager
def set_forward_context(mode, descriptor):
    global _context
    _context = ForwardContext(mode, descriptor)
    try:
        yield
    finally:
        _context = None
