# SPDX-License-Identifier: Apache-2.0
"""The structure of a watched model, as text and as fields of a mark."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from sonde import _structure


# The order in which the usual layer calls its parts; others follow.
ORDER = (
    "norm1", "self_attn", "q", "k", "v", "qkv", "qk_norm", "o", "norm2", "norm3", "mlp", "router", "gate", "up", "gate_up",
    "down", "experts", "shared_expert", "norm4",
)


class Summary(NamedTuple):
    """The contents of a structure, without its modules."""

    model: str  # its class
    wrappers: Tuple[str, ...]
    family: Optional[str]
    is_known: bool  # what the layers of this family have is known
    stack: Optional[str]
    layer_class: Optional[str]
    layers: int
    roles: Tuple[Tuple[str, int, int], ...]  # role, modules, and layers that have one
    outside: Tuple[str, ...]
    missing: Dict[str, int]
    other_stacks: Tuple[Tuple[str, int, str], ...]
    compiled: Tuple[str, ...]
    attention: str  # how the model computes it: "eager", "sdpa" …; "": it does not say


def of(structure: _structure.Structure) -> Summary:
    """The summary of a structure."""
    modules: Dict[str, int] = {}
    layers: Dict[str, "set[int]"] = {}
    outside: Dict[str, None] = {}
    for part in structure.parts:
        if part.layer is None:
            outside[part.role] = None
        else:
            modules[part.role] = modules.get(part.role, 0) + 1
            layers.setdefault(part.role, set()).add(part.layer)
    return Summary(
        model=_structure.class_of(structure.model),
        wrappers=tuple(type(wrapper).__name__ for wrapper in structure.wrappers),
        family=structure.family,
        is_known=structure.family in _structure.FAMILIES,
        stack=structure.stack,
        layer_class=structure.layer_class,
        layers=len(structure.layers),
        roles=tuple((role, modules[role], len(layers[role])) for role in sorted(modules, key=_place_of)),
        outside=tuple(outside),
        missing=structure.missing,
        other_stacks=structure.other_stacks,
        compiled=structure.compiled,
        attention=_attention_of(structure.model),
    )


def _attention_of(model: Any) -> str:
    config = getattr(model, "config", None)
    config = getattr(config, "text_config", None) or config
    name = getattr(config, "_attn_implementation", None)
    return name if isinstance(name, str) else ""


def _place_of(role: str) -> int:
    return ORDER.index(role) if role in ORDER else len(ORDER)


def _model_line(summary: Summary) -> str:
    words = [summary.model]
    if summary.family:
        words.append("(%s%s)" % (summary.family, "" if summary.is_known else ", not a family with a table"))
    if summary.wrappers:
        words.append("in " + ", ".join(summary.wrappers))
    return " ".join(words)


def layers_line(summary: Summary) -> str:
    """How many layers there are, of what class, and where."""
    if summary.stack is None:
        return "no list of layers was found: its own parts are watched"
    return "%d layers, %s at %s" % (summary.layers, summary.layer_class, summary.stack)


def roles_line(summary: Summary) -> str:
    """How many layers have each component."""
    return ", ".join(
        "%s %d/%d" % (role, layers, summary.layers) + (" (%d modules)" % count if count > layers else "")
        for role, count, layers in summary.roles
    )


def missing_line(summary: Summary) -> str:
    """Roles that the family has and this model does not."""
    return ", ".join(
        role if layers < 0 else "%s in %d of %d layers" % (role, layers, summary.layers)
        for role, layers in sorted(summary.missing.items())
    )


def others_line(summary: Summary) -> str:
    """Lists of layers beside the one that is watched."""
    return ", ".join("%s (%d x %s)" % other for other in summary.other_stacks)


def compiled_line(summary: Summary) -> str:
    """What torch.compile runs."""
    places = [place or "the model" for place in summary.compiled]
    return ", ".join(places[:3]) + (" and %d more" % (len(places) - 3) if len(places) > 3 else "")


def attention_line(summary: Summary) -> str:
    """Why weights of attention are not recorded."""
    if summary.attention in ("", "eager"):
        return ""
    return "a kernel of %s has none to show; a model of attn_implementation='eager' returns them" % summary.attention


def text(summary: Summary, watch: Any) -> str:
    """The summary for a person."""
    passes = "every forward pass" if watch.every == 1 else "one forward pass in %d" % watch.every
    if watch.level == "step":
        passes = "forward passes alone"
    lines = [
        _model_line(summary),
        "  level %s, %s" % (watch.level, passes),
        "  " + layers_line(summary),
    ]
    described: List[Tuple[str, str]] = [
        ("in the layers", roles_line(summary)),
        ("outside of them", ", ".join(summary.outside)),
        ("expected, not found", missing_line(summary)),
        ("not watched", others_line(summary)),
        ("compiled, where hooks do not run", compiled_line(summary)),
        ("weights of attention", attention_line(summary) if watch.takes_statistics else ""),
        ("not watched", watch.error or ""),
    ]
    lines += ["  %s: %s" % entry for entry in described if entry[1]]
    return "\n".join(lines)


def fields(summary: Summary, watch: Any) -> Dict[str, Any]:
    """The summary for the mark `structure`."""
    found: Dict[str, Any] = {
        "model": summary.model,
        "level": watch.level,
        "every": watch.every,
        "layers": summary.layers,
    }
    texts = {
        "wrappers": ", ".join(summary.wrappers),
        "family": summary.family or "",
        "stack": summary.stack or "",
        "layer_class": summary.layer_class or "",
        "components": roles_line(summary),
        "outside": ", ".join(summary.outside),
        "missing": missing_line(summary),
        "not_watched": others_line(summary),
        "compiled": compiled_line(summary),
        "attention": summary.attention,
    }
    found.update((name, value) for name, value in texts.items() if value)
    return found
