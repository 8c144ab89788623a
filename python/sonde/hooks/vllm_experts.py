# SPDX-License-Identifier: Apache-2.0
"""Which experts vLLM's mixture-of-experts layers choose, counted on the device that chose them.

Each layer has counters there, which torch adds to in the stream of the model, with no answer to the host. About once
a second they are copied into pinned memory, and read after an event says that the copy has ended: nothing waits. One
layer is begun and one is told in each forward pass. Counters only grow; what is told are differences.

A CUDA graph that is captured would hold the counting, too, so that layers are not counted while one is: its replays
are not counted, and a mark says so.
"""

import atexit
import re
import sys
import threading
import time
from functools import wraps
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .. import _core
from .registry import Function
from .torch import is_compiling
from .wrap import around

DOMAIN = "vllm"
INTERVAL_NS = 1_000_000_000
WEIGHT_BINS = 10
MAX_PAIRED_EXPERTS = 512  # counters of pairs take 8 bytes for each two experts of a layer
MAX_PAIRS = 2048  # the most frequent ones, that are told at a time
FIELDS = 14  # of one mark, beside those that say what it is of


class _Current(threading.local):
    name: Optional[str] = None  # of the layer that is run
    is_routing = False  # in a router, whose class may call that of its base


_current = _Current()


def _number_of(name: str, otherwise: int) -> int:
    """The layer's number in the model: "model.layers.3.mlp.experts" is 3."""
    match = re.search(r"(?:^|\.)(?:layers|layer|h|blocks)\.(\d+)(?:\.|$)", name) or re.search(r"(?:^|\.)(\d+)\.", name)
    return int(match.group(1)) if match else otherwise


def _chunks(items: List[Tuple[str, int]]) -> Iterator[Dict[str, int]]:
    for first in range(0, len(items), FIELDS):
        yield dict(items[first:first + FIELDS])


class _Reading:
    """Counters on their way to the host."""

    def __init__(self, torch: Any, counters: Any, into: Optional[Any]) -> None:
        self.event: Optional[Any] = None
        self.values = counters
        if counters.device.type == "cpu":
            return
        self.values = into if into is not None else torch.empty(counters.shape, dtype=counters.dtype, pin_memory=True)
        self.values.copy_(counters, non_blocking=True)
        self.event = torch.cuda.Event()
        self.event.record()

    def is_done(self) -> bool:
        """Asks, and does not wait."""
        return self.event is None or bool(self.event.query())


