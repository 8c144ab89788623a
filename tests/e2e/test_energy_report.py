# SPDX-License-Identifier: Apache-2.0
"""Replayed energy of real programs, from the recording to the answers: what was measured is what is shown."""

import json
import os

import pytest
from perfetto_packets import PERF_SAMPLE, fields, packets

WATTS, IDLE_W = 40, 20
DOMAIN = {"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": 10, "idle_w": IDLE_W}


def sockets(tmp_path):
    """Two packages of one processor each, with 40 W."""
    path = tmp_path / "sockets.jsonl"
    names = ("package-0", "package-1")
    domains = [{**DOMAIN, "name": name, "cpus": str(number), "limit_w": 80} for number, name in enumerate(names)]
    lines = [{"sonde_energy": 1, "domains": domains}]
    lines += [{"t_ms": t, "domain": name, "energy_j": WATTS * t / 1000} for t in range(0, 120_000, 10) for name in names]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{path}"


@pytest.fixture
def replay(tmp_path):
    path = tmp_path / "run.jsonl"
    lines = [{"sonde_energy": 1, "domains": [DOMAIN]}]
    lines += [{"t_ms": t, "domain": "package-0", "energy_j": WATTS * t / 1000} for t in range(0, 120_000, 10)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{path}"


def report(sonde, capture, *options):
    return json.loads(sonde("report", "--json", *options, capture).stdout)


def folded_uj(sonde, capture, *options):
    text = sonde("export", "-f", "folded", "--roots", "process", "--weight", "energy", "-o", "-", *options, capture).stdout
    return {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in text.splitlines())}


def test_joules_of_a_program(sonde, workload, replay, tmp_path):
    """All that was measured is charged to its lines, to idle, or to nobody; the report and the exports agree."""
    capture = tmp_path / "c.pftrace"
    sonde("record", "--energy", replay, "-o", capture, "--", *workload("spin", 1))
    energy = report(sonde, capture)["energy"]
    (domain,) = energy["domains"]
    seconds = domain["measured_ns"] / 1e9
    assert domain["is_replayed"] and seconds > 0.5
    assert energy["measured_j"] == pytest.approx(WATTS * seconds, rel=1e-3)
    assert energy["idle_j"] == pytest.approx(IDLE_W * seconds, rel=1e-3)
    parts = energy["idle_j"] + energy["attributed_j"] + energy["gaps_j"] + energy["unattributed_j"]
    assert parts == pytest.approx(energy["measured_j"], rel=1e-8)
    assert energy["attributed_j"] > 0 and domain["conservation_error"] <= 1e-9
    stacks = folded_uj(sonde, capture)
    assert sum(stacks.values()) == pytest.approx(energy["measured_j"] * 1e6, abs=3)
    ours = sum(value for stack, value in stacks.items() if not stack.startswith("package-0;"))
    assert ours == pytest.approx(energy["attributed_j"] * 1e6, abs=3)
    assert "package-0 (replayed)" in sonde("report", capture).stdout


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="needs CPUs 0 and 1")
def test_a_socket_is_charged_to_what_ran_on_it(sonde, workload, tmp_path):
    """Not to programs on the other one; and its power is shown as a share of its limit."""
    capture = tmp_path / "c.pftrace"
    sonde("record", "--energy", sockets(tmp_path), "-o", capture, "--", "taskset", "-c", "1", *workload("spin", 1))
    used, other = sorted(report(sonde, capture)["energy"]["domains"], key=lambda domain: -domain["attributed_j"])
    assert (used["name"], used["cpus"]) == ("package-1", "1")
    assert used["attributed_j"] > 10 * other["attributed_j"]
    assert used["limit_w"] == 80 and used["limit_share"] == pytest.approx(WATTS / 80, rel=1e-3)
    assert "package-1 took 50 % of its power limit of 80 W on average" in sonde("report", capture).stdout


def test_a_window_has_its_own_joules(sonde, workload, replay, tmp_path):
    """Nothing of what was measured outside of the window is in it; readings at its edges are cut."""
    capture = tmp_path / "c.pftrace"
    sonde("record", "--energy", replay, "--window", "time:205ms..505ms", "-o", capture, "--", *workload("spin", 1))
    whole = report(sonde, capture)
    energy, recorded_s = whole["energy"], whole["totals"]["duration_ns"] / 1e9
    assert 0 < energy["domains"][0]["measured_ns"] / 1e9 <= recorded_s
    assert energy["measured_j"] == pytest.approx(WATTS * energy["domains"][0]["measured_ns"] / 1e9, rel=1e-3)
    assert energy["domains"][0]["cut_intervals"] in (1, 2)
    assert report(sonde, capture, "--window", "1")["energy"]["measured_j"] == pytest.approx(energy["measured_j"], rel=1e-8)


