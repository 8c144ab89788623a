# SPDX-License-Identifier: Apache-2.0
"""Python stacks against the truth on every CPython that is found, and what a mixed sample costs."""

import pathlib
import subprocess
import sys

import needs
from workbench import ROOT, report_progress

sys.path.insert(0, str(ROOT / "tests" / "e2e"))

NEEDS = (needs.PRIVILEGES, needs.PYTEST)
FREQUENCY = 997


def judge(bench, truth, profile):
    """(right, wrong) samples: a stack is right when the traced run saw it, line by line."""
    import pprof
    import test_python

    right = wrong = 0
    for frames, count in pprof.read(profile):
        stack = test_python.without_main_line(test_python.comparable(test_python.python_frames(frames)))
        if not test_python.is_judged(stack):
            continue
        if stack in truth:
            right += count
        else:
            wrong += count
    return right, wrong


def measure_python(bench, python, library, seconds):
    import test_python

    folder = pathlib.Path(bench.path("truth"))
    folder.mkdir(exist_ok=True)
    truth = {
        test_python.without_main_line(test_python.comparable(stack))
        for stack in test_python.truth_of(python, library, folder)
    }
    command = [python, test_python.SCRIPTS / "truth.py", "run", seconds, library]
    bench.record("python.pftrace", "-F", FREQUENCY, "--", *command)
    profile = bench.path("python.pprof")
    bench.run(bench.sonde, "export", "-f", "pprof", "-o", profile, bench.path("python.pftrace"), output=False)
    right, wrong = judge(bench, truth, profile)
    data = bench.report("python.pftrace")
    overhead, completeness = data["overhead"], data["completeness"]
    return {
        "judged": right + wrong,
        "right_share": right / (right + wrong),
        "with_frames_share": completeness["python_complete_share"],
        "not_merged": completeness["samples_by_python"]["not_merged"],
        "bpf_us_per_sample": overhead["bpf_run_time_ns"] / max(overhead["bpf_run_count"], 1) / 1000,
    }


def measure_released(bench, python):
    """Samples of threads that gave the lock back while they run native code: do they have their Python frames?"""
    script = ROOT / "bench" / "released.py"
    bench.record("released.pftrace", "-F", FREQUENCY, "--", python, script, bench.pick(10, 3))
    data = bench.report("released.pftrace")
    by_state = {row["gil"]: row["self_share"] for row in data["tables"]["gil"]["rows"]}
    return {
        "python_samples": data["completeness"]["python_stacks"],
        "with_frames_share": data["completeness"]["python_complete_share"],
        "released_share": by_state.get("released", 0),
    }


def measure(bench):
    bench.take(needs.PYTEST)
    import test_python

    library = bench.path("libcallback.so")
    source = test_python.SCRIPTS / "call_back.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    results = {}
    for name, python in test_python.PYTHONS.items():
        results[name] = measure_python(bench, python, library, bench.pick(7, 2))
        results[name]["lock_released"] = measure_released(bench, python)
        report_progress(f"CPython {name}: {results[name]}")
    return results
