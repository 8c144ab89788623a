# SPDX-License-Identifier: Apache-2.0
"""What a closed window costs, how soon an open one has samples, and that nothing outside of windows is recorded."""

import json
import math
import os
import time
from pathlib import Path

from needs import PRIVILEGES
from workbench import Failed, report_progress

NEEDS = (PRIVILEGES,)

PAUSE_S = 0.08  # how long the flag is there, and how long it is not
RATES_HZ = (999, 99)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


# ---- a closed step ----


def step_cost(bench, bursts):
    """sonde_step() with a closed gate, and an empty function, in a loop of bodies of a microsecond, in ns."""
    session = bench.folder / "step-session"
    session.mkdir(mode=0o700, exist_ok=True)
    library = bench.build / "src/inject/libsonde-inject.so"
    words = ["env", f"SONDE_SESSION={session}", f"SONDE_LIBRARY={library}"]
    done = bench.run(*words, bench.build / "bench/step-cost", "closed", bursts)
    for file in session.iterdir():
        file.unlink()
    return json.loads(done.output)


# ---- windows by a flag ----


def flap(flag, count):
    """Makes the flag and removes it so often; when it was made, CLOCK_MONOTONIC."""
    made = []
    for _ in range(count):
        time.sleep(PAUSE_S)
        made.append(time.monotonic_ns())
        flag.touch()
        time.sleep(PAUSE_S)
        flag.unlink()
    return made


def read_capture(bench, name):
    """The windows and the moments of the samples in them, CLOCK_MONOTONIC, and how many events lie outside."""
    out = bench.path("windows.json")
    bench.run(bench.sonde, "export", "-f", "chrome", "-o", out, bench.path(name))
    manifest = json.loads(Path(bench.path(name) + ".windows.json").read_text())["windows"]
    events = [event for event in json.loads(Path(out).read_text())["traceEvents"] if event["ph"] != "M"]
    drawn = sorted(event["ts"] for event in events if "opened_by" in event.get("args", {}))
    if not drawn:
        raise Failed("no window was recorded")
    origin_ns = manifest[0]["begin_monotonic_ns"] - drawn[0] * 1000
    windows = [(window["begin_monotonic_ns"], window["end_monotonic_ns"]) for window in manifest]
    moments = [origin_ns + event["ts"] * 1000 for event in events if "opened_by" not in event.get("args", {})]
    outside = sum(not any(begin - 2 <= moment < end + 2 for begin, end in windows) for moment in moments)
    return windows, sorted(moments), outside


def delays(made, windows, moments):
    """For each flag that a window was made of: to its window's begin, and to the first sample in it, in ms; None: there was no
    sample. On a busy machine a flag may be gone before it is seen."""
    for flag_ns, next_ns in zip(made, [*made[1:], math.inf]):
        window = next((window for window in windows if flag_ns <= window[0] < next_ns), None)
        if not window:
            continue
        begin_ns, end_ns = window
        first = next((moment for moment in moments if begin_ns - 2 <= moment < end_ns), None)
        yield (begin_ns - flag_ns) / 1e6, first and (first - flag_ns) / 1e6


def measure_flag(bench, rate, count):
    name, flag, session_file = f"flag-{rate}.pftrace", bench.folder / "flag", bench.folder / "session"
    session_file.unlink(missing_ok=True)
    seconds = 2 + count * 2.2 * PAUSE_S
    spin = [bench.build / "tests/e2e/workloads/spin", seconds]
    command = [bench.sonde, "record", "-q", "-F", rate, "-o", bench.path(name), "--window", f"flag:{flag}",
               "--session-file", session_file, "--", *spin]
    with bench.background(*command) as child:
        while not session_file.exists():
            if child.poll() is not None:
                raise Failed("sonde record ended before it began")
            time.sleep(0.01)
        time.sleep(1)  # the program's files are known
        made = flap(flag, count)
        child.wait()
    windows, moments, outside = read_capture(bench, name)
    found = list(delays(made, windows, moments))
    opened, seen = [began for began, _ in found], [sampled for _, sampled in found if sampled is not None]
    if not seen:
        raise Failed(f"{len(made)} flags made no window with a sample")
    return {
        "windows": len(windows),
        "opened_ms": median(opened),
        "opened_most_ms": max(opened),
        "first_sample_ms": median(seen),
        "first_sample_most_ms": max(seen),
        "without_sample": len(found) - len(seen),
        "flags_missed": len(made) - len(found),
        "samples": len(moments),
        "outside": outside,
    }


# ---- windows by steps ----


def measure_steps(bench):
    """Windows of three steps of 5 ms each, with ranges, samples, steps and waits: what lies outside of them."""
    command = [bench.build / "tests/e2e/workloads/steps", bench.pick(10, 2), bench.pick(2000, 400, 50)]
    bench.run(bench.sonde, "record", "-q", "-F", 999, "-o", bench.path("steps.pftrace"), "--window",
              "steps:wait=5,warmup=1,active=3,repeat=0", "--", *command)
    windows, moments, outside = read_capture(bench, "steps.pftrace")
    return {"windows": len(windows), "events": len(moments), "outside": outside}


def measure(bench):
    results = {
        "step": step_cost(bench, bench.pick(20000, 3000, 20)),
        "flag": {str(rate): measure_flag(bench, rate, bench.pick(100, 15, 3)) for rate in RATES_HZ},
        "steps": measure_steps(bench),
        "cpus": os.cpu_count(),
    }
    report_progress(str(results))
    return results
