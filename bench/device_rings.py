# SPDX-License-Identifier: Apache-2.0
"""How many records of device work the rings carry, and what they cost the collector, from a stand-in source."""

from cost import Watch
from device_launches import said
from workbench import Failed

FAST = 2_000_000  # records a second, of 136 bytes
BUSY = 300_000
USUAL = 20_000
RATES = (500_000, 1_000_000, 1_500_000, FAST)


def source(bench, rate, seconds):
    return [bench.build / "bench" / "ring-source", rate, seconds]


def measure_rings(bench):
    """One process, one ring, and a reader that only counts; the best of three, and all of them."""
    command = [bench.build / "bench" / "ring-drain", *source(bench, FAST, bench.pick(5, 2))]
    runs = [said(bench.run(*command)) for _ in range(3)]
    return {
        "rate": FAST,
        "lost": [run["lost"] for run in runs],
        "records": [run["records"] for run in runs],
        "reader_cpu_share": min(run["cpu_s"] / run["seconds"] for run in runs),
    }


def recorded_rate(bench, rate, seconds, **options):
    """What a whole recording makes of so many records a second: what the source could write, and the capture."""
    done = bench.record("rings.pftrace", "--", *source(bench, rate, seconds), **options)
    result = said(done)
    result["bytes_per_record"] = bench.size("rings.pftrace") / max(result["written"], 1)
    return result


def check_capture(bench, written):
    work = bench.report("rings.pftrace", "--by", "kernel")["device_work"]
    if work["count"] != written:
        raise Failed(f"the capture has {work['count']} records of {written}")


def busy_collector(bench):
    watch = Watch(*bench.pick((3, 15), (2, 3)))
    run = recorded_rate(bench, BUSY, watch.seconds, during=watch)
    check_capture(bench, run["written"])
    return {"rate": BUSY, "cpu_share": watch.cpu_share, **run}


def measure_collector(bench):
    result = {"busy": busy_collector(bench), "usual": recorded_rate(bench, USUAL, bench.pick(10, 3)), "rates": {}}
    for rate in RATES:
        result["rates"][str(rate)] = recorded_rate(bench, rate, bench.pick(3, 1))
        bench.remove("rings.pftrace")
    return result
