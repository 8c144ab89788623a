# SPDX-License-Identifier: Apache-2.0
"""sonde report --html: the page as one file, in a real browser."""

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from browser import wait_until

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
CAPTURES = ["capture-2-plain", "device-2-plain", "energy-2-plain", "windows-2-plain", "trace/trace-1"]


@pytest.fixture
def write(sonde, tmp_path):
    """write(capture) is the address of its page."""

    def write_it(capture, *arguments):
        output = tmp_path / "page.html"
        sonde("report", "--html", output, *arguments, capture, check=0)
        return output.as_uri()

    return write_it


def data_of(path):
    """What the program wrote into the page."""
    found = re.search(r'<script type="application/json" id="sonde-data">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found[1])


def views_of(page):
    return [link.get_attribute("href") for link in page.query_selector_all("header nav a")]


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_view_opens(write, open_page, capture):
    """Nothing goes wrong, nothing is asked of a network, and nothing keeps people with a screen reader or a keyboard out."""
    address = write(GOLDEN / f"{capture}.pftrace")
    for scheme in ("light", "dark"):
        watched = open_page(address, scheme=scheme)
        views = views_of(watched.page)
        assert "#/report" in views
        for view in views:
            watched.page.goto(f"{address}{view}")
            watched.page.wait_for_selector("main section, main canvas")
            assert watched.violations() == []
        assert watched.faults == []
        assert {request.split(":")[0] for request in watched.requests} <= {"file", "data", "blob"}


@pytest.mark.parametrize("capture", CAPTURES)
def test_data_fits_its_schema(sonde, tmp_path, capture):
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI gave no jsonschema: see tools/venv tests")
    sonde("report", "--html", tmp_path / "page.html", GOLDEN / f"{capture}.pftrace", check=0)
    data = data_of(tmp_path / "page.html")
    schema = json.loads((ROOT / "schema" / "page.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(data["report"])
    tables = [table for section in data["report"]["sections"] for table in section["tables"]]
    assert tables
    for table in tables:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for tree in data["trees"].values():
        assert len(tree["label"]) == len(tree["parent"]) == len(tree["total"][0]) == len(tree["self"][0])


@pytest.mark.parametrize("capture", CAPTURES)
def test_it_says_what_the_terminal_says(sonde, write, open_page, capture):
    """Every sentence, heading and cell of the terminal is on the page, where the terminal does not shorten it."""
    terminal = sonde("report", GOLDEN / f"{capture}.pftrace", env={"COLUMNS": "400"}, check=0).stdout
    page = open_page(write(GOLDEN / f"{capture}.pftrace")).page
    shown = re.sub(r"[\s→]+", " ", page.inner_text("main")).replace(" ▾", "")
    missing = []
    for line in terminal.splitlines():
        for part in filter(None, re.split(r"  +|→", line)):
            part = re.sub(r"\s+", " ", part.strip())
            # Lines on what --limit left out, bars, and the headings of the account and of advice are drawn otherwise.
            if part and "…" not in part and "▕" not in part and part not in ("The recording", "What to change") and part not in shown:
                missing.append(part)
    assert missing == []


def test_advice_stands_once(sonde, tmp_path, open_page):
    """Above the report, not in its section again, and each links to its section where that has more."""
    trace = tmp_path / "idle.json"
    place = {"pid": 1, "tid": 1}
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", **place, "ts": 1000 * i, "dur": 900} for i in range(30)]
    for i in range(30):
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **place, "ts": 1000 * i + 850, "dur": 5,
                       "args": {"correlation": i + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000 * i + 860, "dur": 50,
                       "args": {"device": 0, "stream": 7, "correlation": i + 1}})
    trace.write_text(json.dumps({"traceEvents": events}))
    sonde("report", "--html", tmp_path / "page.html", trace, check=0)
    advice = [one for section in data_of(tmp_path / "page.html")["report"]["sections"] for one in section["advice"]]
    page = open_page((tmp_path / "page.html").as_uri()).page
    shown = page.inner_text("main")
    assert advice and all(shown.count(one["sentence"]) == 1 for one in advice)
    page.click(f".help a:has-text('{advice[0]['sentence'][:30]}')")
    wait_until(page, f"location.hash.endsWith('/{advice[0]['section']}')")
    assert page.locator(f"#section-{advice[0]['section']}").count() == 1


def test_flame_graph(write, open_page):
    """Zoom, search and the sandwich, each with an address that shows the same again."""
    address = write(GOLDEN / "capture-2-plain.pftrace")
    watched = open_page(f"{address}#/flame/cpu")
    page = watched.page
    page.wait_for_selector("canvas")
    canvas = page.locator("canvas").first
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    wait_until(page, "location.hash.includes('zoom=')")
    zoomed = page.evaluate("location.hash")
    page.keyboard.press("Escape")
    wait_until(page, f"location.hash !== {json.dumps(zoomed)}")

    name = page.locator("table button.link").first.inner_text()
    page.fill("input[type=search]", name)
    page.wait_for_selector("[role=status]")
    assert re.match(r"\d+\.\d\d % in \d+ functions", page.inner_text("[role=status]"))

    page.locator("table button.link").first.click()
    page.wait_for_selector("h4")
    assert page.locator("canvas").count() == 2
    again = open_page(f"{address}{page.evaluate('location.hash')}")
    again.page.wait_for_selector("h4")
    assert name in again.page.inner_text("h3")
    assert watched.faults == again.faults == []


def test_the_keys_reach_every_frame(write, open_page):
    watched = open_page(f"{write(GOLDEN / 'capture-2-plain.pftrace')}#/flame/cpu")
    page = watched.page
    page.wait_for_selector("canvas")
    page.locator("canvas").first.focus()
    seen = set()
    for key in ["ArrowDown"] * 3 + ["ArrowRight", "ArrowLeft", "ArrowUp"]:
        page.keyboard.press(key)
        seen.add(page.inner_text(".details"))
    assert len(seen) >= 3
    assert watched.faults == []


def test_colours_and_direction_of_a_flame_graph(write, open_page):
    """The legend names what is in the graph; upward, the root is at the bottom and the keys go with the picture."""
    watched = open_page(f"{write(GOLDEN / 'capture-2-plain.pftrace')}#/flame/cpu")
    page = watched.page
    page.wait_for_selector("canvas")
    assert {"process, thread", "native code", "kernel of the system"} <= set(page.locator(".legend li").all_inner_texts())
    canvas = page.locator("canvas").first
    page.get_by_label("Grow upward").check()
    wait_until(page, "location.hash.includes('grows=up')")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] - 5)
    wait_until(page, "document.querySelector('.details b')?.innerText === 'all'")
    page.keyboard.press("Tab")
    canvas.focus()
    page.keyboard.press("ArrowUp")
    assert page.inner_text(".details b") != "all"
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").last.click()
    assert Path(saved.value.path()).read_text().splitlines()[0] == "self_ns,total_ns,function,module"
    assert watched.faults == []


