# SPDX-License-Identifier: Apache-2.0
"""Doubles of live messages: a made-up recording, and a /ws that says to the page what a test wants.

    double = LiveDouble(page, capture)   before the page is opened; `capture` is the id that the page knows
    double.say("live_summary", {...})    one message, with the next number
    double.play(envelopes)               recorded ones, with their numbers
    double.drop()                        the connection is gone; the page comes back by itself
    ControlsDouble(page, double, [...])  commands that may be started, and the jobs that they become
"""

import json
import math
import re

import live_frames

EPOCH = "00112233445566778899aabbccddeeff"
STARTED_UNIX_MS = 1_790_000_000_000
LATEST_WINS = {"live_session", "live_summary", "live_functions", "live_kernels", "live_layers", "live_current", "live_ended"}
WITH_HISTORY = {"live_power", "live_tokens", "live_phases"}


class LiveDouble:
    def __init__(self, page, capture, epoch=EPOCH, **hello):
        self.capture = capture
        self.epoch = epoch
        self.hello = {"read_only": False, "is_view": True, **hello}
        self.seq = 0
        self.t_ms = 0
        self.latest = {}
        self.history = []  # of GET /api/captures/ID/live
        self.addresses = []  # that the page connected to
        self.socket = None
        self.is_refused = False
        page.route_web_socket(re.compile(r"/ws(\?.*)?$"), self.connect)
        page.route(re.compile(r"/api/captures/[0-9a-f]+/live$"), self.answer_history)

    def connect(self, socket):
        self.addresses.append(socket.url)
        if self.is_refused:
            socket.close(code=1013)
            return
        self.socket = socket
        self.greet()

    def answer_history(self, route):
        route.fulfill(json={"epoch": self.epoch, "newest_seq": self.seq, "messages": self.history})

    def greet(self):
        """hello; to one that comes for the first time, a snapshot."""
        self.send(0, "hello", {"version": "double", "started_unix_ms": STARTED_UNIX_MS, "oldest_seq": 1, "newest_seq": self.seq,
                               "budget_bytes": 1 << 20, **self.hello})
        if f"epoch={self.epoch}&" in self.addresses[-1]:
            return
        self.send(0, "snapshot", {"types": len(self.latest), "newest_seq": self.seq})
        for envelope in sorted(self.latest.values(), key=lambda envelope: envelope["seq"]):
            self.socket.send(json.dumps(envelope))

    def send(self, seq, kind, data, t_ms=None):
        envelope = {"v": 1, "epoch": self.epoch, "seq": seq, "t_ms": self.t_ms if t_ms is None else t_ms, "type": kind, "data": data}
        if self.socket:
            self.socket.send((live_frames.encode(envelope) if seq and "binary=true" in self.addresses[-1] else None) or json.dumps(envelope))
        return envelope

    def say(self, kind, data, **more):
        self.seq += 1
        data = {"capture": self.capture, **data, **more} if kind.startswith("live_") else {**data, **more}
        envelope = self.send(self.seq, kind, data)
        if kind in LATEST_WINS:
            self.latest[kind] = envelope
        if kind in WITH_HISTORY:
            self.history.append(envelope)

    def play(self, envelopes):
        for envelope in envelopes:
            self.t_ms = envelope["t_ms"]
            if envelope["seq"]:
                self.say(envelope["type"], {**envelope["data"], **({"capture": self.capture} if "capture" in envelope["data"] else {})})
            elif envelope["type"] not in ("hello", "snapshot"):
                self.send(0, envelope["type"], envelope["data"])

    def drop(self):
        socket, self.socket = self.socket, None
        socket.close(code=1011)


