# SPDX-License-Identifier: Apache-2.0
"""sonde doctor says what holds on this machine, for root and for an ordinary user."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from forbidden import forbidden

STATUSES = {"works", "partly", "no"}


def by_name(entries):
    return {entry["name"]: entry for entry in entries}


def check_shape(data):
    for entry in [*data["sources"], *data["checks"]]:
        assert entry["status"] in STATUSES
        if entry["status"] != "works":
            assert entry["detail"], f"{entry['name']} gives no reason"
    assert len(by_name(data["sources"])) == len(data["sources"])
    assert len(by_name(data["checks"])) == len(data["checks"])
    assert data["kernel"] == os.uname().release


def samples_cpu(data):
    sources = by_name(data["sources"])
    return any(sources[name]["status"] != "no" for name in ("cpu-bpf", "cpu-user"))


def test_status_says_whether_cpu_can_be_sampled(sonde):
    done = sonde("doctor", "--json")
    check_shape(done.json())
    assert done.status == (0 if samples_cpu(done.json()) else 1)


def test_text_tells_the_same_as_json(sonde):
    text = sonde("doctor").stdout
    data = sonde("doctor", "--json").json()
    for entry in data["sources"]:
        assert f"  {entry['status']:<8}{entry['title']}\n" in text
        if entry["fix"]:
            assert f"fix: {entry['fix']}\n" in text
    for entry in data["checks"]:
        assert f"  {entry['status']:<8}{entry['name']}" in text


def test_settings_are_the_kernels(sonde):
    settings = sonde("doctor", "--json").json()["settings"]
    for name in ("perf_event_paranoid", "kptr_restrict", "unprivileged_bpf_disabled"):
        path = Path("/proc/sys/kernel") / name
        assert settings[name] == (path.read_text().strip() if path.exists() else None)


def test_an_ordinary_user_gets_reasons_and_commands(sonde_unprivileged):
    done = sonde_unprivileged("doctor", "--json")
    data = done.json()
    check_shape(data)
    assert data["effective_uid"] != 0
    bpf = by_name(data["sources"])["cpu-bpf"]
    assert bpf["status"] == "no"
    assert "CAP_BPF" in bpf["detail"]
    assert bpf["fix"].startswith("sudo setcap ") and bpf["fix"].endswith("/sonde")
    assert done.status == (0 if samples_cpu(data) else 1)


def test_kernel_symbols_follow_kallsyms(sonde, sonde_unprivileged):
    def hidden(lines):
        return all(int(line.split()[0], 16) == 0 for line in lines[:100])

    own = by_name(sonde("doctor", "--json").json()["sources"])["kernel-symbols"]["status"]
    with open("/proc/kallsyms") as file:
        assert own == ("no" if hidden([next(file) for _ in range(100)]) else "works")
    unprivileged = by_name(sonde_unprivileged("doctor", "--json").json()["sources"])["kernel-symbols"]
    if unprivileged["status"] == "no":
        assert "kptr_restrict" in unprivileged["fix"]


BY_CAPABILITIES = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps", "+bpf,+perfmon",
                   "--ambient-caps", "+bpf,+perfmon"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give capabilities")
def test_what_disturbs_perf_is_said_where_it_does(sonde, unprivileged_program):
    def detail(text):
        return by_name(json.loads(text)["checks"])["sideband"]["detail"]

    assert "perf record" not in detail(sonde("doctor", "--json").stdout)
    command = [*BY_CAPABILITIES, unprivileged_program, "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "a perf record beside sonde needs --buildid-mmap" in detail(done.stdout)


def test_exit_status_1_when_no_sample_can_be_taken(sonde):
    done = sonde("doctor", "--json", prefix=forbidden("EPERM"))
    data = done.json()
    check_shape(data)
    sources = by_name(data["sources"])
    assert sources["cpu-bpf"]["status"] == sources["cpu-user"]["status"] == "no"
    assert "seccomp" in sources["cpu-user"]["detail"]
    assert "seccomp=unconfined" in sources["cpu-user"]["fix"] or os.geteuid() != 0
    assert done.status == 1


@pytest.mark.parametrize("version, status", [("1.0.0", "works"), ("0.6.0", "no"), (None, "partly")])
def test_what_is_found_of_rocm(sonde, tmp_path, version, status):
    library = tmp_path / "rocm" / "lib" / f"librocprofiler-sdk.so.{version}"
    library.parent.mkdir(parents=True)
    if version:
        library.write_text("")
        (library.parent / "librocprofiler-sdk.so").symlink_to(library.name)
    data = sonde("doctor", "--json", env={"ROCM_PATH": str(tmp_path / "rocm")}).json()
    found = by_name(data["checks"])["rocprofiler-sdk"]
    assert found["status"] == status
    assert str(library if version else library.parent) in found["detail"]
