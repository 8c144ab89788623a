# SPDX-License-Identifier: Apache-2.0
"""The live view of the page. A double of /ws says what a recording would (live_double.py); all else is the real server."""

import csv
import io
import json
import re
import time
from pathlib import Path

import live_double as made_up
import pytest
from browser import wait_until
from live_double import ControlsDouble, LiveDouble
from live_frames import decode, encode
from server_client import Server

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests" / "golden" / "device-2-plain.pftrace"
WAIT = 30_000  # milliseconds that Playwright waits for what must come


@pytest.fixture
def server(sonde):
    server = Server(sonde.start("view", "--no-browser", "--listen", "127.0.0.1:0", CAPTURE))
    yield server
    if server.process.poll() is None:
        server.end()


@pytest.fixture
def live(server, open_page):
    """live(...) is the page of a capture and the double that speaks to it; the recording has begun where `begins` is."""
    capture = server.get("/api/captures").json()["captures"][0]["id"]

    def open_it(begins=True, place="", session=None, commands=None, hello=None, **more):
        doubles = []

        def before(page):
            doubles.append(LiveDouble(page, capture, **(hello or {})))
            if commands is not None:
                doubles[0].controls = ControlsDouble(page, doubles[0], commands)
            if begins:
                doubles[0].say("live_session", session or made_up.session())
                made_up.tick(doubles[0], 0, 1000)

        watched = open_page(server.address, before=before, **more)
        if place:
            watched.page.goto(f"{watched.page.url.split('#')[0]}{place}")
        return watched, doubles[0]

    return open_it


def text_of(page, name):
    return page.inner_text(f"section[aria-label='{name}']")


def shows(page, name, text):
    wait_until(page, f"document.querySelector('section[aria-label=\"{name}\"]').innerText.includes({json.dumps(text)})")


def drop_and_return(page, double):
    """The connection ends; the page says so, which may last for a moment only, and connects again."""
    page.evaluate("""() => {
        window.wasSaid = false;
        new MutationObserver(() => { window.wasSaid ||= document.querySelector('.connection') !== null; })
            .observe(document.body, { childList: true, subtree: true });
    }""")
    double.drop()
    wait_until(page, "window.wasSaid && document.querySelector('.connection') === null")


def tile(page, name):
    return page.locator(".tile").filter(has=page.get_by_text(name, exact=True)).inner_text()


@pytest.mark.parametrize("scheme,width", [("light", 1280), ("dark", 1280), ("light", 400)])
def test_a_recording_opens_live(live, scheme, width):
    """What is being recorded is shown first, with its history; nothing goes wrong, and axe finds nothing."""
    watched, double = live(scheme=scheme, width=width)
    page = watched.page
    page.wait_for_selector(".live-view .plot canvas", timeout=WAIT)
    for t in range(1000, 6000, 500):
        made_up.tick(double, t, t + 500)
    wait_until(page, "document.querySelector('.clock').innerText === '0:06'")
    assert page.inner_text("header nav [aria-current=page]") == "Live"
    assert "198" in tile(page, "Samples per second")
    assert "none" in tile(page, "Samples lost")
    assert re.search(r"(7[89]|8\d) %", tile(page, "GPU busy"))
    assert re.search(r"\d", tile(page, "Tokens per second"))
    shows(page, "Power", "part of package-0")
    shows(page, "Tokens", "first after 180 ms")
    shows(page, "Functions by CPU time", "mkldnn_sgemm_kernel")
    shows(page, "Kernels by device time", "flash_fwd_kernel")
    shows(page, "Running now", "tokenizer")
    assert page.locator(".heat tbody tr").count() == 16
    assert watched.violations() == []
    assert watched.faults == []


