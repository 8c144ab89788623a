# SPDX-License-Identifier: Apache-2.0
"""What tools/release makes: its contents, and that it runs in a root with Debian's Python and nothing else."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from c_api import BUILD_AND_RUN, PROGRAM, check_builds, check_found
from receiver_double import ReceiverDouble
from test_continuous import wait_for, windows
from test_deploy import TOKEN, container, instructions

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes roots, which needs root"),
]
MEGABYTE = 1_000_000


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "dist"
    run(ROOT / "tools/release", folder, timeout=1800)
    return folder


def only(folder, pattern):
    found, = folder.glob(pattern)
    return found


def mirror():
    """The package mirror that apt is set to."""
    texts = [path.read_text() for folder in ("/etc/apt", "/etc/apt/sources.list.d") for path in Path(folder).glob("*.*")
             if path.suffix in (".list", ".sources")]
    return re.search(r"^(?:URIs:|deb(?: \[.*?\])?) *(http\S+/debian)/?\s", "\n".join(texts), re.MULTILINE)[1]


@pytest.fixture(scope="module")
def system(tmp_path_factory, release):
    """system(script) runs a shell script in a root of Debian 12 with Python, pip, a compiler and pkg-config, and the release in
    /release; system.command(script) is the command line that does, and system.root the folder."""
    root = tmp_path_factory.mktemp("root")
    run("debootstrap", "--variant=minbase", "--include=python3-pip,gcc,libc6-dev,pkg-config", "bookworm", root, mirror(), timeout=900)
    shutil.copytree(release, root / "release")
    for name in ("apt.conf", "apt.conf.d"):
        run("sh", "-c", 'test ! -e "$0" || cp -rT "$0" "$1"', f"/etc/apt/{name}", root / "etc/apt" / name)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    enter = 'mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"; exec chroot "$0" sh -ec "$1"'

    def command(script):
        return ["unshare", "--mount", "sh", "-ec", enter, root, "unset SONDE PYTHONDONTWRITEBYTECODE; cd /root; export LC_ALL=C.UTF-8\n" + script]

    def in_root(script):
        return run(*command(script), timeout=300)

    in_root.command, in_root.root = command, root
    return in_root


def test_files_are_of_their_sizes_and_checksums(release):
    assert only(release, "*.whl").stat().st_size <= 10 * MEGABYTE
    assert only(release, "*.tar.gz").stat().st_size <= 12 * MEGABYTE
    lines = (release / "SHA256SUMS").read_text().splitlines()
    assert sorted(line.split()[1] for line in lines) == sorted(path.name for path in release.iterdir() if path.name != "SHA256SUMS")
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((release / name).read_bytes()).hexdigest() == digest


def test_the_wheel_is_manylinux_and_complete(release):
    path = only(release, "*.whl")
    machine, = re.fullmatch(r"sonde-[\d.]+-linux-(\w+)\.tar\.gz", only(release, "*.tar.gz").name).groups()
    assert re.fullmatch(rf"sonde_profiler-[\d.]+-py3-none-manylinux_2_(\d+)_{machine}\.whl", path.name)
    assert int(re.search(r"manylinux_2_(\d+)_", path.name)[1]) <= 34
    names = zipfile.ZipFile(path).namelist()
    for wanted in ("scripts/sonde", "lib/sonde/libsonde-inject.so", "man1/sonde-record.1", "completions/sonde", "sonde/__main__.py",
                   "sonde/_core.abi3.so", "licenses/LICENSE", "licenses/THIRD-PARTY-NOTICES"):
        assert any(name.endswith(wanted) for name in names), wanted


def test_programs_need_libc_only_and_name_no_folder_of_the_build(release, tmp_path):
    tarfile.open(only(release, "*.tar.gz")).extractall(tmp_path)
    folder = only(tmp_path, "sonde-*")
    for name in ("bin/sonde", "lib/sonde/libsonde-inject.so"):
        dynamic = run("readelf", "-d", folder / name)
        assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
        assert set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
        content = (folder / name).read_bytes()
        assert b"sonde-release-" not in content and str(ROOT).encode() not in content
    entries = tarfile.open(only(release, "*.tar.gz")).getmembers()
    assert {(entry.uid, entry.gid) for entry in entries} == {(0, 0)}


def test_the_bill_of_materials_names_what_is_linked_in(release):
    document = json.loads(only(release, "*.spdx.json").read_text())
    assert document["spdxVersion"] == "SPDX-2.3"
    packages = {package["name"]: package["versionInfo"] for package in document["packages"]}
    assert {"sonde", "libbpf-dev", "libdw-dev", "libssl-dev", "preact", "speedscope"} <= set(packages)
    assert all(packages.values())
    ids = {package["SPDXID"] for package in document["packages"]} | {"SPDXRef-DOCUMENT"}
    assert all(relation["relatedSpdxElement"] in ids and relation["spdxElementId"] in ids for relation in document["relationships"])


def test_two_runs_make_the_same_bytes(release, tmp_path):
    run(ROOT / "tools/release", tmp_path / "again", timeout=1800)
    assert (tmp_path / "again/SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


BUSY = """
cat >busy.py <<'END'
import sonde, time
end = time.thread_time() + 0.5
with sonde.range("busy"):
    while time.thread_time() < end:
        sum(i * i for i in range(1000))
