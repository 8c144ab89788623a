# SPDX-License-Identifier: Apache-2.0
"""The runs database in a ClickHouse server: its faults, its users, and what is sent anew. What holds for every backend
is in test_runs.py."""

import http.server
import os
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from stores import TABLES, server_store, start_server, store_servers  # noqa: F401 (fixtures)
from test_runs import capture  # noqa: F401 (fixture)


class Between:
    """An HTTP server between sonde and a server of the database; `fault(statement)` says what goes wrong with a request:
    "cut" (the connection ends when half of the body was read), "after" (it ends when the server has done it), a status,
    or None."""

    def __init__(self, target):
        self.target, self.fault, self.statements = target, lambda statement: None, []
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                between.pass_on(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def pass_on(self, handler):
        length = int(handler.headers["Content-Length"])
        words = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
        if "query" not in words:
            body = handler.rfile.read(length)
            words["query"] = body.decode()
        self.statements.append(words["query"])
        fault = self.fault(words["query"])
        if fault == "cut":
            handler.rfile.read(length // 2)
            return self.end(handler)
        if "RowBinary" in words["query"]:
            body = handler.rfile.read(length)
        if isinstance(fault, int):
            return self.answer(handler, fault, b"busy")
        try:
            with urllib.request.urlopen(f"{self.target}{handler.path[1:]}", body) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        if fault == "after":
            return self.end(handler)
        return self.answer(handler, status, text)

    def answer(self, handler, status, text):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def end(self, handler):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)


def once(word, fault):
    """The first statement that has this word goes wrong so."""
    left = [fault]
    return lambda statement: left.pop() if left and word in statement else None


@pytest.fixture
def between(server_store):
    """(a store behind a Between, the Between); the store's own .sql() goes past it"""
    middle = Between(server_store.server.url)
    server_store.path = f"{middle.url}?database={server_store.database}"
    yield server_store, middle
    middle.server.shutdown()


def counts(store):
    return {table: store.sql(f"SELECT count(*) FROM {table}")[0][0] for table in ["runs", *TABLES]}


# ---- a connection that breaks ----


@pytest.mark.parametrize("word", ["figures_rows", "tags_rows", "runs_rows"])
@pytest.mark.parametrize("fault", ["cut", "after"])
def test_an_ingest_that_is_interrupted_is_written_anew(between, capture, word, fault):  # noqa: F811
    """Whether the server had the rows by then or not, each is there once."""
    store, middle = between
    other = store.another()
    path = capture("a", [10 + i % 3 for i in range(30)])
    other("add", path, "--tag", "t")
    middle.fault = once(f"INSERT INTO {word}", fault)
    store("add", path, "--tag", "t")
    assert not middle.fault(f"INSERT INTO {word}"), "the fault did not happen"
    assert counts(store) == counts(other) and counts(store)["figures"] > 0
    assert store("show", "latest", "--json").json()["kept"] == other("show", "latest", "--json").json()["kept"]
    # Asked again, nothing changes.
    assert "already" in store("add", path).stderr and counts(store) == counts(other)


def test_a_server_that_stays_away(between, capture):  # noqa: F811
    """A sentence; nothing of the run is seen, and it can be added when the server is back."""
    store, middle = between
    store("add", capture("first"))
    before = counts(store)
    middle.fault = lambda statement: "cut" if "INSERT INTO runs_rows" in statement else None
    done = store("add", capture("second", [20] * 9), "--tag", "t", check=1)
    assert "check that the server runs" in done.stderr and "not there at all" in done.stderr
    # Three attempts have left rows, of which nothing is seen.
    assert counts(store) == before
    assert store.sql("SELECT count(*) FROM figures_rows")[0][0] > before["figures"]
    assert "is sound" in store("check").stderr
    middle.fault = lambda statement: None
    store("add", capture("second", [20] * 9))
    assert counts(store)["runs"] == 2 and len(store.runs("--tag", "t")) == 0


def test_a_server_that_is_busy_is_asked_again(between, capture):  # noqa: F811
    store, middle = between
    middle.fault = once("INSERT INTO figures_rows", 503)
    store("add", capture("a"))
    assert len([text for text in middle.statements if "INSERT INTO figures_rows" in text]) == 2
    assert counts(store)["runs"] == 1
    # A list whose connection broke is asked for again, too.
    middle.fault = once("ORDER BY time_ns", "after")
    assert len(store.runs()) == 1


def test_changes_are_made_as_a_whole(between, capture):  # noqa: F811
    """Tags that are given and taken are one batch; so are runs that are deleted."""
    store, middle = between
    store("add", capture("a"), capture("b", [20] * 9), "--tag", "old")
    middle.fault = lambda statement: "cut" if "INSERT INTO tags_rows" in statement else None
    store("tag", "latest", "new", "newer", "--remove", "old", check=1)
    assert [run["tags"] for run in store.runs()] == [["old"], ["old"]]
    middle.fault = lambda statement: "cut" if "INSERT INTO runs_rows" in statement else None
    store("delete", *[run["id"] for run in store.runs()], check=1)
    assert counts(store)["runs"] == 2
    middle.fault = lambda statement: None
    store("tag", "latest", "new", "newer", "--remove", "old")
    store("delete", *[run["id"] for run in store.runs()])
    assert set(counts(store).values()) == {0}


def test_what_is_taken_and_given_at_once_is_there(server_store, capture):  # noqa: F811
    store = server_store
    store("add", capture("a"), "--tag", "x", "--tag", "y")
    store("tag", "latest", "x", "z", "--remove", "x", "--remove", "y")
    assert store.runs()[0]["tags"] == ["x", "z"]
    store("tag", "latest", "x")
    assert store("show", "latest", "--json").json()["kept"]["tags"] == 2


def test_a_deleted_run_comes_back_as_new(server_store, capture):  # noqa: F811
    store, path = server_store, capture("a")
    store("add", path, "--tag", "old", "--note", "old")
    before = counts(store)
    store("delete", "latest")
    store("add", path)
    (run,) = store.runs()
    assert run["tags"] == [] and run["notes"] is None
    assert counts(store) == {**before, "tags": 0}


# ---- what answers ----

HEAD = b"a\tb\nInt64\tString\n"


@pytest.mark.parametrize(
    "status, text, reason",
    [
        (200, b"<html>hello</html>", "not one of ClickHouse"),
        (200, b"", "not one of ClickHouse"),
        (200, HEAD + b"x\ty\n", "not one of ClickHouse"),
        (200, b"x" * (9 << 20), "not one of ClickHouse"),
        (200, b"a\0b\n", "not one of ClickHouse"),
        (404, b"<html>\x1b[31mnothing</html>", "status 404"),
        (500, b"Code: 241, e.displayText() = DB::Exception: Memory limit", "Code: 241"),
        (403, b"Code: 516. DB::Exception: Authentication failed", "SONDE_STORE_USER"),
        (200, b"version()\nString\n20.1\n", "not one of ClickHouse"),
    ],
    ids=range(9),
)
def test_answers_of_strangers(sonde, status, text, reason):
    middle = Between("")
    answers = iter([text, b"junk\n"])
    middle.pass_on = lambda handler: middle.answer(handler, status, next(answers, b"junk\n"))
    done = sonde("runs", "list", "--store", f"{middle.url}?database=x", check=1)
    assert reason in done.stderr and "\x1b" not in done.stderr, done.stderr
    middle.server.shutdown()


@pytest.mark.parametrize(
    "address, reason",
    [
        ("http://me:secret@127.0.0.1:1/", "would be seen in lists of processes"),
        ("http://127.0.0.1:1/?database=a;DROP", "letters, digits and '_'"),
        ("http://127.0.0.1:1/?user=me", "only database=NAME"),
        ("http:///x", "names no host"),
        ("https://127.0.0.1:1/ x", "has no spaces"),
    ],
)
def test_addresses_that_are_refused(sonde, address, reason):
    assert reason in sonde("runs", "list", "--store", address, check=1).stderr


def test_no_server(sonde, capture):  # noqa: F811
    """It is waited for, and then a sentence says so."""
    done = sonde("runs", "add", "--store", "http://127.0.0.1:1/", capture("a"), check=1)
    assert "check that the server runs and can be reached" in done.stderr
    assert "Could not connect" in done.stderr or "Couldn't connect" in done.stderr


def test_nothing_there_yet(server_store):
    assert "'sonde runs add' makes it" in server_store("list", check=1).stderr


# ---- users ----


@pytest.mark.parametrize("kind", ["clickhouse", "chdb"])
def test_users(sonde, capture, tmp_path, kind):  # noqa: F811
    """By the environment or a file; never in the list of processes, a message or a document."""
    folder = tmp_path / "server"
    folder.mkdir()
    server = start_server(kind, folder, "me", "top'secret")
    secret = tmp_path / "secret"
    secret.write_text("top'secret\n")
    try:
        path, address = capture("a"), f"{server.url}?database=mine"
        for words in ({}, {"SONDE_STORE_USER": "me"}, {"SONDE_STORE_USER": "me", "SONDE_STORE_PASSWORD": "x"}):
            done = sonde("runs", "add", "--store", address, path, env=words, check=1)
            assert "give a user and a password that may" in done.stderr
        known = {"SONDE_STORE_USER": "me", "SONDE_STORE_PASSWORD": "top'secret"}
        done = sonde("runs", "add", "--store", address, path, env=known, check=0)
        by_file = {"SONDE_STORE_USER": "me", "SONDE_STORE_PASSWORD_FILE": str(secret)}
        text = sonde("runs", "stats", "--json", "--store", address, env=by_file, check=0).stdout
        assert '"runs": 1' in text and "secret" not in text + done.stdout + done.stderr
        missing = sonde("runs", "list", "--store", address, env={"SONDE_STORE_PASSWORD_FILE": "/none"}, check=1)
        assert "SONDE_STORE_PASSWORD_FILE /none" in missing.stderr
    finally:
        server.end()


# ---- versions of the tables ----


def test_tables_of_other_versions(server_store, capture):  # noqa: F811
    store = server_store
    store("add", capture("a"))
    before = store.runs()
    # As a sonde that did not know a column yet has made them.
    for sql in ("DROP TABLE runs", "ALTER TABLE runs_rows DROP COLUMN co2_g_per_kwh", "DROP TABLE sonde_versions"):
        store.server.do(sql, store.database)
    assert "makes it" in store("list", check=1).stderr
    store("add", capture("b", [20] * 9))
    assert [run for run in store.runs() if run["id"] == before[0]["id"]] == before and len(store.runs()) == 2
    store.server.do("INSERT INTO sonde_versions (version) VALUES (1000)", store.database)
    assert "newer sonde" in store("list", check=1).stderr


# ---- references and care ----


def test_references_that_an_import_lacks(server_store, tmp_path):
    lines = ('{"format":"sonde-runs","version":1,"tables":3}\n'
             '{"table":"runs","id":"%s","path":"/p","added_ns":1}\n' % ("ab" * 16))
    path = tmp_path / "in.jsonl"
    path.write_text(lines + '{"table":"figures","name":5,"row_number":0,"integer_value":1}\n')
    assert "does not fit its table" in server_store("import", path, check=1).stderr
    assert server_store.runs() == []


def test_compaction_removes_what_nobody_sees(between, capture):  # noqa: F811
    """Rows of deleted runs at once; those of an ingest that did not end when it cannot be under way any more."""
    store, middle = between
    first, second = capture("a"), capture("b", [20] * 9)
    store("add", first, second, "--tag", "t")
    number_of = {run["path"]: run["number"] for run in store.runs()}
    kept, gone = number_of[str(first)], number_of[str(second)]
    store("delete", str(second))
    middle.fault = lambda statement: "cut" if "INSERT INTO runs_rows" in statement else None
    store("add", capture("c", [30] * 9), check=1)
    middle.fault = lambda statement: None
    before = counts(store)
    store("compact")
    for _ in range(600):  # the server does it in the background
        rows = dict(store.sql("SELECT run, count() FROM figures_rows GROUP BY run"))
        if gone not in rows:
            break
        time.sleep(0.1)
    assert gone not in rows and rows[kept] == before["figures"] and len(rows) == 2
    assert counts(store) == before


def test_faults_that_a_check_finds(server_store, capture):  # noqa: F811
    store = server_store
    store("add", capture("a"))
    (run, ingest), = store.sql("SELECT number, ingest FROM runs_rows")
    store.server.do(f"INSERT INTO figures_rows (run, name, row_number, ingest) VALUES ({run}, 1, 1, {ingest})",
                    store.database)
    assert "1 rows of figures refer to a name" in store("check", check=1).stderr


def test_statements_have_no_texts_of_users(between, capture):  # noqa: F811
    """Today's servers get them as parameters."""
    store, middle = between
    text = "it's; DROP TABLE runs_rows --"
    store("add", capture("a"), "--tag", text, "--experiment", text)
    middle.statements.clear()
    assert len(store.runs("--experiment", text, "--tag", text, "--search", "a.pftrace")) == 1
    store("tag", "latest", "--remove", text)
    assert store.runs()[0]["tags"] == []
    if not store.server.is_old:
        assert not [statement for statement in middle.statements if "DROP" in statement]


def test_two_machines_at_once(sonde, server_store, capture):  # noqa: F811
    captures = [capture(f"c{number}", [10 + number] * 20) for number in range(4)]
    adders = [sonde.start("runs", "add", "--store", server_store.path, *order) for order in (captures, captures[::-1])]
    for adder in adders:
        _, errors = adder.communicate(timeout=120)
        assert adder.returncode == 0, errors
    other = server_store.another()
    other("add", *captures)
    assert counts(server_store) == counts(other) and os.path.exists(captures[0])
