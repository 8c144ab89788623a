# SPDX-License-Identifier: Apache-2.0
"""Hooks for vLLM 0.9 and later: the table. docs/vllm.md says what each writes into a capture.

tests/doubles/vllm/signatures.json tells which release has which of these functions, and with what
arguments; tools/vllm-signatures makes it from wheels.
"""

from typing import Callable, Optional, Tuple

from . import vllm_cache, vllm_experts, vllm_forward, vllm_graphs, vllm_requests
from .registry import Function, Hook


def _hook(module: str, attribute: str, make: Callable[[Function], Function], fallback: Optional[Hook] = None,
          optional: bool = False, needs: Tuple[str, ...] = ()) -> Hook:
    return Hook("vllm", module, attribute, make, needs=needs, fallback=fallback, optional=optional)


_RUNNER = "vllm.v1.worker.gpu_model_runner"
_SECOND_RUNNER = "vllm.v1.worker.gpu.model_runner"  # the one that replaces it since 0.13, both are shipped
_SCHEDULER = "vllm.v1.core.sched.scheduler"
_POOL = "vllm.v1.core.block_pool"
_ROUTER = "vllm.model_executor.layers.fused_moe.router.fused_moe_router"
_BASE_ROUTER = "vllm.model_executor.layers.fused_moe.router.base_router"

HOOKS: Tuple[Hook, ...] = (
    _hook(_RUNNER, "GPUModelRunner.execute_model", vllm_forward.execute_model),
    _hook(_RUNNER, "GPUModelRunner.sample_tokens", vllm_forward.sample_tokens, optional=True),
    _hook(_RUNNER, "GPUModelRunner._model_forward", vllm_forward.decoder, optional=True),
    _hook(_RUNNER, "GPUModelRunner._execute_mm_encoder", vllm_forward.encoder),
    _hook(_SECOND_RUNNER, "GPUModelRunner.execute_model", vllm_forward.execute_model),
    _hook(_SECOND_RUNNER, "GPUModelRunner.sample_tokens", vllm_forward.sample_tokens, optional=True),
    _hook("vllm.v1.worker.gpu.mm.encoder_runner", "EncoderRunner.execute_mm_encoder", vllm_forward.encoder),
    _hook(_SCHEDULER, "Scheduler.schedule", vllm_requests.schedule),
    _hook(_SCHEDULER, "Scheduler.update_from_output", vllm_requests.update_from_output),
    _hook(_SCHEDULER, "Scheduler.add_request", vllm_requests.add_request),
    _hook(_SCHEDULER, "Scheduler._preempt_request", vllm_requests.preempt_request, optional=True),
    _hook(_SCHEDULER, "Scheduler._free_request", vllm_requests.free_request),
    _hook(_POOL, "BlockPool.get_new_blocks", vllm_cache.get_new_blocks),
    _hook(_POOL, "BlockPool.free_blocks", vllm_cache.free_blocks, needs=("BlockPool.get_num_free_blocks",)),
    _hook(_POOL, "BlockPool.touch", vllm_cache.touch),
    _hook(_POOL, "BlockPool._maybe_evict_cached_block", vllm_cache.evict),
    _hook("vllm.v1.core.kv_cache_metrics", "KVCacheMetricsCollector.drain_events", vllm_cache.drain_events),
    _hook("vllm.compilation.cuda_graph", "CUDAGraphWrapper.__call__", vllm_graphs.wrapper_call),
    _hook("vllm.compilation.cuda_piecewise_backend", "CUDAPiecewiseBackend.__call__", vllm_graphs.piecewise_call,
          optional=True),
    _hook("vllm.v1.worker.gpu.cudagraph_utils", "CudaGraphManager.capture", vllm_graphs.manager_capture, optional=True),
    _hook("vllm.v1.worker.gpu.cudagraph_utils", "CudaGraphManager.run_fullgraph", vllm_graphs.manager_replay,
          optional=True),
    _hook("vllm.model_executor.layers.fused_moe.layer", "FusedMoE.select_experts", vllm_experts.select_experts,
          optional=True),
    _hook("vllm.model_executor.layers.fused_moe.layer", "FusedMoE.forward_impl", vllm_experts.layer, optional=True),
    _hook("vllm.model_executor.layers.fused_moe.runner.moe_runner", "MoERunner._forward_impl", vllm_experts.layer,
          optional=True),
    _hook(_BASE_ROUTER, "BaseRouter.select_experts", vllm_experts.route, optional=True),
    _hook(_ROUTER, "FusedMoERouter.select_experts", vllm_experts.route, optional=True),
)
