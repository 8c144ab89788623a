# SPDX-License-Identifier: Apache-2.0
"""The history on the page of sonde serve --store, in a real browser."""

import contextlib
import json
import os
import sqlite3

import pytest
from browser import wait_until
from stores import file_store as store  # noqa: F401 (fixture)
from test_runs import TEXT, capture, set_figure  # noqa: F401

BATCHES = (1, 2, 4, 8, 16, 32)


def fill(store, capture):
    """Batch sizes of two models; a nightly experiment of three commits, of which the last is worse."""
    for model in ("small", "large"):
        for batch in BATCHES:
            store("add", capture(f"{model}-{batch}", [10 + batch] * 3), "--experiment", "batch", "--commit", f"{model}{batch}", "--tag", "sweep")
    for model, size in (("small", 1), ("large", 4)):
        commits = {f"{model}{batch}": batch for batch in BATCHES}
        set_figure(store, "model", {commit: [model] for commit in commits})
        set_figure(store, "parameters", {commit: [size * 1e9] for commit in commits})
        set_figure(store, "batch_size", {commit: [batch] for commit, batch in commits.items()})
        set_figure(store, "tokens_per_s", {commit: [100 * batch**0.8 / size] for commit, batch in commits.items()})
        set_figure(store, "joules_per_token", {commit: [size * (4 / batch + batch / 16)] for commit, batch in commits.items()})
    for commit, base in (("a", 10), ("b", 10), ("c", 10)):
        for number in range(3):
            store("add", capture(f"{commit}-{number}", [base + number * 0.01] * 4), "--experiment", "nightly", "--commit", commit)
    # In the order of time.
    times = {"a": range(1, 4), "b": range(11, 14), "c": range(21, 24)}
    set_figure(store, "time_ns", {commit: [value * 10**17 for value in values] for commit, values in times.items()})
    set_figure(store, "joules_per_token", {"a": [1, 1.01, 1.02], "b": [1.01, 1.0, 1.02], "c": [2, 2.01, 2.02]})


@pytest.fixture
def history(store, capture, start_server, tmp_path):
    fill(store, capture)
    return start_server("serve", "--store", store.path, tmp_path)


def see(page, place, selector="main :not([role=status])"):
    page.goto(f"{page.url.split('#')[0]}#{place}")
    page.wait_for_selector(selector)
    wait_until(page, "![...document.querySelectorAll('[role=status]')].some((one) => one.innerText.includes('being made') || one.innerText.includes('Looking'))")


def rows(page):
    return page.locator("table.runs tbody tr").count()


def test_every_view(history, open_page, store):
    runs = store.runs("--experiment", "nightly")
    ids = ",".join(run["id"] for run in runs)
    places = {
        "/history": "table.runs", "/history?experiment=batch&order=joules-per-token": "table.runs", "/history?model=none": "p.empty",
        f"/history/run%2F{runs[0]['id']}": "form.labels", f"/history/run%2F{runs[0]['id']}?section=about": "main table",
        f"/history/compare?runs={ids}": "table.side", "/history/compare": "p.empty", "/history/analyses?experiment=batch": "figure.chart",
        "/history/analyses?model=none": "[role=alert]", "/history/analyses?experiment=batch&labels=batch_size%3D6": "figure.chart",
        "/history/regressions?experiment=nightly": "figure.chart", "/history/regressions": "p.empty", "/history/regressions?experiment=none": "[role=alert]",
        "/history/database": "section", "/history/nothing": "[role=alert]", f"/history/run%2F{'0' * 32}": "[role=alert]",
    }
    for scheme in ("light", "dark"):
        watched = open_page(history.address, scheme=scheme)
        for place, selector in places.items():
            see(watched.page, place, selector)
            assert watched.violations() == [], place
        assert watched.faults == []
    hosts = {request.split("/")[2] for request in watched.requests if request.startswith(("http", "ws"))}
    assert hosts == {history.address.split("/")[2]}


