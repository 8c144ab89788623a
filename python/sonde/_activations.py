# SPDX-License-Identifier: Apache-2.0
"""What goes through a model's modules: mean, standard deviation, largest size, zeros, NaN and infinities of activations,
the weights of attention where a module returns them, and how many parameters of a layer are nearly nothing.

A hook copies the activations at the last position, which is one operation in the module's own stream. When the forward
pass ends, the copies of one size are reduced together, and the results go to the host while the next pass runs; they
are recorded when that one has ended. Nothing waits for a device, and nothing is written into the model's tensors.
"""

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from sonde import _core

Fields = Dict[str, Any]

COLUMNS = ("mean", "std", "max_abs", "sparsity", "zeros", "nan", "inf")
ATTENTION_COLUMNS = ("entropy_bits", "mean_largest", "largest", "below_1_percent", "valid")
MAX_WAITING = 16  # passes whose results a device has not brought yet; older ones are left out, and counted
PARAMETERS_AT_ONCE = 1 << 23  # each takes nine bytes of the device's memory for a moment

OUTPUT, INPUT, ATTENTION, PARAMETERS = "activation", "activation.input", "attention", "parameters"


class Reading(NamedTuple):
    """Rows of figures of one forward pass, on their way to the host."""

    mark: str
    fields: List[Fields]  # of each row
    described: Callable[[List[float]], Optional[Fields]]  # a row as fields; None: it is not what it looked like
    values: Any
    event: Any  # None: on the CPU

    def is_done(self) -> bool:
        return self.event is None or bool(self.event.query())


