# SPDX-License-Identifier: Apache-2.0
"""sonde runs: the database of runs. Captures come from logs, so that every figure is known, and from a recording.

What takes `store` is tested with every backend (stores.py)."""

import collections
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import time

import jsonschema
import pytest
from stores import TABLES, file_store, store, store_servers  # noqa: F401 (fixtures)
from test_trace_report import make as make_trace

TEXT = "'; DROP TABLE runs; --<script>alert(1)</script>\x1b[31m\""


@pytest.fixture
def capture(sonde, tmp_path):
    """capture(name, durations in ms) -> a capture with iterations that take so long"""

    def make(name, durations=(10, 11, 12)):
        lines = [
            f"INFO 2026-03-01 10:00:{i:02d}.000 [core.py:381] Iteration({i}): 0 context requests, 0 context tokens, "
            f"1 generation requests, 1 generation tokens, iteration elapsed time: {duration:.2f} ms"
            for i, duration in enumerate(durations)
        ]
        log = tmp_path / f"{name}.log"
        log.write_text("\n".join(lines) + "\n")
        sonde("import", "--format", "vllm-log", log, check=0)
        return tmp_path / f"{name}.pftrace"

    return make


def test_a_recording_becomes_a_run(sonde, workload, store, report, tmp_path):
    path = tmp_path / "spin.pftrace"
    sonde("record", "-q", "-F", 499, "-o", path, "--", *workload("spin", 0.3), check=0)
    done = store("add", path, "--tag", "x", "--tag", "y", "--experiment", "e", "--commit", "c1", "--note", TEXT)
    (run,) = store.runs()
    document = report(path)
    assert run["id"] == done.stdout.strip() and len(run["id"]) == 32
    assert (run["tags"], run["experiment"], run["commit_id"]) == (["x", "y"], "e", "c1")
    assert run["notes"].startswith("'; DROP TABLE runs; --<script>")
    assert run["samples"] == document["totals"]["samples"]
    assert run["duration_ns"] == document["totals"]["duration_ns"]
    assert run["host"] == document["session"]["host"] and run["bytes"] == path.stat().st_size
    assert run["time_ns"] == document["session"]["start_unix_time_ns"]
    # What was not measured is null.
    assert run["energy_j"] is None or run["energy_j"] > 0
    assert run["ttft_p50_ns"] is None and run["gpu_busy_share"] is None and run["output_tokens"] is None
    # Every section's values are there, with the same figures.
    rows = store.sql(
        "SELECT row_number, text_value FROM figures JOIN figure_names USING (name) "
        "WHERE section = 'tables' AND table_name = 'tables.function.rows' AND column_name = 'name' ORDER BY row_number"
    )
    wanted = document["tables"]["function"]["rows"] if "tables" in document else []
    assert [name for _, name in rows] == [row["name"] for row in wanted][: len(rows)] and len(rows) >= min(len(wanted), 1)


def test_a_trace_becomes_a_run(sonde, store, tmp_path):
    """Kernels of another tool's trace are in the database as its report has them."""
    path = make_trace(tmp_path / "trace.json.gz")
    store("add", path)
    (run,) = store.runs()
    assert run["duration_ns"] > 0 and run["samples"] is None and run["host"] is None
    wanted = sonde("report", "--json", path, check=0).json()["kernel"]["kernels"]
    names = store.sql(
        "SELECT text_value FROM figures JOIN figure_names USING (name) WHERE section = 'kernel' "
        "AND table_name = 'kernels' AND column_name = 'name' ORDER BY row_number"
    )
    assert [name for (name,) in names] == [row["name"] for row in wanted] and names


def test_only_some_rows_are_kept(store, sonde, tmp_path):
    """--rows, and then how many there were."""
    path = make_trace(tmp_path / "trace.json.gz")
    store("add", "--rows", 1, path)
    wanted = sonde("report", "--json", path, check=0).json()["kernel"]["kernels"]
    rows = store.sql(
        "SELECT column_name, integer_value FROM figures JOIN figure_names USING (name) WHERE section = 'kernel' "
        "AND table_name = 'kernels' AND column_name IN ('rows_total', 'count') ORDER BY column_name"
    )
    assert dict(rows)["rows_total"] == len(wanted) > 1 and len(rows) <= 2


