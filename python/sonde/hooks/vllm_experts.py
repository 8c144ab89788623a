# SPDX-License-Identifier: Apache-2.0
"""Hooks that count which experts vLLM's mixture-of-experts layers choose, as sonde._experts does."""

import re
import threading
from functools import wraps
from typing import Any, Callable, Optional, Tuple

from .. import _experts
from .registry import Function
from .torch import is_compiling
from .wrap import around

DOMAIN = "vllm"


class _Current(threading.local):
    name: Optional[str] = None  # of the layer that is run
    is_routing = False  # in a router, whose class may call that of its base


_current = _Current()


def _number_of(name: Optional[str]) -> Optional[int]:
    """The layer's number in the model: "model.layers.3.mlp.experts" is 3."""
    name = name or ""
    match = re.search(r"(?:^|\.)(?:layers|layer|h|blocks)\.(\d+)(?:\.|$)", name) or re.search(r"(?:^|\.)(\d+)\.", name)
    return int(match.group(1)) if match else None


def _count(result: Any, experts: int, router: Any) -> None:
    """Takes what select_experts returned: weights, ids and in some releases more."""
    name = _current.name
    key = name if name is not None else id(router)
    _experts.count(DOMAIN, key, name or "", _number_of(name), experts, result[0], result[1])


read = _experts.read  # after a forward pass


# ---- hooks ----


def _physical_experts(load: Any, otherwise: int) -> int:
    """With the load balancer, ids are those of copies of experts; its statistics have one number for each copy."""
    return int(load.shape[-1]) if load is not None else otherwise


def _begin_select(*args: Any, **kwargs: Any) -> int:
    logits = kwargs["router_logits"] if "router_logits" in kwargs else args[1]
    return _physical_experts(kwargs.get("expert_load_view"), int(logits.shape[-1]))


def _selected(experts: Optional[int], result: Any, returned: bool) -> None:
    if experts is not None and returned:
        _count(result, experts, None)


def _begin_route(router: Any, *args: Any, **kwargs: Any) -> Optional[Tuple[Any, int]]:
    if _current.is_routing:
        return None
    experts = getattr(router, "global_num_experts", None)
    if experts is None:
        logits = kwargs["router_logits"] if "router_logits" in kwargs else args[1]
        experts = int(logits.shape[-1])
    load = getattr(getattr(router, "eplb_state", None), "expert_load_view", None)
    state = router, _physical_experts(load, experts)
    _current.is_routing = True
    return state


def _routed(state: Any, result: Any, returned: bool) -> None:
    if state is None:
        return
    _current.is_routing = False
    if returned:
        router, experts = state
        _count(result, experts, router)


def _begin_layer(module: Any, *_args: Any, **_kwargs: Any) -> Tuple[Optional[str]]:
    before, _current.name = _current.name, getattr(module, "layer_name", None)
    return (before,)


def _end_layer(state: Any, _result: Any, _returned: bool) -> None:
    _current.name = state[0] if state else None


def _untraced(make: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """If torch.compile traces the call, on platforms without custom operators, the hook is not part of its graph."""

    def make_untraced(original: Function) -> Function:
        recorded = make(original)

        @wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            return recorded(*args, **kwargs)

        return wrapper

    return make_untraced


select_experts = _untraced(around(_begin_select, _selected))
route = _untraced(around(_begin_route, _routed))
layer = _untraced(around(_begin_layer, _end_layer))
