# SPDX-License-Identifier: Apache-2.0
"""What the figures were measured on, without the machine's name."""

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

from workbench import ROOT


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.splitlines()[0].strip()
    except (OSError, IndexError):
        return None


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def is_virtual():
    return any(" hypervisor" in line for line in Path("/proc/cpuinfo").read_text().splitlines())


def distribution():
    release = platform.freedesktop_os_release() if hasattr(platform, "freedesktop_os_release") else {}
    return release.get("PRETTY_NAME", "unknown")


def describe(bench):
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": processor(),
        "virtual": is_virtual(),
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release().split("-")[0],
        "distribution": distribution(),
        "sonde": first_line(bench.sonde, "version"),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "perf": first_line("perf", "--version") if shutil.which("perf") else None,
    }
