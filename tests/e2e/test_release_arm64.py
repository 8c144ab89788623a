# SPDX-License-Identifier: Apache-2.0
"""What `tools/release --machine aarch64` made: the files as of any release, and that they run under qemu-user with the Python of
Debian for arm64. `make test-arm64-release` builds both, which takes minutes, and names them:

    SONDE_ARM64_RELEASE    the folder of the release
    SONDE_ARM64_ROOT       the root with Debian's Python, of tools/cross/root
"""

import os
import tarfile
from pathlib import Path

import pytest

from conftest import ROOT
from test_release import only, run
from test_release import (  # noqa: F401 (tests of any release)
    test_files_are_of_their_sizes_and_checksums,
    test_programs_need_libc_only_and_name_no_folder_of_the_build,
    test_the_bill_of_materials_names_what_is_linked_in,
    test_the_wheel_is_manylinux_and_complete,
)

CAPTURES = ("capture-2-plain", "device-2-plain", "energy-2-deflated")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("SONDE_ARM64_RELEASE" not in os.environ, reason="make test-arm64-release makes what it tests"),
]


@pytest.fixture(scope="module")
def release():
    return Path(os.environ["SONDE_ARM64_RELEASE"])


@pytest.fixture(scope="module")
def emulated():
    """emulated(program, arguments…) runs a program for aarch64, by its path below the root or its own"""
    root = Path(os.environ["SONDE_ARM64_ROOT"])

    def run_it(program, *arguments, **options):
        path = root / str(program).lstrip("/")
        return run("qemu-aarch64", "-cpu", "max", "-L", root, path if path.exists() else program, *arguments, timeout=900, **options)

    return run_it


@pytest.fixture(scope="module")
def installed(release, emulated, tmp_path_factory):
    """The folder into which pip installed the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    emulated("usr/bin/python3", "-m", "pip", "install", "-q", "--no-index", "--no-compile", "--prefix", folder, only(release, "*.whl"),
             env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return folder


def installed_program(installed):
    path, = installed.rglob("bin/sonde")
    return path


def test_pip_installs_the_wheel(installed, emulated, sonde):
    assert emulated(installed_program(installed), "version").splitlines()[0].startswith("sonde ")
    assert list(installed.rglob("lib/sonde/libsonde-inject.so")) and list(installed.rglob("man1/sonde-record.1"))


def test_the_packages_extension_loads(installed, emulated):
    package, = installed.rglob("sonde/_core.abi3.so")
    script = "import sonde, sonde._core as core, sys\nwith sonde.range('work'): pass\nprint(core.__file__, sys.version_info[:2])"
    text = emulated("usr/bin/python3", "-c", script, env={**os.environ, "PYTHONPATH": str(package.parents[1])})
    assert str(package) in text


@pytest.mark.parametrize("name", CAPTURES)
def test_reports_are_those_of_this_processor(installed, emulated, sonde, name):
    """Of the same capture: every figure."""
    capture = ROOT / "tests/golden" / f"{name}.pftrace"
    expected = sonde("report", "--json", capture)
    assert expected.status in (0, 3)
    assert emulated(installed_program(installed), "report", "--json", capture) == expected.stdout


def test_the_tarballs_program_is_the_wheels(release, installed, tmp_path):
    tarfile.open(only(release, "*.tar.gz")).extractall(tmp_path)
    program, = tmp_path.glob("sonde-*/bin/sonde")
    assert program.read_bytes() == installed_program(installed).read_bytes()


def test_the_packages_are_for_arm64(release):
    assert run("dpkg-deb", "-f", only(release, "*.deb"), "Architecture").strip() == "arm64"
    assert run("rpm", "-qp", "--qf", "%{ARCH}", only(release, "*.rpm")) == "aarch64"
