# SPDX-License-Identifier: Apache-2.0
"""What energy costs to look at, and how right the attribution is.

Sampling power over a made-up /sys (energy-sampler.c), at 100 Hz and at each source's own schedule, beside a thread that
only wakes up so often; the time of an energy flame graph of 60,000 samples; the errors of classes of simulated GPU work
whose powers are known, and the worst interval of random schedules (tests/unit/test-energy.c).
"""

import json
import re
import statistics

from workbench import report_progress

NEEDS = ()

CLASS = re.compile(r"(\w+) +([\d.]+) J, true +([\d.]+) J: .* SE ([\d.]+) %, (\w+), merged (\d)")
BY_TIME = re.compile(r"(\w+) +by time: ([-+][\d.]+) %")
REFUSED = re.compile(r"attention: SE (?:[\d.]+|-?nan) %, (\w+)")
CONSERVATION = re.compile(r"conservation: (\S+) at most")


def sampler(bench, hz, *arguments):
    """Shares of a core, and the last run."""
    runs = []
    for _ in range(bench.pick(3, 1)):
        done = bench.run(bench.build / "bench" / "energy-sampler", bench.pick(10, 2, 1), hz, *arguments)
        runs.append(json.loads(done.output.splitlines()[-1]))
    return {"cpu_shares": sorted(run["cpu_share"] for run in runs), "last": runs[-1]}


def samplers(bench):
    double = bench.build / "tests" / "doubles" / "nvml" / "libnvidia-ml.so.1"
    return {"own": sampler(bench, 0, double), "100 Hz": sampler(bench, 100, double), "wake": sampler(bench, 100, "wake")}


def flame_graphs(bench):
    """Seconds by weight."""
    capture = bench.path("large.pftrace")
    bench.run(bench.build / "tests" / "unit" / "make-model-capture", "large-energy", capture)
    found = {}
    for weight in ("energy", "cpu"):
        command = (bench.sonde, "export", "-f", "flamegraph", "--weight", weight, "-o", bench.path("large.svg"), capture)
        found[weight] = statistics.median(bench.run(*command).seconds for _ in range(bench.pick(7, 2, 1)))
    return found


def simulated(bench):
    """What test-energy prints. The error of classes that cannot be told from each other is that of their sum."""
    output = bench.run(bench.build / "tests" / "unit" / "test-energy").output
    sums = {}
    for name, found, true, error, method, merged in CLASS.findall(output):
        key = "merged" if int(merged) else name
        one = sums.setdefault(key, {"names": [], "found_j": 0, "true_j": 0, "standard_error": 0, "method": method})
        one["names"].append(name)
        one["found_j"] += float(found)
        one["true_j"] += float(true)
        one["standard_error"] = max(one["standard_error"], float(error) / 100)
    classes = [{**one, "error": one["found_j"] / one["true_j"] - 1} for one in sums.values()]
    return {
        "classes": classes,
        "by_time": {name: float(error) / 100 for name, error in BY_TIME.findall(output)},  # of the last mix
        "refused": REFUSED.findall(output),
        "conservation": float(CONSERVATION.search(output)[1]),
    }


def measure(bench):
    found = {"sampler": samplers(bench), "flame_graph_s": flame_graphs(bench), "simulated": simulated(bench)}
    report_progress(f"energy: {found}")
    return found
