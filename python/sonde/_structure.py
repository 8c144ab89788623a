# SPDX-License-Identifier: Apache-2.0
"""The structure of a model: its layers, and the role of each module in them.

The layers are the elements of a list of modules, at a path that is known or else in the longest list of one class.
Modules in them get roles, the same for every family of models, by their exact names, then by patterns; a module whose
name says nothing keeps the name as its role. Nothing here imports torch: a module is what has `_modules`.
"""

import re
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

# The child that holds the model, by the class of the wrapper around it or of one of its bases.
WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "OptimizedModule": "_orig_mod",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "PeftModel": "base_model",
    "BaseTuner": "model",
}

# Where the layers of language models are. Others, such as those of a vision tower, may be more.
KNOWN_PATHS = (
    "model.layers",
    "model.language_model.layers",
    "language_model.model.layers",
    "model.text_model.layers",
    "transformer.h",
    "transformer.blocks",
    "gpt_neox.layers",
    "model.decoder.layers",
    "decoder.layers",
    "decoder.block",
    "layers",
    "language_model.layers",
    "h",
)

ATTENTION, MLP, LAYER, STEP, EXPERTS = "self_attn", "mlp", "layer", "step", "experts"

# What goes into these no other module returns: the residual stream, and the product of the MLP's gate.
WITH_INPUT = ("norm1", "norm2", "norm3", "norm4", "down")

OUTSIDE_ROLES = {
    "embed_tokens": "embed",
    "embed_in": "embed",
    "wte": "embed",
    "tok_embeddings": "embed",
    "word_embeddings": "embed",
    "embeddings": "embed",
    "wpe": "position_embed",
    "embed_positions": "position_embed",
    "norm": "final_norm",
    "final_layernorm": "final_norm",
    "final_layer_norm": "final_norm",
    "final_norm": "final_norm",
    "ln_f": "final_norm",
    "norm_f": "final_norm",
    "lm_head": "head",
    "embed_out": "head",
    "output": "head",
    "score": "head",
    "classifier": "head",
}

LAYER_ROLES = {
    "input_layernorm": "norm1",
    "ln_1": "norm1",
    "ln1": "norm1",
    "norm1": "norm1",
    "attention_norm": "norm1",
    "attn_norm": "norm1",
    "self_attn_layer_norm": "norm1",
    "post_attention_layernorm": "norm2",
    "ln_2": "norm2",
    "ln2": "norm2",
    "norm2": "norm2",
    "ffn_norm": "norm2",
    "mlp_norm": "norm2",
    "final_layer_norm": "norm2",
    "pre_feedforward_layernorm": "norm3",
    "post_feedforward_layernorm": "norm4",
    "self_attn": ATTENTION,
    "attn": ATTENTION,
    "attention": ATTENTION,
    "self_attention": ATTENTION,
    "linear_attn": ATTENTION,
    "mlp": MLP,
    "ffn": MLP,
    "feed_forward": MLP,
    "block_sparse_moe": MLP,
    "moe": MLP,
    "fc1": "up",
    "fc2": "down",
}

ATTENTION_ROLES = {
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "o_proj": "o",
    "dense": "o",
    "out_proj": "o",
    "c_proj": "o",
    "qkv_proj": "qkv",
    "query_key_value": "qkv",
    "c_attn": "qkv",
    "Wqkv": "qkv",
    "W_pack": "qkv",
    "q_norm": "qk_norm",
    "k_norm": "qk_norm",
    "q_layernorm": "qk_norm",
    "k_layernorm": "qk_norm",
}

MLP_ROLES = {
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
    "gate_up_proj": "gate_up",
    "fc1": "up",
    "fc2": "down",
    "dense_h_to_4h": "up",
    "dense_4h_to_h": "down",
    "c_fc": "up",
    "c_proj": "down",
    "w1": "gate",
    "w2": "down",
    "w3": "up",
    "router": "router",
    "experts": EXPERTS,
    "shared_expert": "shared_expert",
    "shared_experts": "shared_expert",
}

# After the exact names, in this order.
LAYER_PATTERNS = ((r"attn|attention", ATTENTION), (r"mlp|ffn|feed_?forward|moe", MLP))
ATTENTION_PATTERNS = (
    (r"^(w?q|query|to_q)(_?(proj|lin|linear))?$", "q"),
    (r"^(w?k|key|to_k)(_?(proj|lin|linear))?$", "k"),
    (r"^(w?v|value|to_v)(_?(proj|lin|linear))?$", "v"),
    (r"^(w?o|out|to_out)(_?(proj|lin|linear))?$", "o"),
    (r"qkv|query_key_value", "qkv"),
    (r"^(q|k|query|key)_?(norm|ln|layer_?norm)$", "qk_norm"),
)
MLP_PATTERNS = (
    (r"gate_?up|up_?gate", "gate_up"),
    (r"^wi_0$", "gate"),
    (r"^(wi|wi_1|fc_?in|lin1|linear1|intermediate)$", "up"),
    (r"^(wo|fc_?out|lin2|linear2)$", "down"),
    (r"router", "router"),
)

