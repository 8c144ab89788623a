#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sonde's Python package costs, as JSON: nanoseconds of each call beyond an empty loop.

    api_python.py BURSTS [PAUSE_S]     with a pause between bursts the collector reads meanwhile
"""

import json
import statistics
import sys
import time

import sonde
from sonde import _core

BURST = 1000


def empty(count):
    for _ in range(count):
        pass


def push_pop(count, push=_core.range_push, pop=_core.range_pop):
    for _ in range(count):
        push("step")
        pop()


def manager(count, one=sonde.range("step")):
    for _ in range(count):
        with one:
            pass


def new_manager(count, kind=sonde.range):
    for _ in range(count):
        with kind("step"):
            pass


@sonde.range("step")
def decorated():
    pass


def plain():
    pass


def calls(count, function=decorated):
    for _ in range(count):
        function()


def plain_calls(count, function=plain):
    for _ in range(count):
        function()


def steps(count, step=sonde.step):
    for _ in range(count):
        step()


def counters(count, counter=sonde.counter):
    for _ in range(count):
        counter("loss", 0.5)


def median_ns(function, bursts, pause_s):
    taken = []
    for _ in range(bursts):
        begin = time.perf_counter_ns()
        function(BURST)
        taken.append((time.perf_counter_ns() - begin) / BURST)
        if pause_s:
            time.sleep(pause_s)
    return statistics.median(taken)


def main():
    bursts, pause_s = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0
    base = median_ns(empty, bursts, 0)
    measured = {"push and pop": push_pop, "with, one range object": manager, "with, a new one each time": new_manager,
                "step": steps, "counter": counters}
    result = {name: median_ns(function, bursts, pause_s) - base for name, function in measured.items()}
    result["decorated function"] = median_ns(calls, bursts, pause_s) - median_ns(plain_calls, bursts, 0)
    print(json.dumps({"is_open": sonde.is_open(), "ns": result}))


if __name__ == "__main__":
    main()