def test_the_same_capture_twice_is_one_run(store, capture, tmp_path):
    first = capture("a")
    store("add", first, "--tag", "one")
    before = store.sql("SELECT count(*) FROM figures")
    copy = tmp_path / "copy.pftrace"
    shutil.copy(first, copy)
    again = store("add", copy, "--tag", "two", "--experiment", "later")
    assert "already" in again.stderr
    (run,) = store.runs()
    assert run["tags"] == ["one", "two"] and run["experiment"] == "later" and run["path"] == str(copy)
    assert store.sql("SELECT count(*) FROM figures") == before


def test_lists_are_filtered_and_sorted(store, capture):
    for number, tag in ((1, "a"), (2, "a"), (3, "b")):
        store("add", capture(f"c{number}", [10 * number] * 5), "--tag", tag, "--experiment", f"e{number}")
    assert [run["experiment"] for run in store.runs("--tag", "a", "--sort", "experiment")] == ["e1", "e2"]
    assert [run["experiment"] for run in store.runs("--sort", "experiment", "--reverse", "-n", 2)] == ["e3", "e2"]
    assert [run["experiment"] for run in store.runs("--experiment", "e*", "--search", "c2")] == ["e2"]
    assert store.runs("--until", "2001-01-01") == [] and len(store.runs("--since", "2001-01-01")) == 3
    assert "no date" in store("list", "--since", "yesterday", check=2).stderr
    text = store("list", "--limit", 1).stdout
    assert "… 2 more runs" in text and "c" in text
    assert "No run" in store("list", "--model", "none").stdout
    rows = store("list", "--csv").stdout.splitlines()
    assert len(rows) == 4 and rows[0].startswith("number,id,path")