def test_the_list_is_filtered_sorted_and_paged(history, open_page, store, capture):
    page = open_page(history.address).page
    page.click("header nav >> text=History")
    page.wait_for_selector("table.runs")
    assert rows(page) == 21 and "1 to 21 of 21 runs" in page.inner_text("main")
    page.fill("form.filters label:has-text('Experiment') input", "nightly")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelectorAll('table.runs tbody tr').length === 9")
    assert "experiment=nightly" in page.url
    page.click("text=Clear")
    wait_until(page, "document.querySelectorAll('table.runs tbody tr').length === 21")
    page.click("th button:has-text('J/token')")
    wait_until(page, "document.querySelector('th[aria-sort=ascending]')?.innerText.includes('J/token')")
    least = store.runs("--sort", "joules-per-token")
    wait_until(page, f"document.querySelector('table.runs tbody a')?.innerText === '{least[0]['id'][:8]}'")
    page.click("th button:has-text('J/token')")
    wait_until(page, f"document.querySelector('table.runs tbody a')?.innerText === '{store.runs('--sort', 'joules-per-token', '--reverse')[0]['id'][:8]}'")
    with contextlib.closing(sqlite3.connect(store.path)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(runs)") if row[1] not in ("number", "id")]
        names = ", ".join(columns)
        for number in range(100):
            database.execute(f"INSERT INTO runs (number, id, {names}) SELECT ?1, printf('%032x', ?1), {names} FROM runs WHERE experiment = 'batch' LIMIT 1", (number + 1,))
        database.commit()
    see(page, "/history?order=added", "table.runs")
    wait_until(page, "document.querySelectorAll('table.runs tbody tr').length === 50")
    assert "1 to 50 of 121 runs" in page.inner_text("main")
    page.click("text=Next")
    wait_until(page, "document.querySelector('main')?.innerText.includes('51 to 100 of 121 runs')")
    page.click("text=Next")
    wait_until(page, "document.querySelector('main')?.innerText.includes('101 to 121 of 121 runs')")
    page.click("text=Before")
    wait_until(page, "document.querySelector('main')?.innerText.includes('51 to 100 of 121 runs')")


def test_runs_are_chosen_and_compared(history, open_page, store):
    watched = open_page(history.address)
    page = watched.page
    see(page, "/history?experiment=nightly", "table.runs")
    assert page.locator("a.action").count() == 0
    for number in (0, 1, 2, 6, 7):
        page.locator("table.runs input").nth(number).check()
    # They stay chosen when the list is another.
    page.click("th button:has-text('J/token')")
    page.wait_for_selector("a.action")
    page.click("text=Compare 5 runs")
    page.wait_for_selector("table.side")
    text = page.inner_text("main")
    for word in ("Least energy for a token", "Spread", "Between runs that repeat one another", "best"):
        assert word in text, word
    assert page.locator("table.side thead a").count() == 5
    document = store("compare", "--json", *[run["id"] for run in store.runs("--experiment", "nightly")][:2]).json()
    assert document["runs"]
    page.click("table.side thead a >> nth=0")
    page.wait_for_selector("form.labels")
    assert watched.faults == []


def test_labels_are_edited_as_text(history, open_page, store):
    watched = open_page(history.address)
    page = watched.page
    run = store.runs("--experiment", "nightly")[0]
    see(page, f"/history/run%2F{run['id']}", "form.labels")
    page.fill("input[aria-label='New tag']", TEXT)
    page.keyboard.press("Enter")
    page.fill("form.labels textarea", "<img src=x onerror=alert(1)>")
    page.fill("form.labels label:has-text('Experiment') input", "other")
    page.click("form.labels button[type=submit]")
    wait_until(page, "document.querySelector('form.labels')?.innerText.includes('Saved.')")
    changed = store("show", run["id"], "--json").json()["run"]
    assert changed["tags"] == [TEXT.replace("\x1b", "")] or changed["tags"] == [TEXT]
    assert changed["notes"] == "<img src=x onerror=alert(1)>" and changed["experiment"] == "other"
    see(page, "/history?experiment=other", "table.runs")
    assert "<script>" in page.inner_text("table.runs") and page.locator("table.runs script, table.runs img").count() == 0
    see(page, f"/history/run%2F{run['id']}", "form.labels")
    page.click("button[aria-label^='Take the tag']")
    page.click("form.labels button[type=submit]")
    wait_until(page, "document.querySelector('form.labels')?.innerText.includes('Saved.')")
    assert store("show", run["id"], "--json").json()["run"]["tags"] == []
    assert watched.faults == []


def test_the_capture_opens_in_the_other_views(history, open_page, store):
    watched = open_page(history.address)
    page = watched.page
    run = store.runs("--experiment", "nightly")[0]
    see(page, f"/history/run%2F{run['id']}", "form.labels")
    page.click("main a:has-text('report')")
    page.wait_for_selector(f"header h1:has-text('{os.path.basename(run['path'])}')")
    page.wait_for_selector("main section")
    see(page, f"/history/run%2F{run['id']}", "form.labels")
    page.select_option("main select", "about")
    figures = store("show", run["id"], "--section", "about", "--json").json()["figures"]
    page.wait_for_selector(f"main td:has-text('{figures[0]['column']}')")
    assert "section=about" in page.url
    assert watched.faults == []


def test_a_run_is_deleted_after_a_question(history, open_page, store):
    page = open_page(history.address).page
    run = store.runs("--experiment", "nightly")[0]
    see(page, f"/history/run%2F{run['id']}", "form.labels")
    page.click("text=Delete this run")
    assert "all that belongs to it" in page.inner_text(".confirm") and "stays" in page.inner_text(".confirm")
    page.click("text=Keep it")
    assert page.locator(".confirm").count() == 0 and len(store.runs()) == 21
    page.click("text=Delete this run")
    page.click(".confirm button.danger")
    page.wait_for_selector("table.runs")
    assert len(store.runs()) == 20 and os.path.exists(run["path"])


def test_charts(history, open_page):
    watched = open_page(history.address)
    page = watched.page
    see(page, "/history/analyses?experiment=batch", "#chart-pareto")
    titles = page.locator("figure.chart figcaption").all_inner_texts()
    for word in ("Throughput and energy", "J/token by batch size", "Tokens/s by batch size", "J/token grows with parameters"):
        assert any(word in title for title in titles), (word, titles)
    knee = page.locator("#chart-pareto circle.knee")
    found = history.get("/api/runs/analyse?experiment=batch").json()["runs"]
    assert knee.get_attribute("data-name") == os.path.basename(next(run["capture"] for run in found if run["is_knee"]))
    assert page.locator("#chart-pareto circle.good, #chart-pareto circle.knee").count() == sum(run["is_optimal"] for run in found)
    # By keys, and by pointing.
    front = sorted((run for run in found if run["is_optimal"]), key=lambda run: run["tokens_per_s"])
    page.locator("#chart-pareto").focus()
    for run in front[:2]:
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f"figure.chart:has(#chart-pareto) .details b:has-text('{os.path.basename(run['capture'])}')")
    knee.hover()
    page.wait_for_selector("figure.chart:has(#chart-pareto) .details:has-text('its knee')")
    page.click("figure.chart:has(#chart-pareto) summary")
    assert page.locator("figure.chart:has(#chart-pareto) table tbody tr").count() == len(found)
    with page.expect_download() as download:
        page.click("figure.chart:has(#chart-pareto) button:has-text('CSV')")
    assert "J/token" in download.value.path().read_text()
    with page.expect_download() as download:
        page.click("figure.chart:has(#chart-pareto) button:has-text('SVG')")
    drawn = download.value.path().read_text()
    assert drawn.startswith("<svg") and "<circle" in drawn and "<script" not in drawn
    page.fill("form[aria-label=Predict] input", "batch_size=6")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('main')?.innerText.includes('With batch_size=6: ')")
    assert watched.violations() == [] and watched.faults == []