def seen_by(page):
    """The place on the page where each type of message shows, as a condition in JavaScript."""
    within = "document.querySelector('main')?.innerText ?? ''"
    return {
        "hello": "true",  # the address that it comes back with: test_it_comes_back_without_loss
        "snapshot": "document.querySelector('.live-view') !== null",
        "live_session": f"({within}).includes('on node-7')",
        "live_summary": f"({within}).includes('12,345 in')",
        "live_power": f"({within}).includes('222.0 W') || ({within}).includes('222 W')",
        "live_tokens": f"({within}).includes('a-request')",
        "live_phases": "true",  # on a canvas: test_phases_are_drawn
        "live_functions": f"({within}).includes('a_function')",
        "live_kernels": f"({within}).includes('a_kernel')",
        "live_layers": f"({within}).includes('layer 7')",
        "live_current": f"({within}).includes('a_range')",
        "gap": f"({within}).includes('321 messages were missed')",
        "live_ended": f"({within}).includes('exit status 3')",
        "bye": "document.querySelector('.connection')?.innerText.includes('sonde has ended')",
        "capture_state": "true",  # answers say the same: nothing is made of it
        "job": "document.querySelector('header nav').innerText.includes('Record')",
    }


MESSAGES = [
    ("live_session", made_up.session()),
    ("live_summary", {**made_up.summary(3000), "samples": 12345}),
    ("live_power", {"rails": [{"rail": 4, "t_ms": [2900, 3000], "w": [220, 222]}]}),
    ("live_tokens", {"tokens": [{"pid": 1, "request": "a-request", "index": 0, "t_ms": 2500, "gap_ms": None, "phase": "decode"}], "requests": []}),
    ("live_phases", {"phases": [{"id": 1, "kind": "phase", "name": "decode", "pid": 1, "t_ms": 100, "end_ms": 900}]}),
    ("live_functions", {"t_ms": 3000, "rows": [{"name": "a_function", "module": "m", "self_ms": 5, "recent_ms": 4}]}),
    ("live_kernels", {"t_ms": 3000, "rows": [{"name": "a_kernel", "module": "GPU 0", "count": 1, "self_ms": 5, "recent_ms": 4}]}),
    ("live_layers", {"t_ms": 3000, "rows": [{"pid": 1, "layer": 7, "component": "q", "calls": 1, "own_ms": 5, "recent_ms": 4}]}),
    ("live_current", {"t_ms": 3000, "rows": [{"pid": 1, "tid": 2, "thread": "t", "domain": None, "name": "a_range", "depth": 1, "since_ms": 0}]}),
    ("capture_state", {"capture": "0" * 16, "state": "open", "done": 1, "total": 1}),
    ("job", {"id": "1", "command": "c", "state": "running", "capture": None, "started_unix_ms": 1, "exit_status": None, "window": None, "message": None}),
    ("gap", {"from": 1, "to": 321, "count": 321, "reason": "too-slow"}),
    ("live_ended", {"t_ms": 3000, "reason": "end", "message": None, "exit_status": 3}),
    ("bye", {"reason": "server-ends"}),
]


def schema_of_messages():
    document = json.loads((ROOT / "schema" / "api.json").read_text())
    return {schema["x-message"]["type"]: {**schema, "components": document["components"]}
            for schema in document["components"]["schemas"].values() if "x-message" in schema}


def test_every_message_is_taken(live):
    """Each type that the schema has is sent, as the schema has it, and seen. A type that is added has to be added here."""
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI gave no jsonschema: see tools/venv tests")
    schemas = schema_of_messages()
    watched, double = live(begins=False, place="#/live")
    page = watched.page
    seen = seen_by(page)
    assert set(schemas) == set(seen) == {kind for kind, _ in MESSAGES} | {"hello", "snapshot"}
    for kind, data in MESSAGES:
        sent = {"capture": double.capture, **data} if kind.startswith("live_") else data
        jsonschema.Draft202012Validator(schemas[kind]).validate(sent)
        if kind in ("gap", "bye"):
            double.send(0, kind, data)
        else:
            double.say(kind, data)
        wait_until(page, seen[kind])
    wait_until(page, seen["snapshot"])
    assert watched.faults == []


def test_made_up_messages_fit_the_schema():
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI gave no jsonschema: see tools/venv tests")
    schemas = schema_of_messages()
    came, began = made_up.tokens(0, 10_000)
    for kind, data in [("live_power", made_up.power(0, 1000)), ("live_tokens", came), ("live_phases", began), ("live_functions", made_up.functions(1000)),
                       ("live_kernels", made_up.kernels(1000)), ("live_layers", made_up.layers(1000)), ("live_current", made_up.current(1000)),
                       ("live_summary", made_up.summary(0)), ("live_session", made_up.session())]:
        jsonschema.Draft202012Validator(schemas[kind]).validate({"capture": "c", **data})


