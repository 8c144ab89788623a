#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what sonde costs and how good its stacks are, beside perf, on this machine.

Prints a table of the figures. A full run takes about three quarters of an hour; it also writes
bench/results/full.json and the tables of docs/benchmarks.md. It needs privileges, for sonde's BPF mode and for perf,
and a machine with nothing else to do.
"""

import argparse
import json
import os
import sys
import time

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
from workbench import ROOT, Failed, Missing, Workbench, report_progress

MODULES = (stacks, unwinding, cost, reading, slowdown, python_stacks, waiting, windows, device, cuda_rates, api, package)
MODULES += (models, energy, token_times, traces, timeline, page, page_live, serving, live_recording, binary_frames, store, peers)
MEASUREMENTS = {module.__name__: module for module in MODULES}
RESULTS = ROOT / "bench" / "results"


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works: about eight minutes")
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="this measurement; writes no document")
    parser.add_argument("--document", action="store_true", help="write docs/benchmarks.md after such a run, too")
    parser.add_argument(
        "--peers",
        default=os.environ.get("SONDE_PEERS"),
        metavar="DIR",
        help="repositories chakra, HolisticTraceAnalysis and param, to compare traces with (SONDE_PEERS)",
    )
    return parser.parse_args()


def check_privileges():
    if os.geteuid() != 0:
        raise Missing("the benchmarks compare with perf and use sonde's BPF mode, which need root: sudo make bench")


def measure_all(bench, names):
    """Returns the results by measurement, and the names of those that could not be made."""
    results, failures = {}, []
    for name in names:
        try:
            results[name] = MEASUREMENTS[name].measure(bench)
        except (Missing, Failed) as error:
            failures.append(name)
            report_progress(f"{name}: {error}")
    return results, failures


def measure_machine(bench, names):
    load, begin = os.getloadavg()[0], time.monotonic()
    results, failures = measure_all(bench, names)
    description = machine.describe(bench)
    description |= {"quick": bench.quick, "load_before": load, "seconds": round(time.monotonic() - begin)}
    return {"machine": description} | results, failures


def write_results(results, name):
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / name
    path.write_text(json.dumps(results, indent=1) + "\n")
    report_progress(f"raw figures: {path.relative_to(ROOT)}")


def publish_some(results, names):
    """The tables of the measurements named, each with its raw figures in a file of its own."""
    parts = [part for part in document.PARTS if part.__name__ in names]
    for part in parts:
        write_results({name: results[name] for name in ("machine", part.__name__)}, f"{part.__name__}.json")
    document.update(results, parts)


def publish(results, arguments):
    if arguments.only:
        print(json.dumps(results, indent=1))
        if arguments.document:
            publish_some(results, arguments.only)
        return
    print("\n" + document.machine(results) + "\n\n" + document.summary(results) + "\n")
    write_results(results, "quick.json" if arguments.quick else "full.json")
    if arguments.document or not arguments.quick:
        document.update(results)
        report_progress(f"written: {document.DOCUMENT.relative_to(ROOT)}")


def main():
    arguments = read_arguments()
    bench = None
    try:
        check_privileges()
        bench = Workbench(arguments.build, arguments.quick, arguments.peers)
        names = arguments.only or list(MEASUREMENTS)
        results, failures = measure_machine(bench, names)
    except Missing as error:
        sys.exit(f"bench: {error}")
    finally:
        if bench:
            bench.close()
    if failures:
        print(json.dumps(results, indent=1))
        sys.exit(f"bench: could not be measured: {', '.join(failures)}; the lines above say why")
    publish(results, arguments)


if __name__ == "__main__":
    main()
