# SPDX-License-Identifier: Apache-2.0
"""Advice on recordings: programs with one fault each, and healthy ones, on which there is none."""

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="waiting is recorded by BPF, which needs root")

# What a busy machine does to any program is true, and no fault of the program.
OF_THE_MACHINE = {"threads_wait_for_cpus"}
PYTHON = "/usr/bin/python3"
BLAS = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "blas" / "libblas.so.3"


@pytest.fixture
def advice(sonde, report, tmp_path):
    """advice(*command) -> {id: advice} of a recording of the command, and the report as text."""

    def run(*command, env=None):
        capture = tmp_path / "c.pftrace"
        sonde("record", "-q", "-F", "199", "-o", capture, "--", *command, check=0, env=env)
        found = [each for each in report(capture)["advice"] if each["section"] == "avoidable"]
        return {each["id"]: each for each in found}, sonde("report", capture, check=0).stdout

    return run


@pytest.fixture
def script(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


# CPU time, so that there are as many samples on a busy machine.
FOR_CPU_SECONDS = """
    import time
    def cpu_seconds(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            yield
"""


def program(text):
    return textwrap.dedent(FOR_CPU_SECONDS) + textwrap.dedent(text)


def test_a_loop_in_python(advice, script):
    path = script(program("""
        total = 0
        for _ in cpu_seconds(0.9):
            for number in range(100_000): total += number * number  # the line
    """))
    found, text = advice(PYTHON, path)
    line = path.read_text().splitlines().index(next(at for at in path.read_text().splitlines() if "# the line" in at)) + 1
    assert set(found) - OF_THE_MACHINE == {"python_loop"}
    assert f"{path}:{line}" in found["python_loop"]["sentence"]
    assert found["python_loop"]["saves_ns"] > 0.5e9 and found["python_loop"]["evidence"]["share"] > 0.5
    assert "What to change" in text and "NumPy" in text


def test_the_reference_blas(advice, script):
    assert BLAS.exists(), "tools/deps test brings libblas3, with PyTorch"
    path = script(program(f"""
        import ctypes
        blas = ctypes.CDLL("{BLAS}")
        size = ctypes.c_int(300)
        one = ctypes.c_double(1)
        a, b, c = ((ctypes.c_double * 90_000)() for _ in range(3))
        by = ctypes.byref
        for _ in cpu_seconds(0.9):
            blas.dgemm_(b"n", b"n", by(size), by(size), by(size), by(one), a, by(size), b, by(size), by(one), c, by(size))
    """))
    found, _ = advice(PYTHON, path)
    assert set(found) - OF_THE_MACHINE == {"reference_blas"}
    assert "dgemm_" in found["reference_blas"]["sentence"] and str(path) in found["reference_blas"]["sentence"]


def test_threads_that_spin(advice, workload):
    found, text = advice(*workload("openmp", 1.2), env={"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "infinite"})
    assert set(found) - OF_THE_MACHINE == {"spinning_threads"}
    assert "OMP_NUM_THREADS" in text


def test_malloc(advice, workload):
    found, _ = advice(*workload("allocations", 0.9))
    assert "allocation" in found and set(found) - OF_THE_MACHINE <= {"allocation", "page_faults"}


def test_page_faults(advice, script):
    path = script(program("""
        import ctypes, mmap
        size = 64 << 20
        for _ in cpu_seconds(0.9):
            with mmap.mmap(-1, size) as memory:
                memory.madvise(mmap.MADV_NOHUGEPAGE)
                for at in range(0, size, mmap.PAGESIZE): memory[at] = 1
    """))
    found, _ = advice(PYTHON, path)
    assert "page_faults" in found and set(found) - OF_THE_MACHINE <= {"page_faults", "python_loop"}


def test_imports(advice, script, tmp_path):
    for number in range(300):
        script("\n".join(f"def f{at}(a, b): return [a + b, {at}, {{'x': a}}]" for at in range(600)), f"many/m{number}.py")
    script("import " + ", ".join(f"m{number}" for number in range(300)), "many/__init__.py")
    path = script("import sys; sys.path.insert(0, sys.path[0] + '/many'); sys.dont_write_bytecode = True; import many")
    found, _ = advice(PYTHON, path)
    assert set(found) - OF_THE_MACHINE == {"imports"}


def test_the_interpreter_lock(advice, script):
    path = script(program("""
        import threading
        def count():
            for _ in cpu_seconds(1.5):
                a = sum(range(1000)); b = sum(range(1000)); c = sum(range(1000))
        threads = [threading.Thread(target=count) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """))
    found, _ = advice(PYTHON, path)
    assert "interpreter_lock" in found and set(found) - OF_THE_MACHINE <= {"interpreter_lock", "python_loop"}


def test_more_threads_than_cpus(advice, workload):
    many = " & ".join([" ".join(workload("spin", 1))] * (4 * os.cpu_count()))
    found, _ = advice("/bin/sh", "-c", f"{many} & wait")
    assert set(found) == {"threads_wait_for_cpus"}
    assert "threads could run, and there" in found["threads_wait_for_cpus"]["sentence"]


def test_who_holds_the_interpreter_lock(advice, script):
    """One thread that computes without a pause, and two that want a moment now and then."""
    path = script(program("""
        import threading
        ended = threading.Event()
        def hold():
            for _ in cpu_seconds(3): sum(range(10_000)); sum(range(10_000)); sum(range(10_000))
            ended.set()
        def want():
            while not ended.is_set(): time.sleep(0)
        threads = [threading.Thread(target=work, name=name) for work, name in ((hold, "holder"), (want, "a"), (want, "b"))]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """))
    found, _ = advice(PYTHON, path)
    sentence = found["interpreter_lock"]["sentence"]
    assert " held it" in sentence and "% of it while thread" in sentence
    assert found["interpreter_lock"]["docs"] == "docs/python.md"


def test_a_lock_that_is_held_for_long(advice, workload):
    """A thread that computes with a mutex of the C library, which two others want."""
    found, _ = advice(*workload("locks", 1.2))
    assert set(found) - OF_THE_MACHINE == {"lock_wait"}
    assert "(holder) ran or had no CPU" in found["lock_wait"]["sentence"] and "locks.c" in found["lock_wait"]["sentence"]
    assert found["lock_wait"]["evidence"]["threads"] >= 2


def test_threads_that_wait_for_one_anothers_lock_of_python(advice, script):
    """A convoy: each computes with the lock that all others want."""
    path = script(program("""
        import threading, zlib
        lock = threading.Lock()
        data = bytes(range(256)) * 4096
        def work():
            for _ in cpu_seconds(2.5):
                with lock:
                    zlib.compress(data)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """))
    found, _ = advice(PYTHON, path)
    sentence = found["python_lock_wait"]["sentence"]
    line = path.read_text().splitlines().index("        with lock:") + 1
    assert f"{path}:{line}" in sentence and "of 4 threads that wait for one another" in sentence
    assert found["python_lock_wait"]["evidence"]["threads"] == 4


# Threads that wait for a lock, and not for one another's work.
NO_CONVOY = {
    "idle workers of queues and pools": """
        import concurrent.futures, queue, threading, zlib
        data = bytes(range(256)) * 4096
        jobs, simple, event = queue.Queue(), queue.SimpleQueue(), threading.Event()
        def work():
            while job := jobs.get(): zlib.compress(job)
        def work_simply():
            while job := simple.get(): zlib.compress(job)
        for target in (work, work, work_simply, work_simply, event.wait):
            threading.Thread(target=target, daemon=True).start()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for count, _ in enumerate(cpu_seconds(2)):
                zlib.compress(data)
                if count % 10 == 9: jobs.put(data), simple.put(data), pool.submit(zlib.compress, data)
    """,
    "idle workers whom a lock wakes": """
        import threading, zlib
        data, signal = bytes(range(256)) * 4096, threading.Lock()
        signal.acquire()
        def work():
            while signal.acquire(): zlib.compress(data)
        for target in (work, work, work, threading.Event().wait): threading.Thread(target=target, daemon=True).start()
        for count, _ in enumerate(cpu_seconds(2.5)):
            zlib.compress(data)
            if count % 10 == 9 and signal.locked(): signal.release()
    """,
    "a lock that is held for a moment": """
        import threading, zlib
        data, lock, done = bytes(range(256)) * 4096, threading.Lock(), []
        def work():
            for _ in cpu_seconds(2):
                size = len(zlib.compress(data))
                with lock: done.append(size)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """,
}


@pytest.mark.parametrize("text", NO_CONVOY.values(), ids=NO_CONVOY.keys())
def test_idle_workers_and_short_holds_are_no_convoy(advice, script, text):
    found, _ = advice(PYTHON, script(program(text)))
    assert "python_lock_wait" not in found


def test_one_thread_where_a_library_has_more(advice, script, workload):
    library = Path(workload("spin")[0]).parent / "libopenblas_double.so"
    path = script(program(f"""
        import ctypes
        blas = ctypes.CDLL("{library}")
        blas.sonde_double_dgemm.argtypes = [ctypes.c_long]
        for _ in cpu_seconds(1.6): blas.sonde_double_dgemm(10_000_000)
    """))
    found, _ = advice(PYTHON, path)
    if OF_THE_MACHINE & set(found):
        pytest.skip("other programs want the CPUs: then more threads would not help")
    assert set(found) == ({"one_thread"} if os.cpu_count() > 1 else set())
    assert found["one_thread"]["saves_ns"] < found["one_thread"]["evidence"]["time_ns"]
    assert "OMP_NUM_THREADS" in found["one_thread"]["sentence"]


DEBUG = """
    #include <vector>
    #include <ctime>
    int main() {
        std::vector<int> numbers(200000, 3);
        long sum = 0;
        while (clock() < 1200000) for (unsigned i = 0; i < numbers.size(); i++) sum += numbers[i];
        return sum == 7;
    }
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("options, expected", [(["-O0"], {"debug_build"}), (["-O2"], set())])
def test_a_debug_build(advice, script, tmp_path, options, expected):
    subprocess.run(["g++", "-g", *options, "-o", tmp_path / "built", script(DEBUG, "built.cpp")], check=True)
    found, _ = advice(tmp_path / "built")
    assert set(found) - OF_THE_MACHINE == expected


def quota_folder(name):
    """A cgroup with a fifth of a CPU, of whichever version is there; None: none can be made."""
    for root, files in (
        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}),
        ("/sys/fs/cgroup/cpu,cpuacct", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}),
        ("/sys/fs/cgroup", {"cpu.max": "20000 100000"}),
    ):
        folder = Path(root) / name
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            for file, text in files.items():
                if not (folder / file).exists():
                    raise FileNotFoundError(file)
                (folder / file).write_text(text)
            return folder
        except OSError:
            folder.rmdir()
    return None


def test_a_quota_of_the_cgroup(sonde, report, workload, tmp_path):
    folder = quota_folder(f"sonde-test-{os.getpid()}")
    if not folder:
        pytest.skip("no cgroup with a quota can be made here")
    capture = tmp_path / "c.pftrace"
    try:
        target = subprocess.Popen(["/bin/sh", "-c", 'read go; exec "$@"', "sh", *workload("spin", 4)], stdin=subprocess.PIPE)
        (folder / "cgroup.procs").write_text(str(target.pid))
        target.stdin.write(b"\n")
        target.stdin.close()
        sonde("record", "-q", "-o", capture, "-d", "4", "-p", target.pid, check=0)
        target.kill()
        target.wait()
    finally:
        folder.rmdir()
    found = {each["id"]: each for each in report(capture)["advice"] if each["section"] == "avoidable"}
    assert set(found) == {"cpu_quota"}, "waiting for a CPU is the quota's doing"
    assert "may use 0.2 CPUs" in found["cpu_quota"]["sentence"] and found["cpu_quota"]["saves_ns"] >= 0.3e9
    names = {row["name"] for row in report(capture, "--by", "counter")["counters"]}
    assert {"cgroup CPU quota", "cgroup throttled (s)"} <= names


# Stands in for PyTorch's: the names are what sonde knows it by.
LOADER = """
    import time
    class _SingleProcessDataLoaderIter:
        def _next_data(self):
            time.sleep(0.05)
    class _MultiProcessingDataLoaderIter:
        def _get_data(self):
            time.sleep(0.05)
        def _next_data(self):
            self._get_data()
"""


@pytest.mark.parametrize("loader, expected", [("_SingleProcessDataLoaderIter", "loading_in_the_main_thread"), ("_MultiProcessingDataLoaderIter", "data_loader_too_slow")])
def test_a_slow_loader_of_data(advice, script, loader, expected):
    for package in ("torch", "torch/utils", "torch/utils/data"):
        script("", f"site-packages/{package}/__init__.py")
    script(LOADER, "site-packages/torch/utils/data/dataloader.py")
    path = script(f"""
        import sys; sys.path.insert(0, sys.path[0] + "/site-packages")
        from torch.utils.data.dataloader import {loader}
        loader = {loader}()
        for _ in range(50): loader._next_data()
    """)
    found, _ = advice(PYTHON, path)
    assert set(found) - OF_THE_MACHINE == {expected}
    assert f"{path}:5" in found[expected]["sentence"]


def test_ranks_have_their_share_each(advice, script):
    """Three processes that load for a part of the time: shares are of each one's time, not added."""
    for package in ("torch", "torch/utils", "torch/utils/data"):
        script("", f"site-packages/{package}/__init__.py")
    script(LOADER, "site-packages/torch/utils/data/dataloader.py")
    path = script("""
        import multiprocessing, sys; sys.path.insert(0, sys.path[0] + "/site-packages")
        from torch.utils.data.dataloader import _SingleProcessDataLoaderIter
        def rank():
            loader = _SingleProcessDataLoaderIter()
            for _ in range(100): loader._next_data()
        processes = [multiprocessing.get_context("fork").Process(target=rank) for _ in range(3)]
        for process in processes: process.start()
        for process in processes: process.join()
    """)
    found, _ = advice(PYTHON, path)
    evidence = found["loading_in_the_main_thread"]["evidence"]
    assert 0.2 <= evidence["share"] <= 1.01
    assert "of 3 threads together" in found["loading_in_the_main_thread"]["sentence"]


BLOCKED_LOOP = """
    import asyncio, time
    def query(): time.sleep(0.2)  # the line
    async def handle():
        for _ in range(25): query(); await asyncio.sleep(0.01)
    asyncio.run(handle())
"""


def test_a_callback_that_blocks_the_event_loop(advice, script):
    path = script(BLOCKED_LOOP)
    found, _ = advice(PYTHON, path)
    assert set(found) - OF_THE_MACHINE == {"blocked_event_loop"}
    assert f"{path}:3" in found["blocked_event_loop"]["sentence"] and "to_thread" in found["blocked_event_loop"]["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("workers, expected", [(0, "loading_in_the_main_thread"), (1, "data_loader_too_slow")])
def test_a_slow_data_set_of_pytorch(advice, script, torch2, workers, expected):
    path = script(f"""
        import time, torch
        class Slow(torch.utils.data.Dataset):
            def __len__(self): return 100
            def __getitem__(self, index):
                time.sleep(0.1)
                return index
        for batch in torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers={workers}): pass
    """)
    found, _ = advice(torch2, path)
    assert expected in found


HEALTHY = {
    "in libraries": """
        import zlib
        data = bytes(range(256)) * 4096
        for _ in cpu_seconds(0.9): zlib.compress(data)
    """,
    "spread over many lines": """
        import json
        text = json.dumps({str(number): [number] * 10 for number in range(20_000)})
        for _ in cpu_seconds(0.9): json.loads(text)
    """,
    "waiting": """
        time.sleep(1)
    """,
    "an event loop": """
        import asyncio
        async def ask():
            for _ in range(20): await asyncio.sleep(0.1)
        async def main(): await asyncio.gather(ask(), ask(), asyncio.to_thread(time.sleep, 2))
        asyncio.run(main())
    """,
    "cells of a notebook": """
        cell = "import zlib; data = bytes(range(256)) * 4096\\nfor _ in cpu_seconds(1.2): zlib.compress(data)"
        exec(compile(cell, "<ipython-input-1-1>", "exec"), {"cpu_seconds": cpu_seconds})
    """,
    "workers that multiprocessing spawns": """
        import multiprocessing, zlib
        def work(data):
            for _ in cpu_seconds(1.5): zlib.compress(data)
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool: pool.map(work, [bytes(range(256)) * 4096])
    """,
}


@pytest.mark.parametrize("text", HEALTHY.values(), ids=HEALTHY.keys())
def test_healthy_programs_of_python(advice, script, text):
    found, text = advice(PYTHON, script(program(text)))
    assert set(found) <= OF_THE_MACHINE
    assert "What to change" not in text or found


@pytest.mark.parametrize("name, more", [("spin", ()), ("threads", ()), ("deep", ()), ("waits", ()), ("locks", ("short",))])
def test_healthy_programs(advice, workload, name, more):
    found, _ = advice(*workload(name, 1, *more))
    assert set(found) <= OF_THE_MACHINE


def test_all_costs_where_they_are_asked_for(sonde, workload, report, tmp_path):
    capture = tmp_path / "c.pftrace"
    sonde("record", "-q", "-o", capture, "--", *workload("allocations", 0.5), check=0)
    (row,) = [row for row in report(capture, "--by", "avoidable")["avoidable"]["rows"] if row["id"] == "allocation"]
    assert row["of"] == "cpu_time" and 0 < row["share"] <= 1 and row["threads"] == 1
    assert "allocation" in sonde("report", "--by", "avoidable", capture, check=0).stdout
