# SPDX-License-Identifier: Apache-2.0
"""A double of the extension sonde._core: it keeps what it is told in `events`."""

import sys
import types
from pathlib import Path

PARTS = Path(__file__).parents[1] / "e2e" / "python-hooks" / "core.py"

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


def install():
    module = types.ModuleType("sonde._core")
    exec(PARTS.read_text(), module.__dict__)  # of which what follows takes the place
    module.__version__ = "0"
    module.range_push, module.range_pop, module.mark, module.token = range_push, range_pop, mark, token
    module.is_open = lambda: state["open"]
    module.window = lambda: state["window"] if state["open"] else 0
    module.counter = module.step = lambda *arguments: 1
    module.range = None
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
