# SPDX-License-Identifier: Apache-2.0
"""sonde view and sonde serve: what they answer, and to whom."""

import gzip
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from server_client import Closed, read_answer
from trace_files import kineto_of_rank

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
CAPTURE = GOLDEN / "energy-2-plain.pftrace"


@pytest.fixture
def start(start_server):
    return start_server


@pytest.fixture
def view(start, tmp_path):
    """A view of a real capture."""
    shutil.copy(CAPTURE, tmp_path / "run.pftrace")
    return start("view", "--no-browser", tmp_path / "run.pftrace")


@pytest.fixture
def folder(tmp_path):
    """A folder with captures, and with what is none."""
    path = tmp_path / "captures"
    (path / "ranks").mkdir(parents=True)
    shutil.copy(CAPTURE, path / "a.pftrace")
    shutil.copy(GOLDEN / "device-2-plain.pftrace", path / "b.pftrace")
    shutil.copy(GOLDEN / "trace" / "trace-1.json", path / "ranks" / "rank0.json")
    (path / "secret.txt").write_text("secret")
    (path / "link.pftrace").symlink_to("/etc/passwd")
    (path / ".hidden.pftrace").write_text("secret")
    (path / "empty").mkdir()
    return path


def wait_for(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


# ---- what is answered ----


def test_status_and_captures(view):
    status = view.get("/api/status").json()
    assert status["name"] == "sonde" and status["mode"] == "view" and status["captures"] == 1
    capture, = view.get("/api/captures").json()["captures"]
    assert capture["name"] == "run.pftrace" and capture["kind"] == "file" and capture["size"] == CAPTURE.stat().st_size
    assert view.get(f"/api/captures/{capture['id']}").json()["id"] == capture["id"]


@pytest.mark.parametrize("query, arguments", [("", []), ("?by=function&limit=3", ["--by", "function", "-n", "3"]), ("?weight=wall", ["--weight", "wall"])])
def test_the_report_is_that_of_the_command(view, sonde, tmp_path, query, arguments):
    answer = view.get(f"/api/captures/{view.capture()}/report{query}")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json() == sonde("report", "--json", *arguments, tmp_path / "run.pftrace", check=0).json()


def test_forms_of_the_report(view, sonde, tmp_path):
    path = f"/api/captures/{view.capture()}/report"
    page = view.get(f"{path}?format=page")
    assert page.status == 200 and page.json()
    table = view.get(f"{path}?format=csv&by=function")
    assert table.headers["content-type"].startswith("text/csv")
    assert table.body.decode().splitlines() == sonde("report", "--csv", "--by", "function", tmp_path / "run.pftrace", check=0).stdout.splitlines()
    assert view.get(f"{path}?format=csv").error == "bad-request"


EXPORTS = ["folded", "flamegraph", "speedscope", "firefox", "pprof", "otlp", "chrome", "chakra", "pftrace", "csv", "json", "jsonl", "perf-script", "roofline"]


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_are_those_of_the_command(view, sonde, tmp_path, name):
    """The same bytes, or the same refusal."""
    answer = view.get(f"/api/captures/{view.capture()}/export?format={name}")
    done = sonde("export", "-f", name, "-o", tmp_path / "export", tmp_path / "run.pftrace")
    if done.status == 0:
        assert answer.status == 200
        assert answer.body == (tmp_path / "export").read_bytes()
        assert answer.headers["content-disposition"].startswith('attachment; filename="run.')
    else:
        assert answer.status in (400, 404)
        assert answer.message.strip() in done.stderr


def test_exports_take_weights_and_filters(view, sonde, tmp_path):
    path = f"/api/captures/{view.capture()}/export"
    wanted = sonde("export", "-f", "folded", "--weight", "wall", "--roots", "thread", "--symbol", "a*", "-o", "-", tmp_path / "run.pftrace", check=0).stdout
    assert view.get(f"{path}?format=folded&weight=wall&roots=thread&symbol=a*").body.decode() == wanted
    refused = view.get(f"{path}?format=chrome&weight=wall")
    assert refused.status == 400 and "not for the format chrome" in refused.message
    for other in ("vllm-csv", "../x", "nosuch"):
        unknown = view.get(f"{path}?format={other}")
        assert unknown.status == 400 and "speedscope" in unknown.message
    assert view.get(path).status == 400


def test_speedscope_has_a_policy_of_its_own(view):
    """Styles in the page are its alone; scripts are from here in both."""
    page, app = view.get("/"), view.get("/speedscope/")
    assert page.status == app.status == 200
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    policy = dict(part.strip().split(" ", 1) for part in app.headers["content-security-policy"].split(";"))
    assert policy["script-src"] == policy["connect-src"] == "'self'" and policy["default-src"] == "'none'"
    assert "MIT License" in gzip.decompress(view.get("/speedscope/licenses.txt").body).decode()
    assert view.get("/speedscope/nosuch").status == 404


def test_sections_and_call_trees(view):
    capture = view.capture()
    names = [section["name"] for section in view.get(f"/api/captures/{capture}/sections").json()]
    assert "function" in names and "idle" in names
    for name in names:
        assert view.get(f"/api/captures/{capture}/report?by={name}").status in (200, 404), name
    tree = view.get(f"/api/captures/{capture}/call-tree?weight=cpu").json()
    assert tree["parent"][0] == -1 and len(tree["label"]) == len(tree["parent"])
    both = view.get(f"/api/captures/{capture}/call-tree/{capture}").json()
    assert len(both["totals"]) == 2 and both["totals"][0] == both["totals"][1]


def test_the_timeline(start, folder):
    server = start("serve", folder)
    path = f"/api/captures/{server.capture('ranks')}/timeline"
    timeline = server.get(path).json()
    assert timeline["duration_ns"] > 0
    seen = 0
    for track in timeline["tracks"]:
        tile = server.get(f"{path}/tile?track={track['id']}&from=0&to={timeline['duration_ns']}&columns=100")
        assert tile.status == 200 and tile.headers["content-type"] == "application/octet-stream"
        magic, version, number = struct.unpack_from("<III", tile.body)
        assert (magic, version, number) == (0x4c544e53, 1, track["id"])
        seen += struct.unpack_from("<I", tile.body, 36)[0]
    assert seen
    names = server.get(f"{path}/names?names=0,1,4000000000").json()
    assert len(names) == 3 and names[1] and names[2] is None
    for wrong in ["tile?track=0&from=0&to=1", "tile?track=0&from=5&to=5&columns=1", "tile?track=0&from=0&to=1&columns=4097",
                  "tile?track=99999&from=0&to=1&columns=1", "names?names=", "names?names=1,,2", "names?names=-1", "names"]:
        assert server.get(f"{path}/{wrong}").error == "bad-request", wrong


def test_what_changed(start, sonde, folder):
    shutil.copy(GOLDEN / "capture-1-plain.pftrace", folder / "before.pftrace")
    shutil.copy(GOLDEN / "capture-2-plain.pftrace", folder / "after.pftrace")
    server = start("serve", folder)
    before, after = server.capture("before.pftrace"), server.capture("after.pftrace")
    assert server.get(f"/api/captures/{server.capture('a.pftrace')}/diff/{after}").status in (404, 422)
    for query, arguments in [("", []), ("?by=module&limit=2", ["--by", "module", "-n", "2"])]:
        answer = server.get(f"/api/captures/{before}/diff/{after}{query}")
        assert answer.json() == sonde("diff", "--json", *arguments, folder / "before.pftrace", folder / "after.pftrace", check=0).json()
    assert server.get(f"/api/captures/{before}/diff/{'0' * 16}").status == 404


def test_what_changed_says_what_was_compared(start, sonde, folder):
    """By a device's time: labels, units and the picture are of that, not of CPU time."""
    for name, version in [("before", 1), ("after", 2)]:
        shutil.copy(GOLDEN / f"device-{version}-plain.pftrace", folder / f"{name}.pftrace")
    server = start("serve", folder)
    paths = [folder / "before.pftrace", folder / "after.pftrace"]
    before, after = (server.capture(path.name) for path in paths)
    answer = server.get(f"/api/captures/{before}/diff/{after}?weight=gpu").json()
    assert answer == sonde("diff", "--json", "--weight", "gpu", *paths, check=0).json()
    samples = answer["samples"]
    assert samples["weight"] == "gpu"
    side = samples["before"]
    assert side["time_ns"] == 14500 and side["cpu_time_ns"] is None and side["samples"] is None
    [row] = [row for row in samples["rows"] if row["name"] == "[gpu] copy"]
    assert (row["self_time_ns_before"], row["self_samples_before"]) == (500, None)
    tree = server.get(f"/api/captures/{before}/call-tree/{after}?weight=gpu").json()
    assert (tree["unit"], tree["totals"]) == ("ns", [14500, 14500])
    picture = folder / "change.svg"
    text = sonde("diff", "--weight", "gpu", "--flamegraph", picture, *paths, check=0).stdout
    words = " ".join(text.split())  # lines are wrapped
    assert "14.5 µs of device time" in words and "recorded Device time: +0 s" in words and "CPU time" not in words
    assert "change in share of device time · 14.5 µs before, 14.5 µs after" in picture.read_text()
    refused = server.get(f"/api/captures/{before}/diff/{after}?weight=gpu-bytes")
    assert refused.status == 400 and "gpu-bytes" in refused.message


def test_the_capture_itself(view):
    answer = view.get(f"/api/captures/{view.capture()}/file")
    assert answer.body == CAPTURE.read_bytes()
    assert answer.headers["content-disposition"] == 'attachment; filename="run.pftrace"'


def test_a_folder(start, folder):
    server = start("serve", folder)
    captures = {one["name"]: one for one in server.get("/api/captures").json()["captures"]}
    assert sorted(captures) == ["a.pftrace", "b.pftrace", "ranks"]
    assert captures["ranks"]["kind"] == "folder"
    assert server.get(f"/api/captures/{captures['ranks']['id']}/report").json()["format"]
    assert server.get(f"/api/captures/{captures['ranks']['id']}/file").error == "no-data"
    shutil.copy(CAPTURE, folder / "c.pftrace")
    (folder / "a.pftrace").unlink()
    wait_for(lambda: len(server.get("/api/captures").json()["captures"]) == 3 and
             server.get(f"/api/captures/{captures['a.pftrace']['id']}").status == 404, "the folder is read again")
    assert server.capture("c.pftrace")


@pytest.mark.parametrize("kind, files", [("recordings", ["capture-2-plain.pftrace", "energy-2-plain.pftrace"]), ("traces", ["rank0.json", "rank1.json", "rank2.json"])])
@pytest.mark.parametrize("is_folder", [False, True], ids=["files", "folder"])
def test_several_files_are_viewed_as_one_run(start, sonde, tmp_path, kind, files, is_folder):
    """As the commands read them: the report, an export, the timeline."""
    run = tmp_path / "run"
    run.mkdir()
    for rank, name in enumerate(files):
        if kind == "traces":
            kineto_of_rank(run / name, rank, 3)
        else:
            shutil.copy(GOLDEN / name, run)
    paths = [run] if is_folder else [run / name for name in files]
    server = start("view", "--no-browser", *paths)
    capture, = server.get("/api/captures").json()["captures"]
    named = {"recordings": "capture-2-plain.pftrace and energy-2-plain.pftrace", "traces": "rank0.json and 2 more"}[kind]
    assert (capture["name"], capture["kind"]) == ("run" if is_folder else named, "folder")
    assert is_folder or capture["size"] == sum(path.stat().st_size for path in paths)
    here = f"/api/captures/{capture['id']}"
    assert server.get(f"{here}/report").json() == sonde("report", "--json", *paths, check=0).json()
    csv = server.get(f"{here}/export?format=csv")
    sonde("export", "-f", "csv", "-o", tmp_path / "run.csv", *paths, check=0)
    assert csv.status == 200 and csv.body == (tmp_path / "run.csv").read_bytes()
    assert server.get(f"{here}/timeline").status == 200
    assert server.get(f"{here}/file").error == "no-data"
    assert server.end() == 0


def test_a_file_of_a_run_that_is_missing(sonde, tmp_path):
    shutil.copy(CAPTURE, tmp_path / "a.pftrace")
    done = sonde("view", "--no-browser", tmp_path / "a.pftrace", tmp_path / "b.pftrace", check=1)
    assert "b.pftrace: No such file" in done.stderr


def test_the_page(view):
    page = view.get("/")
    if page.status == 404:
        assert page.error == "no-page" and "npm" in page.message
        return
    assert page.headers["content-type"].startswith("text/html") and page.headers["content-encoding"] == "gzip"
    again = view.get("/", If_None_Match=page.headers["etag"])
    assert again.status == 304 and not again.body
    assert view.get("/nothing.js").status == 404


def test_an_answer_that_is_known_is_not_sent_again(view):
    path = f"/api/captures/{view.capture()}/report"
    etag = view.get(path).headers["etag"]
    answer = view.get(path, If_None_Match=etag)
    assert answer.status == 304 and answer.headers["etag"] == etag and not answer.body
    head = view.get(path, method="HEAD")
    assert head.status == 200 and int(head.headers["content-length"]) > 100


def test_a_file_that_is_written_again(start, tmp_path):
    path = tmp_path / "run.pftrace"
    shutil.copy(CAPTURE, path)
    server = start("serve", path)
    capture = server.capture()
    before = server.get(f"/api/captures/{capture}/report").json()
    shutil.copy(GOLDEN / "device-2-plain.pftrace", tmp_path / "new")
    (tmp_path / "new").rename(path)
    assert server.get(f"/api/captures/{capture}/report").json()["capture"]["bytes"] != before["capture"]["bytes"]


class Growing:
    """A capture that is longer each time that anything is asked of it, as a recording may be."""

    def __init__(self, start, path):
        self.path = path
        shutil.copy(GOLDEN / "device-2-plain.pftrace", path)
        self.server = start("serve", path)
        self.base = f"/api/captures/{self.server.capture()}"

    def get(self, path):
        with self.path.open("ab") as file:
            file.write(b"\x0a\x00")  # an empty packet
        return self.server.get(self.base + path)

    def answer(self, path):
        """Asks until the answer is there, as the page does."""
        end = time.monotonic() + 60
        while (answer := self.get(path)).status == 202:
            assert time.monotonic() < end, "no answer in a minute"
            time.sleep(0.01)
        return answer


def test_a_file_that_grows_all_the_time_is_answered(start, tmp_path):
    """What was asked of a recording is answered, of what it was then; who asks later gets more."""
    growing = Growing(start, tmp_path / "run.pftrace")
    first = growing.answer("/report?by=kernel&wait=0")
    assert first.status == 200, first.body
    second = growing.answer("/report?by=kernel&wait=0")
    assert second.json()["capture"]["bytes"] > first.json()["capture"]["bytes"]
    # Another question does not end those that are being answered.
    for by in ("kernel", "launches", "kernel", "idle", "launches"):
        assert growing.get(f"/report?by={by}&wait=0").status in (200, 202)


def test_a_timeline_of_a_file_that_grows(start, tmp_path):
    """Tiles, names and slices are of the tracks that were listed, or refused: their numbers are others later."""
    growing = Growing(start, tmp_path / "run.pftrace")
    listed = growing.answer("/timeline").json()
    track = max(listed["tracks"], key=lambda track: track["slices"])
    tile = f"/timeline/tile?track={track['id']}&from=0&to={listed['duration_ns']}&columns=64"
    for path in (tile, "/timeline/names?names=1,2", tile.replace("64", "32")):
        assert growing.get(f"{path}&version={listed['version']}").status == 200
    assert growing.answer("/timeline").json()["version"] != listed["version"]
    for path in (tile, "/timeline/names?names=1,2", tile.replace("64", "16")):
        answer = growing.get(f"{path}&version={listed['version']}")
        assert (answer.status, answer.error) == (409, "conflict")
        assert "ask for them again" in answer.message
    assert growing.get(f"{tile}&version=0x00000000000000").status == 400
    assert growing.get(tile).status == 200


def test_many_requests_on_one_connection(view):
    with view.connect() as connection:
        stream = connection.makefile("rb")
        for path in ["/api/status", f"/api/captures/{view.capture()}/report", "/api/nothing", "/api/captures"] * 5:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {view.token}\r\n\r\n".encode())
            assert read_answer(stream).status == (404 if path == "/api/nothing" else 200)


def test_progress_in_place_of_waiting(view):
    path = f"/api/captures/{view.capture()}/report?wait=0"
    seen = []

    def is_answered():
        answer = view.get(path)
        seen.append(answer.status)
        if answer.status == 202:
            assert answer.json()["state"] in ("loading", "asking")
        return answer.status == 200

    wait_for(is_answered, "the answer that is made meanwhile")
    assert set(seen) <= {200, 202}


# ---- the schema ----


def test_the_schema_is_openapi(view):
    document = view.get("/api/openapi.json").json()
    assert document == json.loads((ROOT / "schema" / "api.json").read_text())
    validator = pytest.importorskip("openapi_spec_validator", reason="PyPI gives no openapi-spec-validator")
    validator.validate(document)


def test_the_types_of_the_page_are_those_of_the_schema():
    made = subprocess.run(["python3", ROOT / "schema" / "api.py", "typescript", ROOT / "schema" / "api.json"],
                          capture_output=True, text=True, check=True).stdout
    assert (ROOT / "web" / "src" / "api.ts").read_text() == made, "schema/api.py typescript schema/api.json >web/src/api.ts"


def resolved(document, thing):
    while "$ref" in thing:
        target = document
        for word in thing["$ref"].removeprefix("#/").split("/"):
            target = target[word]
        thing = target
    return thing


STRANGE = ["", "../../etc/passwd", "%00", "%2e%2e%2f", "a" * 600, "-1", "1e309", "nan", "true", "\u00fc%ff", "'; drop table", "<b>", "0", "[", "(("]


def random_value(schema, ids, chance):
    if chance.random() < 0.3:
        return chance.choice(STRANGE)
    if "pattern" in schema:
        return ids["capture"] if schema["maxLength"] == 16 else chance.choice(ids["runs"])
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if schema["type"] == "boolean":
        return chance.choice(["true", "false"])
    if schema["type"] == "string":
        return chance.choice(["function", "python", "1", "0..1", "x"])
    return str(chance.randint(int(schema["minimum"]), min(int(schema["maximum"]), 100)))


def random_json(schema, ids, chance):
    """A value that fits, or a strange one."""
    if chance.random() < 0.2:
        return chance.choice([None, True, -1, 1e308, [], {}, "", "../x", "\0", "\ud800", [[[{}]]], {"a": {"b": []}}])
    if schema["type"] == "array":
        return [random_json(schema["items"], ids, chance) for _ in range(chance.randint(0, 3))]
    if schema["type"] != "object":
        value = random_value(schema, ids, chance)
        return value if schema["type"] == "string" else json.loads(value) if value.isdigit() else value
    return {name: random_json(part, ids, chance) for name, part in schema.get("properties", {"x": {"type": "string"}}).items()
            if chance.random() < 0.9}


def random_body(document, operation, ids, chance):
    """Its headers, and the body."""
    if "requestBody" not in operation:
        return {}, b""
    (content_type, media), = resolved(document, operation["requestBody"])["content"].items()
    body = json.dumps(random_json(resolved(document, media["schema"]), ids, chance)).encode()
    if chance.random() < 0.2:
        body = body[:chance.randint(0, len(body))]
    return {"Content_Type": content_type, "Content_Length": len(body)}, body


def test_random_requests_get_what_the_schema_promises(start, sonde, tmp_path):
    """Any parameters and bodies, right and wrong: an answer of the schema, never a crash, and the server goes on."""
    shutil.copy(CAPTURE, tmp_path / "run.pftrace")
    runs = [tmp_path / "run.pftrace", *(GOLDEN / name for name in ["device-2-plain.pftrace", "capture-1-plain.pftrace", "capture-2-plain.pftrace"])]
    sonde("runs", "add", "--store", tmp_path / "runs.db", "--experiment", "x", *runs, check=0)
    view = start("serve", "--store", tmp_path / "runs.db", tmp_path)
    document = json.loads((ROOT / "schema" / "api.json").read_text())
    codes = document["components"]["schemas"]["Failure"]["properties"]["error"]["properties"]["code"]["enum"]
    chance, capture = random.Random(15), view.capture()
    ids = {"capture": capture, "runs": [run["id"] for run in view.get("/api/runs").json()["runs"]]}
    operations = [(method.upper(), path, operation, [resolved(document, p) for p in operation.get("parameters", [])])
                  for path, item in document["paths"].items() if path != "/ws" for method, operation in item.items()]
    for _ in range(700):
        method, path, operation, parameters = chance.choice(operations)
        headers, body = random_body(document, operation, ids, chance)
        query = []
        for parameter in parameters:
            schema = parameter["schema"].get("items", parameter["schema"])
            value = random_value(schema, ids, chance).replace(" ", "+")
            value = value.encode().decode("latin-1")
            if parameter["in"] == "path":
                known = chance.choice(ids["runs"]) if parameter["name"] == "run" else capture
                path = path.replace("{%s}" % parameter["name"], value if chance.random() < 0.2 else known)
            elif parameter.get("required") and parameter["name"] == "run" and chance.random() < 0.8:
                query += [f"run={chance.choice(ids['runs'])}" for _ in range(chance.randint(1, 11))]
            elif chance.random() < 0.3:
                query.append(f"{parameter['name']}={value}")
        try:
            answer = view.get(path + "?" + "&".join(query), method=method, body=body, **headers)
        except Closed:
            continue
        assert answer.status in (200, 202, 400, 404, 405, 409, 411, 414, 422), (path, query, body, answer)
        if answer.status >= 400:
            assert answer.error in codes and answer.message, (path, query)
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert view.get(f"/api/captures/{capture}/report").status == 200


# ---- who may ask ----


def test_without_the_token_there_is_nothing(view):
    host = {"Host": f"127.0.0.1:{view.port}"}
    capture = view.capture()
    for path in ["/", "/api/status", "/api/captures", f"/api/captures/{capture}/report", f"/api/captures/{capture}/file",
                 "/api/openapi.json", "/assets/page.js"]:
        for headers in [host, host | {"Authorization": "Bearer " + "0" * 32}, host | {"Cookie": f"sonde-{view.port}=x"}]:
            answer = view.get(path, headers=headers)
            assert answer.status == 401 and answer.error == "unauthorised", path
    assert view.get("/?token=wrong", headers=host).status == 401


def test_the_address_becomes_a_cookie(view):
    host = {"Host": f"127.0.0.1:{view.port}"}
    answer = view.get(f"/?token={view.token}", headers=host)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and cookie.startswith(f"sonde-{view.port}=")
    assert b"url=/" in answer.body and view.token.encode() not in answer.body
    cookie = {"Cookie": cookie.split(";")[0]}
    assert view.get("/api/status", headers=host | cookie).status == 200
    for site in ["cross-site", "same-site"]:
        assert view.get("/api/status", headers=host | cookie | {"Sec-Fetch-Site": site}).status == 403
    assert view.get("/api/status", headers=host | cookie | {"Origin": "http://evil.example"}).status == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", None])
def test_a_name_that_was_made_to_point_here(view, host):
    headers = view.headers() | {"Host": host}
    try:
        assert view.get("/api/status", headers=headers).status in (400, 403)
    except Closed:
        assert not host


def test_names_of_the_operator(start, folder):
    server = start("serve", "--host", "profiles.example", folder)
    assert server.get("/api/status", Host="profiles.example").status == 200
    assert server.get("/api/status", Host="other.example").status == 403


def test_web_sockets_of_other_pages(view):
    headers = view.headers()
    assert view.socket(headers=headers | {"Origin": "http://evil.example"}).answer.status == 403
    assert view.socket(headers={"Host": headers["Host"]}).answer.status == 401
    cookie = {"Host": headers["Host"], "Cookie": f"sonde-{view.port}={view.token}"}
    assert view.socket(headers=cookie).answer.status == 403
    good = view.socket(headers=cookie | {"Origin": f"http://{headers['Host']}"})
    assert good.answer.status == 101 and good.next()["type"] == "hello"


def test_headers_against_other_pages(view):
    for path in ["/", "/api/status", "/nothing"]:
        headers = view.get(path).headers
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer" and headers["x-content-type-options"] == "nosniff"
        assert not [name for name in headers if name.startswith("access-control")]
    assert view.get("/api/status", method="OPTIONS", Origin=f"http://127.0.0.1:{view.port}").status == 405


def test_tokens_of_files(start, sonde, folder, tmp_path):
    token = tmp_path / "token"
    token.write_text("letters-and-digits-0123\n")
    token.chmod(0o644)
    refused = sonde("serve", "--token-file", token, folder)
    assert refused.status == 1 and "chmod 600" in refused.stderr
    token.chmod(0o600)
    server = start("serve", "--token-file", token, folder)
    assert server.token == "letters-and-digits-0123" and server.get("/api/status").status == 200
    token.write_text("short")
    assert sonde("serve", "--token-file", token, folder).status == 1


def test_no_token_is_for_loopback(start, sonde, folder):
    server = start("serve", "--no-token", folder)
    assert server.token is None and server.get("/api/status").status == 200
    refused = sonde("serve", "--no-token", "--listen", "0.0.0.0:0", folder)
    assert refused.status == 1 and "loopback" in refused.stderr


def test_the_token_is_not_in_the_environment_of_others(view):
    command = Path(f"/proc/{view.process.pid}/cmdline").read_bytes()
    assert view.token.encode() not in command


def test_tls(start, folder, tmp_path):
    ssl = pytest.importorskip("ssl")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                           "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                          cwd=tmp_path, capture_output=True)
    if made.returncode:
        pytest.skip("there is no openssl to make a certificate")
    server = start("serve", "--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem", folder)
    assert server.address.startswith("https://")
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    with socket.create_connection((server.host, server.port), 30) as plain, \
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(f"GET /api/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
        assert read_answer(connection.makefile("rb")).status == 200


# ---- paths ----


@pytest.mark.parametrize("path", [
    "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../../etc/passwd", "//etc/passwd",
    "/api/captures/../../etc/passwd/file", "/api/captures/..%2f..%2fetc%2fpasswd/file", "/api/captures/%2fetc%2fpasswd/report",
    "/api/captures/....//file", "/api/captures/0000000000000000/file", "/api/captures/{id}/../../../etc/passwd",
    "/api/captures/{id}%00/file", "/api/captures/{id}/call-tree/..%2f..%2fetc", "/./././etc/passwd",
])
def test_no_path_reaches_the_file_system(view, path):
    try:
        answer = view.get(path.replace("{id}", view.capture()))
    except Closed:
        return
    assert answer.status in (400, 403, 404) and b"root:" not in answer.body


@pytest.fixture
def outside(tmp_path):
    """Files beside the served folder, whose names nobody must see."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "ranks").mkdir()
    trace = '{"schemaVersion":1,"traceEvents":[{"ph":"X","name":"secret_operator","cat":"cpu_op","pid":1,"tid":1,"ts":%d,"dur":5,"args":{}}]}'
    (path / "secret.json").write_text(trace % 1)
    (path / "ranks" / "rank0.json").write_text(trace % 2)
    return path


def own_trace(number):
    return ('{"schemaVersion":1,"traceEvents":[{"ph":"X","name":"own_operator_%d","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":5,"args":{}}]}' % number)


@pytest.mark.parametrize("kind", ["file", "folder", "file of a folder"])
def test_a_link_in_place_of_a_listed_file(start, tmp_path, outside, kind):
    """Somebody who may write in the folder swaps a file for a link, again and again, while it is asked for: its target is never read."""
    folder = tmp_path / "captures"
    (folder / "ranks").mkdir(parents=True)
    (folder / "a.json").write_text(own_trace(0))
    (folder / "ranks" / "rank0.json").write_text(own_trace(0))
    server = start("serve", folder)
    swapped = {"file": folder / "a.json", "folder": folder / "ranks", "file of a folder": folder / "ranks" / "rank0.json"}[kind]
    target = outside / "ranks" if kind == "folder" else outside / "secret.json"
    capture = server.capture("a.json" if kind == "file" else "ranks")
    ends, link, own = threading.Event(), tmp_path / "link", tmp_path / "own"

    def swap():
        number = 0
        while not ends.is_set():
            number += 1
            if kind == "folder":
                own.mkdir(exist_ok=True)
                (own / "rank0.json").write_text(own_trace(number))
                link.symlink_to(target)
                swapped.rename(tmp_path / "before")
                link.rename(swapped)
                ends.wait(0.002)
                swapped.unlink()
                own.rename(swapped)
                shutil.rmtree(tmp_path / "before")
            else:
                link.symlink_to(target)
                link.rename(swapped)
                ends.wait(0.002)
                own.write_text(own_trace(number))
                own.rename(swapped)
            ends.wait(0.002)

    thread = threading.Thread(target=swap)
    thread.start()
    statuses = []
    try:
        for number in range(60):
            for path in [f"report?by=cpu-operators&limit={number + 1}", "file"]:
                answer = server.get(f"/api/captures/{capture}/{path}")
                statuses.append(answer.status)
                assert b"secret_operator" not in answer.body, path
    finally:
        ends.set()
        thread.join()
    assert set(statuses) <= {200, 404, 422, 500, 503}
    wait_for(lambda: server.get(f"/api/captures/{capture}/report?by=cpu-operators").status == 200, "the file that is there at last")
    assert b"own_operator" in server.get(f"/api/captures/{capture}/report?by=cpu-operators").body


def test_a_link_of_the_command_line_is_followed(start, tmp_path):
    shutil.copy(CAPTURE, tmp_path / "run.pftrace")
    (tmp_path / "link.pftrace").symlink_to(tmp_path / "run.pftrace")
    server = start("view", "--no-browser", tmp_path / "link.pftrace")
    assert server.get(f"/api/captures/{server.capture()}/report").status == 200


# ---- bad clients ----


@pytest.mark.parametrize("data", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 5000, b"GET " + b"/a" * 20000,
    b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 100000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
], ids=range(13))
def test_malformed_requests(view, data):
    with view.connect() as connection:
        connection.settimeout(20)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65536)
        except OSError:  # the server has closed it meanwhile
            answer = b""
        assert b"200 OK" not in answer.split(b"\r\n", 1)[0]
    assert view.get("/api/status").status == 200


def test_bodies_are_not_read(view):
    body = b"x" * (32 << 20)
    try:
        answer = view.get("/api/status", method="POST", body=body, Content_Length=len(body), Content_Type="application/json")
        assert answer.status == 405 and answer.headers["allow"] == "GET"
    except (Closed, ConnectionError):
        pass
    assert view.get("/api/status").status == 200


def test_a_client_that_sends_its_request_slowly_is_cut_off(view):
    """A header field now and then keeps no connection open for good."""
    with view.connect() as connection:
        connection.settimeout(0.5)
        end = time.monotonic() + 50
        is_open = True
        try:
            connection.sendall(b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n")
            while is_open and time.monotonic() < end:
                connection.sendall(b"X-Slow: 1\r\n")
                try:
                    is_open = connection.recv(1000) != b""
                except TimeoutError:
                    pass
        except ConnectionError:
            is_open = False
        assert not is_open
    assert view.get("/api/status").status == 200


def test_too_many_connections(view):
    connections = []
    try:
        for _ in range(600):
            connections.append(view.connect())
    except OSError:
        pass
    for connection in connections:
        connection.close()

    def answers():
        try:
            return view.get("/api/status").status == 200
        except (Closed, OSError):
            return False

    wait_for(answers, "an answer after all others have gone")


def test_too_many_requests(view):
    """The limit of the rate: as fast as one connection can ask."""
    request = f"GET /api/nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {view.token}\r\n\r\n".encode()
    seen = set()
    with view.connect() as connection:
        stream = connection.makefile("rb")
        for _ in range(20000):
            connection.sendall(request)
            answer = read_answer(stream)
            seen.add(answer.status)
            if answer.status == 429:
                assert answer.error == "too-many-requests" and answer.headers["retry-after"] == "1"
                break
    assert seen <= {404, 429}
    wait_for(lambda: view.get("/api/status").status == 200, "an answer later")


def test_frames_that_clients_may_not_send(view):
    for data, options in [(b"{}", {}), (b"x", {"opcode": 2}), (b"x", {"is_masked": False}), (b"x", {"opcode": 11})]:
        client = view.socket()
        client.send(data, **options)
        while client.next() is not None:
            pass
        client.close()
    assert view.get("/api/status").status == 200


def test_a_client_that_leaves_in_the_middle(view):
    capture = view.capture()
    for i in range(20):
        with view.connect() as connection:
            connection.sendall(f"GET /api/captures/{capture}/report?limit={i + 1} HTTP/1.1\r\nHost: localhost\r\n"
                               f"Authorization: Bearer {view.token}\r\n\r\n".encode())
            if i % 2:
                connection.recv(100)
    assert view.get(f"/api/captures/{capture}/report").status == 200


# ---- bad captures ----


def test_captures_that_cannot_be_read(start, tmp_path):
    folder = tmp_path / "captures"
    folder.mkdir()
    whole = CAPTURE.read_bytes()
    (folder / "good.pftrace").write_bytes(whole)
    (folder / "empty.pftrace").write_bytes(b"")
    (folder / "random.pftrace").write_bytes(random.Random(1).randbytes(10000))
    (folder / "half.pftrace").write_bytes(whole[:len(whole) // 2])
    (folder / "text.json").write_text("no trace")
    (folder / "bad.json.gz").write_bytes(b"\x1f\x8b" + b"x" * 100)
    server = start("serve", folder)
    for name in ["empty.pftrace", "random.pftrace", "text.json", "bad.json.gz"]:
        answer = server.get(f"/api/captures/{server.capture(name)}/report")
        assert answer.status == 422 and answer.error == "capture-unreadable", (name, answer)
        assert len(answer.message) > 20 and "\n" not in answer.message
    listed = {one["name"]: one for one in server.get("/api/captures").json()["captures"]}
    assert listed["random.pftrace"]["state"] == "failed" and listed["random.pftrace"]["message"]
    assert server.get(f"/api/captures/{server.capture('half.pftrace')}/report").status in (200, 422)
    assert server.get(f"/api/captures/{server.capture('good.pftrace')}/report").status == 200


def test_a_capture_that_needs_too_much_memory(start, folder, sonde_path):
    if b"__asan_init" in Path(sonde_path).read_bytes():
        pytest.skip("sanitizers reserve more memory than any limit")
    event = '{"ph":"X","name":"operator_%d","cat":"cpu_op","pid":1,"tid":1,"ts":%d,"dur":1,"args":{}}'
    events = ",".join(event % (i, 2 * i) for i in range(300_000))
    (folder / "large.json").write_text('{"schemaVersion":1,"traceEvents":[%s]}' % events)
    server = start("serve", "--memory", "64", folder)
    answer = server.get(f"/api/captures/{server.capture('large.json')}/report")
    assert answer.status in (422, 500, 503), answer.status
    assert answer.error in ("capture-unreadable", "worker-failed", "out-of-memory") and answer.message
    assert server.get(f"/api/captures/{server.capture('a.pftrace')}/report").status == 200


def test_a_large_file_is_sent_whole(start, folder):
    data = os.urandom(1 << 20) * 40
    (folder / "large.pftrace").write_bytes(data)
    server = start("serve", folder)
    assert server.get(f"/api/captures/{server.capture('large.pftrace')}/file").body == data


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_process_that_crashes_costs_one_answer(view):
    capture = view.capture()
    assert view.get(f"/api/captures/{capture}/report").status == 200
    worker, = children(view.process.pid)
    os.kill(worker, 11)
    wait_for(lambda: not children(view.process.pid), "the worker's end")
    answer = view.get(f"/api/captures/{capture}/report?limit=7")
    if answer.status != 200:
        assert answer.error in ("capture-unreadable", "worker-failed") and "has ended" in answer.message
    wait_for(lambda: view.get(f"/api/captures/{capture}/report?limit=7").status == 200, "an answer of a new process")


@pytest.mark.parametrize("number, words", [(signal.SIGKILL, "was killed before its answer"), (signal.SIGSEGV, "crashed with signal 11")])
def test_a_process_that_ends_while_it_answers_says_why(start, folder, number, words):
    """The answer's own process, met while it reads the second file; the worker and its capture stay."""
    event = '{"ph":"X","name":"operator_%d","cat":"cpu_op","pid":1,"tid":1,"ts":%d,"dur":1,"args":{}}'
    events = ",".join(event % (i, 2 * i) for i in range(100_000))
    (folder / "large.json").write_text('{"schemaVersion":1,"traceEvents":[%s]}' % events)
    server = start("serve", folder)
    before, after = server.capture("a.pftrace"), server.capture("large.json")
    assert server.get(f"/api/captures/{before}/report").status == 200
    worker, = children(server.process.pid)
    met, end = [], time.monotonic() + 60
    while not met:
        assert time.monotonic() < end, "no process was met while it answered"
        answers = []
        asking = threading.Thread(target=lambda: answers.append(server.get(f"/api/captures/{before}/call-tree/{after}?weight=wall&symbol={time.monotonic()}")))
        asking.start()
        while not met and asking.is_alive():
            met = children(worker)
        for child in met:
            os.kill(child, number)
        asking.join()
        if answers[0].status == 200:
            met = []  # it had ended
    assert words in answers[0].message, answers[0].message
    assert children(server.process.pid) == [worker]
    assert server.get(f"/api/captures/{before}/report?limit=7").status == 200


def test_nothing_is_left_behind(view):
    assert view.get(f"/api/captures/{view.capture()}/report").status == 200
    workers = children(view.process.pid)
    assert workers
    view.process.kill()
    view.process.wait()
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), "the end of the workers")


