#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Energy as each format and the report have it: check_energy.py MAKE_MODEL_CAPTURE SONDE

The capture is 2 s of two rails, replayed: package-0 with 50 W, of which 10 W are idle and half of the
rest is the program's, and gpu0 with 100 W, of which 20 W are idle. 300 J in all, 100 for the package.
"""

import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from pprof import fields, read

MEASURED_UJ = 300_000_000
# The sums of three kinds are rounded, each once.
ROUNDING_UJ = 3


def run(*command, status=0):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def check_sum(found, what):
    assert abs(found - MEASURED_UJ) <= ROUNDING_UJ, f"{what}: {found} uJ, and not {MEASURED_UJ}"


def check_uncertainties(rows):
    """Of each row, or the reason. A sensor of 5 %: idle energy has nothing else; what samples share has more."""
    by_name = {row["name"]: row for row in rows}
    idle, attend, gemm = (by_name[name] for name in ("[idle]", "attend", "[gpu] gemm"))
    assert int(idle["self_energy_uncertainty_uj"]) == 3_000_000, idle
    assert float(attend["self_energy_uncertainty_uj"]) > 0.05 * float(attend["self_energy_uj"]), attend
    assert gemm["self_energy_uncertainty_reason"] == "time_share" and not gemm["self_energy_uncertainty_uj"], gemm
    assert attend["total_energy_uncertainty_reason"] == "time_share", attend


def check_folded(text):
    stacks = {}
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[stack] = int(count)
    check_sum(sum(stacks.values()), "folded")
    # Idle: 10 W and 20 W over 2 s. The processor's other program takes as much as ours.
    assert abs(stacks["package-0;[idle]"] - 20e6) <= 1, stacks
    assert abs(stacks["gpu0;[idle]"] - 40e6) <= 1, stacks
    assert abs(stacks["package-0;[unattributed]"] - 40e6) < 1e6, stacks
    ours = sum(value for stack, value in stacks.items() if stack.startswith("python3;"))
    kernels = sum(value for stack, value in stacks.items() if "[gpu] " in stack)
    assert kernels > 70e6 and abs(ours - kernels - 40e6) < 1e6, stacks
    assert "python3;main;attend;[gpu] softmax" in stacks, stacks


def check_formats(sonde, capture, folder):
    def export(name, *options):
        path = folder / f"out.{name}"
        run(sonde, "export", "-f", name, "--weight", "energy", "-o", path, *options, capture)
        return path

    check_folded(export("folded", "--roots", "process").read_text())
    svg = export("flamegraph").read_text()
    assert "300 J" in svg and "[gpu] gemm" in svg and "[unattributed]" in svg
    assert re.search(r"\[idle\]\n\[energy\]\n13.33 % · 40.0 J ± 2.00 J", svg), "the uncertainty of a frame"
    assert re.search(r"\[gpu\] gemm\n\[gpu\]\n.*\(± not known: time_share\)", svg), "why it has none"
    assert not re.search(r"\d (samples|ms|s) ·", svg.split("recorded", 1)[0]), "times in joules"

    profiles = json.loads(export("speedscope").read_text())["profiles"]
    check_sum(sum(sum(profile["weights"]) for profile in profiles), "speedscope")
    assert all(p["unit"] == "none" and "microjoules" in p["name"] for p in profiles)

    path = export("pprof", "--title", "x")
    check_sum(sum(value for _, value in read(path, 1)), "pprof")
    import gzip

    profile = list(fields(gzip.open(path).read()))
    texts = [value.decode() for number, value in profile if number == 6]
    assert "energy" in texts and "microjoules" in texts and "nanoseconds" not in texts, texts

    script = export("perf-script").read_text()
    check_sum(sum(int(n) for n in re.findall(r"(\d+) energy-uj:", script)), "perf-script")
    assert "cpu-clock" not in script

    rows = list(csv.DictReader(io.StringIO(export("csv").read_text())))
    check_sum(sum(int(row["self_energy_uj"]) for row in rows), "csv")
    assert all(row["self_samples"] == row["self_time_ns"] == "" for row in rows)
    check_uncertainties(rows)
    path = folder / "out.jsonl"
    run(sonde, "export", "-f", "jsonl", "-o", path, capture)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    measured = sum(event["energy_j"] for event in events if event["type"] == "energy")
    charged = sum(event.get("charged_j", 0) for event in events)
    energy = json.loads(run(sonde, "report", "--json", capture))["energy"]
    assert abs(measured - 300) < 1e-6, measured
    assert abs(charged - energy["attributed_j"]) < 1e-6, charged
    for name in ("chrome", "jsonl", "json"):
        said = run(sonde, "export", "-f", name, "--weight", "energy", capture, status=2)
        assert "--weight energy" in said, said


def check_report(sonde, capture):
    report = json.loads(run(sonde, "report", "--json", "--weight", "energy", capture))
    energy = report["energy"]
    assert abs(energy["measured_j"] - 300) < 1e-6
    assert energy["counted"] == ["package-0", "gpu0"]
    parts = [energy[key] for key in ("idle_j", "attributed_j", "gaps_j", "unattributed_j")]
    assert abs(sum(parts) - 300) < 1e-6, parts
    for domain in energy["domains"]:
        assert domain["is_replayed"] and domain["conservation_error"] <= 1e-9, domain
    assert energy["absences"] == [{"source": "perf", "reason": "this is a test's recording"}]
    assert {row["method"] for row in energy["classes"]} <= {"regression", "time_share"}
    assert report["tables_weight"] == "energy"
    rows = report["tables"]["function"]["rows"]
    check_sum(sum(row["self_energy_uj"] for row in rows), "report --json")
    assert all(row["self_samples"] is None and row["self_time_ns"] is None for row in rows)
    check_uncertainties(rows)
    plain = json.loads(run(sonde, "report", "--json", capture))
    assert plain["tables"]["function"]["rows"][0]["self_energy_uj"] is None
    assert plain["tables"]["function"]["rows"][0]["self_energy_uncertainty_uj"] is None
    lines = plain["own_code"]["lines"]["rows"]
    assert sum(line["self_energy_j"] for line in lines) > 100, lines
    # Half of it is kernels, which were split by time.
    assert all(line["self_energy_uncertainty_j"] is None for line in lines), lines

    text = run(sonde, "report", "--weight", "energy", capture)
    assert "Self energy" in text and "[unattributed]" in text and "[gpu] gemm" in text, text
    assert "Self time" not in text
    assert re.search(r"60.0 J +3.00 J .*\[idle\]", text), text
    assert "Not known in 6 rows: work of a GPU that was split by time (time_share)." in " ".join(text.split()), text
    text = run(sonde, "report", capture)
    for part in ("Energy\n", "Together: 300 J", "package-0 (replayed) + gpu0 (replayed)", "replayed"):
        assert part in text, f"{part} is missing:\n{text}"
    assert re.search(r"Self time +Energy +Line", text), text
    # Half of the time has half of the energy; a program has none of the rails' own.
    half = json.loads(run(sonde, "report", "--json", "--time", "0..1", capture))["energy"]
    assert abs(half["measured_j"] - 150) < 1e-6, half["measured_j"]
    text = run(sonde, "report", "--process", "python3", capture)
    assert "energy of rails (--process)" in text and "Together" not in text, text


def each_side(sonde, capture):
    return json.loads(run(sonde, "report", "--json", "--weight", "energy", capture))["tables"]["function"]["rows"]


def check_diff(sonde, capture):
    document = json.loads(run(sonde, "diff", "--json", "--weight", "energy", capture, capture))
    same = document["samples"]
    assert abs(same["before"]["energy_j"] - 300) < 1e-4 and same["before"]["samples"] is None
    assert all(row["energy_change_j"] == 0 and not row["significant"] for row in same["rows"])
    rows = {row["name"]: row for row in same["rows"]}
    # Of both sides as of two sensors: 5 % of 60 J twice, and null with the reason where a side has none.
    assert abs(rows["[idle]"]["energy_change_uncertainty_j"] - 3 * 2 ** 0.5) < 1e-6, rows["[idle]"]
    shared = rows["[gpu] gemm"]
    assert shared["energy_change_uncertainty_j"] is None and shared["energy_uncertainty_reason"] == "time_share", shared
    attend = next(row for row in each_side(sonde, capture) if row["name"] == "attend")
    expected = int(attend["self_energy_uncertainty_uj"]) * 2 ** 0.5 / 1e6
    assert abs(rows["attend"]["energy_change_uncertainty_j"] - expected) < 1e-5, rows["attend"]
    by_time = json.loads(run(sonde, "diff", "--json", capture, capture))["samples"]["rows"]
    assert all(row["energy_change_uncertainty_j"] is row["energy_uncertainty_reason"] is None for row in by_time)
    text = run(sonde, "diff", "--weight", "energy", "--all", capture, capture)
    assert "Energy: " in text and "300 J" in text and "CPU time" not in text, text
    assert re.search(r"^ *Energy +± +Share", text, re.M), text


def check_regress(sonde, capture):
    command = (sonde, "report", "--regress", capture, "--threshold", "5", "--weight", "energy")
    document = json.loads(run(*command, "--json", capture))
    assert document["compared"] == "energy", document
    rows = {row["name"]: row for row in document["rows"]}
    assert abs(rows["gemm"]["before"]["median_j"] - 0.4) < 1e-6, rows["gemm"]
    assert rows["energy"]["kind"] == "energy" and rows["energy"]["verdict"] == "unchanged", rows
    assert abs(rows["energy"]["after"]["mean_j"] - 119.7) < 0.5, rows["energy"]
    text = run(*command, capture)
    assert "400 mJ" in text and "medians of energy" in " ".join(text.split()) and " ms" not in text, text


def check_without(maker, sonde, folder):
    capture = folder / "plain.pftrace"
    run(maker, "hostile", capture)
    said = run(sonde, "report", "--weight", "energy", capture, status=1)
    assert "energy was not recorded" in said, said
    said = run(sonde, "export", "-f", "folded", "-o", "-", "--weight", "energy", capture, status=1)
    assert "energy was not recorded" in said, said
    assert json.loads(run(sonde, "report", "--json", capture))["energy"] is None


def main():
    maker, sonde = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        capture = folder / "energy.pftrace"
        run(maker, "energy", capture)
        check_formats(sonde, capture, folder)
        check_report(sonde, capture)
        check_diff(sonde, capture)
        check_regress(sonde, capture)
        check_without(maker, sonde, folder)


if __name__ == "__main__":
    main()