def colours(page, selector):
    """How many there are on a canvas."""
    return page.evaluate("""(selector) => { const c = document.querySelector(selector);
        return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size; }""", selector)


def test_phases_are_drawn(live):
    """The picture has other colours with phases than without."""
    session = made_up.session(rails=made_up.RAILS[:1])
    watched, double = live(begins=False, place="#/live")
    double.say("live_session", session)
    double.say("live_summary", made_up.summary(1000))
    double.say("live_power", {"rails": [{"rail": 1, "t_ms": [1000, 2000], "w": [10, 12]}]})
    watched.page.wait_for_selector(".plot canvas", timeout=WAIT)
    at = "() => { const c = document.querySelector('.plot canvas'); return [...c.getContext('2d').getImageData(c.width * 0.3, c.height * 0.3, 1, 1).data].join(); }"
    before = watched.page.evaluate(at)
    double.say("live_phases", {"phases": [{"id": 1, "kind": "phase", "name": "prefill", "pid": 1, "t_ms": 0, "end_ms": 20_000}]})
    double.say("live_power", {"rails": [{"rail": 1, "t_ms": [3000], "w": [11]}]})
    wait_until(watched.page, f"({at})() !== {json.dumps(before)}")


def test_it_comes_back_without_loss(live):
    """Offline and back: from the last message on. What was missed is said; a new run of the server begins anew."""
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".plot canvas", timeout=WAIT)
    drop_and_return(page, double)
    assert f"epoch={double.epoch}&seq={double.seq}" in double.addresses[-1]
    double.t_ms = 9000
    double.send(0, "gap", {"from": double.seq + 1, "to": double.seq + 1234, "count": 1234, "reason": "too-slow"})
    double.seq += 1234
    page.wait_for_selector(".missed", timeout=WAIT)
    assert re.match(r"1,234 messages were missed between .* and .*: this page was too slow for them", page.inner_text(".missed"))
    made_up.tick(double, 9000, 10_000)
    wait_until(page, "document.querySelector('.clock').innerText === '0:10'")

    double.drop()
    double.epoch, double.seq, double.latest, double.history = "f" * 32, 0, {}, []
    double.say("live_session", made_up.session(generation=2))
    made_up.tick(double, 0, 2000)
    wait_until(page, "document.querySelector('.clock')?.innerText === '0:02'")
    assert watched.faults == []


def test_a_binary_frame_that_cannot_be_read(live):
    """It is one message that was missed; what comes after it is shown."""
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".plot canvas", timeout=WAIT)
    double.seq += 1
    envelope = {"epoch": double.epoch, "seq": double.seq, "t_ms": 9000, "type": "live_power", "data": {"capture": double.capture, "rails": []}}
    double.socket.send(encode(envelope)[:-1])
    page.wait_for_selector(".missed", timeout=WAIT)
    assert re.match(r"1 message was missed between .* and .*: this page could not read it", page.inner_text(".missed"))
    made_up.tick(double, 1000, 2000)
    wait_until(page, "document.querySelector('.clock').innerText === '0:02'")
    assert watched.faults == []


def test_a_clock_that_jumps(live):
    """The page's clock is set back by an hour, and then a day ahead: live figures go on as they came."""
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".plot canvas", timeout=WAIT)
    for number, shift_ms in enumerate((-3_600_000, 86_400_000), 1):
        page.evaluate("(shift) => { const now = Date.now.bind(Date); Date.now = () => now() + shift; }", shift_ms)
        made_up.tick(double, number * 1000, (number + 1) * 1000)
        wait_until(page, f"document.querySelector('.clock').innerText === '0:0{number + 1}'")
    drop_and_return(page, double)
    made_up.tick(double, 3000, 4000)
    wait_until(page, "document.querySelector('.clock').innerText === '0:04'")
    assert watched.faults == []


