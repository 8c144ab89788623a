# SPDX-License-Identifier: Apache-2.0
"""vLLM's CUDA graphs: captures and replays by batch descriptor.

Whether a call captured or replayed is decided from its entry: it has a graph only after the call, or before it, too.
"""

import sys
import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Optional
from weakref import ref

from .. import _core
from .wrap import around

DOMAIN = "vllm"


class _Call(NamedTuple):
    graph: Callable[[], Any]  # that of the entry, None where it has none
    had_graph: bool
    is_first: bool  # of its forward pass, which calls one wrapper for each piece of the model
    fields: Dict[str, Any]
    begin_ns: int
    reserved_bytes: Optional[int]


class _LastPass(threading.local):
    """The forward context that was seen last, as a weak reference if possible."""

    context: Callable[[], Any] = staticmethod(lambda: None)


_last_pass = _LastPass()


def _forward_context() -> Any:
    """None outside of a forward pass."""
    module = sys.modules.get("vllm.forward_context")
    is_available = getattr(module, "is_forward_context_available", None)
    if module is None or (is_available is not None and not is_available()):
        return None
    return module.get_forward_context()


def _is_first(context: Any) -> bool:
    is_first = _last_pass.context() is not context
    if is_first:
        _last_pass.context = ref(context)
    return is_first


def _reserved_bytes() -> Optional[int]:
    """The device memory that PyTorch's allocator holds: its own count, without a call to the device."""
    torch = sys.modules.get("torch")
    return torch.cuda.memory_reserved() if torch is not None and torch.cuda.is_initialized() else None


def _descriptor_fields(mode: Any, descriptor: Any) -> Dict[str, Any]:
    """The fields of a BatchDescriptor or a BatchExecutionDescriptor; releases differ in what they have."""
    uniform = getattr(descriptor, "uniform", getattr(descriptor, "uniform_decode", None))
    if uniform is None and hasattr(descriptor, "uniform_token_count"):
        uniform = descriptor.uniform_token_count is not None
    active_loras = getattr(descriptor, "num_active_loras", None)
    lora = getattr(descriptor, "has_lora", None if active_loras is None else active_loras > 0)
    fields = {
        "mode": getattr(mode, "name", str(mode)),
        "tokens": getattr(descriptor, "num_tokens", None),
        "requests": getattr(descriptor, "num_reqs", None),
        "uniform": uniform,
        "lora": lora,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _begin(graph: Callable[[], Any], is_first: bool, fields: Dict[str, Any]) -> _Call:
    return _Call(graph, graph() is not None, is_first, fields, time.monotonic_ns(), _reserved_bytes())


def _end(call: Optional[_Call], _result: Any, returned: bool) -> None:
    if call is None or not returned:
        return
    if call.had_graph:
        if call.is_first:
            _core.mark("graph.replay", DOMAIN, call.fields)
    elif call.graph() is not None:
        fields = dict(call.fields, first=call.is_first, duration_ns=time.monotonic_ns() - call.begin_ns)
        reserved_bytes = _reserved_bytes()
        if reserved_bytes is not None and call.reserved_bytes is not None:
            fields["memory_bytes"] = max(0, reserved_bytes - call.reserved_bytes)
        _core.mark("graph.capture", DOMAIN, fields)


def _begin_wrapper(wrapper: Any, *_args: Any, **_kwargs: Any) -> Optional[_Call]:
    """In another runtime mode than its own a wrapper calls the model: neither a capture nor a replay."""
    context = _forward_context()
    if context is None or context.cudagraph_runtime_mode != wrapper.runtime_mode:
        return None
    entries, descriptor = wrapper.concrete_cudagraph_entries, context.batch_descriptor

    def graph() -> Any:
        return getattr(entries.get(descriptor), "cudagraph", None)

    return _begin(graph, _is_first(context), _descriptor_fields(wrapper.runtime_mode, descriptor))


def _begin_piecewise(backend: Any, *args: Any) -> Optional[_Call]:
    """0.9 and 0.10: graphs by the number of tokens only, in pieces."""
    context = _forward_context()
    if context is None or getattr(context, "skip_cuda_graphs", False):
        return None
    tokens = args[backend.sym_shape_indices[0]]
    entry = backend.concrete_size_entries.get(tokens)
    if entry is None:
        return None
    return _begin(lambda: entry.cudagraph, _is_first(context), {"mode": "PIECEWISE", "tokens": int(tokens)})


def _begin_manager_capture(manager: Any, *_args: Any, **_kwargs: Any) -> Any:
    _core.range_push("graph.capture_all", DOMAIN)
    return manager, set(manager.graphs)


def _end_manager_capture(state: Any, _result: Any, _returned: bool) -> None:
    """The second runner captures its full graphs in one loop, so there is no duration for each."""
    _core.range_pop(DOMAIN)
    if state is None:
        return
    manager, before = state
    for descriptor in manager.graphs:
        if descriptor not in before:
            _core.mark("graph.capture", DOMAIN, dict(_descriptor_fields(descriptor.cg_mode, descriptor), first=True))


def _begin_manager_replay(_manager: Any, desc: Any) -> Dict[str, Any]:
    return _descriptor_fields(desc.cg_mode, desc)


def _end_manager_replay(fields: Any, _result: Any, returned: bool) -> None:
    if fields is not None and returned:
        _core.mark("graph.replay", DOMAIN, fields)


wrapper_call = around(_begin_wrapper, _end)
piecewise_call = around(_begin_piecewise, _end)
manager_capture = around(_begin_manager_capture, _end_manager_capture)
manager_replay = around(_begin_manager_replay, _end_manager_replay)
