// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { PERFETTO_BYTES_MAX, handOver, refusal, whenReady } from "../src/perfetto/handover";

const ORIGIN = "https://perfetto.example";

// A window that answers to the n-th PING, and a clock that a test turns.
function stage(answersTo: number, answer: Partial<MessageEvent> = {}) {
  const posted: { message: unknown; origin: string }[] = [];
  const listeners = new Set<(event: MessageEvent) => void>();
  const waiting: (() => void)[] = [];
  const target = {
    closed: false,
    postMessage(message: unknown, origin: string) {
      posted.push({ message, origin });
      const event = { source: target, origin: ORIGIN, data: "PONG", ...answer };
      if (posted.length === answersTo) for (const listener of [...listeners]) listener(event as unknown as MessageEvent);
    },
  };
  const here = { addEventListener: (_: string, call: never) => listeners.add(call), removeEventListener: (_: string, call: never) => listeners.delete(call) };
  const clock = { setTimeout: (call: () => void) => waiting.push(call), clearTimeout: () => {} };
  const run = (times: number) => { for (let i = 0; i < times && waiting.length; i++) waiting.shift()!(); };
  const ready = whenReady(target as unknown as Window, ORIGIN, 1000, here as unknown as Window, clock);
  return { target, posted, listeners, run, ready };
}

test("it asks until the page answers, and posts to this origin only", async () => {
  const { target, posted, listeners, run, ready } = stage(3);
  run(5);
  await ready;
  expect(posted).toEqual(Array(3).fill({ message: "PING", origin: ORIGIN }));
  expect(listeners.size).toBe(0);
  const buffer = new ArrayBuffer(8);
  handOver(target as unknown as Window, ORIGIN, "run.pftrace", buffer);
  expect(posted.at(-1)).toEqual({ message: { perfetto: { buffer, title: "run.pftrace", fileName: "run.pftrace", keepApiOpen: false } }, origin: ORIGIN });
});

test("answers of others do not count, and after a while it says so", async () => {
  for (const other of [{ origin: "https://evil.example" }, { source: {} as Window }, { data: "PING" }]) {
    const { posted, run, ready } = stage(1, other);
    run(100);
    await expect(ready).rejects.toThrow("does not answer");
    expect(posted.length).toBe(20);
  }
});

test("a window that is closed is not waited for", async () => {
  const { target, run, ready } = stage(1000);
  target.closed = true;
  run(1);
  await expect(ready).rejects.toThrow("closed");
});

test("what Perfetto cannot load is said before it is tried", () => {
  expect(refusal("run.pftrace", 1000)).toBeNull();
  expect(refusal("trace.json.gz", null)).toBeNull();
  expect(refusal("trace.json.zst", 10)).toContain(".zst");
  expect(refusal("run.pftrace", PERFETTO_BYTES_MAX + 1)).toContain("2 GiB");
});
