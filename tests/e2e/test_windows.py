# SPDX-License-Identifier: Apache-2.0
"""Windows of real recordings: what opens and closes them, and that nothing outside of them is recorded."""

import json
import os
import re
import signal
import socket
import threading
import time

import pytest

STEPS = "steps:wait=2,warmup=1,active=3"


def events_of(sonde, capture):
    """The capture in Chrome's format: its windows as (begin, end), and all other events."""
    out = capture.with_suffix(".chrome.json")
    sonde("export", "-f", "chrome", "-o", out, capture, check=0)
    events = [event for event in json.loads(out.read_text())["traceEvents"] if event["ph"] != "M"]
    windows = [event for event in events if "opened_by" in event.get("args", {})]
    others = [event for event in events if event not in windows]
    return sorted((window["ts"], window["ts"] + window["dur"]) for window in windows), others


def outside(windows, events):
    """Those that are not inside of one window, by more than the format's nanosecond."""

    def is_inside(event):
        # A sample is drawn as long as its period, from its moment on.
        is_sample = event.get("cat") in ("native", "kernel", "python")
        begin, end = event["ts"], event["ts"] + (0 if is_sample else event.get("dur", 0))
        return any(first - 0.002 <= begin and end <= last + 0.002 for first, last in windows)

    return [event for event in events if not is_inside(event)]


@pytest.fixture
def windows(sonde, workload, tmp_path):
    """windows(window, steps-arguments, options) -> manifest, finished, events; nothing lies outside of the windows."""

    def run(window, *arguments, options=(), check=0):
        capture = tmp_path / "windows.pftrace"
        done = sonde("record", "-F", 999, "-o", capture, "--window", window, *options, "--",
                     *workload("steps", *arguments), check=check)
        manifest = json.loads((tmp_path / "windows.pftrace.windows.json").read_text())
        spans, events = events_of(sonde, capture)
        assert len(spans) == len(manifest["windows"])
        assert outside(spans, events) == []
        return manifest, done, events

    return run


def names(events, name):
    return [event for event in events if event["name"] == name]


def edges(manifest):
    return [(window["first_step"], window["last_step"], window["closed_by"]) for window in manifest["windows"]]


# ---- steps and calls ----


@pytest.mark.parametrize("mode", ["auto", "user"])
def test_steps(windows, mode):
    manifest, _, events = windows(STEPS + ",repeat=2", 0.6, 14, options=["--mode", mode])
    assert edges(manifest) == [(3, 5, "schedule"), (9, 11, "schedule")]
    assert [window["opened_by"] for window in manifest["windows"]] == ["steps", "steps"]
    # Each range of an active step is whole, and of the others there is nothing.
    assert len(names(events, "body")) == 6
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert [step["args"]["name"] for step in steps] == ["work"] * 6
    assert [int(step["name"].split("#")[1]) for step in steps] == [3, 4, 5, 9, 10, 11]
    # The sampler ran since the warm-up: each window has samples, with whatever else ran here.
    assert names(events, "main")


def test_windows_are_sampled_or_say_since_when(sonde, workload, tmp_path):
    capture = tmp_path / "sampled.pftrace"
    done = sonde("record", "-F", 999, "-o", capture, "--window", "steps:wait=2,warmup=2,active=3,repeat=3", "--",
                 *workload("steps", 2, 21), check=0)
    spans, events = events_of(sonde, capture)
    samples = [event["ts"] for event in events if event.get("cat") == "native"]
    unsampled = [span for span in spans if not any(span[0] <= ts <= span[1] for ts in samples)]
    assert len(spans) == 3
    assert not unsampled or "sampled late" in done.stderr, (unsampled, done.stderr)


def test_what_windows_of_steps_leave_to_their_defaults_is_shown(sonde, report, workload, tmp_path):
    """Short windows get a higher rate than 99 a second; between them no sample is taken."""
    capture = tmp_path / "c"
    command = workload("steps", 0.01, 8)
    done = sonde("record", "-o", capture, "--window", "steps:wait=2,active=4", "--", *command, check=0)
    assert "windows wait=2, warmup=1, active=4, repeat=1; 999 samples a second and CPU" in done.stderr
    assert report(capture)["session"]["period_ns"] == 1000000000 // 999