class Layer:
    """The counters of one layer. The first ones are those of experts, then ids that are none, then weights by tenth."""

    def __init__(self, torch: Any, name: str, number: int, experts: int, top_k: int, device: Any) -> None:
        self._torch = torch
        self.name, self.number, self.experts, self.top_k = name, number, experts, top_k
        self.window = _core.window()
        self.calls = self.tokens = 0  # not told yet
        self._counts = torch.zeros(experts + 1 + WEIGHT_BINS, dtype=torch.int64, device=device)
        self._pairs = self._pairs_before = None
        if top_k > 1 and experts <= MAX_PAIRED_EXPERTS:
            self._pairs = torch.zeros((experts + 1) ** 2, dtype=torch.int32, device=device)
            self._pairs_before = torch.zeros_like(self._pairs)
        self._one = torch.ones(1, dtype=torch.int64, device=device)
        self._one_pair = self._one.to(torch.int32)
        self._told = [0] * self._counts.numel()
        self._pinned: Optional[Any] = None
        self._reading: Optional[_Reading] = None
        self._being_read = (0, 0)  # calls and tokens
        self._read_ns = time.monotonic_ns()

    def add(self, weights: Any, ids: Any) -> None:
        """Counts one call: the choices of each token in a row."""
        torch = self._torch
        if self.window != _core.window():
            self._begin_window()
        ids = ids.reshape(-1, ids.shape[-1]).to(torch.int64)
        ids = torch.where((ids >= 0) & (ids < self.experts), ids, torch.full_like(ids, self.experts))
        flat = ids.reshape(-1)
        self._counts.scatter_add_(0, flat, self._one.expand(flat.numel()))
        bins = (weights.reshape(-1) * WEIGHT_BINS).to(torch.int64).clamp_(0, WEIGHT_BINS - 1).add_(self.experts + 1)
        self._counts.scatter_add_(0, bins, self._one.expand(bins.numel()))
        if self._pairs is not None:
            self._add_pairs(ids)
        self.calls += 1
        self.tokens += ids.shape[0]

    def _add_pairs(self, ids: Any) -> None:
        torch = self._torch
        for first in range(ids.shape[1] - 1):
            one, others = ids[:, first:first + 1], ids[:, first + 1:]
            cells = (torch.minimum(one, others) * (self.experts + 1) + torch.maximum(one, others)).reshape(-1)
            self._pairs.scatter_add_(0, cells, self._one_pair.expand(cells.numel()))

    def _begin_window(self) -> None:
        """What was not read of the last window is lost: the counters go on from there."""
        self.tell_lost()
        self.window = _core.window()
        self._counts.zero_()
        self._told = [0] * len(self._told)
        if self._pairs is not None:
            self._pairs.zero_()
            self._pairs_before.zero_()

    def tell_lost(self) -> None:
        """Says that calls were counted, and cannot be told."""
        calls = self.calls + self._being_read[0]
        self.calls = self.tokens = 0
        self._reading = None
        self._being_read = (0, 0)
        if calls:
            _core.mark("moe.lost", DOMAIN, {"layer": self.number, "calls": calls})

    def is_on_cpu(self) -> bool:
        """Can be read at any time."""
        return bool(self._counts.device.type == "cpu")

    def is_due(self, now_ns: int) -> bool:
        """Has something to tell, for long enough."""
        return self._reading is None and bool(self.calls) and now_ns - self._read_ns >= INTERVAL_NS

    def begin_reading(self) -> None:
        """Puts the copy behind the work of the stream."""
        parts = [self._counts]
        if self._pairs is not None:
            pairs = self._pairs.clone()
            frequent = (pairs - self._pairs_before).topk(min(MAX_PAIRS + 1, pairs.numel()))
            self._pairs_before = pairs
            parts += [frequent.values.to(self._torch.int64), frequent.indices]
        self._reading = _Reading(self._torch, self._torch.cat(parts), self._pinned)
        self._pinned = self._reading.values if self._reading.event is not None else None
        self._being_read, self.calls, self.tokens = (self.calls, self.tokens), 0, 0
        self._read_ns = time.monotonic_ns()

    def tell_if_read(self) -> bool:
        """False where there is nothing to tell yet."""
        if self._reading is None or not self._reading.is_done():
            return False
        values = self._reading.values.tolist()
        count = len(self._told)
        counts = [new - old for new, old in zip(values, self._told)]
        self._told = values[:count]
        rest = len(values[count:]) // 2
        self._reading = None
        self._tell(counts, values[count:count + rest], values[count + rest:])
        self._being_read = (0, 0)
        return True

    def _tell(self, counts: List[int], pair_counts: List[int], cells: List[int]) -> None:
        layer = {"layer": self.number}
        calls, tokens = self._being_read
        left_out = self._pairs is None and self.top_k > 1
        left_out = left_out or (len(pair_counts) > MAX_PAIRS and pair_counts[MAX_PAIRS] > 0)
        _core.mark("moe.routed", DOMAIN, {
            **layer, "name": self.name, "experts": self.experts, "top_k": self.top_k, "calls": calls, "tokens": tokens,
            "outside": counts[self.experts], "pairs_left_out": left_out})
        for chunk in _chunks([(str(i), n) for i, n in enumerate(counts[:self.experts]) if n]):
            _core.mark("moe.experts", DOMAIN, {**layer, **chunk})
        bins = [(str(i), n) for i, n in enumerate(counts[self.experts + 1:]) if n]
        for chunk in _chunks(bins):
            _core.mark("moe.weights", DOMAIN, {**layer, **chunk})
        by_expert: Dict[int, List[Tuple[str, int]]] = {}
        for number, cell in zip(pair_counts[:MAX_PAIRS], cells):
            one, other = divmod(cell, self.experts + 1)
            if number > 0 and other < self.experts:
                by_expert.setdefault(one, []).append((str(other), number))
        for one, others in sorted(by_expert.items()):
            for chunk in _chunks(others):
                _core.mark("moe.pairs", DOMAIN, {**layer, "expert": one, **chunk})


_layers: Dict[Any, Layer] = {}
_captured: Dict[Any, int] = {}  # layers of which a capture was told, and in which window
_lock = threading.Lock()  # microbatches run in threads


def _is_capturing(torch: Any, tensor: Any) -> bool:
    return tensor.is_cuda and bool(torch.cuda.is_current_stream_capturing())


def _count(result: Any, experts: int, router: Any) -> None:
    """Takes what select_experts returned: weights, ids and in some releases more."""
    torch = sys.modules["torch"]
    weights, ids = result[0], result[1]
    name = _current.name
    key = name if name is not None else id(router)
    with _lock:
        number = _number_of(name or "", len(_layers))
        if _is_capturing(torch, ids):
            if _captured.get(key) != _core.window():
                _captured[key] = _core.window()
                _core.mark("moe.captured", DOMAIN, {"layer": number})
            return
        layer = _layers.get(key)
        if layer is None or layer.experts != experts or layer.top_k != ids.shape[-1]:
            layer = _layers[key] = Layer(torch, name or "layer %d" % number, number, experts, ids.shape[-1], ids.device)
        layer.add(weights, ids)


def read() -> None:
    """After a forward pass: begins to read one layer, and tells of one that was read."""
    now = time.monotonic_ns()
    with _lock:
        for one in _layers.values():
            if one.window == _core.window() and one.is_due(now):
                one.begin_reading()
                break
        for one in _layers.values():
            if one.window == _core.window() and one.tell_if_read():
                break


def _finish() -> None:
    """At the program's end: what is at hand, and what is not."""
    if not _core.is_open():
        return
    with _lock:
        for one in _layers.values():
            if one.window != _core.window():
                continue
            one.tell_if_read()
            if one.calls and one.is_on_cpu():
                one.begin_reading()
                one.tell_if_read()
            one.tell_lost()


atexit.register(_finish)


# ---- hooks ----


def _physical_experts(load: Any, otherwise: int) -> int:
    """With the load balancer on, ids are those of copies of experts, of which its statistics have one number each."""
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
    """Where torch.compile traces the call, on platforms without custom operators, the hook is no part of its graph."""

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
