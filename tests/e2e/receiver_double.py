# SPDX-License-Identifier: Apache-2.0
"""A test double of what takes uploads and pushes: an HTTP server of loopback that keeps what it gets.

`answers` says what it does with each request: a status, (status, headers), "hang" (never answers), or "cut" (closes the
connection in the middle of the body). The last one holds for all that follow.
"""

import http.server
import threading
from dataclasses import dataclass


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: bytes
    status: int


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        double = self.server.double
        with double.lock:
            answer = double.answers.pop(0) if len(double.answers) > 1 else double.answers[0]
        length = int(self.headers.get("Content-Length", 0))
        if answer == "cut":
            self.rfile.read(length // 2)
            double.keep(Request(self.command, self.path, dict(self.headers), b"", 0))
            self.connection.close()
            self.close_connection = True
            return
        body = self.rfile.read(length)
        if answer == "hang":
            double.keep(Request(self.command, self.path, dict(self.headers), body, 0))
            double.released.wait(60)
            self.close_connection = True
            return
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        double.keep(Request(self.command, self.path, dict(self.headers), body, status))
        text = b"" if status < 300 else b"the double says no"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_POST = do_GET = handle_any

    def log_message(self, *arguments):
        pass


class ReceiverDouble:
    def __init__(self, answers=(200,), port=0):
        self.answers = list(answers)
        self.requests = []
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.double = self
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def keep(self, request):
        with self.lock:
            self.requests.append(request)

    def taken(self):
        """What it answered to with success."""
        with self.lock:
            return [request for request in self.requests if 200 <= request.status < 300]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
