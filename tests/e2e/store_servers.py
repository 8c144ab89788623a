# SPDX-License-Identifier: Apache-2.0
"""Servers of the runs database for tests and benchmarks: processes of their own on loopback, with a folder of their own."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class NoServer(Exception):
    """The text says what is missing and how to get it."""


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
        raise NoServer("no clickhouse-server here: install Debian's package of that name")
    port = free_port()
    for name in ("data", "tmp"):
        (folder / name).mkdir()
    (folder / "config.xml").write_text(CONFIGURATION.format(folder=folder, port=port, other=free_port()))
    (folder / "users.xml").write_text(USERS.format(users=USER.format(name=user, password=password)))
    headers = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
    return Server([program, f"--config-file={folder}/config.xml"], port, is_old=True, headers=headers).wait()


def start_chdb(folder, *user):
    done = subprocess.run([ROOT / "tools" / "venv", "chdb"], capture_output=True, text=True)
    if done.returncode:
        raise NoServer(done.stderr.strip())
    python = done.stdout.strip()
    port = free_port()
    server = ROOT / "tests" / "doubles" / "clickhouse" / "server.py"
    headers = dict(zip(("X-ClickHouse-User", "X-ClickHouse-Key"), user, strict=False))
    return Server([python, server, folder, str(port), *user], port, is_old=False, headers=headers).wait()


STARTERS = {"clickhouse": start_clickhouse, "chdb": start_chdb}
