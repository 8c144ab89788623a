# SPDX-License-Identifier: Apache-2.0
"""sonde serve --commands: recordings that clients start, of what the operator allows and of nothing else."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from server_client import Server

WAIT_S = 90


@pytest.fixture
def serve(sonde, tmp_path):
    """serve(commands, ...) -> a server whose captures are in .folder."""
    servers = []

    def run(commands, **more):
        folder, path = tmp_path / "captures", tmp_path / "commands.json"
        folder.mkdir(exist_ok=True)
        path.write_text(json.dumps({"commands": commands} | more))
        servers.append(Server(sonde.start("serve", "--listen", "127.0.0.1:0", "--commands", path, folder)))
        servers[-1].folder = folder
        return servers[-1]

    yield run
    for server in servers:
        if server.process.poll() is None:
            assert server.end() == 0, server.process.stderr.read()


def post(server, path, body=None, **headers):
    data = b"" if body is None else json.dumps(body).encode()
    return server.get(path, method="POST", body=data, Content_Length=len(data), Content_Type="application/json", **headers)


def start(server, command, **parameters):
    answer = post(server, "/api/jobs", {"command": command, "parameters": parameters})
    assert answer.status == 201, answer
    return answer.json()["id"]


def job(server, number):
    return server.get(f"/api/jobs/{number}").json()


def wait_for(condition, what):
    end = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return found


def wait_for_end(server, number):
    wait_for(lambda: job(server, number)["state"] != "running", "the job's end")
    return job(server, number)


def command_lines(folder):
    """Of the processes that record into the folder."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(os.fsencode(folder)) for word in words) and b"record" in words:
            found[int(path.parent.name)] = words
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


SPIN = ["sh", "-c", "i=0; while [ $i -lt \"$0\" ]; do i=$((i+1)); done; echo done"]


# ---- what runs ----


def test_a_command_is_recorded(serve):
    server = serve([{"name": "spin", "description": "Counts.", "argv": [*SPIN, "{count}"],
                     "parameters": [{"name": "count", "type": "integer", "minimum": 1, "maximum": 10_000_000, "default": 300_000}]}])
    command, = server.get("/api/commands").json()["commands"]
    assert command == {"name": "spin", "description": "Counts.", "parameters": [
        {"name": "count", "type": "integer", "default": 300_000, "choices": [], "minimum": 1, "maximum": 10_000_000}]}
    number = start(server, "spin", count=400_000)
    ended = wait_for_end(server, number)
    assert ended["state"] == "ended" and ended["exit_status"] == 0 and ended["message"] is None
    capture = server.get(f"/api/captures/{ended['capture']}").json()
    assert capture["name"].startswith("spin-") and capture["name"].endswith(".pftrace")
    report = server.get(f"/api/captures/{ended['capture']}/report")
    assert report.status == 200 and b"400000" in report.body
    assert server.get("/api/jobs").json()["jobs"] == [ended]


def test_each_change_is_a_message(serve):
    server = serve([{"name": "true", "argv": ["true"]}])
    client = server.socket()
    number = start(server, "true")
    states = []
    while not states or states[-1]["state"] == "running":
        message = client.next()
        if message["type"] == "job":
            states.append(message["data"])
    assert {one["id"] for one in states} == {number} and states[0]["state"] == "running"
    assert states[-1] == job(server, number) and states[-1]["state"] == "ended"


def test_what_a_command_gets(serve, tmp_path):
    """Its folder, its environment, no input, no descriptor of the server; a value is one argument, whatever it has."""
    script = "pwd; echo \"$GREETING\"; cat; ls /proc/self/fd | wc -l; printf '%s\\n' \"$@\" >&2; cp /proc/self/status \"$OUT\""
    text = "a  b; $(touch /tmp/never) '\" *"
    server = serve([{"name": "show", "argv": ["sh", "-c", f"({script}) >$LOG 2>&1", "sh", "--text={text}", "{more}"], "cwd": str(tmp_path),
                     "environment": {"GREETING": "hello", "LOG": str(tmp_path / "log"), "OUT": str(tmp_path / "status")},
                     "parameters": [{"name": "text", "type": "string"}, {"name": "more", "type": "string", "default": "x"}]}])
    assert wait_for_end(server, start(server, "show", text=text, more=text))["state"] == "ended"
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[:2] == [str(tmp_path), "hello"] and lines[3:] == [f"--text={text}", text]
    assert int(lines[2]) <= 8  # standard ones, that of ls, and what sonde gives a command
    blocked = next(line for line in (tmp_path / "status").read_text().splitlines() if line.startswith("SigBlk"))
    assert int(blocked.split()[1], 16) == 0


