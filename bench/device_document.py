# SPDX-License-Identifier: Apache-2.0
"""The figures of device work as Markdown: what is to hold, then the tables behind it."""

from markdown_table import NONE, number, percent, table, verdict

# Of what a launch costs more, in nanoseconds.
ADDED_BARS = {"full unwind": 10_000, "memo hit": 600, "no stacks": 150}
CLOSED_BARS = {"launch (OpenCL)": 10, "push and pop (NVTX)": 8}
CALLED = {"launch (OpenCL)": "a double of the driver", "push and pop (NVTX)": "a double of NVTX's headers"}
DRIVERS = {"added": "PoCL", "double": "a double of the driver"}


def joined_bars(found):
    for name, run in found["joined"].items():
        measured = f"{percent(run['joined_share'], 2)} / {percent(run['complete_share'], 2)} of {run['launches']:,}"
        holds = run["joined_share"] == 1 and run["complete_share"] >= 0.995
        yield f"launches joined to a stack / complete ones, {name}", "100 % / ≥ 99.5 %", measured, holds


def memo_bars(found):
    run = found["joined"]["PyOpenCL training"]
    share = run["wrong"] / run["checked"] if run["checked"] else None
    measured = f"{run['wrong']} of {run['checked']:,} checked; {percent(run['known_share'])} of the launches were hits"
    yield "memo error, PyOpenCL training", "≤ 0.1 %", measured, share is not None and share <= 0.001


def clock_bars(found):
    for name, run in found["joined"].items():
        error_us, early = run["clock_error_ns"] / 1e3, run["started_before_launch"]
        measured = f"{error_us:.1f} µs / {early:,}"
        yield f"device clock error / work begun before its launch, {name}", "≤ 5 µs / 0", measured, (
            error_us <= 5 and early == 0
        )


def added_bars(found):
    for key, driver in DRIVERS.items():
        for name, added in found[key]["added_ns"].items():
            bar = ADDED_BARS[name]
            yield f"a launch takes longer by, {name}, {driver}", f"≤ {bar:,} ns", number(added["median"], "ns", 0), (
                added["median"] <= bar
            )


def closed_bars(found):
    for name, run in found["closed"].items():
        bar, added = CLOSED_BARS[name], run["added_ns"]["median"]
        yield f"closed window, {name}, beyond not injected", f"≤ {bar} ns", number(added, "ns"), added <= bar


def ring_bars(found):
    rings, busy = found["rings"], found["collector"]["busy"]
    lost = " / ".join(f"{count:,}" for count in rings["lost"])
    yield (
        f"records lost at {rings['rate']:,}/s through one ring, three runs",
        "0",
        f"{lost} of {max(rings['records']):,}",
        not any(rings["lost"]),
    )
    share, what = busy["cpu_share"], f"collector at {busy['rate']:,} records/s, into a capture: of one core / lost"
    yield what, "≤ 20 % / 0", f"{percent(share)} / {busy['lost']:,} of {busy['written']:,}", (
        share <= 0.2 and busy["lost"] == 0
    )


def bars(found):
    for part in (joined_bars, memo_bars, added_bars, closed_bars, ring_bars, clock_bars):
        yield from part(found)


def summary_table(found):
    rows = [(what, bar, measured, verdict(holds)) for what, bar, measured, holds in bars(found)]
    return table(("what", "bar", "measured", "holds"), rows)


def ranged(added):
    return number(added["median"], "ns", 0), f"{added['lowest']:+,.0f} to {added['highest']:+,.0f} ns"


def launches_table(found):
    alone = found["added"]["alone_ns"]
    rows = [("PoCL", "alone", number(alone["median"], "ns", 0), f"{alone['lowest']:,.0f} to {alone['highest']:,.0f} ns")]
    for key, driver in DRIVERS.items():
        rows += [(driver, f"{name}: more", *ranged(added)) for name, added in found[key]["added_ns"].items()]
    for name, run in found["closed"].items():
        count = run["added_instructions"]
        more = NONE if count is None else f"{count:.0f} instructions"
        rows.append((CALLED[name], f"closed, {name}: more", number(run["added_ns"]["median"], "ns"), more))
    rows.append(("a double of NVTX's headers", "recorded, push and pop: more", *ranged(found["ranges"]["added_ns"])))
    return table(("called", "a launch, or a range", "median", "lowest to highest"), rows)


def captures_table(found):
    rows = [
        (name, f"{run['launches']:,}", number(run["unwinding_ns"] / 1e3, "µs"), number(run["bytes_per_launch"], "", 0))
        for name, run in found["joined"].items()
    ]
    return table(("program", "launches", "its stack, in the kernel", "capture bytes per launch, stack included"), rows)


def rates_table(found):
    collector = found["collector"]
    runs = [collector["usual"], collector["busy"], *collector["rates"].values()]
    rows = []
    for run in runs:
        tried = run["written"] + run["lost"]
        rows.append(
            (
                f"{tried / run['seconds']:,.0f}",
                f"{tried:,}",
                f"{run['lost']:,}",
                percent(run["lost"] / tried, 2),
                number(run["bytes_per_record"], "", 0),
            )
        )
    return table(("records/s into a capture", "records", "lost", "share", "bytes per record"), rows)


def slowdown_table(found):
    rows = []
    for name, run in found["slowdown"]["configurations"].items():
        is_alone = name == "alone"
        spread = f"{100 * (run['cpu_ratio_lowest'] - 1):+.1f} to {100 * (run['cpu_ratio_highest'] - 1):+.1f} %"
        rows.append(
            (
                name,
                number(run["wall_s"], "s", 2),
                number(run["cpu_s"], "s", 2),
                NONE if is_alone else f"{100 * (run['wall_ratio'] - 1):+.1f} %",
                NONE if is_alone else f"{100 * (run['cpu_ratio'] - 1):+.1f} %",
                NONE if is_alone else spread,
            )
        )
    more = ("wall time more", "CPU time more", "lowest to highest")
    return table(("PyOpenCL example", "wall time", "CPU time", *more), rows)


def device(results):
    found = results["device"]
    parts = (summary_table, launches_table, captures_table, rates_table, slowdown_table)
    return "\n\n".join(part(found) for part in parts)
