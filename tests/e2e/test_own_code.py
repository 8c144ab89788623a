# SPDX-License-Identifier: Apache-2.0
"""Which of my lines: what is charged to the user's own code, in programs that nobody here wrote it for."""

import os
import re
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="Python frames and waiting come by BPF, which needs root")

PYTHON = "/usr/bin/python3"


@pytest.fixture
def recorded(sonde, tmp_path):
    """recorded(source, *arguments, options) -> the report as JSON, and as text"""

    def run(source, *arguments, options=()):
        (tmp_path / "mine.py").write_text(textwrap.dedent(source))
        capture = tmp_path / "mine.pftrace"
        sonde("record", *options, "-o", capture, "--", PYTHON, tmp_path / "mine.py", *arguments, check=0)
        text = sonde("report", capture, env={"COLUMNS": "200"}, check=0).stdout
        return sonde("report", "--json", capture, check=0).json(), text

    return run


def line_of(source, text):
    """The number of the line that has this text."""
    return next(i for i, line in enumerate(textwrap.dedent(source).splitlines(), 1) if text in line)


GENERATED = """
    import collections, dataclasses, time

    @dataclasses.dataclass
    class Point:
        x: float
        y: float

    Pair = collections.namedtuple("Pair", "a b")

    def make():
        for i in range(1000):
            [Point(i, i) for _ in range(4)]  # here
            Pair(i, i)

    while time.process_time() < 1:
        make()
"""


def test_generated_code_is_nobodys_line(recorded):
    data, text = recorded(GENERATED)
    files = {row["source_file"] for row in data["own_code"]["lines"]["rows"]}
    assert len(files) == 1 and files.pop().endswith("/mine.py")
    assert any(row["source_file"] == "<string>" for row in data["tables"]["line"]["rows"]), "it ran"
    first = data["own_code"]["lines"]["rows"][0]
    assert first["line"] == line_of(GENERATED, "# here") and first["source"] == "[Point(i, i) for _ in range(4)]  # here"
    by_function = {}
    for row in data["own_code"]["lines"]["rows"]:
        by_function[row["function"]] = by_function.get(row["function"], 0) + row["self_samples"]
    functions = data["own_code"]["functions"]["rows"]
    assert {row["function"]: row["self_samples"] for row in functions} == by_function
    assert functions[0]["function"].startswith("make")
    assert re.search(r"mine\.py:%d  +make\S*  +\[Point\(i, i\) .*# here$" % first["line"], text, re.M)
    assert "Your functions" in text


def test_the_text_of_a_command_is_mine(sonde, tmp_path):
    capture = tmp_path / "text.pftrace"
    sonde("record", "-o", capture, "--", PYTHON, "-c", "import time\nwhile time.process_time() < 0.5: pass", check=0)
    rows = sonde("report", "--json", capture, check=0).json()["own_code"]["lines"]["rows"]
    assert (rows[0]["source_file"], rows[0]["line"], rows[0]["source"]) == ("<string>", 2, None)


POOL = """
    import concurrent.futures, time

    pool = concurrent.futures.ThreadPoolExecutor(16)
    for done in [pool.submit(time.sleep, 0.01) for _ in range(64)]:
        done.result()
    time.sleep(2)  # straggles
"""


@pytest.mark.parametrize("how", ["sample", "exact"])
def test_waiting_of_a_pool_is_one_line(recorded, how):
    data, text = recorded(POOL, options=["--wait", how])
    waiting = data["waiting"]
    own = [row for row in waiting["rows"] if not row["background"] and row["stack_taken"]]
    assert (own[0]["line"], own[0]["reason"]) == (line_of(POOL, "# straggles"), "sleep")
    assert own[0]["time_ns"] < waiting["background_time_ns"] < waiting["time_ns"]
    assert 10 <= waiting["background_threads"] <= 16
    table = text[text.index("\nWaiting (") :].splitlines()
    assert any(f"mine.py:{own[0]['line']}" in line for line in table[3:8]), "in the first five rows"
    assert re.search(r"^… .* more without your code in the stack, by 1\d threads of libraries", "\n".join(table), re.M)


FORKED = """
    import multiprocessing, time

    queue = multiprocessing.Queue()
    worker = multiprocessing.get_context("fork").Process(target=queue.get)
    worker.start()  # forks
    time.sleep(1.5)
    queue.put(1)
    worker.join()
"""


def test_a_forked_worker_waits_for_itself(recorded):
    data, _ = recorded(FORKED)
    forked_in = line_of(FORKED, "# forks")
    rows = data["waiting"]["rows"]
    assert sum(row["time_ns"] for row in rows if row["line"] == forked_in) < 0.5e9
    queue = [row for row in rows if row["background"] and row["time_ns"] > 1e9]
    assert len(queue) == 1 and queue[0]["source_file"].split("/")[-2] == "multiprocessing"


