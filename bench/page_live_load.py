#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_live_load.py PAGE MINUTES SECONDS: the live view in Chromium under a made-up recording, as JSON.

PAGE is the folder of the built page. A double of the server sends MINUTES of history as fast as the page takes it: four
rails at 10 Hz, 48 tokens a second with their requests and phases, functions, kernels and 144 components once a second. Then
it goes on at the speed of a recording, ten messages a second of each kind that comes so often. Measured are SECONDS of that
with nothing else on the page, between two garbage collections; then as long again with a frame recorder. Needs Playwright.
"""

import base64
import hashlib
import http.server
import json
import socketserver
import struct
import sys
import threading
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import live_double  # noqa: E402
from browser import launch  # noqa: E402

CAPTURE = "00000000000000aa"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
TICK_MS = 100
FIGURES = {"inference": {"requests": [], "requests_total": 0, "ttft_ns": {"p50": 180_000_000, "p99": 210_000_000}, "itl_ns": {"p50": 20_000_000, "p99": 48_000_000},
                         "tokens_per_s": 47.9, "joules_per_output_token": 6.1, "energy": {"full_j": 5e5, "uncertainty_j": None, "reason": None}}}
IDLE = {"format": "sonde-page", "version": 1, "sonde_version": "", "names": [], "sections": []}
RECORD_FRAMES = """() => { window.frames_ms = []; let last = performance.now();
    const next = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(next); }; requestAnimationFrame(next); }"""


class Recording(live_double.LiveDouble):
    """Messages to one real WebSocket."""

    def __init__(self, write):  # no page to route
        self.capture, self.epoch, self.seq, self.t_ms = CAPTURE, live_double.EPOCH, 0, 0
        self.latest, self.history, self.addresses, self.hello = {}, [], [""], {"read_only": False, "is_view": True}
        self.write = write
        self.bytes = 0

    @property
    def socket(self):
        return self

    def send(self, first, *rest, **more):
        if rest:
            return super().send(first, *rest, **more)
        payload = first.encode()
        self.bytes += len(payload)
        size = struct.pack("!BBH", 0x81, 126, len(payload)) if len(payload) < 65536 else struct.pack("!BBQ", 0x81, 127, len(payload))
        return self.write((size if len(payload) >= 126 else struct.pack("!BB", 0x81, len(payload))) + payload)

    def say(self, kind, data, **more):
        super().say(kind, data, **more)
        self.history.clear()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/ws":
            self.stream()
        elif path.startswith("/api/"):
            self.answer(json.dumps(self.api(path)).encode(), "application/json")
        else:
            file = self.server.page / (path.strip("/") or "index.html")
            self.answer(file.read_bytes(), TYPES[file.suffix])

    def api(self, path):
        now_ms = int(time.time() * 1000)
        capture = {"id": CAPTURE, "name": "run.pftrace", "kind": "file", "size": 1, "modified_ms": now_ms, "state": "open", "message": None}
        answers = {"/api/captures": {"captures": [capture]}, f"/api/captures/{CAPTURE}": capture, "/api/jobs": {"jobs": []}, "/api/status": {"mode": "view"},
                   f"/api/captures/{CAPTURE}/report": IDLE if "by=idle" in self.path else FIGURES}
        return answers.get(path, {})

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())):
            self.send_header(name, value)
        self.end_headers()
        self.server.load(Recording(self.wfile.write))

    def log_message(self, *_):
        pass


class Double(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, page, minutes):
        super().__init__(("127.0.0.1", 0), Handler)
        self.page, self.minutes = page, minutes
        self.caught_up, self.ends = threading.Event(), threading.Event()
        self.recording = None

    def load(self, recording):
        self.recording = recording
        recording.greet()
        recording.say("live_session", live_double.session())
        past_ms = self.minutes * 60_000
        for t_ms in range(0, past_ms, 1000):
            live_double.tick(recording, t_ms, t_ms + 1000)
        self.caught_up.set()
        begin = time.monotonic()
        at_ms = past_ms
        while not self.ends.is_set():
            live_double.tick(recording, at_ms, at_ms + TICK_MS)
            at_ms += TICK_MS
            self.ends.wait(max(0, begin + (at_ms - past_ms) / 1000 - time.monotonic()))


class Meter:
    """Chromium's own figures of the page."""

    def __init__(self, page):
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read(self, collects):
        for _ in range(3 if collects else 0):
            self.session.send("HeapProfiler.collectGarbage")
        metrics = {metric["name"]: metric["value"] for metric in self.session.send("Performance.getMetrics")["metrics"]}
        return time.monotonic(), metrics

    def over(self, seconds, collects):
        """(share of the time in which the main thread was busy, of it in scripts, bytes of the heap before and after)."""
        begin, before = self.read(collects)
        self.page.wait_for_timeout(1000 * seconds)
        # Before the garbage collection at the end, which is not the page's work.
        end, busy = self.read(False)
        after = self.read(collects)[1] if collects else busy
        share = {name: (busy[name] - before[name]) / (end - begin) for name in ("TaskDuration", "ScriptDuration")}
        return share, before["JSHeapUsedSize"], after["JSHeapUsedSize"]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    page_folder, minutes, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    server = Double(page_folder, minutes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        begin = time.monotonic()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/#/live?span=0")
        page.wait_for_selector(".plot canvas")
        while not server.caught_up.wait(0.05):
            pass
        # Taken, too, not only sent.
        while not page.inner_text(".clock").startswith(f"{minutes}:0"):
            page.wait_for_timeout(50)
        caught_up_s = time.monotonic() - begin
        page.wait_for_timeout(5000)
        meter = Meter(page)
        sent = server.recording.seq
        share, heap_before, heap_after = meter.over(seconds, collects=True)
        sent = server.recording.seq - sent
        page.evaluate(RECORD_FRAMES)
        with_frames, _, _ = meter.over(seconds, collects=False)
        frames_ms = page.evaluate("window.frames_ms")[1:]
        server.ends.set()
        browser.close()
    print(json.dumps({
        "minutes": minutes, "seconds": seconds, "caught_up_s": caught_up_s, "messages_per_s": sent / seconds,
        "busy_share": share["TaskDuration"], "script_share": share["ScriptDuration"], "busy_with_frames_share": with_frames["TaskDuration"],
        "heap_before_bytes": heap_before, "heap_after_bytes": heap_after,
        "fps_median": 1000 / percentile(frames_ms, 0.5), "frame_p99_ms": percentile(frames_ms, 0.99), "frame_longest_ms": max(frames_ms),
    }))


if __name__ == "__main__":
    main()