def test_a_loss_is_loud(live):
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".tile", timeout=WAIT)
    assert page.locator(".loss").count() == 0
    double.say("live_summary", made_up.summary(2000, losses=[{"where": "samples_ring", "count": 4321}, {"where": "waits", "count": 0}]))
    page.wait_for_selector(".loss", timeout=WAIT)
    assert page.inner_text(".loss") == "Samples were lost: 4,321 samples ring. All figures lack them."
    assert page.get_attribute(".loss", "role") == "alert"
    assert "4,321" in tile(page, "Samples lost")
    assert watched.violations() == []


def test_what_is_lost_besides_samples_is_no_alarm(live):
    """The report of such a recording says that no samples were lost; so does the page."""
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".tile", timeout=WAIT)
    double.say("live_summary", made_up.summary(2000, losses=[{"where": "sideband_ring", "count": 4321}]))
    page.get_by_text("No samples were lost, but what names them: 4,321 sideband ring.").wait_for(timeout=WAIT)
    assert page.locator(".loss").count() == 0
    assert "none" in tile(page, "Samples lost")


def test_pause_and_follow(live):
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".tile", timeout=WAIT)
    wait_until(page, "document.querySelector('.clock').innerText === '0:01'")
    page.get_by_role("button", name="Pause").click()
    made_up.tick(double, 1000, 5000)
    # The state is not paused: what has ended is said. It comes after the others, which are then here, too.
    double.say("live_ended", {"t_ms": 5000, "reason": "stalled", "message": "The file has stopped growing.", "exit_status": None})
    wait_until(page, "document.querySelector('.state').innerText.includes('stopped growing')")
    assert page.inner_text(".clock") == "0:01"
    double.say("live_summary", made_up.summary(6000))
    page.get_by_role("button", name="Follow again").click()
    wait_until(page, "document.querySelector('.clock').innerText === '0:06'")


def test_keys_zoom_and_exports(live):
    watched, double = live()
    page = watched.page
    page.wait_for_selector(".plot canvas", timeout=WAIT)
    double.say("live_ended", {"t_ms": 1000, "reason": "end", "message": None, "exit_status": 0})
    plot = page.locator(".plot")
    plot.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    wait_until(page, "document.querySelector('.plot').getAttribute('aria-valuetext').startsWith('at ')")
    for key in "++d":
        page.keyboard.press(key)
    page.get_by_role("button", name="Back to the latest").wait_for()
    page.keyboard.press("0")
    wait_until(page, "![...document.querySelectorAll('button')].some((button) => button.innerText === 'Back to the latest')")
    page.get_by_role("button", name="10 min").click()
    wait_until(page, "location.hash.includes('span=600')")
    rail = page.get_by_role("button", name=re.compile("^dram"))
    rail.click()
    assert rail.get_attribute("aria-pressed") == "false"

    strip = page.get_by_role("slider", name="Tokens of request request-1")
    strip.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert re.match(r"Token \d+: [\d.]+ ms after the one before, at \d+ ms, decode\.", page.inner_text(".tip"))

    power = page.locator("section[aria-label=Power]")
    with page.expect_download() as download:
        power.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    known = [float(row["package-0_max_w"]) for row in rows if row["package-0_max_w"]]
    assert max(known) == pytest.approx(max(made_up.watts(0, t) for t in range(100, 1001, 100)), rel=1e-3)
    with page.expect_download() as download:
        power.get_by_role("button", name="PNG").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
    for name, column in [("Tokens", "gap_ms"), ("Functions by CPU time", "self_ms"), ("Kernels by device time", "recent_ms"), ("Layers", "own_ms")]:
        with page.expect_download() as download:
            page.locator(f"section[aria-label='{name}']").get_by_role("button", name="JSON").click()
        assert json.loads(Path(download.value.path()).read_text())[0].keys() >= {column}
    assert watched.faults == []


def test_the_layers_of_late(live):
    watched, _ = live()
    page = watched.page
    page.wait_for_selector(".heat", timeout=WAIT)
    before = page.inner_text(".heat tbody")
    page.get_by_role("combobox", name="Time").select_option("recent_ms")
    wait_until(page, f"document.querySelector('.heat tbody').innerText !== {json.dumps(before)}")
    assert page.locator(".heat tbody tr").count() == 16


