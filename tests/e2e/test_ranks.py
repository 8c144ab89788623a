# SPDX-License-Identifier: Apache-2.0
"""Distributed jobs: which rank a process is, and which rank is slow."""

import json
import os
import shutil
import subprocess
import time

import pytest
from perfetto_packets import Trace
from test_continuous import wait_for

# Each rank does as much in each step, but rank 1, which does three times as much.
PROGRAM = """
import os, sys, time
import sonde

rank = int(os.environ.get("RANK", -1))
if rank < 0:
    children = []
    for i in range(3):
        environment = {**os.environ, "RANK": str(i), "WORLD_SIZE": "3"}
        children.append(os.spawnve(os.P_NOWAIT, sys.executable, [sys.executable, __file__], environment))
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    print(*children)
else:
    for step in range(6):
        with sonde.range("forward"):
            until = time.thread_time() + (0.06 if rank == 1 else 0.02)
            while time.thread_time() < until:
                pass
        sonde.step("train")
"""

# Two ranks of PyTorch over gloo; rank 1 computes longer before each collective, for which rank 0 waits.
GLOO = """
import os, sys, time
import sonde

if "RANK" not in os.environ:
    children = []
    for i in range(2):
        environment = {**os.environ, "RANK": str(i), "WORLD_SIZE": "2"}
        children.append(os.spawnve(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv], environment))
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    sys.exit()

import torch
import torch.distributed as distributed

torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(os.environ["RANK"]), world_size=2)
rank = distributed.get_rank()
x = torch.randn(64, 64)
for step in range(6):
    with sonde.range("compute"):
        until = time.thread_time() + (0.08 if rank == 1 else 0.02)
        while time.thread_time() < until:
            y = x @ x
    with sonde.range("all_reduce"):
        distributed.all_reduce(y)
    sonde.step("train")
distributed.destroy_process_group()
"""


@pytest.fixture
def record(sonde, sonde_path, tmp_path):

    def run(text, *arguments):
        program, capture = tmp_path / "program.py", tmp_path / "ranks.pftrace"
        program.write_text(text)
        done = sonde("record", "-F", 499, "-o", capture, "--", "/usr/bin/python3", program, *arguments, check=0,
                     env={"PYTHONPATH": str(sonde_path.parent / "python")})
        return capture, done

    return run


def test_ranks_of_processes(record, sonde, report):
    capture, done = record(PROGRAM)
    pids = list(map(int, done.stdout.split()))
    data = report(capture)
    ranks = {row["pid"]: row["rank"] for row in data["tables"]["process"]["rows"]}
    assert {pid: ranks[pid] for pid in pids} == {pids[0]: 0, pids[1]: 1, pids[2]: 2}
    by_rank = {row["rank"]: row["self_time_ns"] for row in data["tables"]["rank"]["rows"]}
    assert by_rank[1] > by_rank[0] and by_rank[1] > by_rank[2]
    steps = {row["rank"]: row for row in data["steps"]["rows"]}
    assert set(steps) == {0, 1, 2} and {row["rank"] for row in data["steps"]["slowest"]} == {0, 1, 2}
    rows = {(row["kind"], row["name"]): row for row in data["ranks"]["rows"]}
    for row in (rows["step", "train"], rows["range", "forward"]):
        assert row["slowest_rank"] == 1 and row["spread_ns"] > 0
        assert [one["rank"] for one in row["ranks"]] == [0, 1, 2]
        cpu = [one["cpu_time_ns"] for one in row["ranks"]]
        assert cpu[1] > cpu[0] and cpu[1] > cpu[2] and row["difference"] in ("CPU time", "waiting")
    out = sonde("report", capture, check=0).stdout
    assert "\nSteps\n" in out and "\nRanks: the slowest and the fastest\n" in out, out
    out = sonde("report", "--by", "rank", capture, check=0).stdout
    assert "[no rank]" in out and "step" in out and "range" in out, out


def test_without_ranks_none_is_shown(record, sonde, report):
    capture, _ = record(PROGRAM.replace('"RANK": str(i)', '"SOME": str(i)').replace('get("RANK", -1)', 'get("SOME", -1)'))
    data = report(capture)
    assert data["ranks"] is None and {row["rank"] for row in data["tables"]["process"]["rows"]} == {None}
    assert "Rank" not in sonde("report", capture, check=0).stdout


