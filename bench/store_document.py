# SPDX-License-Identifier: Apache-2.0
"""The figures of the runs database as a table."""

from markdown_table import number, table, verdict


def rows_of(found, where, rate_bar, list_bar):
    """Of one database; without a bar for lists, they are measured only."""
    rate = found["figures"]["rows_per_s"]
    what = f"{found['figures']['rows']:,} rows of figures, tokens and power into {where}, one transaction"
    yield what, f"≥ {rate_bar:,} rows/s", number(rate, "rows/s", 0), verdict(rate >= rate_bar)
    for name, times in found["lists"].items():
        measured = f"{number(times['median_ms'], 'ms')} (at most {number(times['most_ms'], 'ms')})"
        what = f"`sonde runs list` of {found['runs']['runs']:,} runs in {where}: {name}"
        holds = verdict(times["median_ms"] <= list_bar) if list_bar else "–"
        yield what, f"≤ {list_bar} ms" if list_bar else "–", measured, holds


def pages_of(found):
    for name, times in found.get("pages", {}).items():
        measured = f"{number(times['median_ms'], 'ms')} (at most {number(times['most_ms'], 'ms')})"
        what = f"`/api/runs` of {found['runs']['runs']:,} runs: {name}"
        yield what, "≤ 50 ms", measured, verdict(times["median_ms"] <= 50)


def store(results):
    found = results["store"]
    rows = [*rows_of(found, "SQLite", 200_000, 50), *pages_of(found)]
    if server := found.get("clickhouse"):
        rows += rows_of(server, f"ClickHouse {server['version']}", 300_000, None)
    return table(("what", "bar", "measured", "holds"), rows)
