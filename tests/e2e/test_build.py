# SPDX-License-Identifier: Apache-2.0
"""What a person types in a checkout: make, with tools/deps, where things are missing.

apt, dpkg and sudo are stand-ins, in a folder that is all of PATH.
"""

import os
import pty
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import ROOT

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="being another user, or hiding files, needs root")

STAND_INS = {
    "dpkg-query": """
for word; do case $word in
-*) ;;
*) /bin/grep "^$word:" $STATE/installed || status=1 ;;
esac; done
exit ${status:-0}""",
    "apt-get": """
echo "apt-get $*" >>$STATE/log
case " $* " in
*" update "*) : >$STATE/lists ;;
*" install "*)
	[ -e $STATE/lists ] || { echo "E: Unable to locate package $6"; exit 100; }
	for word; do case $word in -*|*=*|install) ;; *) echo "$word:installed:1.0" >>$STATE/installed ;; esac; done ;;
esac""",
    "apt-cache": "[ -e $STATE/lists ]",
    "sudo": """
echo "sudo $*" >>$STATE/log
[ "$1" != -n ] || { shift; [ -e $STATE/no-password ] || { echo "sudo: a password is required" >&2; exit 1; }; }
exec "$@" """,
    # What would write below /usr.
    "sh": "true",
    "rm": "true",
    "pkg-config": "true",
    "bpftool": "true",
    "meson": "echo 1.0.1",
}
REAL = ("bash", "env", "sort", "head", "dirname", "cat", "setpriv", "true")


class Checkout:
    """A folder with the tools, on a machine that is made of stand-ins."""

    def __init__(self, folder):
        self.folder, self.bin = folder, folder / "bin"
        for name in ("bin", "tools"):
            (folder / name).mkdir()
        for name in ("deps", "find-bpftool"):
            shutil.copy(ROOT / "tools" / name, folder / "tools")
        for name, text in STAND_INS.items():
            self.stand_in(name, text)
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("log", "installed"):
            (folder / name).touch()
            (folder / name).chmod(0o666)
        folder.chmod(0o777)
        self.environment = {"PATH": str(self.bin), "STATE": str(folder), "LC_ALL": "C.UTF-8"}

    def stand_in(self, name, text):
        path = self.bin / name if "/" not in name else self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def remove(self, *names):
        for name in names:
            (self.bin / name).unlink()

    def log(self):
        return (self.folder / "log").read_text().splitlines()

    def installed(self):
        return {line.split(":")[0] for line in (self.folder / "installed").read_text().splitlines()}

    def install(self, *groups):
        """By tools/deps itself, as root on a machine that has lists of packages."""
        (self.folder / "lists").touch()
        assert self("tools/deps", *groups).returncode == 0
        (self.folder / "log").write_text("")

    def line(self, *words):
        return [shutil.which(words[0], path=f"{self.folder}:{self.bin}"), *words[1:]]

    def __call__(self, *command, prefix=()):
        return subprocess.run(self.line(*prefix, *command), cwd=self.folder, env=self.environment, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def on_terminal(self, *command, prefix=(), answer):
        """The same on a terminal of its own. Returns what it showed, and the exit status."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            words = self.line(*prefix, *command)
            os.execve(words[0], words, self.environment)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the other side was closed
                break
            if not part:
                break
            shown += part
            if answer is not None and b"[Y/n]" in shown:
                os.write(terminal, answer)
                answer = None
        os.close(terminal)
        return shown.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def checkout():
    # Not below tmp_path, which is of its user alone.
    folder = Path(tempfile.mkdtemp(prefix="sonde-checkout-"))
    yield Checkout(folder)
    shutil.rmtree(folder)


# ---- tools/deps ----


def test_a_fresh_machine_gets_all_at_once(checkout):
    """Lists of packages come first: they say which of them there are. What depends on another package is not for next time."""
    done = checkout("tools/deps", "test")
    assert done.returncode == 0, done.stdout
    updates, installs = ([line for line in checkout.log() if f" {word} " in f"{line} "] for word in ("update", "install"))
    assert len(updates) == len(installs) == 1 and checkout.log()[0] == updates[0]
    assert {"clang", "libclang-rt-dev", "opencl-headers", "python3-torch"} <= checkout.installed()
    assert "tools/deps: missing for test, " in done.stdout
    (checkout.folder / "log").write_text("")
    done = checkout("tools/deps", "test")
    assert (done.returncode, done.stdout, checkout.log()) == (0, "", [])


@needs_root
def test_sudo_without_a_password_installs(checkout, unprivileged):
    (checkout.folder / "no-password").touch()
    done = checkout("tools/deps", "demo", prefix=unprivileged)
    assert done.returncode == 0, done.stdout
    assert checkout.log()[0] == "sudo -n true" and "python3-torch" in checkout.installed()


@needs_root
@pytest.mark.parametrize("has_sudo", [True, False])
def test_who_may_not_install_gets_the_command(checkout, unprivileged, has_sudo):
    checkout.install("build")
    (checkout.folder / "installed").write_text("\n".join(
        line for line in (checkout.folder / "installed").read_text().splitlines() if not re.match("clang|meson", line)) + "\n")
    if not has_sudo:
        checkout.remove("sudo")
    done = checkout("tools/deps", "build", prefix=unprivileged)
    assert done.returncode == 1
    how = "sudo " if has_sudo else "as root: "
    assert done.stdout.endswith(f"    {how}apt-get install --no-install-recommends clang meson\n")
    assert not any("apt-get" in line for line in checkout.log())


@needs_root
@pytest.mark.parametrize("by_root", [True, False])
@pytest.mark.parametrize("answer, installs", [(b"\n", True), (b"y\n", True), (b"YES\n", True), (b"n\n", False), (b"what\n", False), (b"\4", False)])
def test_it_asks_on_a_terminal(checkout, unprivileged, by_root, answer, installs):
    prefix = [] if by_root else unprivileged
    shown, status = checkout.on_terminal("tools/deps", "build", prefix=prefix, answer=answer)
    assert f"Install them, and what they need, with {'' if by_root else 'sudo '}apt-get? [Y/n]" in shown
    assert ("meson" in checkout.installed(), status) == (installs, 0 if installs else 1), shown
    if not installs:
        assert checkout.log() == []
        assert re.search(rf"\n    {'' if by_root else 'sudo '}apt-get install --no-install-recommends bpftool clang .*\n$", shown)


BUILD_TOOLS = ("clang", "gcc", "git", "ninja", "protoc", "protoc-c", "python3")


def test_without_dpkg_the_build_goes_on_where_it_can(checkout):
    checkout.remove("dpkg-query")
    done = checkout("tools/deps", "build")
    assert done.returncode == 1
    assert f"this system has no dpkg, and these are missing: {' '.join(BUILD_TOOLS)}. Debian has" in done.stdout
    for name in BUILD_TOOLS:
        checkout.stand_in(name, "true")
    done = checkout("tools/deps", "build")
    assert (done.returncode, done.stdout) == (0, "")
    done = checkout("tools/deps", "demo")
    assert done.returncode == 0 and "needed for demo: " in done.stdout and "libelf-dev" in done.stdout
    checkout.stand_in("pkg-config", '[ "$2" != libelf ]')
    done = checkout("tools/deps", "build")
    assert done.returncode == 1 and "these are missing: libelf." in done.stdout
