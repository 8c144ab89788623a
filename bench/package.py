# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs where nothing is recorded, what importing it takes, and what an export stops."""

import json
import subprocess
import sys

from needs import DISTRIBUTION_PYTHON, DISTRIBUTION_TORCH, TORCH2, environment_python
from workbench import ROOT, Failed, Missing, report_progress

NEEDS = ()
NEEDS_OF_PARTS = (DISTRIBUTION_TORCH, TORCH2)

SCRIPT = ROOT / "bench" / "package_costs.py"
PYTHONS = {"system": (DISTRIBUTION_TORCH, DISTRIBUTION_PYTHON), "torch2": (TORCH2, environment_python("torch2"))}


def run_script(bench, python, *arguments):
    environment = {**bench.environment(), "PYTHONPATH": str(bench.build / "python")}
    for name in [name for name in environment if name.startswith(("VLLM_CHAKRA_", "SONDE_"))]:
        del environment[name]
    done = subprocess.run(
        [python, "-W", "ignore", SCRIPT, *map(str, arguments)], env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise Failed(f"{SCRIPT.name} {' '.join(map(str, arguments))}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def import_times(bench, rounds):
    """Microseconds that `import sonde` takes, everything that it imports included, in new processes."""
    times = []
    for _ in range(rounds):
        environment = {**bench.environment(), "PYTHONPATH": str(bench.build / "python")}
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", "import sonde"], env=environment, capture_output=True, text=True
        )
        line = next(line for line in done.stderr.splitlines() if line.split("|")[-1].strip() == "sonde")
        times.append(int(line.split("|")[1]))
    return sorted(times)


def interval(ratios):
    """Median and the 95 % interval of the median, by order statistics of sorted ratios."""
    count = len(ratios)
    reach = int(0.98 * count**0.5 + 0.5)
    middle = count // 2
    return ratios[middle], ratios[max(0, middle - reach)], ratios[min(count - 1, middle + reach)]


def measure_torch(bench, name):
    need, python = PYTHONS[name]
    try:
        bench.take(need)
    except Missing as error:
        bench.leave_out(f"PyTorch of {name}", error)
        return {"missing": str(error)}
    loop = run_script(bench, python, "loop", bench.pick(101, 21, 3), bench.pick(1000, 300, 30))
    median, lowest, highest = interval(loop.pop("ratios"))
    loop |= {"ratio": median, "ratio_lowest": lowest, "ratio_highest": highest}
    return {"loop": loop, "export": run_script(bench, python, "export", bench.pick(40_000, 5_000, 500))}


def measure(bench):
    times = import_times(bench, bench.pick(41, 11, 3))
    calls = run_script(bench, sys.executable, "calls")
    results = {"import_us": times[len(times) // 2], "import_us_highest": times[-1], "calls_ns": calls}
    for name in PYTHONS:
        results[name] = measure_torch(bench, name)
        report_progress(f"package, {name}: {results[name]}")
    return results
