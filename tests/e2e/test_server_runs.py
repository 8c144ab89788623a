# SPDX-License-Identifier: Apache-2.0
"""The runs database over HTTP: the documents of `sonde runs`, changes, and databases that cannot be used."""

import contextlib
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import time
from urllib.parse import quote, urlencode

import pytest
from server_client import Closed, Server
from stores import TABLES
from stores import file_store as store, store as any_store, store_servers  # noqa: F401 (fixtures)
from test_runs import TEXT, capture, repeated, set_figure  # noqa: F401 (fixture)


@pytest.fixture
def runs(store, capture):
    """Three runs, of which two have the experiment e."""
    for number, words in enumerate([["--experiment", "e", "--tag", "a", "--tag", "b"], ["--experiment", "e", "--tag", "a"], ["--note", TEXT]]):
        store("add", capture(f"c{number}", [10 + number] * 4), *words)
    return store.runs()


@pytest.fixture
def server(start_server, store, tmp_path):
    return start_server("serve", "--store", store.path, tmp_path)


def send(server, method, path, body=None, content_type="application/json", **headers):
    if body is None:
        return server.get(path, method=method, **headers)
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return server.get(path, method=method, body=body, Content_Length=len(body), Content_Type=content_type, **headers)


# ---- reading ----


@pytest.mark.parametrize("query, words", [
    ("", []), ("?experiment=e", ["--experiment", "e"]), ("?tag=a&tag=b", ["--tag", "a", "--tag", "b"]), ("?search=c1", ["--search", "c1"]),
    ("?order=duration&limit=2", ["--sort", "duration", "--limit", "2"]), ("?order=duration&reverse=true", ["--sort", "duration", "--reverse"]),
    ("?limit=1&offset=1", ["--limit", "1", "--offset", "1"]), ("?since=7d&model=", ["--since", "7d"]), ("?until=2020-01-01", ["--until", "2020-01-01"]),
])
def test_the_list_is_that_of_the_command(runs, server, store, query, words):
    answer = server.get(f"/api/runs{query}")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json() == store("list", "--json", *words).json()


def test_pages_of_a_list(runs, server):
    pages = [server.get(f"/api/runs?limit=1&offset={offset}").json() for offset in range(4)]
    assert [page["runs"][0]["id"] for page in pages[:3]] == [run["id"] for run in runs] and pages[3]["runs"] == []
    assert {page["runs_total"] for page in pages} == {3}


def test_documents_are_those_of_the_command(any_store, capture, start_server, tmp_path):
    """Of every backend."""
    store, server = any_store, start_server("serve", "--store", any_store.path, tmp_path)
    repeated(store, capture, "a", 10)
    repeated(store, capture, "b", 12)
    set_figure(store, "joules_per_token", {"a": [1.0, 1.01, 1.02, 1.01], "b": [2.0, 2.01, 2.02, 2.01]})
    set_figure(store, "time_ns", {"a": [1, 2, 3, 4], "b": [5, 6, 7, 8]})
    set_figure(store, "batch_size", {"a": [1, 2, 4, 8], "b": [16, 32, 64, 128]})
    set_figure(store, "tpot_p50_ns", {"a": [100, 140, 200, 280], "b": [400, 560, 800, 1120]})
    first, second = (run["id"] for run in store.runs("--limit", "2"))
    for path, words, status in [
        (f"/api/runs/{first}", ["show", first], 0), (f"/api/runs/{first[:8]}", ["show", first], 0),
        (f"/api/runs/{first}?section=about", ["show", first, "--section", "about"], 0),
        (f"/api/runs/compare?run={first}&run={second}", ["compare", first, second], 0),
        ("/api/runs/analyse?experiment=nightly", ["analyse", "--experiment", "nightly"], 0),
        ("/api/runs/predict?labels=batch_size=12", ["analyse", "--predict", "batch_size=12"], 0),
        ("/api/runs/regressions?experiment=nightly&threshold=3", ["regressions", "nightly", "--threshold", "3"], 1),
        ("/api/runs/stats", ["stats"], 0),
    ]:
        answer = server.get(path)
        assert answer.status == 200, (path, answer)
        assert answer.json() == store(*words, "--json", check=status).json(), path
    assert send(server, "PATCH", f"/api/runs/{first}", {"tags": ["x"], "notes": "n"}).json() == store("show", first, "--json").json()
    assert send(server, "DELETE", f"/api/runs/{second}").json()["is_done"] and len(store.runs()) == 7
    assert server.get("/api/runs?limit=3&offset=2").json() == store("list", "--json", "--limit", "3", "--offset", "2").json()


