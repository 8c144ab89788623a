# SPDX-License-Identifier: Apache-2.0
"""Files of the recorded programs that are cut, replaced, or made to cost their reader dearly."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import hostile_elf
import pytest

PATIENCE_S = 300

SOURCE = """
__attribute__((noinline)) void work(void)
{
	static volatile unsigned sum;
	for (unsigned i = 0; i < 100000; i++)
		sum += i;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library with source lines and 50,000 symbols, which takes a while to read, and no build-id."""
    folder = tmp_path_factory.mktemp("library")
    fillers = (f".type filler_{i}, @function\nfiller_{i}: ret\n.size filler_{i}, 1\n" for i in range(50000))
    (folder / "work.c").write_text(SOURCE)
    (folder / "filler.s").write_text('.section .note.GNU-stack,"",@progbits\n.text\n' + "".join(fillers))
    subprocess.run(
        ["cc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id=none", "-o", "lib.so", "work.c", "filler.s"],
        cwd=folder,
        check=True,
    )
    return folder / "lib.so"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program with source lines that runs for half a second of CPU time."""
    folder = tmp_path_factory.mktemp("program")
    main = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2) work(); }\n"
    (folder / "program.c").write_text(SOURCE + main)
    subprocess.run(["cc", "-g", "-O1", "-o", "program", "program.c"], cwd=folder, check=True)
    return folder / "program"


def wait_until_recording(recording, capture):
    """Its account is written about once a second as soon as it runs."""
    sizes = set()
    end = time.monotonic() + PATIENCE_S
    while len(sizes) < 2 and recording.poll() is None and time.monotonic() < end:
        if capture.exists() and capture.stat().st_size:
            sizes.add(capture.stat().st_size)
        time.sleep(0.01)


def attack(sonde, workload, library, folder, rounds, how, attach):
    """Runs the attack under a recording, which must go on until it is ended, and be readable."""
    folder.mkdir()
    capture = folder.parent / f"{folder.name}.pftrace"
    cutter = subprocess.Popen(
        workload("cutter", library, folder, rounds, how),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert cutter.stdout.readline().startswith("ready")
        target = ["-p", cutter.pid] if attach else ["-a"]
        recording = sonde.start("record", "-F", 999, "-o", capture, *target)
        wait_until_recording(recording, capture)
        done, _ = cutter.communicate("go\n", timeout=PATIENCE_S)
        assert done == f"done {rounds}\n"
        if not attach:
            recording.send_signal(signal.SIGINT)
        _, errors = recording.communicate(timeout=PATIENCE_S)
    finally:
        cutter.kill()
        cutter.wait()
    assert recording.returncode == 0, errors
    assert "of stacks are complete" in errors
    return sonde("report", "--json", capture, check=0).json()["totals"]


def test_libraries_are_cut(sonde, workload, library, tmp_path):
    assert attack(sonde, workload, library, tmp_path / "copies", 10, "cut", attach=False)["samples"] > 0


def test_libraries_are_copied_over(sonde, workload, library, tmp_path):
    attack(sonde, workload, library, tmp_path / "copies", 5, "copy", attach=True)


@pytest.mark.slow
@pytest.mark.parametrize("attach", [False, True], ids=["all", "attached"])
def test_two_hundred_libraries_are_cut(sonde, workload, library, tmp_path, attach):
    for how, rounds in ("cut", 200), ("copy", 50):
        attack(sonde, workload, library, tmp_path / how, rounds, how, attach)


# A process's largest size is that of what forked it, if that was larger: sonde is forked by something small.
MEASURED = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def record(sonde, program):
    """Records it; what sonde said, and the most memory that it or a child of it had."""
    done = sonde("record", "-F", 499, "-o", "hostile.pftrace", "--", program, check=0,
                 prefix=[sys.executable, "-c", MEASURED])  # fmt: skip
    return done.stderr, int(done.stdout.splitlines()[-1]) * 1024


def functions(sonde):
    rows = sonde("report", "--json", "hostile.pftrace", check=0).json()["tables"]["function"]["rows"]
    return {row["name"] for row in rows}


def test_debug_information_that_unpacks_to_gigabytes(sonde, program, tmp_path):
    bomb = tmp_path / "bomb"
    hostile_elf.inflate_section(program, bomb, b".debug_str", 3 << 30)
    assert bomb.stat().st_size < 5 << 20
    errors, memory = record(sonde, bomb)
    assert "source lines of" in errors and "unpacks to 3072 MB" in errors
    assert memory < 300 << 20
    assert "work" in functions(sonde)


def test_many_sections_share_one_symbol_table(sonde, program, tmp_path):
    shared = tmp_path / "shared"
    hostile_elf.share_symbols(program, shared, 20000)
    start = time.monotonic()
    errors, memory = record(sonde, shared)
    assert memory < 300 << 20
    assert time.monotonic() - start < 60
    assert "work" in functions(sonde)


def wait_for(fact):
    end = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_second_interrupt_ends_finishing(sonde, tmp_path):
    """The first ends the command; reading its source lines would take all the time that there is."""
    (tmp_path / "endless.c").write_text(SOURCE + "int main(void) { for (;;) work(); }\n")
    subprocess.run(["cc", "-g", "-O1", "-o", tmp_path / "sound", tmp_path / "endless.c"], check=True)
    hostile_elf.add_blocks(tmp_path / "sound", tmp_path / "endless", 32 << 20)
    recording = sonde.start("record", "-F", 499, "-o", "hostile.pftrace", "--", tmp_path / "endless")

    def children():
        try:
            pids = Path(f"/proc/{recording.pid}/task/{recording.pid}/children").read_text().split()
            return {Path(f"/proc/{pid}/comm").read_text().strip(): pid for pid in pids}
        except (FileNotFoundError, ProcessLookupError):
            return {}  # one has ended meanwhile

    wait_for(lambda: "endless" in children())
    ticks = Path(f"/proc/{children()['endless']}/stat")
    wait_for(lambda: int(ticks.read_text().split()[13]) >= 20)  # 0.2 s of its CPU time
    recording.send_signal(signal.SIGINT)
    wait_for(lambda: list(children()) == ["sonde"])  # which reads source lines
    recording.send_signal(signal.SIGINT)
    _, errors = recording.communicate(timeout=PATIENCE_S)
    assert recording.returncode == 128 + signal.SIGINT, "the command's"
    assert "no source lines: reading debug information was stopped by Ctrl-C" in errors
    assert "work" in functions(sonde)
