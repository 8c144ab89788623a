# SPDX-License-Identifier: Apache-2.0
"""sonde runs: the database of runs. Captures come from logs, so that every figure is known, and from a recording."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import time

import jsonschema
import pytest

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


@pytest.fixture
def store(sonde, tmp_path):
    """store("list", ...) -> sonde runs list ... of a database of the test's own; store.path"""

    class Store:
        path = tmp_path / "runs.db"

        def __call__(self, command, *arguments, check=0, **options):
            return sonde("runs", command, "--store", self.path, *arguments, check=check, **options)

        def runs(self, *arguments):
            return self("list", "--json", *arguments).json()["runs"]

        def sql(self, text):
            with contextlib.closing(sqlite3.connect(self.path)) as database:
                return database.execute(text).fetchall()

    return Store()


def run_tables(store):
    names = [row[0] for row in store.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [name for name in names if name not in ("runs", "figure_names") and not name.startswith("sqlite_")]


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
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600


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
    store("add", capture("a"))
    for words in (["list"],):
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


def test_a_file_that_is_no_database_of_ours(store, capture, tmp_path):
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
    assert store.sql("PRAGMA integrity_check") == [("ok",)]


def test_killed_in_an_ingest(sonde, store, capture):
    """Whenever it is killed, a run is there as a whole or not at all."""
    big = capture("big", [10 + i % 7 for i in range(50)])
    store("add", capture("small"))
    figures = None
    for delay in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05):
        adder = sonde.start("runs", "add", "--store", store.path, big)
        time.sleep(delay)  # any moment is right: what follows holds at each
        adder.send_signal(signal.SIGKILL)
        adder.wait()
        assert store.sql("PRAGMA integrity_check") == [("ok",)] and store.sql("PRAGMA foreign_key_check") == []
        for table in run_tables(store):
            orphans = f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT number FROM runs)"
            assert store.sql(orphans) == [(0,)], table
    store("add", big)
    figures = store.sql("SELECT count(*) FROM figures JOIN runs ON run = number WHERE path LIKE '%big%'")
    assert figures[0][0] > 0 and len(store.runs()) == 2


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
        assert "may not be changed" in other.stderr or "ermission denied" in other.stderr
    finally:
        folder.chmod(0o755)


def test_a_full_disk(sonde, store, capture, tmp_path):
    """In a file system of its own, which is small."""
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