def test_other_forms(runs, server, store):
    first, second = runs[0]["id"], runs[1]["id"]
    rows = server.get(f"/api/runs/compare?run={first}&run={second}&format=csv")
    assert rows.headers["content-type"].startswith("text/csv") and rows.body.decode() == store("compare", "--csv", first, second).stdout.replace("\n", "\r\n")
    page = server.get(f"/api/runs/{first}?format=page").json()
    assert {"blocks", "tables"} <= set(page) and page["tables"][0]["rows"]


def test_the_capture_of_a_run(runs, server, store, capture, start_server, tmp_path):
    found = server.get(f"/api/runs/{runs[0]['id']}/capture").json()
    assert found["id"] == server.capture(os.path.basename(runs[0]["path"]))
    (tmp_path / "other").mkdir()
    other = start_server("serve", "--store", store.path, tmp_path / "other")
    answer = other.get(f"/api/runs/{runs[0]['id']}/capture")
    assert answer.status == 404 and answer.error == "no-data" and "not among those" in answer.message


def test_an_answer_that_is_known_is_not_sent_again(runs, server, store):
    answer = server.get("/api/runs")
    match = server.get("/api/runs", If_None_Match=answer.headers["etag"])
    assert match.status == 304 and match.body == b""
    store("tag", runs[0]["id"], "new")
    assert server.get("/api/runs", If_None_Match=answer.headers["etag"]).status == 200


def test_what_is_not_there(runs, server, start_server, tmp_path):
    for path, status, error, word in [
        ("/api/runs/0123456789abcdef", 404, "not-found", "no run"), (f"/api/runs/{runs[0]['id']}?section=none", 404, "not-found", "no section"),
        ("/api/runs/analyse?model=none", 404, "not-found", "no run"), ("/api/runs/regressions?experiment=none", 404, "not-found", "no runs of"),
        ("/api/runs/regressions", 400, "bad-request", "experiment"), ("/api/runs/compare", 400, "bad-request", "run"),
        (f"/api/runs/compare?run={runs[0]['id']}", 400, "bad-request", "run"), ("/api/runs/compare?" + "run=0123&" * 11, 400, "bad-request", "10 times"),
        ("/api/runs?order=id", 400, "bad-request", "order"), ("/api/runs?limit=0", 400, "bad-request", "limit"), ("/api/runs?since=soon", 400, "bad-request", "no date"),
        ("/api/runs/latest", 400, "bad-request", "hexadecimal"), ("/api/runs/predict?labels=size=8", 400, "bad-request", "says no label"),
    ]:
        answer = server.get(path)
        assert (answer.status, answer.error) == (status, error) and word in answer.message, (path, answer)
    without = start_server("serve", tmp_path).get("/api/runs")
    assert without.status == 404 and without.error == "no-store" and "--store" in without.message


# ---- changing ----


def test_labels(runs, server, store):
    path = f"/api/runs/{runs[0]['id']}"
    answer = send(server, "PATCH", path, {"tags": ["new", TEXT], "notes": TEXT, "experiment": "f"})
    assert answer.status == 200 and answer.json() == store("show", runs[0]["id"], "--json").json()
    run = answer.json()["run"]
    assert (run["tags"], run["notes"], run["experiment"]) == (sorted(["new", TEXT]), TEXT, "f")
    assert send(server, "PATCH", path, {"notes": ""}).json()["run"]["notes"] is None
    run = send(server, "PATCH", path, {"tags": []}).json()["run"]
    assert run["tags"] == [] and run["experiment"] == "f"
    for body in [{"tags": "a"}, {"tags": [1]}, {"tags": [""]}, {"tags": ["a"] * 33}, {"notes": 1}, {"notes": "a" * 16385}, {"path": "/etc/passwd"}, {"notes": None}, []]:
        assert send(server, "PATCH", path, body).status == 400, body
    assert store("show", runs[0]["id"], "--json").json()["run"] == run


