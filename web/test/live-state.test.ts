// SPDX-License-Identifier: Apache-2.0
import { expect, test, vi } from "vitest";
import type { Envelope, LiveHistory, LiveSession, LiveSummary } from "../src/api";
import { LiveFeed } from "../src/live/state";

const CAPTURE = "00000000000000aa";
const RAIL = { rail: 1, parent: null, name: "package-0", source: "perf", device: null, part: "cpu", quality: "counter", is_replayed: false, period_ms: 100, limit_w: null };
const SESSION: LiveSession = {
  capture: CAPTURE, generation: 1, name: "run.pftrace", command: ["true"], host: "h", started_unix_ms: 1, period_ns: 1e7, whole_machine: false, wait_mode: null,
  launch_stacks: null, rails: [RAIL], absences: [],
};
const SUMMARY: LiveSummary = {
  capture: CAPTURE, t_ms: 1000, samples: 1, samples_per_s: null, cpu_busy: null, waiting: null, samples_lost: 0, losses: [], processes: 1, threads: 1, tokens: 0, tokens_per_s: null,
  requests_running: 0, requests_done: 0, rails: [], kernels: 0, gpu_busy: [], capture_bytes: 1,
};

class Sender {
  seq = 0;
  epoch = "e1";
  tMs = 0;
  make(type: string, data: unknown, seq = ++this.seq): Envelope {
    return { v: 1, epoch: this.epoch, seq, t_ms: this.tMs, type, data: data as Record<string, unknown> };
  }
  power(toMs: number, watts: number | null) { return this.make("live_power", { capture: CAPTURE, rails: [{ rail: 1, t_ms: [toMs], w: [watts] }] }); }
  token(index: number, t_ms: number) {
    return this.make("live_tokens", { capture: CAPTURE, requests: [], tokens: [{ pid: 1, request: "a", index, t_ms, gap_ms: index ? 10 : null, phase: "decode" }] });
  }
  hello() { return this.make("hello", { version: "", started_unix_ms: 1000, oldest_seq: 1, newest_seq: 0, budget_bytes: 1, read_only: false, is_view: true }, 0); }
  snapshot(types: number) { return this.make("snapshot", { types, newest_seq: this.seq }, 0); }
}

function begin(history: ((capture: string) => Promise<LiveHistory>) | null = null) {
  const feed = new LiveFeed(history);
  const sender = new Sender();
  feed.take(sender.hello());
  feed.take(sender.snapshot(1));
  return { feed, sender };
}

test("it is ready when what follows the snapshot is here", () => {
  const { feed, sender } = begin();
  const changed = vi.fn();
  feed.topic.subscribe(changed);
  expect(feed.isReady).toBe(false);
  feed.take(sender.make("live_session", SESSION));
  expect(feed.isReady).toBe(true);
  expect(changed).toHaveBeenCalled();
  expect(feed.find(CAPTURE)!.isRunning).toBe(true);
  expect(feed.find("another")).toBe(null);
});

test("intervals of power reach from reading to reading; null and a long silence are gaps", () => {
  const { feed, sender } = begin();
  feed.take(sender.make("live_session", SESSION));
  for (const message of [sender.power(1000, 10), sender.power(1500, 20), sender.power(2000, null), sender.power(2500, 30), sender.power(60_000, 40)]) feed.take(message);
  const columns = feed.find(CAPTURE)!.rails.get(1)!.read(0, 60_000, 100);
  const means = [...columns.weight].map((_, at) => columns.mean(at));
  expect(means.slice(9, 25)).toEqual([10, ...Array(5).fill(20), ...Array(5).fill(null), ...Array(5).fill(30)]);
  expect(means.filter((mean) => mean === 40).length).toBe(1);
  expect(feed.find(CAPTURE)!.nowMs).toBe(60_000);
});

test("the history comes before what came while it was fetched, and nothing counts twice", async () => {
  const sender = new Sender();
  const before = [sender.token(0, 10), sender.token(1, 20), sender.token(2, 30)];
  let answer: (history: LiveHistory) => void = () => {};
  const feed = new LiveFeed(() => new Promise((resolve) => { answer = resolve; }));
  feed.take(sender.hello());
  feed.take(sender.snapshot(1));
  feed.take(sender.make("live_session", SESSION));
  const during = [sender.token(3, 40), sender.token(4, 50)];
  during.forEach((message) => feed.take(message));
  expect(feed.find(CAPTURE)!.tokens.size).toBe(0);
  answer({ epoch: "e1", newest_seq: 5, messages: [...before, during[0]!] });
  await Promise.resolve().then(() => {});
  feed.take(sender.token(5, 60));
  const [request] = feed.find(CAPTURE)!.tokens.latest(1);
  expect(Array.from({ length: request!.count }, (_, at) => request!.at(at).index)).toEqual([0, 1, 2, 3, 4, 5]);
});

