# SPDX-License-Identifier: Apache-2.0
"""Hooks for PyTorch 1.13 and later: optimizer steps, waiting for data, backward passes, collectives, compilation.

Nothing here waits for a device: a range is the time that the call took on the CPU. Nothing runs on one but norms of
gradients, where the command asks for them. docs/hooks.md says what each is called in a capture.
"""

import sys
from functools import wraps
from typing import Any, Callable, Dict, Optional, Tuple

from .. import _core, _gradients
from . import torch_profiler
from .registry import Function, Hook, given_options, guard
from .wrap import ranged

DOMAIN = "torch"
STEP = "optimizer"
WRAPPED_STEP = "__sonde_step__"


def is_compiling() -> bool:
    """Is torch.compile tracing the call? Its tracer puts True in place of this, and the recording is no part of its
    graph. A module that is not there yet is asked for at each call: torch.autograd is imported before it."""
    compiler = sys.modules.get("torch.compiler")
    return compiler is not None and compiler.is_compiling()


# ---- optimizer steps ----


def _step_seen() -> Callable[[Any], None]:
    """What is done when an optimizer has made a step."""
    options = _gradients.options_of(given_options(DOMAIN))
    gradients = _gradients.Gradients(options.every) if options.gradients else None
    ours = guard()

    def step_seen(optimizer: Any) -> None:
        _core.step(STEP)
        if gradients is not None and not is_compiling():
            ours.run(gradients.after_step, optimizer)

    return step_seen


def _register_step(register: Function) -> Function:
    """From 2.0 on, torch calls us after each step of every optimizer. Steps count with a closed gate, too, and in a
    compiled step, whose graph torch breaks by itself."""

    step_seen = _step_seen()

    def after_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        step_seen(optimizer)

    register(after_step)
    return register


def _wrap_step_of_class(original: Function) -> Function:
    """Before 2.0: torch wraps the step of a class when the first optimizer of it is made, and so do we."""

    step_seen = _step_seen()

    def wrap_step(step: Function) -> Function:
        @wraps(step)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = step(*args, **kwargs)
            step_seen(args[0])
            return result

        setattr(wrapper, WRAPPED_STEP, True)
        return wrapper

    @wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        optimizer_class = type(self)
        if not getattr(optimizer_class.step, WRAPPED_STEP, False):
            optimizer_class.step = wrap_step(optimizer_class.step)
        return result

    return wrapper


# ---- collectives ----

_C10D = "torch.distributed.distributed_c10d"


def _bytes_of(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(_bytes_of(item) for item in value)
    return value.numel() * value.element_size() if hasattr(value, "element_size") else 0


def _group(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The process group of a call, by its name and size; nothing where torch does not say."""
    module = sys.modules[_C10D]
    names = getattr(getattr(module, "_world", module), "pg_names", None) or getattr(module, "_pg_names", {})
    try:
        group = kwargs.get("group")
        if group is None:
            group = next((value for value in args if type(value).__name__.startswith("ProcessGroup")), None)
        if group is None:
            group = module._get_default_group()
        return {"group": str(names[group]), "group_size": int(group.size())}
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        return {}


def _collective(position: int, name: str) -> Callable[..., Dict[str, Any]]:
    """The fields of a call whose argument at `position`, or called `name`, is what this rank sends or receives."""

    def fields(*args: Any, **kwargs: Any) -> Dict[str, Any]:
        value = kwargs[name] if name in kwargs else args[position] if len(args) > position else None
        return {"bytes": _bytes_of(value), "async": bool(kwargs.get("async_op", False)), **_group(args, kwargs)}

    return fields


def _barrier(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    return {"async": bool(kwargs.get("async_op", False)), **_group(args, kwargs)}


# The argument that holds what this rank puts in, or for recv what it gets.
COLLECTIVES: Tuple[Tuple[str, int, str], ...] = (
    ("all_reduce", 0, "tensor"),
    ("broadcast", 0, "tensor"),
    ("reduce", 0, "tensor"),
    ("all_gather", 1, "tensor"),
    ("all_gather_into_tensor", 1, "input_tensor"),
    ("gather", 0, "tensor"),
    ("scatter", 0, "tensor"),
    ("reduce_scatter", 1, "input_list"),
    ("reduce_scatter_tensor", 1, "input"),
    ("all_to_all", 1, "input_tensor_list"),
    ("all_to_all_single", 1, "input"),
    ("send", 0, "tensor"),
    ("recv", 0, "tensor"),
    ("isend", 0, "tensor"),
    ("irecv", 0, "tensor"),
)


def _hook(module: str, attribute: str, make: Callable[[Function], Function], fallback: Optional[Hook] = None,
          optional: bool = False) -> Hook:
    return Hook("torch", module, attribute, make, fallback=fallback, optional=optional)


def _range(module: str, attribute: str, name: str, fields: Optional[Callable[..., Dict[str, Any]]] = None,
           optional: bool = False) -> Hook:
    return _hook(module, attribute, ranged(DOMAIN, name, fields, unless=is_compiling), optional=optional)


HOOKS: Tuple[Hook, ...] = (
    _hook("torch.optim.optimizer", "register_optimizer_step_post_hook", _register_step,
          fallback=_hook("torch.optim.optimizer", "Optimizer.__init__", _wrap_step_of_class)),
    _range("torch.utils.data.dataloader", "_BaseDataLoaderIter.__next__", "dataloader"),
    _range("torch.autograd", "backward", "backward"),
    _range(_C10D, "barrier", "barrier", _barrier),
    *(_range(_C10D, name, name, _collective(position, argument)) for name, position, argument in COLLECTIVES),
    # These are the compiler, which traces no call of its own. From 2.13 on torch says that it compiles all the while.
    _hook("torch._dynamo.convert_frame", "_compile", ranged(DOMAIN, "compile: trace")),
    _hook("torch._inductor.graph", "GraphLowering.compile_to_module", ranged(DOMAIN, "compile: generate code"),
          optional=True),
    *torch_profiler.HOOKS,
)