def test_tables_sort_and_save(sonde, write, open_page):
    """A table is saved with all of its rows, as sonde report --csv and --json write it."""
    capture = GOLDEN / "capture-2-plain.pftrace"
    page = open_page(write(capture)).page
    table = page.locator("section#section-own_code .table, section .table").first
    header = table.locator("th button").first
    header.click()
    assert table.locator("th[aria-sort=descending], th[aria-sort=ascending]").count() == 1

    functions = page.locator(".table").filter(has=page.locator("th", has_text="Function")).filter(has=page.locator("th", has_text="Module")).first
    with page.expect_download() as download:
        functions.get_by_role("button", name="CSV").click()
    saved = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    wanted = list(csv.DictReader(io.StringIO(sonde("report", "--by", "function", "--csv", capture, check=0).stdout)))
    assert [row["name"] for row in saved] == [row["name"] for row in wanted]
    assert [row["self_samples"] for row in saved] == [row["self_samples"] for row in wanted]


def test_a_model_and_its_tokens(sonde, torch2, tmp_path, open_page):
    """Layers by components, and the tokens of each request, with the figures of the report."""
    if subprocess.run([torch2, "-c", "import transformers"], capture_output=True, check=False).returncode:
        pytest.skip("PyPI gave no transformers: see tools/venv torch2")
    capture = tmp_path / "run.pftrace"
    command = [torch2, ROOT / "examples" / "generate.py", "--layers", "2", "--requests", "2", "--tokens", "7"]
    rail = tmp_path / "rail.jsonl"
    rail.write_text("".join(json.dumps(line) + "\n" for line in [
        {"sonde_energy": 1, "domains": [{"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": 2}]},
        *({"t_ms": t, "domain": "package-0", "energy_j": 0.05 * t} for t in range(0, 120_000, 2))]))
    sonde("record", "--energy", f"replay:{rail}", "--hooks", "transformers:component", "-o", capture, "--", *command, check=0)
    address = Path(tmp_path / "page.html").as_uri()
    sonde("report", "--html", tmp_path / "page.html", capture, check=0)
    layers = sonde("report", "--by", "layer", "--json", capture, check=0).json()["layers"]["rows"]

    watched = open_page(f"{address}#/model")
    watched.page.wait_for_selector("table.heat")
    heads = [head.inner_text() for head in watched.page.query_selector_all("table.heat tbody th")]
    assert heads == ["layer 0", "layer 1", "outside"]
    roles = {head.inner_text() for head in watched.page.query_selector_all("table.heat thead th")}
    assert roles == {row["role"] for row in layers if row["own_ns"]}
    fills = [area.get_attribute("fill") for area in watched.page.query_selector_all("svg.areas rect")]
    assert len(set(fills)) == len(roles)  # a colour for each component
    assert watched.violations() == []

    watched.page.goto(f"{address}#/tokens")
    watched.page.wait_for_selector(".tokens")
    strips = watched.page.query_selector_all(".tokens")
    assert [len(strip.query_selector_all("i")) for strip in strips] == [7, 7]
    strips[1].focus()
    watched.page.keyboard.press("ArrowRight")
    watched.page.keyboard.press("ArrowRight")
    assert re.fullmatch(r"Token 2 took [\d.]+ [mµn]?s\. ?", watched.page.query_selector_all(".details")[1].inner_text())

    requests = sonde("report", "--by", "token", "--json", capture, check=0).json()["inference"]["requests"]
    joules = [request["energy"]["full_j"] for request in requests]  # both have 7 tokens; null: too short for the sensor
    assert any(joules)
    watched.page.locator("main select").select_option("energy")
    watched.page.wait_for_url("**#/tokens/energy")
    shades = [{cell.get_attribute("style") for cell in strip.query_selector_all("i")} for strip in watched.page.query_selector_all(".tokens")]
    assert [len(shade) for shade in shades] == [1, 1]  # of a request: a token is too short for a sensor
    assert shades[0] != shades[1] or joules[0] == pytest.approx(joules[1], rel=0.05)
    assert "share its joules" in watched.page.inner_text("main")
    assert watched.violations() == []
    assert watched.faults == []