_ATTENTION = ("q", "k", "v", "o")
_GATED = ("gate", "up", "down")
_TWO_NORMS = ("norm1", "norm2")

# The roles that each layer of a family has, by `model_type` of its configuration. A layer with experts has a router
# in place of gate, up and down.
FAMILIES: Dict[str, Tuple[str, ...]] = {
    "llama": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "mistral": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "qwen2": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "qwen3": (*_TWO_NORMS, *_ATTENTION, "qk_norm", *_GATED),
    "qwen2_moe": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "qwen3_moe": (*_TWO_NORMS, *_ATTENTION, "qk_norm", *_GATED),
    "gemma": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "gemma2": (*_TWO_NORMS, "norm3", "norm4", *_ATTENTION, *_GATED),
    "gemma3": (*_TWO_NORMS, "norm3", "norm4", *_ATTENTION, "qk_norm", *_GATED),
    "gemma3_text": (*_TWO_NORMS, "norm3", "norm4", *_ATTENTION, "qk_norm", *_GATED),
    "phi": ("norm1", *_ATTENTION, "up", "down"),
    "phi3": (*_TWO_NORMS, "qkv", "o", "gate_up", "down"),
    "phimoe": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "stablelm": ("norm1", *_ATTENTION, *_GATED),
    "mixtral": (*_TWO_NORMS, *_ATTENTION, *_GATED),
    "gpt_neox": (*_TWO_NORMS, "qkv", "o", "up", "down"),
    "gpt2": (*_TWO_NORMS, "qkv", "o", "up", "down"),
}
OUTSIDE_EXPECTED = ("embed", "final_norm", "head")
HEADED = re.compile(r"For[A-Z]|LMHead")  # classes of models that have a head

# Modules that do next to nothing when they are called in inference.
IDLE_CLASSES: FrozenSet[str] = frozenset(("Dropout", "Identity", "Dropout1d", "Dropout2d", "DropPath"))
MAX_DEPTH = 24  # of the tree above the layers


class Part(NamedTuple):
    """A module to watch."""

    module: Any
    path: str  # in the model
    role: str
    layer: Optional[int] = None  # None: outside of the layers
    expert: Optional[int] = None

    @property
    def name(self) -> str:
        """The name of its ranges."""
        if self.layer is None:
            return self.role
        if self.role == LAYER:
            return "layer %d" % self.layer
        return "layer %d %s" % (self.layer, self.role if self.expert is None else "expert %d" % self.expert)

    @property
    def fields(self) -> Dict[str, Any]:
        """The fields of its ranges."""
        fields: Dict[str, Any] = {"role": self.role}
        if self.layer is not None:
            fields["layer"] = self.layer
        if self.expert is not None:
            fields["expert"] = self.expert
        return fields


class Structure(NamedTuple):
    """What was found in a model."""

    model: Any  # the innermost model, whose forward pass is a step
    wrappers: Tuple[Any, ...]  # around it, the outermost first
    family: Optional[str]  # its model_type
    stack: Optional[str]  # the path of the list of layers
    layer_class: Optional[str]
    layers: Tuple[Part, ...]
    parts: Tuple[Part, ...]  # components, in the layers and outside of them
    missing: Dict[str, int]  # expected roles: the layers without it; -1: outside of the layers
    other_stacks: Tuple[Tuple[str, int, str], ...]  # path, length and class of lists that are not watched
    compiled: Tuple[str, ...]  # paths of what torch.compile runs, "" for the model: hooks inside do not run


# ---- trees of modules ----


def _children(module: Any) -> Iterator[Tuple[str, Any]]:
    for name, child in (getattr(module, "_modules", None) or {}).items():
        if child is not None:
            yield name, child


def _bases(module: Any) -> List[str]:
    return [base.__name__ for base in type(module).__mro__]


def _inner(module: Any) -> Optional[Any]:
    """The module inside a wrapper; None if this is not a wrapper."""
    for name in _bases(module):
        if name in WRAPPERS:
            return (getattr(module, "_modules", None) or {}).get(WRAPPERS[name])
    return None


