# SPDX-License-Identifier: Apache-2.0
"""Watching a model: its forward passes, layers and components as ranges of a recording.

`watch(model)` registers hooks of PyTorch, which push and pop ranges of the domain "sonde.model": device work that is
launched inside belongs to them, and nothing is synchronised. The hooks return nothing, so that the model computes what
it computes without them. docs/hooks.md has the names and fields.

The model's own hooks are there from watch() to close(). Layers and components are watched while a forward pass is
instrumented, so that those between are as fast as without: by a `forward` of their own, since PyTorch takes twice as
long to call a module that has hooks as what we do in them; by hooks for statistics, which need what modules are given
and return. The model keeps what watches it, not the other way round.
"""

import contextlib
import re
import sys
import threading
import types
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, Union

from sonde import _configuration, _core, _experts, _structure, _summary
from sonde._log import describe, warn_once

DOMAIN = "sonde.model"
LEVELS = ("step", "layer", "component", "stats")
EPSILON = 1e-4  # at most this size counts as nothing in the sparsity of activations
MIN_TORCH = (2, 0)  # hooks that are called when forward raises, and with keyword arguments

Fields = Dict[str, Union[int, float, str, bool]]


class _Owner:
    """Of the ranges of one watch."""

    def __init__(self) -> None:
        self.is_open = False  # the watch is


_watches: "weakref.WeakKeyDictionary[Any, weakref.ref[Watch]]" = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def _no_fields() -> Fields:
    return {}


# What a forward pass is for, as fields of its range: the hooks of transformers know it.
of_request: Callable[[], Fields] = _no_fields


def _never() -> bool:
    return False


# Is torch.compile tracing the call? Its tracer puts True in place of this, and the recording is no part of its graph.
_is_compiling: Callable[[], bool] = _never


def open_ranges() -> int:
    """How many ranges this thread has open in the domain; for end_to()."""
    return len(_core.parts_open())


def end_to(count: int) -> None:
    """Ends the ranges of this thread beyond the first `count`."""
    _core.parts_end(count)


def _end_closed() -> None:
    """Ends ranges of a watch that another thread has closed while this one was in the model."""
    for place, owner in enumerate(_core.parts_open()):
        if isinstance(owner, _Owner) and not owner.is_open:
            end_to(place)
            return


class _Hook:
    """What a module calls. A copy of it, made with a copy of the model, or pickled, does nothing."""

    def __deepcopy__(self, _memo: Any) -> Any:
        return contextlib.nullcontext().__exit__

    def __reduce__(self) -> Any:
        return getattr, (contextlib.nullcontext(), "__exit__")


class _State(threading.local):
    """What a thread does in the watched model."""

    def __init__(self) -> None:
        self.frame: Any = None  # of the forward pass it is in; None: in none
        self.range: Optional[_core.part] = None  # of that pass
        self.depth = 0  # of the model in itself
        self.takes_statistics = False
        self.step = 0


# Between two of these calls the model has filled the caches: each line costs a microsecond.


