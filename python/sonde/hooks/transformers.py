# SPDX-License-Identifier: Apache-2.0
"""Hooks for Hugging Face transformers 4.30 and later: training and evaluation steps, generation and its tokens.

The names are those of the domain "transformers" in a capture; docs/hooks.md lists them. Tokens are taken where the
loop of generate() asks whether it goes on: there the token of its last pass is known to the host, with any streamer
or none. Models are watched while generate() runs, as transformers_models says.
"""

import itertools
import threading
import weakref
from functools import wraps
from typing import Any, Callable, List, Optional, Tuple

from .. import _core
from . import registry, transformers_models
from .registry import Function, Hook
from .wrap import Fields, ranged

DOMAIN = "transformers"


class _Generation:
    """One call of generate(): its request, and the tokens that each of its sequences has so far.

    Tokens are counted with a closed gate, too: the first one that is recorded need not be the first of the request.
    """

    def __init__(self, model: Any, request: int, is_assistant: bool) -> None:
        self.model = weakref.ref(model) if model is not None else lambda: None
        self.request = request
        self.is_assistant = is_assistant  # it makes candidates: its tokens are not the request's
        self.tokens = self.passes = 0
        self.pending = 0  # made by a pass whose end the loop has not asked for
        self.asks = False  # does its loop ask whether it goes on? That of other decoders, and old releases, does not
        self.is_finished = False  # it goes on for the other ranks alone
        self.ranges = 0  # that it has open
        self.watching: Any = None


