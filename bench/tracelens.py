#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
tracelens.py SONDE REPOSITORY [--rounds N]: what the report of a trace costs, beside that of TraceLens. REPOSITORY is a git
repository of AMD-AGI/TraceLens: the commit that was measured, and the traces that it publishes, are taken from there, what it
needs from PyPI. Both write all their tables, sonde as JSON and TraceLens as CSV; they take turns, and figures are medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

COMMIT = "171dd74721ca1ec45709e5805b68ae1f65e27811"
NEEDS = ("pandas==3.1.1", "numpy", "openpyxl", "orjson", "tqdm", "tabulate", "PyYAML", "matplotlib", "msal")
TRACES = (
    "tests/traces/h100/google_owlv2-large-patch14-ensemble__1016001.json.gz",
    "tests/traces/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tests/traces/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    "tests/traces/inference/xdit_sd_3.5/profile_trace_rank_0.json.gz",
)


def unpack(repository: Path, folder: Path) -> None:
    archive = folder / "archive.tar"
    subprocess.run(["git", "-C", repository, "archive", "-o", archive, COMMIT, "TraceLens", *TRACES], check=True)
    with tarfile.open(archive) as content:
        content.extractall(folder)


def environment(folder: Path) -> Path:
    """The Python of a virtual environment with what TraceLens imports; it is not on PyPI itself."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "--quiet", "install", "--only-binary", ":all:", *NEEDS], check=True)
    return python


def once(command: list, folder: Path) -> "tuple[float, float, float]":
    """Seconds by the clock and of CPU time in user space, and megabytes at the peak."""
    begin = time.monotonic()
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)})
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command[:4]))} … failed: {(folder / 'log').read_text(errors='replace')[-500:]}")
    return time.monotonic() - begin, usage.ru_utime, usage.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sonde", type=Path)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    sonde = arguments.sonde.resolve()
    print("| trace | sonde | TraceLens | time of the CPU | memory |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(arguments.repository.resolve(), folder)
        python = environment(folder)
        for trace in TRACES:
            commands = (
                [sonde, "report", "--json", folder / trace],
                [python, "-m", "TraceLens.Reporting.generate_perf_report_pytorch", "--profile_json_path", folder / trace,
                 "--output_csvs_dir", folder / "tables"],
            )
            runs = [[once(command, folder) for command in commands] for _ in range(arguments.rounds)]
            own, theirs = ([statistics.median(column) for column in zip(*of_one)] for of_one in zip(*runs))
            cells = ["{:.2f} s ({:.2f} s), {:.0f} MB".format(*cost) for cost in (own, theirs)]
            print(f"| {Path(trace).name} | {' | '.join(cells)} | {theirs[1] / own[1]:.0f} × | {theirs[2] / own[2]:.1f} × |", flush=True)


if __name__ == "__main__":
    main()