def test_deleting(runs, server, store):
    answer = send(server, "DELETE", f"/api/runs/{runs[0]['id']}")
    assert answer.status == 200 and answer.json()["is_done"] and [run["id"] for run in answer.json()["runs"]] == [runs[0]["id"]]
    assert [run["id"] for run in store.runs()] == [run["id"] for run in runs[1:]] and os.path.exists(runs[0]["path"])
    for table in TABLES:
        assert store.sql(f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT number FROM runs)") == [(0,)], table
    assert send(server, "DELETE", f"/api/runs/{runs[0]['id']}").status == 404


def test_retention_is_dry_at_first(runs, server, store):
    dry = send(server, "POST", "/api/runs/retention", {"keep": 1})
    assert dry.json() == store("retention", "--keep", "1", "--json").json() and not dry.json()["is_done"] and len(store.runs()) == 3
    done = send(server, "POST", "/api/runs/retention", {"keep": 1, "dry_run": False}).json()
    assert done["is_done"] and done["runs"] == dry.json()["runs"] and len(store.runs()) == 1
    assert send(server, "POST", "/api/runs/retention", {}).status == 400
    assert send(server, "POST", "/api/runs/retention", {"keep": 0}).status == 400
    assert len(store.runs()) == 1


def test_export_and_import(runs, server, store, start_server, tmp_path):
    exported = server.get("/api/runs/export?experiment=e")
    assert exported.headers["content-type"] == "application/x-ndjson" and "runs.jsonl" in exported.headers["content-disposition"]
    assert exported.body.decode() == store("export", "--experiment", "e").stdout
    one = server.get(f"/api/runs/export?run={runs[0]['id']}").body
    assert one.decode() == store("export", runs[0]["id"]).stdout
    other = start_server("serve", "--store", tmp_path / "other.db", tmp_path)
    first = send(other, "POST", "/api/runs/import", exported.body, "application/x-ndjson")
    assert first.status == 200 and first.json() == {"added": 2, "known": 0}
    assert send(other, "POST", "/api/runs/import", exported.body, "application/x-ndjson").json() == {"added": 0, "known": 2}
    assert other.get("/api/runs/export").body == exported.body
    for body, status, content_type in [(b"{}", 400, "application/x-ndjson"), (exported.body[:-40], 400, "application/x-ndjson"), (exported.body, 415, "text/plain")]:
        assert send(other, "POST", "/api/runs/import", body, content_type).status == status
    assert len(other.get("/api/runs").json()["runs"]) == 2


def test_bodies_that_are_too_large(runs, server):
    large = server.get("/api/runs/import", method="POST", Content_Length=(64 << 20) + 1, Content_Type="application/x-ndjson")
    assert large.status == 413 and large.error == "too-large"
    assert send(server, "PATCH", f"/api/runs/{runs[0]['id']}", b" " * 65537).status == 413
    line = b'{"format":"sonde-runs","version":1,"tables":3}\n' + b'{"table":"runs","id":"' + b"a" * (9 << 20) + b'"}\n'
    answer = send(server, "POST", "/api/runs/import", line, "application/x-ndjson")
    assert answer.status == 413 and "longer than any" in answer.message


def test_a_server_that_only_reads(runs, store, start_server, tmp_path):
    server = start_server("serve", "--read-only", "--store", store.path, tmp_path)
    path = f"/api/runs/{runs[0]['id']}"
    assert server.get(path).status == 200
    for method, where, body in [("PATCH", path, {"notes": "x"}), ("DELETE", path, None), ("POST", "/api/runs/retention", {"keep": 1, "dry_run": False}), ("POST", "/api/runs/import", b"")]:
        answer = send(server, method, where, body)
        assert answer.status == 403 and answer.error == "read-only", (method, where)
    assert store.runs() == runs


def test_changes_of_other_pages(runs, server, store):
    path = f"/api/runs/{runs[0]['id']}"
    cookie = {"Cookie": f"sonde-{server.port}={server.token}", "Host": f"127.0.0.1:{server.port}"}
    for origin in [None, "http://evil.example", "null"]:
        headers = cookie | ({"Origin": origin} if origin else {})
        assert server.get(path, method="DELETE", headers=headers).status == 403, origin
    assert store.runs() == runs
    assert server.get(path, method="DELETE", headers=cookie | {"Origin": f"http://127.0.0.1:{server.port}"}).status == 200