def unwrap(module: Any) -> Tuple[Any, Tuple[Any, ...]]:
    """The innermost model, and the wrappers around it."""
    wrappers: List[Any] = []
    inner = _inner(module)
    while inner is not None and len(wrappers) < MAX_DEPTH:
        wrappers.append(module)
        module, inner = inner, _inner(inner)
    return module, tuple(wrappers)


def class_of(module: Any) -> str:
    """The class of the model inside the wrappers. FSDP2 makes a new class, with the model's behind FSDPModule."""
    names = _bases(unwrap(module)[0])
    if "FSDPModule" in names[1:]:
        names = names[names.index("FSDPModule") + 1 :]
    return names[0]


def _is_list(module: Any) -> bool:
    bases = _bases(module)
    return "ModuleList" in bases or "Sequential" in bases


def is_compiled(module: Any) -> bool:
    """Does torch.compile run it?"""
    return "OptimizedModule" in _bases(module) or is_compiled_in_place(module)


def is_compiled_in_place(module: Any) -> bool:
    """By module.compile(): its hooks are part of what is compiled. Those of torch.compile(module) are around it."""
    return (getattr(module, "__dict__", None) or {}).get("_compiled_call_impl") is not None


def _walk(module: Any, path: str = "", depth: int = 0, seen: Optional[Set[int]] = None) -> Iterator[Tuple[str, Any]]:
    """Every outermost list of modules below a module, by its path."""
    seen = set() if seen is None else seen
    if id(module) in seen or depth > MAX_DEPTH:
        return
    seen.add(id(module))
    for name, child in _children(module):
        child = unwrap(child)[0]
        below = path + "." * bool(path) + name
        if _is_list(child) and _elements(child):
            yield below, child
        else:
            yield from _walk(child, below, depth + 1, seen)


def _elements(stack: Any) -> List[Any]:
    """The elements of a list of layers; empty if it does not look like one."""
    elements = [child for _, child in _children(stack)]
    classes = {class_of(element) for element in elements}
    if "Sequential" in _bases(stack) and (len(classes) != 1 or len(elements) < 2 or not _has_children(elements[0])):
        return []
    return elements


def _has_children(module: Any) -> bool:
    return any(True for _ in _children(unwrap(module)[0]))


def _find_stack(model: Any) -> Tuple[Optional[str], Any, List[Tuple[str, int, str]]]:
    """The path of the list of layers, the list, and the others."""
    found = list(_walk(model))

    def rank(entry: Tuple[str, Any]) -> Tuple[Any, ...]:
        path, stack = entry
        elements = _elements(stack)
        known = KNOWN_PATHS.index(path) if path in KNOWN_PATHS else len(KNOWN_PATHS)
        same = len({class_of(element) for element in elements}) == 1
        return (_has_children(elements[0]), -known, same, len(elements))

    if not found:
        return None, None, []
    best = max(found, key=rank)
    others = [
        (path, len(_elements(stack)), class_of(_elements(stack)[0]))
        for path, stack in found
        if stack is not best[1] and len(_elements(stack)) > 1 and _has_children(_elements(stack)[0])
    ]
    return best[0], best[1], others


# ---- roles ----


def _role(name: str, names: Dict[str, str], patterns: Tuple[Tuple[str, str], ...]) -> Optional[str]:
    if name in names:
        return names[name]
    for pattern, role in patterns:
        if re.search(pattern, name, re.IGNORECASE):
            return role
    return None


def _is_idle(module: Any) -> bool:
    """A module that is not worth watching: it has neither weights nor submodules."""
    if type(module).__name__ in IDLE_CLASSES:
        return True
    return not _has_children(module) and not (getattr(module, "_parameters", None) or {}) and not _is_packed(module)


def _is_packed(module: Any) -> bool:
    """Quantised modules keep their weights elsewhere."""
    return hasattr(module, "_packed_params") or bool(getattr(module, "_buffers", None))