def test_processes_of_a_build_are_one_row(sonde, tmp_path):
    capture = tmp_path / "build.pftrace"
    # Each takes some milliseconds of CPU time, ten periods or more: all of them have samples.
    compiler = "awk 'BEGIN { for (i = 0; i < 400000; i++) s += i }'"
    sonde("record", "-F", "2999", "-o", capture, "--", "sh", "-c", f"for i in $(seq 40); do {compiler}; done", check=0)
    data = sonde("report", "--json", capture, check=0).json()
    each = [row for row in data["tables"]["process"]["rows"] if row["name"] == "awk"]
    groups = [row for row in data["process_groups"]["rows"] if row["name"] == "awk"]
    assert len(each) == 40 and len(groups) == 1
    assert groups[0]["processes"] == len(each)
    assert groups[0]["self_samples"] == sum(row["self_samples"] for row in each)
    text = sonde("report", "--by", "process", capture, check=0).stdout
    assert re.search(rf" {len(each)} ×  awk$", text, re.M)


@pytest.mark.alone
def test_the_whole_machine_has_sonde_apart(sonde, tmp_path):
    capture = tmp_path / "all.pftrace"
    recording = sonde.start("record", "-a", "-F", "999", "-o", capture)
    begin = time.process_time()
    while time.process_time() - begin < 1:  # until it has surely recorded, itself too
        pass
    recording.send_signal(signal.SIGINT)
    recording.communicate(timeout=60)
    data = sonde("report", "--json", capture, check=0).json()["tables"]
    modules = {row["module"] for row in data["function"]["rows"] if row["class"] == "sonde"}
    assert "sonde" in modules
    assert not [row for row in data["function"]["rows"] if row["module"] == "sonde" and row["class"] != "sonde"]
    assert re.search(r"^sonde itself: \d+\.\d\d %, .* of the above$", sonde("report", capture, check=0).stdout, re.M)


def test_why_threads_of_an_attached_process_have_no_names(sonde, tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("""
import threading, time

def spin():
    while True:
        pass

threading.Thread(target=spin, name="spins", daemon=True).start()
print("ready", flush=True)
time.sleep(600)
""")
    capture = tmp_path / "attached.pftrace"
    running = subprocess.Popen([PYTHON, script], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout.readline() == "ready\n"
        recording = sonde.start("record", "-F", "999", "-p", running.pid, "-o", capture, stderr=subprocess.PIPE)
        ticks = Path(f"/proc/{running.pid}/stat")
        while int(ticks.read_text().split()[13]) < 100:  # a second of its CPU time
            time.sleep(0.05)
        recording.send_signal(signal.SIGINT)
        recording.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
    text = sonde("report", "--by", "thread", capture, check=0).stdout
    assert " Python threads have the name of their process, because sonde attached" in " " + text.replace("\n", " ")
    threads = sonde("report", "--by", "thread", "--json", capture, check=0).json()["tables"]["thread"]
    assert threads["names_missing"].startswith("Python threads have the name of their process, because sonde attached")


RANKS = """
    import os, sys, time
    import torch, torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    class Numbers(Dataset):
        def __len__(self):
            return 100000

        def __getitem__(self, index):
            return torch.full((64,), float(index))

    def rank(number):
        dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=number, world_size=2)
        model = torch.nn.Linear(64, 64)
        loader = DataLoader(Numbers(), batch_size=8, num_workers=2)
        for step, batch in enumerate(loader):  # loads
            (model(batch) ** 2).mean().backward()
            dist.all_reduce(model.weight.grad)
            if number == 1:
                time.sleep(0.1)  # straggles
            if step == 30:
                break
        dist.destroy_process_group()

    child = os.fork()
    rank(1 if child else 0)
    if child:
        os.waitpid(child, 0)
"""


@pytest.mark.slow
def test_a_straggler_among_two_ranks(recorded, tmp_path):
    data, text = recorded(RANKS, tmp_path / "store")
    table = text[text.index("\nWaiting (") :].splitlines()
    assert any(f"mine.py:{line_of(RANKS, '# straggles')}" in line for line in table[3:8]), text
    waited = {row["line"]: row["time_ns"] for row in data["waiting"]["rows"] if not row["background"]}
    # Its workers have nothing to do while the ranks sleep: not what the loop waited for.
    assert waited.get(line_of(RANKS, "# loads"), 0) < waited[line_of(RANKS, "# straggles")]


RANGES = """
    import sonde, time

    end = time.thread_time() + 1
    while time.thread_time() < end:
        with sonde.range("inner"):
            pass
"""


def test_frames_of_sonde_are_shown_only_when_asked_for(recorded, sonde, tmp_path):
    document, text = recorded(RANGES, options=("-F", 999))
    own = re.compile(r"libsonde-inject|_core\.abi3")
    assert not own.search(text.split("Your code")[1])
    assert "[sonde]" in {row["name"] for row in functions_of(document)}  # what the ranges themselves cost
    shown = sonde("report", "--json", "--show-interpreter", tmp_path / "mine.pftrace", check=0).json()
    assert any(own.search(row["module"] or "") for row in functions_of(shown))
    assert "sonde itself" in sonde("report", "--by", "class", tmp_path / "mine.pftrace", check=0).stdout


def functions_of(document):
    return document["tables"]["function"]["rows"]
