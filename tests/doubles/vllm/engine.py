# SPDX-License-Identifier: Apache-2.0
"""A test double of vLLM's engine: enough of its scheduler, block pool and runners to see what the hooks tell.

The packages beside it have vLLM's names and signatures, of one release each; the behaviour is here. A model makes one
token per step; a block holds BLOCK_TOKENS tokens.
"""

import enum
import time
from types import SimpleNamespace

BLOCK_TOKENS = 4


class RequestStatus(enum.IntEnum):
    WAITING = enum.auto()
    RUNNING = enum.auto()
    PREEMPTED = enum.auto()
    FINISHED_STOPPED = enum.auto()
    FINISHED_LENGTH_CAPPED = enum.auto()
    FINISHED_ABORTED = enum.auto()


class FinishReason(enum.IntEnum):
    STOP = 0
    LENGTH = 1
    ABORT = 2

    def __str__(self):
        return self.name.lower()


REASONS = {
    RequestStatus.FINISHED_STOPPED: FinishReason.STOP,
    RequestStatus.FINISHED_LENGTH_CAPPED: FinishReason.LENGTH,
    RequestStatus.FINISHED_ABORTED: FinishReason.ABORT,
}


class Request:
    def __init__(self, request_id, prompt_tokens, max_tokens):
        self.request_id = request_id
        self.num_prompt_tokens = prompt_tokens
        self.prompt_token_ids = [0] * prompt_tokens
        self.max_tokens = max_tokens
        self.num_output_tokens = self.num_computed_tokens = 0
        self.arrival_time = time.time()
        self.status = RequestStatus.WAITING
        self.blocks = []

    def is_finished(self):
        return self.status > RequestStatus.PREEMPTED

    def get_finished_reason(self):
        return REASONS.get(self.status)


class KVCacheBlock:
    def __init__(self, block_id):
        self.block_id = block_id
        self.ref_cnt = 0
        self.block_hash = None
        self.is_null = False


class BlockPool:
    def __init__(self, num_gpu_blocks, metrics_collector=None):
        self.num_gpu_blocks = num_gpu_blocks
        self.metrics_collector = metrics_collector
        self.blocks = [KVCacheBlock(number) for number in range(num_gpu_blocks)]
        self.blocks[0].is_null = True
        self.free = self.blocks[1:]

    def get_num_free_blocks(self):
        return len(self.free)

    def get_new_blocks(self, num_blocks):
        if num_blocks > len(self.free):
            raise ValueError(f"Cannot get {num_blocks} free blocks from the pool")
        taken, self.free = self.free[:num_blocks], self.free[num_blocks:]
        for block in taken:
            self._maybe_evict_cached_block(block)
            block.ref_cnt += 1
        return taken

    def _maybe_evict_cached_block(self, block):
        was_cached = block.block_hash is not None
        block.block_hash = None
        return was_cached

    def touch(self, blocks):
        for block in blocks:
            if block.ref_cnt == 0:
                self.free.remove(block)
            block.ref_cnt += 1

    def free_blocks(self, ordered_blocks):
        for block in ordered_blocks:
            block.ref_cnt -= 1
            if block.ref_cnt == 0:
                self.free.append(block)


class Scheduler:
    """All prompts in one chunk, running requests first; the youngest is pre-empted when blocks run out."""

    def __init__(self, pool, max_num_running_reqs=4, max_num_scheduled_tokens=64):
        self.kv_cache_manager = SimpleNamespace(block_pool=pool)
        self.max_num_running_reqs = max_num_running_reqs
        self.max_num_scheduled_tokens = max_num_scheduled_tokens
        self.requests, self.running, self.waiting = {}, [], []

    def add_request(self, request):
        self.requests[request.request_id] = request
        self.waiting.append(request)

    def _grow(self, request, tokens):
        """Blocks for this many tokens more; False where there are none."""
        needed = -(-(request.num_computed_tokens + tokens) // BLOCK_TOKENS) - len(request.blocks)
        pool = self.kv_cache_manager.block_pool
        if needed > pool.get_num_free_blocks():
            return False
        if needed > 0:
            request.blocks += pool.get_new_blocks(needed)
        return True

    def _release(self, request):
        for block in request.blocks:
            block.block_hash = request.request_id
        self.kv_cache_manager.block_pool.free_blocks(reversed(request.blocks))
        request.blocks = []

    def preempt(self, request):
        self._release(request)
        request.status = RequestStatus.PREEMPTED
        request.num_computed_tokens = 0
        self.waiting.insert(0, request)

    def schedule_batch(self, preempt):
        scheduled, new, resumed, cached = {}, [], [], []
        preempted = False
        for request in list(self.running):
            if request not in self.running:
                continue
            while not self._grow(request, 1):
                preempted = True
                victim = self.running.pop()
                preempt(victim)
                if victim is request:
                    break
            else:
                scheduled[request.request_id] = 1
                cached.append(request)
        while self.waiting and not preempted and len(self.running) < self.max_num_running_reqs:
            request = self.waiting[0]
            tokens = request.num_prompt_tokens + request.num_output_tokens
            if sum(scheduled.values()) + tokens > self.max_num_scheduled_tokens or not self._grow(request, tokens):
                break
            self.waiting.pop(0)
            was_preempted = request.status is RequestStatus.PREEMPTED
            (resumed if was_preempted else new).append(request)
            request.status = RequestStatus.RUNNING
            self.running.append(request)
            scheduled[request.request_id] = tokens
        output = self.output(scheduled, new, cached + resumed, {request.request_id for request in resumed})
        for name, tokens in scheduled.items():
            self.requests[name].num_computed_tokens += tokens
        return output

    def output(self, scheduled, new, cached, resumed):
        return SimpleNamespace(
            scheduled_new_reqs=[SimpleNamespace(req_id=request.request_id, num_computed_tokens=0,
                                                prompt_token_ids=request.prompt_token_ids) for request in new],
            scheduled_cached_reqs=self.cached_data(cached, resumed),
            num_scheduled_tokens=scheduled,
            total_num_scheduled_tokens=sum(scheduled.values()),
        )

    def cached_data(self, cached, resumed):
        return SimpleNamespace(
            req_ids=[request.request_id for request in cached],
            resumed_req_ids=resumed,
            num_computed_tokens=[request.num_computed_tokens for request in cached],
            num_output_tokens=[request.num_output_tokens for request in cached],
        )

    def update_from_output(self, scheduler_output, model_runner_output):
        for name in scheduler_output.num_scheduled_tokens:
            request = self.requests[name]
            request.num_output_tokens += 1
            if request.num_output_tokens == request.max_tokens:
                self.finish(request, RequestStatus.FINISHED_LENGTH_CAPPED)
        return {}

    def finish_requests(self, request_ids, finished_status):
        for name in [request_ids] if isinstance(request_ids, str) else request_ids:
            self.finish(self.requests[name], finished_status)

    def finish(self, request, status):
        request.status = status
        for queue in self.running, self.waiting:
            if request in queue:
                queue.remove(request)
        self._free_request(request)

    def _free_request(self, request):
        self._release(request)
        del self.requests[request.request_id]


class CUDAGraph:
    """Replays count."""

    def __init__(self):
        self.replays = 0

    def replay(self):
        self.replays += 1
