# SPDX-License-Identifier: Apache-2.0
"""Roots of Debian 12 with nothing in them but what debootstrap calls minbase: for tools/release --clean and tools/first-hour."""

import re
import shutil
import subprocess
from pathlib import Path

SUITE = "bookworm"
ENTER = 'mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"; exec chroot "$0" sh -ec "$1"'


class Failed(Exception):
    """What went wrong, as a sentence."""


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command[:3]))} … ended with status {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout.strip()


def package_sources():
    """deb lines of Debian 12: this system's, where it is one."""
    layout = "$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = run("apt-get", "indextargets", "--format", layout, "Created-By: Packages").splitlines()
    ours = [line.split(" ", 2)[2] for line in listed if re.match(rf"Debian {SUITE}\S* .* main$", line)]
    return ours or [f"deb http://deb.debian.org/debian {SUITE} main"]


def make_root(root, *options):
    """Options are debootstrap's. apt is set up as on this machine, and its lists of packages are missing."""
    sources = package_sources()
    run("debootstrap", "--variant=minbase", *options, SUITE, root, sources[0].split()[1])
    (root / "etc/apt/sources.list").write_text("\n".join(sources) + "\n")
    for lists in (root / "var/lib/apt/lists").glob("*_Packages*"):
        lists.unlink()
    for name in ("apt.conf", "apt.conf.d"):
        run("sh", "-c", 'test ! -e "$0" || cp -rT "$0" "$1"', f"/etc/apt/{name}", root / "etc/apt" / name)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(Path("/etc") / name, root / "etc" / name)


def command(root, script, before="", *more):
    """Runs a shell script in a root. What is mounted goes away with the mount namespace. `before` is a script outside, which has
    the root as $0, and `more` from $2 on."""
    return ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", f"{before}\n{ENTER}", root, script, *more]
