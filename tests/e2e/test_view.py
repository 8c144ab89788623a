# SPDX-License-Identifier: Apache-2.0
"""The page of sonde view and sonde serve, in a real browser."""

import http.server
import json
import os
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from browser import wait_until
from server_client import Server
from trace_files import kineto_of_rank

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
EVENTS = 30_000  # milliseconds that Playwright waits for what must come


@pytest.fixture
def serve(sonde):
    """serve("view", ...) is the Server of a command; it is ended with the test."""
    servers = []

    def start(command, *arguments):
        servers.append(Server(sonde.start(command, "--listen", "127.0.0.1:0", *arguments)))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.end()


@pytest.fixture
def captures(tmp_path):
    folder = tmp_path / "captures"
    folder.mkdir()
    for name in ("device-2-plain", "capture-2-plain", "energy-2-plain"):
        shutil.copy(GOLDEN / f"{name}.pftrace", folder)
    shutil.copy(GOLDEN / "trace" / "trace-1.json", folder)
    (folder / "cut.pftrace").write_bytes((GOLDEN / "capture-2-plain.pftrace").read_bytes()[:700])
    (folder / "noise.pftrace").write_bytes(bytes(range(256)) * 16)
    return folder


def base_of(page):
    return page.url.split("#")[0]


def see(page, place, selector):
    page.goto(f"{base_of(page)}#{place}")
    page.wait_for_selector(selector)


def places_of(page):
    links = page.query_selector_all("header nav a")
    return [href[1:] for href in (link.get_attribute("href") for link in links) if href.startswith("#")]


@pytest.mark.parametrize("capture", ["device-2-plain.pftrace", "capture-2-plain.pftrace", "energy-2-plain.pftrace", "trace/trace-1.json"])
def test_every_view_of_a_capture(serve, open_page, capture):
    server = serve("view", "--no-browser", GOLDEN / capture)
    for scheme in ("light", "dark"):
        watched = open_page(server.address, scheme=scheme)
        places = places_of(watched.page)
        assert {"/report", "/flame", "/timeline"} <= {place.split("?")[0] for place in places}
        for place in places:
            see(watched.page, place, "main section, main canvas, main table, main p:not([role=status])")
            wait_until(watched.page, "!document.querySelector('[role=status]')?.innerText.includes('being made')")
            assert watched.violations() == [], place
        assert watched.faults == []
    hosts = {request.split("/")[2] for request in watched.requests if request.startswith(("http", "ws"))}
    assert hosts == {server.address.split("/")[2]}


def test_a_long_name_leaves_the_other_columns_on_the_screen(serve, open_page, sonde, tmp_path):
    stacks, capture = tmp_path / "long.folded", tmp_path / "long.pftrace"
    name = "void at::native::elementwise_kernel<" + ", ".join(f"at::detail::Array<char*, {at}>" for at in range(20)) + ">"
    stacks.write_text(f"main;{name} 70\nmain;short 30\n")
    sonde("import", "-o", capture, stacks)
    watched = open_page(serve("view", "--no-browser", capture).address, width=1280)
    watched.page.wait_for_selector(f"td[title='{name}']")
    tables = watched.page.evaluate("[...document.querySelectorAll('.scroll')].map((it) => [it.scrollWidth, it.clientWidth])")
    assert tables and all(needed <= there for needed, there in tables)


@pytest.mark.skipif(os.geteuid() != 0, reason="lines of Python are recorded by BPF, which needs root")
def test_a_long_path_keeps_its_end_on_the_screen(serve, open_page, sonde, tmp_path):
    path, capture = tmp_path / ("f" * 80) / ("g" * 80) / "train.py", tmp_path / "c.pftrace"
    path.parent.mkdir(parents=True)
    path.write_text("import time\nwhile time.process_time() < 1: sum(range(1000))\n")
    sonde("record", "-q", "-o", capture, "--", "/usr/bin/python3", path)
    page = open_page(serve("view", "--no-browser", capture).address).page
    page.wait_for_selector(f"td.path[title='{path}:2']")
    seen = page.evaluate("""() => {
        const cell = document.querySelector("td.path[title$='train.py:2']"), text = cell.querySelector("bdi").firstChild;
        const [first, last] = [0, text.length - 1].map((at) => {
            const range = document.createRange();
            range.setStart(text, at); range.setEnd(text, at + 1);
            const box = range.getBoundingClientRect(), frame = cell.getBoundingClientRect();
            return box.left >= frame.left && box.right <= frame.right;
        });
        return [first, last];
    }""")
    assert seen == [False, True]


