# SPDX-License-Identifier: Apache-2.0
"""A real Chromium for tests of the page, driven by Playwright: fixtures `browser` and `open_page`."""

import shutil
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
# As root without its sandbox, and without calls home.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Watched:
    """A page of the browser; what went wrong on it and what it asked the network for is remembered."""

    def __init__(self, page):
        self.page = page
        self.faults = []
        self.requests = []
        page.on("console", self.take_message)
        page.on("pageerror", lambda error: self.faults.append(error.stack or str(error)))
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def take_message(self, message):
        # An answer that is a failure is shown by the page, as a sentence.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def open(self, address):
        self.page.goto(address)
        self.page.wait_for_selector("header nav a")
        return self.page

    def violations(self):
        """Serious and critical ones that axe finds, each in a line."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [
            f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
            for violation in found
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]


def wait_until(page, expression, timeout_s=60):
    """Until a JavaScript expression is true. Not Playwright's wait_for_function(), which the page's policy refuses."""
    end = time.monotonic() + timeout_s
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"this did not come true: {expression}"
        time.sleep(0.05)


def launch(playwright):
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "no Chromium: tools/deps test installs it"
    return playwright.chromium.launch(executable_path=program, args=FLAGS)


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="PyPI gave no playwright: see tools/venv tests")
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """open_page(address, scheme="light", ...) returns a Watched; all are closed with the test.

    `before(page)` is called before the address is opened: for doubles of what the page talks to.
    """
    contexts = []

    def open_it(address, scheme="light", width=1280, height=900, before=None):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, accept_downloads=True)
        contexts.append(context)
        watched = Watched(context.new_page())
        if before:
            before(watched.page)
        watched.open(address)
        return watched

    yield open_it
    for context in contexts:
        context.close()
