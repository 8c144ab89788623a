# SPDX-License-Identifier: Apache-2.0
"""A group of hooks for the package demo, which stands in for a framework."""

from .registry import Hook
from .wrap import around, ranged


def fields(*args, **kwargs):
    return {"arguments": len(args) + len(kwargs)}


def broken(*_args, **_kwargs):
    raise KeyError("in the hook")


def no_make(_original):
    raise RuntimeError("cannot be made")


def hook(attribute, make, **options):
    return Hook("demo", "demo.work", attribute, make, **options)


HOOKS = (
    *(hook("Worker." + name, ranged("demo", name, fields)) for name in ("method", "static", "made", "inherited")),
    *(hook("Worker." + name, ranged("demo", name)) for name in ("later", "several", "stream", "fails")),
    hook("function", ranged("demo", "function")),
    hook("guarded", around(broken, broken)),
    hook("Worker.gone", ranged("demo", "gone")),
    hook("Worker.older", ranged("demo", "newer"), fallback=hook("Worker.static", ranged("demo", "older"))),
    hook("Worker.method", ranged("demo", "again"), needs=("Worker.needed",)),
    hook("Worker.elsewhere", ranged("demo", "elsewhere"), optional=True),
    hook("Worker.unmade", no_make),
    hook("Worker.number", ranged("demo", "number")),
    Hook("demo", "demo.never", "function", ranged("demo", "never")),
    Hook("demo", "demo.swapped", "function", ranged("demo", "swapped")),
    Hook("demo", "demo.fails_once", "function", ranged("demo", "fails once")),
)
