# SPDX-License-Identifier: Apache-2.0
"""The command-line flags of training_profiler, for any argparse parser.

parser = argparse.ArgumentParser()
sonde.add_profiler_args(parser)
args = parser.parse_args()
with sonde.profiler_from_args(args) as prof:
    ...
"""

import argparse
from typing import Any, Callable

from .training import training_profiler

_PREFIX = "torch_profiler"


def _steps(least: int) -> Callable[[str], int]:
    """A type for argparse: a whole number of steps."""

    def parse(text: str) -> int:
        # Longer numbers than any loop has steps are taken as they are, but for what int() refuses to read.
        if not text.isdigit() or len(text) > 18 or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of steps, {least} or more, and is '{text}'")
        return int(text)

    return parse


def add_profiler_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds --torch-profiler and its options, as a separate group. Returns the parser."""
    group = parser.add_argument_group("profiler", "trace some steps of training with torch.profiler")
    group.add_argument("--torch-profiler", action="store_true", help="trace steps of training")
    group.add_argument(
        "--torch-profiler-dir", default="./profiler_traces", metavar="DIR", help="where the traces go (%(default)s)"
    )
    for name, least, default, text in (
        ("wait", 0, 1, "steps before each cycle that are not traced"),
        ("warmup", 0, 1, "steps after them that are traced and thrown away"),
        ("active", 1, 3, "steps after them that are traced and kept"),
        ("repeat", 0, 1, "cycles; 0: as many as there are steps for"),
    ):
        group.add_argument(
            "--torch-profiler-" + name, type=_steps(least), default=default, metavar="N", help=text + " (%(default)s)"
        )
    for name, text in (
        ("record-shapes", "trace the shapes of operators' inputs"),
        ("profile-memory", "trace allocations; costs 20 to 30 %% of speed"),
        ("with-stack", "trace Python stacks; costs 30 to 50 %% of speed"),
        ("summary", "print the top 30 operators by device and by CPU time at the end"),
    ):
        group.add_argument("--torch-profiler-" + name, action="store_true", help=text)
    return parser


def profiler_from_args(args: argparse.Namespace) -> Any:
    """sonde.training_profiler() with the parsed flags of add_profiler_args(): disabled without --torch-profiler."""

    def value(name: str) -> Any:
        return getattr(args, f"{_PREFIX}_{name}")

    return training_profiler(
        value("dir"),
        bool(getattr(args, _PREFIX)),
        value("wait"),
        value("warmup"),
        value("active"),
        value("repeat"),
        value("record_shapes"),
        value("profile_memory"),
        value("with_stack"),
        summary=value("summary"),
    )