def fill_pairs(store, capture):
    """A model in four precisions, one of an unknown width; two mixtures of experts beside dense models, and one in another batch."""
    runs = {"q16": ("llama", "bf16", 4, 40, None), "q8": ("llama", "int8", 2.5, 70, None), "q4": ("llama", "q4_k_m", 1.6, 90, None), "qx": ("llama", "awq", 1.8, 85, None),
            "d1": ("dense-small", "fp8", 1.2, 150, None), "d13": ("dense-large", "fp8", 9, 20, None), "m1": ("moe-small", "fp8", 1.5, 120, 0.9), "m13": ("moe-large", "fp8", 5, 30, 0.4)}
    sizes = {"q16": 8e9, "q8": 8e9, "q4": 8e9, "qx": 8e9, "d1": 1e9, "d13": 13e9, "m1": 8e9, "m13": 47e9}
    for name in runs:
        store("add", capture(f"{name}.x", [1, 2, 3]), "--experiment", "pairs", "--commit", name)
    set_figure(store, "model", {name: [run[0]] for name, run in runs.items()})
    set_figure(store, "precision", {name: [run[1]] for name, run in runs.items()})
    set_figure(store, "joules_per_token", {name: [run[2]] for name, run in runs.items()})
    set_figure(store, "tokens_per_s", {name: [run[3]] for name, run in runs.items()})
    set_figure(store, "parameters", {name: [size] for name, size in sizes.items()})
    set_figure(store, "expert_balance", {name: [run[4]] for name, run in runs.items() if run[4]})
    set_figure(store, "expert_entropy", {"m1": [0.97], "m13": [0.7]})
    set_figure(store, "expert_load", {"m1": [1.05], "m13": [2.4]})
    set_figure(store, "experts", {"m1": [8], "m13": [64]})
    set_figure(store, "active_parameters", {"m1": [1.2e9], "m13": [12e9]})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_precisions_and_mixtures(history, open_page, store, capture, scheme):
    fill_pairs(store, capture)
    watched = open_page(history.address, scheme=scheme)
    page = watched.page
    see(page, "/history/analyses?experiment=pairs", "#chart-precision-joules_per_token")
    found = history.get("/api/runs/analyse?experiment=pairs").json()
    names = page.locator("figure.chart svg").evaluate_all("(all) => all.map((one) => one.id)")
    for name in ("precision-joules_per_token", "precision-tokens_per_s", "mixtures-joules_per_token", "mixtures-active", "mixtures-balance", "mixtures-entropy", "mixtures-load"):
        assert f"chart-{name}" in names, names
    # Each point has what the analysis says of it; precisions without a width are drawn, too.
    assert {(os.path.basename(pair["capture"]), os.path.basename(pair["baseline"])) for pair in found["precisions"]} == {
        (f"{name}.x.pftrace", "q16.x.pftrace") for name in ("q8", "q4", "qx")}
    ratio = next(pair["ratios"]["joules_per_token"] for pair in found["precisions"] if "q4" in pair["capture"])
    assert ratio == pytest.approx(0.4)
    points_at(page, "precision-joules_per_token", "q4.x.pftrace", "J/token 1.6 at Precision q4_k_m: 0.4 times that of bf16; best")
    points_at(page, "precision-tokens_per_s", "q16.x.pftrace", "Tokens/s 40 at Precision bf16: the baseline")
    points_at(page, "mixtures-joules_per_token", "m13.x.pftrace", "J/token 5 at Mixture moe-large: 0.556 times that of d13.x.pftrace")
    points_at(page, "mixtures-entropy", "m13.x.pftrace", "J/token 5 at Entropy of choices, of its most 0.7: 64 experts")
    points_at(page, "mixtures-active", "m1.x.pftrace", "J/token 1.5 at Active parameters 1.2B: 8 experts")
    assert page.locator("#chart-precision-joules_per_token polyline.fit").count() == 1
    text = page.inner_text("main")
    assert "llama in int8 has 0.625 times the energy of a token, 1.75 times the tokens/s of bf16." in " ".join(text.split())
    assert watched.violations() == [] and watched.faults == []