def test_filters_and_sections(serve, open_page, sonde):
    capture = GOLDEN / "capture-2-plain.pftrace"
    watched = open_page(serve("view", "--no-browser", capture).address)
    page = watched.page
    page.wait_for_selector("main section")
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("symbol").fill("nothing_has_this_name")
    page.get_by_label("symbol").press("Enter")
    wait_until(page, "location.hash.includes('symbol=')")
    wanted = sonde("report", "--symbol", "nothing_has_this_name", capture, check=0).stdout.strip().splitlines()[-1]
    wait_until(page, f"document.querySelector('main').innerText.includes({json.dumps(wanted[:60])})")
    page.get_by_role("link", name="Clear").click()
    wait_until(page, "!location.hash.includes('symbol=')")

    see(page, "/section/module", "main section table")
    assert "Module" in page.inner_text("main")
    see(page, "/section/nosuch", "main [role=alert]")
    assert "nosuch" in page.inner_text("[role=alert]")


def test_timeline(serve, open_page):
    """Tiles are drawn, a slice can be selected, and the address shows the same again."""
    server = serve("view", "--no-browser", GOLDEN / "trace" / "trace-1.json")
    watched = open_page(server.address)
    page = watched.page
    see(page, "/timeline", "canvas")
    drawn = "() => { const c = document.querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return new Set(new Uint32Array(d.buffer)).size; }"
    wait_until(page, f"({drawn})() > 5")
    canvas = page.locator("canvas")
    canvas.focus()
    before = page.inner_text("main")
    for _ in range(3):
        page.keyboard.press("w")
    wait_until(page, "location.hash.includes('from=')")
    assert page.inner_text("main") != before
    zoomed = page.inner_text("p.foot")
    again = open_page(server.address)
    again.page.goto(f"{base_of(again.page)}{page.evaluate('location.hash')}")
    again.page.wait_for_selector("p.foot")
    assert again.page.inner_text("p.foot") == zoomed
    page.keyboard.press("0")
    box = canvas.bounding_box()
    # Every place of a grid, until there is a slice at one.
    for y in range(30, int(box["height"]), 12):
        for x in range(230, int(box["width"]), 40):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if re.search(r" at .* s, ", page.inner_text("p.details")):
                assert watched.faults == []
                return
    pytest.fail("no slice was found at any place of the timeline")