class ControlsDouble:
    """A double of /api/commands and /api/jobs for a page. What the page asked for is in `requests`."""

    def __init__(self, page, live, commands):
        self.live = live
        self.commands = commands
        self.jobs = []
        self.requests = []
        self.refusal = None  # (status, message) of the next POST
        page.route(re.compile(r"/api/commands$"), lambda route: route.fulfill(json={"commands": self.commands}))
        page.route(re.compile(r"/api/jobs(/.*)?$"), self.answer)

    def answer(self, route):
        request = route.request
        if request.method == "GET":
            route.fulfill(json={"jobs": self.jobs})
            return
        path, body = request.url.split("/api/jobs")[1], request.post_data_json
        self.requests.append((path, body))
        if self.refusal:
            (status, message), self.refusal = self.refusal, None
            route.fulfill(status=status, json={"error": {"code": "too-many-jobs", "message": message}})
            return
        if not path:
            self.jobs.insert(0, {"id": str(len(self.jobs) + 1), "command": body["command"], "state": "running", "capture": self.live.capture,
                                 "started_unix_ms": STARTED_UNIX_MS, "exit_status": None, "window": "closed", "message": None})
        elif path.endswith("/cancel"):
            self.jobs[0] = {**self.jobs[0], "state": "cancelled", "exit_status": 130}
        else:
            self.jobs[0] = {**self.jobs[0], "window": "open" if body["action"] == "open" else "closed"}
        route.fulfill(status=201 if not path else 200, json=self.jobs[0])


RAILS = [("package-0", "cpu", None, 62, 14), ("core", "cores", 1, 38, 11), ("dram", "dram", None, 7, 1.5), ("GPU 0", "gpu", None, 236, 60)]
FUNCTIONS = [("at::native::cpublas::gemm", "libtorch_cpu.so", 9), ("mkldnn_sgemm_kernel", "libtorch_cpu.so", 6),
             ("_PyEval_EvalFrameDefault", "python3.11", 4), ("forward (model.py)", "model.py", 2.5), ("softmax_lastdim", "libtorch_cpu.so", 2),
             ("tokenize (run.py)", "run.py", 0.8), ("memcpy", "libc.so.6", 0.6)]
KERNELS = [("ampere_sgemm_128x64_tn", 12), ("flash_fwd_kernel", 7), ("rms_norm_kernel", 2.4), ("silu_and_mul_kernel", 1.9), ("rotary_embedding_kernel", 0.7)]
COMPONENTS = [("q", 2), ("k", 1), ("v", 1), ("o", 2), ("gate", 4), ("up", 4), ("down", 4.4), ("norm1", 0.3), ("norm2", 0.3)]
TOKENS_OF_A_REQUEST = 200
PREFILL_MS = 180


def session(rails=RAILS, **more):
    return {
        "generation": 1, "name": "run.pftrace", "command": ["python3", "serve.py", "--model", "llama-8b"], "host": "node-7", "started_unix_ms": STARTED_UNIX_MS,
        "period_ns": 10_101_010, "whole_machine": False, "wait_mode": "sample", "launch_stacks": "bpf", "absences": [],
        "rails": [{"rail": number, "parent": parent, "name": name, "source": "replay", "device": None, "part": part, "quality": "counter",
                   "is_replayed": False, "period_ms": 100, "limit_w": None}
                  for number, (name, part, parent, _, _) in enumerate(rails, 1)],
        **more,
    }


def watts(rail, t_ms):
    _, _, _, mean, swing = RAILS[rail]
    in_request = (t_ms % (TOKENS_OF_A_REQUEST * 20 + PREFILL_MS)) < PREFILL_MS
    return mean + swing * (0.6 * math.sin(t_ms / 2300 + rail) + 0.3 * math.sin(t_ms / 370)) + (swing if in_request else 0)


def power(from_ms, to_ms, step_ms=100):
    times = [t for t in range(from_ms + step_ms, to_ms + 1, step_ms)]
    return {"rails": [{"rail": number + 1, "t_ms": times, "w": [round(watts(number, t), 3) for t in times]} for number in range(len(RAILS))]}