def points_at(page, chart, name, text):
    page.locator(f"#chart-{chart} circle[data-name='{name}']").hover()
    page.wait_for_selector(f"figure.chart:has(#chart-{chart}) .details:has-text({json.dumps(text)})")


def test_regressions_mark_the_change(history, open_page):
    page = open_page(history.address).page
    see(page, "/history/regressions?experiment=nightly", "#chart-regressions-joules_per_token")
    assert page.locator("circle.bad").count() == 1 and page.locator("circle.bad").get_attribute("data-name") == "c"
    page.locator("figure svg").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("figure .details b:has-text('a')")
    page.locator("circle.bad").hover()
    page.wait_for_selector("figure .details:has-text('worse')")
    page.select_option("main select", "duration_ns")
    page.wait_for_selector("#chart-regressions-duration_ns")
    assert "figure=duration_ns" in page.url


def test_retention_shows_what_would_go_first(history, open_page, store):
    watched = open_page(history.address)
    page = watched.page
    see(page, "/history/database", "section")
    page.fill("section[aria-label=Retention] input >> nth=0", "3")
    page.click("text=Show what would be deleted")
    page.wait_for_selector(".confirm")
    assert "18 runs would be deleted" in page.inner_text(".confirm") and page.locator(".confirm tbody tr").count() == 18
    assert len(store.runs()) == 21 and watched.violations() == []
    # Another number is another question.
    page.fill("section[aria-label=Retention] input >> nth=0", "20")
    assert page.locator(".confirm").count() == 0
    page.click("text=Show what would be deleted")
    page.click("text=Delete 1 run")
    page.wait_for_selector("text=1 run deleted")
    assert len(store.runs()) == 20
    wait_until(page, "document.querySelector('main')?.innerText.includes('20 runs')")


