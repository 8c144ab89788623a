# SPDX-License-Identifier: Apache-2.0
"""pure_python.py PARTS [FILE]: work on one thread, in pure Python, of which the true share of every line is known.

Lines that take time are loops on one line, each timed where it stands with time.thread_time(). FILE gets, as JSON,
the CPU seconds by line. With "trace" for PARTS, FILE gets every stack that work() can have: [[function, line]…] from
the outermost frame on. Prints how long the work took, in the same words as examples/train.py.
"""

import json
import sys
import time
from functools import reduce

TRACED_PARTS = 200  # enough for every function at every depth
SECONDS = {}  # CPU seconds by line


def charge(begin):
    """Charges the CPU time since `begin` to the line above the caller's."""
    seconds = time.thread_time() - begin
    line = sys._getframe(1).f_lineno - 1
    SECONDS[line] = SECONDS.get(line, 0.0) + seconds


def count(text):
    counts = {}
    begin = time.thread_time()
    for letter in text: counts[letter] = counts.get(letter, 0) + 1  # noqa: E701
    charge(begin)
    return counts


def descend(depth):
    """Recursion: the same lines at several depths."""
    if depth:
        return descend(depth - 1) + 1
    total = 0
    begin = time.thread_time()
    for number in range(9_000): total += number & 7  # noqa: E701
    charge(begin)
    begin = time.thread_time()
    for number in range(3_000): total ^= number  # noqa: E701
    charge(begin)
    return total


def odd_numbers(end):
    """A generator, whose caller's frame comes and goes above it."""
    for number in range(0, end, 2_000):
        begin = time.thread_time()
        for step in range(2_000): number += step  # noqa: E701
        charge(begin)
        yield number | 1


class Matrix:
    def __init__(self, size):
        self.rows = [[row, 1, 2, 3] for row in range(size)]

    def product(self):
        total = 0
        begin = time.thread_time()
        for row in self.rows: total += row[0] * row[1] + row[2] * row[3]  # noqa: E701
        charge(begin)
        return total


def add_slowly(total, number):
    begin = time.thread_time()
    for _ in range(1_500): total += number  # noqa: E701
    charge(begin)
    return total


def fold(count):
    """C code that calls back into Python."""
    return reduce(add_slowly, range(count), 0)


def work(parts, matrix, text):
    """In an order that repeats in every run but not with any period, so that no sampler falls in step with it."""
    state = 1
    for _ in range(parts):
        state = (state * 1_103_515_245 + 12_345) % (1 << 31)
        part = (state >> 16) % 6
        if part == 0:
            count(text)
        elif part == 1:
            descend((state >> 8) % 7)
        elif part == 2:
            sum(odd_numbers(8_000))
        elif part == 3:
            fold(2)
        else:
            matrix.product()


def trace_stacks(stacks):
    """Adds the stack at every event of every frame that is entered from now on."""

    def note(frame, event, argument):
        stack = []
        at = frame
        while at:
            stack.append((at.f_code.co_name, at.f_lineno))
            at = at.f_back
        stacks.add(tuple(reversed(stack)))
        return note

    sys.settrace(note)


def main():
    stacks = set()
    parts = TRACED_PARTS if sys.argv[1] == "trace" else int(sys.argv[1])
    matrix, text = Matrix(2_000), "to be or not to be, that is the question " * 120
    if sys.argv[1] == "trace":
        trace_stacks(stacks)
    begin, cpu_begin = time.monotonic(), time.process_time()
    work(parts, matrix, text)
    seconds, cpu_seconds = time.monotonic() - begin, time.process_time() - cpu_begin
    sys.settrace(None)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            json.dump(sorted(stacks) or SECONDS, file)
    print(f"worked for {seconds:.3f} s, {cpu_seconds:.3f} s of CPU time; {time.process_time():.3f} s with the start")


if __name__ == "__main__":
    main()