END
"""
REPORTED = ("busy.py:5", "Ranges", "reach the thread's entry")


def check_report(text):
    for wanted in REPORTED:
        assert wanted in text


def test_pip_install_and_one_command_record_a_program(system):
    install = "pip install -q --break-system-packages --no-index /release/*.whl\n"
    text = system(BUSY + install + "sonde record -q -o run.pftrace -- python3 busy.py && sonde report run.pftrace\n"
                  "python3 -m sonde version; pip uninstall -q -y --break-system-packages sonde-profiler; test ! -e /usr/local/bin/sonde")
    check_report(text)
    assert re.search(r"^sonde [\d.]+ \([0-9a-f]{12}\)", text, re.MULTILINE)


def test_the_tarball_runs_from_any_folder(system):
    text = system(BUSY + 'mkdir -p "any [folder]"; tar -xzf /release/*.tar.gz -C "any [folder]"; cd "any [folder]"/sonde-*\n'
                  "bin/sonde record -q -o /root/run.pftrace -- python3 /root/busy.py; bin/sonde report /root/run.pftrace")
    check_report(text)


def test_the_deb_installs_runs_and_leaves_nothing(system):
    text = system(BUSY + f"cat >program.c <<'END'\n{PROGRAM}\nEND\n"
                  "dpkg -i /release/*.deb >/dev/null; sonde record -q -o run.pftrace -- python3 busy.py; sonde report run.pftrace\n"
                  f"{BUILD_AND_RUN}; sonde record -q -o steps.pftrace -- ./program; sonde report --by step steps.pftrace\n"
                  "python3 -c 'import sonde; print(sonde.__file__)'; dpkg -r sonde >/dev/null; find /usr/bin /usr/lib /usr/include /usr/share -path '*sonde*'")
    check_report(text)
    assert re.search(r"\bprogram +step$", text, re.MULTILINE), "the C program's"
    assert text.splitlines()[-1] == "/usr/lib/python3/dist-packages/sonde/__init__.py"


@pytest.fixture
def image(system):
    """The root, with what the Dockerfile's instructions make of it; its base image is a Debian 12 with another Python."""
    lines = [rest for word, rest in instructions() if word == "RUN"]
    # Debian's pip is told that the Python is its own, which that of the base image is.
    system("if ldconfig -p | grep libcurl; then exit 1; fi\ncp /release/*.whl /tmp; export PIP_BREAK_SYSTEM_PACKAGES=1\n" + "\n".join(lines))
    yield system
    system("pip uninstall -q -y --break-system-packages sonde-profiler; rm -rf /var/lib/sonde")


