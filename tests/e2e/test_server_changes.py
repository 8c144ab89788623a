# SPDX-License-Identifier: Apache-2.0
"""Requests that change something: their bodies, who may send them, and servers that are read-only."""

import json
import shutil
import socket
import time

import pytest
from server_client import CAPTURE, Closed, read_answer


@pytest.fixture
def server(start_server, tmp_path):
    shutil.copy(CAPTURE, tmp_path / "run.pftrace")
    return start_server("serve", tmp_path)


def post(server, path, body, content_type="application/json", **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return server.get(path, method="POST", body=body, Content_Length=len(body), Content_Type=content_type, **headers)


# ---- bodies ----


def test_a_body_is_read_and_checked(server):
    unknown = post(server, "/api/jobs", {"command": "nothing"})
    assert unknown.status == 404 and unknown.error == "not-found"
    for body, word in [(b"{", "object"), (b"[]", "object"), (b"{} {}", "object"), (b'{"command": "a"', "object"), (b"null", "object"),
                       ({}, "command"), ({"command": 1}, "command"), ({"command": ""}, "command"), ({"command": "a" * 64}, "command"),
                       ({"command": "a", "parameters": []}, "parameters"), ({"command": "a", "other": 1}, "other"),
                       (b'{"command": "a", "command": "b"}', "twice"), (b'{"command": "a\\u0000b"}', "command"),
                       (b'{"command": "\xff"}', "command"), (b'{"command": "a",, "parameters": {}}', "object")]:
        answer = post(server, "/api/jobs", body)
        assert answer.status == 400 and answer.error == "bad-request" and word in answer.message, (body, answer)
    window = post(server, "/api/jobs/0123456789abcdef/window", {"action": "shut"})
    assert window.status == 400 and "open, close" in window.message


def test_bodies_of_other_types_and_lengths(server):
    assert post(server, "/api/jobs", {"command": "a"}, "application/json; charset=utf-8").status == 404
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "", None]:
        answer = post(server, "/api/jobs", {"command": "a"}, content_type)
        assert answer.status == 415 and answer.error == "wrong-content-type", content_type
    for length in ["", "-1", "+5", "0x10", "5 5", "9" * 30]:
        try:
            answer = server.get("/api/jobs", method="POST", body=b"{}", Content_Length=length, Content_Type="application/json")
        except (Closed, ConnectionError):
            continue
        assert answer.status in (400, 411), length
    assert server.get("/api/jobs", method="POST", Content_Type="application/json").status == 411
    assert server.get("/api/jobs", method="POST", Content_Length=0, Content_Type="application/json").status == 400
    large = post(server, "/api/jobs", b" " * 65537)
    assert large.status == 413 and large.error == "too-large" and "65536" in large.message
    assert post(server, "/api/jobs", b'{"command":"a"' + b" " * 65521 + b"}").status == 404


def test_a_body_in_chunks_is_refused(server):
    headers = server.headers(Transfer_Encoding="chunked", Content_Type="application/json")
    answer = server.get("/api/jobs", method="POST", headers=headers, body=b"e\r\n{\"command\":1}\r\n0\r\n\r\n")
    assert answer.status == 411 and "Content-Length" in answer.message
    both = headers | {"Content-Length": "14"}
    assert server.get("/api/jobs", method="POST", headers=both, body=b'{"command":"a"}').status == 411


def test_the_connection_goes_on_after_a_body(server):
    with server.connect() as connection:
        stream = connection.makefile("rb")
        for _ in range(5):
            body = b'{"command":"a"}'
            headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
            connection.sendall(f"POST /api/jobs HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            # In two pieces, as networks have it.
            connection.sendall(body[:4])
            connection.sendall(body[4:])
            assert read_answer(stream).status == 404
            connection.sendall(f"GET /api/status HTTP/1.1\r\n{headers}\r\n".encode())
            assert read_answer(stream).status == 200


def test_a_client_that_sends_its_body_slowly_is_cut_off(server):
    headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
    with server.connect() as connection:
        connection.settimeout(0.5)
        end = time.monotonic() + 90
        is_open = True
        try:
            connection.sendall(f"POST /api/jobs HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n".encode())
            while is_open and time.monotonic() < end:
                connection.sendall(b" ")
                try:
                    is_open = connection.recv(1000) != b""
                except TimeoutError:
                    pass
        except ConnectionError:
            is_open = False
        assert not is_open
    assert server.get("/api/status").status == 200


def test_a_client_that_leaves_in_its_body(server):
    headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
    for _ in range(20):
        with server.connect() as connection:
            connection.sendall(f"POST /api/jobs HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    assert server.get("/api/status").status == 200


def test_what_follows_a_body_is_no_part_of_it(server):
    """A second request in the same packet is another request, with its own token."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
    body = '{"command":"a"}'
    with server.connect() as connection:
        connection.sendall((f"POST /api/jobs HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                            "GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n").encode())
        connection.shutdown(socket.SHUT_WR)
        stream = connection.makefile("rb")
        assert read_answer(stream).status == 404
        try:
            assert read_answer(stream).status == 401
        except (Closed, ConnectionError):
            pass


# ---- who may change something ----


def test_changes_need_the_token_and_the_page(server):
    body = {"command": "a"}
    host = f"127.0.0.1:{server.port}"
    cookie = f"sonde-{server.port}={server.token}"
    assert post(server, "/api/jobs", body, Authorization=None).status == 401
    assert post(server, "/api/jobs", body, Authorization=None, Cookie=cookie).status == 403
    assert post(server, "/api/jobs", body, Authorization=None, Cookie=cookie, Origin="http://evil.example").status == 403
    assert post(server, "/api/jobs", body, Authorization=None, Cookie=cookie, Origin=f"http://{host}", Sec_Fetch_Site="cross-site").status == 403
    assert post(server, "/api/jobs", body, Authorization=None, Cookie=cookie, Origin=f"http://{host}", Sec_Fetch_Site="same-origin").status == 404
    assert post(server, "/api/jobs", body, Host="evil.example").status == 403


def test_methods_that_a_path_has(server):
    for method, path, allow in [("DELETE", "/api/jobs", "GET, POST"), ("PUT", "/api/status", "GET"), ("GET", "/api/jobs/0123456789abcdef/cancel", "POST")]:
        answer = server.get(path, method=method)
        assert answer.status == 405 and answer.headers["allow"] == allow


# ---- read-only ----


@pytest.mark.parametrize("command", [("view", "--no-browser"), ("serve", "--read-only")])
def test_read_only(start_server, tmp_path, command):
    shutil.copy(CAPTURE, tmp_path / "run.pftrace")
    server = start_server(*command, tmp_path / "run.pftrace")
    assert server.get("/api/status").json()["read_only"] is True
    assert server.socket().next()["data"]["read_only"] is True
    document = server.get("/api/openapi.json").json()
    changing = [(method.upper(), path) for path, item in document["paths"].items() for method in item if method != "get"]
    assert changing
    for method, path in changing:
        path = path.replace("{job}", "0123456789abcdef")
        body = b"{}"
        answer = server.get(path, method=method, body=body, Content_Length=len(body), Content_Type="application/json")
        assert answer.status == 403 and answer.error == "read-only" and len(answer.message) > 20, path


def test_not_read_only(server):
    assert server.get("/api/status").json()["read_only"] is False
    assert server.socket().next()["data"]["read_only"] is False