def test_a_command_that_fails(serve):
    server = serve([{"name": "fails", "argv": ["sh", "-c", "echo first; echo it is broken >&2; exit 3"]},
                    {"name": "missing", "argv": ["/nothing/there"]}, {"name": "folder", "argv": ["true"], "cwd": "/nothing/there"},
                    {"name": "option", "argv": ["true"], "record": ["--no-such-option"]}])
    ended = wait_for_end(server, start(server, "fails"))
    assert ended["state"] == "failed" and ended["exit_status"] == 3 and ended["message"] == "it is broken"
    for name in ["missing", "folder", "option"]:
        ended = wait_for_end(server, start(server, name))
        assert ended["state"] == "failed" and ended["exit_status"] and ended["message"], name


def test_a_command_that_prints_much(serve):
    server = serve([{"name": "loud", "argv": ["sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last; exit 1"]}])
    assert wait_for_end(server, start(server, "loud"))["message"] == "last"


# ---- what does not ----


def test_nothing_else_can_be_started(serve):
    server = serve([{"name": "spin", "argv": ["sleep", "{seconds}"], "parameters": [{"name": "seconds", "type": "number", "minimum": 0, "maximum": 60}]}])
    for name in ["sh", "spin ", "../spin", "SPIN", "sleep"]:
        assert post(server, "/api/jobs", {"command": name}).status == 404
    for parameters, word in [({}, "seconds"), ({"seconds": 61}, "seconds"), ({"seconds": "1"}, "seconds"), ({"seconds": -1}, "seconds"),
                             ({"seconds": 1, "argv": ["x"]}, "argv"), ({"seconds": {"a": 1}}, "seconds"), ({"seconds": True}, "seconds")]:
        answer = post(server, "/api/jobs", {"command": "spin", "parameters": parameters})
        assert answer.status == 400 and word in answer.message, parameters
    for body in [{"command": "spin", "argv": ["x"]}, {"command": ["spin"]}]:
        assert post(server, "/api/jobs", body).status == 400
    assert post(server, "/api/jobs", {"command": "spin", "parameters": {"seconds": 1}}, Authorization=None).status == 401
    assert server.get("/api/jobs").json() == {"jobs": []} and not list(server.folder.iterdir())


def test_as_many_as_may_run(serve):
    server = serve([{"name": "wait", "argv": ["sleep", "600"]}], jobs=2)
    first, second = start(server, "wait"), start(server, "wait")
    answer = post(server, "/api/jobs", {"command": "wait"})
    assert answer.status == 429 and answer.error == "too-many-jobs" and "2 recordings" in answer.message
    assert post(server, f"/api/jobs/{first}/cancel").status == 202
    wait_for_end(server, first)
    third = start(server, "wait")
    assert [one["id"] for one in server.get("/api/jobs").json()["jobs"]] == [third, second, first]


def test_a_limit_of_time(serve):
    server = serve([{"name": "wait", "argv": ["sleep", "600"], "seconds": 1}])
    ended = wait_for_end(server, start(server, "wait"))
    assert ended["state"] == "cancelled" and "as long as its command may" in ended["message"]


def test_captures_that_are_kept(serve):
    server = serve([{"name": "true", "argv": ["true"], "keep": 2}])
    (server.folder / "true-other.pftrace").write_text("mine")
    for _ in range(3):
        last = wait_for_end(server, start(server, "true"))
    names = sorted(path.name for path in server.folder.iterdir())
    assert len(names) == 3 and "true-other.pftrace" in names
    assert server.get(f"/api/captures/{last['capture']}/report").status == 200


# ---- cancel, windows, the end ----


def test_cancel(serve):
    server = serve([{"name": "wait", "argv": ["sh", "-c", "sleep 600 & sleep 600"]}])
    number = start(server, "wait")
    capture = wait_for(lambda: job(server, number)["capture"], "its capture")
    pids = command_lines(server.folder)
    assert len(pids) == 1
    assert post(server, f"/api/jobs/{number}/cancel").status == 202
    ended = wait_for_end(server, number)
    assert ended["state"] == "cancelled" and ended["capture"] == capture and ended["exit_status"]
    assert not any(is_alive(pid) for pid in pids)
    again = post(server, f"/api/jobs/{number}/cancel")
    assert again.status == 409 and again.error == "conflict"
    assert server.get(f"/api/captures/{capture}/report").status == 200
    assert post(server, "/api/jobs/0123456789abcdef/cancel").status == 404


