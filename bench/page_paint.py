#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_paint.py ADDRESS RUNS: how soon Chromium paints a page, and a frame of its flame graph, as JSON. Needs Playwright."""

import json
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "e2e"))
from browser import launch  # noqa: E402

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
# From an input to the frame after it.
ZOOM = """async () => {
    const canvas = document.querySelector('canvas');
    const times = [];
    for (let i = 0; i < 20; i++) {
        const begin = performance.now();
        canvas.dispatchEvent(new KeyboardEvent('keydown', {key: i % 2 ? 'ArrowUp' : 'ArrowDown', bubbles: true}));
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        times.push(performance.now() - begin);
    }
    return times;
}"""


# Tasks over 50 ms, which hold up the page's keys and clicks; since this was called.
WATCH_TASKS = """() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map(({duration}) => duration))).observe({type: 'longtask'});
}"""


def open_once(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.wait_for_selector("main section")
    page.wait_for_function(f"({FIRST_PAINT}) !== null")
    painted_ms = page.evaluate(FIRST_PAINT)
    page.evaluate(WATCH_TASKS)
    page.goto(f"{address}#/flame")
    page.wait_for_selector("canvas")
    page.wait_for_selector("tbody tr")
    longest_ms = max(page.evaluate("window.longTasks"), default=0)
    frames_ms = page.evaluate(ZOOM)
    page.close()
    return painted_ms, sorted(frames_ms)[len(frames_ms) // 2], longest_ms


def main():
    address, runs = sys.argv[1], int(sys.argv[2])
    with sync_playwright() as playwright:
        browser = launch(playwright)
        found = [open_once(browser, address) for _ in range(runs)]
        browser.close()
    paints, frames, tasks = zip(*found)
    print(json.dumps({"first_paint_ms": sorted(paints), "flame_frame_ms": sorted(frames), "longest_task_ms": sorted(tasks)}))


if __name__ == "__main__":
    main()
