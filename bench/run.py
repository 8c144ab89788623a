#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what sonde costs and how good its stacks are, beside perf, on this machine.

Looks first for what the measurements need, and says what is missing and how to get it; what can be measured without that
is. Each measurement is kept when it has been made: its raw figures in bench/results, its tables in docs/benchmarks.md. With
--quick, or --only without --document, the raw figures are kept in the build folder, and the document stays as it is.

The exit status is 0 when all that was asked for was measured. What `make bench` cannot get, such as published traces, is
not asked for unless --only names a measurement that needs it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field

import api
import binary_frames
import cost
import cuda_rates
import device
import document
import energy
import live_recording
import machine
import models
import needs
import package
import page
import page_live
import peers
import python_stacks
import reading
import serving
import slowdown
import stacks
import store
import timeline
import token_times
import traces
import unwinding
import waiting
import windows
from workbench import ROOT, Failed, Missing, Workbench, children_end, report_progress

MODULES = (stacks, unwinding, cost, reading, slowdown, python_stacks, waiting, windows, device, cuda_rates, api, package)
MODULES += (models, energy, token_times, traces, timeline, page, page_live, serving, live_recording, binary_frames, store, peers)
MEASUREMENTS = {module.__name__: module for module in MODULES}
RESULTS = ROOT / "bench" / "results"
INTERRUPTED = 130


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works")
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="this measurement; writes no document")
    parser.add_argument("--document", action="store_true", help="write docs/benchmarks.md after such a run, too")
    parser.add_argument("--install", action="store_true", help="make the environments of tools/venv that are missing")
    parser.add_argument(
        "--peers",
        default=os.environ.get("SONDE_PEERS"),
        metavar="DIR",
        help="repositories chakra, HolisticTraceAnalysis and param, to compare traces with (SONDE_PEERS)",
    )
    return parser.parse_args()


# ---- before the first measurement ----


def needs_of(module):
    return module.NEEDS + getattr(module, "NEEDS_OF_PARTS", ())


def install(bench, measurements):
    """Environments of tools/venv that these measurements need. What PyPI does not give stays missing."""
    wanted = {need.environment for module in measurements.values() for need in needs_of(module)
              if need.environment and not bench.has(need)}
    for name in sorted(wanted):
        report_progress(f"tools/venv {name}")
        subprocess.run([ROOT / "tools" / "venv", name], stdout=subprocess.DEVNULL)
    bench.present.clear()


@dataclass
class Checked:
    """`left_out` names what is not measured, `failed` what of it was asked for, parts of measurements included."""

    left_out: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    lines: list = field(default_factory=list)


def check(bench, measurements, by_name):
    """What is missing, as lines for a person. `by_name`: the measurements were named one by one."""
    checked, wanted = Checked(), {}
    for name, module in measurements.items():
        for need in needs_of(module):
            if bench.has(need):
                continue
            is_whole = need in module.NEEDS
            wanted.setdefault(need, []).append(name if is_whole else f"{name} (in part)")
            if is_whole and name not in checked.left_out:
                checked.left_out.append(name)
            if (not need.is_given() or (is_whole and by_name)) and name not in checked.failed:
                checked.failed.append(name)
    for need, names in wanted.items():
        checked.lines += [f"{need.name}: {need.get}", f"    without it not measured: {', '.join(names)}"]
    return checked


def print_missing(checked):
    if not checked.lines:
        report_progress("all that the measurements need is here")
        return
    print("\n".join(["bench: missing here, and what to do:", *(f"  {line}" for line in checked.lines)]), flush=True)


# ---- the measurements ----


class Keeper:
    """Writes each measurement when it was made: raw figures into the folder, and the document's tables where it has them."""

    def __init__(self, folder, updates_document):
        self.folder, self.updates_document = folder, updates_document

    def keep(self, about, name, result):
        results = {"machine": about, name: result}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(results, indent=1) + "\n")
        report_progress(f"{name}: kept in {os.path.relpath(path, ROOT)}")
        if self.updates_document:
            document.update(results, document.parts_of(name))

    def keep_summary(self, about, results):
        if self.updates_document and document.has_summary(results):
            document.update({"machine": about} | results, document.SUMMARY)


