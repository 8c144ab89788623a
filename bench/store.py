# SPDX-License-Identifier: Apache-2.0
"""The runs database: rows a second into SQLite and into ClickHouse, and how long a list of 100,000 runs takes, as a
command and over HTTP."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from needs import CLICKHOUSE
from workbench import ROOT, Missing, report_progress

NEEDS = ()
NEEDS_OF_PARTS = (CLICKHOUSE,)

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from server_client import Server  # noqa: E402
from store_servers import start_clickhouse  # noqa: E402

LISTS = {
    "newest 20": [],
    "a model, newest 20": ["--model", "model-3"],
    "an experiment, least energy first": ["--experiment", "experiment-17", "--sort", "energy"],
    "a model and a tag, fastest 20": ["--model", "model-3", "--tag", "tag-5", "--sort", "tokens-per-s"],
    "a text in path, command, notes or model": ["--search", "run-4711"],
    "a quarter of a year, least energy for a token": ["--since", "2023-12-01", "--sort", "joules-per-token"],
}


PAGES = {
    "newest 50": "limit=50",
    "a model, newest 50": "limit=50&model=model-3",
    "an experiment, least energy first": "limit=50&experiment=experiment-17&order=energy",
    "a model and a tag, fastest 50": "limit=50&model=model-3&tag=tag-5&order=tokens-per-s",
    "a text in path, command, notes or model": "limit=50&search=run-4711",
    "a quarter of a year, least energy for a token": "limit=50&since=2023-12-01&order=joules-per-token",
    "the thousandth page of 50": "limit=50&offset=50000",
}


def rows_per_second(bench, store, what, count):
    done = bench.run(bench.build / "bench" / "store-rows", store, what, count)
    found = json.loads(done.output)
    return {**found, "rows_per_s": found["rows"] / found["seconds"]}


def list_milliseconds(bench, store, words, rounds):
    """Of the whole command, its start included."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        bench.run(bench.build / "sonde", "runs", "list", "--store", store, "--limit", 20, *words)
        times.append(1000 * (time.perf_counter() - begin))
    return {"median_ms": statistics.median(times), "most_ms": max(times)}


def page_milliseconds(bench, path, rounds):
    """Of requests one after the other: each has a connection and a process of its own."""
    command = [bench.build / "sonde", "serve", "--listen", "127.0.0.1:0", "--store", path, path.parent]
    server = Server(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    results = {}
    for name, query in PAGES.items():
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            answer = server.get(f"/api/runs?{query}")
            times.append(1000 * (time.perf_counter() - begin))
            assert answer.status == 200, answer
        results[name] = {"median_ms": statistics.median(times), "most_ms": max(times), "bytes": len(answer.body)}
    server.end()
    return results


def measure_store(bench, name, runs, figures):
    count = bench.pick(100_000, 10_000, 1000)
    report_progress(f"runs database, {name}: writing")
    results = {
        "figures": rows_per_second(bench, figures, "figures", bench.pick(3_000_000, 300_000, 10_000)),
        "runs": {**rows_per_second(bench, runs, "runs", count), "runs": count},
    }
    report_progress(f"runs database, {name}: lists")
    rounds = bench.pick(21, 5, 1)
    results["lists"] = {what: list_milliseconds(bench, runs, words, rounds) for what, words in LISTS.items()}
    return results


def measure_clickhouse(bench):
    """Debian's server; None where there is none."""
    try:
        bench.take(CLICKHOUSE)
    except Missing as missing:
        bench.leave_out("ClickHouse", missing)
        return None
    folder = Path(bench.path("clickhouse"))
    folder.mkdir()
    server = start_clickhouse(folder)
    try:
        (version,), = server.query("SELECT version()")
        return {**measure_store(bench, "ClickHouse", f"{server.url}?database=runs", f"{server.url}?database=figures"),
                "version": version}
    finally:
        server.end()


def measure(bench):
    runs, figures = bench.path("runs.db"), bench.path("figures.db")
    results = measure_store(bench, "SQLite", runs, figures)
    results["pages"] = page_milliseconds(bench, Path(runs), bench.pick(21, 5, 1))
    for path in (runs, figures):
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
    results["clickhouse"] = measure_clickhouse(bench)
    return results
