# SPDX-License-Identifier: Apache-2.0
"""Hooks for Hugging Face transformers 4.30 and later: training and evaluation steps, generation and its tokens.

The names are those of the domain "transformers" in a capture; docs/hooks.md lists them.
"""

import threading
from typing import Any, List, Optional, Tuple

from .. import _core
from .registry import Hook
from .wrap import Fields, around, ranged

DOMAIN = "transformers"


class _Generating(threading.local):
    """How many tokens each generate() of this thread has made so far, the innermost last."""

    def __init__(self) -> None:
        self.tokens: List[int] = []


_generating = _Generating()


def _prompt(*args: Any, **kwargs: Any) -> Optional[Fields]:
    """Sequences and tokens of the prompt, from its shape alone: its values may be on a device."""
    inputs = args[1] if len(args) > 1 else kwargs.get("inputs", kwargs.get("input_ids"))
    shape: Any = getattr(inputs, "shape", ())
    return {"batch": int(shape[0]), "prompt_tokens": int(shape[1])} if len(shape) == 2 else None


def _begin_generate(*args: Any, **kwargs: Any) -> bool:
    _core.range_push("generate", DOMAIN, _prompt(*args, **kwargs))
    _generating.tokens.append(0)
    return True


def _end_generate(begun: Any, _result: Any, _returned: bool) -> None:
    if begun:
        _generating.tokens.pop()
        _core.range_pop(DOMAIN)


def _begin_token(*_args: Any, **_kwargs: Any) -> None:
    pass


def _end_token(_state: Any, _result: Any, returned: bool) -> None:
    """Called after each forward pass of a generation: the first one has read the prompt."""
    if returned and _generating.tokens:
        index = _generating.tokens[-1]
        _generating.tokens[-1] = index + 1
        _core.token(index, phase="decode" if index else "prefill")


_GENERATION = "transformers.generation.utils"

HOOKS: Tuple[Hook, ...] = (
    Hook("transformers", "transformers.trainer", "Trainer.training_step", ranged(DOMAIN, "training_step")),
    Hook("transformers", "transformers.trainer", "Trainer.prediction_step", ranged(DOMAIN, "prediction_step")),
    Hook("transformers", _GENERATION, "GenerationMixin.generate", around(_begin_generate, _end_generate)),
    Hook("transformers", _GENERATION, "GenerationMixin._update_model_kwargs_for_generation",
         around(_begin_token, _end_token)),
)
