# SPDX-License-Identifier: Apache-2.0
"""Containers: other PID, mount and root namespaces, seen from outside and from inside."""

import os
import shutil
import subprocess
import time

import pytest

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="making namespaces needs root"),
]

CONTAINER = ["unshare", "--pid", "--mount", "--fork", "--mount-proc"]
# A /tmp of its own: a perf map there is found only through the process's root, by its inner pid.
OWN_TMP = 'mount -t tmpfs none /tmp && exec "$0" "$@"'


@pytest.fixture(autouse=True)
def namespaces():
    if subprocess.run([*CONTAINER, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")


@pytest.fixture
def outside_tmp(workload_directory, tmp_path):
    """A folder that a container with its own /tmp sees, too."""
    if not str(workload_directory).startswith("/tmp/"):
        yield workload_directory
        return
    folder = f"/var/tmp/sonde-e2e-{os.getpid()}"
    shutil.copytree(workload_directory, folder, ignore=shutil.ignore_patterns("*.p"))
    yield folder
    shutil.rmtree(folder)


def functions(data):
    return {row["name"] for row in data["tables"]["function"]["rows"]}


def descendant(pid, name, timeout=10):
    """The pid, in our namespace, of the first descendant with this comm."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        queue = [pid]
        while queue:
            current = queue.pop()
            try:
                if open(f"/proc/{current}/comm").read().strip() == name:
                    return current
                queue += map(int, open(f"/proc/{current}/task/{current}/children").read().split())
            except FileNotFoundError:
                continue
        time.sleep(0.05)
    raise AssertionError(f"{pid} has no descendant {name}")


@pytest.mark.parametrize("mode", ["bpf", "user"])
def test_outside_records_a_container(sonde, report, outside_tmp, tmp_path, mode):
    capture = tmp_path / "outside.pftrace"
    command = [*CONTAINER, "sh", "-c", OWN_TMP, f"{outside_tmp}/jit", "2"]
    sonde("record", "--mode", mode, "-F", 499, "-o", capture, "--", *command, check=0)
    data = report(capture)
    assert data["completeness"]["complete_share"] > 0.95
    assert {"main", "jit_inner", "jit_outer"} <= functions(data)
    assert "jit" in {row["name"] for row in data["tables"]["process"]["rows"]}


def test_outside_attaches_to_a_container(sonde, report, outside_tmp, tmp_path):
    container = subprocess.Popen([*CONTAINER, "sh", "-c", OWN_TMP, f"{outside_tmp}/jit", "20"], stdout=subprocess.PIPE)
    try:
        assert container.stdout.readline().startswith(b"ready")
        pid = descendant(container.pid, "jit")
        capture = tmp_path / "attached.pftrace"
        sonde("record", "-F", 499, "-d", 1, "-o", capture, "-p", pid, check=0)
        data = report(capture)
        assert {row["pid"] for row in data["tables"]["process"]["rows"]} == {pid}
        assert {"main", "jit_inner", "jit_outer"} <= functions(data)
    finally:
        subprocess.run(["kill", "-KILL", str(pid)])
        container.communicate()


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("mode", ["bpf", "user"])
def test_inside_a_container(sonde, report, workload, tmp_path, mode, depth):
    capture = tmp_path / "inside.pftrace"
    script = f"{' '.join(workload('jit', 1))}; {' '.join(workload('spin', 1))}"
    done = sonde(
        "record", "--mode", mode, "-F", 499, "-o", capture, "--", "sh", "-c", script, prefix=CONTAINER * depth, check=0
    )
    data = report(capture)
    assert {"spin_half", "jit_inner", "jit_outer"} <= functions(data)
    assert data["completeness"]["complete_share"] > 0.95
    inner_pids = {int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("ready")}
    assert inner_pids <= {row["pid"] for row in data["tables"]["process"]["rows"]}


def test_all_inside_a_container_is_the_container(sonde, report, workload, start_workload, tmp_path):
    """What runs outside is not visible there, and so not recorded."""
    start_workload("syscalls", 60)
    capture = tmp_path / "all.pftrace"
    script = f'{" ".join(workload("spin", 60))} & "$0" record -q -a -d 3 -F 999 -o {capture}; kill $!'
    subprocess.run([*CONTAINER, "sh", "-c", script, sonde.path], env=sonde.environment, check=True)
    names = {row["name"] for row in report(capture)["tables"]["process"]["rows"]}
    assert "spin" in names and "syscalls" not in names


def test_proc_of_another_namespace_is_refused(sonde, tmp_path):
    done = sonde(
        "record", "-o", tmp_path / "x.pftrace", "--", "true", prefix=["unshare", "--pid", "--fork"], check=1
    )
    assert len(done.stderr.strip().splitlines()) == 1
    assert "/proc" in done.stderr


def split_debug(program, stripped, debug):
    """Names and lines go to `debug`, found by .gnu_debuglink only, as there is no build-id."""
    subprocess.run(["objcopy", "--only-keep-debug", "--remove-section=.note.gnu.build-id", program, debug], check=True)
    options = ["--strip-all", "--remove-section=.note.gnu.build-id", f"--add-gnu-debuglink={debug}"]
    subprocess.run(["objcopy", *options, program, stripped], check=True)


@pytest.mark.parametrize("place", ["here", "container"])
def test_debug_files_by_their_link(sonde, report, workload, tmp_path, place):
    """Also those that only the container sees, and only while it lives."""
    (tmp_path / "parts" / ".debug").mkdir(parents=True)
    split_debug(workload("spin")[0], tmp_path / "parts" / "spin", tmp_path / "parts" / ".debug" / "spin.debug")
    capture = tmp_path / "link.pftrace"
    if place == "here":
        command = [tmp_path / "parts" / "spin", "1"]
    else:
        parts = tmp_path / "parts"
        script = f'mount -t tmpfs none /mnt && cp -r "{parts}/." /mnt && rm -r "{parts}" && /mnt/spin 1'
        command = [*CONTAINER, "sh", "-c", script]
    sonde("record", "-F", 499, "-o", capture, "--", *command, check=0)
    data = report(capture, "--by", "line")
    assert "spin_half" in functions(report(capture))
    assert any("/spin.c" in (row["source_file"] or "") for row in data["tables"]["line"]["rows"])