def _around(part: _core.part, inner: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that has the range around it; nothing begins in a pass that is not instrumented."""
    begin, end = part.begin, part.end

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling():
            return inner(self, *args, **kwargs)
        begin()
        try:
            return inner(self, *args, **kwargs)
        finally:
            end()

    return forward


def _replicate_for_data_parallel(self: Any) -> Any:
    """For DataParallel, which copies what the module has of its own: the copy's forward is that of its class."""
    replica = type(self)._replicate_for_data_parallel(self)
    for name in ("forward", "_replicate_for_data_parallel"):
        replica.__dict__.pop(name, None)
    return replica


class _Begin(_Hook):
    """Before the forward of a layer or a component; nothing begins in a pass that is not instrumented."""

    def __init__(self, part: _core.part) -> None:
        self._begin = part.begin

    def __call__(self, *_args: Any) -> None:
        if not _is_compiling():
            self._begin()


class _End(_Hook):
    """After it, also when it raised."""

    def __init__(self, part: _core.part) -> None:
        self._end = part.end

    def __call__(self, *_args: Any) -> None:
        if not _is_compiling():
            self._end()


class _EndWithStatistics(_Hook):
    """The same, and a look at what the module was given and returned."""

    def __init__(self, watch: "Watch", part: _core.part, fields: Fields) -> None:
        self._watch, self._end, self._fields = watch, part.end, fields

    def __call__(self, module: Any, args: Any, output: Any) -> None:
        if not _is_compiling():
            self._watch._take(module, self._fields, args, output)
            self._end()


class _BeginStep(_Hook):
    """Before a forward pass of the model, or of the compiled code that stands for it."""

    def __init__(self, watch: "Watch", is_compiled: bool) -> None:
        self._watch, self._is_compiled = watch, is_compiled

    def __call__(self, _module: Any, args: Any, kwargs: Any) -> None:
        if not _is_compiling():
            self._watch._guarded(self._watch._begin_step, args, kwargs, sys._getframe(1), self._is_compiled)


class _EndStep(_Hook):
    def __init__(self, watch: "Watch") -> None:
        self._watch = watch

    def __call__(self, _module: Any, _args: Any, output: Any) -> None:
        if not _is_compiling():
            self._watch._guarded(self._watch._end_step, output is not None)


class _Entry:
    """The hooks of one module, which are put in and taken out again and again."""

    def __init__(self, module: Any, begin: _Hook, end: _Hook) -> None:
        self._module = weakref.ref(module)
        self._begin, self._end = begin, end
        self._handles: List[Any] = []

    def put_in(self, with_kwargs: bool = False) -> None:
        module = self._module()
        if module is None or self._handles:
            return
        self._handles.append(module.register_forward_pre_hook(self._begin, prepend=True, with_kwargs=with_kwargs))
        self._handles.append(module.register_forward_hook(self._end, always_call=True))

    def take_out(self) -> None:
        while self._handles:
            self._handles.pop().remove()

    # As handles would, in a tenth of the time: this is done between two tokens.

    def pause(self) -> None:
        module = self._module()
        if module is not None and self._handles:
            begin, end = self._handles
            module._forward_pre_hooks.pop(begin.id, None)
            module._forward_hooks.pop(end.id, None)
            module._forward_hooks_always_called.pop(end.id, None)

    def resume(self) -> None:
        module = self._module()
        if not self._handles:
            self.put_in()
        elif module is not None:
            begin, end = self._handles
            module._forward_pre_hooks[begin.id] = self._begin
            module._forward_pre_hooks.move_to_end(begin.id, last=False)
            module._forward_hooks[end.id] = self._end
            module._forward_hooks_always_called[end.id] = True


class _Forward:
    """The forward of one module, which is put in and taken out again and again."""

    def __init__(self, module: Any, part: _core.part) -> None:
        self._module, self._part = weakref.ref(module), part
        self._around: Any = None
        self._inner: Any = None  # what it is around: the forward of the class
        self._hooks = _Entry(module, _Begin(part), _End(part))

    def resume(self) -> None:
        module = self._module()
        if module is None or self._is_in(module):
            return
        if not _has_forward_of_class(module):
            self._hooks.resume()
            return
        if self._inner is not type(module).forward:
            self._inner = type(module).forward
            self._around = _around(self._part, self._inner)
        # Not by setattr(): modules look at what they are given.
        module.__dict__["forward"] = types.MethodType(self._around, module)
        module.__dict__["_replicate_for_data_parallel"] = types.MethodType(_replicate_for_data_parallel, module)

    def pause(self) -> None:
        self._hooks.pause()
        module = self._module()
        # Where somebody has put another one around ours, that one stays: it begins nothing when nothing is watched.
        if module is not None and self._is_in(module):
            del module.__dict__["forward"]
            module.__dict__.pop("_replicate_for_data_parallel", None)

    def take_out(self) -> None:
        self.pause()
        self._hooks.take_out()

    def _is_in(self, module: Any) -> bool:
        ours: Any = module.__dict__.get("forward")
        return self._around is not None and getattr(ours, "__func__", None) is self._around


def _has_forward_of_class(module: Any) -> bool:
    """A function of Python that is nobody else's: TorchScript has none, and Accelerate puts in its own."""
    return (
        "forward" not in module.__dict__
        and isinstance(type(module).forward, types.FunctionType)
        and "ScriptModule" not in {kind.__name__ for kind in type(module).__mro__}
    )


class Watch:
    """A model that is watched, until close(). As text it is what was found in the model."""

    def __init__(self, model: Any, level: str, every: int, statistics: bool, epsilon: float) -> None:
        self.level, self.every = level, every
        self.steps = self.instrumented_steps = 0  # forward passes; those with ranges inside
        self.error: Optional[str] = None  # what ended the watching
        self.is_automatic = False  # by the hooks of transformers
        self._model = weakref.ref(model)
        self._statistics: Any = None
        self._statistics_thread: Optional[int] = None
        self.takes_statistics = statistics
        if statistics:
            from sonde._activations import Activations

            self._statistics = Activations(DOMAIN, epsilon)
        self._owner = _Owner()
        self._state = _State()
        self._passes = {False: 0, True: 0}  # of one token a sequence, and others
        self._steps_in: List[_Entry] = []
        self._entries: List[Union[_Entry, _Forward]] = []
        self._are_in = False
        self._active = 0  # threads in a forward pass
        self._window = 0
        self.find()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return _summary.text(self.summary, self)

    def __repr__(self) -> str:
        return "<sonde.watch of %s, level %s, one in %d>" % (self.summary.model, self.level, self.every)

    def find(self) -> None:
        """Looks at what the model is made of, again where that has changed."""
        model = self._model()
        if model is None:
            return
        structure = _structure.find(model)
        self.summary = _summary.of(structure)
        self._configuration = _configuration.of(structure)
        self._steps_in = [_Entry(structure.model, _BeginStep(self, False), _EndStep(self))]
        self._steps_in += [
            _Entry(wrapper, _BeginStep(self, True), _EndStep(self))
            for wrapper in structure.wrappers
            if _structure.is_compiled(wrapper)
        ]
        self._entries = [self._entry(part) for part in _chosen(structure, self.level)]
        self._uncounted = [(part.layer, weakref.ref(part.module)) for part in structure.layers]

    def _entry(self, part: _structure.Part) -> Union[_Entry, _Forward]:
        made = _core.part(self._owner, part.name, DOMAIN, part.fields)
        if self._statistics is None:
            return _Forward(part.module, made)
        return _Entry(part.module, _Begin(made), _EndWithStatistics(self, made, part.fields))

    # ---- from watch() to close() ----

    def start(self) -> None:
        """Puts the hooks of the model itself in. Those of its parts follow with the first pass that is instrumented."""
        with _lock:
            model = self._model()
            if self._owner.is_open or model is None:
                return
            self._owner.is_open = True
            _watches[_structure.unwrap(model)[0]] = weakref.ref(self)
            for entry in self._steps_in:
                entry.put_in(with_kwargs=True)

    def close(self) -> None:
        """Takes all hooks out. Closing again does nothing."""
        with _lock:
            if not self._owner.is_open:
                return
            self._owner.is_open = False
            for entry in (*self._steps_in, *self._entries):
                entry.take_out()
            self._are_in = False
            model = self._model()
            if model is not None:
                _watches.pop(_structure.unwrap(model)[0], None)
        self.abandon()
        if self._statistics is not None and _core.is_open():
            self._guarded(self._statistics.record, True)
            self._guarded(_experts.flush, self._owner)
        if self.steps == 0 and self.error is None and not self.is_automatic and _core.is_open():
            warn_once("watch-no-pass", NO_PASS % self.summary.model)

    def abandon(self) -> None:
        """Ends what this thread has begun in the model: an exception that runs no hooks left it."""
        state = self._state
        if state.frame is None:
            return
        state.frame, state.depth = None, 0
        if state.range is not None:
            state.range.end()
            state.range = None
        with _lock:
            self._active -= 1
            if state.takes_statistics:
                self._statistics.drop()
                self._statistics_thread, state.takes_statistics = None, False

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        """Calls a function that must not fail in the program: after a failure nothing more is recorded."""
        if self.error is not None:
            self.abandon()
            return
        try:
            function(*args)
        except Exception as error:
            self.error = describe(error)
            self.abandon()
            warn_once(
                "watch-failed", "watching %s failed, and goes on without: %s" % (self.summary.model, self.error)
            )

    # ---- forward passes ----

    def _begin_step(self, args: Any, kwargs: Any, frame: Any, is_compiled: bool) -> None:
        state = self._state
        if state.frame is not None:
            if _is_running(state.frame, frame):
                state.depth += 1  # the model calls itself, or compiled code the model: that is one pass
                return
            self.abandon()
        _end_closed()
        batch, tokens = _shape_of(args, kwargs)
        is_open = _core.is_open()
        with _lock:
            self._active += 1
            state.frame, state.step = frame, self.steps
            self.steps += 1
            number = self._passes[tokens == 1]
            self._passes[tokens == 1] += 1
            chosen = is_open and bool(self._entries) and not is_compiled and number % self.every == 0
            self._change(chosen)
            if chosen and self._statistics is not None and self._statistics_thread is None and not _is_capturing():
                self._statistics_thread, state.takes_statistics = threading.get_ident(), True
            self.instrumented_steps += chosen
        if not is_open:
            return
        if self._window != _core.window():
            self._window = _core.window()
            _core.mark("structure", DOMAIN, _summary.fields(self.summary, self))
            _core.mark("configuration", DOMAIN, self._configuration)
        fields: Fields = {"role": _structure.STEP, "step": state.step, "instrumented": chosen}
        if tokens is not None and batch is not None:
            fields.update(batch=batch, tokens=tokens)
        fields.update(of_request())
        fields["model"] = self.summary.model
        state.range = _core.part(self._owner, _structure.STEP, DOMAIN, fields)
        state.range.begin_outermost(chosen)

    def _end_step(self, is_complete: bool) -> None:
        state = self._state
        if state.frame is None:
            return
        if state.depth:
            state.depth -= 1
            return
        takes_statistics = state.takes_statistics and is_complete
        if takes_statistics:
            self._statistics.end(state.step)
            _experts.read()
        self.abandon()
        if takes_statistics:
            self._take_parameters()

    def _change(self, are_in: bool) -> None:
        """Has the hooks of parts in or out. Others may be in a pass with them: then they stay, and say nothing."""
        if are_in == self._are_in or not self._owner.is_open or (self._active > 1 and not are_in):
            return
        self._are_in = are_in
        for entry in self._entries:
            if are_in:
                entry.resume()
            else:
                entry.pause()

    def _take(self, module: Any, fields: Fields, args: Any, output: Any) -> None:
        if not self._state.takes_statistics:
            return
        role = fields["role"]
        self._guarded(self._statistics.take, fields, output)
        if role in _structure.WITH_INPUT and args:
            self._guarded(self._statistics.take, fields, args[0], "activation.input")
        elif role == _structure.ATTENTION:
            self._guarded(self._statistics.take_attention, fields, output)
        elif role == "router":
            self._guarded(self._count_experts, module, fields, output)

    def _take_parameters(self) -> None:
        """Of one layer, after a pass: those of all would hold the model up."""
        with _lock:
            if not self._uncounted:
                return
            layer, reference = self._uncounted.pop(0)
        module = reference()
        if module is not None:
            self._statistics.take_parameters({"role": _structure.LAYER, "layer": layer}, module)

    def _count_experts(self, module: Any, fields: Fields, output: Any) -> None:
        """Of routers that return what they chose, as those of fused experts: (logits, weights, ids)."""
        if not isinstance(output, tuple) or len(output) < 3 or output[2].is_floating_point():
            return
        layer = fields.get("layer")
        logits = output[0]
        experts = getattr(module, "num_experts", logits.shape[-1])
        if not logits.is_floating_point() or logits.shape[-1] != experts:
            logits = None
        number = layer if isinstance(layer, int) else None
        _experts.count(DOMAIN, (self._owner, layer), "", number, experts, output[1], output[2], logits)


NO_PASS = (
    "no forward pass of %s was seen: hooks do not run in code of torch.compile, nor where a CUDA graph is replayed; "
    "kernels and graph nodes are in the report all the same"
)


def _chosen(structure: _structure.Structure, level: str) -> List[_structure.Part]:
    """The parts to watch, without those inside of what torch.compile runs."""
    parts: List[_structure.Part] = []
    if level != "step":
        parts += structure.layers
    if level in ("component", "stats"):
        parts += structure.parts
    below = tuple(place + "." for place in structure.compiled if place)
    chosen: Dict[int, _structure.Part] = {}  # a module that is in several places is that of the first
    for part in parts:
        if not part.path.startswith(below) and not _structure.is_compiled_in_place(part.module):
            chosen.setdefault(id(part.module), part)
    return list(chosen.values())


def _is_running(frame: Any, current: Any) -> bool:
    """Is the frame among those that have called the current one?"""
    while current is not None:
        if current is frame:
            return True
        current = current.f_back
    return False


def _is_capturing() -> bool:
    """Is a CUDA graph captured? What is done now would be done again in each of its replays."""
    cuda = sys.modules["torch"].cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def _shape_of(args: Any, kwargs: Any) -> Tuple[Optional[int], Optional[int]]:
    """Sequences and tokens of each in a forward pass, from the shape alone; None where it does not say."""
    for name in ("decoder_input_ids", "input_ids", "decoder_inputs_embeds", "inputs_embeds"):
        shape: Any = getattr(kwargs.get(name), "shape", ())
        if len(shape) >= 2:
            return int(shape[0]), int(shape[1])
    first: Any = args[0] if args else None
    shape = getattr(first, "shape", ())
    if len(shape) == 2 and not first.is_floating_point():
        return int(shape[0]), int(shape[1])
    return None, None


def watched(model: Any) -> Optional[Watch]:
    """What watches the model, or what is inside of its wrappers."""
    reference = _watches.get(_structure.unwrap(model)[0])
    return reference() if reference is not None else None


def _check(model: Any, level: str, every: int, epsilon: float) -> None:
    if not hasattr(model, "register_forward_pre_hook"):
        raise TypeError("sonde.watch() needs a torch.nn.Module, not %r" % type(model))
    if level not in LEVELS:
        raise ValueError("level must be one of %s, not %r" % (", ".join(LEVELS), level))
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError("every must be a whole number from 1 on: one forward pass in so many; not %r" % (every,))
    if not epsilon >= 0:
        raise ValueError("epsilon must be a size from 0 on, not %r" % (epsilon,))


def _release(torch: Any) -> Tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2])