def test_windows_too_short_for_the_rate_get_advice(sonde, workload, tmp_path):
    done = sonde("record", "-F", 9, "-o", tmp_path / "c", "--window", "steps:wait=1,warmup=0,active=1", "--",
                 *workload("steps", 0.001, 4), check=0)
    advice = re.search(r"windows of (\S+) ms, as these are on average, hold at most (\d+) samples of a thread at 9"
                       r" samples a second; record with -F (\d+), or make them longer", done.stderr)
    assert advice, done.stderr
    length_ms, samples, rate = float(advice[1]), int(advice[2]), int(advice[3])
    assert samples <= length_ms / 1000 * 9 + 1 and (rate == 19999 or rate * length_ms / 1000 >= 99)


def test_calls(windows):
    manifest, _, _ = windows("calls:7-8,3", 0.4, 10)
    assert edges(manifest) == [(3, 3, "schedule"), (7, 8, "schedule")]
    assert manifest["windows"][0]["opened_by"] == "calls"


def test_exact_waits_are_cut(windows):
    manifest, _, _ = windows(STEPS, 0.4, 8, options=["--wait", "exact", "--wait-min", "0"])
    assert edges(manifest) == [(3, 5, "schedule")]


def test_from_the_first_step(windows):
    manifest, _, events = windows("steps:wait=0,warmup=0,active=2,repeat=0", 0.4, 5)
    assert edges(manifest)[:2] == [(0, 1, "schedule"), (2, 3, "schedule")]
    assert manifest["windows"][-1]["closed_by"] in ("leader-ended", "recording-ended")
    assert names(events, "body")


@pytest.mark.parametrize("steps, sentence", [
    (4, "no window was opened: 4 steps were made, and wait=4, warmup=2, active=3 needs 9"),
    (8, "8 steps were made, and wait=4, warmup=2, active=3, repeat=2 needs 18: 0 cycles are complete, "
        "and of the next one 2 of 3 active steps were recorded"),
    (16, "16 steps were made, and wait=4, warmup=2, active=3, repeat=2 needs 18: 1 cycles are complete, "
         "and of the next one 1 of 3 active steps were recorded"),
])
def test_too_few_steps(windows, steps, sentence):
    _, done, _ = windows("steps:wait=4,warmup=2,active=3,repeat=2", 0.1, steps)
    assert sentence in done.stderr


def test_no_steps(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "c", "--window", "steps", "--", "true", check=0)
    assert "the program made no steps" in done.stderr


def test_steps_of_another_name(windows):
    _, done, events = windows(STEPS, 0.1, 8, options=["--step-on", "^optimizer"])
    assert "--step-on '^optimizer'; there were 'work' (8)" in done.stderr
    assert events == []


def test_threads(windows):
    """Four threads count together, and no edge is lost."""
    manifest, _, _ = windows("steps:wait=10,warmup=0,active=20,repeat=2", 0.4, 20, "threads")
    assert [window["closed_by"] for window in manifest["windows"]] == ["schedule", "schedule"]
    first, last, _ = edges(manifest)[0]
    assert 10 <= first <= 13 and last - first in range(16, 24)


def test_processes(windows):
    """One process leads; the window is everybody's, and ranks and late joiners are told."""
    manifest, _, events = windows(STEPS, 0.6, 12, "processes")
    assert edges(manifest) == [(3, 5, "schedule")]
    ranks = {process["rank"] for process in manifest["processes"] if process["rank"] is not None}
    assert ranks == {0, 1, 2}
    assert len({event["pid"] for event in names(events, "body")}) == 3


def test_max_steps(windows, tmp_path):
    flag = tmp_path / "on"
    flag.touch()
    manifest, _, _ = windows(f"flag:{flag}", 0.5, 10, options=["--max-steps", 3])
    assert [(window["opened_by"], window["closed_by"]) for window in manifest["windows"]] == [("flag", "max-steps")]


def test_max_duration(windows, tmp_path):
    flag = tmp_path / "on"
    flag.touch()
    manifest, _, _ = windows(f"flag:{flag}", 0.6, 6, options=["--max-duration", 0.1])
    window, = manifest["windows"]
    assert window["closed_by"] == "max-duration"
    assert window["end_monotonic_ns"] - window["begin_monotonic_ns"] == 100_000_000


