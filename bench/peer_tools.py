# SPDX-License-Identifier: Apache-2.0
"""The profilers that bench/peers.py compares, each with its command line and the reader of what it writes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from peer_output import (
    CAPTURE,
    count_perf,
    read_austin,
    read_perf,
    read_py_spy,
    read_pyinstrument,
    read_scalene,
    read_sonde,
)
from needs import PERF_PYTHON, perf_pythons

FREQUENCY = 100  # samples per second: the default of py-spy and scalene
ALONE, ALONE_PERF = "alone", "alone, CPython of -X perf"
MIXED = "functions, lines, native"


@dataclass(frozen=True)
class Tool:
    """`command` makes the command line from the workbench and the program's words, of which the first is a Python."""

    command: Callable
    read: Callable | None = None
    clock: str = "wall"  # what its samples are taken by: wall (of running threads), or CPU time
    holds: str = "functions, lines"  # of Python, and native frames: what its stacks have
    programs: tuple = ("pure", "torch")
    baseline: str = ALONE  # the run that it is compared with
    needs: str | None = None  # a program of the environment


def beside(program, name):
    """The path of a program in the environment of the Python that is the first word."""
    return str(Path(program[0]).with_name(name))


def sonde(bench, program):
    return [bench.sonde, "record", "-q", "-F", FREQUENCY, "-o", bench.path(CAPTURE), "--", *program]


def perf(bench, program):
    options = ["--buildid-mmap", "-e", "cpu-clock", "-F", FREQUENCY, "--call-graph", "dwarf"]
    return [bench.perf(), "record", "-q", *options, "-o", bench.path(CAPTURE), "--", *program]


def perf_python(bench):
    """A CPython with -X perf."""
    bench.take(PERF_PYTHON)
    return str(perf_pythons()[0])


def perf_x(bench, program):
    return perf(bench, [perf_python(bench), "-X", "perf", *program[1:]])


def alone_perf(bench, program):
    return [perf_python(bench), *program[1:]]


def py_spy(*more):
    options = ["record", "-r", FREQUENCY, "-f", "raw", "--full-filenames", *more, "-o"]
    return lambda bench, program: [beside(program, "py-spy"), *options, bench.path(CAPTURE), "--", *program]


def austin(name):
    options = ["-s", "-i", f"{1000 // FREQUENCY}ms", "-o"]
    return lambda bench, program: [beside(program, name), *options, bench.path(CAPTURE), *program]


def memray(bench, program):
    return [program[0], "-m", "memray", "run", "-q", "-f", "-o", bench.path(CAPTURE), *program[1:]]


def scalene(bench, program):
    options = ["--cpu-only", "--cpu-sampling-rate", 1 / FREQUENCY, "-o", bench.path(CAPTURE)]
    return [program[0], "-m", "scalene", "run", *options, program[1], "---", *program[2:]]


def pyinstrument(bench, program):
    options = ["-i", 1 / FREQUENCY, "-r", "pyisession", "-o", bench.path(CAPTURE)]
    return [program[0], "-m", "pyinstrument", *options, *program[1:]]


TOOLS = {
    ALONE: Tool(lambda bench, program: program),
    "sonde": Tool(sonde, read_sonde, "cpu", MIXED),
    "perf dwarf": Tool(perf, count_perf, "cpu", "native"),
    ALONE_PERF: Tool(alone_perf, programs=("pure",), baseline=ALONE_PERF),
    "perf dwarf, -X perf": Tool(perf_x, read_perf, "cpu", "functions, native", ("pure",), ALONE_PERF),
    "py-spy": Tool(py_spy(), read_py_spy, needs="py-spy"),
    "py-spy --native": Tool(py_spy("--native"), read_py_spy, holds=MIXED, needs="py-spy"),
    "austin": Tool(austin("austin"), read_austin, needs="austin"),
    "austin, native (austinp)": Tool(austin("austinp"), read_austin, holds=MIXED, needs="austinp"),
    "pyinstrument": Tool(pyinstrument, read_pyinstrument, needs="pyinstrument"),
    "scalene": Tool(scalene, read_scalene, holds=MIXED, needs="scalene"),
    "memray": Tool(memray, needs="memray"),
}
