# SPDX-License-Identifier: Apache-2.0
"""Kernels before 5.17, whose BPF programs have no loops: sonde says so, and sends nobody to root who is root. The kernel is ours
behind a stand-in (tests/doubles/kernel), which has the release of Ubuntu 22.04 and refuses the helper bpf_loop as that one does."""

import os

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="loading BPF programs needs root")
LACKS = "Linux 5.15 lacks bpf_loop, which came with 5.17"


@pytest.fixture
def old(sonde_path):
    library = sonde_path.parent / "tests" / "doubles" / "kernel" / "libold-kernel-double.so"
    assert library.exists(), library
    return {"LD_PRELOAD": str(library), "OLD_KERNEL": "5.15.0-119-generic"}


def check_not_sent_to_root(text):
    assert not any(words in text for words in ("sudo", "as root", "run as root")), text


@needs_root
@pytest.mark.parametrize("options", [[], ["--wait", "exact"], ["-F", "499"]])
def test_root_is_told_of_the_kernel(sonde, workload, tmp_path, old, options):
    done = sonde("record", "-o", "x.pftrace", *options, "--", *workload("spin", 0.5), env=old, check=0)
    assert f"mode    stacks are copied and unwound in user space: {LACKS}" in done.stderr
    check_not_sent_to_root(done.stderr)
    text = sonde("report", "x.pftrace", check=0).stdout
    assert f"Not in the kernel: {LACKS}." in text
    check_not_sent_to_root(text)
    assert sonde("report", "--json", "x.pftrace").json()["session"]["unwind_mode_reason"] == LACKS


@needs_root
def test_what_python_lacks(sonde, old):
    program = "import time\nwhile time.thread_time() < 0.5: sum(range(2000))"
    done = sonde("record", "-o", "x.pftrace", "--wait", "sample", "--", "python3", "-c", program, env=old, check=0)
    assert f"waiting threads are not recorded: that needs the BPF mode: {LACKS}" in done.stderr, done
    text = sonde("report", "x.pftrace", check=0).stdout
    assert "Python frames need the BPF mode" in text
    check_not_sent_to_root(text)


@needs_root
@pytest.mark.parametrize("options", [["-a"], ["--mode", "bpf", "--", "true"]])
def test_what_cannot_be_recorded(sonde, old, options):
    done = sonde("record", *options, env=old, check=1)
    assert LACKS in done.stderr
    check_not_sent_to_root(done.stderr)


@needs_root
def test_doctor(sonde, old):
    """What needs the BPF mode does not work, or works partly, and says why; what does not need it works."""
    done = sonde("doctor", "--json", env=old).json()
    sources = {source["name"]: source for source in done["sources"]}
    plain = {source["name"]: source for source in sonde("doctor", "--json").json()["sources"]}
    for name in ("cpu-bpf", "python", "waiting", "waiting-exact", "whole-machine"):
        assert (sources[name]["status"], sources[name]["detail"]) == ("no", LACKS), sources[name]
        assert "5.17" in sources[name]["fix"]
    for name in ("cpu-user", "attach", "process-events", "kernel-symbols"):
        assert sources[name] == plain[name]
    checks = {check["name"]: check for check in done["checks"]}
    assert checks["kernel-release"]["detail"] == checks["bpf-loop"]["detail"] == LACKS


@needs_root
def test_a_distribution_that_has_it_earlier(sonde, old):
    """RHEL 9 has BPF of later kernels in its 5.14: what can be tried counts, not the number."""
    environment = {"LD_PRELOAD": old["LD_PRELOAD"], "OLD_KERNEL": "5.14.0-427.el9.x86_64", "OLD_KERNEL_HAS_LOOPS": "1"}
    done = sonde("doctor", "--json", env=environment).json()
    assert next(check for check in done["checks"] if check["name"] == "kernel-release")["status"] == "works"
    assert next(source for source in done["sources"] if source["name"] == "cpu-bpf")["status"] == "works"
    sonde("record", "-q", "-o", "x.pftrace", "--", "true", env=environment, check=0)
    assert sonde("report", "--json", "x.pftrace").json()["session"]["unwind_mode"] == "bpf"


def test_an_ordinary_user(sonde_unprivileged, old):
    """Becoming root would not help: the release is said, too."""
    library = sonde_unprivileged.directory / "old.so"
    library.write_bytes(open(old["LD_PRELOAD"], "rb").read())
    environment = {**old, "LD_PRELOAD": str(library)}
    done = sonde_unprivileged("record", "-o", "x.pftrace", "--", "true", env=environment)
    if done.status == 0:  # kernel.perf_event_paranoid lets users sample
        assert "and bpf_loop, which came with Linux 5.17 (this is 5.15)" in done.stderr
    doctor = sonde_unprivileged("doctor", "--json", env=environment).json()
    source = next(entry for entry in doctor["sources"] if entry["name"] == "cpu-bpf")
    assert "5.15.0-119-generic" in source["detail"] and "5.17" in source["fix"], source