class _Finder:
    """Collects the parts of one model, each module once."""

    def __init__(self) -> None:
        self.parts: List[Part] = []
        self._seen: Set[int] = set()

    def add(self, module: Any, path: str, role: str, layer: Optional[int], expert: Optional[int] = None) -> None:
        if id(module) not in self._seen:
            self._seen.add(id(module))
            self.parts.append(Part(module, path, role, layer, expert))

    def outside(self, model: Any, stack_path: str) -> None:
        """The modules beside the way from the model to its layers, in the order in which they stand."""
        module, path = model, ""
        before: List[Part] = []
        after: List[Part] = []
        for step in stack_path.split("."):
            side = before
            behind: List[Part] = []
            for name, child in _children(unwrap(module)[0]):
                if name == step:
                    side = behind
                elif name in OUTSIDE_ROLES or not _is_idle(child):
                    side.append(Part(child, path + name, OUTSIDE_ROLES.get(name, name)))
            after = behind + after
            module = (getattr(unwrap(module)[0], "_modules", None) or {}).get(step)
            path += step + "."
            if module is None or _is_list(unwrap(module)[0]):
                break
        for part in before + after:
            self.add(part.module, part.path, part.role, None)

    def layer(self, module: Any, path: str, number: int) -> None:
        for name, child in _children(unwrap(module)[0]):
            role = _role(name, LAYER_ROLES, LAYER_PATTERNS)
            if role == ATTENTION and _has_children(child):
                self.add(child, path + name, ATTENTION, number)
                self.inside(child, path + name + ".", number, ATTENTION_ROLES, ATTENTION_PATTERNS)
            elif role == MLP and _has_children(child):
                self.add(child, path + name, MLP, number)
                self.mlp(child, path + name + ".", number)
            elif role in (ATTENTION, MLP) or role is None:
                if not _is_idle(child):
                    self.add(child, path + name, name, number)
            else:
                self.add(child, path + name, role, number)

    def mlp(self, module: Any, path: str, number: int) -> None:
        inner = unwrap(module)[0]
        names = dict(MLP_ROLES)
        names["gate"] = "router" if EXPERTS in inner._modules else "gate"
        experts = inner._modules.get(EXPERTS)
        if experts is not None and _is_list(experts):  # the list itself is never called
            for name, expert in _children(experts):
                index = int(name) if name.isdigit() else None
                self.add(expert, path + EXPERTS + "." + name, EXPERTS, number, index)
        self.inside(inner, path, number, names, MLP_PATTERNS)

    def inside(self, module: Any, path: str, number: int, names: Dict[str, str],
               patterns: Tuple[Tuple[str, str], ...], deeper: bool = True) -> None:
        """The parts of an attention or an MLP; of a part without a role, its own parts."""
        for name, child in _children(unwrap(module)[0]):
            role = _role(name, names, patterns)
            if _is_list(child):
                continue
            if role is not None:
                self.add(child, path + name, role, number)
            elif deeper and _has_children(child):
                self.inside(child, path + name + ".", number, names, patterns, deeper=False)
            elif not _is_idle(child):
                self.add(child, path + name, name, number)


# ---- what was expected ----


def _expected(family: str, config: Any) -> Tuple[str, ...]:
    roles = FAMILIES[family]
    if family == "stablelm" and not getattr(config, "use_parallel_residual", False):
        roles = (*roles, "norm2")
    if family in ("stablelm", "phi") and getattr(config, "qk_layernorm", False):
        roles = (*roles, "qk_norm")
    return roles


def _missing(model: Any, family: Optional[str], count: int, parts: List[Part]) -> Dict[str, int]:
    missing: Dict[str, int] = {}
    if family is None or family not in FAMILIES:
        return missing
    roles: List[Set[str]] = [set() for _ in range(count)]
    outside: Set[str] = set()
    for part in parts:
        (outside if part.layer is None else roles[part.layer]).add(part.role)
    expected = set(_expected(family, model.config))
    for have in roles:
        want = expected
        if {"router", EXPERTS} & have:
            want = (expected - set(_GATED)) | {"router", EXPERTS}
        for role in want - have:
            missing[role] = missing.get(role, 0) + 1
    for role in OUTSIDE_EXPECTED:
        if role not in outside and (role != "head" or HEADED.search(class_of(model))):
            missing[role] = -1
    return missing


def find(module: Any) -> Structure:
    """What a model is made of. Never raises for a tree of modules, whatever they are called."""
    model, wrappers = unwrap(module)
    family = getattr(getattr(model, "config", None), "model_type", None)
    family = family if isinstance(family, str) and family else None
    path, stack, others = _find_stack(model)
    finder, layers = _Finder(), []
    compiled = [""] if any(is_compiled(one) for one in (*wrappers, model)) else []
    for number, element in enumerate(_elements(stack) if stack is not None else ()):
        place = "%s.%d" % (path, number)
        layers.append(Part(element, place, LAYER, number))
        if is_compiled(element):
            compiled.append(place)
        finder.layer(element, place + ".", number)
    finder.outside(model, path or "")
    missing = _missing(model, family, len(layers), finder.parts)
    layer_class = class_of(layers[0].module) if layers else None
    return Structure(model, wrappers, family, path, layer_class, tuple(layers), tuple(finder.parts), missing,
                     tuple(others), tuple(compiled))

