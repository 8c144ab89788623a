# SPDX-License-Identifier: Apache-2.0
"""Sources of power and energy: replays, made-up trees in /sys/class, and the stand-in for NVML."""

import json
import os
import re
import subprocess
import threading
import time

import pytest

INTEL_UJ = 262143328850
MICRO = 1_000_000

DOMAINS = [
    {"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": 10, "idle_w": 20.0},
    {"name": "core-0", "part": "cores", "parent": "package-0", "quality": "counter"},
]


def write_replay(path, readings, domains=DOMAINS):
    lines = [{"sonde_energy": 1, "domains": domains}, *readings]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def constant_power(seconds, watts):
    return [{"t_ms": t, "domain": "package-0", "energy_j": 1000 + watts * t / 1000} for t in range(0, seconds * 1000, 10)]


def energy_of(stderr):
    """{rail: (joules, watts)} of the account's line."""
    line = next((line for line in stderr.splitlines() if line.startswith("  energy")), "")
    return {name: (float(j), float(w)) for name, j, w in re.findall(r"(\S+) (\S+) J \((\S+) W", line)}


def test_replay_is_recorded_and_labelled(sonde, tmp_path):
    replay = write_replay(tmp_path / "run.jsonl", constant_power(60, 40))
    done = sonde("record", "--energy", f"replay:{replay}", "-o", tmp_path / "c.pftrace", "--", "true", check=0)
    joules, watts = energy_of(done.stderr)["package-0"]
    assert watts == pytest.approx(40, rel=1e-3)
    assert joules > 0
    assert "replayed" in done.stderr


def test_cost_of_all_that_was_measured(sonde, report, tmp_path):
    """A kWh is 3.6 MJ."""
    replay = write_replay(tmp_path / "run.jsonl", constant_power(60, 40))
    capture = tmp_path / "c.pftrace"
    sonde("record", "--energy", f"replay:{replay}", "-o", capture, "--", "sleep", "0.1", check=0)
    rates = ("--price", "250/MWh", "--co2", "0.4kg/kWh")
    energy = report(capture, *rates)["energy"]
    assert energy["cost"] == pytest.approx(energy["measured_j"] / 3.6e6 * 0.25)
    assert energy["co2_g"] == pytest.approx(energy["measured_j"] / 3.6e6 * 400)
    assert energy["co2_car_miles"] == pytest.approx(energy["co2_g"] / 400)
    assert "It cost" in sonde("report", *rates, capture, check=0).stdout
    assert report(capture)["energy"]["cost"] is None
    assert report(capture)["energy"]["co2_car_miles"] is None


@pytest.mark.parametrize(
    "text, reason",
    [
        ('{"t_ms":0,"domain":"package-0","energy_j":"1"}\n', 'line 2: energy_j is "1", not a number'),
        ('{"t_ms":0,"domain":"gpu9","energy_j":1}\n', "line 2: the first line has no domain gpu9"),
        (
            '{"t_ms":5,"domain":"package-0","energy_j":1}\n{"t_ms":4,"domain":"package-0","energy_j":2}\n',
            "line 3: t_ms of package-0 is 4 after 5",
        ),
    ],
)
def test_faulty_replay_starts_nothing(sonde, tmp_path, text, reason):
    replay = write_replay(tmp_path / "run.jsonl", [])
    replay.write_text(replay.read_text() + text)
    started = tmp_path / "started"
    done = sonde("record", "--energy", f"replay:{replay}", "-o", tmp_path / "c.pftrace", "--", "touch", started)
    assert done.status != 0
    assert reason in done.stderr
    assert not started.exists()


def test_estimates_have_fields_of_their_own(sonde, report, workload, tmp_path):
    """By the time that processors are busy; never in a sum, and nothing is charged with them."""
    rails = [{"name": "package-0", "part": "cpu", "idle_w": 10, "busy_w": 50, "relative_error": 0.25}]
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"sonde_energy_model": 1, "domains": rails}))
    capture = tmp_path / "c.pftrace"
    done = sonde("record", "--energy", "off", "--energy-model", model, "-o", capture, "--", *workload("spin", 1), check=0)
    assert "estimated" in done.stderr
    energy = report(capture)["energy"]
    (rail,) = energy["domains"]
    seconds = rail["measured_ns"] / 1e9
    assert (rail["source"], rail["quality"], rail["measured_j"]) == ("model", "estimated", None)
    assert rail["est_energy_j"] >= 10 * seconds + 50 * 0.9 * min(1, seconds) - 0.1, "a second of one processor, and more"
    assert rail["est_energy_j"] <= (10 + 50 * os.cpu_count()) * seconds * 1.05
    assert rail["est_uncertainty_j"] == pytest.approx(rail["est_energy_j"] * 0.25)
    assert energy["measured_j"] is energy["attributed_j"] is None and energy["counted"] == []
    refused = sonde("record", "--energy-model", model, "--require-energy", "cpu", "-o", capture, "--", "true")
    assert refused.status == 1 and "cannot be measured" in refused.stderr


