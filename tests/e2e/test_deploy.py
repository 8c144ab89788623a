# SPDX-License-Identifier: Apache-2.0
"""The files of docs/deploy: systemd takes the unit, the DaemonSet is what Kubernetes reads, sonde knows their options, and their
commands do what they are for and no harm to the machine."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from receiver_double import ReceiverDouble
from test_continuous import windows

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNIT, DAEMON_SET, DOCKERFILE = DEPLOY / "sonde.service", DEPLOY / "sonde-daemonset.yaml", DEPLOY / "Dockerfile"


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return parser["Service"]


def instructions():
    """(word, rest) of each instruction of the Dockerfile."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    return [line.split(maxsplit=1) for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]


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


# ---- their commands, on a node that notes its signals ----

NODE = [shutil.which("unshare"), "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, Path(__file__).with_name("noting_init.py")]
TOKEN = "a-token-that-nobody-sees"


@pytest.fixture
def on_a_node(sonde, tmp_path):
    """on_a_node(main=, others=, ready=, signal=, limit_s=) -> what noting_init.py prints. The program `sonde` is on PATH."""
    if os.geteuid() != 0:
        pytest.skip("making namespaces needs root")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sonde").symlink_to(sonde.path)

    def run(path=os.environ["PATH"], main=None, others=(), ready="", signal="SIGTERM", limit_s=60):
        plan = {"main": main, "others": others, "ready": str(ready), "signal": signal, "limit_s": limit_s}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        done = subprocess.run([*NODE, tmp_path / "plan.json"], capture_output=True, text=True, timeout=300,
                              env={**sonde.environment, "PATH": f"{tmp_path / 'bin'}:{path}", "NODE_NAME": "node7"})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def placed(words, places):
    """Words of a command line with folders and addresses of the manifest replaced by those of the test."""
    for theirs, ours in places.items():
        words = [word.replace(theirs, str(ours)) for word in words]
    return words


def places_of(only, url, tmp_path):
    """For placed(): the volumes of the DaemonSet as folders, which are made, with a token, and the receiver's address."""
    for name in ("windows", "metrics", "token"):
        (tmp_path / name).mkdir()
    (tmp_path / "token/token").write_text(TOKEN + "\n")
    volumes = sorted(only["volumeMounts"], key=lambda mount: -len(mount["mountPath"]))
    return {"$(NODE_NAME)": "node7", "https://captures.example": url,
            **{mount["mountPath"]: tmp_path / mount["name"] for mount in volumes}}


def commands_beside(only):
    """All that the kubelet runs in a container beside its main command."""
    hooks = [*only.get("lifecycle", {}).values(), *(only.get(f"{kind}Probe", {}) for kind in ("liveness", "readiness", "startup"))]
    return [hook["exec"]["command"] for hook in hooks if "exec" in hook]


def check_windows(report, folder):
    """What a recorder left that ended in order."""
    assert windows(folder) and not list(folder.glob("*.open.pftrace"))
    assert all(report(path)["losses"]["recording_complete"] for path in windows(folder))


def test_the_daemon_sets_commands(on_a_node, report, tmp_path):
    """hostPID: process 1 is the node's init. The pod's end is SIGTERM; the last window is complete, and delivered."""
    pod, only = container()
    receiver = ReceiverDouble()
    try:
        places = places_of(only, receiver.url, tmp_path)
        seen = on_a_node(main=placed([*only["command"], *only["args"]], places), others=commands_beside(only),
                         ready=tmp_path / "windows/*.open.pftrace", limit_s=pod["terminationGracePeriodSeconds"])
    finally:
        receiver.close()
    assert seen["signals"] == [], "the node's init got them"
    assert seen["status"] == 0 and not any(seen["others"]), seen
    made = windows(tmp_path / "windows")
    check_windows(report, tmp_path / "windows")
    taken = receiver.taken()
    assert sorted(request.path for request in taken) == [f"/node7/{path.name}" for path in made]
    assert all(request.headers["Authorization"] == f"Bearer {TOKEN}" for request in taken)
    assert f"sonde_windows_total {len(made)}" in (tmp_path / "metrics/sonde.prom").read_text()


def test_the_units_commands(on_a_node, report, tmp_path):
    lines = {key: shlex.split(value) for key, value in unit().items() if key.startswith("Exec") and value}
    commands = {key: placed([words[0].lstrip("-@:+!"), *words[1:]], {"/usr/bin/sonde": tmp_path / "bin/sonde", "/var/lib/sonde": tmp_path / "windows"})
                for key, words in lines.items()}
    seen = on_a_node(main=commands.pop("ExecStart"), others=list(commands.values()), ready=tmp_path / "windows/*.open.pftrace",
                     signal=unit()["KillSignal"], limit_s=int(unit()["TimeoutStopSec"]))
    assert seen["signals"] == [] and seen["status"] == 0 and not any(seen["others"]), seen
    check_windows(report, tmp_path / "windows")


def test_the_images_commands(on_a_node, tmp_path):
    """What the shell of a RUN line does by itself; the programs that it calls are stand-ins. test_release.py runs these for real."""
    lines = [rest for word, rest in instructions() if word == "RUN"]
    (tmp_path / "stand-ins").mkdir()
    for name in {word for line in lines for word in re.findall(r"(?:^|&& |; )([a-z][\w-]*)", line)} - {"kill", "export", "set"}:
        (tmp_path / "stand-ins" / name).write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / "stand-ins" / name).chmod(0o755)
    (entry,) = [json.loads(rest) for word, rest in instructions() if word == "ENTRYPOINT"]
    seen = on_a_node(path=tmp_path / "stand-ins", others=[*(["/bin/sh", "-c", line] for line in lines), [*entry, "version"]])
    assert seen["signals"] == [] and not any(seen["others"]), seen


WITHOUT_LIBRARIES = 'for file in $(ldconfig -p | sed -n "s/.*libcurl.* => //p"); do mount --bind /dev/null "$(realpath "$file")"; done; exec "$0" "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="hiding libraries needs root")
def test_the_image_has_what_the_daemon_sets_options_need(sonde, tmp_path):
    """Where no library is that sonde opens by itself, it names the packages of those that it needs."""
    _, only = container()
    words = placed(only["args"], places_of(only, "http://127.0.0.1:9", tmp_path))
    done = sonde(*words, prefix=["unshare", "--mount", "sh", "-c", WITHOUT_LIBRARIES], check=1)
    needed = set(re.findall(r"\(Debian: ([\w.+-]+)\)", " ".join(done.stderr.split())))
    assert needed, done.stderr
    installed = {word for key, rest in instructions() if key == "RUN"
                 for words in re.findall(r"apt-get install ([^&;]*)", rest) for word in words.split()}
    assert needed | {"ca-certificates"} <= installed, "https needs certificates"


def most_seconds_at_the_end():
    """What a recorder may need from the signal to its end, by the limits in the sources."""
    limits = {"WAIT_FOR_TABLES_NS": "collect/session/session.c", "LATE_NAMES_NS": "collect/session/internal.h",
              "SESSION_LINES_NS": "collect/session/internal.h", "FINISH_NS": "cli/record/continuous.c"}
    return sum(int(re.search(rf"^#define {name} +\((\d+) \* NS_PER_S\)", (ROOT / "src" / path).read_text(), re.MULTILINE)[1])
               for name, path in limits.items())


def test_the_time_that_they_give_a_recorder_to_end():
    """After it they are killed."""
    pod, _ = container()
    assert pod["terminationGracePeriodSeconds"] > most_seconds_at_the_end()
    assert int(unit()["TimeoutStopSec"]) > most_seconds_at_the_end()
