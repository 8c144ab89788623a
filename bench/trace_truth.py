# SPDX-License-Identifier: Apache-2.0
"""Is device work in a linked trace on the operator that encloses its launch? Looked up in the Kineto trace itself."""

import bisect
import gzip
import json
from collections import Counter

WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path):
    with gzip.open(path, "rt") if str(path).endswith(".gz") else open(path) as file:
        return json.load(file)


def enclosing(operators, launch):
    """Record-function ids of the shortest operators of the launch's thread around it: two where both began and ended
    within the same microsecond."""
    begin, end = launch["ts"], launch["ts"] + launch["dur"]
    rows = operators.get(launch["tid"], [])
    last = bisect.bisect_right(rows, begin, key=lambda row: row["ts"])
    around = [row for row in rows[:last] if row["ts"] + row["dur"] >= end]
    shortest = min((row["dur"] for row in around), default=None)
    return {row["args"].get("Record function id") for row in around if row["dur"] == shortest}


def placed(kineto, linked):
    """(device operations, those in the linked trace, those on the operator that encloses their launch)"""
    events = [event for event in load(kineto)["traceEvents"] if event.get("ph") == "X"]
    operators = {}
    for event in sorted(events, key=lambda event: event["ts"]):
        if event.get("cat") in ("cpu_op", "user_annotation") and "ProfilerStep" not in event["name"]:
            operators.setdefault(event["tid"], []).append(event)
    launches = {
        event["args"]["correlation"]: event for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    nodes = load(linked)["nodes"]
    ids = {
        node["id"]: attribute["value"] for node in nodes for attribute in node["attrs"] if attribute["name"] == "rf_id"
    }
    found = {}
    for node in nodes:
        if node.get("cat") in WORK:
            found.setdefault((node["name"], node["ts"]), Counter())[ids[node["ctrl_deps"]]] += 1
    works = [event for event in events if event.get("cat") in WORK]
    there = right = 0
    for work in works:
        parents = found.get((work["name"], work["ts"]), Counter())
        there += bool(parents)
        good = enclosing(operators, launches[work["args"]["correlation"]]) & set(+parents)
        if good:
            right += 1
            parents[good.pop()] -= 1
    return len(works), there, right