# ---- hostile texts ----


@pytest.mark.parametrize("text", [TEXT, "' OR 1=1 --", "%", "_", "\\", "*", "a'; DELETE FROM runs; --", "\u202e\u0000".rstrip("\0"), "../../etc/passwd"])
def test_texts_are_data(runs, server, store, text):
    for name in ["model", "experiment", "engine", "commit", "search", "tag"]:
        answer = server.get("/api/runs?" + urlencode({name: text}))
        assert answer.status == 200, (name, answer)
        assert answer.json()["runs"] == store("list", "--json", f"--{name}", text).json()["runs"], name
        assert len(answer.json()["runs"]) in ({0, 1, 3} if name == "search" else {0, 2, 3}), name
    for path in ["/api/runs/analyse?", "/api/runs/export?"]:
        assert server.get(path + urlencode({"experiment": text})).status in (200, 404)
    for path in ["/api/runs/regressions?" + urlencode({"experiment": text}), f"/api/runs/{runs[0]['id']}?" + urlencode({"section": text})]:
        assert server.get(path).status in ((200,) if text == "*" and "regr" in path else (400, 404)), path
    assert server.get("/api/runs/predict?" + urlencode({"labels": text})).status == 400
    assert store.runs() == runs


@pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e", "c0.pftrace", "%2fetc%2fpasswd", "latest", "'", "ABCD1234", "abc", "a" * 33, "0123/../.."])
def test_ids_reach_no_file(runs, server, store, name):
    for method in ["GET", "DELETE"]:
        try:
            answer = server.get(f"/api/runs/{name}", method=method)
        except Closed:
            continue
        assert answer.status in (400, 404, 405) and b"root:" not in answer.body, (method, name, answer)
    assert server.get("/api/runs/compare?" + urlencode({"run": [name, name]}, doseq=True)).status == 400
    assert store.runs() == runs


# ---- databases that cannot be used ----


def test_two_servers_on_one_database(runs, server, store, start_server, tmp_path):
    other = start_server("serve", "--store", store.path, tmp_path)
    send(server, "PATCH", f"/api/runs/{runs[0]['id']}", {"tags": ["one"]})
    send(other, "PATCH", f"/api/runs/{runs[1]['id']}", {"tags": ["two"]})
    for one in (server, other):
        assert [run["tags"] for run in one.get("/api/runs").json()["runs"]][:2] == [["one"], ["two"]]


def test_a_locked_database_holds_nobody_up(runs, server, store):
    with contextlib.closing(sqlite3.connect(store.path)) as database:
        database.execute("BEGIN EXCLUSIVE")
        with server.connect() as connection:
            body = b'{"notes": "x"}'
            headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers(Content_Type="application/json", Content_Length=len(body)).items())
            connection.sendall(f"PATCH /api/runs/{runs[0]['id']} HTTP/1.1\r\n{headers}\r\n".encode() + body)
            # While that waits, others are answered; readers do not need the lock.
            assert server.get("/api/status").status == 200
            assert len(server.get("/api/runs").json()["runs"]) == 3
            answer = connection.makefile("rb").readline()
        assert b" 503 " in answer
        busy = send(server, "DELETE", f"/api/runs/{runs[0]['id']}")
        assert busy.status == 503 and busy.error == "store-busy" and "another program" in busy.message and busy.headers["retry-after"] == "1"
        database.execute("ROLLBACK")
    assert send(server, "DELETE", f"/api/runs/{runs[0]['id']}").status == 200


