# SPDX-License-Identifier: Apache-2.0
"""How many kernels of CUDA a second a recording takes in, from the stand-in for CUPTI: two threads launch, each into its stream.

At every rate, what was launched and what the device told is counted exactly, whatever the rings could carry."""

from device_launches import said
from needs import PRIVILEGES
from workbench import Failed, report_progress

NEEDS = (PRIVILEGES,)

RATES = (300_000, 1_000_000)
STACKS = ("off", "inprocess", "bpf")


def check_counts(counts, kernels):
    told = counts["activities"] + counts["dropped"]
    if counts["launches"] != kernels or told != kernels:
        raise Failed(f"{kernels:,} kernels were launched; {counts['launches']:,} launches and {told:,} kernels were counted")


def recorded(bench, rate, stacks):
    double = bench.build / "tests" / "doubles" / "cupti" / "libcupti-double-13.so"
    command = ["env", f"SONDE_CUPTI={double}", bench.build / "bench" / "cuda-rate", double, rate, bench.pick(10, 2, 1)]
    run = said(bench.record("rate.pftrace", "--energy", "off", "--launch-stacks", stacks, "--", *command))
    work = bench.report("rate.pftrace", "--by", "kernel")["device_work"]
    check_counts(work["cuda"]["counts"], run["kernels"])
    size = bench.size("rate.pftrace")
    bench.remove("rate.pftrace")
    launches = work["launches"]
    return run | {
        "recorded": work["count"],
        "dropped": work["cuda"]["counts"]["dropped"],
        "records_lost": work["records_lost"],
        "launches": launches["count"],
        "stacks": launches["stacks"],
        "complete_stacks": launches["complete_stacks"],
        "bytes_per_kernel": size / run["kernels"],
    }


def measure(bench):
    results = {}
    for rate in RATES:
        for stacks in STACKS:
            report_progress(f"CUDA: {rate:,} kernels/s, stacks {stacks}")
            results[f"{rate}/s, {stacks}"] = recorded(bench, rate, stacks)
    return results