def test_schemas(sonde, store, capture):
    store("add", capture("a"), "--experiment", "e", "--commit", "c")
    for words in (["list"], ["show", "latest"], ["show", "latest", "--section", "about"], ["stats"],
                  ["compare", "latest", "latest"], ["analyse"], ["regressions", "e"]):
        schema = json.loads(sonde("runs", *words, "--schema", check=0).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        document = store(words[0], *words[1:], "--json").json()
        jsonschema.Draft202012Validator(schema).validate(document)


def test_the_default_place(sonde, capture, tmp_path):
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert "'sonde runs add CAPTURE' makes one" in sonde("runs", env=environment, check=1).stderr
    sonde("runs", "add", capture("a"), env=environment, check=0)
    assert len(sonde("runs", "--json", env=environment, check=0).json()["runs"]) == 1
    place = tmp_path / "state" / "sonde"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_texts_are_data(store, capture):
    """SQL and markup in every text that a user gives."""
    store("add", capture("a"), "--tag", TEXT, "--experiment", TEXT, "--commit", TEXT, "--note", TEXT)
    (run,) = store.runs("--tag", TEXT, "--experiment", TEXT)
    assert run["experiment"] == TEXT and run["tags"] == [TEXT]
    assert "\x1b" not in store("list").stdout
    assert store.runs("--search", "%") == [] and store.runs("--model", "' OR 1 = 1 --") == []


# ---- one run, and several ----


def test_showing_a_run(store, capture, report):
    path = capture("a", [10 + i % 3 for i in range(30)])
    identity = store("add", path, "--tag", "t").stdout.strip()
    for name in (identity, identity[:6], str(path), "latest"):
        assert store("show", name, "--json").json()["run"]["id"] == identity
    document = store("show", "latest", "--json").json()
    assert document["kept"]["tags"] == 1 and document["figures"] == []
    assert "about" in {row["section"] for row in document["sections"]}
    figures = store("show", "latest", "--section", "about", "--json").json()["figures"]
    values = {(row["table"], row["column"]): row["integer"] for row in figures}
    assert values["capture", "bytes"] == path.stat().st_size
    text = store("show", "latest").stdout
    assert identity in text and "Sections of its report" in text
    assert "has no section 'none'" in store("show", "latest", "--section", "none", check=1).stderr
    assert "there is no run 'ffff'" in store("show", "ffff", check=1).stderr
    assert "needs a run" in store("show", check=2).stderr


def test_every_section_is_kept(store, capture, report):
    """What the report says of the ranges is in the database, without code for it."""
    path = capture("a", [10 + i % 3 for i in range(30)])
    store("add", path)
    (wanted,) = report(path, "--by", "range")["ranges"]["rows"]
    values = store.sql(
        "SELECT column_name, integer_value, number_value, text_value FROM figures JOIN figure_names "
        "USING (name) WHERE section = 'ranges' AND table_name = 'rows' AND row_number = 0"
    )
    kept = {name: known_of(row) for name, *row in values}
    for key in ("name", "count", "total_ns", "p50_ns"):
        if wanted.get(key) is not None:
            assert kept[key] == wanted[key], key
    assert "name" in kept


def values_of(document):
    """All numbers and texts that a document has, as often as it has them; numbers as JSON prints them."""
    if isinstance(document, dict):
        members = (value for key, value in document.items() if not key.endswith("_total"))
        return sum(map(values_of, members), collections.Counter())
    if isinstance(document, list):
        return sum(map(values_of, document), collections.Counter())
    return collections.Counter() if document is None else collections.Counter([as_text(document)])


def known_of(row):
    """A value is an integer, a number or a text; which comes first, as in SQL's coalesce()."""
    return next((value for value in row if value is not None), None)


def as_text(value):
    return value if isinstance(value, str) else f"{float(value):.9g}"


def test_every_value_of_a_report_is_kept(sonde, store, workload, tmp_path):
    """Of a recording and of a trace: whatever a section says can be asked of the database."""
    recording = tmp_path / "spin.pftrace"
    sonde("record", "-q", "-F", 499, "-o", recording, "--", *workload("spin", 0.3), check=0)
    for path in (recording, make_trace(tmp_path / "trace.json.gz")):
        store("add", "--rows", 1_000_000, path)
        (run,) = (run for run in store.runs() if run["path"] == str(path))
        kept = collections.Counter(as_text(known_of(row)) for row in store.sql(
            f"SELECT integer_value, number_value, text_value FROM figures WHERE run = {run['number']}"))
        document = sonde("report", "--json", path, check=0).json()
        for key in ("format", "version", "sonde_version", "advice"):
            document.pop(key)
        wanted = values_of(document)
        assert sum(wanted.values()) > 50 and not wanted - kept, (path, (wanted - kept).most_common(5))


def repeated(store, capture, commit, base, runs=4):
    for number in range(runs):
        # The durations of a log's iterations, whose sum is the capture's.
        path = capture(f"{commit}-{number}", [base + number * 0.01] * 10)
        store("add", path, "--experiment", "nightly", "--commit", commit)


def set_figure(store, column, values):
    """As a recording with tokens or sensors would have it."""
    for commit, figures in values.items():
        runs = sorted(store.runs("--commit", commit), key=lambda run: run["path"])
        for run, value in zip(runs, figures, strict=True):
            store.update(run["number"], **{column: value})


def test_comparison_of_runs(store, capture):
    repeated(store, capture, "a", 10)
    repeated(store, capture, "b", 12)
    set_figure(store, "joules_per_token", {"a": [1.0, 1.01, 1.02, 1.01], "b": [2.0, 2.01, 2.02, 2.01]})
    set_figure(store, "tokens_per_s", {"a": [100, 101, 100, 102], "b": [300, 101, 305, 97]})
    runs = store.runs("--sort", "experiment")
    document = store("compare", "--json", *[run["id"] for run in runs]).json()
    by_id = {run["id"]: run for run in runs}
    assert by_id[document["best"]["fastest"]]["tokens_per_s"] == 305
    assert by_id[document["best"]["most_efficient"]]["joules_per_token"] == 1.0
    assert document["best"]["lowest_energy"] is None
    spread = {row["figure"]: row for row in document["spread"]}
    assert spread["joules_per_token"]["factor"] == pytest.approx(2.02)
    assert spread["tokens_per_s"]["minimum"] == 97
    changes = {row["figure"]: row for row in document["changes"]}
    assert changes["joules_per_token"]["is_significant"] and not changes["tokens_per_s"]["is_significant"]
    assert changes["joules_per_token"]["before_runs"] == 4
    text = store("compare", runs[0]["id"], runs[1]["id"]).stdout
    assert "Spread" in text
    assert "2 to 10 runs" in store("compare", runs[0]["id"], check=2).stderr
    assert "2 to 10 runs" in store("compare", *["latest"] * 11, check=2).stderr


def test_regressions_over_commits(store, capture):
    repeated(store, capture, "a", 10)
    repeated(store, capture, "b", 10)
    repeated(store, capture, "c", 10)
    times = {"a": range(1, 5), "b": range(11, 15), "c": range(21, 25)}
    set_figure(store, "time_ns", {commit: [value * 10**9 for value in values] for commit, values in times.items()})
    set_figure(store, "joules_per_token", {"a": [1, 1.01, 1.02, 1], "b": [1, 1.02, 1.01, 1], "c": [2, 2.01, 2.02, 2]})
    set_figure(store, "tokens_per_s", {"a": [100, 101, 100, 102], "b": [200, 201, 200, 202], "c": [300, 20, 400, 15]})
    done = store("regressions", "nightly", "--json", check=1)
    verdicts = {(row["figure"], row["commit"]): row["verdict"] for row in done.json()["rows"]}
    assert verdicts["joules_per_token", "b"] == "same" and verdicts["joules_per_token", "c"] == "worse"
    assert verdicts["tokens_per_s", "b"] == "better" and verdicts["tokens_per_s", "c"] == "noise"
    assert "1 figure got worse" in done.stderr
    assert store("regressions", "nightly", "--threshold", 200).status == 0
    assert "no runs of the experiment 'other'" in store("regressions", "other", check=1).stderr


def test_analyses_of_the_database(sonde, store, capture, tmp_path):
    """The same document as `report --by run` of the captures."""
    captures = [capture(f"c{number}", [10 + number] * 10) for number in range(3)]
    store("add", *captures)
    found = store("analyse", "--json").json()
    wanted = sonde("report", "--by", "run", "--json", *captures, check=0).json()
    order = {run["capture"]: run for run in wanted["runs"]}
    for run in found["runs"]:
        other = order[run["capture"]]
        lacks = {"output_tokens": None, "host_state": run["host_state"], "device_state": run["device_state"]}
        assert run == {**other, **lacks} and run["host_state"]["clock_reason"] == "not_in_database"
    assert found["best"] == wanted["best"] and found["scaling"] == wanted["scaling"]
    assert "no run" in store("analyse", "--model", "none", check=1).stderr


def test_prediction_from_the_database(store, capture):
    """Of a law that is known: the time of a token grows with the root of the batch."""
    for batch in (1, 2, 4, 16, 32, 64):
        store("add", capture(f"batch-{batch}", [10 + batch] * 3), "--commit", batch)
    batches = {str(batch): [batch] for batch in (1, 2, 4, 16, 32, 64)}
    set_figure(store, "batch_size", batches)
    set_figure(store, "tpot_p50_ns", {commit: [round(1e6 * batch**0.5)] for commit, (batch,) in batches.items()})
    done = store("analyse", "--predict", "batch_size=8", "--json").json()
    assert done["prediction"]["figure"] == "tpot_p50_ns" and done["prediction"]["labels"] == ["batch_size"]
    assert done["prediction"]["value"] == pytest.approx(1e6 * 8**0.5, rel=0.01)
    assert "With batch_size=8: " in store("analyse", "--predict", "batch_size=8").stdout
    assert "says no label" in store("analyse", "--predict", "size=8", check=1).stderr
    assert "needs at least 5 runs" in store("analyse", "--commit", "1", "--predict", "batch_size=8", check=1).stderr


# ---- changes ----


def test_tags_and_notes(store, capture):
    store("add", capture("a"), "--tag", "old")
    store("tag", "latest", "new", TEXT, "--remove", "old")
    store("note", "latest", TEXT)
    (run,) = store.runs()
    assert run["tags"] == sorted([TEXT, "new"]) and run["notes"] == TEXT
    store("note", "latest", "")
    assert store.runs()[0]["notes"] is None


def test_deleting_takes_all_that_belongs_to_a_run(store, capture):
    first, second = capture("a"), capture("b", [20] * 9)
    store("add", first, second, "--tag", "t")
    store("delete", str(first))
    assert first.exists() and [run["path"] for run in store.runs()] == [str(second)]
    for table in TABLES:
        assert store.sql(f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT number FROM runs)") == [(0,)]
    store("delete", "latest", "--files")
    assert not second.exists() and store.runs() == []
    for table in TABLES:
        assert store.sql(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_only_the_capture_that_was_added_is_removed(store, capture, tmp_path):
    path = capture("a")
    store("add", path)
    path.write_text("something else by now")
    assert "not the capture of run" in store("delete", "latest", "--files", check=1).stderr
    assert path.read_text() == "something else by now"
    other = capture("b", [20] * 9)
    store("add", other)
    kept = tmp_path / "kept"
    other.rename(kept)
    other.symlink_to(kept)
    assert "a link" in store("delete", "latest", "--files", check=1).stderr and kept.exists()


def test_retention(store, capture):
    for number in range(4):
        store("add", capture(f"c{number}", [10 + number] * 3))
    runs = store.runs("--sort", "added")
    paths = [run["path"] for run in runs]
    for run, days in zip(runs, [4.5, 3.5, 2.5, 1.5], strict=True):
        store.update(run["number"], time_ns=time.time_ns() - int(days * 86_400) * 10**9)
    # From the future by its clock: as old as its entry.
    store.update(runs[3]["number"], time_ns=2**62, added_ns=1)
    dry = store("retention", "--keep", 2)
    assert "2 runs would be deleted" in dry.stderr and len(store.runs()) == 4
    assert paths[0] in dry.stdout and paths[3] in dry.stdout and paths[2] not in dry.stdout
    store("retention", "--max-age", 3, "--yes")
    assert {run["path"] for run in store.runs()} == {paths[2]}
    assert "needs --keep" in store("retention", check=2).stderr


def test_export_and_import_round_trip(store, capture, sonde, workload, tmp_path):
    recording = tmp_path / "spin.pftrace"
    sonde("record", "-q", "-F", 499, "-o", recording, "--", *workload("spin", 0.2), check=0)
    store("add", recording, capture("a"), "--tag", "t", "--tag", TEXT, "--note", TEXT)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    store("export", "-o", first)
    before = store.runs()
    store = store.another()
    assert "2 runs added, 0 were there" in store("import", first).stderr
    assert store.runs() == before
    store("export", "-o", second)
    assert first.read_bytes() == second.read_bytes()
    assert "0 runs added, 2 were there" in store("import", first).stderr
    one = store("export", "latest").stdout.splitlines()
    assert sum('"table":"runs"' in line for line in one) == 1


HEAD = '{"format":"sonde-runs","version":1,"tables":3}\n'
RUN = '{"table":"runs","id":"%s","path":"/p","added_ns":1}\n' % ("ab" * 16)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", ""),
        (RUN, "its head is missing"),
        ("x" * 100, "no line that"),
        (HEAD.replace("1,", "99,"), "newer sonde"),
        (HEAD + '{"table":"tags","tag":"t"}', "before its run"),
        (HEAD + RUN.replace("ab" * 16, "../../etc"), "lacks its id"),
        (HEAD + RUN.replace('"added_ns":1', '"added_ns":"1"'), "the column added_ns has a value"),
        (HEAD + RUN.replace("added_ns", "added"), "the column added of runs is not known"),
        (HEAD + RUN + '{"table":"sqlite_schema","name":"x"}', "the table sqlite_schema is not known"),
        (HEAD + RUN + '{"table":"tags"}', "does not fit its table"),
        (HEAD + RUN + '{"table":"figure_names","name":5,"section":"a","table_name":"b","column_name":"c","kind":"d"}',
         "does not fit its number"),
        (HEAD + RUN + '{"table":"tags","tag":"a\\u0000b"}', "no line that"),
        (HEAD + RUN + '{"table":"power","rail":0,"begin_ns":0,"end_ns":1,"energy_j":1e999}', "energy_j has a value"),
    ],
)
def test_imports_that_are_refused(store, tmp_path, text, reason):
    path = tmp_path / "in.jsonl"
    path.write_text(text)
    done = store("import", path, check=None)
    assert reason in done.stderr and (done.status == 1) == bool(reason), done
    assert store.runs() == []


