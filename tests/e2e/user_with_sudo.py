# SPDX-License-Identifier: Apache-2.0
"""An ordinary user of a machine with sudo: in a mount namespace that has tables of users of its own, so that the machine's stay as
they are. The user is Ann, who may run everything as root, with Debian's settings of sudo; her home and root's are folders of the test."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

UID = 4711
SUDOERS = """Defaults env_reset
Defaults use_pty
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
root ALL=(ALL:ALL) ALL
ann ALL=(ALL:ALL) NOPASSWD: ALL
"""
# $1: the folder of the tables, of /home and of /root; then the command.
ENTER = """
mount --make-rprivate /
for table in passwd group shadow sudoers; do mount --bind "$1/$table" /etc/$table; done
mount --bind "$1/home" /home
mount --bind "$1/root" /root
mkdir -p /run/sudo && mount -t tmpfs none /run/sudo
cd /home/ann
shift
exec setpriv --reuid ann --regid ann --init-groups "$@"
"""


class Ann:
    def __init__(self, folder, program):
        self.folder, self.home, self.root = folder, folder / "home" / "ann", folder / "root"
        for place in (self.home, self.root):
            place.mkdir(parents=True)
        self.root.chmod(0o700)
        os.chown(self.home, UID, UID)
        self.add_tables()
        (self.home / ".local" / "bin").mkdir(parents=True)
        for file in (program, program.parent / "src" / "inject" / "libsonde-inject.so"):
            shutil.copy(file, self.home / ".local" / "bin")
        for entry in self.home.rglob("*"):
            os.chown(entry, UID, UID)

    def add_tables(self):
        lines = {
            "passwd": f"ann:x:{UID}:{UID}::/home/ann:/bin/bash\n",
            "group": f"ann:x:{UID}:\nteam:x:{UID + 1}:ann\n",
            "shadow": "ann:*:19000:0:99999:7:::\n",
        }
        for name, line in lines.items():
            (self.folder / name).write_text(Path("/etc", name).read_text() + line)
            shutil.copymode(f"/etc/{name}", self.folder / name)
        (self.folder / "sudoers").write_text(SUDOERS)
        (self.folder / "sudoers").chmod(0o440)

    def __call__(self, script, check=0, env=None, timeout=300):
        """Runs a script of bash in her home, as she would type it; returns what subprocess.run() does."""
        environment = {
            "HOME": "/home/ann",
            "USER": "ann",
            "LOGNAME": "ann",
            "SHELL": "/bin/bash",
            "LC_ALL": "C.UTF-8",
            "PATH": "/home/ann/.local/bin:/usr/local/bin:/usr/bin:/bin",
            **(env or {}),
        }
        command = ["unshare", "--mount", "sh", "-ec", ENTER, "sh", self.folder, "bash", "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        assert check is None or done.returncode == check, f"{script}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        return done

    def not_hers(self):
        """What lies in her home and is somebody else's."""
        return [str(path) for path in self.home.rglob("*") if (path.lstat().st_uid, path.lstat().st_gid) != (UID, UID)]


@pytest.fixture
def ann(sonde_path, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("making a user needs root")
    if not shutil.which("sudo"):
        pytest.fail("sudo is needed: tools/deps test installs it")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")
    return Ann(tmp_path / "machine", sonde_path)
