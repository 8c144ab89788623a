# SPDX-License-Identifier: Apache-2.0
"""Behind a real sudo: what is made is the user's who typed it, and the user's own sonde reads it afterwards."""

import json
import os
import re
import shutil

import pytest
from conftest import ROOT
from user_with_sudo import UID, ann  # noqa: F401 (fixture)

TRAIN = """
import time
def step():
    while time.thread_time() < end: sum(range(2000))
end = time.thread_time() + 0.5
step()
"""
TRACE = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}


@pytest.fixture
def home(ann):
    for name, text in (("train.py", TRAIN), ("trace.json", json.dumps(TRACE))):
        (ann.home / name).write_text(text)
        os.chown(ann.home / name, UID, UID)
    return ann.home


# Those of README that record train.py with sudo, as they stand there.
README = re.findall(r"^sudo .*\brecord .*train\.py.*", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_readme_records_with_sudo():
    assert README


@pytest.mark.parametrize("command", README)
def test_the_first_commands_of_the_readme(ann, home, command):
    done = ann(f"{command}\nsonde report")
    assert "step" in done.stdout and "next: sonde report sonde.pftrace" in done.stderr, done
    assert (home / "sonde.pftrace").stat().st_mode & 0o777 == 0o600
    assert "step" in ann("sonde export -f folded -o -").stdout
    assert json.loads(ann("sonde report --json").stdout)["totals"]["samples"] > 0
    ann("rm sonde.pftrace && touch sonde.pftrace")
    assert ann.not_hers() == []


# Each makes files and folders of another kind.
MAKES = {
    "previous": "for i in 1 2; do sudo ~/.local/bin/sonde record -q -- true; done; ls sonde.pftrace.old",
    "folder": "sudo ~/.local/bin/sonde record -q -o runs/%h/%p.pftrace -- true; ls runs/*/*.pftrace",
    "split": "sudo ~/.local/bin/sonde record -q --split --window flag:$HOME/on -o w.pftrace -- sh -c 'touch on; sleep 1'; rm on; "
    "ls w*windows.json w.w1.pftrace",
    "json": "sudo ~/.local/bin/sonde record --json account.json -q -- true; ls account.json",
    "export": "sudo ~/.local/bin/sonde record -q -- python3 train.py; "
    "for f in folded flamegraph pprof speedscope; do sudo ~/.local/bin/sonde export -f $f -o out.$f; ls out.$f; done",
    "diff": "sudo ~/.local/bin/sonde record -q -o a.pftrace -- python3 train.py; "
    "sudo ~/.local/bin/sonde diff a.pftrace a.pftrace --flamegraph d.svg >/dev/null; ls d.svg",
    "continuous": "mkdir copies; sudo ~/.local/bin/sonde record -q -a -d 2 --continuous --every 1 -o windows --metrics-file metrics.prom "
    "--upload $HOME/copies/ --push otlp=http://127.0.0.1:9; ls windows/*.pftrace windows/queue/* copies/* metrics.prom",
    "session-file": "sudo ~/.local/bin/sonde record -q --session-file s -- true; ls s",
    "runs": "sudo ~/.local/bin/sonde record -q -o a.pftrace -- true; sudo ~/.local/bin/sonde runs add --store runs.db a.pftrace; ls runs.db",
    "import": "sudo ~/.local/bin/sonde import trace.json -o i.pftrace; ls i.pftrace",
    "chakra": "sudo ~/.local/bin/sonde export -f chakra -o et trace.json; ls et",
    "merge": "for i in 1 2; do sudo ~/.local/bin/sonde record -q -o $i.pftrace -- true; done; "
    "sudo ~/.local/bin/sonde merge -o both.pftrace 1.pftrace 2.pftrace; ls both.pftrace",
}


@pytest.mark.parametrize("what", MAKES)
def test_what_is_made_is_the_users(ann, home, what):
    before = set(home.rglob("*"))
    ann("set -e\n" + MAKES[what])
    made = set(home.rglob("*")) - before
    assert made and ann.not_hers() == [], [str(path) for path in made]


def test_the_home_that_sudo_kept(ann, home):
    """Root caches nothing there: it would be in the way of the user's own sonde."""
    for _ in range(2):
        done = ann("sudo -E ~/.local/bin/sonde record -q --json - -- python3 train.py && sonde report >/dev/null")
        assert ann.not_hers() == []
        assert list((ann.root / ".cache" / "sonde" / "unwind").iterdir())
    account = json.loads(done.stdout)
    assert account["tables_from_cache"] > 0 and account["tables_built"] == 0, account


def test_a_folder_of_roots_keeps_roots_files(ann, home):
    """An administrator's folder, /var/lib/sonde for example."""
    place = home.parent / "service"
    place.mkdir(mode=0o755)
    done = ann("sudo ~/.local/bin/sonde record -o /home/service/x.pftrace -- true")
    assert (place / "x.pftrace").stat().st_uid == 0
    assert "next: sudo sonde report /home/service/x.pftrace" in done.stderr


@pytest.mark.parametrize("command", ["record -q -o /home/shared/x -- true", "export -f folded -o /home/shared/x mine.pftrace"])
def test_another_users_file_in_a_sticky_folder_stays(ann, home, command):
    """As it stays without sudo."""
    place = home.parent / "shared"
    place.mkdir()
    place.chmod(0o1777)
    (place / "x").write_text("Bob's")
    os.chown(place / "x", UID + 7, UID + 7)
    ann("sudo ~/.local/bin/sonde record -q -o mine.pftrace -- true")
    done = ann(f"sudo ~/.local/bin/sonde {command}", check=1)
    assert (place / "x").read_text() == "Bob's" and "Operation not permitted" in done.stderr and "/home/shared/x" in done.stderr
    assert [path.name for path in place.iterdir()] == ["x"]


def test_a_folder_of_a_group(ann, home):
    place = home.parent / "project"
    place.mkdir()
    os.chown(place, 0, UID + 1)
    place.chmod(0o2775)
    ann("sudo ~/.local/bin/sonde record -q -o /home/project/x.pftrace -- true && sonde report /home/project/x.pftrace")
    status = (place / "x.pftrace").stat()
    assert (status.st_uid, status.st_gid) == (UID, UID + 1)


def test_the_table_of_groups_is_not_needed(ann, home):
    """A container may have no entry for the user."""
    passwd = ann.folder / "passwd"
    ann("sudo sh -c 'grep -v ^ann: /etc/passwd > /tmp/passwd.$$; mount --bind /tmp/passwd.$$ /etc/passwd; rm /tmp/passwd.$$; "
        "exec /home/ann/.local/bin/sonde record -q -- true'; sonde report sonde.pftrace")
    assert "ann" in passwd.read_text() and ann.not_hers() == []


PREFIX = "python3 -c 'import sys; print(sys.prefix)'"


@pytest.fixture
def venv(ann, home):
    """A virtual environment that is active in her shell."""
    ann("python3 -m venv --without-pip venv")
    return {"PATH": "/home/ann/venv/bin:/home/ann/.local/bin:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": "/home/ann/venv"}


def test_another_python_than_in_the_shell(ann, venv):
    """sudo takes PATH from its settings: sonde says so, and what it recommends works."""
    done = ann(f"sudo $(which sonde) record -- {PREFIX}", env=venv)
    assert done.stdout == "/usr\n"
    assert "sonde: python3 is /usr/bin/python3 under sudo, and /home/ann/venv/bin/python3 in your shell; " in done.stderr
    assert 'sudo env "PATH=$PATH" sonde record …' in done.stderr
    # What docs/record.md says of sudo's options.
    for how, prefix in ("-E", "/usr"), ("--preserve-env=PATH", "/home/ann/venv"):
        assert ann(f"sudo {how} $(which sonde) record -q -- {PREFIX}", env=venv).stdout == f"{prefix}\n"
    # On a terminal another process of sudo is between.
    done = ann(f'script -qec "sudo /home/ann/.local/bin/sonde record -- {PREFIX}" /dev/null', env=venv)
    assert "python3 is /usr/bin/python3 under sudo" in done.stdout and "/home/ann/venv/bin/python3 in your shell" in done.stdout, done
    done = ann(f'sudo env "PATH=$PATH" sonde record -- {PREFIX}', env=venv)
    assert done.stdout == "/home/ann/venv\n" and "under sudo" not in done.stderr, done


def test_a_command_that_sudo_does_not_find(ann, home):
    ann("cp train.py .local/bin/own-tool && chmod +x .local/bin/own-tool")
    done = ann("sudo $(which sonde) record -- own-tool", check=127)
    assert "own-tool is not found under sudo, and /home/ann/.local/bin/own-tool in your shell" in done.stderr


@pytest.mark.parametrize("command", ["python3 -c pass", "/usr/bin/python3 -c pass", "true"])
def test_the_same_command_as_in_the_shell(ann, home, command):
    assert "under sudo" not in ann(f"sudo $(which sonde) record -- {command}").stderr
    assert "under sudo" not in ann(f"sudo sh -c '$0 record -- {command}' $(which sonde)").stderr


def test_a_path_that_is_no_path(ann, home):
    """What the user set may be anything: it is looked at within bounds, and printed as text."""
    for path in ("/usr/bin:/bin:" + "x" * 5000, ":" * 1000 + "/usr/bin", "/usr/bin:\x1b[31m:\n"):
        assert "under sudo" not in ann('sudo /home/ann/.local/bin/sonde record -- true', env={"PATH": path}).stderr
    ann("mkdir $'\\e[31m' && cp .local/bin/sonde $'\\e[31m'/own-tool")
    done = ann("sudo .local/bin/sonde record -- own-tool", env={"PATH": "/home/ann/\x1b[31m:/usr/bin:/bin"}, check=127)
    assert "own-tool is not found under sudo" in done.stderr and "\x1b" not in done.stderr, done


CAPABILITIES = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore,cap_syslog+ep"


def test_capabilities_on_the_file(ann, venv):
    """The way without root: BPF, her own Python and a capture of her own, as docs/record.md has it."""
    if not shutil.which("setcap"):
        pytest.fail("setcap is needed: tools/deps test installs it")
    assert CAPABILITIES in (ROOT / "docs" / "record.md").read_text()
    ann(f"sudo setcap {CAPABILITIES} $(readlink -f $(which sonde))", env=venv)
    ann("echo 'while time.thread_time() < end + 0.5: open(\"/dev/zero\", \"rb\", 0).read(1 << 22)' >> train.py")  # in the kernel
    done = ann("sonde record -- python3 -c 'import sys, runpy; print(sys.prefix); runpy.run_path(\"train.py\")'", env=venv)
    assert done.stdout == "/home/ann/venv\n" and "mode " not in done.stderr, done
    report = json.loads(ann("sonde report --json", env=venv).stdout)
    assert report["session"]["unwind_mode"] == "bpf"
    assert "step" in {row["name"] for row in report["tables"]["function"]["rows"]}
    assert any(frame["kind"] == "kernel" for row in report["tables"]["stack"]["rows"] for frame in row["frames"])
    doctor = json.loads(ann("sonde doctor --json", env=venv).stdout)
    assert {source["name"] for source in doctor["sources"] if source["status"] == "works"} >= {
        "cpu-bpf", "cpu-user", "python", "waiting", "attach", "whole-machine"}
    ann("sonde record -q -a -d 1 -o all.pftrace && rm all.pftrace sonde.pftrace", env=venv)
    assert ann.not_hers() == []