# ---- commands ----


def test_a_view_ends_with_its_page(view):
    client = view.socket()
    assert client.next()["data"]["is_view"]
    client.close()
    assert view.process.wait(60) == 0


def test_what_cannot_be_served(sonde, tmp_path, folder):
    for arguments, words in [(["view", tmp_path / "nothing"], "No such file"), (["serve", "--listen", "7077", folder], "ADDRESS:PORT"),
                             (["serve", "--tls-cert", "x", folder], "--tls-key"), (["serve", "--listen", "192.0.2.1:1", folder], "192.0.2.1")]:
        finished = sonde(*arguments, *(["--no-browser"] if arguments[0] == "view" else []))
        assert finished.status in (1, 2) and words in finished.stderr, finished


def test_a_port_that_is_taken(start, sonde, folder):
    server = start("serve", folder)
    finished = sonde("serve", "--listen", f"127.0.0.1:{server.port}", folder)
    assert finished.status == 1 and "--listen" in finished.stderr


def test_a_warning_where_others_can_listen(start, folder):
    server = start("serve", "--listen", "0.0.0.0:0", folder)
    assert server.get("/api/status").status == 200
    server.end()
    assert "--tls-cert" in server.process.stderr.read()


def test_starting_does_not_open_libwebsockets(sonde_path):
    libraries = subprocess.run(["readelf", "-d", sonde_path], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"libwebsockets|libssl", libraries)