def describe(bench, load, begin):
    description = machine.describe(bench)
    return description | {"quick": bench.quick, "load_before": load, "seconds": round(time.monotonic() - begin)}


def measure_one(bench, name, module):
    """The result, and None; or None, and why there is none."""
    bench.declared, bench.failed_parts, bench.left_out = needs_of(module), [], []
    try:
        with children_end():
            return module.measure(bench), None
    except (Missing, Failed) as error:
        return None, str(error)
    except Exception as error:  # a fault in one measurement is no reason to lose the others
        traceback.print_exc()
        return None, f"{type(error).__name__}: {error}"


def measure_all(bench, measurements, keeper):
    """Returns the results by measurement, and the names of those that failed, at least in part. Ends early when interrupted."""
    results, failures = {}, []
    for name, module in measurements.items():
        report_progress(f"== {name}")
        load, begin = os.getloadavg()[0], time.monotonic()
        result, why = measure_one(bench, name, module)
        if why:
            failures.append(name)
            report_progress(f"{name}: {why}")
            continue
        results[name] = result
        keeper.keep(describe(bench, load, begin), name, result)
        if bench.failed_parts:
            failures.append(name)
            report_progress(f"{name}: failed in part: {', '.join(bench.failed_parts)}")
        if bench.left_out:
            report_progress(f"{name}: without {', '.join(bench.left_out)}, which failed by itself")
    return results, failures


def stop_when_asked(*_):
    raise KeyboardInterrupt


def run(bench, measurements, keeper, by_name):
    """Checks and measures. Returns the exit status, the results, and what they were measured on."""
    checked = check(bench, measurements, by_name)
    print_missing(checked)
    measured = {name: module for name, module in measurements.items() if name not in checked.left_out}
    load, begin = os.getloadavg()[0], time.monotonic()
    results, failures = measure_all(bench, measured, keeper)
    about = describe(bench, load, begin)
    keeper.keep_summary(about, results)
    failed = [name for name in measurements if name in failures or name in checked.failed]
    if checked.left_out:
        report_progress(f"left out, as said at the beginning: {', '.join(checked.left_out)}")
    if failed:
        report_progress(f"not measured, at least in part: {', '.join(failed)}; the lines above say why")
    return (1 if failed else 0), results, about


def print_results(arguments, results, about):
    if arguments.only:
        print(json.dumps({"machine": about} | results, indent=1))
        return
    print("\n" + document.machine({"machine": about}))
    if document.has_summary(results):
        print("\n" + document.summary(results))


def keeper_for(arguments, bench):
    is_published = arguments.document or not (arguments.quick or arguments.only)
    return Keeper(RESULTS if is_published else bench.build / "bench-results", is_published)


def main():
    arguments = read_arguments()
    measurements = {name: MEASUREMENTS[name] for name in arguments.only or MEASUREMENTS}
    if not arguments.only and os.geteuid() != 0:
        sys.exit(f"bench: most measurements need {needs.PRIVILEGES.name}: {needs.PRIVILEGES.get}; --only NAME measures one of the others")
    signal.signal(signal.SIGTERM, stop_when_asked)
    bench = None
    try:
        bench = Workbench(arguments.build, arguments.quick, arguments.peers)
        if arguments.install:
            install(bench, measurements)
        status, results, about = run(bench, measurements, keeper_for(arguments, bench), bool(arguments.only))
    except Missing as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        report_progress("interrupted; what is kept, the lines above say")
        sys.exit(INTERRUPTED)
    finally:
        if bench:
            bench.close()
    print_results(arguments, results, about)
    sys.exit(status)


if __name__ == "__main__":
    main()