def is_possible() -> bool:
    """Has this PyTorch what watching needs?"""
    import torch

    return _release(torch) >= MIN_TORCH


def make(model: Any, level: str, every: int, statistics: bool, epsilon: float = EPSILON) -> Watch:
    """A watch that has not started."""
    global _is_compiling
    import torch

    compiler: Any = getattr(torch, "compiler", None)
    _is_compiling = getattr(compiler, "is_dynamo_compiling", getattr(compiler, "is_compiling", _never))
    return Watch(model, level, every, statistics or level == "stats", epsilon)


def watch(
    model: Any, level: str = "layer", every: int = 1, statistics: bool = False, *, epsilon: float = EPSILON
) -> Watch:
    """Records what a model does: its forward passes, its layers, or their components, as ranges.

    model       a torch.nn.Module, also one in wrappers of PEFT, DDP, FSDP or torch.compile
    level       "step": forward passes alone; "layer": layers, too; "component": and what is in them; "stats": the
                same with statistics
    every       one forward pass in so many has ranges inside; those that read a prompt are counted by themselves
    statistics  record what the outputs of the watched modules are like, at the last position, what went into norms and
                the MLP's last matrix, weights of attention where modules return them, and parameters near 0
    epsilon     values of at most this size count as nothing in the statistics' sparsity

    Returns what is to be closed, or used in a `with`; as text it says what was found. A model is watched once at a
    time. Without a recording nothing is recorded, and a forward pass takes some microseconds longer.
    """
    _check(model, level, every, epsilon)
    before = watched(model)
    if before is not None:
        if not before.is_automatic:
            raise ValueError("the model is watched already: close that first")
        before.close()
    made = make(model, level, every, statistics, epsilon)
    if is_possible():
        made.start()
    else:
        made.error = "this PyTorch has no hooks that run when a forward pass raises; 2.0 has"
        warn_once("watch-release", "%s is not watched: %s" % (made.summary.model, made.error))
    return made
