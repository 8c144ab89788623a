#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a capture in every format, parses each file with a parser of its own kind, and compares totals.

check_exports.py SONDE CAPTURE PPROF_PROTO [PROTOC]
check_exports.py --make MAKE_MODEL_CAPTURE SONDE PPROF_PROTO [PROTOC]   of names that break naive writers
"""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"


def run(*arguments, **options):
    return subprocess.run(arguments, check=True, capture_output=True, **options).stdout


class Exports:
    def __init__(self, sonde, capture, directory):
        self.sonde, self.capture, self.directory = sonde, capture, directory

    def bytes(self, name, *arguments):
        path = os.path.join(self.directory, name)
        run(self.sonde, "export", "-f", name, "-o", path, *arguments, self.capture)
        with open(path, "rb") as file:
            return file.read()

    def text(self, name, *arguments):
        return self.bytes(name, *arguments).decode("utf-8")  # strict: every export is UTF-8


def no_controls(text, allowed="\n"):
    found = [c for c in text if (ord(c) < 32 or 0x7F <= ord(c) < 0xA0) and c not in allowed]
    assert not found, f"control characters: {found[:5]!r}"


def check_json(exports):
    document = json.loads(exports.text("json"))
    assert document["format"] == "sonde-report" and document["version"] == 2
    total = document["totals"]["samples"]
    for name, table in document["tables"].items():
        if name != "stack":
            assert len(table["rows"]) == table["rows_total"], name
            assert sum(row["self_samples"] for row in table["rows"]) == total, name
    assert sum(document["timeline"]["samples"]) == total
    return total, document["session"]["period_ns"], document


def check_report(exports, document):
    printed = json.loads(run(exports.sonde, "report", "--json", exports.capture))
    assert printed == document, "report --json and export -f json differ"
    for by in [None, *document["tables"]]:
        arguments = ["--by", by] if by else []
        text = run("env", "COLUMNS=100", exports.sonde, "report", *arguments, exports.capture).decode("utf-8")
        no_controls(text)
        assert len(text.splitlines()) > 5
        too_wide = [line for line in text.splitlines() if len(line) > 100]
        assert not too_wide, too_wide[:3]


def check_folded(exports):
    total = 0
    for line in exports.text("folded").splitlines():
        match = re.fullmatch(r"(.+) (\d+)", line)
        assert match, line[:100]
        assert all(match[1].split(";")), line[:100]
        no_controls(line)
        total += int(match[2])
    return total


def check_flamegraph(exports):
    text = exports.text("flamegraph")
    no_controls(text, "\n\t")
    root = xml.fromstring(text)
    assert root.tag == SVG + "svg"
    assert not re.search(r"(href|src)=", text), "the file must not load anything"
    frames = [g for g in root.iter(SVG + "g") if g.get("data-d") is not None]
    tooltips = [g.find(SVG + "title").text.split("\n") for g in frames]
    assert all(len(lines) == 3 for lines in tooltips)
    by_depth = {}
    for frame in frames:
        start, width = float(frame.get("data-x")), float(frame.get("data-w"))
        by_depth.setdefault(int(frame.get("data-d")), []).append((start, width))
    for row in by_depth.values():  # frames of one row do not overlap
        end = 0.0
        for start, width in sorted(row):
            assert start >= end - 1e-6
            end = start + width
        assert end <= 1 + 1e-6
    return int(root.get("data-samples"))


def check_speedscope(exports, period_ns):
    document = json.loads(exports.text("speedscope"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    total = 0
    for profile in document["profiles"]:
        assert set(profile) == {
            "type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= index < len(frames) for stack in profile["samples"] for index in stack)
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        total += sum(profile["weights"])
    assert total % period_ns == 0
    return total // period_ns


def check_firefox_table(thread, name, columns):
    """Every column is there and as long as the table says."""
    table = thread[name]
    assert set(table) == {"length", *columns}, (name, set(table))
    for column in columns:
        assert len(table[column]) == table["length"], (name, column)
    return table


def indices(values, length, nothing=()):
    assert all(value in nothing or (type(value) is int and 0 <= value < length) for value in values)


def check_firefox_thread(thread, libs, categories):
    strings = len(thread["stringArray"])
    samples = thread["samples"]
    assert samples.pop("weightType") == "tracing-ms"
    check_firefox_table(thread, "samples", ["stack", "time", "weight"])
    stacks = check_firefox_table(thread, "stackTable", ["frame", "prefix", "category", "subcategory"])
    frames = check_firefox_table(thread, "frameTable", [
        "address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID",
        "implementation", "line", "column"])
    funcs = check_firefox_table(thread, "funcTable", [
        "name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"])
    resources = check_firefox_table(thread, "resourceTable", ["lib", "name", "host", "type"])
    assert check_firefox_table(thread, "markers", [
        "data", "name", "startTime", "endTime", "phase", "category"])["length"] == 0
    check_firefox_table(thread, "nativeSymbols", ["libIndex", "address", "name", "functionSize"])
    assert len(set(thread["stringArray"])) == strings
    indices(samples["stack"], stacks["length"])
    indices(stacks["frame"], frames["length"])
    assert all(prefix is None or 0 <= prefix < own for own, prefix in enumerate(stacks["prefix"]))
    assert stacks["category"] == [frames["category"][frame] for frame in stacks["frame"]]
    indices(frames["category"], categories)
    indices(frames["func"], funcs["length"])
    assert all(line is None or line > 0 for line in frames["line"])
    indices(funcs["name"], strings)
    indices(funcs["fileName"], strings, [None])
    indices(funcs["resource"], resources["length"], [-1])
    indices(resources["lib"], libs)
    indices(resources["name"], strings)
    assert samples["time"] == sorted(samples["time"]) and samples["time"][0] >= 0
    assert isinstance(thread["pid"], str) and thread["isMainThread"] == (thread["pid"] == str(thread["tid"]))
    return sum(samples["weight"])


def firefox_stacks(document):
    """Each stack's functions, outermost first, with its weight: to be compared with those of folded."""
    found = {}
    for thread in document["threads"]:
        stacks, names = thread["stackTable"], thread["stringArray"]
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
            path = []
            while stack is not None:
                func = thread["frameTable"]["func"][stacks["frame"][stack]]
                path.insert(0, names[thread["funcTable"]["name"][func]])
                stack = stacks["prefix"][stack]
            found[tuple(path)] = found.get(tuple(path), 0) + weight
    return found


