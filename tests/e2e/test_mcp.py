# SPDX-License-Identifier: Apache-2.0
"""sonde mcp: what an assistant gets, by a client of our own and by PyPI's mcp; hostile requests; questions that fail."""

import asyncio
import json
import os
import select
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from trace_files import launch_and_kernel

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOLS = {"list_captures", "sections", "report", "diff", "flame_paths", "search_functions"}


class Assistant:
    """Speaks to one server by lines."""

    def __init__(self, process):
        self.process = process
        self.next_id = 0

    def send(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        assert ready, "no answer within a minute"
        return json.loads(self.process.stdout.readline())

    def ask(self, method, params=None):
        self.next_id += 1
        request = {"jsonrpc": "2.0", "id": self.next_id, "method": method}
        self.send(json.dumps(request if params is None else {**request, "params": params}))
        answer = self.receive()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.next_id
        return answer

    def call(self, name, **arguments):
        """(text, is it an error?)"""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        (content,) = result["content"]
        assert content["type"] == "text"
        return content["text"], result["isError"]


def trace_of(duration_us):
    events = []
    for number in range(1, 41):
        events += launch_and_kernel(number, number * 100, duration_us=duration_us)
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


@pytest.fixture
def runs(tmp_path):
    """A folder with two traces, and what is none."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "before.json").write_text(trace_of(40))
    (folder / "after.json").write_text(trace_of(60))
    (folder / "notes.txt").write_text("no capture\n")
    (folder / "link.json").symlink_to("/etc/hostname")
    return folder


@pytest.fixture
def start(sonde):
    """start(path, …) -> an Assistant of a server of its own"""
    started = []

    def begin(*paths):
        process = subprocess.Popen(
            [sonde.path, "mcp", *map(str, paths)],
            env=sonde.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return Assistant(process)

    yield begin
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


@pytest.fixture
def assistant(start, runs):
    return start(runs)


def test_handshake_in_every_revision(start, runs):
    for version in VERSIONS:
        assistant = start(runs)
        result = assistant.ask("initialize", {"protocolVersion": version, "capabilities": {}})["result"]
        assert result["protocolVersion"] == version
        assert result["serverInfo"]["name"] == "sonde" and result["capabilities"] == {"tools": {}}
        assistant.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        assert assistant.ask("ping")["result"] == {}
    newest = start(runs).ask("initialize", {"protocolVersion": "1999-01-01"})["result"]
    assert newest["protocolVersion"] == VERSIONS[-1]


def test_requests_without_a_session(assistant):
    found = assistant.ask("server/discover", {"_meta": STATELESS})["result"]
    assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete"
    listed = assistant.ask("tools/list", {"_meta": STATELESS})["result"]
    assert listed["resultType"] == "complete" and listed["cacheScope"] == "public"
    other = {**STATELESS, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    error = assistant.ask("tools/list", {"_meta": other})["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}
    del other["io.modelcontextprotocol/clientCapabilities"]
    other["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
    assert assistant.ask("tools/list", {"_meta": other})["error"]["code"] == -32602


def test_tools_say_what_they_take(assistant):
    tools = {tool["name"]: tool for tool in assistant.ask("tools/list")["result"]["tools"]}
    assert set(tools) == TOOLS
    for tool in tools.values():
        assert tool["description"] and tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
    weights = tools["flame_paths"]["inputSchema"]["properties"]["weight"]["enum"]
    assert "gpu-idle" in weights and "gpu-bytes" in weights
    assert tools["diff"]["inputSchema"]["required"] == ["before", "after"]


def test_captures_of_a_folder(assistant, runs):
    captures, is_error = assistant.call("list_captures")
    assert not is_error
    assert [os.path.basename(row["capture"]) for row in json.loads(captures)] == ["after.json", "before.json"]
    (runs / "later.json").write_text(trace_of(10))
    assert "later.json" in assistant.call("list_captures")[0]


def test_a_trace_is_asked(assistant, runs, sonde):
    before, after = str(runs / "before.json"), str(runs / "after.json")
    sections, _ = assistant.call("sections", capture=before)
    names = {row["name"] for row in json.loads(sections)}
    assert {"kernel", "idle", "function"} <= names and "request" not in names
    same, is_error = assistant.call("report", capture=before, by="kernel", format="json")
    assert not is_error
    assert json.loads(same) == sonde("report", "--json", "--by", "kernel", before, check=0).json()
    assert "gemm" in assistant.call("report", capture=before)[0]
    changed, _ = assistant.call("diff", before=before, after=after, format="json")
    assert json.loads(changed) == sonde("diff", "--json", before, after, check=0).json()
    paths, _ = assistant.call("flame_paths", capture=before, weight="gpu")
    assert "100.0 %" in paths and "[gpu] gemm" in paths
    functions, _ = assistant.call("search_functions", capture=before, text="ATEN::")
    assert "aten::mm" in functions and "gemm" not in functions


def test_a_recording_is_asked(sonde, start, workload, tmp_path):
    capture = tmp_path / "run.pftrace"
    sonde("record", "-q", "-F", 499, "-o", capture, "--", *workload("spin", 1), check=0)
    assistant = start(capture)
    assert json.loads(assistant.call("list_captures")[0])[0]["kind"] == "recording"
    assert "spin_half" in assistant.call("flame_paths")[0]
    assert "spin_half" in assistant.call("report", by="function")[0]
    assert "spin_half" in assistant.call("search_functions", text="SPIN_H")[0]


def test_wrong_questions_are_answered_with_sentences(assistant, runs):
    before = str(runs / "before.json")
    wrong = [
        (("report", {}), "there are 2 captures: name one"),
        (("report", {"capture": "/etc/passwd"}), "there is no capture '/etc/passwd'"),
        (("report", {"capture": f"{runs}/../runs/before.json"}), "there is no capture"),
        (("report", {"capture": before, "by": "nothing"}), "by cannot be 'nothing'"),
        (("report", {"capture": before, "gold": 1}), "takes no argument 'gold'"),
        (("report", {"capture": before, "limit": 0}), "number from 1"),
        (("report", {"capture": before, "limit": [1]}), "limit is a text, a number"),
        (("report", {"capture": before, "format": "csv"}), "csv is of one table"),
        (("report", {"capture": before, "window": "1"}), "--window is for recordings"),
        (("search_functions", {"capture": before}), "needs the argument text"),
        (("diff", {"before": before}), "needs the argument after"),
        (("flame_paths", {"capture": before, "weight": "energy"}), "has no energy"),
        (("sections", {"capture": "a\0b"}), "zero byte"),
    ]
    for (name, arguments), sentence in wrong:
        text, is_error = assistant.call(name, **arguments)
        assert is_error and sentence in text, (name, arguments, text)


def test_wrong_requests_have_codes(assistant):
    wrong = [
        ("no JSON", -32700, None),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700, None),
        ('{"jsonrpc": "2.0", "id": 1,, "method": "ping"}', -32700, None),
        ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600, 1),
        ('{"jsonrpc": "2.0", "id": "x", "method": 7}', -32600, "x"),
        ('{"jsonrpc": "2.0", "id": [1], "method": "ping"}', -32600, None),
        ('{"jsonrpc": "2.0", "id": 2, "method": "fly"}', -32601, 2),
        ('{"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": [1]}', -32602, 3),
        ('{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {}}', -32602, 4),
        ('{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "fly"}}', -32602, 5),
        ("{" + "[" * 100000, -32700, None),
    ]
    for text, code, identity in wrong:
        assistant.send(text)
        answer = assistant.receive()
        assert (answer["error"]["code"], answer["id"]) == (code, identity), text[:80]
    assistant.send('\n  \n{"jsonrpc": "2.0", "method": "unknown/notification"}')
    assert assistant.ask("ping")["result"] == {}


def test_a_line_without_an_end(assistant):
    assistant.send("x" * 3_000_000)
    assert "longer than 1 MiB" in assistant.receive()["error"]["message"]
    assert assistant.ask("ping")["result"] == {}


def test_batches(assistant):
    requests = [{"id": 1, "method": "ping"}, {"method": "x"}, {"id": 2, "method": "fly"}]
    assistant.send(json.dumps([{"jsonrpc": "2.0", **request} for request in requests]))
    first, second = assistant.receive()
    assert first["result"] == {} and second["error"]["code"] == -32601
    assistant.send('[{"jsonrpc":"2.0","method":"x"}]')
    assert assistant.ask("ping")["result"] == {}
    assistant.send(json.dumps([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(60)]))
    assert "more than 50" in assistant.receive()[-1]["error"]["message"]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_question_that_is_ended_costs_one_answer(assistant, runs, number):
    slow = runs / "slow.json"
    events = [row for number in range(1, 60001) for row in launch_and_kernel(number, number * 100)]
    slow.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    request = {"name": "report", "arguments": {"capture": str(slow), "by": "critical-path"}}
    assistant.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": request}))
    children = []
    while not children and not select.select([assistant.process.stdout], [], [], 0)[0]:
        children = children_of(assistant.process.pid)
    for child in children:
        os.kill(child, number)
    result = assistant.receive()["result"]
    if children and result["isError"]:
        assert f"ended by signal {int(number)}" in result["content"][0]["text"]
    assert assistant.ask("ping")["result"] == {}


def test_damaged_captures_are_errors(start, runs):
    (runs / "cut.pftrace").write_bytes(b"\n\xff\xff\xff\x7f" + bytes(range(256)) * 10)
    assistant = start(runs)
    text, is_error = assistant.call("report", capture=str(runs / "cut.pftrace"))
    assert is_error and "cut.pftrace" in text
    assert assistant.ask("ping")["result"] == {}


def test_it_needs_a_capture(sonde, tmp_path):
    assert sonde("mcp").status == 2
    missing = sonde("mcp", tmp_path / "missing")
    assert missing.status == 1 and "cannot read" in missing.stderr


def test_a_closed_pipe_ends_it(assistant):
    assistant.process.stdin.close()
    assert assistant.process.wait(timeout=60) == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_another_client(sonde, runs, mode):
    """PyPI's mcp, as assistants use it: with the stateless revision, and with the handshake."""
    mcp = pytest.importorskip("mcp", reason="PyPI gives no mcp: tools/venv says so")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def talk():
        server = StdioServerParameters(command=sonde.path, args=["mcp", str(runs)], env=dict(sonde.environment))
        async with mcp.Client(stdio_client(server), mode=mode) as client:
            tools = await client.list_tools()
            answer = await client.call_tool(
                "report", {"capture": str(runs / "before.json"), "by": "kernel", "limit": 3}
            )
            wrong = await client.call_tool("report", {"capture": "none"})
            return client.protocol_version, {tool.name for tool in tools.tools}, answer, wrong

    # In a thread: Playwright, which other tests start, keeps an event loop in this one.
    with ThreadPoolExecutor(1) as threads:
        version, names, answer, wrong = threads.submit(lambda: asyncio.run(asyncio.wait_for(talk(), 120))).result()
    assert version == ("2026-07-28" if mode == "auto" else "2025-11-25")
    assert names == TOOLS
    assert not answer.is_error and "gemm" in answer.content[0].text
    assert wrong.is_error