def test_a_slow_rank_of_gloo(record, sonde, report, tmp_path):
    capture, _ = record(GLOO, tmp_path / "store")
    rows = {(row["kind"], row["name"]): row for row in report(capture)["ranks"]["rows"]}
    assert rows["range", "compute"]["slowest_rank"] == 1
    assert rows["range", "all_reduce"]["slowest_rank"] == 0  # it waits for the other
    slow, fast = rows["range", "compute"]["ranks"][1], rows["range", "compute"]["ranks"][0]
    assert slow["cpu_time_ns"] > fast["cpu_time_ns"]
    waiting, late = rows["range", "all_reduce"]["ranks"]
    assert waiting["wait_time_ns"] > late["wait_time_ns"]
    assert "compute" in sonde("report", "--by", "rank", capture, check=0).stdout


RANK = """
import os, time
import sonde

for step in range(4):
    with sonde.range("forward"):
        time.sleep(0.05 if os.environ["RANK"] == "1" else 0.01)
    sonde.step("train")
"""


@pytest.fixture
def record_ranks(sonde, sonde_path, tmp_path):
    """record_ranks(program, count) -> their captures: one a rank, as each node of a cluster writes it."""

    def record(text, count):
        program = tmp_path / "rank.py"
        program.write_text(text)
        for rank in range(count):
            env = {"PYTHONPATH": str(sonde_path.parent / "python"), "RANK": str(rank), "WORLD_SIZE": str(count)}
            sonde("record", "-F", 999, "-o", tmp_path / "run" / "%r.pftrace", "--", "/usr/bin/python3", program, env=env, check=0)
        return [tmp_path / "run" / f"{rank}.pftrace" for rank in range(count)]

    return record


def test_several_recordings_are_a_run(sonde, record_ranks, tmp_path):
    """Samples, steps and ranges of all of them, of a folder as of its files; what each lost is said of each."""
    captures = record_ranks(RANK, 2)
    folder = captures[0].parent
    alone = [json.loads(sonde("report", "--json", capture, check=0).stdout) for capture in captures]
    for paths in ([folder], captures):
        found = json.loads(sonde("report", "--json", *paths, check=0).stdout)
        assert found["totals"]["samples"] == sum(one["totals"]["samples"] for one in alone)
        assert [(one["ranks"], one["file"], one["samples"], one["samples_lost"]) for one in found["recordings"]] == [
            (str(rank), os.fspath(capture), one["totals"]["samples"], 0)
            for rank, (capture, one) in enumerate(zip(captures, alone))
        ]
        assert {row["rank"]: row["self_time_ns"] for row in found["tables"]["rank"]["rows"] if row["rank"] is not None} == {
            rank: one["tables"]["rank"]["rows"][0]["self_time_ns"] for rank, one in enumerate(alone)
        }
        (forward,) = [row for row in found["ranks"]["rows"] if row["name"] == "forward"]
        assert (forward["slowest_rank"], forward["fastest_rank"]) == (1, 0)
        assert [rank["count"] for rank in forward["ranks"]] == [4, 4]
    assert alone[0]["recordings"] is None
    assert "Recordings of this run" in sonde("report", folder, check=0).stdout


def test_a_run_is_exported_and_compared(sonde, record_ranks):
    captures = record_ranks(RANK, 2)
    folder = captures[0].parent
    stacks = [sonde("export", "-f", "folded", "-o", "-", *paths, check=0).stdout.splitlines()
              for paths in ([captures[0]], [captures[1]], captures, [folder])]

    def count(lines):
        return sum(int(line.rpartition(" ")[2]) for line in lines)

    assert count(stacks[0]) + count(stacks[1]) == count(stacks[2]) == count(stacks[3])
    assert "Nothing changed" in sonde("diff", "--by", "work", folder, folder, check=0).stdout
    found = json.loads(sonde("diff", "--json", folder, captures[1], check=0).stdout)["samples"]
    assert (found["before"]["samples"], found["after"]["samples"]) == (count(stacks[2]), count(stacks[1]))
    found = json.loads(sonde("diff", "--json", folder, captures[1], check=0).stdout)


