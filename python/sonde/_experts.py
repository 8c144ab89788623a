# SPDX-License-Identifier: Apache-2.0
"""Which experts the routers of mixture-of-experts layers choose, counted on the device that chose them.

Each layer has counters there, which torch adds to in the stream of the model, with no answer to the host. About once
a second they are copied into pinned memory, and read after an event says that the copy has ended: nothing waits. Each
forward pass begins one layer and reports one. Counters only grow; differences are reported.

A CUDA graph that is captured would hold the counting, too, so that layers are not counted while one is: its replays
are not counted, and a mark says so.
"""

import atexit
import math
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple, TypeVar

from . import _core

_Number = TypeVar("_Number", int, float)

INTERVAL_NS = 1_000_000_000
WEIGHT_BINS = 10
MAX_PAIRED_EXPERTS = 512  # counters of pairs take 8 bytes for each two experts of a layer
MAX_PAIRS = 2048  # reported at a time: the most frequent ones
FIELDS = 14  # of one mark, beside those that say what it is of
PARTS = 1 << 24  # of a probability, and of a bit of entropy: sums of whole numbers are exact


def _chunks(items: List[Tuple[str, _Number]]) -> Iterator[Dict[str, _Number]]:
    for first in range(0, len(items), FIELDS):
        yield dict(items[first:first + FIELDS])


class Reading:
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
    """The counters of one layer.

    Those of experts, of ids that are none, of weights by tenth; then, in PARTS, the sums of each expert's probability and
    of the entropy of a token's probabilities, and how many tokens that is of.
    """

    def __init__(self, torch: Any, domain: str, name: str, number: int, experts: int, top_k: int, device: Any) -> None:
        self._torch, self._domain = torch, domain
        self.name, self.number, self.experts, self.top_k = name, number, experts, top_k
        self.window = _core.window()
        self.calls = self.tokens = 0  # not recorded yet
        self._counts = torch.zeros(2 * experts + 3 + WEIGHT_BINS, dtype=torch.int64, device=device)
        self._pairs: Any = None
        self._pairs_before: Any = None
        if top_k > 1 and experts <= MAX_PAIRED_EXPERTS:
            self._pairs = torch.zeros((experts + 1) ** 2, dtype=torch.int32, device=device)
            self._pairs_before = torch.zeros_like(self._pairs)
        self._one = torch.ones(1, dtype=torch.int64, device=device)
        self._one_pair = self._one.to(torch.int32)
        self._told = [0] * self._counts.numel()
        self._pinned: Optional[Any] = None
        self._reading: Optional[Reading] = None
        self._being_read = (0, 0)  # calls and tokens
        self._read_ns = time.monotonic_ns()

    def add(self, weights: Any, ids: Any, logits: Any) -> None:
        """Counts one call: the choices of each token in a row; what the router gave each expert, or None."""
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
        if logits is not None:
            self._add_probabilities(logits.detach().reshape(-1, self.experts))
        self.calls += 1
        self.tokens += ids.shape[0]

    def _add_pairs(self, ids: Any) -> None:
        torch = self._torch
        for first in range(ids.shape[1] - 1):
            one, others = ids[:, first:first + 1], ids[:, first + 1:]
            cells = (torch.minimum(one, others) * (self.experts + 1) + torch.maximum(one, others)).reshape(-1)
            self._pairs.scatter_add_(0, cells, self._one_pair.expand(cells.numel()))

    def _add_probabilities(self, logits: Any) -> None:
        """Some routers return probabilities in place of logits: rows of what adds up to 1 are taken as they are."""
        torch = self._torch
        logits = logits.to(torch.float32)
        are_shares = ((logits >= 0).all(-1) & ((logits.sum(-1) - 1).abs() < 1e-3)).unsqueeze(-1)
        shares = torch.nan_to_num(torch.where(are_shares, logits, torch.softmax(logits, -1)))
        entropy = torch.special.entr(shares).sum() / math.log(2)
        sums = torch.cat([shares.sum(0), entropy.reshape(1)]).mul(PARTS).round().to(torch.int64)
        first = self.experts + 1 + WEIGHT_BINS
        self._counts[first:-1].add_(sums)
        self._counts[-1:].add_(shares.shape[0])

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
        """Says that calls were counted, and cannot be recorded."""
        calls = self.calls + self._being_read[0]
        self.calls = self.tokens = 0
        self._reading = None
        self._being_read = (0, 0)
        if calls:
            _core.mark("moe.lost", self._domain, {"layer": self.number, "calls": calls})

    def is_on_cpu(self) -> bool:
        """Can be read at any time."""
        return bool(self._counts.device.type == "cpu")

    def is_counting(self) -> bool:
        """Has something to tell, now or when it has been read."""
        return bool(self.calls) or self._reading is not None

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
        self._reading = Reading(self._torch, self._torch.cat(parts), self._pinned)
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
        sums, routed = counts[self.experts + 1 + WEIGHT_BINS:-1], counts[-1]
        router = {"routed_tokens": routed, "router_entropy_bits": sums[-1] / PARTS} if routed else {}
        _core.mark("moe.routed", self._domain, {
            **layer, "name": self.name, "experts": self.experts, "top_k": self.top_k, "calls": calls, "tokens": tokens,
            "outside": counts[self.experts], "pairs_left_out": left_out, **router})
        for chunk in _chunks([(str(i), n) for i, n in enumerate(counts[:self.experts]) if n]):
            _core.mark("moe.experts", self._domain, {**layer, **chunk})
        bins = counts[self.experts + 1:self.experts + 1 + WEIGHT_BINS]
        for chunk in _chunks([(str(i), n) for i, n in enumerate(bins) if n]):
            _core.mark("moe.weights", self._domain, {**layer, **chunk})
        for shares in _chunks([(str(i), n / PARTS) for i, n in enumerate(sums[:-1]) if n]):
            _core.mark("moe.probabilities", self._domain, {**layer, **shares})
        by_expert: Dict[int, List[Tuple[str, int]]] = {}
        for number, cell in zip(pair_counts[:MAX_PAIRS], cells):
            one, other = divmod(cell, self.experts + 1)
            if number > 0 and other < self.experts:
                by_expert.setdefault(one, []).append((str(other), number))
        for one, others in sorted(by_expert.items()):
            for chunk in _chunks(others):
                _core.mark("moe.pairs", self._domain, {**layer, "expert": one, **chunk})


