#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What energy costs to look at, and how right the attribution is: bench/energy.py BUILD_FOLDER

Prints what sampling power costs over a made-up /sys (energy-sampler.c; median of three, at 100 Hz and at each source's own
schedule), the time of an energy flame graph of 60,000 samples (median of seven), what it takes with CPU time in its place, and
the errors of classes of simulated GPU work whose powers are known (tests/unit/test-energy.c).
"""

import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 7
SAMPLER_RUNS, SAMPLER_SECONDS = 3, 10


def timed(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def flame_graph(build, folder, weight):
    capture, picture = folder / "large.pftrace", folder / "large.svg"
    subprocess.run([build / "tests/unit/make-model-capture", "large-energy", capture], check=True)
    command = [build / "sonde", "export", "-f", "flamegraph", "--weight", weight, "-o", picture, capture]
    runs = [timed(*command) for _ in range(RUNS)]
    return tuple(statistics.median(values) for values in zip(*runs))


def sampler(build, hz):
    command = [build / "bench/energy-sampler", SAMPLER_SECONDS, hz, build / "tests/doubles/nvml/libnvidia-ml.so.1"]
    runs = []
    for _ in range(SAMPLER_RUNS):
        done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    return runs


def print_sampler(build):
    for hz, name in ((100, "100 Hz each"), (0, "as they are recorded")):
        runs = sampler(build, hz)
        shares = sorted(100 * run["cpu_share"] for run in runs)
        print(
            f"sampler, {len(runs[0]['domains'])} rails, {name}: {statistics.median(shares):.2f} % of a core "
            f"({shares[0]:.2f} to {shares[-1]:.2f}), {sum(run['allocations'] for run in runs)} allocations"
        )


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    print_sampler(build)
    with tempfile.TemporaryDirectory() as name:
        for weight in ("energy", "cpu"):
            wall, cpu = flame_graph(build, pathlib.Path(name), weight)
            print(f"flame graph of 60,000 samples, --weight {weight}: {wall:.2f} s, {cpu:.2f} s of CPU time")
    simulated = subprocess.run([build / "tests/unit/test-energy"], check=True, capture_output=True, text=True)
    for line in re.findall(r".*(?:SE |by time).*", simulated.stdout + simulated.stderr):
        print(line)


if __name__ == "__main__":
    main()
