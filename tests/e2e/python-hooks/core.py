# SPDX-License-Identifier: Apache-2.0
"""In place of the extension sonde._core, for children of any Python: writes what it is told to $EVENTS, as JSON."""

import json
import os
import threading

_thread = threading.local()


def _write(*event):
    with open(os.environ["EVENTS"], "a") as out:
        out.write(json.dumps(event) + "\n")


def is_open():
    return os.environ.get("GATE") != "closed"


def range_push(name, domain=None, fields=None):
    _write("push", name, domain, fields)


def range_pop(domain=None):
    _write("pop", domain)


def range_start(name, domain=None, fields=None):
    _write("start", name, domain, fields)
    return 0  # a number like others


def range_end(number, domain=None):
    _write("end", number, domain)


def mark(name, domain=None, fields=None):
    _write("mark", name, domain, fields)


def step(name="step"):
    _write("step", name)
    return 1


def token(index, request=None, text=None, phase=None):
    _write("token", index, request, phase)


class part:
    """A range of a watched module."""

    def __init__(self, owner, name, domain, fields=None):
        self.owner, self.name, self.domain, self.fields = owner, name, domain, fields

    def begin(self):
        if any(lets_inside and outer.owner is self.owner for outer, lets_inside in _open()):
            self.begin_outermost(False)

    def begin_outermost(self, lets_inside):
        _open().append((self, lets_inside))
        range_push(self.name, self.domain, self.fields)

    def end(self):
        places = [place for place, (opened, _) in enumerate(_open()) if opened is self]
        if places:
            parts_end(places[-1])


def _open():
    if not hasattr(_thread, "open"):
        _thread.open = []
    return _thread.open


def parts_open():
    return [opened.owner for opened, _ in _open()]


def parts_end(count):
    while len(_open()) > count:
        opened, _ = _open().pop()
        range_pop(opened.domain)