_layers: Dict[Any, Layer] = {}
_captured: Dict[Any, int] = {}  # layers of which a capture was recorded, and in which window
_lock = threading.Lock()  # microbatches run in threads


def _is_capturing(torch: Any, tensor: Any) -> bool:
    return tensor.is_cuda and bool(torch.cuda.is_current_stream_capturing())


def count(domain: str, key: Any, name: str, number: Optional[int], experts: int, weights: Any, ids: Any,
          logits: Any = None) -> None:
    """Counts a call of a layer: of each token, the experts in a row and how much each weighs.

    `number` None: one after the layers that are known. `logits`: what the router gave each expert, of each token.
    """
    torch = sys.modules["torch"]
    with _lock:
        number = len(_layers) if number is None else number
        if _is_capturing(torch, ids):
            if _captured.get(key) != _core.window():
                _captured[key] = _core.window()
                _core.mark("moe.captured", domain, {"layer": number})
            return
        layer = _layers.get(key)
        if layer is None or layer.experts != experts or layer.top_k != ids.shape[-1]:
            layer = Layer(torch, domain, name or "layer %d" % number, number, experts, ids.shape[-1], ids.device)
            _layers[key] = layer
        layer.add(weights, ids, logits)


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


def _record(layer: Layer) -> None:
    layer.tell_if_read()
    if layer.calls and layer.is_on_cpu():
        layer.begin_reading()
        layer.tell_if_read()


def flush(owner: Any) -> None:
    """Records what is at hand of the layers whose key begins with `owner`; those with nothing left are forgotten."""
    with _lock:
        for key in [key for key in _layers if isinstance(key, tuple) and key[0] is owner]:
            if _core.is_open() and _layers[key].window == _core.window():
                _record(_layers[key])
            if not _layers[key].is_counting():
                del _layers[key]


def _finish() -> None:
    """At the program's end: what is at hand, and what is not."""
    if not _core.is_open():
        return
    with _lock:
        for one in _layers.values():
            if one.window == _core.window():
                _record(one)
                one.tell_lost()


atexit.register(_finish)