def tokens(from_ms, to_ms, every_ms=20):
    """One request after the other, 50 tokens a second; now and then one is slow."""
    found, events, phases = [], [], []
    length = TOKENS_OF_A_REQUEST * every_ms + PREFILL_MS
    for t in range(from_ms - from_ms % every_ms + every_ms, to_ms + 1, every_ms):
        number, inside = divmod(t, length)
        name = f"request-{number + 1}"
        if inside < every_ms:
            events.append({"pid": 4711, "request": name, "t_ms": number * length, "event": "prefill"})
            phases.append({"id": 2 * number + 1, "kind": "phase", "name": "prefill", "pid": 4711, "t_ms": number * length, "end_ms": number * length + PREFILL_MS})
            phases.append({"id": 2 * number + 2, "kind": "phase", "name": "decode", "pid": 4711, "t_ms": number * length + PREFILL_MS, "end_ms": None})
        if inside < PREFILL_MS:
            continue
        index = (inside - PREFILL_MS) // every_ms
        gap = None if index == 0 else every_ms * (2.4 if index % 37 == 0 else 1 + 0.25 * math.sin(index))
        found.append({"pid": 4711, "request": name, "index": index, "t_ms": t, "gap_ms": gap, "phase": "decode" if index else "prefill"})
        if inside + every_ms >= length:
            events.append({"pid": 4711, "request": name, "t_ms": t, "event": "done"})
            phases.append({"id": 2 * number + 2, "kind": "phase", "name": "decode", "pid": 4711, "t_ms": number * length + PREFILL_MS, "end_ms": t})
    return {"tokens": found, "requests": events}, {"phases": phases}


def summary(t_ms, losses=()):
    requests = t_ms // (TOKENS_OF_A_REQUEST * 20 + PREFILL_MS)
    seconds = t_ms / 1000
    return {
        "t_ms": t_ms, "samples": round(198 * seconds), "samples_per_s": 198.3 if t_ms else None, "cpu_busy": 1.97, "waiting": 3.2, "samples_lost": sum(loss["count"] for loss in losses if loss["where"] == "samples_ring"), "losses": list(losses),
        "processes": 2, "threads": 41, "tokens": round(48 * seconds), "tokens_per_s": 47.9 + math.sin(seconds), "requests_running": 1, "requests_done": requests,
        "rails": [{"rail": number, "joules": mean * seconds} for number, (_, _, _, mean, _) in enumerate(RAILS, 1)],
        "kernels": round(900 * seconds), "gpu_busy": [{"device": "GPU 0", "share": 0.83 + 0.05 * math.sin(seconds)}], "capture_bytes": round(91_000 * seconds),
    }


def functions(t_ms, rows=FUNCTIONS):
    seconds = t_ms / 1000
    return {"t_ms": t_ms, "rows": [{"name": name, "module": module, "self_ms": cost * 40 * seconds, "recent_ms": cost * 400 * (1 + 0.2 * math.sin(seconds + at))}
                                   for at, (name, module, cost) in enumerate(rows)]}


def kernels(t_ms):
    seconds = t_ms / 1000
    return {"t_ms": t_ms, "rows": [{"name": name, "module": "GPU 0", "count": round(90 * seconds), "self_ms": cost * 30 * seconds, "recent_ms": cost * 300}
                                   for name, cost in KERNELS]}


def layers(t_ms, count=16):
    seconds = t_ms / 1000
    return {"t_ms": t_ms, "rows": [{"pid": 4711, "layer": layer, "component": name, "calls": round(50 * seconds), "own_ms": cost * seconds * (1 + 0.05 * (layer % 5)),
                                    "recent_ms": cost * 10 * (1 + 0.3 * math.sin(seconds + layer))}
                                   for layer in range(count) for name, cost in COMPONENTS]}


def current(t_ms):
    return {"t_ms": t_ms, "rows": [
        {"pid": 4711, "tid": 4711, "thread": "python3", "domain": "sonde.model", "name": f"layer {t_ms // 20 % 16} down", "depth": 3, "since_ms": t_ms - t_ms % 20},
        {"pid": 4711, "tid": 4780, "thread": "tokenizer", "domain": None, "name": "encode", "depth": 1, "since_ms": t_ms - t_ms % 500}]}


def tick(double, from_ms, to_ms):
    """All messages of a span of the made-up recording: those that come once a second at its full seconds."""
    double.t_ms = to_ms
    double.say("live_power", power(from_ms, to_ms))
    came, began = tokens(from_ms, to_ms)
    if came["tokens"] or came["requests"]:
        double.say("live_tokens", came)
    if began["phases"]:
        double.say("live_phases", began)
    if to_ms // 250 != from_ms // 250:
        double.say("live_summary", summary(to_ms))
        double.say("live_current", current(to_ms))
    if to_ms // 1000 != from_ms // 1000:
        double.say("live_functions", functions(to_ms))
        double.say("live_kernels", kernels(to_ms))
        double.say("live_layers", layers(to_ms))