def test_why_there_is_no_power(live):
    """Each source that there is not, with its reason; other panels say what would bring them something."""
    absences = [{"source": "powercap", "reason": "/sys/class/powercap: No such file"}, {"source": "nvml", "reason": "no driver"}]
    watched, double = live(begins=False, place="#/live")
    double.say("live_session", made_up.session(rails=[], absences=absences))
    page = watched.page
    page.wait_for_selector(".live-view", timeout=WAIT)
    double.say("live_summary", {**made_up.summary(1000), "tokens": 0, "kernels": 0, "gpu_busy": [], "rails": []})
    page.wait_for_selector(".tile", timeout=WAIT)
    shows(page, "Power", "powercap /sys/class/powercap: No such file")
    shows(page, "Power", "no sensor that sonde can read")
    for name in ("Tokens", "Functions by CPU time", "Kernels by device time", "Layers", "Running now", "Why devices were idle"):
        assert page.locator(f"section[aria-label='{name}'] .empty").count() == 1, name
    assert "no power sensor" in tile(page, "Energy per token")
    assert watched.violations() == []
    assert watched.faults == []


def test_idle_causes_are_those_of_the_report(live, sonde):
    watched, _ = live()
    page = watched.page
    page.wait_for_selector("section[aria-label='Why devices were idle'] table", timeout=WAIT)
    line = next(line for line in sonde("report", "--by", "idle", CAPTURE, check=0).stdout.splitlines() if "kernel_wait" in line or "ait" in line)
    word = re.sub(r"\s+", " ", line).strip().split(" ")[-1]
    assert word in text_of(page, "Why devices were idle")


def test_names_with_markup_are_text(live):
    hostile = "<img src=x onerror=alert(1)>"
    session = made_up.session(rails=[(hostile, "cpu", None, 1, 1)], command=[hostile], host=hostile, absences=[])
    watched, double = live(begins=False, place="#/live")
    double.say("live_session", session)
    double.say("live_summary", {**made_up.summary(1000), "gpu_busy": [{"device": hostile, "share": 1}], "losses": [{"where": hostile, "count": 1}]})
    double.say("live_power", {"rails": [{"rail": 1, "t_ms": [500, 1000], "w": [1, 2]}]})
    double.say("live_tokens", {"tokens": [{"pid": 1, "request": hostile, "index": 0, "t_ms": 5, "gap_ms": None, "phase": hostile}], "requests": []})
    double.say("live_phases", {"phases": [{"id": 1, "kind": "phase", "name": hostile, "pid": 1, "t_ms": 0, "end_ms": None}]})
    double.say("live_functions", {"t_ms": 1, "rows": [{"name": hostile, "module": hostile, "self_ms": 1, "recent_ms": 1}]})
    double.say("live_kernels", {"t_ms": 1, "rows": [{"name": hostile, "module": hostile, "count": 1, "self_ms": 1, "recent_ms": 1}]})
    double.say("live_layers", {"t_ms": 1, "rows": [{"pid": 1, "layer": 0, "component": hostile, "calls": 1, "own_ms": 1, "recent_ms": 1}]})
    double.say("live_current", {"t_ms": 1, "rows": [{"pid": 1, "tid": 1, "thread": hostile, "domain": hostile, "name": hostile, "depth": 1, "since_ms": 0}]})
    page = watched.page
    page.wait_for_selector(".plot canvas", timeout=WAIT)
    shows(page, "Running now", hostile)
    assert page.inner_text("main").count(hostile) >= 9
    assert page.locator("main img").count() == 0
    assert watched.faults == []


def test_a_finished_capture_opens_with_its_report(live):
    """Nothing is said of it: no live view among the links, and its address says why."""
    watched, _ = live(begins=False)
    page = watched.page
    page.wait_for_selector("main section", timeout=WAIT)
    assert page.inner_text("header nav [aria-current=page]") == "Report"
    assert "Live" not in page.inner_text("header nav")
    page.goto(f"{page.url.split('#')[0]}#/live")
    wait_until(page, "document.querySelector('main').innerText.includes('is not being recorded')")
    page.get_by_role("link", name="Its report").click()
    page.wait_for_selector("main section", timeout=WAIT)
    assert watched.faults == []


