# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs where nothing is recorded, what importing it takes, and what an export stops."""

import json
import os
import subprocess
import sys

from workbench import ROOT, Failed, report_progress

SCRIPT = ROOT / "bench" / "package_costs.py"
PYTHONS = {"system": "/usr/bin/python3", "torch2": str(ROOT / ".venv-torch2" / "bin" / "python")}


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
    python = PYTHONS[name]
    probe = [python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    if not os.access(python, os.X_OK) or subprocess.run(probe).returncode != 0:
        return {"missing": "no PyTorch; tools/venv torch2" if name == "torch2" else "no PyTorch; tools/deps bench"}
    loop = run_script(bench, python, "loop", bench.pick(101, 21), bench.pick(1000, 300))
    median, lowest, highest = interval(loop.pop("ratios"))
    loop |= {"ratio": median, "ratio_lowest": lowest, "ratio_highest": highest}
    return {"loop": loop, "export": run_script(bench, python, "export", bench.pick(40_000, 5_000))}


def measure(bench):
    times = import_times(bench, bench.pick(41, 11))
    calls = run_script(bench, sys.executable, "calls")
    results = {"import_us": times[len(times) // 2], "import_us_highest": times[-1], "calls_ns": calls}
    for name in PYTHONS:
        results[name] = measure_torch(bench, name)
        report_progress(f"package, {name}: {results[name]}")
    return results
