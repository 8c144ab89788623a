# SPDX-License-Identifier: Apache-2.0
"""A program whose every possible Python stack is known.

    truth.py trace OUT.json LIBRARY    runs once under sys.settrace and writes all stacks, as lists of
                                       [function, file, line] from the outermost frame on
    truth.py run SECONDS LIBRARY       runs the same untraced, for so many seconds of CPU time

Stacks go from Python through C and back: reduce, sorted, map, re.sub, json, ctypes, generators, coroutines,
comprehensions, decorators, properties, context managers, exceptions, recursion, exec, threads.
"""
import asyncio
import contextlib
import ctypes
import functools
import json
import re
import sys
import threading
import time
import zlib

SIZE = 2000


def spin(count):
    total = 0
    for number in range(count):
        total += number
    return total


def by_reduce():
    return functools.reduce(combine, range(3), 0)


def combine(left, right):
    return left + spin(SIZE)


def by_sorted():
    return sorted([3, 1, 2], key=order)


def order(number):
    spin(SIZE)
    return -number


def by_map():
    return list(map(lambda number: spin(SIZE), range(3)))


def by_regex():
    return re.sub("a", replacement, "banana")


def replacement(match):
    spin(SIZE)
    return "o"


def by_json():
    return json.dumps([object()], default=describe)


def describe(thing):
    spin(SIZE)
    return "thing"


def by_library():
    return LIBRARY.call_back(CALL_BACK, 3)


def back_in_python(number):
    by_reduce()
    return spin(SIZE)


def generate():
    for number in range(3):
        spin(SIZE)
        yield number


def delegate():
    yield from generate()
    spin(SIZE)


def by_generator():
    return sum(delegate())


def by_comprehension():
    return [spin(SIZE) for number in range(3)] + list({spin(SIZE): 0 for number in range(2)})


async def leaf_task():
    spin(SIZE)
    await asyncio.sleep(0)
    return spin(SIZE)


async def gather():
    await asyncio.gather(leaf_task(), leaf_task())


def by_coroutine():
    coroutine = gather_by_hand()
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        spin(SIZE)


class Pause:
    def __await__(self):
        spin(SIZE)
        yield


async def gather_by_hand():
    await Pause()
    spin(SIZE)
    await Pause()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        spin(SIZE)
        return function(*arguments)

    return wrapper


@decorated
def by_decorator(number):
    return spin(SIZE)


class Thing:
    def __call__(self, number):
        return spin(SIZE)

    @property
    def value(self):
        return spin(SIZE)

    def __getattr__(self, name):
        return spin(SIZE)

    def __lt__(self, other):
        spin(SIZE)
        return id(self) < id(other)


def by_class():
    thing = Thing()
    thing(1)
    thing.value
    thing.missing
    sorted([thing, Thing(), Thing()])


@contextlib.contextmanager
def context():
    spin(SIZE)
    yield
    spin(SIZE)


def by_context():
    with context():
        spin(SIZE)


def by_exception():
    try:
        raising()
    except ValueError:
        spin(SIZE)
    finally:
        spin(SIZE)


def raising():
    spin(SIZE)
    raise ValueError


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    return spin(10 * SIZE)


def by_recursion():
    recurse(60)


def by_exec():
    exec(COMPILED, {"spin": spin, "SIZE": SIZE})


COMPILED = compile("def made():\n    return spin(SIZE)\n\nmade()\n", "<made>", "exec")


def by_release():
    return zlib.compress(BYTES)


BYTES = bytes(range(256)) * 200


def work():
    by_reduce()
    by_sorted()
    by_map()
    by_regex()
    by_json()
    by_library()
    by_generator()
    by_comprehension()
    by_coroutine()
    by_decorator(1)
    by_class()
    by_context()
    by_exception()
    by_recursion()
    by_exec()
    by_release()


def in_thread():
    while not ended():
        work()
        by_release()


def main():
    threads = [threading.Thread(target=in_thread) for number in range(2)]
    for thread in threads:
        thread.start()
    while not ended():
        work()
    for thread in threads:
        thread.join()


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


STACKS = set()


def note(frame, event, argument):
    frames = []
    at = frame
    while at is not None:
        frames.append((name_of(at.f_code), at.f_code.co_filename, at.f_lineno))
        at = at.f_back
    STACKS.add(tuple(reversed(frames)))
    return note


def trace(path):
    threading.settrace(note)
    sys.settrace(note)
    main()
    sys.settrace(None)
    threading.settrace(None)
    with open(path, "w") as out:
        json.dump(sorted(STACKS), out)


ROUNDS = [0]


def ended():
    if sys.argv[1] == "trace":
        ROUNDS[0] += 1
        return ROUNDS[0] > 6
    return time.process_time() > END


LIBRARY = ctypes.CDLL(sys.argv[3])
CALL_BACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(back_in_python)

if sys.argv[1] == "trace":
    SIZE = 3
    trace(sys.argv[2])
else:
    END = time.process_time() + float(sys.argv[2])
    main()