COMMANDS = [
    {"name": "generate", "description": "Generates tokens with <b>the small model</b>.", "parameters": [
        {"name": "tokens", "type": "integer", "default": 48, "choices": [], "minimum": 1, "maximum": 4096},
        {"name": "model", "type": "choice", "default": None, "choices": ["small", "large"], "minimum": None, "maximum": None},
        {"name": "prompt", "type": "string", "default": None, "choices": [], "minimum": None, "maximum": None}]},
    {"name": "train", "description": None, "parameters": []},
]


def test_a_recording_from_a_form(live):
    """A command of the operator's list is started with its parameters; its window is opened; it is cancelled."""
    watched, double = live(begins=False, place="#/record", commands=COMMANDS, hello={"is_view": False})
    page = watched.page
    page.get_by_role("button", name="Record it").wait_for(timeout=WAIT)
    assert "Record" in page.inner_text("header nav")
    assert "<b>the small model</b>" in page.inner_text("form.command")
    page.get_by_label("tokens").fill("96")
    page.get_by_label("model").select_option("large")
    assert watched.violations() == []
    double.controls.refusal = (429, "One recording runs already: wait until it has ended, or cancel it.")
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("One recording runs already").wait_for(timeout=WAIT)
    page.get_by_role("button", name="Record it").click()
    page.get_by_role("cell", name="running").wait_for(timeout=WAIT)
    assert double.controls.requests[-1] == ("", {"command": "generate", "parameters": {"tokens": 96, "model": "large"}})

    double.say("live_session", made_up.session())
    made_up.tick(double, 0, 1000)
    page.get_by_role("cell").get_by_role("link", name="Live").click()
    page.wait_for_selector(".session", timeout=WAIT)
    page.get_by_role("button", name="Open window").click()
    page.get_by_role("button", name="Close window").wait_for(timeout=WAIT)
    assert double.controls.requests[-1] == ("/1/window", {"action": "open"})
    # What happens without the page comes as a message.
    double.say("job", {**double.controls.jobs[0], "window": "closed"})
    page.get_by_role("button", name="Open window").wait_for(timeout=WAIT)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel").wait_for(state="detached", timeout=WAIT)
    assert double.controls.requests[-1][0] == "/1/cancel"
    page.get_by_role("link", name="Record", exact=True).click()
    page.get_by_text("cancelled, exit status 130").wait_for(timeout=WAIT)
    assert watched.violations() == []
    assert watched.faults == []


@pytest.mark.parametrize("hello,commands,sentence", [
    ({"is_view": False, "read_only": True}, COMMANDS, "This server is read-only"),
    ({"is_view": False}, [], "sonde serve --commands FILE"),
])
def test_why_nothing_can_be_started(live, hello, commands, sentence):
    watched, _ = live(begins=False, place="#/record", commands=commands, hello=hello)
    page = watched.page
    wait_until(page, f"document.querySelector('main').innerText.includes({json.dumps(sentence)})")
    assert page.locator("form.command").count() == 0
    assert watched.violations() == []
    assert watched.faults == []


# Two requests with phases, layers and CPU time; then it waits until the file that it is given is there.
ENGINE = """
import os, sys, time
import sonde

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))

for request in ("first", "second"):
    sonde.token(0, request=request, phase="prefill")
    spin(0.2)
    for index in range(8):
        with sonde.range("step", "sonde.model", {"role": "step"}):
            with sonde.range("layer 0", "sonde.model", {"role": "layer", "layer": 0}):
                spin(0.03)
        sonde.token(index, request=request, phase="decode")
with sonde.range("waiting for the test"):
    while not os.path.exists(sys.argv[1]):
        spin(0.05)
sys.exit(3)
"""


