# SPDX-License-Identifier: Apache-2.0
"""vLLM's scheduler: batches, and the life of requests. It runs in one thread of the engine's process."""

import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .. import _core
from . import vllm_cache
from .vllm_forward import DOMAIN, phase_of, resumed_requests, tokens_by_phase
from .wrap import around


class _Numbers:
    """Numbers replace the ids of requests: a process can have 131,071 names, but any number of numbers."""

    def __init__(self) -> None:
        self._last = 0
        self._window = 0
        self._of: Dict[str, int] = {}

    def fields(self, name: str) -> Dict[str, Any]:
        """The number and the id. Requests that end unseen between windows are dropped.

        Each mark has both: those of a warm-up are not kept, so that none may count on an earlier one.
        """
        if self._window != _core.window():
            self._of.clear()
            self._window = _core.window()
        number = self._of.get(name)
        if number is None:
            number = self._last = self._last + 1
            self._of[name] = number
        return {"request": number, "id": name}

    def forget(self, name: str) -> None:
        """The request has ended."""
        self._of.pop(name, None)


_numbers = _Numbers()


def _tell(event: str, name: str, **fields: Any) -> None:
    _core.mark("request." + event, DOMAIN, {**_numbers.fields(name), **fields})


# ---- requests come and go ----

_silent: Dict[str, Any] = {}  # requests that have no token yet, of this window
_silent_window = 0


def _look_for_silent(scheduler: Any) -> None:
    """Requests that exist when a window opens; then each one when it is first scheduled."""
    global _silent_window
    if _silent_window == _core.window():
        return
    _silent_window = _core.window()
    _silent.clear()
    _silent.update((name, one) for name, one in scheduler.requests.items() if not one.num_output_tokens)


def _tell_first_token(request: Any) -> None:
    """Marks the first token if there is one now. The end, in the same update, comes after."""
    if request.num_output_tokens and _silent.pop(request.request_id, None) is not None:
        _tell("first_token", request.request_id, output_tokens=request.num_output_tokens)


def _begin_add(_scheduler: Any, request: Any) -> Any:
    return request


def _added(request: Any, _result: Any, returned: bool) -> None:
    if request is None or not returned:
        return
    fields = {"prompt_tokens": request.num_prompt_tokens}
    arrival = getattr(request, "arrival_time", None)
    if arrival is not None:
        fields["waited_ns"] = max(0, int((time.time() - arrival) * 1e9))
    _tell("added", request.request_id, **fields)


def _begin_free(_scheduler: Any, request: Any, *_args: Any, **_kwargs: Any) -> None:
    """All requests end here; some releases drop the request's data in the call."""
    _tell_first_token(request)
    _silent.pop(request.request_id, None)
    reason = request.get_finished_reason()
    _tell("finished", request.request_id, reason=str(reason) if reason is not None else request.status.name.lower(),
          prompt_tokens=request.num_prompt_tokens, output_tokens=request.num_output_tokens)
    _numbers.forget(request.request_id)


def _nothing(_state: Any, _result: Any, _returned: bool) -> None:
    pass


# ---- pre-emption ----


class _Scheduling(NamedTuple):
    scheduler: Any
    # Requests and their computed tokens before the call, where releases have no _preempt_request.
    running: Optional[List[Tuple[Any, int]]]


_schedulers_at_work: List[Any] = []  # those in schedule()


def _tell_preempted(request: Any, reason: str, computed_tokens: int) -> None:
    _tell("preempted", request.request_id, reason=reason, computed_tokens=computed_tokens,
          output_tokens=request.num_output_tokens)


def _begin_preempt(scheduler: Any, request: Any, *_args: Any, **_kwargs: Any) -> None:
    """In schedule() because there are no free blocks; otherwise because the prefix cache was reset."""
    is_scheduling = any(other is scheduler for other in _schedulers_at_work)
    _tell_preempted(request, "kv-cache-full" if is_scheduling else "reset", request.num_computed_tokens)


# ---- batches ----

_WAITING = ("waiting", "skipped_waiting", "kv_holding_waiting")  # queues; each release has some


def _begin_schedule(scheduler: Any, *_args: Any, **_kwargs: Any) -> _Scheduling:
    _schedulers_at_work.append(scheduler)
    _core.range_push("schedule", DOMAIN)
    _look_for_silent(scheduler)
    running = None if hasattr(scheduler, "_preempt_request") else [
        (request, request.num_computed_tokens) for request in scheduler.running
    ]
    return _Scheduling(scheduler, running)


def _tell_batch(scheduler: Any, output: Any) -> None:
    prefill, decode = tokens_by_phase(output, scheduler.requests)
    running = len(scheduler.running)
    waiting = sum(len(getattr(scheduler, queue, ())) for queue in _WAITING)
    _core.mark("batch", DOMAIN, {
        "phase": phase_of(prefill, decode),
        "requests": len(output.num_scheduled_tokens),
        "max_requests": scheduler.max_num_running_reqs,
        "tokens": prefill + decode,
        "max_tokens": scheduler.max_num_scheduled_tokens,
        "prefill_tokens": prefill,
        "decode_tokens": decode,
        "running": running,
        "waiting": waiting,
    })
    _core.counter("vllm.requests_running", running)
    _core.counter("vllm.requests_waiting", waiting)


def _tell_scheduled(scheduler: Any, output: Any) -> None:
    for new in output.scheduled_new_reqs:
        _silent[new.req_id] = scheduler.requests[new.req_id]
        _tell("scheduled", new.req_id, tokens=output.num_scheduled_tokens.get(new.req_id, 0),
              cached_tokens=new.num_computed_tokens)
    for name in resumed_requests(output.scheduled_cached_reqs):
        _tell("resumed", name)


def _scheduled(state: Optional[_Scheduling], output: Any, returned: bool) -> None:
    _core.range_pop(DOMAIN)
    _schedulers_at_work.pop()
    if state is None or not returned:
        return
    for request, computed_tokens in state.running or ():
        if request.status.name == "PREEMPTED":
            _tell_preempted(request, "kv-cache-full", computed_tokens)
    _tell_scheduled(state.scheduler, output)
    _tell_batch(state.scheduler, output)
    vllm_cache.tell_use(state.scheduler)


# ---- updates ----


def _begin_update(scheduler: Any, *_args: Any, **_kwargs: Any) -> Any:
    _core.range_push("update", DOMAIN)
    _look_for_silent(scheduler)
    return scheduler


def _updated(scheduler: Any, _result: Any, returned: bool) -> None:
    _core.range_pop(DOMAIN)
    for request in list(_silent.values()):
        _tell_first_token(request)
    if scheduler is not None and returned:
        vllm_cache.tell_freed(scheduler)


add_request = around(_begin_add, _added)
free_request = around(_begin_free, _nothing)
preempt_request = around(_begin_preempt, _nothing)
schedule = around(_begin_schedule, _scheduled)
update_from_output = around(_begin_update, _updated)
