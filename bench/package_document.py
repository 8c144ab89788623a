# SPDX-License-Identifier: Apache-2.0
"""The figures of the Python package as a table."""

from markdown_table import NONE, megabytes, number, table, verdict

CALLS = (
    ("an empty function of Python, to compare", "empty_function", None),
    (
        "`if prof is not None: prof.step()` of training_profiler(enabled=False), with its function",
        "disabled_step",
        None,
    ),
    ("`sonde.step()` without a recording", "sonde_step", 60),
    ("`tick_by_flag()`, off", "tick_off", 1000),
    ("`tick_by_flag()`, on, no change of the flag", "tick_without_flag", 1000),
    ("`with sonde.phase(…):`, begin and end", "phase", None),
)


def loop_row(run):
    loop = run["loop"]
    more = [f"{100 * (loop[key] - 1):+.2f} %" for key in ("ratio", "ratio_lowest", "ratio_highest")]
    holds = loop["ratio_lowest"] <= 1 <= loop["ratio_highest"] or loop["ratio"] < 1
    what = f"training loop of {loop['step_us']:.0f} µs steps, enabled=False against none, PyTorch {loop['torch']}"
    return what, "no measurable difference", f"{more[0]} (95 %: {more[1]} to {more[2]})", verdict(holds)


def export_row(run):
    found = run["export"]
    what = (
        f"longest stop of the worker while a trace of {megabytes(found['bytes'])} is written, PyTorch {found['torch']}"
    )
    measured = f"{1000 * found['by_a_child_stall_s']:.0f} ms (by a thread {1000 * found['by_us_stall_s']:.0f} ms)"
    return what, NONE, measured, NONE


def package(results):
    found = results["package"]
    rows = [
        (
            "`import sonde`, median",
            "≤ 20 ms",
            number(found["import_us"] / 1000, "ms"),
            verdict(found["import_us"] <= 20000),
        )
    ]
    for what, key, bar in CALLS:
        value = found["calls_ns"][key]
        rows.append(
            (what, f"≤ {bar} ns" if bar else NONE, number(value, "ns", 0), verdict(value <= bar) if bar else NONE)
        )
    for name in ("system", "torch2"):
        run = found[name]
        rows += (
            [(f"PyTorch, {name}", NONE, run["missing"], NONE)] if "missing" in run else [loop_row(run), export_row(run)]
        )
    return table(("what", "bar", "measured", "holds"), rows)
