# SPDX-License-Identifier: Apache-2.0
"""Our unwinder against elfutils' libdwfl on stopped processes, and what the table of libtorch costs."""

import glob
import json
import os
import re
import time
from contextlib import ExitStack

from needs import DISTRIBUTION_TORCH, FFMPEG, GDB, NODE, PRIVILEGES, REDIS_BENCHMARK, REDIS_SERVER, SQLITE, TORCH2
from workbench import FOREVER, Failed, Missing, report_progress

NEEDS = (PRIVILEGES,)
NEEDS_OF_PARTS = (DISTRIBUTION_TORCH, TORCH2, REDIS_SERVER, REDIS_BENCHMARK, FFMPEG, NODE, SQLITE, GDB)

INTERVAL_MS = 20

NODE_LOOP = """
const zlib = require("zlib"), rows = {};
for (let i = 0; i < 200; i++) rows["k" + i] = [i, "" + i];
for (;;) {
    JSON.parse(JSON.stringify(rows));
    "abc def ghi".replace(/\\w+/g, word => word.toUpperCase());
    zlib.deflateSync(Buffer.alloc(20000, "ab"));
}
"""
SQLITE_LOOP = f"""
with recursive counter(x) as (select 1 union all select x + 1 from counter where x < {FOREVER}000)
select count(distinct printf('%d', x * 7919 % 100003)) from counter;
"""
GDB_LOOP = 'python\nwhile True: gdb.execute("info functions Dict", to_string=True)'


def start_python(bench, _):
    return bench.train(bench.debian_python(), FOREVER) + ["--every", "1"], "step"


def start_redis(bench, stack):
    socket = bench.path("redis.sock")
    server = [bench.program(REDIS_SERVER), "--port", "0", "--unixsocket", socket]
    load = [bench.program(REDIS_BENCHMARK), "-s", socket, "-l", "-q", "-P", "16"]
    load += ["-t", "set,lrange_600,zadd,mset"]
    # The server starts next; a short while after its socket is there, it listens.
    script = 'until test -S "$3"; do sleep 0.1; done; sleep 0.5; exec "$@"'
    stack.enter_context(bench.background("sh", "-c", script, "sh", *load))
    return server + ["--save", "", "--appendonly", "no"], "eady to accept connections"


def start_ffmpeg(bench, _):
    source = "testsrc2=size=640x360:rate=30"
    program = bench.program(FFMPEG)
    return [program, "-loglevel", "error", "-f", "lavfi", "-i", source, "-c:v", "mpeg4", "-f", "null", "-"], None


def start_node(bench, _):
    return [bench.program(NODE), "-e", NODE_LOOP], None


def start_sqlite(bench, _):
    return [bench.program(SQLITE), ":memory:", SQLITE_LOOP], None


def start_gdb(bench, _):
    return [bench.program(GDB), "-nx", "-q", "-batch", "-ex", GDB_LOOP, "/usr/bin/python3"], None


PROCESSES = {
    "python3 with PyTorch": start_python,
    "redis-server": start_redis,
    "ffmpeg": start_ffmpeg,
    "node": start_node,
    "sqlite3": start_sqlite,
    "gdb": start_gdb,
}


def compare(bench, name):
    stops = bench.pick(300, 40)
    with ExitStack() as stack:
        command, ready = PROCESSES[name](bench, stack)
        child = stack.enter_context(bench.background(*command, ready=ready))
        time.sleep(2 if ready else 4)
        if child.poll() is not None:
            raise Failed(f"{name} ended at once, with status {child.returncode}")
        program = bench.build / "bench" / "unwind-compare"
        done = bench.run(program, "-j", "-n", stops, "-i", INTERVAL_MS, child.pid, check=False)
    if not done.output.startswith("{") or done.status != 0:
        raise Failed(f"unwind-compare on {name}: {done.output.strip()[-300:]}")
    result = json.loads(done.output.splitlines()[0])
    del result["pid"]
    return result | {"same_share": result["same_frames"] / result["frames"] if result["frames"] else None}


def libtorch_paths(bench):
    """The largest library of PyTorch, the distribution's and PyPI's, where there is one."""
    find = "import os, torch; print(os.path.dirname(torch.__file__))"
    for name, python in (("debian", bench.debian_python), ("pypi", bench.torch2_python)):
        try:
            folder = bench.run(python(), "-W", "ignore", "-c", find).output.split()[-1]
        except Missing:
            continue
        found = glob.glob(f"{folder}/lib/libtorch_cpu.so*") or glob.glob("/usr/lib/*/libtorch_cpu.so*")
        if found:
            yield name, found[0]


COST = re.compile(r"^\s+(build|build and store|from the cache)\s+wall\s+([\d.]+) to\s+([\d.]+) ms", re.M)
TABLE = re.compile(r": (\d+) FDEs, (\d+) rows, (\d+) rules, (\d+) bytes")


def measure_table(bench, path):
    output = bench.run(bench.build / "bench" / "unwind-build", path).output
    costs = {name: (float(best), float(worst)) for name, best, worst in COST.findall(output)}
    fdes, rows, rules, table_bytes = map(int, TABLE.search(output).groups())
    return {
        "file_bytes": os.path.getsize(path),
        "fdes": fdes,
        "rows": rows,
        "table_bytes": table_bytes,
        "build_ms": costs["build"],
        "build_and_store_ms": costs["build and store"][0],
        "cached_ms": costs["from the cache"],
    }


def measure(bench):
    processes = {}
    for name in PROCESSES:
        report_progress(f"frames of {name} against libdwfl")
        try:
            processes[name] = compare(bench, name)
        except (Missing, Failed) as error:
            processes[name] = {"missing": str(error)}
            bench.leave_out(name, error)
    report_progress("unwind tables of libtorch_cpu.so")
    tables = {name: measure_table(bench, path) for name, path in libtorch_paths(bench)}
    return {"processes": processes, "tables": tables}
