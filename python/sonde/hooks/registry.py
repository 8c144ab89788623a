# SPDX-License-Identifier: Apache-2.0
"""What a hook is, and how it is installed. Loaded when the package of a group is imported."""

import importlib
import os
import sys
from dataclasses import dataclass
from functools import update_wrapper
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .finder import APPLIED, ERROR, NOT_FOUND, WAITING, say, sentence

Function = Callable[..., Any]
INTERFACE = 1  # that of the finder, which may come from another installation
MARK = "__sonde_hooks__"  # on a wrapper: the hooks that are in it


def given_options(group: str) -> List[Tuple[str, str]]:
    """What follows a group in $SONDE_HOOKS, "torch,transformers:layer:every=8": (key, value or ""); `sonde record` has checked it."""
    options = []
    for entry in os.environ.get("SONDE_HOOKS", "").split(","):
        name, *given = entry.split(":")
        for option in given if name == group else ():
            key, _, value = option.partition("=")
            options.append((key, value))
    return options


@dataclass(frozen=True)
class Hook:
    """One function of a framework and how it is wrapped.

    group      the group it is in
    module     the module that defines the function
    attribute  "function" or "Class.method" in it
    make       gets the function, without staticmethod or classmethod around it, and returns the wrapper; see wrap
    needs      more attributes of the module that the wrapper uses
    fallback   the hook to use where this one's attribute is missing, in releases that have another
    optional   not every release has it: that it is missing is not said

    A `make` that returns the function itself has registered with it: nothing is wrapped.
    """

    group: str
    module: str
    attribute: str
    make: Callable[[Function], Function]
    needs: Tuple[str, ...] = ()
    fallback: Optional["Hook"] = None
    optional: bool = False


class Guard:
    """Runs the recording half of a wrapper: an exception in it appears in the table of hooks, and is not raised."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._failures = 0

    def run(self, function: Function, /, *args: Any, **kwargs: Any) -> Any:
        """What the function returns; None if it fails."""
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self._failures += 1
            if self._failures & (self._failures - 1) == 0:  # the 1st, 2nd, 4th, 8th …
                times = "once" if self._failures == 1 else "%d times" % self._failures
                _say(self._hook, ERROR, "applied, but recording failed %s: %s" % (times, sentence(error)))
            return None


_hooks: Dict[str, List[Hook]] = {}  # by module
_done: Dict[str, Any] = {}  # the modules that were looked at, as they were
_making: Optional[Hook] = None


def guard() -> Guard:
    """A guard for the hook that is being made; for use in the `make` of a hook."""
    if _making is None:
        raise RuntimeError("sonde.hooks.registry.guard() is for the make functions of hooks")
    return Guard(_making)


def activate(group: str) -> Set[str]:
    """Loads the hooks of a group and returns the modules that they are for.

    Raises ImportError where the extension of the package is missing: without it there is nothing to record with.
    """
    core = importlib.import_module("sonde._core")
    if getattr(core, "ABSENT", ""):
        raise ImportError(core.ABSENT)
    hooks = importlib.import_module("sonde.hooks." + group).HOOKS
    for hook in hooks:
        _hooks.setdefault(hook.module, []).append(hook)
        if not hook.optional:
            _say(hook, WAITING)
    return {hook.module for hook in hooks}


def apply(name: str) -> None:
    """Installs the hooks of a module after it was executed; again after it was reloaded."""
    module = sys.modules.get(name)
    if module is None:
        return
    _done[name] = module
    for hook in _hooks.get(name, ()):
        try:
            _apply_first(hook, module)
            _say(hook, APPLIED)
        except _Missing as missing:
            if not hook.optional:
                _say(hook, NOT_FOUND, str(missing))
        except Exception as error:
            _say(hook, ERROR, sentence(error))


def apply_imported() -> None:
    """The same for modules that were imported before they were watched."""
    for name in list(_hooks):
        module = sys.modules.get(name)
        if module is None or _done.get(name) is module:
            continue
        if not getattr(getattr(module, "__spec__", None), "_initializing", False):
            apply(name)


def _say(hook: Hook, state: str, detail: str = "") -> None:
    say(hook.group, hook.module, hook.attribute, state, detail)


class _Missing(Exception):
    """An attribute is missing; the message names it."""


def _namespace(owner: Any) -> Dict[str, Any]:
    """A module's own names, without loading those that it makes when they are asked for."""
    if isinstance(owner, ModuleType):
        names: Dict[str, Any] = ModuleType.__getattribute__(owner, "__dict__")
        return names
    return getattr(owner, "__dict__", {})


def _lookup(owner: Any, name: str, path: str) -> Any:
    """The attribute as it is stored: a staticmethod stays one. Looks through the bases of a class."""
    for place in owner.__mro__ if isinstance(owner, type) else (owner,):
        if name in _namespace(place):
            return _namespace(place)[name]
    if isinstance(owner, (type, ModuleType)):
        raise _Missing("there is no %s" % path)
    try:
        return getattr(owner, name)  # an object that was put in place of the module
    except AttributeError:
        raise _Missing("there is no %s" % path) from None


def _find(module: Any, attribute: str) -> Tuple[Any, str, Any]:
    """The owner of an attribute, its name there and its value."""
    owner, value, path = module, module, ""
    name = ""
    for name in attribute.split("."):
        path += "." * bool(path) + name
        owner, value = value, _lookup(value, name, path)
    return owner, name, value


def _apply_first(hook: Hook, module: Any) -> None:
    """The hook, or its fallback; the error names what the first one lacks."""
    try:
        _apply_one(hook, module)
    except _Missing as missing:
        if hook.fallback is None:
            raise
        try:
            _apply_first(hook.fallback, module)
        except _Missing as also:
            raise _Missing("%s, and %s" % (missing, also)) from None


def _apply_one(hook: Hook, module: Any) -> None:
    global _making
    owner, name, value = _find(module, hook.attribute)
    for need in hook.needs:
        _find(module, need)
    method_kind = type(value) if isinstance(value, (staticmethod, classmethod)) else None
    function = value.__func__ if method_kind else value
    if not callable(function):
        raise TypeError("%s is a %s and cannot be called" % (hook.attribute, type(function).__name__))
    before: Tuple[Hook, ...] = getattr(function, MARK, ())
    if hook in before:
        return  # a reload has not made it anew
    _making = hook
    try:
        wrapper = hook.make(function)
    finally:
        _making = None
    if wrapper is not function:
        if getattr(wrapper, "__wrapped__", None) is not function:
            update_wrapper(wrapper, function)
        setattr(owner, name, method_kind(wrapper) if method_kind else wrapper)
    setattr(wrapper, MARK, before + (hook,))
