# SPDX-License-Identifier: Apache-2.0
"""Pictures beside the tables of the page: roofline, memory over time, ranks; and advice with its page of the documentation. On the
page of a server, and in the file of report --html."""

import re
from pathlib import Path

import memory_snapshot
import pytest
from browser import wait_until
from test_roofline import ADD, MM, trace_of
from test_trace_path import launch, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page_of(sonde, tmp_path, start_server, open_page):
    """page_of(kind, files) is the Watched of their page: "served", or the "file" of report --html."""

    def open_it(kind, folder, *files, **more):
        if kind == "served":
            return open_page(start_server("view", "--no-browser", folder).address, **more)
        output = tmp_path / "page.html"
        sonde("report", "--html", output, *files, check=0)
        return open_page(output.as_uri(), **more)

    return open_it


def picture_of(page, section):
    """The width of the section's picture, once it is drawn."""
    selector = f"#section-{section} .picture img"
    page.wait_for_selector(selector)
    wait_until(page, f"document.querySelector('{selector}').complete")
    return page.locator(selector).evaluate("(image) => image.naturalWidth")


@pytest.mark.parametrize("kind,scheme", [("served", "light"), ("served", "dark"), ("file", "light")])
def test_the_roofline_and_its_advice(page_of, tmp_path, kind, scheme):
    trace = trace_of(tmp_path / "trace.json", [MM, ADD])
    watched = page_of(kind, trace, trace, scheme=scheme)
    page = watched.page
    assert picture_of(page, "roofline") > 500
    assert page.locator("#section-memory .picture").count() == 0
    advice = page.locator(".help li").filter(has_text="Change aten::mm first")
    assert "More: docs/roofline.md" in advice.inner_text()
    # No rule through the sentence before it: that is of the list of what else would help.
    assert advice.locator(".more").evaluate("(more) => getComputedStyle(more).borderTopWidth") == "0px"
    if kind == "served":
        with page.context.expect_page() as opened:
            advice.locator("a[href='/docs/roofline.md']").click()
        opened.value.wait_for_load_state()
        assert "# " in opened.value.inner_text("body") and "roof" in opened.value.inner_text("body")
    assert watched.violations() == [] and watched.faults == []


@pytest.mark.parametrize("kind", ["served", "file"])
def test_memory_over_time(page_of, tmp_path, kind):
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_bytes(memory_snapshot.as_json())
    watched = page_of(kind, snapshot, snapshot)
    assert picture_of(watched.page, "memory") > 500
    assert watched.violations() == [] and watched.faults == []


@pytest.mark.parametrize("kind,scheme", [("served", "light"), ("file", "dark")])
def test_ranks_that_cause_waiting_and_wait(page_of, tmp_path, kind, scheme):
    """Rank 1 begins 200 us later in two steps: it caused 400 us, and rank 0 waited for them."""
    folder = tmp_path / "run"
    folder.mkdir()
    gather = "ncclKernel_AllGather"
    late = [event for n in (1, 2) for event in launch(gather, n * 1000 + 300, n * 1000 + 700, 200, 100 + n, stream=20)]
    early = [event for n in (1, 2) for event in launch(gather, n * 1000 + 300, n * 1000 + 500, 400, 100 + n, stream=20)]
    files = write(folder / "rank0.json", extra=early), write(folder / "rank1.json", rank=1, extra=late)
    watched = page_of(kind, folder, *files, scheme=scheme)
    page = watched.page
    page.wait_for_selector("#chart-ranks")
    points = page.locator("#chart-ranks .series circle")
    assert [points.nth(at).get_attribute("data-name") for at in range(4)] == ["rank 0", "rank 1"] * 2
    page.locator("#chart-ranks").focus()
    for text in ("rank 0 Time 0 s at Rank 0: others waited for it", "rank 1 Time 400 µs at Rank 1: others waited for it",
                 "rank 0 Time 400 µs at Rank 0: it waited itself", "rank 1 Time 0 s at Rank 1: it waited itself"):
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f"figure:has(#chart-ranks) .details:has-text('{text}')")
    assert watched.violations() == [] and watched.faults == []


def test_a_server_has_each_page_that_advice_names(start_server, tmp_path):
    named = {name for path in (ROOT / "src" / "report").rglob("*.c") for name in re.findall(r'"docs/([a-z-]+\.md)', path.read_text())}
    trace = trace_of(tmp_path / "trace.json", [MM, ADD])
    server = start_server("view", "--no-browser", trace)
    assert "roofline.md" in named
    for name in named:
        answer = server.get(f"/docs/{name}")
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain"), name
