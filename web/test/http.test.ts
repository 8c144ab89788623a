// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import { addressOf, ask, httpSource } from "../src/http";

function answers(...responses: [number, unknown][]) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    const [status, body] = responses.shift()!;
    return new Response(JSON.stringify(body), { status });
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

test("an operation's address", () => {
  expect(addressOf("get_report", { capture: "0123456789abcdef", by: "line", process: "", rank: 0 }))
    .toBe("/api/captures/0123456789abcdef/report?by=line&rank=0");
  expect(addressOf("get_capture", { capture: "../x?y" })).toBe("/api/captures/..%2Fx%3Fy");
});

test("asks again until the answer is there, and says how far it is", async () => {
  const asked = answers([202, { state: "loading", done: 50, total: 200 }], [202, { state: "asking", done: 0, total: 0 }], [200, { x: 1 }]);
  const progress: string[] = [];
  expect(await ask("/api/status", (text) => progress.push(text))).toEqual({ x: 1 });
  expect(progress).toEqual(["reading, 25 %", "computing"]);
  expect(asked.length).toBe(3);
});

test("a failure is the server's sentence", async () => {
  answers([422, { error: { code: "no-data", message: "x.pftrace has no device work: record with --gpu." } }]);
  await expect(ask("/api/status", () => {})).rejects.toThrow("x.pftrace has no device work: record with --gpu.");
});

test("a failure of something else is one, too", async () => {
  vi.stubGlobal("fetch", async () => new Response("<html>", { status: 502, statusText: "Bad Gateway" }));
  await expect(ask("/api/status", () => {})).rejects.toThrow("The server answered 502 Bad Gateway.");
  vi.stubGlobal("fetch", async () => { throw new TypeError("fetch failed"); });
  await expect(ask("/api/status", () => {})).rejects.toThrow("The server does not answer");
});

test("one capture is meant where none is named", async () => {
  const capture = { id: "0123456789abcdef", name: "a.pftrace", kind: "file", size: 2048, modified_ms: 0, state: "closed", message: null };
  answers([200, { captures: [capture] }], [200, { perfetto: "https://ui.perfetto.dev" }]);
  const source = await httpSource();
  expect(source.captures).toEqual([{ id: "0123456789abcdef", name: "a.pftrace", detail: "2.00 KiB" }]);
  expect(source.perfetto).toBe("https://ui.perfetto.dev");
  expect(source.capture("")?.fileHref).toBe("/api/captures/0123456789abcdef/file");
});
