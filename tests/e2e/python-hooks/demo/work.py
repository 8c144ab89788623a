# SPDX-License-Identifier: Apache-2.0
"""Functions of every kind; each notes its call."""

calls = []


class Base:
    def inherited(self, a):
        calls.append(("inherited", a))
        return a


class Worker(Base):
    number = 4

    def method(self, a, *, b=2):
        calls.append(("method", a, b))
        return a + b

    @staticmethod
    def static(a):
        calls.append(("static", a))
        return a

    @classmethod
    def made(cls, a):
        calls.append(("made", cls.__name__, a))
        return a

    async def later(self, a):
        calls.append(("later", a))
        return a

    def several(self, count):
        got = []
        for i in range(count):
            got.append((yield i))
        return got

    async def stream(self, count):
        for i in range(count):
            try:
                yield i
            except KeyError:
                yield "thrown"

    def fails(self):
        raise ValueError("of the program")

    def unmade(self):
        return "unmade"


def function(function, self=None, *, args=(), kwargs=None):
    """Names of parameters that a wrapper might take for its own."""
    calls.append(("function", function, self, args, kwargs))
    return function


def guarded(a):
    calls.append(("guarded", a))
    return a