def test_a_command_that_does_not_end(serve, tmp_path):
    """It gets Ctrl-C, then SIGTERM, then what nobody can refuse; what it started ends with it."""
    mark = tmp_path / "pid"
    script = f"trap '' INT TERM; echo $$ >{mark}; while true; do sleep 1; done"
    server = serve([{"name": "stubborn", "argv": ["sh", "-c", script]}])
    number = start(server, "stubborn")
    pid = int(wait_for(lambda: mark.exists() and mark.read_text().strip(), "the command's beginning"))
    assert post(server, f"/api/jobs/{number}/cancel").status == 202
    assert wait_for_end(server, number)["state"] == "cancelled"
    wait_for(lambda: not is_alive(pid), "the end of what nobody can refuse")


def test_windows(serve):
    server = serve([{"name": "wait", "argv": ["sleep", "600"], "record": ["--window", "manual"]}, {"name": "whole", "argv": ["sleep", "600"]}], jobs=2)
    number = start(server, "wait")
    assert job(server, number)["window"] == "closed"

    def set_window(action, state):
        """The session answers once it has begun."""
        assert post(server, f"/api/jobs/{number}/window", {"action": action}).status in (202, 409)
        return job(server, number)["window"] == state

    wait_for(lambda: set_window("open", "open"), "an open window")
    wait_for(lambda: set_window("close", "closed"), "a closed window")
    other = start(server, "whole")
    assert job(server, other)["window"] is None
    refused = post(server, f"/api/jobs/{other}/window", {"action": "open"})
    assert refused.status == 409 and "--window" in refused.message
    post(server, f"/api/jobs/{number}/cancel")
    ended = wait_for_end(server, number)
    assert ended["window"] is None
    assert post(server, f"/api/jobs/{number}/window", {"action": "open"}).status == 409
    report = server.get(f"/api/captures/{ended['capture']}/report?by=window").json()
    assert report["format"]
    names = [one["name"] for one in server.get("/api/captures").json()["captures"]]
    assert not [name for name in names if name.endswith(".json")]


def test_the_server_ends_what_it_started(serve):
    server = serve([{"name": "wait", "argv": ["sleep", "600"]}])
    client = server.socket()
    number = start(server, "wait")
    wait_for(lambda: job(server, number)["capture"], "its capture")
    pids = command_lines(server.folder)
    assert server.end() == 0
    assert not any(is_alive(pid) for pid in pids)
    messages = []
    while (message := client.next()) is not None:
        messages.append(message)
    assert messages[-1]["data"] == {"reason": "server-ends"}
    assert [one["data"]["state"] for one in messages if one["type"] == "job"][-1] == "cancelled"


def test_a_server_that_is_killed_leaves_nothing(serve):
    server = serve([{"name": "wait", "argv": ["sleep", "600"]}])
    number = start(server, "wait")
    wait_for(lambda: job(server, number)["capture"], "its capture")
    pids = command_lines(server.folder)
    assert pids
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    wait_for(lambda: not any(is_alive(pid) for pid in pids), "the end of the recording")


# ---- the file ----


def test_files_that_are_refused(sonde, tmp_path):
    path = tmp_path / "commands.json"
    path.write_text('{"commands": [{"name": "a", "argv": ["true"]}]}')
    for arguments, word in [(["--read-only", tmp_path], "--read-only"), (["--no-token", tmp_path], "every user"), ([path], "folder")]:
        refused = sonde("serve", "--commands", path, *arguments)
        assert refused.status in (1, 2) and word in refused.stderr, refused
    path.chmod(0o666)
    refused = sonde("serve", "--commands", path, tmp_path)
    assert refused.status == 1 and "chmod go-w" in refused.stderr
    path.chmod(0o600)
    path.write_text('{"commands": [{"name": "a", "argv": ["true"], "shell": true}]}')
    refused = sonde("serve", "--commands", path, tmp_path)
    assert refused.status == 1 and "shell" in refused.stderr


def test_the_example(sonde, tmp_path):
    """Of the documentation: it is read, and each of its commands has a command line."""
    root = Path(__file__).resolve().parents[2]
    path = tmp_path / "commands.json"
    path.write_text((root / "examples" / "commands.json").read_text())
    server = Server(sonde.start("serve", "--listen", "127.0.0.1:0", "--commands", path, tmp_path))
    commands = server.get("/api/commands").json()["commands"]
    assert [one["name"] for one in commands] == ["train", "generate"]
    assert all(parameter["default"] is not None for one in commands for parameter in one["parameters"])
    assert server.end() == 0
