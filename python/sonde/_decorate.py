# SPDX-License-Identifier: Apache-2.0
"""How sonde.range wraps a function. The range begins at the call and ends at the return.

Coroutines and asynchronous generators of one thread take turns, so that their ranges do not nest: they are ranges of
the process. Those of generators begin and end at each step of the generator, since between them other work is done.
"""

import functools
import inspect
from typing import Any, Callable, Dict, Optional

from sonde import _core

Fields = Optional[Dict[str, Any]]


def decorate(
    manager: Any, function: Callable[..., Any], name: str, domain: Optional[str], fields: Fields
) -> Callable[..., Any]:
    """The function with the range around it, by its own name and signature."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(manager, function.__func__, name, domain, fields))
    if not callable(function):
        raise TypeError(f"a range decorates functions, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        return _of_coroutine(function, name, domain, fields)
    if inspect.isasyncgenfunction(function):
        return _of_async_generator(function, name, domain, fields)
    if inspect.isgeneratorfunction(function):
        return _of_generator(manager, function)
    return _of_function(manager, function)


def _of_function(manager: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    is_open = _core.is_open

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not is_open():
            return function(*args, **kwargs)
        with manager:
            return function(*args, **kwargs)

    return wrapper


def _of_generator(manager: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume, value = generator.send, None
        while True:
            try:
                with manager:
                    item = resume(value)
            except StopIteration as end:
                return end.value
            try:
                value = yield item
                resume = generator.send
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:  # thrown in: the generator's to handle
                resume, value = generator.throw, error

    return wrapper


def _of_coroutine(function: Callable[..., Any], name: str, domain: Optional[str], fields: Fields) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        number = _core.range_start(name, domain, fields)
        try:
            return await function(*args, **kwargs)
        finally:
            _core.range_end(number, domain)

    return wrapper


def _of_async_generator(
    function: Callable[..., Any], name: str, domain: Optional[str], fields: Fields
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        number = _core.range_start(name, domain, fields)
        generator = function(*args, **kwargs)
        try:
            async for item in generator:
                yield item
        finally:
            await generator.aclose()
            _core.range_end(number, domain)

    return wrapper