LAUNCHES = {
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 100, "dur": 60, "args": {"External id": 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 120, "dur": 10, "args": {"correlation": 11}},
        {"ph": "X", "cat": "kernel", "name": "gemm<b>", "pid": 0, "tid": 3, "ts": 900000, "dur": 50,
         "args": {"correlation": 11, "device": 0, "stream": 3, "grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 40}},
    ],
}


def test_a_launch_leads_to_its_work_and_back(serve, open_page, tmp_path):
    """Also where the other end is far out of view, and by keys alone."""
    trace = tmp_path / "launches.json"
    trace.write_text(json.dumps(LAUNCHES))
    server = serve("view", "--no-browser", trace)
    watched = open_page(server.address)
    page = watched.page
    see(page, "/timeline?from=0&to=100000", "canvas")
    page.locator("canvas").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_selector("section.slice")
    assert "aten::mm" in page.inner_text("section.slice .name")
    assert "Launched gemm<b>" in page.inner_text("ul.links")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('section.slice .name')?.innerText === 'gemm<b>'")
    details = page.inner_text("section.slice")
    assert "Launched by cudaLaunchKernel" in details
    assert "4 × 2 × 1" in details
    assert page.locator("ol.stack li").all_inner_texts() == ["aten::mm", "cudaLaunchKernel"]
    shown = re.search(r"from=(\d+)&to=(\d+)", page.url)
    assert int(shown[1]) <= 899_900_000 < int(shown[2])
    assert watched.violations() == []
    # The address shows the same slice again; its link goes back.
    again = open_page(server.address)
    see(again.page, page.url.split("#")[1], "section.slice")
    again.page.get_by_role("button", name="cudaLaunchKernel").click()
    wait_until(again.page, "document.querySelector('section.slice .name')?.innerText === 'cudaLaunchKernel'")
    again.page.locator("canvas").focus()
    again.page.keyboard.press("Shift+ArrowUp")
    wait_until(again.page, "document.querySelector('section.slice .name')?.innerText === 'aten::mm'")
    assert watched.faults == [] and again.faults == []


STEPS = {
    "traceEvents": [
        *({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 7, "tid": 7, "ts": n * 1000, "dur": 900 + 300 * (n == 13), "args": {}}
          for n in range(10, 30)),
        *({"ph": "X", "cat": "cpu_op", "name": f"aten::op{n}", "pid": 7, "tid": 7, "ts": n * 1000 + 10, "dur": 100, "args": {"External id": n}}
          for n in range(10, 30)),
        *({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 3, "ts": n * 1000 + 100, "dur": 500, "args": {"device": 0, "stream": 3}}
          for n in range(10, 30)),
    ],
}


def test_steps_one_by_one(serve, open_page, tmp_path):
    """A slider goes through them; the section below is of this step alone; the address keeps the step."""
    trace = tmp_path / "steps.json"
    trace.write_text(json.dumps(STEPS))
    server = serve("view", "--no-browser", trace)
    watched = open_page(server.address)
    page = watched.page
    see(page, "/steps", "input[type=range]")
    assert "Step 10" in page.inner_text("h3") and "1 of 20" in page.inner_text("h3")
    assert "longer than the 95th percentile" in page.inner_text("main")
    page.get_by_role("slider", name="Step").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_until(page, "location.hash.includes('n=13')")
    assert "1.20 ms" in page.inner_text(".facts")
    wait_until(page, "document.querySelector('main').innerText.includes('aten::op13')")
    assert "aten::op12" not in page.inner_text("main")
    assert watched.violations() == []
    again = open_page(server.address)
    see(again.page, page.url.split("#")[1], "input[type=range]")
    wait_until(again.page, "document.querySelector('h3')?.innerText.includes('Step 13')")
    again.page.locator("main").get_by_role("link", name="Timeline").click()
    again.page.wait_for_selector("canvas")
    assert re.search(r"from=29\d{5}&to=42\d{5}", again.page.url)
    see(page, "/steps/request", "main p")
    wait_until(page, "document.querySelector('main').innerText.includes('No requests to a model were recorded')")
    assert watched.faults == [] and again.faults == []


def test_ranks_and_tokens_one_by_one(serve, open_page, tmp_path):
    """Ranks of a folder come by their numbers; what a capture does not have is said."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(3):
        kineto_of_rank(folder / f"rank{rank}.json", rank, 3)
    watched = open_page(serve("view", "--no-browser", folder).address)
    page = watched.page
    see(page, "/steps/rank", "input[type=range]")
    assert "Rank 0" in page.inner_text("h3") and "1 of 3" in page.inner_text("h3")
    page.get_by_role("button", name="Play").click()
    wait_until(page, "document.querySelector('h3').innerText.includes('3 of 3')")
    wait_until(page, "[...document.querySelectorAll('button')].some((button) => button.innerText === 'Play')")
    # Another view, before the address says where the slider is.
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    see(page, "/steps/token", "main p")
    wait_until(page, "document.querySelector('main').innerText.includes('No tokens were recorded')")
    assert page.locator("h3").count() == 0
    assert watched.violations() == []
    assert watched.faults == []


def test_graphs_over_time(serve, open_page, tmp_path):
    """How busy the device is, shaded by the steps that there are; what is selected with the keys becomes a filter of the other views."""
    trace = tmp_path / "steps.json"
    trace.write_text(json.dumps(STEPS))
    watched = open_page(serve("view", "--no-browser", trace).address)
    page = watched.page
    see(page, "/graphs", "figure.graph canvas")
    assert "busy (%)" in page.inner_text("figure.graph")
    wait_until(page, "document.querySelector('select').value === 'step'")
    drawn = "(() => { const c = document.querySelector('figure.graph canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return new Set(new Uint32Array(d.buffer)).size; })()"
    wait_until(page, f"{drawn} > 3")
    page.locator("figure.graph canvas").first.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert re.search(r"[\d.]+ at 1\.[\d]+ ms, 11$", page.inner_text("figure.graph .value"))
    for _ in range(10):
        page.keyboard.press("Shift+ArrowRight")
    page.wait_for_selector(".selection")
    href = page.locator(".selection").get_by_role("link", name="Flame graph").get_attribute("href")
    assert re.search(r"time=0\.001\d+\.\.0\.003\d+", href)
    page.keyboard.press("Enter")
    wait_until(page, "location.hash.includes('from=')")
    page.get_by_role("button", name="Show all").click()
    wait_until(page, "!location.hash.includes('from=')")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV of").first.click()
    assert Path(saved.value.path()).read_text().startswith("start_ns,first,minimum,maximum,last")
    assert watched.violations() == []
    # The test reads pixels, which Chromium advises against.
    assert [fault for fault in watched.faults if "readback" not in fault] == []


def test_a_timeline_of_many_threads(serve, open_page, tmp_path):
    """More than a canvas can be high: what is scrolled into view is drawn, and can be selected."""
    trace = tmp_path / "threads.json"
    events = [{"ph": "X", "cat": "cpu_op", "name": f"op{tid}", "pid": 7, "tid": tid, "ts": 0, "dur": 1000, "args": {}} for tid in range(2000)]
    trace.write_text(json.dumps({"traceEvents": events}))
    watched = open_page(serve("view", "--no-browser", trace).address)
    page = watched.page
    see(page, "/timeline", "canvas")
    canvas = page.locator("canvas")
    scrolled = "document.querySelector('.timeline')"
    assert page.evaluate(f"{scrolled}.scrollHeight") > 40_000
    assert canvas.bounding_box()["height"] < 900
    page.evaluate(f"{scrolled}.scrollTop = {scrolled}.scrollHeight")
    box = canvas.bounding_box()
    end = time.monotonic() + 60
    # Until its tile is there.
    while not page.inner_text("p.details").startswith("op1999 at"):
        assert time.monotonic() < end, page.inner_text("p.details")
        for x in (700, 701):
            page.mouse.move(box["x"] + x, box["y"] + box["height"] - 14)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector("section.slice")
    assert page.inner_text("section.slice .name") == "op1999"
    assert watched.violations() == []
    assert watched.faults == []


# A double of Perfetto's page: the handshake of its documentation, and what it got as its title.
PERFETTO_DOUBLE = """<!doctype html><title>waiting</title><script>
addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin);
  else if (event.data.perfetto) document.title = JSON.stringify([event.origin, event.data.perfetto.title, event.data.perfetto.buffer.byteLength]);
});
</script>"""


@pytest.fixture
def perfetto_double():
    """Its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PERFETTO_DOUBLE.encode())

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()