def test_replay_of_a_newer_format(sonde, tmp_path):
    replay = tmp_path / "run.jsonl"
    replay.write_text('{"sonde_energy":2,"domains":[]}\n')
    done = sonde("record", "--energy", f"replay:{replay}", "--", "true")
    assert done.status != 0 and "use a newer sonde" in done.stderr


def test_replay_that_is_cut_says_so(sonde, tmp_path):
    replay = write_replay(tmp_path / "run.jsonl", constant_power(60, 40))
    replay.write_text(replay.read_text() + '{"t_ms":70000,"dom')
    done = sonde("record", "--energy", f"replay:{replay}", "-o", tmp_path / "c.pftrace", "--", "true", check=0)
    assert "is cut off: its last line" in done.stderr


def test_unknown_source_is_refused(sonde, tmp_path):
    done = sonde("record", "--energy", "ipmi", "--", "true")
    assert done.status != 0
    assert "there is no source of energy ipmi" in done.stderr and "powercap" in done.stderr


def test_baseline_needs_a_command(sonde):
    done = sonde("record", "--energy-baseline", "1", "-a", "-d", "1")
    assert done.status != 0 and "--energy-baseline" in done.stderr


# ---- a made-up /sys/class ----


class Tree:
    """A /sys/class of our own, with one package whose counter runs by the clock at so many watts."""

    def __init__(self, folder, watts, start_uj=INTEL_UJ - MICRO):
        self.folder, self.watts, self.start_uj = folder, watts, start_uj
        self.failing = False
        zone = folder / "powercap" / "intel-rapl:0"
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "max_energy_range_uj").write_text(f"{INTEL_UJ}\n")
        (zone / "constraint_0_name").write_text("long_term\n")
        (zone / "constraint_0_power_limit_uw").write_text(f"{125 * MICRO}\n")
        self.counter = os.open(zone / "energy_uj", os.O_CREAT | os.O_WRONLY, 0o444)
        self.begin = time.monotonic()
        self.step()
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def step(self):
        value = int(self.start_uj + self.watts * MICRO * (time.monotonic() - self.begin)) % INTEL_UJ
        # In place and of one length: no reader finds half a number.
        os.pwrite(self.counter, b"n/a          \n" if self.failing else b"%013d\n" % value, 0)

    def run(self):
        while not self.ending.wait(0.003):
            self.step()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        os.close(self.counter)

    @property
    def prefix(self):
        return ["unshare", "--mount", "sh", "-c", f'mount --bind {self.folder} /sys/class && exec "$0" "$@"']