def test_the_rank_in_a_name_is_the_launchers(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "%r.pftrace", "--", "true")
    assert done.status == 2 and "SLURM_PROCID" in done.stderr, done
    sonde("record", "-o", tmp_path / "new" / "%r-%p.pftrace", "--", "true", env={"PMI_RANK": "7"}, check=0)
    (capture,) = (tmp_path / "new").iterdir()
    assert capture.name.startswith("7-")


def test_a_run_is_merged_into_one_file(sonde, record_ranks, tmp_path):
    """The file says what the captures do, and Perfetto finds no fault with it."""
    captures = record_ranks(RANK, 2)
    merged = tmp_path / "merged.pftrace"
    sonde("merge", "-o", merged, captures[0].parent, check=0)
    found, expected = (json.loads(sonde("report", "--json", path, check=0).stdout) for path in (merged, captures[0].parent))
    for data in (found, expected):
        assert data["capture"].pop("recordings") == 2
        data.pop("capture")
    assert found == expected
    trace = Trace(merged)
    assert trace.faults == [] and trace.symbols and len(trace.sequences) == 2
    done = sonde("merge", captures[0].parent)
    assert done.status == 2 and "-o" in done.stderr


def test_traces_of_ranks_are_merged_into_one_file(sonde, tmp_path):
    def kernel(name, rank, ts):
        args = {"correlation": 5, "stream": 7, "device": rank}
        return [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10 + rank, "tid": 1, "ts": ts, "dur": 1, "args": args},
                {"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": 7, "ts": ts + 5, "dur": 9, "args": args}]

    paths = []
    for rank in range(2):
        paths.append(tmp_path / f"rank{rank}.json")
        paths[-1].write_text(json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": kernel("gemm", rank, 10 + rank)}))
    merged = tmp_path / "merged.pftrace"
    sonde("merge", "-o", merged, *paths, check=0)
    trace = Trace(merged)
    assert trace.faults == [] and trace.stages == 2
    by_files, by_merged = (json.loads(sonde("report", "--json", "--by", "kernel", *given, check=0).stdout) for given in (paths, [merged]))
    assert by_files["kernel"] == by_merged["kernel"]


HOSTS = 4
SLOW_RANK = 5
ALL_REDUCES = """
import os, sys, time
import torch
import torch.distributed as distributed

torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=sys.argv[1], rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
x = torch.randn(64, 64)
distributed.barrier()
for step in range(20):
    time.sleep(0.05 if distributed.get_rank() == %d else 0.005)
    distributed.all_reduce(x)
distributed.destroy_process_group()
""" % SLOW_RANK


@pytest.fixture
def hosts():
    """Network namespaces on one bridge: host I has the address 10.99.0.(I + 1)."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")

    def ip(*words, check=True):
        return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)

    def remove():
        for host in range(HOSTS):
            ip("netns", "del", f"sonde{host}", check=False)
        ip("link", "del", "sondebr", check=False)

    remove()
    if ip("link", "add", "sondebr", "type", "bridge", check=False).returncode:
        pytest.skip("this machine makes no bridges")
    ip("link", "set", "sondebr", "up")
    for host in range(HOSTS):
        ip("netns", "add", f"sonde{host}")
        ip("link", "add", f"sondev{host}", "type", "veth", "peer", "name", "eth0", "netns", f"sonde{host}")
        ip("link", "set", f"sondev{host}", "master", "sondebr", "up")
        ip("-n", f"sonde{host}", "addr", "add", f"10.99.0.{host + 1}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            ip("-n", f"sonde{host}", "link", "set", device, "up")
    yield [f"sonde{host}" for host in range(HOSTS)]
    remove()


def varint_of(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def shift_time_of_day(sonde, capture, skew_ns):
    """A double of a host whose time of day is wrong: the one reading that its capture has of it."""
    start_ns = json.loads(sonde("report", "--json", capture, check=0).stdout)["session"]["start_unix_time_ns"]
    data = capture.read_bytes()
    assert varint_of(start_ns) in data
    capture.write_bytes(data.replace(varint_of(start_ns), varint_of(start_ns + skew_ns)))


@pytest.mark.slow
def test_gloo_over_four_hosts_whose_clocks_are_wrong(sonde, sonde_path, hosts, tmp_path):
    """Four hosts of two ranks each. All have one CLOCK_MONOTONIC in truth, so clocks that are aligned well are moved alike."""
    program, folder = tmp_path / "rank.py", tmp_path / "run"
    program.write_text(ALL_REDUCES)
    ranks = []
    for rank in range(2 * HOSTS):
        env = {**os.environ, "PYTHONPATH": str(sonde_path.parent / "python"), "RANK": str(rank), "WORLD_SIZE": str(2 * HOSTS),
               "GLOO_SOCKET_IFNAME": "eth0"}
        command = [sonde_path, "record", "-q", "--uncompressed", "-o", folder / "%h-%r.pftrace", "--", "/usr/bin/python3", program,
                   "tcp://10.99.0.1:29555"]
        host = f"node{rank // 2}"
        ranks.append(subprocess.Popen(["ip", "netns", "exec", hosts[rank // 2], "unshare", "--uts", "sh", "-c",
                                       'hostname "$0"; exec "$@"', host, *map(os.fspath, command)], env=env))
    assert [process.wait(timeout=240) for process in ranks] == [0] * len(ranks)
    skews_ns = [0, 80_000_000, -45_000_000, 700_000_000]
    for rank in range(2 * HOSTS):
        shift_time_of_day(sonde, folder / f"node{rank // 2}-{rank}.pftrace", skews_ns[rank // 2])
    found = json.loads(sonde("report", "--json", folder, check=0).stdout)
    recordings = found["recordings"]
    assert {row["clock_source"] for row in recordings} == {"collectives"}
    shifts = [row["clock_shift_ns"] for row in recordings]
    assert max(shifts) - min(shifts) <= 2 * max(row["clock_error_ns"] for row in recordings) < 45_000_000, recordings
    collectives = found["ranks"]["collectives"]
    assert collectives["ranks"][0]["rank"] == SLOW_RANK and collectives["ranks"][0]["last"] >= 18, collectives["ranks"]
    (kind,) = [kind for kind in collectives["kinds"] if kind["name"] == "all_reduce"]
    assert (kind["count"], kind["ranks"], kind["bytes"], kind["last_rank"]) == (20, 2 * HOSTS, 64 * 64 * 4, SLOW_RANK)
    assert kind["bus_bandwidth"] == pytest.approx(kind["algorithm_bandwidth"] * 2 * 7 / 8)
    assert len({row["pid"] for row in found["tables"]["process"]["rows"]}) == len(found["tables"]["process"]["rows"])
    sonde("merge", "-o", tmp_path / "merged.pftrace", folder, check=0)
    assert Trace(tmp_path / "merged.pftrace").faults == []
    assert json.loads(sonde("report", "--json", tmp_path / "merged.pftrace", check=0).stdout)["ranks"] == found["ranks"]


# What launchers set in each of two ranks.
LAUNCHERS = {
    "torchrun": [{"RANK": str(i), "WORLD_SIZE": "2", "LOCAL_RANK": str(i)} for i in range(2)],
    "Open MPI": [{"OMPI_COMM_WORLD_RANK": str(i), "OMPI_COMM_WORLD_SIZE": "2"} for i in range(2)],
    "MPICH": [{"PMI_RANK": str(i), "PMI_SIZE": "2"} for i in range(2)],
    "MVAPICH": [{"MV2_COMM_WORLD_RANK": str(i), "MV2_COMM_WORLD_SIZE": "2"} for i in range(2)],
    "PMIx": [{"PMIX_RANK": str(i)} for i in range(2)],
    "Slurm": [{"SLURM_PROCID": str(i), "SLURM_NTASKS": "2"} for i in range(2)],
}


def check_ranks(sonde, folder, count, command):
    """Each rank has a capture of its own, and a report without a name reads all of them."""
    host = os.uname().nodename
    names = [f"sonde-{host}-{rank}.pftrace" for rank in range(count)]
    assert sorted(path.name for path in folder.glob("*.pftrace")) == sorted(names)
    done = sonde("report", "--json", cwd=folder, check=0)
    assert f"reading the captures of {count} ranks, {names[0]}" in done.stderr
    assert {row["rank"] for row in done.json()["tables"]["process"]["rows"] if row["name"] == command} == set(range(count))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_have_captures_of_their_own_by_default(sonde, workload, tmp_path, launcher):
    environments = LAUNCHERS[launcher]
    started = [sonde.start("record", "--", *workload("spin", 0.5), env=environment) for environment in environments]
    for rank, process in enumerate(started):
        text = process.communicate(timeout=60)[1]
        assert process.returncode == 0, text
        assert f"next: sonde report sonde-{os.uname().nodename}-{rank}.pftrace, or of all ranks: sonde report" in text
    check_ranks(sonde, tmp_path, len(environments), "spin")


def test_mpiexec(sonde, workload, tmp_path):
    if not shutil.which("mpiexec") or "Open" not in subprocess.run(["mpiexec", "--version"], capture_output=True, text=True).stdout:
        pytest.fail("Open MPI's mpiexec is needed: tools/deps test installs it")
    command = ["mpiexec", "--oversubscribe", "-n", "4", sonde.path, "record", "-q", "--", *workload("spin", 0.5)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, env={**sonde.environment, **allowed}, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    check_ranks(sonde, tmp_path, 4, "spin")


@pytest.mark.parametrize("environment", [{"RANK": "0", "WORLD_SIZE": "1"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, {"RANK": "0"}])
def test_a_world_of_one_has_the_default_name(sonde, tmp_path, environment):
    done = sonde("record", "--", "true", env=environment, check=0)
    assert "next: sonde report sonde.pftrace" in done.stderr.splitlines()
    assert [path.name for path in tmp_path.glob("*.pftrace")] == ["sonde.pftrace"]


def record_job(sonde, folder, count):
    """Ranks that run at the same time, as those of a job do."""
    go = folder / "go"
    go.unlink(missing_ok=True)
    command = ["sh", "-c", "until [ -e go ]; do sleep 0.02; done"]
    begin = time.time()
    started = [sonde.start("record", "-q", "--", *command, env={"RANK": str(rank), "WORLD_SIZE": str(count)}) for rank in range(count)]
    names = [folder / f"sonde-{os.uname().nodename}-{rank}.pftrace" for rank in range(count)]
    wait_for(lambda: all(name.exists() and name.stat().st_mtime >= begin for name in names))
    go.touch()
    assert [process.wait(60) for process in started] == [0] * count


def test_a_report_without_a_name_is_of_what_was_recorded_last(sonde, tmp_path):
    """A capture of all, ranks, and ranks of an earlier job that had more of them: as when one measures how a program scales."""
    host = os.uname().nodename
    record_job(sonde, tmp_path, 3)
    assert f"reading the captures of 3 ranks, sonde-{host}-0.pftrace to sonde-{host}-2.pftrace" in sonde("report", check=0).stderr
    record_job(sonde, tmp_path, 2)
    assert f"reading the captures of 2 ranks, sonde-{host}-0.pftrace and sonde-{host}-1.pftrace" in sonde("report", check=0).stderr
    sonde("record", "-q", "-o", "sonde.pftrace", "--", "true", check=0)
    assert "ranks" not in sonde("report", check=0).stderr
    assert "ranks" not in sonde("export", "-f", "folded", "-o", "-", check=0).stderr
    record_job(sonde, tmp_path, 2)
    assert "reading the captures of 2 ranks" in sonde("export", "-f", "folded", "-o", "-", check=0).stderr


def test_folders_of_ranks(sonde, tmp_path):
    for rank in range(2):
        environment = {"RANK": str(rank), "WORLD_SIZE": "2"}
        sonde("record", "-q", "--continuous", "--every", "1", "-d", "1", "--", "true", env=environment, check=0)
    assert sorted(path.name for path in tmp_path.glob("sonde-windows*")) == [
        f"sonde-windows-{os.uname().nodename}-{rank}" for rank in range(2)
    ]