class Activations:
    """Collects what is in one forward pass after the other, of one thread."""

    def __init__(self, domain: str, epsilon: float) -> None:
        self._domain = domain
        self._epsilon = epsilon
        self._taken: List[Tuple[str, Fields, Any]] = []
        self._readings: List[Reading] = []
        self.left_out = 0  # passes

    def take(self, fields: Fields, output: Any, mark: str = OUTPUT) -> None:
        """Copies what a module returned, or what it was given, at the last position."""
        tensor = _tensor_of(output)
        if tensor is None:
            return
        if tensor.dim() > 1:
            tensor = tensor[:, -1] if tensor.dim() > 2 else tensor[-1:]
        self._copy(mark, fields, tensor.reshape(-1))

    def take_attention(self, fields: Fields, output: Any) -> None:
        """Copies the weights that an attention returned beside its result, of the last position: (.., weights, ..)."""
        weights = _tensor_of(output[1]) if isinstance(output, (tuple, list)) and len(output) > 1 else None
        if weights is not None and weights.dim() == 4:  # sequences, heads, queries, keys
            self._copy(ATTENTION, fields, weights[:, :, -1].reshape(-1, weights.shape[-1]))

    def _copy(self, mark: str, fields: Fields, tensor: Any) -> None:
        self._taken.append((mark, fields, tensor.to(dtype=_torch().float32, copy=True)))

    def drop(self) -> None:
        """Forgets a forward pass that did not end."""
        self._taken.clear()

    def end(self, step: int) -> None:
        """Sends the figures of a forward pass on their way, and records those that have come."""
        self.record()
        taken, self._taken = self._taken, []
        groups: Dict[Tuple[str, Any, Any], List[Tuple[Fields, Any]]] = {}
        for mark, fields, copy in taken:
            groups.setdefault((mark, copy.device, copy.shape), []).append(({**fields, "step": step}, copy))
        with _torch().no_grad():
            for (mark, _, shape), rows in groups.items():
                values = _torch().stack([copy for _, copy in rows])
                fields_of = [fields for fields, _ in rows]
                if mark == ATTENTION:
                    self._send(mark, fields_of, self._reduce_attention(values), _described_attention(*shape))
                else:
                    self._send(mark, fields_of, self._reduce(values), _described(shape[0], self._epsilon))

    def take_parameters(self, fields: Fields, module: Any) -> None:
        """Counts the parameters of a layer that are nearly nothing, and those that are."""
        torch, sums, count = _torch(), None, 0
        with torch.no_grad():
            for parameter in module.parameters():
                tensor = _tensor_of(parameter)
                if tensor is None:
                    continue
                for part in tensor.reshape(-1).split(PARAMETERS_AT_ONCE):
                    sizes = part.to(torch.float32).abs()
                    found = torch.stack(((sizes <= self._epsilon).sum(), (sizes == 0).sum()))
                    sums = found if sums is None else sums + found.to(sums.device)
                    count += part.numel()
            if sums is not None:
                self._send(PARAMETERS, [fields], sums.unsqueeze(0), _described_parameters(count, self._epsilon))

    def _reduce(self, values: Any) -> Any:
        torch = _torch()
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

    def _reduce_attention(self, values: Any) -> Any:
        """Of modules, heads of all sequences, and keys. Weights are at least 0 and add up to 1."""
        torch = _torch()
        largest = values.amax(dim=2)
        columns = (
            torch.special.entr(values).sum(dim=2).mean(dim=1) / math.log(2),
            largest.mean(dim=1),
            largest.amax(dim=1),
            (values < 0.01).to(torch.float32).mean(dim=(1, 2)),
            (((values.sum(dim=2) - 1).abs() < 0.02) & (values >= 0).all(dim=2)).all(dim=1),
        )
        return torch.stack([column.to(torch.float64) for column in columns], dim=1)

    def _send(self, mark: str, fields: List[Fields], values: Any,
              described: Callable[[List[float]], Optional[Fields]]) -> None:
        torch, event, device = _torch(), None, values.device
        if device.type == "cuda":
            pinned = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            pinned.copy_(values, non_blocking=True)
            values, event = pinned, torch.cuda.Event()
            event.record(torch.cuda.current_stream(device))
        elif device.type != "cpu":
            values = values.to("cpu")
        self._readings.append(Reading(mark, fields, described, values, event))
        if len(self._readings) > MAX_WAITING * 8:
            del self._readings[0]
            self.left_out += 1

    def record(self, wait: bool = False) -> None:
        """Records what has come; with `wait` all of it: when watching ends."""
        while self._readings and (wait or self._readings[0].is_done()):
            reading = self._readings.pop(0)
            if reading.event is not None and wait:
                reading.event.synchronize()
            for fields, row in zip(reading.fields, reading.values.tolist()):
                described = reading.described(row)
                if described is not None:
                    _core.mark(reading.mark, self._domain, {**fields, **described})


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
    return None if output.device.type == "meta" or output.is_sparse or output.is_quantized else output.detach()


def _described(count: int, epsilon: float) -> Callable[[List[float]], Optional[Fields]]:
    """Columns of so many values as fields. Where there are NaN or infinities, what they make unknown is left out."""

    def described(row: List[float]) -> Fields:
        found = dict(zip(COLUMNS, row))
        fields: Fields = {name: found[name] for name in ("mean", "std", "max_abs") if math.isfinite(found[name])}
        fields["sparsity"] = found["sparsity"] / count
        fields.update({name: int(found[name]) for name in ("zeros", "nan", "inf")})
        return {**fields, "values": count, "epsilon": epsilon}

    return described


def _described_attention(heads: int, keys: int) -> Callable[[List[float]], Optional[Fields]]:
    """Of the heads of all sequences; None where what the module returned were no weights, or dropout changed them."""

    def described(row: List[float]) -> Optional[Fields]:
        found = dict(zip(ATTENTION_COLUMNS, row))
        return {**found, "heads": heads, "keys": keys} if found.pop("valid") else None

    return described


def _described_parameters(count: int, epsilon: float) -> Callable[[List[float]], Optional[Fields]]:
    def described(row: List[float]) -> Fields:
        small, zeros = row
        return {"sparsity": small / count, "zeros": int(zeros), "values": count, "epsilon": epsilon}

    return described
