# SPDX-License-Identifier: Apache-2.0
"""Wrappers for hooks: the original is called once, with its arguments, and its exceptions pass through.

While the gate is closed a wrapper asks _core.is_open() and calls the original, nothing else. What a hook does of its
own runs under a guard of the registry, so that the program never sees it fail.
"""

import inspect
from functools import wraps
from typing import Any, AsyncGenerator, Callable, Dict, Generator, Optional, Union

from .. import _core
from . import registry

Function = Callable[..., Any]
Fields = Dict[str, Union[int, float, str, bool]]
# Before the call: gets its arguments, returns what `leave` is to know of it.
Enter = Callable[..., Any]
# After it: gets what `enter` returned (None where that failed), the result (None when an exception left the call, and
# of asynchronous generators) and whether it returned.
Leave = Callable[[Any, Any, bool], None]


def around(enter: Enter, leave: Leave) -> Callable[[Function], Function]:
    """A `make` for registry.Hook: `enter` and `leave` run before and after each call while the gate is open.

    Functions, coroutine functions, generator functions and asynchronous generator functions stay what they are; the
    call of a generator lasts from its first step to its end.
    """

    def make(original: Function) -> Function:
        return _wrapper_kind(original)(original, enter, leave, registry.guard())

    return make


def ranged(domain: str, name: Union[str, Callable[..., str]], fields: Optional[Callable[..., Fields]] = None,
           when: Optional[Callable[..., bool]] = None,
           unless: Optional[Callable[[], bool]] = None) -> Callable[[Function], Function]:
    """A `make` that records each call as a range of the domain.

    `name` is the name or is called with the arguments for it; so are `fields`, and `when`, which says whether to
    record this call. `unless` is asked before the gate is, and must be something that a tracing compiler knows: where
    it is true, the wrapper is the original. Calls of coroutines and generators do not nest in their thread: those are
    ranges of the process.
    """

    def described(begin: Callable[..., Any]) -> Enter:
        def enter(*args: Any, **kwargs: Any) -> Any:
            if when is not None and not when(*args, **kwargs):
                return None
            text = name if isinstance(name, str) else name(*args, **kwargs)
            return True, begin(text, domain, fields(*args, **kwargs) if fields else None)

        return enter

    def pop(pushed: Any, _result: Any, _returned: bool) -> None:
        if pushed:
            _core.range_pop(domain)

    def end(started: Any, _result: Any, _returned: bool) -> None:
        if started:
            _core.range_end(started[1], domain)

    def make(original: Function) -> Function:
        kind = _wrapper_kind(original)
        nests = kind is _around_function
        enter, leave = (described(_core.range_push), pop) if nests else (described(_core.range_start), end)
        wrapper = kind(original, enter, leave, registry.guard())
        return wrapper if unless is None else _around_traced(original, wrapper, unless)

    return make


def _around_traced(original: Function, recorded: Function, unless: Callable[[], bool]) -> Function:
    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if unless():
            return original(*args, **kwargs)
        return recorded(*args, **kwargs)

    return wrapper


def _wrapper_kind(original: Function) -> Callable[..., Function]:
    if inspect.iscoroutinefunction(original):
        return _around_coroutine
    if inspect.isasyncgenfunction(original):
        return _around_async_generator
    if inspect.isgeneratorfunction(original):
        return _around_generator
    return _around_function


def _around_function(original: Function, enter: Enter, leave: Leave, guard: registry.Guard) -> Function:
    is_open, run = _core.is_open, guard.run

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not is_open():
            return original(*args, **kwargs)
        state = run(enter, *args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            run(leave, state, None, False)
            raise
        run(leave, state, result, True)
        return result

    return wrapper


def _around_coroutine(original: Function, enter: Enter, leave: Leave, guard: registry.Guard) -> Function:
    is_open, run = _core.is_open, guard.run

    @wraps(original)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not is_open():
            return await original(*args, **kwargs)
        state = run(enter, *args, **kwargs)
        try:
            result = await original(*args, **kwargs)
        except BaseException:
            run(leave, state, None, False)
            raise
        run(leave, state, result, True)
        return result

    return wrapper


def _around_generator(original: Function, enter: Enter, leave: Leave, guard: registry.Guard) -> Function:
    is_open, run = _core.is_open, guard.run

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        if not is_open():
            return (yield from original(*args, **kwargs))
        state = run(enter, *args, **kwargs)
        try:
            result = yield from original(*args, **kwargs)
        except BaseException:
            run(leave, state, None, False)
            raise
        run(leave, state, result, True)
        return result

    return wrapper


def _around_async_generator(original: Function, enter: Enter, leave: Leave, guard: registry.Guard) -> Function:
    is_open, run = _core.is_open, guard.run

    @wraps(original)
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        recorded = is_open()
        state = run(enter, *args, **kwargs) if recorded else None
        returned = False
        inner = original(*args, **kwargs)
        try:
            value = await inner.asend(None)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    value = await inner.athrow(error)
                else:
                    value = await inner.asend(sent)
        except StopAsyncIteration:
            returned = True
        finally:
            if recorded:
                run(leave, state, None, returned)

    return wrapper
