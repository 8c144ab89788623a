# SPDX-License-Identifier: Apache-2.0
"""Another project's package and script that are called sonde, as PyPI has one: sonde doctor, the package and the hooks say so.

The other project is a made-up wheel of the same files.
"""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from .conftest import package_folder

OTHERS = {
    "sonde/__init__.py": "__version__ = '9.9'\n",
    "sonde/__main__.py": "from sonde.cli import main\nmain()\n",
    "sonde/cli.py": "def main():\n    print('the other project')\n",
    "sonde-9.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: sonde\nVersion: 9.9\n",
    "sonde-9.9.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "sonde-9.9.dist-info/entry_points.txt": "[console_scripts]\nsonde = sonde.cli:main\n",
    "sonde-9.9.dist-info/RECORD": "",
}


def make_wheel(path, files):
    with zipfile.ZipFile(path, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path


@pytest.fixture
def wheels(tmp_path):
    """Ours, of the built package and under its name, and the other one."""
    built = package_folder()
    ours = {str(path.relative_to(built)): path.read_bytes() for path in (built / "sonde").rglob("*")
            if path.is_file() and path.suffix != ".pyc" and not any(part.endswith(".p") for part in path.parts)}
    ours |= {"sonde_profiler-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sonde-profiler\nVersion: 1.0\n",
             "sonde_profiler-1.0.dist-info/WHEEL": OTHERS["sonde-9.9.dist-info/WHEEL"], "sonde_profiler-1.0.dist-info/RECORD": ""}
    return {"ours": make_wheel(tmp_path / "sonde_profiler-1.0-py3-none-any.whl", ours),
            "other": make_wheel(tmp_path / "sonde-9.9-py3-none-any.whl", OTHERS)}


@pytest.fixture
def environment_of(wheels, tmp_path):
    """environment_of("ours", "other") -> the Python of a virtual environment where these were installed in this order"""

    def make(*names):
        folder = tmp_path / "any [folder]"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = folder / "bin/python3"
        for name in names:
            pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index", "--no-deps"]
            subprocess.run([*pip, wheels[name]], check=True, timeout=120)
        return python

    return make


@pytest.fixture
def doctor(package):
    def ask(python):
        environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        done = subprocess.run([package.parent / "sonde", "doctor", "--json"], env=environment, capture_output=True, text=True)
        data = json.loads(done.stdout)
        return {entry["name"]: entry for entry in [*data["checks"], *data["sources"]]}

    return ask


def test_doctor_says_what_the_name_stands_for(doctor, environment_of):
    python = environment_of("ours", "other")
    told = doctor(python)
    assert told["name-on-path"]["status"] == told["name-in-python"]["status"] == "no"
    assert f"{python.parent}/sonde, which PATH finds, is a script of another project" in told["name-on-path"]["detail"]
    assert "/sonde-9.9.dist-info is another project" in told["name-in-python"]["detail"]
    assert told["python-package"]["status"] == "partly" and "pip uninstall sonde" in told["python-package"]["fix"]


def test_doctor_looks_where_pip_installs_for_a_user(package, tmp_path):
    """Python of the system looks there, that of a virtual environment does not."""
    note = tmp_path / ".local/lib/python3.11/site-packages/sonde-9.9.dist-info"
    note.mkdir(parents=True)
    venv = tmp_path / "venv/bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv.parent], check=True)
    for path, status in (("/usr/bin:/bin", "no"), (f"{venv}:/usr/bin:/bin", "works")):
        environment = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
        done = subprocess.run([package.parent / "sonde", "doctor", "--json"], env=environment, capture_output=True, text=True)
        told = {check["name"]: check for check in json.loads(done.stdout)["checks"]}["name-in-python"]
        assert told["status"] == status and (str(note) in told["detail"]) == (status == "no")


def test_doctor_has_no_complaint_of_what_is_ours(doctor, environment_of, package):
    python = environment_of("ours")
    told = doctor(python)
    assert told["name-on-path"]["status"] == told["name-in-python"]["status"] == told["python-package"]["status"] == "works"
    # A script of this package's, one that somebody wrote around the program, and the program.
    program = python.parent / "sonde"
    for text in ("#!/usr/bin/python3\nfrom sonde.__main__ import main\nmain()\n", '#!/bin/sh\nexec /opt/sonde/bin/sonde "$@"\n'):
        program.write_text(text)
        program.chmod(0o755)
        told = doctor(python)["name-on-path"]
        assert told["status"] == "works" and f"another file, {program}" in told["detail"]
    program.unlink()
    program.symlink_to(package.parent / "sonde")
    assert doctor(python)["name-on-path"]["detail"] == f"{program} is this program"


def test_the_package_runs_no_other_projects_script(environment_of, run, package):
    """Ours is the one that was installed last: its package is whole, the script is the other project's."""
    python = environment_of("other", "ours")
    alone = {"PYTHONPATH": "", "PATH": f"{python.parent}:/nowhere"}
    done = run("import runpy, sys; sys.argv[1:] = ['version']; runpy.run_module('sonde', run_name='__main__')", python=python, env=alone,
               check=1)
    assert "the other project" not in done.stdout
    assert f"{python.parent}/sonde is a script of another project called sonde" in done.stderr
    text = """
    import sonde
    with sonde.profile("x.pftrace") as prof:
        pass
    print(prof.failure)
    """
    assert "is a script of another project" in run(text, python=python, env=alone).stdout
    beside = {"PYTHONPATH": "", "PATH": f"{python.parent}:{package.parent}"}
    done = run("import runpy, sys; sys.argv[1:] = ['version']; runpy.run_module('sonde', run_name='__main__')", python=python, env=beside)
    assert done.stdout.startswith("sonde ") and "libbpf" in done.stdout, "the next one on PATH is ours"
    assert "/sonde-9.9.dist-info is another project" in done.stderr


def test_without_another_project_nothing_is_said(environment_of, run, package):
    python = environment_of("ours")
    done = run("import runpy, sys; sys.argv[1:] = ['version']; runpy.run_module('sonde', run_name='__main__')", python=python,
               env={"PYTHONPATH": "", "SONDE": str(package.parent / "sonde")})
    assert done.stdout.startswith("sonde ") and not done.stderr


def test_hooks_say_whose_package_the_program_imports(environment_of, run, package, tmp_path):
    python = environment_of("other")
    (tmp_path / "transformers").mkdir()
    (tmp_path / "transformers/__init__.py").write_text("")
    record = [package.parent / "sonde", "record", "-o", tmp_path / "a.pftrace", "--"]
    done = run("import transformers, sonde; print(sonde.__version__)", python=python, env={"PYTHONPATH": str(tmp_path)}, prefix=record)
    assert done.stdout == "9.9\n", "the program has its own"
    told = " ".join(done.stderr.split())
    assert "sonde/__init__.py as sonde: hooks need the package of the distribution sonde-profiler" in told