def test_top_by_energy(sonde, workload, replay):
    command = ("top", "-b", "-n", "1", "-i", "1", "--weight", "energy", "--energy", replay)
    text = sonde(*command, "--", *workload("spin", 4), check=0).stdout
    assert "functions by energy" in text and "[idle]" in text and "Self energy" in text
    assert "Self time" not in text


def test_what_was_not_measured_is_one_sentence_unless_asked_for(sonde, workload, tmp_path):
    """The report of a machine without sensors is not a list of what it lacks; --by energy is."""
    capture = tmp_path / "c.pftrace"
    sonde("record", "-o", capture, "--", *workload("spin", 0.2))
    energy = report(sonde, capture)["energy"]
    if energy["domains"]:
        pytest.skip("this machine has a sensor of power")
    text, section = sonde("report", capture).stdout, sonde("report", "--by", "energy", capture).stdout
    assert "Energy was not measured" in text and "--by energy" in text
    sources = [f"\n{absence['source']}: — " for absence in energy["absences"]]
    assert sources and all(source in section and source not in text for source in sources)


def test_energy_that_nobody_recorded(sonde, tmp_path):
    capture = tmp_path / "c.pftrace"
    sonde("record", "--energy", "off", "-o", capture, "--", "true")
    assert "Energy was not recorded: record without --energy off." in sonde("report", "--by", "energy", capture).stdout
    assert "Energy" not in sonde("report", capture).stdout


CPU_CLOCK_AND_FAULTS = "1:0,1:2"  # events of the kernel's own, which every machine has
NO_SUCH_EVENTS = "99:0,99:1"


def counts_of(capture):
    """Cycles and instructions of each sample that has them, and how many samples there are."""
    samples = [fields(message) for packet in packets(capture.read_bytes()) for message in packet.get(PERF_SAMPLE, [])]
    return [(sample[1702][0], sample[1703][0]) for sample in samples if 1702 in sample], len(samples)


@pytest.mark.parametrize("events", [CPU_CLOCK_AND_FAULTS, NO_SUCH_EVENTS])
def test_counters_of_processors(sonde, workload, replay, tmp_path, events):
    """Samples have what the CPU counted; the kernel's clock and page faults stand in for cycles and instructions."""
    capture = tmp_path / "c.pftrace"
    sonde("record", "--energy", replay, "-o", capture, "--", *workload("spin", 1), env={"SONDE_COUNTERS": events})
    counts, samples = counts_of(capture)
    found = report(sonde, capture)
    session, (domain,) = found["session"], found["energy"]["domains"]
    if session["unwind_mode"] != "bpf":
        pytest.skip("counters are read by the BPF sampler")
    assert domain["method"] == "cpu_time"  # the replay's power does not follow what the program does
    assert domain["nj_per_cycle"] is None
    if events == NO_SUCH_EVENTS:
        assert not counts and domain["why_by_time"] == "samples have no counts of cycles and instructions"
        return
    assert len(counts) > 0.95 * samples
    assert "no counts" not in domain["why_by_time"]
    period_ns = session["period_ns"]
    # A tick that came late has more than a period, and the one after it less.
    assert sorted(cycles for cycles, _ in counts)[len(counts) // 2] == pytest.approx(period_ns, rel=0.2)


def test_counts_of_windows(sonde, workload, replay, tmp_path):
    """What CPUs count between two windows is in no sample."""
    capture, flag, spin = tmp_path / "c.pftrace", tmp_path / "on", workload("spin")[0]
    script = f"touch {flag}; {spin} 0.5; rm {flag}; {spin} 2; touch {flag}; {spin} 0.5"
    sonde(
        *("record", "--energy", replay, "--window", f"flag:{flag}", "-o", capture, "--", "sh", "-c", script),
        env={"SONDE_COUNTERS": CPU_CLOCK_AND_FAULTS},
        check=0,
    )
    found = report(sonde, capture)
    if found["session"]["unwind_mode"] != "bpf":
        pytest.skip("counters are read by the BPF sampler")
    counts, _ = counts_of(capture)
    assert len(found["windows"]["rows"]) == 2 and counts
    assert max(cycles for cycles, _ in counts) < 1e9
