# SPDX-License-Identifier: Apache-2.0
"""Runs databases of every backend, for tests that hold for all of them.

    store        sonde runs COMMAND --store ADDRESS …, once with each backend: SQLite; Debian's ClickHouse, 18.16; and
                 ClickHouse of today, chdb behind a double of its server (doubles/clickhouse/server.py)
    file_store   with SQLite only
    server_store with both servers only
"""

import contextlib
import functools
import itertools
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = ["tags", "figures", "rails", "power", "requests", "tokens", "layers"]
numbers = itertools.count()


class Store:
    """store("list", ...) -> sonde runs list ... of a database of the test's own; .path is its address"""

    def __init__(self, sonde, path):
        self.sonde, self.path = sonde, path

    def __call__(self, command, *arguments, check=0, **options):
        return self.sonde("runs", command, "--store", self.path, *arguments, check=check, **options)

    def runs(self, *arguments):
        return self("list", "--json", *arguments).json()["runs"]


class FileStore(Store):
    def sql(self, text):
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            return database.execute(text).fetchall()

    def update(self, number, **values):
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            columns = ", ".join(f"{column} = ?" for column in values)
            database.execute(f"UPDATE runs SET {columns} WHERE number = ?", (*values.values(), number))
            database.commit()

    def another(self):
        return FileStore(self.sonde, self.path.with_name("other.db"))


class ServerStore(Store):
    def __init__(self, sonde, server):
        self.server, self.database = server, f"test_{os.getpid()}_{next(numbers)}"
        super().__init__(sonde, f"{server.url}?database={self.database}")

    def sql(self, text):
        return self.server.query(text, self.database)

    def update(self, number, **values):
        columns = [name for (name,) in self.sql(
            f"SELECT name FROM system.columns WHERE database = '{self.database}' AND table = 'runs_rows'")]
        chosen = {**{column: column for column in columns}, "version": "version + 1",
                  **{column: repr(value) for column, value in values.items()}}
        self.server.do(f"INSERT INTO runs_rows ({', '.join(columns)}) SELECT {', '.join(chosen[c] for c in columns)} "
                       f"FROM runs_rows FINAL WHERE number = {number}", self.database)

    def another(self):
        return ServerStore(self.sonde, self.server)


class Server:
    """A process that answers on a port of loopback."""

    def __init__(self, command, port, is_old, headers=None):
        self.url, self.port = f"http://127.0.0.1:{port}/", port
        self.is_old, self.headers = is_old, headers or {}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self):
        for _ in range(600):
            with contextlib.suppress(OSError):
                self.do("SELECT 1")
                return self
            assert self.process.poll() is None, f"the server ended with status {self.process.returncode}"
            time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def do(self, sql, database="default"):
        words = {"database": database, "wait_end_of_query": 1}
        if self.is_old:
            words |= {"enable_optimize_predicate_expression": 1, "join_default_strictness": "ALL"}
        request = urllib.request.Request(f"{self.url}?{urllib.parse.urlencode(words)}", sql.encode(), self.headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{sql}: {error.read().decode()}") from error

    def query(self, sql, database="default"):
        rows = json.loads(self.do(f"{sql} FORMAT JSONCompact", database))
        kinds = [int if "Int" in column["type"] else lambda value: value for column in rows["meta"]]
        return [tuple(v if v is None else kind(v) for v, kind in zip(row, kinds, strict=True)) for row in rows["data"]]

    def end(self):
        self.process.terminate()
        self.process.wait()


def free_port():
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


CONFIGURATION = """<yandex>
<logger><level>error</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>{port}</http_port><tcp_port>{other}</tcp_port>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>
</yandex>"""
USER = """<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></{name}>"""
USERS = """<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
<users>{users}</users><quotas><default></default></quotas></yandex>"""


def start_clickhouse(folder, user="default", password=""):
    if not (program := shutil.which("clickhouse-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin")):
        pytest.skip("no clickhouse-server here: install Debian's package of that name")
    port = free_port()
    for name in ("data", "tmp"):
        (folder / name).mkdir()
    (folder / "config.xml").write_text(CONFIGURATION.format(folder=folder, port=port, other=free_port()))
    (folder / "users.xml").write_text(USERS.format(users=USER.format(name=user, password=password)))
    headers = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
    return Server([program, f"--config-file={folder}/config.xml"], port, is_old=True, headers=headers).wait()


@functools.cache
def chdb_python():
    done = subprocess.run([ROOT / "tools" / "venv", "chdb"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def start_chdb(folder, *user):
    if not (python := chdb_python()):
        pytest.skip("no chdb here, and PyPI gives none")
    port = free_port()
    server = ROOT / "tests" / "doubles" / "clickhouse" / "server.py"
    headers = dict(zip(("X-ClickHouse-User", "X-ClickHouse-Key"), user, strict=False))
    return Server([python, server, folder, str(port), *user], port, is_old=False, headers=headers).wait()


STARTERS = {"clickhouse": start_clickhouse, "chdb": start_chdb}


@pytest.fixture(scope="session")
def store_servers(tmp_path_factory):
    """store_servers(name) -> the one server of that kind that all tests use"""
    servers = {}

    def start(name):
        if name not in servers:
            servers[name] = STARTERS[name](tmp_path_factory.mktemp(name))
        return servers[name]

    yield start
    for server in servers.values():
        server.end()


@pytest.fixture(params=["sqlite", "clickhouse", "chdb"])
def store(request, sonde, tmp_path, store_servers):
    if request.param == "sqlite":
        return FileStore(sonde, tmp_path / "runs.db")
    return ServerStore(sonde, store_servers(request.param))


@pytest.fixture
def file_store(sonde, tmp_path):
    return FileStore(sonde, tmp_path / "runs.db")


@pytest.fixture(params=["clickhouse", "chdb"])
def server_store(request, sonde, store_servers):
    return ServerStore(sonde, store_servers(request.param))