@pytest.mark.parametrize("capture", ["capture-2-plain.pftrace", "trace/trace-1.json"])
def test_a_capture_is_handed_to_perfetto(serve, open_page, perfetto_double, capture):
    server = serve("view", "--no-browser", "--perfetto", perfetto_double, GOLDEN / capture)
    watched = open_page(server.address)
    with watched.page.context.expect_page() as opened:
        watched.page.get_by_role("button", name="Open in Perfetto").click()
    wait_until(opened.value, "document.title.startsWith('[')")
    origin = server.address.split("/?")[0].rstrip("/")
    path = GOLDEN / capture
    assert json.loads(opened.value.title()) == [origin, path.name, path.stat().st_size]
    assert watched.faults == []


def test_without_perfetto_there_is_no_such_button(serve, open_page, sonde):
    page = open_page(serve("view", "--no-browser", "--perfetto", "", GOLDEN / "capture-2-plain.pftrace").address).page
    page.wait_for_selector("header nav a")
    assert page.get_by_role("button", name="Open in Perfetto").count() == 0
    refused = sonde("view", "--no-browser", "--perfetto", "javascript:alert(1)", GOLDEN / "capture-2-plain.pftrace")
    assert refused.status == 2 and "--perfetto javascript:alert(1) is no address" in refused.stderr


def test_a_profile_opens_in_speedscope(serve, open_page):
    """Its released app, from this server, with the flame graph's weight."""
    server = serve("view", "--no-browser", GOLDEN / "capture-2-plain.pftrace")
    watched = open_page(server.address)
    page = watched.page
    see(page, "/flame/wall", "canvas")
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Open in speedscope").click()
    app = opened.value
    requests = []
    app.on("request", lambda request: requests.append(request.url))
    app.reload()
    wait_until(app, "document.title.startsWith('capture-2-plain.pftrace')")
    assert any("format=speedscope&weight=wall" in url for url in requests)
    assert {url.split("/")[2] for url in requests if url.startswith("http")} == {server.address.split("/")[2]}
    assert watched.faults == []


def test_the_page_saves_what_the_command_exports(serve, open_page, sonde, tmp_path):
    capture = GOLDEN / "capture-2-plain.pftrace"
    page = open_page(serve("view", "--no-browser", capture).address).page
    see(page, "/flame/wall?symbol=train*", "canvas")
    with page.expect_download() as saved:
        page.get_by_label("Save as").select_option("folded")
    assert saved.value.suggested_filename == "capture-2-plain.folded"
    wanted = sonde("export", "-f", "folded", "--weight", "wall", "--symbol", "train*", "-o", "-", capture, check=0).stdout
    assert Path(saved.value.path()).read_text() == wanted
    page.get_by_label("Save as").select_option("chakra")
    wait_until(page, "document.querySelector('.export .said')?.innerText.length > 20")
    refused = sonde("export", "-f", "chakra", "--symbol", "train*", "-o", tmp_path / "x.et", capture)
    assert page.inner_text(".export .said").strip() in refused.stderr


