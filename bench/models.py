# SPDX-License-Identifier: Apache-2.0
"""What watching a model costs for each token, and whether the times of its parts add up to the time of its passes."""

import json

from package import interval
import needs
from workbench import ROOT, Failed, report_progress

NEEDS = (needs.PRIVILEGES, needs.TORCH2, needs.TRANSFORMERS)

SCRIPT = ROOT / "bench" / "model_costs.py"


def run_script(bench, capture, *arguments):
    """Runs it recorded, without hooks of ours but those that it asks for."""
    python = bench.torch2_python()
    bench.take(needs.TRANSFORMERS)
    program = ["env", f"PYTHONPATH={bench.build / 'python'}", python, "-W", "ignore", SCRIPT, *arguments]
    done = bench.record(capture, "--hooks", "none", "--", *program)
    lines = [line for line in done.output.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed(f"{SCRIPT.name}: {done.output[-500:]}")
    return json.loads(lines[-1])


def measure_sums(bench):
    """What the ranges of the capture add up to, against a clock around the passes."""
    said = run_script(bench, "sums.pftrace", "sums", bench.pick(60, 20))
    rows = bench.report("sums.pftrace", "--by", "range")["ranges"]["rows"]
    totals = {row["name"]: row["total_ns"] / 1e9 for row in rows
              if row["domain"] == "sonde.model" and row["total_ns"] is not None}
    layers = sum(seconds for name, seconds in totals.items() if name.startswith("layer ") and name.count(" ") == 1)
    outside = sum(totals.get(name, 0) for name in ("embed", "final_norm", "head", "rotary_emb"))
    return {**said, "step_s": totals["step"], "layers_s": layers, "outside_s": outside,
            "ratio": totals["step"] / said["seconds"]}


def measure(bench):
    found = run_script(bench, "cost.pftrace", "cost", bench.pick(400, 50))
    found["levels"] = {level: dict(zip(("ratio", "lowest", "highest"), interval(ratios)))
                       for level, ratios in found.pop("ratios").items()}
    report_progress(f"models: {found}")
    return {"cost": found, "sums": measure_sums(bench)}