@pytest.fixture
def engine(sonde, sonde_path, tmp_path):
    """(recorder, folder of its capture, a function that lets its command end): 70 W from a replay."""
    folder, replay, done = tmp_path / "captures", tmp_path / "energy.jsonl", tmp_path / "done"
    folder.mkdir()
    domain = {"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": 20, "idle_w": 20}
    lines = [{"sonde_energy": 1, "domains": [domain]}]
    lines += [{"t_ms": t, "domain": "package-0", "energy_j": 70 * t / 1000} for t in range(0, 300_000, 20)]
    replay.write_text("".join(json.dumps(line) + "\n" for line in lines))
    recorder = sonde.start("record", "-q", "--energy", f"replay:{replay}", "-o", folder / "run.pftrace", "--",
                           "/usr/bin/python3", "-c", ENGINE, done, env={"PYTHONPATH": str(sonde_path.parent / "python")})
    yield recorder, folder, done.touch
    done.touch()  # the command ends, also where a test has failed
    if recorder.poll() is None:
        recorder.kill()
        recorder.wait()


def test_a_real_recording(engine, sonde, open_page):
    """From the first messages to the end, without a double: what is shown last is what the report says."""
    recorder, folder, let_it_end = engine
    server = Server(sonde.start("serve", "--listen", "127.0.0.1:0", folder))
    try:
        end = time.monotonic() + 60
        while not server.get("/api/captures").json()["captures"]:
            assert time.monotonic() < end, "the recording did not begin"
            time.sleep(0.05)
        frames = []
        watched = open_page(server.address, before=lambda page: page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame))))
        page = watched.page
        page.wait_for_selector(".plot canvas", timeout=WAIT)
        wait_until(page, "document.querySelectorAll('.strip').length === 2")
        assert {"live_power"} <= {decode(frame)["type"] for frame in frames if isinstance(frame, bytes)} <= {"live_power", "live_tokens"}
        shows(page, "Tokens", "first")
        shows(page, "Power", "70.0 W")
        shows(page, "Functions by CPU time", "spin")
        shows(page, "Layers", "layer 0")
        shows(page, "Running now", "waiting for the test")
        shows(page, "Running now", "python3")
        wait_until(page, "/\\d ms|\\d s/.test([...document.querySelectorAll('.tile')].find((tile) => tile.innerText.includes('Between tokens')).innerText)")
        let_it_end()
        assert recorder.wait(timeout=60) == 3
        wait_until(page, "document.querySelector('.state').innerText.includes('exit status 3')")
        data = sonde("report", "--json", folder / "run.pftrace", check=0).json()
        samples, tokens = data["totals"]["samples_in_capture"], data["inference"]["output_tokens"]
        wait_until(page, f"[...document.querySelectorAll('.tile')].some((tile) => tile.innerText.includes('{samples:,} in'))")
        assert f"{tokens:,} tokens" in tile(page, "Tokens per second")
        assert watched.violations() == []
        assert watched.faults == []
    finally:
        server.end()


RECORDINGS = ROOT / "tests" / "data" / "live"


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
def test_recorded_messages(live, name):
    """What a client of a real server received, said again: it fits the schema, and the last of it is on the page."""
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI gave no jsonschema: see tools/venv tests")
    schemas = schema_of_messages()
    envelopes = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    for envelope in envelopes:
        jsonschema.Draft202012Validator(schemas[envelope["type"]]).validate(envelope["data"])
    last = {envelope["type"]: envelope["data"] for envelope in envelopes}
    watched, double = live(begins=False, place="#/live")
    page = watched.page
    page.wait_for_selector("main", timeout=WAIT)
    double.play(envelopes)
    wait_until(page, "document.querySelector('.state')?.innerText.includes('Ended after')")
    wait_until(page, f"[...document.querySelectorAll('.tile')].some((tile) => tile.innerText.includes('{last['live_summary']['samples']:,} in'))")
    for kind, panel in [("live_functions", "Functions by CPU time"), ("live_kernels", "Kernels by device time")]:
        if last.get(kind, {}).get("rows"):
            shows(page, panel, last[kind]["rows"][0]["name"])
    for row in last.get("live_layers", {}).get("rows", []):
        shows(page, "Layers", row["component"])
    wait_until(page, "document.querySelectorAll('.plot canvas').length === 1")
    assert watched.faults == []
