# SPDX-License-Identifier: Apache-2.0
"""What recording waiting threads costs, and how much of known waits it finds."""

from workbench import report_progress

SWITCHES = (1000, 100)  # threads, and sleeps of each per second


def record(bench, wait, *command):
    bench.record("waiting.pftrace", "--wait", wait, "--", *command)
    return bench.report("waiting.pftrace")


def measure_cost(bench, seconds):
    command = [bench.build / "tests/e2e/workloads/switches", seconds, *SWITCHES]
    record(bench, "sample", *command)  # tables and caches are warm from here on
    with_waiting, without = (record(bench, wait, *command) for wait in ("sample", "off"))
    duration = with_waiting["totals"]["duration_ns"]
    kernel = with_waiting["overhead"]["wait_run_time_ns"]
    collector = with_waiting["overhead"]["collector_cpu_ns"] - without["overhead"]["collector_cpu_ns"]
    return {
        "threads": SWITCHES[0],
        "switches_per_s": SWITCHES[0] * SWITCHES[1],
        "kernel_share_of_core": kernel / duration,
        # The iterator runs in the collector's system call: its time is in this figure, too.
        "all_share_of_core": collector / duration,
    }


def measure_truth(bench, seconds):
    data = record(bench, "sample", bench.build / "tests/e2e/workloads/waits", seconds)
    found = {row["function"]: row["time_ns"] / 1e9 for row in data["waiting"]["rows"]}
    names = ("wait_for_lock", "wait_for_pipe", "wait_for_socket", "wait_in_poll")
    return {"seconds_each": seconds, "found_s": {name: found.get(name, 0) for name in names}}


def measure(bench):
    results = {"cost": measure_cost(bench, bench.pick(30, 5)), "truth": measure_truth(bench, bench.pick(10, 3))}
    report_progress(str(results))
    return results