test("without a history there is what comes", async () => {
  const { feed, sender } = begin(() => Promise.reject(new Error("no such address")));
  feed.take(sender.make("live_session", SESSION));
  feed.take(sender.token(0, 10));
  await new Promise((done) => setTimeout(done));
  expect(feed.find(CAPTURE)!.tokens.size).toBe(1);
});

test("another epoch begins anew, and what was missed is said", () => {
  const { feed, sender } = begin();
  feed.take(sender.make("live_session", SESSION));
  feed.take(sender.token(0, 10));
  Object.assign(sender, { epoch: "e2", seq: 0, tMs: 500 });
  feed.take(sender.hello());
  expect(feed.find(CAPTURE)).toBe(null);
  feed.take(sender.make("gap", { from: 1, to: 9, count: 9, reason: "new-epoch" }, 0));
  expect(feed.misses).toMatchObject([{ count: 9, reason: "new-epoch", toUnixMs: 1500 }]);
  feed.take(sender.snapshot(1));
  feed.take(sender.make("live_session", SESSION));
  feed.take(sender.token(1, 20));
  expect(feed.find(CAPTURE)!.tokens.latest(1)[0]!.count).toBe(1);
});

test("a gap lies between the message before it and its own time, by the server's clock", () => {
  const { feed, sender } = begin();
  sender.tMs = 2000;
  feed.take(sender.make("live_session", SESSION));
  sender.tMs = 7000;
  feed.take(sender.make("gap", { from: 2, to: 11, count: 10, reason: "too-slow" }, 0));
  expect(feed.misses[0]).toMatchObject({ fromUnixMs: 3000, toUnixMs: 8000, count: 10 });
  for (let i = 0; i < 100; i++) feed.take(sender.make("gap", { from: 1, to: 1, count: 1, reason: "too-slow" }, 0));
  expect(feed.misses.length).toBe(20);
});

test("another recording under the same name takes nothing over", () => {
  const { feed, sender } = begin();
  feed.take(sender.make("live_session", SESSION));
  feed.take(sender.token(0, 10));
  feed.take(sender.make("live_session", { ...SESSION, host: "other" }));
  expect(feed.find(CAPTURE)!.tokens.size).toBe(1);
  feed.take(sender.make("live_session", { ...SESSION, generation: 2 }));
  expect(feed.find(CAPTURE)!.tokens.size).toBe(0);
});

test("a recording that stalled runs again when it grows; one that ended stays so", () => {
  const { feed, sender } = begin();
  feed.take(sender.make("live_session", SESSION));
  const end = (reason: string, t_ms: number) => feed.take(sender.make("live_ended", { capture: CAPTURE, t_ms, reason, message: null, exit_status: null }));
  const grow = (t_ms: number) => feed.take(sender.make("live_summary", { ...SUMMARY, t_ms }));
  end("stalled", 5000);
  expect(feed.find(CAPTURE)!.isRunning).toBe(false);
  grow(5000);
  expect(feed.find(CAPTURE)!.isRunning).toBe(false);
  grow(6000);
  expect(feed.find(CAPTURE)!.isRunning).toBe(true);
  end("end", 7000);
  grow(7000);
  grow(8000);
  expect(feed.find(CAPTURE)!.isRunning).toBe(false);
});

test("memory is bounded in captures, rails, requests, tokens and phases", () => {
  const { feed, sender } = begin();
  feed.take(sender.make("live_session", SESSION));
  const live = feed.find(CAPTURE)!;
  feed.take(sender.make("live_power", { capture: CAPTURE, rails: Array.from({ length: 300 }, (_, rail) => ({ rail, t_ms: [100], w: [1] })) }));
  expect(live.rails.size).toBe(64);
  for (let i = 0; i < 10_000; i++) feed.take(sender.token(i, i));
  const [request] = live.tokens.latest(1);
  expect([request!.count, request!.first, request!.at(9999).t_ms, request!.at(request!.first).t_ms]).toEqual([10_000, 5904, 9999, 5904]);
  for (let i = 0; i < 500; i++) {
    feed.take(sender.make("live_tokens", { capture: CAPTURE, tokens: [], requests: [{ pid: 1, request: `r${i}`, t_ms: i, event: "prefill" }] }));
  }
  expect(live.tokens.size).toBe(64);
  for (let id = 0; id < 50_000; id += 500) {
    feed.take(sender.make("live_phases", { capture: CAPTURE, phases: Array.from({ length: 500 }, (_, at) => ({ id: id + at, kind: "step", name: null, pid: 1, t_ms: id + at, end_ms: id + at + 1 })) }));
  }
  expect(live.phases.size).toBeLessThanOrEqual(20_000);
  for (let i = 0; i < 100; i++) feed.take(sender.make("live_session", { ...SESSION, capture: `capture-${i}` }));
  expect(feed.find(CAPTURE)).toBe(null);
  expect(feed.find("capture-99")).not.toBe(null);
});

test("types that are not known are passed over", () => {
  const { feed, sender } = begin();
  feed.take(sender.make("live_weather", { capture: CAPTURE, rain: true }));
  feed.take(sender.make("toString", {}));
  expect(feed.find(CAPTURE)).toBe(null);
});