def test_the_image_runs_the_daemon_set(image):
    _, only = container()
    receiver = ReceiverDouble()
    try:
        arguments = [word.replace("https://captures.example", receiver.url).replace("$(NODE_NAME)", "node7") for word in only["args"]]
        variables = {entry["name"]: entry["value"] for entry in only["env"] if "value" in entry}
        for mount in only["volumeMounts"]:
            (image.root / mount["mountPath"].lstrip("/")).mkdir(parents=True, exist_ok=True)
        (image.root / "etc/sonde/token").write_text(TOKEN + "\n")
        folder = image.root / "var/lib/sonde"
        script = "exec env " + shlex.join([*(f"{name}={value}" for name, value in variables.items()), *only["command"], *arguments])
        with subprocess.Popen([str(part) for part in image.command(script)], stderr=subprocess.PIPE, text=True) as recorder:
            try:
                wait_for(lambda: list(folder.glob("*.open.pftrace")) or recorder.poll() is not None)
                recorder.terminate()
                assert recorder.wait(120) == 0, recorder.stderr.read()
            finally:
                recorder.kill()
    finally:
        receiver.close()
    assert [request.path for request in receiver.taken()] == [f"/node7/{path.name}" for path in windows(folder)] != []
    assert (image.root / "var/lib/sonde-metrics/sonde.prom").exists()


def test_pkg_config_finds_the_c_api_of_the_tarball(release, tmp_path):
    tarfile.open(only(release, "*.tar.gz")).extractall(tmp_path)
    check_builds(tmp_path, {"PKG_CONFIG_PATH": str(only(tmp_path, "sonde-*") / "lib/sonde/pkgconfig")})


# Where pkg-config looks on Fedora, RHEL and openSUSE.
RPM_PLACES = ["/usr/lib64/pkgconfig", "/usr/share/pkgconfig"]


def below(folder):
    """What is there, but for the packages' database."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.relative_to(folder).parts[0] in ("usr", "etc")}


def test_the_rpm_installs_serves_and_leaves_nothing(release, tmp_path):
    """In a root with the folders of Fedora's, and one Python that has a package already."""
    root = tmp_path / "root"
    version = run("/usr/bin/python3", "-c", "import sys; print('python%d.%d' % sys.version_info[:2])").strip()
    site = root / "usr/lib" / version / "site-packages"
    site.mkdir(parents=True)
    (site / "other.py").write_text("")
    for folder in ("bin", "include", "lib64", "share/doc", "share/man/man1"):
        (root / "usr" / folder).mkdir(parents=True)
    before = below(root)
    run("rpm", "--root", root, "-i", "--nodeps", only(release, "*.rpm"))
    show = "import sonde, sonde.hooks.registry; sonde.step(); print(sonde.__file__)"
    for folder in [*(root / "usr/lib").glob("python3.*/site-packages")]:
        assert (folder / "sonde/__init__.py").exists(), folder
    imported = run("/usr/bin/python3", "-c", show, env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": ""})
    assert imported.strip() == f"{site}/sonde/__init__.py"
    check_found(tmp_path, root, RPM_PLACES)
    assert list(root.rglob("__pycache__")), "what Python compiled"
    run("rpm", "--root", root, "-e", "sonde")
    assert below(root) == before


def test_the_rpm_holds_the_same_tree(release, tmp_path):
    package = only(release, "*.rpm")
    run("sh", "-c", f"cd {tmp_path} && rpm2cpio {package} | cpio -idm --quiet")
    assert "sonde" in run(tmp_path / "usr/bin/sonde", "version")
    assert (tmp_path / "usr/lib/sonde/libsonde-inject.so").exists()
    requires = run("rpm", "-qpR", package)
    assert "libc.so.6(GLIBC_" in requires and "python" not in requires
    assert "libcurl.so.4()(64bit)" in run("rpm", "-qp", "--recommends", package)