def test_statistics_and_integrity(store, capture):
    store("add", capture("a"))
    stats = store("stats", "--json").json()
    assert stats["runs"] == 1 and stats["bytes"] > 0 and stats["tables"]["figures"] > 0
    assert "1 run," in store("stats").stdout
    assert "is sound" in store("check").stderr


def test_compaction_of_a_file(file_store, capture):
    store = file_store
    store("add", *[capture(f"c{number}", [10 + number] * 50) for number in range(8)])
    store("delete", *[run["id"] for run in store.runs()][1:])
    before = store("stats", "--json").json()["bytes"]
    store("compact")
    assert store("stats", "--json").json()["bytes"] < before and len(store.runs()) == 1


def test_a_file_that_was_overwritten(file_store, capture):
    store = file_store
    store("add", capture("a"))
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600
    with open(store.path, "r+b") as file:
        for page in range(2, 40):
            file.seek(page * 4096)
            if file.tell() < store.path.stat().st_size:
                file.write(b"\xa5" * 4096)
    assert "damaged" in store("check", check=1).stderr


# ---- faults ----


def test_captures_that_cannot_be_added(store, capture, tmp_path):
    """Each is a sentence; the others are added."""
    good = capture("a")
    damaged, empty = tmp_path / "damaged.pftrace", tmp_path / "empty.pftrace"
    damaged.write_bytes(b"\xff" * 4096)
    empty.write_bytes(b"")
    done = store("add", damaged, tmp_path / "missing", empty, tmp_path, good, check=1)
    assert str(damaged) in done.stderr and "missing" in done.stderr and "no regular file" in done.stderr
    assert len(store.runs()) == 1
    cut = tmp_path / "cut.pftrace"
    cut.write_bytes(good.read_bytes()[:-7])
    store("add", cut, check=None)  # what came before is a run, or a sentence says why not
    assert len(store.runs()) in (1, 2)