@pytest.fixture
def tree(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting over /sys needs root")
    with Tree(tmp_path / "class", 50) as made:
        if subprocess.run([*made.prefix, "true"], capture_output=True).returncode != 0:
            pytest.skip("this machine does not let us make namespaces")
        yield made


def test_powercap_is_measured_through_a_wrap(sonde, tree, tmp_path):
    done = sonde(
        "record", "--energy", "powercap", "-o", tmp_path / "c.pftrace", "--", "sleep", "1", prefix=tree.prefix, check=0
    )
    joules, watts = energy_of(done.stderr)["package-0"]
    assert watts == pytest.approx(50, rel=0.2)
    assert joules >= 25  # the counter began at 0 again on the way
    assert "is not known for" not in done.stderr


def test_source_that_fails_on_the_way_is_a_gap(sonde, tree, tmp_path):
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    script = f"sleep 0.2; echo ready; {wait}; sleep 0.2"
    process = sonde.start(
        *("record", "--energy", "powercap", "-o", tmp_path / "c.pftrace", "--", "sh", "-c", script),
        prefix=tree.prefix,
    )
    assert process.stdout.readline() == "ready\n"
    tree.failing = True
    time.sleep(0.5)  # the time of which nothing is known
    tree.failing = False
    (tmp_path / "go").touch()
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    assert re.search(r"the energy of package-0 \(powercap\) is not known for [\d.]+ s of [\d.]+ s", stderr)
    assert "it could not be read: Invalid argument" in stderr


def test_required_energy_that_is_missing_starts_nothing(sonde, tree, tmp_path):
    started = tmp_path / "started"
    done = sonde(
        *("record", "--energy", "powercap,hwmon", "--require-energy", "cpu,gpu", "-o", tmp_path / "c.pftrace"),
        *("--", "touch", started),
        prefix=tree.prefix,
    )
    assert done.status not in (0, 126, 127)
    assert "energy of gpu cannot be measured" in done.stderr
    assert "/sys/class/hwmon" in done.stderr and "No such file or directory" in done.stderr
    assert "powercap:" not in done.stderr and "not tried, as --energy does not name them: nvml" in done.stderr
    assert not started.exists() and not (tmp_path / "c.pftrace").exists()
    sonde(
        *("record", "--energy", "powercap", "--require-energy", "cpu", "-o", tmp_path / "c.pftrace"),
        *("--", "touch", started),
        prefix=tree.prefix,
        check=0,
    )
    assert started.exists()


def test_baseline_comes_before_the_command(sonde, tree, tmp_path):
    begin = time.monotonic()
    stamp = tmp_path / "stamp"
    sonde(
        *("record", "--energy", "powercap", "--energy-baseline", "0.5", "-o", tmp_path / "c.pftrace"),
        *("--", "cp", "/proc/uptime", stamp),
        prefix=tree.prefix,
        check=0,
    )
    assert float(stamp.read_text().split()[0]) - begin >= 0.5
    (rail,) = sonde("report", "--json", tmp_path / "c.pftrace", check=0).json()["energy"]["domains"]
    assert rail["idle_w"] == pytest.approx(tree.watts, rel=0.5)
    assert rail["limit_w"] == 125 and rail["limit_share"] == pytest.approx(rail["average_w"] / 125)


def test_doctor_shows_sources(sonde, tree):
    data = sonde("doctor", "--json", prefix=tree.prefix).json()
    sources = {source["name"]: source for source in data["energy"]}
    assert list(sources) == ["perf", "powercap", "hwmon", "battery", "nvml"]
    assert sources["powercap"]["status"] == "works"
    (domain,) = sources["powercap"]["domains"]
    assert domain["name"] == "package-0" and domain["part"] == "cpu"
    assert domain["quality"] in ("counter", "modelled")
    assert 0 < domain["cost_ns"] < domain["tick_ns"] / 100
    assert domain["period_ns"] > 0
    assert sources["battery"]["status"] == "no" and "/sys/class/power_supply" in sources["battery"]["detail"]
    text = sonde("doctor", prefix=tree.prefix).stdout
    assert "Power and energy:" in text
    for source in data["energy"]:
        assert f"  {source['status']:<8}{source['title']}\n" in text


# ---- the stand-in for NVML ----


@pytest.fixture
def nvml(sonde_path):
    folder = sonde_path.parent / "tests" / "doubles" / "nvml"
    assert (folder / "libnvidia-ml.so.1").exists()
    return lambda script: {"LD_LIBRARY_PATH": str(folder), "NVML_DOUBLE": script}


def test_gpus_are_measured(sonde, report, nvml, tmp_path):
    done = sonde(
        *("record", "--energy", "nvml", "--require-energy", "gpu", "-o", tmp_path / "c.pftrace", "--", "sleep", "1.5"),
        env=nvml("gpus=2 watts=300 limit=600") | {"CUDA_VISIBLE_DEVICES": "1"},
        check=0,
    )
    assert list(energy_of(done.stderr)) == ["gpu0", "gpu1"]
    for joules, watts in energy_of(done.stderr).values():
        assert watts == pytest.approx(300, rel=0.2)
        assert joules > 200
    for gpu in report(tmp_path / "c.pftrace")["energy"]["domains"]:
        assert gpu["limit_w"] == 600 and gpu["limit_share"] == pytest.approx(gpu["average_w"] / 600)


def test_mig_has_no_figure_and_a_reason(sonde, nvml, tmp_path):
    done = sonde("record", "--energy", "nvml", "-o", tmp_path / "c.pftrace", "--", "true", env=nvml("mig"), check=0)
    assert "divided into MIG instances" in done.stderr
    assert not energy_of(done.stderr)


def test_nvml_that_hangs_keeps_nobody(sonde, nvml, tmp_path):
    done = sonde(
        "record", "--energy", "nvml", "-o", tmp_path / "c.pftrace", "--", "true", env=nvml("hang"), check=0, timeout=60
    )
    assert "energy from nvml: it does not answer" in done.stderr
