# SPDX-License-Identifier: Apache-2.0
"""Root records while another user chooses what lies at the paths that sonde reads: docs/security.md."""

import os
import shutil
import subprocess

import pytest

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# What an attacker has: a user and mount namespace of its own, in which it may mount as it likes.
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about what root reads")


@pytest.fixture(autouse=True)
def namespaces():
    if not shutil.which("setpriv"):
        pytest.fail("setpriv (package util-linux) is needed to test as nobody")
    if subprocess.run([*NOBODY, *NAMESPACES, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let its users make namespaces")


@pytest.fixture
def open_folder():
    """A folder that everybody may enter, as /tmp is."""
    folder = f"/var/tmp/sonde-hostile-{os.getpid()}"
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


def functions(data):
    return {row["name"] for row in data["tables"]["function"]["rows"]}


def test_a_mount_over_the_perf_map_shows_no_file_of_root(sonde, report, workload, open_folder, tmp_path):
    """The user binds a file that only root may read over the path of its perf map."""
    shutil.copy(workload("jit")[0], f"{open_folder}/jit")
    secret = f"{open_folder}/secret"
    with open(secret, "w") as file:
        file.write("0 ffffffffffffffff secret_of_root\n")
    os.chmod(secret, 0o600)
    script = (
        'mount -t tmpfs none /tmp && : >"/tmp/perf-$$.map" && '
        f'mount --bind "{secret}" "/tmp/perf-$$.map" && exec "{open_folder}/jit" 1 nomap'
    )
    capture = tmp_path / "capture.pftrace"
    sonde("record", "-F", 499, "-o", capture, "--", *NOBODY, *NAMESPACES, "sh", "-c", script, check=0)
    data = report(capture)
    assert "jit" in {row["name"] for row in data["tables"]["process"]["rows"]}
    assert "main" in functions(data)
    assert "secret_of_root" not in functions(data)


@pytest.mark.parametrize("mode", ["bpf", "user"])
def test_a_growing_map_costs_nobody_else(sonde, report, workload, tmp_path, mode):
    """A sparse map of a gigabyte, which another user's process replaces all the time."""
    grow = tmp_path / "grow.py"
    grow.write_text(
        "import os, sys\n"
        "path = f'/tmp/perf-{sys.argv[1]}.map'\n"
        "size = 1 << 30\n"
        "while os.path.exists(f'/proc/{sys.argv[1]}'):\n"
        "    with open(path, 'w') as file:\n"
        "        file.write('1 1 no_such_code\\n')\n"
        "        file.truncate(size := size + 1)\n"
        "os.unlink(path)\n"
    )
    capture = tmp_path / "capture.pftrace"
    hostile = " ".join(map(str, workload("jit", 2, "nomap")))
    script = f"{hostile} & python3 {grow} $! & {' '.join(map(str, workload('jit', 2)))}; wait"
    sonde("record", "--mode", mode, "-F", 499, "-o", capture, "--", "sh", "-c", script, check=0)
    data = report(capture)
    assert {"jit_inner", "jit_outer"} <= functions(data)
    # Copies of stacks may fill their ring on a busy machine; the map used to cost half of all samples.
    assert data["losses"]["samples_lost"] <= 0.05 * data["totals"]["samples"]
    assert data["completeness"]["complete_share"] > 0.95
