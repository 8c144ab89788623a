# SPDX-License-Identifier: Apache-2.0
"""vLLM's model runners: forward passes by phase, sampling, encoders; execute_model is a step."""

from functools import wraps
from typing import Any, Dict, Optional, Tuple

from .. import _core
from . import vllm_experts
from .registry import Function
from .torch import is_compiling
from .wrap import around, ranged

DOMAIN = "vllm"
STEP = "vllm.execute_model"


def tokens_by_phase(output: Any, requests: Any = None) -> Tuple[int, int]:
    """Prefill and decode tokens of a SchedulerOutput.

    Its num_scheduled_tokens is a dict by request. A request is in its prefill while nothing was generated, and again
    after a pre-emption; 0.9 does not tell that of requests that run, so that their prompts are looked up in
    `requests`, the dict of the scheduler or the runner.
    """
    cached = output.scheduled_cached_reqs
    by_request: Dict[str, int] = output.num_scheduled_tokens
    total: int = output.total_num_scheduled_tokens
    prefill = sum(by_request.get(new.req_id, 0) for new in output.scheduled_new_reqs)
    generated = getattr(cached, "num_output_tokens", None)
    resumed = resumed_requests(cached)
    if generated is not None and not resumed and 0 not in generated:
        return prefill, total - prefill  # as in most steps, of hundreds of requests
    for index, name in enumerate(cached.req_ids):
        if generated is not None:
            is_prefill = generated[index] == 0
        else:
            is_prefill = cached.num_computed_tokens[index] < _prompt_tokens((requests or {}).get(name))
        if is_prefill or name in resumed:
            prefill += by_request.get(name, 0)
    return prefill, total - prefill


def resumed_requests(cached: Any) -> Any:
    """The ids of the requests that continue after a pre-emption. 0.9 has a flag for each request."""
    resumed = getattr(cached, "resumed_req_ids", None)
    if resumed is not None:
        return resumed
    return {name for name, flag in zip(cached.req_ids, cached.resumed_from_preemption) if flag}


def _prompt_tokens(request: Any) -> int:
    count = getattr(request, "num_prompt_tokens", None)
    if count is None:
        count = len(getattr(request, "prompt_token_ids", None) or ())
    return int(count)


def phase_of(prefill: int, decode: int) -> str:
    """What a batch does."""
    if prefill and decode:
        return "mixed"
    return "prefill" if prefill else "decode" if decode else "empty"


def _is_dummy(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """The second runner warms up through execute_model(…, dummy_run)."""
    return bool(kwargs.get("dummy_run", args[3] if len(args) > 3 else False))


def _forward_fields(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    output: Optional[Any] = kwargs["scheduler_output"] if "scheduler_output" in kwargs else args[1]
    prefill, decode = tokens_by_phase(output, getattr(args[0], "requests", None))
    return {
        "phase": "dummy" if _is_dummy(args, kwargs) else phase_of(prefill, decode),
        "requests": len(output.num_scheduled_tokens),
        "tokens": prefill + decode,
        "prefill_tokens": prefill,
        "decode_tokens": decode,
    }


def _begin_forward(*args: Any, **kwargs: Any) -> bool:
    _core.range_push("forward", DOMAIN, _forward_fields(*args, **kwargs))
    return True


def _end_forward(pushed: Any, _result: Any, _returned: bool) -> None:
    if pushed:
        _core.range_pop(DOMAIN)
    vllm_experts.read()


def execute_model(original: Function) -> Function:
    """Each call that is not a warm-up is a step, also while the gate is closed: steps open it."""
    recorded = around(_begin_forward, _end_forward)(original)

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _is_dummy(args, kwargs):
            _core.step(STEP)
        return recorded(*args, **kwargs)

    return wrapper


sample_tokens = ranged(DOMAIN, "sample")
decoder = ranged(DOMAIN, "decoder", unless=is_compiling)
encoder = ranged(DOMAIN, "encoder")