def test_export_and_import(history, open_page, store, start_server, tmp_path):
    page = open_page(history.address).page
    see(page, "/history?experiment=nightly", "table.runs")
    with page.expect_download() as download:
        page.click("text=Export")
    exported = download.value.path().read_text()
    assert exported == store("export", "--experiment", "nightly").stdout
    with page.expect_download() as download:
        page.click("main a:has-text('CSV')")
    assert len(download.value.path().read_text().splitlines()) == 10
    (tmp_path / "runs.jsonl").write_text(exported)
    other = start_server("serve", "--store", tmp_path / "other.db", tmp_path)
    page = open_page(other.address).page
    see(page, "/history", "p.empty")
    assert "sonde runs add" in page.inner_text("p.empty")
    see(page, "/history/database", "section")
    page.set_input_files("section[aria-label=Import] input", tmp_path / "runs.jsonl")
    page.wait_for_selector("text=9 runs added; 0 were there already.")
    wait_until(page, "document.querySelector('main')?.innerText.includes('9 runs')")
    (tmp_path / "wrong.jsonl").write_text("no export")
    page.set_input_files("section[aria-label=Import] input", tmp_path / "wrong.jsonl")
    page.wait_for_selector("section[aria-label=Import] [role=alert]")
    assert "line 1" in page.inner_text("section[aria-label=Import] [role=alert]")


def test_a_server_that_only_reads_offers_no_changes(store, capture, start_server, open_page, tmp_path):
    store("add", capture("a"), "--tag", "t", "--note", "n")
    server = start_server("serve", "--read-only", "--store", store.path, tmp_path)
    page = open_page(server.address).page
    see(page, f"/history/run%2F{store.runs()[0]['id']}", "main table")
    assert page.locator("form.labels, button:has-text('Delete')").count() == 0 and "Notes: n" in page.inner_text("main")
    see(page, "/history/database", "p.empty")
    assert page.locator("input[type=file]").count() == 0


def test_a_database_that_fails_is_a_sentence(history, open_page, store):
    watched = open_page(history.address)
    see(watched.page, "/history", "table.runs")
    store.path.write_text("no database " * 100)
    see(watched.page, "/history?order=energy", "[role=alert]")
    assert "runs" in watched.page.inner_text("[role=alert]") and watched.faults == []


def test_without_a_database_there_is_no_history(start_server, open_page, capture, tmp_path):
    capture("a")
    page = open_page(start_server("serve", tmp_path).address).page
    assert page.locator("header nav a:has-text('History')").count() == 0
    see(page, "/history", "[role=alert]")
    assert "no view history" in page.inner_text("[role=alert]")


def test_documents_have_what_the_page_reads(history):
    """The members that web/src/history/types.ts names."""
    runs = history.get("/api/runs?experiment=batch").json()
    assert {"store", "runs", "runs_total"} <= set(runs)
    analysed = history.get("/api/runs/analyse?experiment=batch").json()
    assert {"capture", "is_optimal", "is_knee", "joules_per_token", "tokens_per_s", "batch_size", "parameters"} <= set(analysed["runs"][0])
    assert {"by", "figure", "captures", "best", "saturated_at"} <= set(analysed["series"][0])
    assert {"scale", "power", "r_squared"} <= set(analysed["scaling"]["joules_per_token"])
    assert json.loads(history.get("/api/status").body)["has_runs"]