# ---- ends in an open window ----


@pytest.mark.parametrize("ending, status", [("_exit", 3), ("abort", 134), ("kill", 137), ("term", 143)])
def test_ends(windows, ending, status):
    manifest, _, events = windows("steps:wait=1,warmup=0,active=100", 0.3, 6, ending, check=status)
    window, = manifest["windows"]
    assert window["closed_by"] in ("leader-ended", "recording-ended")
    assert len(names(events, "body")) == 5
    assert manifest["recording_ended"]


def test_fork_in_a_window(windows):
    """The parent's steps count on; the child's, which are none of the session's, do not."""
    manifest, _, events = windows("steps:wait=1,warmup=0,active=5", 0.4, 8, "fork")
    assert edges(manifest) == [(1, 5, "schedule")]
    assert len({event["pid"] for event in names(events, "body")}) == 1


def test_collector_is_interrupted(sonde, workload, tmp_path):
    capture = tmp_path / "c.pftrace"
    process = sonde.start("record", "-F", 999, "-o", capture, "--window", "steps:wait=1,warmup=0,active=100", "--",
                          *workload("steps", 0.2, 4, "idle"))
    wait_for(lambda: (tmp_path / "c.pftrace.windows.json").exists())
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130
    manifest = json.loads((tmp_path / "c.pftrace.windows.json").read_text())
    assert [window["closed_by"] for window in manifest["windows"]][0] in ("leader-ended", "recording-ended")
    spans, events = events_of(sonde, capture)
    assert names(events, "body") and outside(spans, events) == []


# ---- flags ----


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ask(sonde, *words):
    return sonde("ctl", *words)


def status_of(sonde, folder):
    return ask(sonde, "status", "--json", "--session", folder).json()


@pytest.fixture
def session(sonde, workload, tmp_path):
    """session(window, options, seconds) -> the process, the session's folder and the capture of a recording"""

    def start(window, *options, seconds=30, steps=600):
        capture, session_file = tmp_path / "s.pftrace", tmp_path / "session"
        process = sonde.start("record", "-F", 999, "-o", capture, "--session-file", session_file,
                              *(["--window", window] if window else []), *options, "--",
                              *workload("steps", seconds, steps))
        wait_for(session_file.exists)
        return process, session_file.read_text().strip(), capture

    return start


