# SPDX-License-Identifier: Apache-2.0
"""Hooks for Hugging Face transformers 4.30 and later: training and evaluation steps, generation and its tokens.

The names are those of the domain "transformers" in a capture; docs/hooks.md lists them.
"""

import itertools
import threading
from typing import Any, List, Tuple

from .. import _core
from .registry import Hook
from .wrap import Fields, around, ranged

DOMAIN = "transformers"


class _Generation:
    """One call of generate(): its request, and the tokens that each of its sequences has so far."""

    def __init__(self) -> None:
        self.request = next(_requests)
        self.tokens = 0


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


def _begin_generate(*args: Any, **kwargs: Any) -> _Generation:
    generation = _Generation()
    _core.range_push("generate", DOMAIN, {"request": generation.request, **_prompt(*args, **kwargs)})
    _core.range_push("prefill", DOMAIN)
    _core.token(0, generation.request, phase="prefill")
    _generating.calls.append(generation)
    return generation


def _end_generate(generation: Any, _result: Any, _returned: bool) -> None:
    if generation is not None:
        _generating.calls.remove(generation)
        _core.range_pop(DOMAIN)  # prefill or decode
        _core.range_pop(DOMAIN)


def _begin_token(*_args: Any, num_new_tokens: int = 1, **_kwargs: Any) -> int:
    return num_new_tokens


def _end_token(made: Any, _result: Any, returned: bool) -> None:
    """Called after each forward pass of a generation: the first one has read the prompt. An assisted one makes several
    tokens at once."""
    if not returned or not _generating.calls:
        return
    generation = _generating.calls[-1]
    if generation.tokens == 0:
        _core.range_pop(DOMAIN)
        _core.range_push("decode", DOMAIN)
    for _ in range(made if isinstance(made, int) else 1):
        _core.token(generation.tokens, generation.request, phase="decode")
        generation.tokens += 1


_GENERATION = "transformers.generation.utils"

HOOKS: Tuple[Hook, ...] = (
    Hook("transformers", "transformers.trainer", "Trainer.training_step", ranged(DOMAIN, "training_step")),
    Hook("transformers", "transformers.trainer", "Trainer.prediction_step", ranged(DOMAIN, "prediction_step")),
    Hook("transformers", _GENERATION, "GenerationMixin.generate", around(_begin_generate, _end_generate)),
    Hook("transformers", _GENERATION, "GenerationMixin._update_model_kwargs_for_generation",
         around(_begin_token, _end_token)),
)
