# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: by Meson, as a wheel, on every CPython that is here, and what importing it costs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from .conftest import ROOT

PUBLIC = (
    "add_profiler_args counter get_global_manager is_open mark phase phases profile profiler_from_args range step token"
    " training_profiler waiting window"
).split()


def found_pythons():
    """CPython 3.8 to 3.13 by version."""
    paths = sorted(Path("/usr/bin").glob("python3.*")) + sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3.*"))
    wanted = {f"python3.{minor}" for minor in range(8, 14)}
    found = {path.name: path for path in paths if path.name in wanted and os.access(path, os.X_OK)}
    return found or {"this": Path(sys.executable)}


PYTHONS = found_pythons()


@pytest.fixture(scope="module")
def wheel(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [ROOT / "tools" / "wheel", package.parent, folder], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_every_cpython_imports_all_of_it_with_one_extension(python, run):
    text = f"""
    import sys, sonde
    for name in {PUBLIC}:
        assert getattr(sonde, name).__doc__, name
    assert sorted(sonde.__all__) == {PUBLIC} and set(sonde.__all__) <= set(dir(sonde))
    with sonde.range("r"), sonde.phase("p"), sonde.waiting():
        sonde.mark("m"); sonde.counter("c", 1); sonde.token(1); sonde.step()
    with sonde.training_profiler(enabled=False) as one, sonde.profile(enabled=False) as two:
        assert one is two is None
    assert sonde.phases()[0].name == "p"
    sonde.get_global_manager().tick_by_flag()
    try:
        sonde.nothing
    except AttributeError as error:
        assert "no attribute 'nothing'" in str(error)
    assert "torch" not in sys.modules
    """
    run(text, python=python)


def test_importing_it_imports_nothing_else(run):
    """At most 20 ms, which these modules cannot take: the bench has the time."""
    text = """
    import sys
    import typing
    before = set(sys.modules)
    import sonde
    new = set(sys.modules) - before
    assert new <= {"sonde", "sonde._core", "__future__"}, new
    """
    run(text)


def sources():
    folder = ROOT / "python" / "sonde"
    patterns = ("*.py", "*.pyi", "py.typed")
    return {str(path.relative_to(folder.parent)) for pattern in patterns for path in folder.rglob(pattern)}


def test_the_wheel_holds_the_package_and_installs_without_an_index(wheel, run, tmp_path):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert sources() <= names and "sonde/_core.abi3.so" in names
    assert wheel.name.endswith(f"-cp38-abi3-linux_{os.uname().machine}.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index", wheel]
    subprocess.run(pip, check=True, timeout=120)
    text = "import sonde; print(sonde.__file__); sonde.step()"
    done = run(text, python=python, env={"PYTHONPATH": ""})
    assert str(tmp_path / "venv") in done.stdout


def test_meson_installs_every_file(package, tmp_path):
    """A module that nobody added to meson.build would be missed only by who installs."""
    destination = {**os.environ, "DESTDIR": str(tmp_path)}
    command = ["meson", "install", "-C", package.parent, "--no-rebuild", "--quiet"]
    done = subprocess.run(command, env=destination, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (init,) = [path for path in tmp_path.rglob("sonde/__init__.py")]
    folder = init.parent.parent
    installed = {str(path.relative_to(folder)) for path in (folder / "sonde").rglob("*") if path.is_file()}
    assert sources() <= installed and "sonde/_core.abi3.so" in installed


def test_types_are_whole():
    pytest.importorskip("mypy", reason="mypy is not here; tools/venv tests gets it from PyPI")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