def finish(process):
    """^C, which sonde passes on to its command, if that has not ended by itself."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130), errors
    return errors


def manifest_of(capture):
    return json.loads(capture.with_name(capture.name + ".windows.json").read_text())


def test_flag_comes_and_goes(session, sonde, tmp_path):
    folder = tmp_path / "not" / "yet"
    flag = folder / "on"
    process, directory, capture = session(f"flag:{flag}")
    folder.mkdir(parents=True)
    flag.touch()
    wait_for(lambda: status_of(sonde, directory)["state"] == "open")
    flag.unlink()
    wait_for(lambda: status_of(sonde, directory)["state"] == "closed")
    time.sleep(0.1)
    flag.touch()
    wait_for(lambda: status_of(sonde, directory)["windows"] == 2)
    errors = finish(process)
    assert f"the folder of the flag {flag} does not exist yet" in errors
    windows = manifest_of(capture)["windows"]
    assert [window["closed_by"] for window in windows] == ["trigger", "recording-ended"]
    spans, events = events_of(sonde, capture)
    assert outside(spans, events) == []


def test_flag_of_another_user(session, sonde, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    flag = tmp_path / "on"
    flag.touch()
    os.chown(flag, 12345, 12345)
    process, directory, _ = session(f"flag:{flag}", seconds=0.4, steps=4)
    wait_for(lambda: process.poll() is not None, 60)
    errors = finish(process)
    assert "is owned by user 12345, who may not open windows here" in errors
    assert "no window was opened" in errors


def test_flag_that_flaps(session, sonde, tmp_path):
    """1,000 times a second: sonde keeps up, and every window is exact."""
    flag, stop = tmp_path / "on", threading.Event()

    def flap():
        while not stop.is_set():
            flag.touch()
            time.sleep(0.0005)
            flag.unlink()
            time.sleep(0.0005)

    flapper = threading.Thread(target=flap)
    flapper.start()
    try:
        process, _, capture = session(f"flag:{flag}")
        time.sleep(1)
        errors = finish(process)
    finally:
        stop.set()
        flapper.join()
    windows = manifest_of(capture)["windows"]
    assert 2 <= len(windows) <= 100
    begins = [window["begin_monotonic_ns"] for window in windows]
    ends = [window["end_monotonic_ns"] for window in windows]
    assert all(end <= begin for end, begin in zip(ends, begins[1:]))
    spans, events = events_of(sonde, capture)
    assert outside(spans, events) == []
    assert "times the flag came back within 20 ms" in errors or len(windows) < 40


# ---- times, signals, by hand ----


def test_time(windows):
    manifest, _, events = windows("time:0.3..0.8", 1.2, 8)
    window, = manifest["windows"]
    assert (window["opened_by"], window["closed_by"]) == ("time", "trigger")
    assert window["end_monotonic_ns"] - manifest["start_monotonic_ns"] >= 800_000_000
    assert events


def test_signal(session, sonde):
    process, directory, capture = session("signal:USR2")
    for state, count in (("open", 1), ("closed", 1), ("open", 2)):
        process.send_signal(signal.SIGUSR2)
        wait_for(lambda: (lambda now: (now["state"], now["windows"]))(status_of(sonde, directory)) == (state, count))
    finish(process)
    assert [window["opened_by"] for window in manifest_of(capture)["windows"]] == ["signal", "signal"]


def test_by_hand(session, sonde):
    process, directory, capture = session("manual")
    assert ask(sonde, "stop", "--session", directory).stderr == "sonde: no window is open: start one first\n"
    assert ask(sonde, "start", "--session", directory, "under", "load").stdout == "window 1 is open\n"
    again = ask(sonde, "start", "--session", directory, "--json")
    assert again.status == 1 and not again.json()["ok"] and "open already" in again.json()["error"]
    now = status_of(sonde, directory)
    assert (now["state"], now["window"], now["session"]) == ("open", 1, directory)
    # Found by the pid of sonde, and by that of the command, too.
    for pid in (now["pid"], now["targets"][0]):
        assert status_of(sonde, pid)["session"] == directory
    closed = ask(sonde, "stop", "--json", "--session", directory).json()
    assert closed["ok"] and closed["end_ns"] > closed["begin_ns"]
    finish(process)
    window, = manifest_of(capture)["windows"]
    assert (window["label"], window["opened_by"]) == ("under load", "manual")
    spans, events = events_of(sonde, capture)
    assert outside(spans, events) == []


def test_steps_by_hand(sonde, tmp_path):
    process = sonde.start("record", "-o", tmp_path / "c", "--session-file", tmp_path / "session", "--window",
                          "steps:wait=1,warmup=0,active=1", "--", "sleep", "30")
    wait_for((tmp_path / "session").exists)
    directory = (tmp_path / "session").read_text().strip()
    answers = [ask(sonde, "step", "--json", "--session", directory).json() for _ in range(3)]
    assert [(answer["step"], answer["state"]) for answer in answers] == [(1, "open"), (2, "closed"), (3, "closed")]
    finish(process)


def test_ctl_of_a_whole_recording(session, sonde):
    process, directory, _ = session(None)
    refused = ask(sonde, "start", "--session", directory)
    assert refused.status == 1
    assert "this recording has no windows, it records all of the time: record with --window manual" in refused.stderr
    finish(process)


def test_ctl_finds_nothing(sonde):
    done = ask(sonde, "status", "--session", "999999")
    assert done.status == 1 and "is neither a recording sonde" in done.stderr
    assert ask(sonde, "begin").status == 2


def test_ctl_leaves_sessions_of_others_alone(session, sonde, sonde_unprivileged):
    """As root, too: another user's session is neither taken nor counted beside one's own."""
    file = sonde_unprivileged.directory / "session"
    theirs = sonde_unprivileged.start("record", "-q", "--window", "manual", "--session-file", file, "--", "sleep", 60)
    wait_for(file.exists)
    try:
        assert ask(sonde, "status", "--session", theirs.pid).status == 1
        process, directory, _ = session("manual")
        listed = ask(sonde, "status", "--json")
        # Other recordings of this user may run, and are listed then.
        own = json.loads(listed.stdout)["session"] == directory if listed.status == 0 else str(process.pid) in listed.stderr
        assert own and str(theirs.pid) not in listed.stdout + listed.stderr, listed
        finish(process)
    finally:
        theirs.send_signal(signal.SIGINT)
        theirs.communicate(timeout=60)


def test_what_a_program_leaves_in_the_sessions_folder_goes(sonde, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    script = f'echo $SONDE_SESSION; cd $SONDE_SESSION && mkdir -p a/b/c && touch a/b/file && ln -s {kept} a/link'
    done = sonde("record", "-q", "-o", tmp_path / "c", "--window", "manual", "--", "sh", "-c", script, check=0)
    folder = done.stdout.strip()
    assert folder and not os.path.exists(folder)
    assert (kept / "file").exists()


def test_bad_lines(session, sonde):
    """Whatever comes by the socket is answered, or its client is left; the recording goes on."""
    process, directory, _ = session("manual")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{directory}/control")
        client.sendall(b"nonsense\n\n\xff\xfe\nstatus\n")
        answers = client.makefile()
        assert [json.loads(answers.readline())["ok"] for _ in range(4)] == [False, False, False, True]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{directory}/control")
        client.sendall(b"x" * 4096)
        try:
            assert client.recv(1) == b""
        except ConnectionResetError:
            pass
    crowd = []
    for _ in range(40):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        client.connect_ex(f"{directory}/control")
        crowd.append(client)
    for client in crowd:
        client.close()
    assert status_of(sonde, directory)["state"] == "closed"
    assert os.stat(f"{directory}/control").st_mode & 0o777 == 0o600
    finish(process)


# ---- attached processes, top, split ----


@pytest.mark.alone
@pytest.mark.parametrize("options", [["-p"], ["-a"]])
def test_attached(sonde, start_workload, tmp_path, options):
    if options == ["-a"] and os.geteuid() != 0:
        pytest.skip("-a needs root")
    running = start_workload("spin", 20)
    capture = tmp_path / "c.pftrace"
    target = ["-p", running.pid] if options == ["-p"] else ["-a"]
    sonde("record", "-F", 999, "-d", 0.6, "-o", capture, *target, "--window", "time:0.2..0.4", check=0)
    spans, events = events_of(sonde, capture)
    assert len(spans) == 1 and events
    assert outside(spans, events) == []


def test_the_folder_of_an_attached_process(sonde, start_workload, tmp_path):
    """A program that is attached to can be told of its session: the folder is there, and closed to others."""
    running = start_workload("spin", 20)
    process = sonde.start("record", "-o", tmp_path / "c", "-p", running.pid, "--window", "manual",
                          "--session-file", tmp_path / "session")
    wait_for((tmp_path / "session").exists)
    directory = (tmp_path / "session").read_text().strip()
    assert status_of(sonde, running.pid)["session"] == directory
    assert os.stat(directory).st_mode & 0o777 == 0o700
    assert os.path.exists(f"{directory}/gate")
    finish(process)
    assert not os.path.exists(directory)


@pytest.mark.parametrize("options, sentence", [
    (["--window", "steps:active=-1"], "try --window steps:wait=1,warmup=1,active=3,repeat=1"),
    (["--window", "nothing"], "--window takes flag:PATH"),
    (["--max-steps", "3"], "--max-steps needs windows"),
    (["--window", "manual", "--step-on", "("], "is not an extended regular expression"),
    (["-a", "--window", "steps"], "windows by steps need a command"),
])
def test_refused(sonde, options, sentence):
    command = [] if "-a" in options else ["--", "true"]
    done = sonde("record", *options, *command)
    assert done.status == 2 and sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_windows_nothing_changes(sonde, workload, report, tmp_path):
    capture = tmp_path / "c.pftrace"
    sonde("record", "-F", 999, "-o", capture, "--", *workload("steps", 0.2, 4), check=0)
    spans, events = events_of(sonde, capture)
    assert spans == [] and len(names(events, "body")) == 4
    assert not (tmp_path / "c.pftrace.windows.json").exists()
