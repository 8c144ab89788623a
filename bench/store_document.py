# SPDX-License-Identifier: Apache-2.0
"""The figures of the runs database as a table."""

from markdown_table import number, table, verdict


def store(results):
    found, run = results["store"], results["machine"]
    quick = ", short runs (`--quick`)" if run["quick"] else ""
    load = f"load average at the start {run['load_before']:.1f}"
    about = f"{run['date']}, {run['sonde']}, commit {run['commit']}{quick}; {load}.\n\n"
    rate = found["figures"]["rows_per_s"]
    what = f"{found['figures']['rows']:,} rows of figures, tokens and power into SQLite, one transaction"
    rows = [(what, "≥ 200,000 rows/s", number(rate, "rows/s", 0), verdict(rate >= 200_000))]
    for name, times in found["lists"].items():
        measured = f"{number(times['median_ms'], 'ms')} (at most {number(times['most_ms'], 'ms')})"
        what = f"`sonde runs list` of {found['runs']['runs']:,} runs: {name}"
        rows.append((what, "≤ 50 ms", measured, verdict(times["median_ms"] <= 50)))
    for name, times in found.get("pages", {}).items():
        measured = f"{number(times['median_ms'], 'ms')} (at most {number(times['most_ms'], 'ms')})"
        what = f"`/api/runs` of {found['runs']['runs']:,} runs: {name}"
        rows.append((what, "≤ 50 ms", measured, verdict(times["median_ms"] <= 50)))
    return about + table(("what", "bar", "measured", "holds"), rows)
