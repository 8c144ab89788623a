# SPDX-License-Identifier: Apache-2.0
"""A test double of a server: requests go through the stand-ins of vLLM's engine that are on PYTHONPATH.

Prints what the hooks should have seen, as the engine itself counted it: one JSON object.
"""

import json
import sys

import engine
import vllm  # noqa: F401: the package comes first, as in any program
from vllm.v1.core.block_pool import BlockPool
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


def run(scheduler, runner, seen):
    while scheduler.requests:
        output = scheduler.schedule()
        seen["batches"].append(dict(output.num_scheduled_tokens))
        result = runner.execute_model(output)
        if hasattr(runner, "sample_tokens"):
            result = runner.sample_tokens(None)
        scheduler.update_from_output(output, result)


def serve():
    """Four requests in a cache for about two; one is aborted before it is scheduled."""
    seen = {"batches": [], "evicted": 0, "preempted": 0}
    pool = BlockPool(10)
    scheduler = Scheduler(pool)
    evict, preempt = pool._maybe_evict_cached_block, scheduler.preempt

    def counted_evict(block):
        result = evict(block)
        seen["evicted"] += result
        return result

    def counted_preempt(request):
        seen["preempted"] += 1
        preempt(request)

    pool._maybe_evict_cached_block = counted_evict
    scheduler.preempt = counted_preempt
    for number, (prompt, tokens) in enumerate([(8, 12), (8, 12), (8, 6), (30, 1)]):
        scheduler.add_request(engine.Request(f"request-{number}", prompt, tokens))
    scheduler.add_request(engine.Request("aborted", 4, 4))
    scheduler.finish_requests("aborted", engine.RequestStatus.FINISHED_ABORTED)
    run(scheduler, GPUModelRunner(lambda _: sum(range(20000))), seen)
    return seen


if __name__ == "__main__":
    json.dump(serve(), sys.stdout)