def test_a_file_that_is_no_database_of_ours(file_store, capture, tmp_path):
    store = file_store
    store.path.write_bytes(b"what is this" * 1000)
    assert "damaged, or not a database" in store("add", capture("a"), check=1).stderr
    store.path.unlink()
    target = tmp_path / "target"
    store.path.symlink_to(target)
    assert "a link" in store("add", capture("b"), check=1).stderr and not target.exists()
    store.path.unlink()
    store.sql("PRAGMA user_version = 77")
    assert "another program" in store("list", check=1).stderr


def test_two_processes_at_once(sonde, store, capture):
    captures = [capture(f"c{number}", [10 + number] * 20) for number in range(6)]
    store("add", captures[0])
    adders = [sonde.start("runs", "add", "--store", store.path, *order) for order in (captures, captures[::-1])]
    for adder in adders:
        _, errors = adder.communicate(timeout=120)
        assert adder.returncode == 0, errors
    assert len(store.runs()) == 6
    assert "is sound" in store("check").stderr


def test_killed_in_an_ingest(sonde, store, capture):
    """Whenever it is killed, a run is there as a whole or not at all."""
    big = capture("big", [10 + i % 7 for i in range(50)])
    store("add", capture("small"))
    for delay in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05):
        adder = sonde.start("runs", "add", "--store", store.path, big)
        time.sleep(delay)  # any moment is right: what follows holds at each
        adder.send_signal(signal.SIGKILL)
        adder.wait()
        assert "is sound" in store("check").stderr
        for table in TABLES:
            orphans = f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT number FROM runs)"
            assert store.sql(orphans) == [(0,)], table
    store("add", big)
    runs = {run["path"]: run["number"] for run in store.runs()}
    assert len(runs) == 2 and store.sql(f"SELECT count(*) FROM figures WHERE run = {runs[str(big)]}")[0][0] > 0