def speedscope_stacks(document):
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {}
    for profile in document["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            path = tuple(names[frame] for frame in stack)
            found[path] = found.get(path, 0) + weight / 1e6
    return found


def check_firefox(exports, period_ns):
    document = json.loads(exports.text("firefox"))
    meta = document["meta"]
    assert meta["preprocessedProfileVersion"] == 48 and meta["symbolicated"]
    assert any(category["color"] == "grey" for category in meta["categories"])
    assert all(category["subcategories"] == ["Other"] for category in meta["categories"])
    total = sum(
        check_firefox_thread(thread, len(document["libs"]), len(meta["categories"]))
        for thread in document["threads"]
    )
    ours, theirs = firefox_stacks(document), speedscope_stacks(json.loads(exports.text("speedscope")))
    assert set(ours) == set(theirs)
    assert all(abs(ours[path] - theirs[path]) < 1e-3 for path in ours)
    path = os.path.join(exports.directory, "packed.profile.json.gz")
    run(exports.sonde, "export", "-f", "firefox", "-o", path, exports.capture)
    with gzip.open(path) as packed:
        assert packed.read() == exports.bytes("firefox")
    return round(total * 1e6 / period_ns)


def check_pprof(exports, proto, protoc, period_ns):
    packed = gzip.decompress(exports.bytes("pprof"))
    text = run(
        protoc, "--decode=perftools.profiles.Profile", f"--proto_path={os.path.dirname(proto)}",
        proto, input=packed).decode("utf-8")
    no_controls(text)
    assert re.search(r'^string_table: (.*)$', text, re.M)[1] == '""'
    locations = set(re.findall(r"^location \{\n  id: (\d+)", text, re.M))
    used = set(re.findall(r"^  location_id: (\d+)", text, re.M))
    assert used == locations, "samples refer to locations that are not there, or the other way"
    functions = set(re.findall(r"^function \{\n  id: (\d+)", text, re.M))
    assert set(re.findall(r"function_id: (\d+)", text)) == functions
    mappings = set(re.findall(r"^mapping \{\n  id: (\d+)", text, re.M))
    assert set(re.findall(r"mapping_id: (\d+)", text)) <= mappings
    counts = nanoseconds = 0
    for sample in re.findall(r"^sample \{\n(.*?)^\}", text, re.M | re.S):
        values = [int(value) for value in re.findall(r"^  value: (\d+)", sample, re.M)]
        assert len(values) == 2 and sample.count("label {") == 4
        counts, nanoseconds = counts + values[0], nanoseconds + values[1]
    assert nanoseconds == counts * period_ns
    return counts


def check_chrome(exports):
    document = json.loads(exports.text("chrome"))
    open_until = {}
    total = 0
    arrows = {"s": set(), "f": set()}
    for event in document["traceEvents"]:
        if event["ph"] in arrows:
            arrows[event["ph"]].add(event["id"])
            continue
        if event["ph"] != "X":
            assert event["ph"] == "M" and event["name"] in ("process_name", "thread_name")
            continue
        total += event["args"].get("self_samples", 0)
        start, end = event["ts"], event["ts"] + event["dur"]
        assert event["dur"] > 0 or "correlation" in event["args"], "work of a device may take no time"
        stack = open_until.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1] <= start + 1e-3:
            stack.pop()
        assert not stack or end <= stack[-1] + 1e-3, "slices of a thread must nest"
        stack.append(end)
    assert arrows["s"] == arrows["f"], "arrows have two ends"
    return total