def test_a_damaged_database(runs, server, store, start_server, sonde, tmp_path):
    with contextlib.closing(sqlite3.connect(store.path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(store.path.read_bytes())
    for at in range(4096, len(data)):
        data[at] ^= 0x5a
    store.path.write_bytes(data)
    answer = server.get("/api/runs")
    assert answer.status == 500 and answer.error == "store-damaged" and "damaged" in answer.message
    assert send(server, "DELETE", f"/api/runs/{runs[0]['id']}").error == "store-damaged"
    store.path.write_text("this is no database, and longer than its head would be: " * 10)
    assert server.get("/api/runs").error in ("store-damaged", "store-failed")
    store.path.unlink()
    gone = server.get("/api/runs")
    assert gone.status == 500 and gone.error == "store-failed" and "no runs database" in gone.message
    store.path.write_text("this is no database, and longer than its head would be: " * 10)
    assert sonde("serve", "--listen", "127.0.0.1:0", "--store", store.path, tmp_path, check=1).stderr


def test_a_database_that_may_not_be_written(sonde_unprivileged, capture):
    folder = sonde_unprivileged.directory
    path, database = folder / "a.pftrace", folder / "runs.db"
    shutil.copy(capture("a"), path)
    path.chmod(0o644)
    sonde_unprivileged("runs", "add", "--store", database, path, check=0)
    start = ["serve", "--listen", "127.0.0.1:0", "--store", database, folder]
    writing = Server(sonde_unprivileged.start(*start))
    database.chmod(0o444)
    folder.chmod(0o555)
    try:
        server = Server(sonde_unprivileged.start(*start, "--read-only"))
        run, = server.get("/api/runs").json()["runs"]
        answer = send(writing, "PATCH", f"/api/runs/{run['id']}", {"notes": "x"})
        assert answer.status == 403 and answer.error == "read-only" and "check its permissions" in answer.message, answer
        assert "check its permissions" in sonde_unprivileged(*start, check=1).stderr
        assert server.get("/api/runs").json()["runs"] == [run]
    finally:
        folder.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own needs root")
def test_a_full_disk(runs, store, start_server, sonde, tmp_path):
    exported = store("export").stdout.encode()
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        server = start_server("serve", "--store", small / "runs.db", tmp_path)
        with contextlib.suppress(OSError):
            (small / "filler").write_bytes(b"x" * (1 << 20))
        answer = send(server, "POST", "/api/runs/import", exported, "application/x-ndjson")
        assert answer.status == 507 and answer.error == "store-full" and "no space left" in answer.message, answer
        (small / "filler").unlink()
        assert server.get("/api/runs").json()["runs"] == []
        server.end()
    finally:
        subprocess.run(["umount", "-l", small], check=False)


def test_killed_in_an_import(runs, store, start_server, tmp_path):
    """No half run: what was added is the same as in the export, and the rest can be imported again."""
    exported = store("export").stdout.encode()
    target = tmp_path / "target.db"
    server = start_server("serve", "--store", target, tmp_path)
    with server.connect() as connection:
        headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers(Content_Type="application/x-ndjson", Content_Length=len(exported)).items())
        connection.sendall(f"POST /api/runs/import HTTP/1.1\r\n{headers}\r\n".encode() + exported)
        # It may be over before its process is seen: then there is an answer.
        while not children(server.process.pid) and not select.select([connection], [], [], 0)[0]:
            pass
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(60)
    with contextlib.closing(sqlite3.connect(target)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",) and not database.execute("PRAGMA foreign_key_check").fetchall()
        added = [row[0] for row in database.execute("SELECT id FROM runs")]
    again = start_server("serve", "--store", target, tmp_path)
    done = send(again, "POST", "/api/runs/import", exported, "application/x-ndjson").json()
    assert done == {"added": 3 - len(added), "known": len(added)}
    assert again.get("/api/runs/export").body == exported


def children(pid):
    return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()


def test_a_client_that_leaves_ends_its_question(runs, server, store):
    with contextlib.closing(sqlite3.connect(store.path)) as database:
        database.execute("BEGIN EXCLUSIVE")
        with server.connect() as connection:
            headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
            connection.sendall(f"DELETE /api/runs/{runs[0]['id']} HTTP/1.1\r\n{headers}\r\n".encode())
            end = time.monotonic() + 60
            while not children(server.process.pid):
                assert time.monotonic() < end
        while children(server.process.pid):
            assert time.monotonic() < end
        database.execute("ROLLBACK")
    assert store.runs() == runs


def test_names_with_markup_arrive_as_they_are(runs, server):
    assert any(run["notes"] == TEXT for run in server.get("/api/runs").json()["runs"])
    assert server.get(f"/api/runs?search={quote('<script>')}").json()["runs_total"] == 1
