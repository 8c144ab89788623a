# SPDX-License-Identifier: Apache-2.0
"""vLLM's KV cache: use, evictions, how long blocks lived.

Where vLLM samples lifetimes itself (--kv-cache-metrics) its samples are recorded. Else two times are kept for each block
of a pool, in arrays as long as the pool.
"""

import time
from array import array
from typing import Any, Dict, Iterable, Iterator, Tuple
from weakref import WeakKeyDictionary

from .. import _core
from .wrap import around

DOMAIN = "vllm"


class _Pool:
    """The known blocks of a pool, from the window's begin on."""

    def __init__(self, pool: Any) -> None:
        self.window = _core.window()
        self.allocated = self.freed = self.evicted = 0
        self.is_sampled = getattr(pool, "metrics_collector", None) is not None
        count = 0 if self.is_sampled else pool.num_gpu_blocks
        self.born_ns = array("Q", bytes(8 * count))  # 0: not known
        self.used_ns = array("Q", bytes(8 * count))

    def set_used(self, blocks: Iterable[Any], is_new: bool) -> None:
        """The blocks were allocated or hit just now."""
        if self.is_sampled:
            return
        now = time.monotonic_ns()
        for block in blocks:
            if is_new:
                self.born_ns[block.block_id] = now
            if self.born_ns[block.block_id]:
                self.used_ns[block.block_id] = now


_pools: "WeakKeyDictionary[Any, _Pool]" = WeakKeyDictionary()


def _known(pool: Any) -> _Pool:
    """Between windows, blocks may have changed their owners unseen."""
    known = _pools.get(pool)
    if known is None or known.window != _core.window():
        known = _pools[pool] = _Pool(pool)
    return known


def _begin(pool: Any, *_args: Any, **_kwargs: Any) -> Any:
    return pool


def _allocated(pool: Any, blocks: Any, returned: bool) -> None:
    if pool is not None and returned:
        known = _known(pool)
        known.allocated += len(blocks)
        known.set_used(blocks, True)


def _begin_free(pool: Any, *_args: Any, **_kwargs: Any) -> Tuple[Any, int]:
    return pool, pool.get_num_free_blocks()


def _freed(state: Any, _result: Any, returned: bool) -> None:
    """The argument may be an iterator, which only the original may read. Blocks that others use are not free yet."""
    if state is not None and returned:
        pool, free_before = state
        _known(pool).freed += max(0, pool.get_num_free_blocks() - free_before)


def _blocks_in(blocks: Any) -> Iterator[Any]:
    """Before 0.12, touch gets a list for each group of the cache."""
    for item in blocks:
        if hasattr(item, "block_id"):
            yield item
        else:
            yield from item


def _begin_touch(pool: Any, blocks: Any) -> Any:
    return (pool, blocks) if isinstance(blocks, (list, tuple)) else None


def _touched(state: Any, _result: Any, returned: bool) -> None:
    if state is not None and returned:
        _known(state[0]).set_used(_blocks_in(state[1]), False)


def _begin_evict(pool: Any, block: Any) -> Tuple[Any, int]:
    return pool, block.block_id


def _evicted(state: Any, result: Any, _returned: bool) -> None:
    """True is returned for blocks that were cached."""
    if state is None or not result:
        return
    pool, number = state
    known = _known(pool)
    known.evicted += 1
    if known.is_sampled:
        return
    fields: Dict[str, int] = {}
    if known.born_ns[number]:
        now = time.monotonic_ns()
        fields = {"lifetime_ns": now - known.born_ns[number], "idle_ns": now - known.used_ns[number]}
    _core.mark("kv.eviction", DOMAIN, fields or None)


def _drained(collector: Any, events: Any, returned: bool) -> None:
    if collector is None or not returned:
        return
    for event in events:
        _core.mark("kv.eviction", DOMAIN, {
            "lifetime_ns": int(event.lifetime_seconds * 1e9),
            "idle_ns": int(event.idle_seconds * 1e9),
            "sample_rate": float(collector.sample_rate),
        })


def tell_use(scheduler: Any) -> None:
    """Marks how much of the scheduler's pool is in use. Block 0 stands for none and is never free."""
    pool = scheduler.kv_cache_manager.block_pool
    known = _known(pool)
    total = pool.num_gpu_blocks - 1
    used = total - pool.get_num_free_blocks()
    _core.mark("kv", DOMAIN, {"used": used, "total": total, "allocated": known.allocated, "freed": known.freed,
                              "evicted": known.evicted})
    _core.counter("vllm.kv_cache_usage", 100.0 * used / total if total else 0.0)
    known.allocated = known.freed = known.evicted = 0


def tell_freed(scheduler: Any) -> None:
    """The same if blocks were freed since: requests that ended with the last batch belong to it."""
    if _known(scheduler.kv_cache_manager.block_pool).freed:
        tell_use(scheduler)


get_new_blocks = around(_begin, _allocated)
free_blocks = around(_begin_free, _freed)
touch = around(_begin_touch, _touched)
evict = around(_begin_evict, _evicted)
drain_events = around(_begin, _drained)