def test_names_with_markup_are_text(sonde, workload, tmp_path, open_page):
    """A program chooses its name; the page shows it, and runs nothing of it."""
    hostile = "<img src=x onerror=alert(1)>"
    program = tmp_path / "bin" / hostile
    program.parent.mkdir()
    shutil.copy(workload("spin")[0], program)
    sonde("record", "-F", "999", "-o", tmp_path / "run.pftrace", "--", program, 0.4, check=0)
    sonde("report", "--html", tmp_path / "page.html", tmp_path / "run.pftrace", check=0)
    assert "<img" not in (tmp_path / "page.html").read_text()
    for view in ("report", "flame/cpu"):
        watched = open_page(f"{(tmp_path / 'page.html').as_uri()}#/{view}")
        watched.page.wait_for_selector("main section, main canvas")
        assert hostile in watched.page.inner_text("body")
        assert watched.page.locator("img").count() == 0
        assert watched.faults == []


def test_views_that_are_not_there(write, open_page):
    page = open_page(f"{write(GOLDEN / 'capture-2-plain.pftrace')}#/nothing").page
    assert "There is no view nothing here" in page.inner_text("[role=alert]")


@pytest.mark.parametrize("arguments", [["--json"], ["--by", "function"], ["--by", "function", "--csv"]])
def test_options_that_exclude_each_other(sonde, tmp_path, arguments):
    done = sonde("report", "--html", tmp_path / "page.html", *arguments, GOLDEN / "capture-2-plain.pftrace")
    assert done.status == 2
    assert "--html writes the whole report as a page" in done.stderr
    assert not (tmp_path / "page.html").exists()
