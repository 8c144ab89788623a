# SPDX-License-Identifier: Apache-2.0
"""Watches which modules a program imports, and calls the registry of hooks for those that have hooks.

The bootstrap executes this file when a package with hooks is asked for. That may be a mere question whether it is
there, so that this imports nothing that Python has not loaded by then; the rest comes with the package.
"""

import os
import sys
from _thread import _local

TYPE_CHECKING = False  # typing takes longer to import than all else here
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

# Each group of hooks is the module sonde.hooks.<group>, loaded when the package of its name begins to be imported.
GROUPS = ("torch", "transformers", "vllm")

# Modules of Python that are changed, and the files beside this one that do it. Not groups: they record nothing.
PATCHES = {"threading": "thread_names.py", "multiprocessing.util": "child_end.py"}

# What this file, which comes with the program, and the package agree on: the calls of `registry` below, the lines of
# say(), and the names and fields that analyses look for. A later number is another agreement.
INTERFACE = 1

# What `sonde record` shows of a hook. The file is read by src/collect/hook_status.c.
WAITING, APPLIED, NOT_FOUND, ERROR = "waiting", "applied", "not found", "error"


def say(group: str, module: str, attribute: str, state: str, detail: str = "") -> None:
    """Writes the state of one hook into the session's folder; the last line about a hook counts.

    The line is there at once, so that it outlives whatever ends this process.
    """
    line = "\t".join(" ".join(str(field).split())[:400] for field in (group, module, attribute, state, detail))
    try:
        path = os.path.join(os.environ["SONDE_SESSION"], "hooks.%d" % os.getpid())
        out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (KeyError, OSError):
        return  # no session, or one that has ended
    try:
        os.write(out, (line + "\n").encode("utf-8", "replace"))
    except OSError:
        pass
    finally:
        os.close(out)


def sentence(error: BaseException) -> str:
    """An exception in one line."""
    return "%s: %s" % (type(error).__name__, error)


class _Loader:
    """Replaces the loader of a watched module until the module is executed."""

    def __init__(self, finder: "HookFinder", spec: "ModuleSpec") -> None:
        self._finder = finder
        self._spec = spec
        self._loader: "Any" = spec.loader

    def __getattr__(self, name: str) -> "Any":
        if name in ("_finder", "_spec", "_loader"):
            raise AttributeError(name)  # a copy that has none yet
        return getattr(self._loader, name)

    def create_module(self, spec: "ModuleSpec") -> "Any":
        return self._loader.create_module(spec)

    def exec_module(self, module: "ModuleType") -> None:
        # Not module.__dict__: a lazy module would begin to load here.
        namespace = type(sys).__getattribute__(module, "__dict__")
        for owner in (self._spec, namespace.get("__spec__")):
            if owner is not None and owner.loader is self:
                owner.loader = self._loader
        if namespace.get("__loader__") is self:
            namespace["__loader__"] = self._loader
        self._finder.before(self._spec.name)
        self._loader.exec_module(module)
        self._finder.after(self._spec.name)


class HookFinder:
    """Finds no module itself: what the finders behind it find is handed on, with a loader that tells of the end.

    `watched` holds the names of the modules to tell of.
    """

    def __init__(self) -> None:
        self.groups: "Set[str]" = set()
        self.watched: "Set[str]" = set()
        self._registry: "Any" = None
        self._asking = _local()

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Optional[ModuleSpec]":
        """The spec of a watched module; None for others, and if no finder finds it."""
        asking = self._asking.__dict__.setdefault("names", set())
        if name not in self.watched or name in asking:
            return None
        asking.add(name)  # a finder may ask for the same module, and reach us again
        try:
            spec = self._ask_others(name, path, target)
        finally:
            asking.discard(name)
        if spec is None or spec.loader is None:
            return spec
        if hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(self, spec)  # type: ignore[assignment]
        else:
            say(name.partition(".")[0], name, "-", ERROR, "its loader has no exec_module: %r" % spec.loader)
        return spec

    def _ask_others(self, name: str, path: "Any", target: "Any") -> "Optional[ModuleSpec]":
        finders: "List[Any]" = list(sys.meta_path)
        if self in finders:
            finders = finders[finders.index(self) + 1 :]
        for finder in finders:
            find_spec = getattr(finder, "find_spec", None)
            spec: "Optional[ModuleSpec]" = find_spec and find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def before(self, name: str) -> None:
        """A watched module is about to be executed."""
        if name in self.groups:
            self.activate(name)

    def after(self, name: str) -> None:
        """A watched module has been executed without an error. It may have replaced itself by another object."""
        if name in PATCHES:
            _patch(name)
            return
        if self._registry is None:
            return
        try:
            self._registry.apply(name)
            self._registry.apply_imported()
        except Exception as error:
            say(name.partition(".")[0], name, "-", ERROR, sentence(error))

    def activate(self, group: str) -> None:
        """Loads the hooks of a group, from then on their modules are watched. Loads each group once."""
        try:
            if self._registry is None:
                self._registry = _load_registry()
            self.watched.update(self._registry.activate(group))
        except Exception as error:  # an import of the program's is under way: it goes on
            say(group, "-", "-", ERROR, sentence(error))

    def add(self, groups: "Iterable[str]") -> None:
        """Watches the packages of these groups, and patches modules that the program has already imported."""
        self.groups.update(groups)
        self.watched.update(groups)
        for group in groups:
            if group in sys.modules:
                self.before(group)
                self.after(group)


def _patch(module: str) -> None:
    """Executes a file of PATCHES, which is no module of the program's, and has it change the module."""
    name = PATCHES[module]
    namespace: "Dict[str, Any]" = {"__name__": "sonde.hooks." + name[: -len(".py")]}
    try:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
        with open(path, encoding="utf-8") as source:
            exec(compile(source.read(), path, "exec"), namespace)
        namespace["apply"](sys.modules[module])
    except Exception as error:
        say(module, module, "-", ERROR, sentence(error))


def _load_registry() -> "Any":
    """The registry of the package that the program imports as sonde: installed by pip, or the one beside this file."""
    try:
        from sonde.hooks import registry
    except ImportError as error:
        if error.name not in ("sonde.hooks", "sonde.hooks.registry"):
            raise
        raise ImportError(
            "the program imports %s as sonde: hooks need the package of the distribution sonde-profiler; rename that one, or keep "
            "the two in different environments" % getattr(sys.modules.get("sonde"), "__file__", "another package")
        ) from None

    theirs = getattr(registry, "INTERFACE", 0)
    if theirs != INTERFACE:
        update = "the package" if theirs < INTERFACE else "the program sonde"
        raise ImportError(
            "the package %s has hooks of interface %s, and this sonde knows %s: update %s, or uninstall the package, "
            "since sonde record brings its own" % (os.path.dirname(registry.__file__), theirs, INTERFACE, update)
        )
    return registry


_installed: "Optional[HookFinder]" = None


def install(groups: "Iterable[str]", place: "Any" = None) -> HookFinder:
    """Makes the finder of this process watch for these groups of hooks, and returns it.

    The first time it takes the place of the finder `place` in sys.meta_path, or comes before all others.
    """
    global _installed
    if _installed is None:
        _installed = HookFinder()
        if place in sys.meta_path:
            sys.meta_path[sys.meta_path.index(place)] = _installed
        else:
            sys.meta_path.insert(0, _installed)
    _installed.add([group for group in groups if group not in PATCHES])
    for name in PATCHES:
        if name not in groups:
            continue
        _installed.watched.add(name)
        if name in sys.modules:
            _patch(name)
    return _installed
