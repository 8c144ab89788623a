# SPDX-License-Identifier: Apache-2.0
"""A double of the extension sonde._core: it keeps what it is told in `events`."""

import sys
import threading
import types

events = []
state = {"open": True, "window": 1}


def range_push(name, domain=None, fields=None):
    if state["open"]:
        events.append(("push", name, dict(fields or {}), domain))


def range_pop(domain=None):
    if state["open"]:
        events.append(("pop", None, {}, domain))


def mark(name, domain=None, fields=None):
    if state["open"]:
        events.append(("mark", name, dict(fields or {}), domain))


def token(index, request=None, text=None, phase=None):
    if state["open"]:
        events.append(("token", index, {"request": request, "phase": phase}, None))


opened = threading.local()


class Part:
    """A range of a watched module."""

    def __init__(self, owner, name, domain, fields=None):
        self.owner, self.name, self.domain, self.fields = owner, name, domain, fields

    def begin(self):
        if any(lets_inside and part.owner is self.owner for part, lets_inside in parts()):
            self.begin_outermost(False)

    def begin_outermost(self, lets_inside):
        parts().append((self, lets_inside))
        sys.modules["sonde._core"].range_push(self.name, self.domain, self.fields)

    def end(self):
        places = [place for place, (part, _) in enumerate(parts()) if part is self]
        if places:
            parts_end(places[-1])


def parts():
    if not hasattr(opened, "parts"):
        opened.parts = []
    return opened.parts


def parts_open():
    return [part.owner for part, _ in parts()]


def parts_end(count):
    while len(parts()) > count:
        part, _ = parts().pop()
        sys.modules["sonde._core"].range_pop(part.domain)


def install():
    module = types.ModuleType("sonde._core")
    module.__version__ = "0"
    module.range_push, module.range_pop, module.mark, module.token = range_push, range_pop, mark, token
    module.is_open = lambda: state["open"]
    module.window = lambda: state["window"] if state["open"] else 0
    module.counter = module.step = lambda *arguments: 1
    module.range = None
    module.part, module.parts_open, module.parts_end = Part, parts_open, parts_end
    sys.modules["sonde._core"] = module


def take():
    """What was told since the last time."""
    taken = list(events)
    events.clear()
    return taken


class Range:
    """A range with those inside of it."""

    def __init__(self, name, fields):
        self.name, self.fields, self.inside = name, fields, []

    def names(self):
        return [one.name for one in self.inside]


def tree(taken, domain="sonde.model"):
    """The ranges of a domain as trees; each must end, in order."""
    top, opened = [], []
    for kind, name, fields, of in taken:
        if of != domain or kind == "mark":
            continue
        if kind == "push":
            made = Range(name, fields)
            (opened[-1].inside if opened else top).append(made)
            opened.append(made)
        else:
            assert opened, "a range ends that has not begun"
            opened.pop()
    assert not opened, f"{opened[-1].name} has not ended"
    return top
