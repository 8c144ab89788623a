# SPDX-License-Identifier: Apache-2.0
"""What a watched model is, as fields of the mark `configuration`: runs are compared by them."""

from typing import Any, Dict, Optional, Tuple, Union

from sonde import _structure

Fields = Dict[str, Union[int, float, str, bool]]

PRECISIONS = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16"}


def of(structure: _structure.Structure) -> Fields:
    """Only what the model states; everything left out is unknown."""
    fields: Fields = {"model": _structure.class_of(structure.model)}
    config = _config_of(structure.model)
    parameters, dtype = _count(structure.model)
    # Of the first FSDP each rank sees a part of the parameters alone.
    if parameters and not any("FullyShardedDataParallel" in _structure.class_of(one) for one in structure.wrappers):
        fields["parameters"] = parameters
        fields.update(_experts(structure, config, parameters))
    precision = _quantisation(config) or (_name(dtype) if dtype is not None else None)
    if precision:
        fields["precision"] = precision
    fields.update(_cache(config, dtype))
    return fields


def _config_of(model: Any) -> Any:
    """The configuration of the language model, if there are several."""
    config = getattr(model, "config", None)
    return getattr(config, "text_config", None) or config


def _whole(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _count(model: Any) -> Tuple[int, Any]:
    """The parameters, and the type that most of them have."""
    counts: Dict[Any, int] = {}
    for parameter in model.parameters():
        counts[parameter.dtype] = counts.get(parameter.dtype, 0) + int(parameter.numel())
    return sum(counts.values()), max(counts, key=lambda dtype: counts[dtype], default=None)


def _name(dtype: Any) -> str:
    name = str(dtype).rsplit(".", 1)[-1]
    return PRECISIONS.get(name, name)


def _quantisation(config: Any) -> Optional[str]:
    quantised = getattr(config, "quantization_config", None)
    method = quantised.get("quant_method") if isinstance(quantised, dict) else getattr(quantised, "quant_method", None)
    return str(getattr(method, "value", method)) if method else None


def _experts(structure: _structure.Structure, config: Any, parameters: int) -> Fields:
    """How many experts a layer has, and how many parameters are active for a token."""
    names = ("num_local_experts", "num_experts", "n_routed_experts")
    experts = next((number for number in (_whole(getattr(config, name, None)) for name in names) if number), None)
    if not experts or experts < 2:
        return {}
    fields: Fields = {"experts": experts}
    chosen = _whole(getattr(config, "num_experts_per_tok", None))
    modules = [part.module for part in structure.parts if part.role == _structure.EXPERTS]
    if chosen and modules:
        inside = sum(_count(module)[0] for module in modules)
        fields["active_parameters"] = parameters - inside + inside * chosen // experts
    return fields


def _cache(config: Any, dtype: Any) -> Fields:
    """The size of a token in the KV cache."""
    heads = _whole(getattr(config, "num_attention_heads", None))
    size = _whole(getattr(config, "head_dim", None))
    hidden = _whole(getattr(config, "hidden_size", None))
    if size is None and heads and hidden:
        size = hidden // heads
    groups = _whole(getattr(config, "num_key_value_heads", None)) or heads
    if not groups or not size or dtype is None or not dtype.is_floating_point:
        return {}
    return {"kv_heads": groups, "head_dim": size, "kv_number_bytes": int(dtype.itemsize)}
