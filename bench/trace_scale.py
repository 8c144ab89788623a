#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of any size: real ones, repeated in time with ids of their own.

trace_scale.py pair ET KINETO COUNT ET_OUT KINETO_OUT     both, COUNT times
trace_scale.py kineto KINETO BYTES OUT                    repeated until it has about so many bytes

Each copy begins when the one before has ended. Processes, threads and streams are the same in all of them; ids of
operators, launches, tensors and flows, and the numbers of steps, are shifted alike in both files. A file whose name
ends in .gz is compressed.
"""

import gzip
import json
import re
import sys

GAP_US = 1000
IDS = ("External id", "Record function id", "correlation", "wait_on_cuda_event_record_corr_id")
COUNTS = ("Ev Idx", "Sequence number")
STEP = re.compile(r"ProfilerStep#(\d+)")
MARK = re.compile(r'"@(\w+)@(-?\d+)@([^"@]*)@"|@(step)@(\d+)@')


def open_text(path, mode="r"):
    path = str(path)
    return gzip.open(path, mode + "t", compresslevel=6) if path.endswith(".gz") else open(path, mode)


def load(path):
    """A document whose numbers with a fraction stay the text that they are."""
    with open_text(path) as file:
        return json.load(file, parse_float=lambda text: f"@fraction@{text.replace('.', '@.')}@")


def mark(kind, value):
    """A number that differs from copy to copy, until the text is made; a fraction is kept."""
    if isinstance(value, str):
        whole, rest = value.split("@")[2:4]
        return f"@{kind}@{whole}@{rest}@"
    return f"@{kind}@{value}@@"


class Template:
    """The text of some rows with places for numbers, each with how much it grows from copy to copy."""

    def __init__(self, rows, strides):
        self.places = []
        text = ",\n".join(json.dumps(row) for row in rows).replace("%", "%%")
        self.text = MARK.sub(lambda found: self._place(found, strides), text)
        self.bytes = len(self.copy(0))

    def _place(self, found, strides):
        kind, whole, rest = found.group(1) or found.group(4), found.group(2) or found.group(5), found.group(3) or ""
        if kind == "fraction":
            return whole + rest
        self.places.append((int(whole), strides[kind]))
        return "%d" + rest

    def copy(self, number):
        return self.text % tuple([base + stride * number for base, stride in self.places])


def highest(rows, read):
    return max((value for row in rows for value in read(row) if isinstance(value, int)), default=0)


# ---- Kineto ----


def microseconds(value):
    return int(value.split("@")[2]) if isinstance(value, str) else value


def kineto_ids(event):
    arguments = event.get("args", {})
    return [arguments.get(name, 0) for name in IDS] + [event["id"] if event.get("ph") in "sf" else 0]


def mark_event(event):
    if "ts" in event:
        event["ts"] = mark("time", event["ts"])
    if event.get("ph") in ("s", "f"):
        event["id"] = mark("id", event["id"])
    arguments = event.get("args", {})
    for kind, names in (("id", IDS), ("count", COUNTS)):
        for name in names:
            if arguments.get(name, 0):
                arguments[name] = mark(kind, arguments[name])
    event["name"] = STEP.sub(lambda found: f"ProfilerStep#@step@{found.group(1)}@", event.get("name", ""))
    return event


class Kineto:
    def __init__(self, path, id_stride=0):
        self.document = load(path)
        events = self.document.pop("traceEvents")
        self.once = [event for event in events if event.get("ph") == "M"]
        timed = [event for event in events if event.get("ph") != "M"]
        spans = [event for event in timed if event.get("ph") == "X"]
        begin = min(microseconds(event["ts"]) for event in spans)
        end = max(microseconds(event["ts"]) + microseconds(event["dur"]) for event in spans)
        steps = {found.group(1) for found in (STEP.match(event.get("name", "")) for event in spans) if found}
        self.id_stride = id_stride or highest(timed, kineto_ids) + 1
        strides = {
            "time": end - begin + GAP_US,
            "id": self.id_stride,
            "count": highest(timed, lambda event: [event.get("args", {}).get(name) for name in COUNTS]) + 1,
            "step": len(steps),
        }
        self.template = Template([mark_event(event) for event in timed], strides)
        self.events = len(events)

    def write(self, path, count):
        with open_text(path, "w") as file:
            file.write(Template([self.document], {}).copy(0)[:-1] + ', "traceEvents": [\n')
            file.write("".join(json.dumps(event) + ",\n" for event in self.once))
            for number in range(count):
                file.write((",\n" if number else "") + self.template.copy(number))
            file.write("\n]}\n")


# ---- execution traces ----


def node_ids(node):
    return [node["id"]] + [attribute["value"] for attribute in node["attrs"] if attribute["name"] == "rf_id"]


def is_tensor(value):
    """[id, id of its storage, offset, elements, bytes of each, device]"""
    return len(value) == 6 and isinstance(value[5], str) and all(isinstance(each, int) for each in value[:5])


def mark_tensors(value):
    """Ids of tensors and their storage in a list of values."""
    if not isinstance(value, list):
        return value
    if is_tensor(value):
        return [mark("id", value[0]), mark("id", value[1])] + value[2:]
    return [mark_tensors(each) for each in value]


def mark_node(node, shared):
    node["id"] = mark("id", node["id"])
    if node["ctrl_deps"] not in shared:
        node["ctrl_deps"] = mark("id", node["ctrl_deps"])
    for side in ("inputs", "outputs"):
        node[side]["values"] = mark_tensors(node[side]["values"])
    for attribute in node["attrs"]:
        if attribute["name"] in ("rf_id", "fw_parent") and attribute["value"]:
            attribute["value"] = mark("id", attribute["value"])
    node["name"] = STEP.sub(lambda found: f"ProfilerStep#@step@{found.group(1)}@", node["name"])
    return node


class ExecutionTrace:
    """Of the layout with attributes (schema 1.0.2 and later); the process and its threads are shared by all copies."""

    def __init__(self, path, id_stride, steps):
        self.document = load(path)
        nodes = self.document.pop("nodes")
        self.roots = [node for node in nodes if node["name"].startswith("[pytorch|profiler|execution_trace|")]
        shared = {node["id"] for node in self.roots}
        rows = [mark_node(node, shared) for node in nodes if node["id"] not in shared]
        self.template = Template(rows, {"id": id_stride, "step": steps})

    def write(self, path, count):
        with open_text(path, "w") as file:
            file.write(json.dumps(self.document)[:-1] + ', "nodes": [\n')
            for number in range(count):
                file.write(self.template.copy(number) + ",\n")
            file.write(",\n".join(json.dumps(node) for node in self.roots) + "\n]}\n")


def highest_tensor(value):
    if not isinstance(value, list):
        return 0
    if is_tensor(value):
        return max(value[:2])
    return max(map(highest_tensor, value), default=0)


def scale_pair(et, kineto, counts, name):
    """Writes the pair for each of `counts`; `name(kind, count)` says where."""
    nodes = load(et)["nodes"]
    tensors = max(highest_tensor(node[side]["values"]) for node in nodes for side in ("inputs", "outputs"))
    events = [event for event in load(kineto)["traceEvents"] if event.get("ph") != "M"]
    steps = len({event["name"] for event in events if STEP.match(event.get("name", ""))})
    id_stride = max(tensors, highest(nodes, node_ids), highest(events, kineto_ids)) + 1
    host, device = ExecutionTrace(et, id_stride, steps), Kineto(kineto, id_stride)
    for count in counts:
        host.write(name("et", count), count)
        device.write(name("kineto", count), count)


def scale_kineto(path, size, out):
    """Returns the number of copies, one at least."""
    source = Kineto(path)
    count = max(1, round(size / source.template.bytes))
    source.write(out, count)
    return count


def main():
    what, *arguments = sys.argv[1:]
    if what == "pair":
        et, kineto, count, et_out, kineto_out = arguments
        scale_pair(et, kineto, [int(count)], lambda kind, _: {"et": et_out, "kineto": kineto_out}[kind])
    else:
        path, size, out = arguments
        scale_kineto(path, int(size), out)


if __name__ == "__main__":
    main()
