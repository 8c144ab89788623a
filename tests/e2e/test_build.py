# SPDX-License-Identifier: Apache-2.0
"""What a person types in a checkout: make, with tools/deps, tools/configure and web/build.py, where things are missing.

apt, dpkg, sudo and Meson are stand-ins, in a folder that is all of PATH.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
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
    # Without lists it knows something of some packages all the same.
    "apt-cache": 'case " $* " in *" g++ "*) ;; *) [ -e $STATE/lists ] ;; esac',
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
        for name in ("deps", "find-bpftool", "configure"):
            shutil.copy(ROOT / "tools" / name, folder / "tools")
        for name, text in STAND_INS.items():
            self.stand_in(name, text)
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("log", "installed"):
            (folder / name).touch()
            (folder / name).chmod(0o666)
        (folder / "no-password").touch()  # sudo asks for none
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
    words = [re.findall(r" (update|install)\b", line) for line in checkout.log() if line.startswith("apt-get ")]
    assert words == [["update"], ["install"]], checkout.log()
    assert {"clang", "libclang-rt-dev", "opencl-headers", "python3-torch"} <= checkout.installed()
    assert "tools/deps: missing for test, " in done.stdout
    (checkout.folder / "log").write_text("")
    done = checkout("tools/deps", "test")
    assert (done.returncode, done.stdout, checkout.log()) == (0, "", [])


@needs_root
def test_sudo_without_a_password_installs(checkout, unprivileged):
    done = checkout("tools/deps", "demo", prefix=unprivileged)
    assert done.returncode == 0, done.stdout
    assert checkout.log()[0] == "sudo -n true" and "python3-torch" in checkout.installed()


@needs_root
@pytest.mark.parametrize("has_sudo", [True, False])
def test_who_may_not_install_gets_the_command(checkout, unprivileged, has_sudo):
    checkout.install("build")
    (checkout.folder / "installed").write_text("\n".join(
        line for line in (checkout.folder / "installed").read_text().splitlines() if not re.match("clang|meson", line)) + "\n")
    (checkout.folder / "no-password").unlink()
    if not has_sudo:
        checkout.remove("sudo")
    done = checkout("tools/deps", "build", prefix=unprivileged)
    assert done.returncode == 1
    how = "sudo " if has_sudo else "as root: "
    assert done.stdout.endswith(f":\n    {how}apt-get install --no-install-recommends clang meson\n")
    (checkout.folder / "lists").unlink()
    done = checkout("tools/deps", "build", prefix=unprivileged)
    assert f":\n    {how}apt-get update\n    {how}apt-get install " in done.stdout
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


# ---- the build folder ----

MESON = """
echo "meson $*" >>$STATE/log
[ "$*" != --version ] || echo 1.0.1
[ "$1 $3" != "setup -Dwerror=true" ] || { /bin/mkdir -p $2; : >$2/build.ninja; }"""


def configured(checkout):
    (checkout.folder / "log").write_text("")
    done = checkout("tools/configure", "build", "-Dwerror=true")
    assert done.returncode == 0, done.stdout
    return checkout.log()


def release(checkout, package, old, new):
    path = checkout.folder / "installed"
    path.write_text(path.read_text().replace(f"{package}:installed:{old}\n", f"{package}:installed:{new}\n"))


def test_a_build_is_configured_again_when_its_packages_are_others(checkout):
    checkout.stand_in("meson", MESON)
    checkout.install("test")
    again = ["meson configure --clearcache build", "meson setup --reconfigure build"]
    assert configured(checkout) == ["meson setup build -Dwerror=true"]
    assert configured(checkout) == []
    release(checkout, "gdb", "1.0", "1.1")  # nothing that the build looks at
    release(checkout, "git", "1.0", "1.1")
    assert configured(checkout) == []
    release(checkout, "libwebsockets-dev", "1.0", "1.1")
    assert configured(checkout) == again
    assert configured(checkout) == []
    (checkout.folder / "build/packages").unlink()  # of a folder that was configured by hand
    assert configured(checkout) == again
    assert configured(checkout) == []


def test_a_build_without_dpkg_is_configured_once(checkout):
    checkout.stand_in("meson", MESON)
    checkout.remove("dpkg-query")
    for name in BUILD_TOOLS:
        checkout.stand_in(name, "true")
    assert configured(checkout) == ["meson setup build -Dwerror=true"]
    assert configured(checkout) == []


def test_configuring_looks_for_nothing_that_may_come_later():
    """Meson keeps what it did not find: it may look for what the build cannot be without, and for no more."""
    allowed = {"dl_dep = c.find_library('dl', required: false)"}  # libc has it, or a library of libc
    optional = re.compile(r"has_header|has_function|check_header|\.links\(|\.compiles\(|required: *false|\.found\(\)")
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in ROOT.rglob("meson.build") if not {".git", "node_modules"} & set(path.parts) and "build" not in path.parts[:-1]
        for line in path.read_text().splitlines()
        if optional.search(line) and line.strip() not in allowed and "get_option('fuzz')" not in line
    }
    assert found == set()


HIDDEN = 'mount -t tmpfs none /usr/include/CL && exec "$@"'
OPENCL = "tests/doubles/opencl/libopencl-double.so"


@needs_root
def test_headers_that_come_after_the_build_was_configured(tmp_path):
    """`make`, then `make test`: without OpenCL's headers a sentence, and with them the program, without configuring again."""
    without = ["unshare", "--mount", "sh", "-c", HIDDEN, "sh"]
    if subprocess.run([*without, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us make namespaces")
    build = tmp_path / "build"
    done = subprocess.run([*without, "meson", "setup", build, ROOT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    written = (build / "build.ninja").stat().st_mtime_ns
    done = subprocess.run([*without, "ninja", "-C", build, OPENCL], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "OpenCL's headers are missing: 'tools/deps everything' installs them" in done.stdout
    subprocess.run(["ninja", "-C", build, OPENCL], check=True, capture_output=True)
    assert (build / OPENCL).exists() and (build / "build.ninja").stat().st_mtime_ns == written


# ---- tools/demo ----

SONDE = """
echo "sonde $*" >>$STATE/log
[ "$1" != doctor ] || echo "  $([ -e $STATE/capable ] && echo works || echo no)  Python functions and lines, and the interpreter lock"
"""


@pytest.fixture
def demo(checkout):
    """demo(answer=) runs it as an ordinary user, on a terminal where there is an answer; returns the command that records."""
    for name, text in (("tools/venv", "echo python3"), ("sonde", SONDE)):
        checkout.stand_in(name, text)
    shutil.copy(ROOT / "tools/demo", checkout.folder / "tools")
    for name in ("grep", "id", "mkdir"):
        (checkout.bin / name).symlink_to(shutil.which(name))
    checkout.remove("sh")
    (checkout.bin / "sh").symlink_to("/bin/sh")

    def run(prefix, answer=None):
        command = ("tools/demo", str(checkout.bin / "sonde"))
        if answer is None:
            assert checkout(*command, prefix=prefix).returncode == 0
        else:
            shown, status = checkout.on_terminal(*command, prefix=prefix, answer=answer)
            assert status == 0 and "neither Python functions nor waits. [Y/n]" in shown
        return next(line for line in checkout.log() if "record -o" in line)

    return run


@needs_root
@pytest.mark.parametrize("answer, by_sudo", [(b"\n", True), (b"y\n", True), (b"n\n", False)])
def test_the_demo_asks_for_sudo_on_a_terminal(demo, unprivileged, answer, by_sudo):
    assert demo(unprivileged, answer).startswith("sudo env " if by_sudo else "sonde record ")


@needs_root
@pytest.mark.parametrize("asks, capable, by_sudo", [(False, False, True), (True, False, False), (False, True, False)])
def test_the_demo_elsewhere(demo, checkout, unprivileged, asks, capable, by_sudo):
    """sudo where it asks for no password; not where the program has the capabilities itself."""
    if asks:
        (checkout.folder / "no-password").unlink()
    if capable:
        (checkout.folder / "capable").touch()
    assert demo(unprivileged).startswith("sudo env " if by_sudo else "sonde record ")


STEP = """echo "begin $0 $*" >>$STATE/steps
/bin/sleep 0.2
echo "end $0 $*" >>$STATE/steps"""


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_with_jobs_installs_before_it_builds(checkout, target):
    shutil.copy(ROOT / "Makefile", checkout.folder)
    (checkout.folder / "tests/e2e").mkdir(parents=True)
    (checkout.folder / "build").mkdir()
    for name in ("tools/deps", "tools/configure", "tools/demo", "tests/e2e/run", "build/sonde", "ninja", "meson"):
        checkout.stand_in(name, STEP)
    for name in ("make", "grep"):
        (checkout.bin / name).symlink_to(shutil.which(name))
    checkout.remove("sh")
    (checkout.bin / "sh").symlink_to("/bin/sh")
    done = checkout("make", "-j4", target)
    assert done.returncode == 0, done.stdout
    steps = [line.split(maxsplit=1) for line in (checkout.folder / "steps").read_text().splitlines()]
    assert [word for word, _ in steps] == ["begin", "end"] * (len(steps) // 2), steps
    commands = [Path(command.split()[0]).name for word, command in steps if word == "begin"]
    assert commands[0] == "deps" and commands.index("configure") < commands.index("ninja")
    assert commands[-1] == ("demo" if target == "demo" else "run")


# ---- the page ----


def node():
    """Node.js and npm that are new enough: this system's, or tools/venv's."""
    done = subprocess.run([ROOT / "tools/venv", "page"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"PyPI gives no Node.js: {done.stderr.strip()}")
    return Path(done.stdout.strip()).parent


@pytest.fixture
def web(tmp_path):
    """A checkout of the page, to which tools/venv gives no Node.js, and a PATH without one."""
    nothing = shutil.ignore_patterns("node_modules", "dist")
    shutil.copytree(ROOT / "web", tmp_path / "web", ignore=nothing)
    if (ROOT / "web/node_modules").is_dir():
        (tmp_path / "web/node_modules").symlink_to((ROOT / "web/node_modules").resolve())
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("images"))
    shutil.copytree(ROOT / "schema", tmp_path / "schema")
    (tmp_path / "tools").mkdir()
    write_script(tmp_path / "tools/venv", "exit 1")
    (tmp_path / "bin").mkdir()
    for name, path in (("python3", sys.executable), *((name, shutil.which(name)) for name in ("ninja", "sh", "env"))):
        (tmp_path / "bin" / name).symlink_to(path)
    (tmp_path / "build.ninja").write_text(
        "rule page\n command = python3 web/build.py out page_assets.c\n deps = gcc\n depfile = page_assets.c.d\n restat = 1\n"
        "build page_assets.c: page web/build.py\n")
    return tmp_path


def write_script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def ninja(web, **environment):
    done = subprocess.run(["ninja"], cwd=web, env={**os.environ, "PATH": f"{web}/bin", **environment}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_page_that_could_not_be_built_is_tried_again(web):
    """Debian 12's Node.js is too old: that of PyPI is taken. Whatever was missing, once it is there the page is built."""
    output = web / "page_assets.c"
    assert "sonde is built without its page: npm is not installed and PyPI gave none\n" in ninja(web)
    assert 'page_missing[] = "npm is not installed and PyPI gave none"' in output.read_text()
    written = output.stat().st_mtime_ns
    assert "without its page" in ninja(web)
    assert output.stat().st_mtime_ns == written  # nothing is compiled again for that
    write_script(web / "bin/npm", "exit 1")
    write_script(web / "bin/node", "echo v18.20.4")
    assert "without its page: Node.js v18.20.4 is too old and PyPI gave none\n" in ninja(web)
    write_script(web / "tools/venv", f"echo {node()}/python")
    assert "without" not in ninja(web)
    assert 'page_missing[] = ""' in output.read_text() and "/index.html" in output.read_text()
    assert "no work to do" in ninja(web)


@needs_root
def test_sudo_make_install_does_not_build_the_page(web):
    """What root installs from npm there its user could neither change nor remove."""
    os.chown(web / "web", 4711, 4711)
    write_script(web / "bin/npm", "touch npm-ran")
    write_script(web / "bin/node", "echo v22.20.0")
    assert "without its page: sudo would leave root's files in the checkout\n" in ninja(web, SUDO_UID="4711")
    assert not list(web.rglob("npm-ran"))


def test_the_reason_of_npm_is_quoted(web):
    if (web / "web/node_modules").is_symlink():
        (web / "web/node_modules").unlink()
    write_script(web / "bin/npm", "echo 'npm error code ENETUNREACH'; echo 'npm error A complete log of this run can be found in: x'; exit 1")
    write_script(web / "bin/node", "echo v22.20.0")
    assert "npm could not install its packages (npm error code ENETUNREACH)" in ninja(web)


WITHOUT_PAGE = "sonde was built without its page, since npm is not installed and PyPI gave none: run 'make' again with Node.js 20.19"


@pytest.fixture
def without_page(sonde, workload_directory):
    sonde.path = str(workload_directory.parents[1] / "doubles/page/sonde-without-page")
    return sonde


@pytest.mark.parametrize("command", [
    ["view", "--no-browser", "CAPTURE"], ["report", "--html", "page.html", "CAPTURE"],
    ["record", "--view", "-o", "new.pftrace", "--", "true"], ["record", "--serve", "-o", "new.pftrace", "--", "true"]])
def test_a_program_without_the_page_says_how_to_get_it(without_page, tmp_path, command):
    capture = ROOT / "tests/golden/capture-2-plain.pftrace"
    done = without_page(*[capture if word == "CAPTURE" else word for word in command])
    assert done.status != 0 and WITHOUT_PAGE in " ".join(done.stderr.split()), done
    assert done.stdout == "" and not (tmp_path / "new.pftrace").exists() and not (tmp_path / "page.html").exists()


def test_a_server_without_the_page_has_the_rest(without_page, start_server):
    server = start_server("serve", ROOT / "tests/golden")
    assert server.get("/api/status").json()["has_page"] is False
    assert WITHOUT_PAGE in without_page("version", check=0).stdout
    assert without_page("version", "--json", check=0).json()["has_page"] is False
