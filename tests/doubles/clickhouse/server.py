# SPDX-License-Identifier: Apache-2.0
"""A double of a ClickHouse server: chdb, which is ClickHouse of today as a library, behind the part of ClickHouse's HTTP
interface that sonde uses. Its SQL is the real one; its HTTP, users and sessions are not.

    python server.py FOLDER PORT [USER PASSWORD]

Prints "ready PORT" when it listens on loopback.
"""

import http.server
import os
import re
import sys
import tempfile
import threading
import urllib.parse

from chdb import session

INSERT = re.compile(r"INSERT INTO (\w+) \(([\w, ]+)\) FORMAT RowBinary$")


class Database:
    """One query at a time: chdb has one session in a process."""

    def __init__(self, folder):
        self.session = session.Session(folder)
        self.lock = threading.Lock()

    def query(self, database, sql, parameters):
        with self.lock:
            self.session.query(f"USE {database}")
            return self.session.query(sql, "TabSeparated", params=parameters or {}).bytes()

    def insert(self, database, table, columns, rows):
        types = self.query(
            "default",
            "SELECT name, type FROM system.columns WHERE database = {database:String} AND table = {table:String}",
            {"database": database, "table": table},
        )
        type_of = dict(line.split("\t") for line in types.decode().splitlines())
        structure = ", ".join(f"{name} {type_of[name]}" for name in columns.split(", "))
        with tempfile.NamedTemporaryFile() as file:
            file.write(rows)
            file.flush()
            sql = f"INSERT INTO {table} ({columns}) SELECT * FROM file('{file.name}', RowBinary, '{structure}')"
            self.query(database, sql, {})


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_known(self):
        user = self.headers.get("X-ClickHouse-User", "default")
        return self.server.users.get(user) == self.headers.get("X-ClickHouse-Key", "")

    def do_POST(self):
        words = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        database = words.get("database", "default")
        parameters = {name.removeprefix("param_"): unescape(words[name]) for name in words if name.startswith("param_")}
        if not self.is_known():
            return self.answer(403, b"Code: 516. DB::Exception: Authentication failed: password is incorrect")
        try:
            if insert := INSERT.match(words.get("query", "")):
                self.server.database.insert(database, *insert.groups(), body)
                return self.answer(200, b"")
            return self.answer(200, self.server.database.query(database, body.decode(), parameters))
        except RuntimeError as error:
            text = str(error)
            return self.answer(404 if "UNKNOWN" in text else 500, text[text.find("Code:") :].encode())

    def log_message(self, *_):
        pass


def unescape(text):
    """Values of parameters are written as in tab-separated rows."""
    kinds = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
    return re.sub(r"\\(.)", lambda found: kinds.get(found[1], found[1]), text, flags=re.DOTALL)


def main(folder, port, user="default", password=""):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    server.daemon_threads = True
    server.users = {user: password}
    server.database = Database(folder)
    print("ready", server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    os.umask(0o077)
    main(*sys.argv[1:])