def test_a_folder_of_captures(serve, open_page, captures):
    watched = open_page(serve("serve", captures).address)
    page = watched.page
    see(page, "/captures", "main ul")
    names = page.inner_text("main ul")
    assert {"capture-2-plain.pftrace", "device-2-plain.pftrace", "trace-1.json"} <= set(re.findall(r"\S+\.(?:pftrace|json)", names))
    page.get_by_role("link", name="noise.pftrace").click()
    page.wait_for_selector("main [role=alert]")
    assert "noise.pftrace" in page.inner_text("main [role=alert]")
    see(page, "/captures", "main ul")
    page.get_by_role("link", name="device-2-plain.pftrace").click()
    page.wait_for_selector("main section")
    assert watched.violations() == []


def test_comparison(serve, open_page, captures):
    """The flame graph of two captures: red is more, blue less, with both sides' shares."""
    shutil.copy(captures / "capture-2-plain.pftrace", captures / "later.pftrace")
    watched = open_page(serve("serve", captures).address)
    page = watched.page
    see(page, "/captures", "main ul")
    page.get_by_role("link", name="capture-2-plain.pftrace").click()
    page.wait_for_selector("main section")
    page.get_by_role("link", name="Compare").click()
    page.get_by_label("After is").select_option(label="later.pftrace")
    page.wait_for_selector("canvas")
    head = page.inner_text("table thead")
    assert "Self before" in head and "Self after" in head
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    assert re.search(r"before [\d.]+ % → after [\d.]+ %", page.inner_text("p.details"))
    assert page.locator(".legend li").all_inner_texts() == ["less after", "no change", "more after"]
    page.get_by_label("Normalised").uncheck()
    wait_until(page, "location.hash.includes('amounts=yes')")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    assert "→" in page.inner_text("p.details")
    assert watched.violations() == []
    assert watched.faults == []


def test_a_running_recording_is_followed(serve, sonde, workload, tmp_path, open_page):
    capture = tmp_path / "live.pftrace"
    recorder = sonde.start("record", "-q", "-o", capture, "--", *workload("spin"), 600)
    end = time.monotonic() + 60
    while not (capture.exists() and capture.stat().st_size):
        assert time.monotonic() < end, "the recording did not begin"
        time.sleep(0.05)
    page = open_page(serve("view", "--no-browser", capture).address).page
    # The live view is shown first.
    see(page, "/report", "main section")
    page.wait_for_selector("label.live", timeout=EVENTS)
    recorded = "document.querySelector('main').innerText.match(/[\\d.]+ m?s recorded/)?.[0]"
    before = page.evaluate(recorded)
    wait_until(page, f"({recorded}) && ({recorded}) !== {json.dumps(before)}")
    recorder.terminate()
    recorder.wait(timeout=60)


def test_it_says_when_sonde_has_ended(serve, open_page):
    server = serve("view", "--no-browser", GOLDEN / "capture-2-plain.pftrace")
    page = open_page(server.address).page
    page.wait_for_selector("main section")
    server.end()
    page.wait_for_selector(".connection", timeout=EVENTS)
    page.get_by_role("link", name="Flame graph").click()
    page.wait_for_selector("main [role=alert]", timeout=EVENTS)
    assert "does not answer" in page.inner_text("main [role=alert]")


def test_record_ends_in_the_page(sonde, open_page, tmp_path):
    """--view: the recording in the browser; the exit status stays that of the command."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "xdg-open").write_text("#!/bin/sh\nexit 0\n")
    (programs / "xdg-open").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    capture = tmp_path / "run.pftrace"
    server = Server(sonde.start("record", "--view", "-q", "-o", capture, "--", "sh", "-c", "exit 3", env={"PATH": path, "DISPLAY": ":0"}))
    page = open_page(server.address).page
    page.wait_for_selector("main section")
    assert "exit 3" in page.inner_text("main")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=60) == 3


def test_several_captures_are_not_viewed(sonde, tmp_path):
    done = sonde("record", "--view", "--split", "--window", "steps:active=1", "-o", tmp_path / "run.pftrace", "--", "true")
    assert done.status == 2
    assert "--view shows one capture" in done.stderr
