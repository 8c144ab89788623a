# SPDX-License-Identifier: Apache-2.0
"""What each profiler's output says, as samples: sonde's, perf's, py-spy's, austin's, pyinstrument's, scalene's."""

import json
import sys
from collections import namedtuple
from pathlib import Path

from workbench import ROOT

sys.path.insert(0, str(ROOT / "tests" / "e2e"))

CAPTURE = "peers.json"  # whatever is in it: scalene would append the suffix
INVALID = "<invalid>"  # the file of a frame that the tool says it could not read

Frame = namedtuple("Frame", "function file line")
# frames from the outermost on; `weight` is the tool's own: samples, or seconds where it has them
Sample = namedtuple("Sample", "frames count weight")


def is_python(frame):
    return frame.file.endswith(".py") or frame.file.startswith("<")


def read_sonde(bench):
    import pprof

    profile = bench.path("peers.pprof")
    bench.run(bench.sonde, "export", "-f", "pprof", "-o", profile, bench.path(CAPTURE))
    return [Sample(frames, count, count) for frames, count in pprof.read(profile)]


def py_spy_frame(text):
    """`function (file:line)`, or `function (file)` of native code."""
    function, _, place = text.rpartition(" (")
    file, _, line = place.rstrip(")").rpartition(":")
    return Frame(function, file, int(line)) if line.isdigit() and file else Frame(function, place.rstrip(")"), 0)


def read_py_spy(bench):
    for line in Path(bench.path(CAPTURE)).read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        yield Sample([py_spy_frame(text) for text in stack.split(";")], int(count), int(count))


def austin_frame(text):
    """`file:function:line`; of native code `native@address:function:offset`; `:INVALID:` is a frame it lost."""
    file, _, rest = text.partition(":")
    function, _, line = rest.rpartition(":")
    return Frame(function, file or INVALID, int(line) if line.isdigit() else 0)


def read_austin(bench):
    for line in Path(bench.path(CAPTURE)).read_text(errors="replace").splitlines():
        if line.startswith("P"):
            stack, _, microseconds = line.rpartition(" ")
            yield Sample([austin_frame(text) for text in stack.split(";")[2:]], 1, int(microseconds) / 1e6)


def pyinstrument_frame(text):
    """`function NUL file NUL first line`, then attributes, each after \\x01: `l` is the line."""
    identity, *attributes = text.split("\x01")
    function, file, first = identity.split("\0")
    return Frame(function, file, next((int(item[1:]) for item in attributes if item[0] == "l"), int(first)))


def read_pyinstrument(bench):
    for stack, seconds in json.loads(Path(bench.path(CAPTURE)).read_text())["frame_records"]:
        yield Sample([pyinstrument_frame(text) for text in stack[1:]], 1, seconds)


def read_scalene(bench):
    for stack, count in json.loads(Path(bench.path(CAPTURE)).read_text())["combined_stacks"]:
        frames = [Frame(item["display_name"], item["filename_or_module"], item["line"] or 0) for item in stack]
        yield Sample(frames, count, count)


def read_perf(bench):
    """Python frames are named `py::function:file` there, and have no lines."""
    text = bench.run(bench.perf(), "script", "--no-inline", "-i", bench.path(CAPTURE), "-F", "pid,ip,sym").output
    for block in text.split("\n\n"):
        names = [line.split(maxsplit=1)[-1] for line in block.splitlines()[1:] if line.strip()]
        parts = [name[4:].partition(":") if name.startswith("py::") else (name, "", "") for name in names]
        if block.strip():
            yield Sample([Frame(function, file, 0) for function, _, file in reversed(parts)], 1, 1)


def count_perf(bench):
    """Only how many: there are no Python frames in them."""
    count = bench.perf_sample_count(CAPTURE)
    yield Sample([], count, count)