def check_csv(exports, period_ns):
    text = exports.text("csv")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert text.endswith("\r\n")
    assert all(int(r["self_time_ns"]) == int(r["self_samples"]) * period_ns for r in rows)
    assert abs(sum(float(row["self_share"]) for row in rows) - 1) < 1e-6
    return sum(int(row["self_samples"]) for row in rows)


def check_jsonl(exports):
    text = exports.text("jsonl")
    no_controls(text)
    session, *events = [json.loads(line) for line in text.splitlines()]
    assert session["type"] == "session" and session["version"] == 1
    times = [event.get("time_ns", event.get("start_ns")) for event in events]
    assert times == sorted(times)
    for event in events:
        assert event["type"] not in ("sample", "wait") or event["stack"] is None or all(
            frame["function"] and frame["module"] for frame in event["stack"])
    return sum(event["type"] == "sample" for event in events)


def check_perf_script(exports, period_ns):
    """The expressions are those by which stackcollapse-perf.pl knows the lines."""
    text = exports.text("perf-script")
    no_controls(text, "\n\t")
    samples = text.split("\n\n")
    assert samples.pop() == ""
    for sample in samples:
        head, *frames = sample.split("\n")
        match = re.fullmatch(r"(\S.*?)\s+(\d+)/(\d+)\s+\[\d+\] \d+\.\d{9}:\s+(\d+) cpu-clock: ", head)
        assert match and int(match[4]) == period_ns, head
        assert frames and all(re.fullmatch(r"\t\s*(\w+)\s*(.+) \((.*)\)", frame) for frame in frames), sample
    return len(samples)


def check_diff(exports):
    document = json.loads(run(exports.sonde, "diff", "--json", exports.capture, exports.capture))
    assert document["format"] == "sonde-diff"
    assert not any(row["significant"] for row in document["samples"]["rows"])
    assert all(row["change"] == "unchanged" for row in document["work"]["rows"])
    path = os.path.join(exports.directory, "diff.svg")
    text = run(exports.sonde, "diff", "--all", "--fail-above", "0", "--flamegraph", path,
               exports.capture, exports.capture).decode("utf-8")
    no_controls(text)
    xml.parse(path)


def check(sonde, capture, proto, protoc="protoc"):
    with tempfile.TemporaryDirectory() as directory:
        exports = Exports(sonde, capture, directory)
        total, period_ns, document = check_json(exports)
        check_report(exports, document)
        totals = {
            "folded": check_folded(exports),
            "flamegraph": check_flamegraph(exports),
            "speedscope": check_speedscope(exports, period_ns),
            "firefox": check_firefox(exports, period_ns),
            "pprof": check_pprof(exports, proto, protoc, period_ns),
            "chrome": check_chrome(exports),
            "csv": check_csv(exports, period_ns),
            "jsonl": check_jsonl(exports),
            "perf-script": check_perf_script(exports, period_ns),
        }
        check_diff(exports)
    wrong = {name: count for name, count in totals.items() if count != total}
    assert not wrong, f"{total} samples, but {wrong}"


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--make":  # writes the capture first
        _, maker, *arguments = arguments
        with tempfile.TemporaryDirectory() as directory:
            capture = os.path.join(directory, "hostile.pftrace")
            run(maker, "hostile", capture)
            check(arguments[0], capture, *arguments[1:])
        return
    check(*arguments)


if __name__ == "__main__":
    main()
