# SPDX-License-Identifier: Apache-2.0
"""Models that generate() is called on, watched while it runs.

`--hooks transformers:LEVEL:every=N` says how: with "step", which is the default, forward passes alone; `sonde.watch`
has the other levels. Between calls of generate() a model has no hooks of ours. A model that the program watches
itself is left to it.
"""

import threading
import weakref
from typing import Any, Callable, Iterable, NamedTuple, Optional, Tuple

from .. import _structure, _summary, _watch
from .finder import APPLIED, NOT_FOUND, say
from .registry import given_options
from .wrap import Fields

GROUP = "transformers"


class Options(NamedTuple):
    """What follows the name of the group in $SONDE_HOOKS."""

    level: str = "step"
    every: int = 1


def options_of(given: Iterable[Tuple[str, str]]) -> Options:
    options = Options()
    for key, value in given:
        if key == "every" and value.isdigit() and int(value) > 0:
            options = options._replace(every=int(value))
        elif key in _watch.LEVELS:
            options = options._replace(level=key)
    return options


class _Use:
    """A model, and how many calls of generate() are in it."""

    def __init__(self, watch: _watch.Watch, modules: int) -> None:
        self.watch = watch
        self.modules = modules  # a sum of their addresses
        self.calls = 0
        self.is_said = False


class _Watching(NamedTuple):
    use: _Use
    open_ranges: int  # of this thread, before
    steps: int


_lock = threading.Lock()
_uses: "weakref.WeakKeyDictionary[Any, _Use]" = weakref.WeakKeyDictionary()
_options: Optional[Options] = None


def set_fields(function: Callable[[], Fields]) -> None:
    """The fields that forward passes of this process get."""
    _watch.of_request = function


def _modules(model: Any, level: str) -> int:
    """Changes when modules of the model are replaced."""
    return hash(tuple(map(id, model.modules()))) if level != "step" else 0


def _use_of(model: Any, options: Options) -> _Use:
    use, modules = _uses.get(model), _modules(model, options.level)
    if use is None:
        use = _Use(_watch.make(model, options.level, options.every, False), modules)
        use.watch.is_automatic = True
        _uses[model] = use
    elif use.modules != modules and use.calls == 0:
        use.modules = modules
        use.watch.find()
    return use


def enter(model: Any) -> Optional[_Watching]:
    """Watches the model until leave(); None if it is not watched."""
    global _options
    if model is None or not hasattr(model, "register_forward_pre_hook"):
        return None
    if _options is None:
        _options = options_of(given_options(GROUP))
    with _lock:
        other = _watch.watched(model)
        if other is not None and not other.is_automatic:
            return None
        if not _watch.is_possible():
            return None
        use = _use_of(model, _options)
        if use.watch.error is not None:
            return None
        use.calls += 1
        use.watch.start()
        _say(use)
        return _Watching(use, _watch.open_ranges(), use.watch.steps)


def leave(watching: _Watching, passes: int) -> None:
    """Ends what enter() began; the loop counted `passes` of the model (0: not known)."""
    use = watching.use
    use.watch.abandon()
    _watch.end_to(watching.open_ranges)
    with _lock:
        use.calls -= 1
        seen = use.watch.steps - watching.steps
        if use.calls == 0:
            use.watch.close()
    if passes > seen:
        say(GROUP, use.watch.summary.model, "forward", NOT_FOUND,
            "%d of %d forward passes of a call ran in code of torch.compile, or as a graph, where hooks do not run: "
            "their layers are not known, their kernels are" % (passes - seen, passes))


def _say(use: _Use) -> None:
    """The summary, once, for the table of hooks."""
    if use.is_said:
        return
    use.is_said = True
    summary, level = use.watch.summary, use.watch.level
    if level == "step":
        return
    found = [_summary.layers_line(summary)]
    if level != "layer":
        found += [_summary.roles_line(summary), "outside of them " + ", ".join(summary.outside)]
    say(GROUP, summary.model, _structure.LAYER, APPLIED, "; ".join(found))
    if summary.missing and level != "layer":
        say(GROUP, summary.model, "components", NOT_FOUND, _summary.missing_line(summary))
    if level == "stats" and _summary.attention_line(summary):
        say(GROUP, summary.model, "weights of attention", NOT_FOUND, _summary.attention_line(summary))
    if summary.compiled:
        say(GROUP, summary.model, "compiled parts", NOT_FOUND,
            "hooks do not run in code of torch.compile: " + _summary.compiled_line(summary))
