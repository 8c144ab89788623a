# SPDX-License-Identifier: Apache-2.0
"""Runs databases of every backend, for tests that hold for all of them.

    store        sonde runs COMMAND --store ADDRESS …, once with each backend: SQLite; Debian's ClickHouse, 18.16; and
                 ClickHouse of today, chdb behind a double of its server (doubles/clickhouse/server.py)
    file_store   with SQLite only
    server_store with both servers only
"""

import contextlib
import itertools
import os
import sqlite3

import pytest
from store_servers import STARTERS, NoServer

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


def start_server(name, folder, *user):
    """What is not there is not tested."""
    try:
        return STARTERS[name](folder, *user)
    except NoServer as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def store_servers(tmp_path_factory):
    """store_servers(name) -> the one server of that kind that all tests use"""
    servers = {}

    def start(name):
        if name not in servers:
            servers[name] = start_server(name, tmp_path_factory.mktemp(name))
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