class _Generating(threading.local):
    """The calls of generate() that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.calls: List[_Generation] = []


_requests = itertools.count(1)  # of the process: one step of it is one bytecode, which no thread can divide
_generating = _Generating()


def _prompt(*args: Any, **kwargs: Any) -> Fields:
    """Sequences and tokens of the prompt, from its shape alone: its values may be on a device."""
    inputs = args[1] if len(args) > 1 else kwargs.get("inputs", kwargs.get("input_ids"))
    shape: Any = getattr(inputs, "shape", ())
    return {"batch": int(shape[0]), "prompt_tokens": int(shape[1])} if len(shape) == 2 else {}


def _push(generation: _Generation, name: str, fields: Optional[Fields] = None) -> None:
    if _core.is_open():
        _core.range_push(name, DOMAIN, fields)
        generation.ranges += 1


def _pop(generation: _Generation) -> None:
    if generation.ranges:
        generation.ranges -= 1
        _core.range_pop(DOMAIN)


# ---- calls of generate() ----


def _begin(*args: Any, **kwargs: Any) -> Optional[_Generation]:
    """None for a call inside another one that does a part of its work, as decoders from the hub do."""
    model = args[0] if args else None
    outer = _generating.calls[-1] if _generating.calls else None
    config = kwargs.get("generation_config", args[2] if len(args) > 2 else None)
    if outer is not None and outer.model() is model and not getattr(config, "is_assistant", False):
        return None
    generation = _Generation(model, outer.request if outer else next(_requests), outer is not None)
    _generating.calls.append(generation)
    return generation


def _record_begin(generation: _Generation, *args: Any, **kwargs: Any) -> None:
    fields: Fields = {"request": generation.request, **_prompt(*args, **kwargs)}
    if generation.is_assistant:
        _push(generation, "assistant", fields)
    else:
        _push(generation, "generate", fields)
        _push(generation, "prefill")
        _core.token(0, generation.request, phase="prefill")
    generation.watching = transformers_models.enter(generation.model())


def _record_end(generation: _Generation, has_returned: bool) -> None:
    watching, generation.watching = generation.watching, None
    while generation.ranges:  # prefill or decode, and generate
        _pop(generation)
    if watching is not None:
        transformers_models.leave(watching, generation.passes if has_returned else 0)


def _wrap_generate(original: Function) -> Function:
    run = registry.guard().run

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generation = run(_begin, *args, **kwargs)
        if generation is None:
            return original(*args, **kwargs)
        has_returned = False
        try:
            run(_record_begin, generation, *args, **kwargs)
            result = original(*args, **kwargs)
            has_returned = True
            return result
        finally:
            _generating.calls.remove(generation)
            run(_record_end, generation, has_returned)

    return wrapper


# ---- tokens ----


def _say_tokens(generation: _Generation, made: int) -> None:
    if generation.is_assistant or made < 1:
        return
    if generation.tokens == 0 and generation.ranges:
        _pop(generation)
        _push(generation, "decode")
    for _ in range(made):
        _core.token(generation.tokens, generation.request, phase="decode")
        generation.tokens += 1


def _end_pass(generation: _Generation, *args: Any, **kwargs: Any) -> None:
    """After the forward pass of a step: an assisted one makes several tokens at once."""
    made = kwargs.get("num_new_tokens", args[4] if len(args) > 4 else 1)
    generation.passes += 1
    if generation.asks:
        generation.pending = int(made)  # of a tensor, which the loop has read before
    else:
        _say_tokens(generation, int(made))


def _end_step(generation: _Generation, _model: Any, is_finished: Any = False, synced_gpus: Any = False,
              *_args: Any, **_kwargs: Any) -> None:
    """The loop has asked whether to continue, and has the answer: its tokens are on the host."""
    generation.asks = True
    made, generation.pending = generation.pending, 0
    if not generation.is_finished:
        _say_tokens(generation, made)
    if synced_gpus:
        generation.is_finished = bool(is_finished)


# ---- generate_batch(): continuous batching ----


class _Adding(threading.local):
    is_on = False  # this thread adds a request: states that are made otherwise are no requests


_adding = _Adding()


def _wrap_add_request(original: Function) -> Function:
    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _adding.is_on = True
        try:
            return original(*args, **kwargs)
        finally:
            _adding.is_on = False

    return wrapper


def _wrap_state(original: Function) -> Function:
    """The state of a request is created: it arrives. The batch takes it in another thread."""
    run = registry.guard().run

    @wraps(original)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> Any:
        if _adding.is_on:
            run(_core.token, 0, state.request_id, phase="queued")
        return original(state, *args, **kwargs)

    return wrapper


def _say_batched(state: Any, before: int) -> None:
    made: int = state.generated_len()
    if made > before:
        _core.token(made - 1, state.request_id, phase="decode")


def _wrap_update(original: Function) -> Function:
    """A token of a request has come to the host."""
    run = registry.guard().run

    @wraps(original)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> Any:
        before = run(state.generated_len)
        result = original(state, *args, **kwargs)
        run(_say_batched, state, before)
        return result

    return wrapper


def _wrap_loop(original: Function) -> Function:
    """The thread that runs the forward passes of all requests."""
    run = registry.guard().run

    @wraps(original)
    def wrapper(manager: Any, *args: Any, **kwargs: Any) -> Any:
        watching = run(transformers_models.enter, manager.model)
        try:
            return original(manager, *args, **kwargs)
        finally:
            if watching is not None:
                run(transformers_models.leave, watching, 0)

    return wrapper


def _after(record: Callable[..., None]) -> Callable[[Function], Function]:
    """A `make` that calls `record` after each call that returns, with the generation that this thread is in."""

    def make(original: Function) -> Function:
        run = registry.guard().run

        @wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if _generating.calls:
                run(record, _generating.calls[-1], *args, **kwargs)
            return result

        return wrapper

    return make


def _fields_of_pass() -> Fields:
    """What a forward pass of a watched model is for."""
    if not _generating.calls:
        return {}
    generation = _generating.calls[-1]
    phase = "assistant" if generation.is_assistant else "decode" if generation.tokens else "prefill"
    return {"request": generation.request, "phase": phase}


transformers_models.set_fields(_fields_of_pass)

_GENERATION = "transformers.generation.utils"
_BATCHING = "transformers.generation.continuous_batching"

HOOKS: Tuple[Hook, ...] = (
    Hook("transformers", "transformers.trainer", "Trainer.training_step", ranged(DOMAIN, "training_step")),
    Hook("transformers", "transformers.trainer", "Trainer.prediction_step", ranged(DOMAIN, "prediction_step")),
    Hook("transformers", _GENERATION, "GenerationMixin.generate", _wrap_generate),
    Hook("transformers", _GENERATION, "GenerationMixin._update_model_kwargs_for_generation", _after(_end_pass)),
    Hook("transformers", _GENERATION, "GenerationMixin._has_unfinished_sequences", _after(_end_step), optional=True),
    Hook("transformers", _BATCHING + ".requests", "RequestState.__post_init__", _wrap_state),
    Hook("transformers", _BATCHING + ".requests", "RequestState.update_and_check_completion", _wrap_update),
    Hook("transformers", _BATCHING + ".continuous_api", "ContinuousBatchingManager.add_request", _wrap_add_request),
    Hook("transformers", _BATCHING + ".continuous_api", "ContinuousBatchingManager._run_generation_loop", _wrap_loop),
)
