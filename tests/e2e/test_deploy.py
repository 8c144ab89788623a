# SPDX-License-Identifier: Apache-2.0
"""The files of docs/deploy: systemd takes the unit, the DaemonSet is what Kubernetes reads, and sonde knows their options."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "docs" / "deploy"
UNIT, DAEMON_SET = DEPLOY / "sonde.service", DEPLOY / "sonde-daemonset.yaml"


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return parser["Service"]


def container():
    yaml = pytest.importorskip("yaml", reason="no PyYAML: install python3-yaml")
    (document,) = yaml.safe_load_all(DAEMON_SET.read_text())
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "DaemonSet")
    spec = document["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    (only,) = spec["template"]["spec"]["containers"]
    mounted = {mount["name"] for mount in only["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    return spec["template"]["spec"], only


def check_options(sonde, words):
    """sonde takes the command line: it complains of nothing but the last option, which there is not."""
    done = sonde(*words, "--no-such-option", check=2)
    assert "--no-such-option" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_the_unit(sonde, tmp_path):
    program, *words = shlex.split(unit()["ExecStart"])
    assert program == "/usr/bin/sonde"
    check_options(sonde, words)
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("no systemd-analyze here")
    copy = tmp_path / "sonde.service"  # with a program that is there
    copy.write_text(UNIT.read_text().replace("/usr/bin/sonde", sonde.path).replace("man:sonde-record(1)", "https://example.com/"))
    done = subprocess.run([analyze, "verify", "--man=no", copy], capture_output=True, text=True)
    about_it = [line for line in done.stderr.splitlines() if "sonde" in line]
    assert done.returncode == 0 and not about_it, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="capabilities are given by root")
def test_the_capabilities_suffice(sonde, report, tmp_path):
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv (util-linux) here")
    names = [name[len("CAP_"):].lower() for name in unit()["CapabilityBoundingSet"].split()]
    bounding = ",".join(["-all", *(f"+{name}" for name in names)])
    folder = tmp_path / "windows"
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        sonde("record", "-a", "--continuous", "--every", "2s", "-d", "2", "-o", folder, check=0,
              prefix=["setpriv", f"--bounding-set={bounding}", "--no-new-privs"])
    finally:
        busy.kill()
        busy.wait()
    windows = [report(path) for path in folder.glob("*.pftrace")]  # the first one may be short
    assert {data["session"]["unwind_mode"] for data in windows} == {"bpf"}
    assert sum(data["totals"]["samples"] for data in windows) > 0


def test_the_daemon_set(sonde):
    pod, only = container()
    assert pod["hostPID"] is True and only["securityContext"]["privileged"] is False
    assert only["command"] == ["sonde"]
    check_options(sonde, only["args"])
    added = {f"CAP_{name}" for name in only["securityContext"]["capabilities"]["add"]}
    assert added <= set(unit()["CapabilityBoundingSet"].split())
    assert not re.search("token=", " ".join(only["args"])), "no token in a list of processes"


# What Docker leaves root in a container by default.
DOCKER = ("chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write "
          "setfcap").split()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes capabilities away, which needs root")
@pytest.mark.parametrize("added, mode", [((), "copied and unwound in user space"), (("bpf", "perfmon"), "unwound in the kernel")])
def test_capabilities_of_a_container(sonde, tmp_path, added, mode):
    bounds = ",".join(["-all", *("+" + name for name in (*DOCKER, *added))])
    code = "import time\nwhile time.thread_time() < 0.3: sum(range(1000))"
    sonde("record", "-q", "-o", tmp_path / "run.pftrace", "--", "/usr/bin/python3", "-c", code,
          prefix=("setpriv", "--bounding-set", bounds), check=0)
    text = " ".join(sonde("report", tmp_path / "run.pftrace", check=0).stdout.split())
    assert f"stacks {mode}" in text
    assert ("needs CAP_BPF and CAP_PERFMON" in text) == (not added)