def test_read_only(sonde_unprivileged, capture, tmp_path):
    folder = sonde_unprivileged.directory
    path = folder / "a.pftrace"
    shutil.copy(capture("a"), path)
    path.chmod(0o644)
    database = folder / "runs.db"
    sonde_unprivileged("runs", "add", "--store", database, path, check=0)
    database.chmod(0o444)
    folder.chmod(0o555)
    try:
        done = sonde_unprivileged("runs", "list", "--store", database, "--json", check=0)
        assert len(done.json()["runs"]) == 1
        other = sonde_unprivileged("runs", "add", "--store", database, "--tag", "x", path, check=1)
        assert "may not be opened or changed" in other.stderr or "ermission denied" in other.stderr
        folder.chmod(0o755)
        database.chmod(0)
        closed = sonde_unprivileged("runs", "list", "--store", database, check=1)
        assert "check its permissions" in closed.stderr, closed.stderr
    finally:
        folder.chmod(0o755)


def test_a_full_disk(file_store, capture, tmp_path):
    """In a file system of its own, which is small."""
    store = file_store
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no tmpfs here: {mounted.stderr}")
    try:
        store.path = small / "runs.db"
        store("add", capture("a"))
        before = store.runs()
        with contextlib.suppress(OSError), open(small / "ballast", "wb", buffering=0) as ballast:
            while ballast.write(bytes(4096)):
                pass
        done = store("add", capture("b"), check=1)
        assert "no space left" in done.stderr or "disk" in done.stderr, done.stderr
        (small / "ballast").unlink()
        assert store.runs() == before
        assert store.sql("PRAGMA integrity_check") == [("ok",)]
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_a_clock_of_the_future(sonde, store, capture, tmp_path):
    log = tmp_path / "late.log"
    log.write_text(
        "INFO 2099-03-01 10:00:00.000 [core.py:381] Iteration(0): 0 context requests, 0 context tokens, "
        "1 generation requests, 1 generation tokens, iteration elapsed time: 10.00 ms\n"
    )
    sonde("import", "--format", "vllm-log", log, check=0)
    done = store("add", tmp_path / "late.pftrace")
    assert "days from now" in done.stderr
    assert len(store.runs()) == 1
