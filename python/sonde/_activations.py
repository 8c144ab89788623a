# SPDX-License-Identifier: Apache-2.0
"""What the outputs of a model's modules are like: mean, standard deviation, largest size, zeros, NaN and infinities.

A hook copies the output at the last position, which is one operation in the module's own stream. When the forward
pass ends, the copies of one size are reduced together, and the results go to the host while the next pass runs; they
are recorded when that one has ended. Nothing waits for a device, and nothing is written into the model's tensors.
"""

import math
from typing import Any, Dict, List, NamedTuple, Tuple

from sonde import _core

COLUMNS = ("mean", "std", "max_abs", "sparsity", "zeros", "nan", "inf")
MAX_WAITING = 16  # passes whose results a device has not brought yet; older ones are left out, and counted


class Reading(NamedTuple):
    """The statistics of one forward pass, on their way to the host."""

    step: int
    fields: List[Dict[str, Any]]  # of each row
    counts: List[int]  # of values, of each row
    values: Any
    event: Any  # None: on the CPU

    def is_done(self) -> bool:
        return self.event is None or bool(self.event.query())


class Activations:
    """Collects outputs of one forward pass after the other, of one thread."""

    def __init__(self, domain: str, epsilon: float) -> None:
        self._domain = domain
        self._epsilon = epsilon
        self._taken: List[Tuple[Dict[str, Any], Any]] = []
        self._readings: List[Reading] = []
        self.left_out = 0  # passes

    def take(self, fields: Dict[str, Any], output: Any) -> None:
        """Copies what a module returned, at the last position."""
        tensor = _tensor_of(output)
        if tensor is None:
            return
        if tensor.dim() > 1:
            tensor = tensor[:, -1] if tensor.dim() > 2 else tensor[-1:]
        copy = tensor.detach().reshape(-1).to(dtype=_torch().float32, copy=True)
        self._taken.append((fields, copy))

    def drop(self) -> None:
        """Forgets a forward pass that did not end."""
        self._taken.clear()

    def end(self, step: int) -> None:
        """Sends the statistics of a forward pass on their way, and records those that have come."""
        self.record()
        taken, self._taken = self._taken, []
        groups: Dict[Tuple[Any, int], List[Tuple[Dict[str, Any], Any]]] = {}
        for fields, copy in taken:
            groups.setdefault((copy.device, copy.numel()), []).append((fields, copy))
        with _torch().no_grad():
            for (device, count), rows in groups.items():
                values = self._reduce([copy for _, copy in rows])
                self._send(step, [fields for fields, _ in rows], [count] * len(rows), values, device)

    def _reduce(self, rows: List[Any]) -> Any:
        torch = _torch()
        values = torch.stack(rows)
        variance, mean = torch.var_mean(values, dim=1, correction=0)
        sizes = values.abs()
        columns = (
            mean,
            variance.sqrt(),
            sizes.amax(dim=1),
            (sizes <= self._epsilon).sum(dim=1),
            (sizes == 0).sum(dim=1),
            torch.isnan(values).sum(dim=1),
            torch.isinf(values).sum(dim=1),
        )
        return torch.stack([column.to(torch.float64) for column in columns], dim=1)

    def _send(self, step: int, fields: List[Dict[str, Any]], counts: List[int], values: Any, device: Any) -> None:
        torch, event = _torch(), None
        if device.type == "cuda":
            pinned = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            pinned.copy_(values, non_blocking=True)
            values, event = pinned, torch.cuda.Event()
            event.record(torch.cuda.current_stream(device))
        elif device.type != "cpu":
            values = values.to("cpu")
        self._readings.append(Reading(step, fields, counts, values, event))
        if len(self._readings) > MAX_WAITING * 8:
            del self._readings[0]
            self.left_out += 1

    def record(self, wait: bool = False) -> None:
        """Records what has come; with `wait` all of it: when watching ends."""
        while self._readings and (wait or self._readings[0].is_done()):
            reading = self._readings.pop(0)
            if reading.event is not None and wait:
                reading.event.synchronize()
            for fields, count, row in zip(reading.fields, reading.counts, reading.values.tolist()):
                _core.mark("activation", self._domain, {**fields, **_described(row, count), "step": reading.step,
                                                        "epsilon": self._epsilon})


def _torch() -> Any:
    import torch

    return torch


def _tensor_of(output: Any) -> Any:
    """The floating-point tensor that a module returned, or the first in a tuple; None: there is none with values."""
    if isinstance(output, (tuple, list)):
        output = output[0] if output else None
    if not isinstance(output, _torch().Tensor) or not output.is_floating_point() or output.numel() == 0:
        return None
    if hasattr(output, "to_local"):  # a part of a tensor of several ranks: reductions of it would talk to them
        output = output.to_local()
    return None if output.device.type == "meta" or output.is_sparse or output.is_quantized else output


def _described(row: List[float], count: int) -> Dict[str, Any]:
    """The columns as fields. Where there are NaN or infinities, what they make unknown is left out."""
    found = dict(zip(COLUMNS, row))
    fields: Dict[str, Any] = {name: found[name] for name in ("mean", "std", "max_abs") if math.isfinite(found[name])}
    fields["sparsity"] = found["sparsity"] / count
    fields.update({name: int(found[name]) for name in ("zeros", "nan", "inf")})
    fields["values"] = count
    return fields
