# SPDX-License-Identifier: Apache-2.0
"""Gradients as an optimizer's step found them, as counters: their norm, and how many tensors of them are not finite.

`--hooks torch:gradients:every=N` asks for it, in one step of N. Norms are computed where the gradients are, and come to
the host without a wait: those of a GPU are recorded at a later step. Of sharded parameters they are this rank's part.
"""

import sys
from typing import Any, Iterable, List, NamedTuple, Tuple

from . import _core
from ._experts import Reading

PENDING_MAX = 4  # steps whose readings are on their way: more are not begun


class Options(NamedTuple):
    """What follows the name of the group in $SONDE_HOOKS."""

    gradients: bool = False
    every: int = 1


def options_of(given: Iterable[Tuple[str, str]]) -> Options:
    options = Options()
    for key, value in given:
        if key == "every" and value.isdigit() and int(value) > 0:
            options = options._replace(every=int(value))
        elif key == "gradients":
            options = options._replace(gradients=True)
    return options


def _norms(torch: Any, gradients: List[Any]) -> List[Any]:
    """Of each tensor. Those in half precision are added up in single precision: a norm may be larger than 65504."""
    half = [each for each in gradients if each.dtype == torch.float16]
    others = [each for each in gradients if each.dtype != torch.float16]
    norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in half]
    return norms + (list(torch._foreach_norm(others)) if others else [])


def _figures(torch: Any, parameters: List[Any]) -> Any:
    """Norm, and the count of tensors that hold infinity or NaN; None without gradients."""
    gradients = [each.grad.detach() for each in parameters if each.grad is not None]
    gradients = [each for each in gradients if each.is_floating_point() and not each.is_sparse and each.numel()]
    if not gradients:
        return None
    device = gradients[0].device
    norms = torch.stack([each.to(device, torch.float32, non_blocking=True) for each in _norms(torch, gradients)])
    return torch.stack([torch.linalg.vector_norm(norms), (~torch.isfinite(norms)).sum().to(torch.float32)])


class Gradients:
    """Of all optimizers of a process."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._steps = 0
        self._pending: List[Tuple[str, Reading]] = []

    def _record_arrived(self) -> None:
        while self._pending and self._pending[0][1].is_done():
            suffix, reading = self._pending.pop(0)
            norm, not_finite = reading.values.tolist()
            _core.counter("gradient.norm" + suffix, norm)
            _core.counter("gradient.not_finite" + suffix, not_finite)

    def after_step(self, optimizer: Any) -> None:
        """An optimizer has made a step: its gradients are still there."""
        self._record_arrived()
        self._steps += 1
        groups = optimizer.param_groups
        is_asked = (self._steps - 1) % self._every == 0 and _core.is_open()
        if not is_asked or len(self._pending) >= PENDING_MAX * len(groups):
            return
        torch = sys.modules["torch"]
        with torch.no_grad():
            for number, group in enumerate(groups):
                figures = _figures(torch, group["params"])
                if figures is not None:
                    self._pending.append((f" group {number}" if len(groups) > 1 else "", Reading(torch, figures, None)))
        self._record_arrived()
