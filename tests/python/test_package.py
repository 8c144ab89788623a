# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: by Meson, as a wheel, on every CPython that is here, and what importing it costs."""

import json
import os
import re
import subprocess
import sys
import zipfile
from email import message_from_string
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

import pytest
from .conftest import ROOT

PUBLIC = (
    "__version__ add_profiler_args counter get_global_manager is_open mark phase phases profile profiler_from_args range"
    " step token training_profiler waiting watch window"
).split()


def found_pythons():
    """CPython 3.8 to 3.13 by version."""
    paths = sorted(Path("/usr/bin").glob("python3.*")) + sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3.*"))
    wanted = {f"python3.{minor}" for minor in range(8, 14)}
    found = {path.name: path for path in paths if path.name in wanted and os.access(path, os.X_OK)}
    return found or {"this": Path(sys.executable)}


PYTHONS = found_pythons()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """As `pip install .` builds it, with the build's needs from the environment of the tests."""
    pytest.importorskip("mesonpy", reason="meson-python is not here; tools/venv tests gets it from PyPI")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel", "--no-index"]
    command = [*pip, "--no-build-isolation", "--no-deps", "-w", folder, ROOT]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The Python of a virtual environment that has the wheel."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index", wheel]
    subprocess.run(pip, check=True, timeout=120)
    return python


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


def test_a_child_forked_while_another_thread_says_something_can_speak(run):
    """The lock that it inherits has no owner there."""
    text = """
    import os, signal
    from sonde import _log
    with _log._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            _log.warn_once("key", "said by the child")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """
    assert run(text).stderr.count("said by the child") == 1


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


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == sources() | {"sonde/_core.abi3.so"}
    assert wheel.name.startswith("sonde_profiler-") and wheel.name.endswith(f"-abi3-linux_{os.uname().machine}.whl")


def texts():
    """What people read and follow: pages, and what is in images."""
    patterns = ("*.md", "docs/**/*.md", "docs/deploy/*", "python/*.md", "python/sonde/**/*.py", "examples/**/*", "pyproject.toml")
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})


def test_no_text_says_to_install_what_is_not_there():
    """On PyPI `sonde` is another project, and sonde-profiler is not there."""
    wrong = re.compile(r"pip3? (?:install|download) (?:-\S+ )*(?:sonde(?![\w*/-])|sonde-profiler)(?!.*another project)")
    found = [f"{path.relative_to(ROOT)}: {line}" for path in texts() for line in path.read_text().splitlines() if wrong.search(line)]
    assert not found


@pytest.fixture(scope="module")
def twine():
    """A Python with twine and trove_classifiers."""
    done = subprocess.run([ROOT / "tools/venv", "twine"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else pytest.skip(done.stderr.strip().splitlines()[-1])


def of_tools_release(folder):
    """A wheel with nothing but the metadata that tools/release writes."""
    loader = SourceFileLoader("release", str(ROOT / "tools/release"))
    release = module_from_spec(spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    sys.path.insert(0, str(ROOT / "tools"))  # as for a script there
    loader.exec_module(release)
    sys.path.remove(str(ROOT / "tools"))
    sys.dont_write_bytecode = before
    project = release.tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    path = folder / "sonde_profiler-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        for name, text in (("METADATA", release.metadata(SimpleNamespace(project=project, version="1.0"))), ("RECORD", ""),
                           ("WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
                           ("licenses/LICENSE", ""), ("licenses/THIRD-PARTY-NOTICES", "")):
            out.writestr(f"sonde_profiler-1.0.dist-info/{name}", text)
    return path


@pytest.mark.parametrize("made_by", ["pip", "tools/release"])
def test_the_metadata_is_whole_and_pypi_would_take_it(made_by, wheel, twine, tmp_path):
    path = wheel if made_by == "pip" else of_tools_release(tmp_path)
    done = subprocess.run([twine, "-m", "twine", "check", "--strict", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    archive = zipfile.ZipFile(path)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    fields = message_from_string(archive.read(name).decode())
    assert fields["Name"] == "sonde-profiler"
    for wanted in ("Summary", "Author", "Keywords", "License-Expression", "License-File", "Requires-Python"):
        assert fields[wanted], wanted
    assert "# sonde" in fields.get_payload()
    known = subprocess.run([twine, "-c", "import trove_classifiers; print(*trove_classifiers.classifiers, sep='\\n')"],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    used = fields.get_all("Classifier")
    assert len(used) > 5 and set(used) <= set(known)


def test_the_installed_wheel_runs(installed, run):
    text = """
    import sonde
    from importlib.metadata import version
    assert sonde.__version__ == version("sonde-profiler")
    sonde.step()
    print(sonde.__file__)
    """
    done = run(text, python=installed, env={"PYTHONPATH": ""})
    assert str(installed.parents[1]) in done.stdout


def test_a_checkouts_wheel_says_how_to_get_the_program(installed):
    """`pip install .` in a checkout builds the package alone."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([installed, "-m", "sonde", "version"], env=environment, cwd="/", capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert "'pip install .' of a checkout gives the package alone: install the wheel of a release, or run 'make'" in done.stderr


def test_hooks_of_the_installed_wheel_record(installed, package, run, tmp_path):
    """The hooks are those of the wheel, under the `sonde record` of another folder."""
    text = """
    import transformers, transformers.generation.utils
    transformers.generation.utils.GenerationMixin().generate(None, max_new_tokens=2)
    import sonde.hooks.registry
    print(sonde.hooks.registry.__file__)
    """
    stand_in = str(ROOT / "tests" / "e2e" / "python-hooks")
    record = [package.parent / "sonde", "record", "-o", tmp_path / "a.pftrace", "--"]
    done = run(text, python=installed, env={"PYTHONPATH": stand_in}, prefix=record)
    assert str(installed.parents[1]) in done.stdout
    (row,) = [line.split() for line in done.stderr.splitlines() if line.split()[:1] == ["transformers"]]
    assert row == ["transformers", "2", "6", "0", "0"], done.stderr  # trainer and generate_batch() are not imported


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
    done = subprocess.run(["make", "uninstall", f"BUILD={package.parent}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and not [path for path in tmp_path.rglob("*") if not path.is_dir()], done.stdout


def test_meson_installs_below_its_prefix_whatever_python_it_has(installed, tmp_path):
    """A virtual environment's site folder, or that of pyenv, is not Meson's to write into."""
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    option = [f"-Dpython={installed}", f"--prefix={prefix}"]
    done = subprocess.run(["meson", "setup", "-Dprogram=false", *option, build, ROOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    plan = json.loads((build / "meson-info" / "intro-installed.json").read_text())
    assert plan and all(path.startswith(f"{prefix}/") for path in plan.values()), plan


def test_types_are_whole():
    pytest.importorskip("mypy", reason="mypy is not here; tools/venv tests gets it from PyPI")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
