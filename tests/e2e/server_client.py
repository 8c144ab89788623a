# SPDX-License-Identifier: Apache-2.0
"""A server under test, and clients that say exactly which bytes they send.

    server = Server(sonde.start("serve", ...))    waits for its address
    server.get("/api/status")                     an Answer: status, headers, body, .json()
    server.socket("/ws")                          a WebSocket
"""

import base64
import json
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import live_frames

CAPTURE = Path(__file__).resolve().parents[1] / "golden" / "energy-2-plain.pftrace"
TIMEOUT = 60


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]["code"]

    @property
    def message(self):
        return self.json()["error"]["message"]


class Closed(Exception):
    """The server has closed the connection before its answer."""


def read_answer(stream, is_head=False):
    line = stream.readline()
    if not line:
        raise Closed
    headers = {}
    while (header := stream.readline().strip()):
        name, value = header.decode("latin-1").split(":", 1)
        headers[name.lower()] = value.strip()
    body = b"" if is_head else stream.read(int(headers.get("content-length", 0)))
    return Answer(int(line.split()[1]), headers, body)


class Server:
    def __init__(self, process, address=None):
        """`address`: where it is not the first line of standard output."""
        self.process = process
        self.address = address or process.stdout.readline().strip()
        assert self.address, process.stderr.read()
        parts = urlsplit(self.address)
        self.host, self.port = parts.hostname, parts.port
        self.token = parts.query.removeprefix("token=") or None

    def connect(self):
        return socket.create_connection((self.host, self.port), TIMEOUT)

    def headers(self, **more):
        headers = {"Host": f"{self.host}:{self.port}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers | {name.replace("_", "-"): value for name, value in more.items()}

    def get(self, path, method="GET", headers=None, body=b"", **more):
        """With the token, unless `headers` are given, which are all then."""
        headers = self.headers(**more) if headers is None else headers
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value is not None)
        with self.connect() as connection:
            connection.sendall(head.encode("latin-1") + b"\r\n" + body)
            return read_answer(connection.makefile("rb"), method == "HEAD")

    def capture(self, name=None):
        """The id of the capture, or of that with this name."""
        captures = self.get("/api/captures").json()["captures"]
        return next(one["id"] for one in captures if name in (None, one["name"]))

    def socket(self, path="/ws", headers=None):
        return WebSocket(self, path, self.headers() if headers is None else headers)

    def end(self):
        self.process.terminate()
        return self.process.wait(TIMEOUT)


class WebSocket:
    """Only what is needed, so that frames can also be wrong."""

    def __init__(self, server, path, headers, receive_bytes=None):
        self.connection = socket.socket()
        if receive_bytes:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.connection.settimeout(TIMEOUT)
        self.connection.connect((server.host, server.port))
        key = base64.b64encode(os.urandom(16)).decode()
        headers = headers | {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"}
        head = f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.connection.sendall(head.encode() + b"\r\n")
        self.stream = self.connection.makefile("rb")
        self.answer = read_answer(self.stream)
        self.close_code = None
        self.binary = 0  # frames
        self.joined = []  # messages of the last frame that next() has not given yet

    def frame(self):
        """(opcode, bytes) of the next one; None at the end."""
        head = self.stream.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 127
        if length == 126:
            length = struct.unpack(">H", self.stream.read(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.stream.read(8))[0]
        return head[0] & 15, self.stream.read(length)

    def next(self):
        """The next message, which may come in a binary frame; None when it is closed."""
        if self.joined:
            return self.joined.pop(0)
        while (frame := self.frame()):
            opcode, data = frame
            if opcode == 1:
                messages = json.loads(data)
                self.joined = messages if isinstance(messages, list) else [messages]
                return self.joined.pop(0)
            if opcode == 2:
                self.binary += 1
                return live_frames.decode(data)
            if opcode == 9:
                self.send(data, opcode=10)
            if opcode == 8:
                self.close_code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else None
                return None
        return None

    def send(self, data, opcode=1, is_masked=True):
        mask = os.urandom(4)
        head = bytes([0x80 | opcode, (0x80 if is_masked else 0) | len(data)])
        if is_masked:
            data = mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.connection.sendall(head + data)

    def close(self):
        self.stream.close()
        self.connection.close()
