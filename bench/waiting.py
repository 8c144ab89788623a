# SPDX-License-Identifier: Apache-2.0
"""What recording waiting threads costs, and how much of known waits it finds."""

import os

from needs import PRIVILEGES
from workbench import report_progress

NEEDS = (PRIVILEGES,)

SWITCHES = (1000, 100)  # threads, and sleeps of each per second


def record(bench, wait, shortest_us, *command):
    bench.record("waiting.pftrace", "--wait", wait, "--wait-min", shortest_us, "--", *command)
    data = bench.report("waiting.pftrace")
    data["capture_bytes"] = os.path.getsize(bench.path("waiting.pftrace"))
    return data


# Name → --wait, and the shortest wait whose stack is taken, in microseconds. All waits of the workload are some 10 ms long.
HOW = {"sample": ("sample", 100), "exact": ("exact", 100), "exact_counted": ("exact", 1000000)}


def cost_of(data, without):
    duration = data["totals"]["duration_ns"]
    collector = data["overhead"]["collector_cpu_ns"] - without["overhead"]["collector_cpu_ns"]
    waiting = data["waiting"]
    return {
        "kernel_share_of_core": data["overhead"]["wait_run_time_ns"] / duration,
        # The iterator of "sample" runs in the collector's system call: its time is in this figure, too.
        "collector_share_of_core": collector / duration,
        "waits_per_s": waiting["waits"] and waiting["waits"] * 1e9 / duration,
        "waits_without_stack": waiting["waits_without_stack"],
        "kernel_ns_per_wait": waiting["waits"] and data["overhead"]["wait_run_time_ns"] / waiting["waits"],
        "samples_lost": data["losses"]["samples_lost"],
        "capture_bytes": data["capture_bytes"],
    }


def measure_cost(bench, seconds):
    command = [bench.build / "tests/e2e/workloads/switches", seconds, *SWITCHES]
    record(bench, "sample", 100, *command)  # tables and caches are warm from here on
    without = record(bench, "off", 100, *command)
    costs = {name: cost_of(record(bench, *how, *command), without) for name, how in HOW.items()}
    return {"threads": SWITCHES[0], "sleeps_per_s": SWITCHES[0] * SWITCHES[1], **costs}


def measure_running(bench, seconds):
    """The sampled mode's share of a core without its start: what a longer run costs more, against none."""
    spent = {}
    for wait in ("sample", "off"):
        for length in (seconds, seconds // 3):
            command = [bench.build / "tests/e2e/workloads/switches", length, *SWITCHES]
            spent[wait, length] = record(bench, wait, 100, *command)["overhead"]["collector_cpu_ns"]
    more = {wait: spent[wait, seconds] - spent[wait, seconds // 3] for wait in ("sample", "off")}
    return (more["sample"] - more["off"]) / (1e9 * (seconds - seconds // 3))


def measure_truth(bench, wait, seconds):
    data = record(bench, wait, 100, bench.build / "tests/e2e/workloads/waits", seconds)
    found = {row["function"]: row["time_ns"] / 1e9 for row in data["waiting"]["rows"]}
    names = ("wait_for_lock", "wait_for_pipe", "wait_for_socket", "wait_in_poll")
    return {"seconds_each": seconds, "found_s": {name: found.get(name, 0) for name in names}}


def measure(bench):
    truth = {wait: measure_truth(bench, wait, bench.pick(10, 3)) for wait in ("sample", "exact")}
    seconds = bench.pick(30, 6)
    results = {
        "cost": measure_cost(bench, seconds),
        "sample_running_share_of_core": measure_running(bench, seconds),
        "truth": truth,
    }
    report_progress(str(results))
    return results
