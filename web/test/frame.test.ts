// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { BadFrame, readFrame } from "../src/live/frame";
import type { Columns } from "../src/live/frame";
import { LiveCapture } from "../src/live/state";
import { frame, powerFrame, tokensFrame } from "./frames";

test("power in columns is the same as power in JSON", () => {
  const message = readFrame(powerFrame({ seq: 5 }))!;
  expect(message).toMatchObject({ v: 1, epoch: "e1", seq: 5, t_ms: 1.5, type: "live_power", data: { capture: "c1" } });
  const binary = new LiveCapture("c1");
  const text = new LiveCapture("c1");
  binary.takePower(message.data as unknown as Columns<"live_power">);
  text.takePower({ capture: "c1", rails: [{ rail: 1, t_ms: [100, 200], w: [10.5, null] }, { rail: 4, t_ms: [100], w: [3] }] });
  expect(binary.rails).toEqual(text.rails);
  expect([...binary.rails.keys()]).toEqual([1, 4]);
});

test("tokens in columns are the same as tokens in JSON", () => {
  const { data } = readFrame(tokensFrame())!;
  const binary = new LiveCapture("c1");
  const text = new LiveCapture("c1");
  binary.tokens.take(data as unknown as Columns<"live_tokens">);
  text.tokens.take({
    capture: "c1", requests: [{ pid: 7, request: "ré\u{1f600}quest", t_ms: 5, event: "prefill" }],
    tokens: [{ pid: 7, request: "ré\u{1f600}quest", index: 0, t_ms: 20, gap_ms: null, phase: "decode" }, { pid: 7, request: null, index: null, t_ms: 40, gap_ms: 20, phase: null }],
  });
  expect(binary.tokens).toEqual(text.tokens);
  expect(binary.tokens.latest(2).map((request) => request.at(0).phase)).toEqual([null, "decode"]);
});

test("a table without rows, and a header that is longer than this page knows", () => {
  const empty = frame({}, [[["f64", []], ["f32", []], ["u32", []]]], "[]");
  expect((readFrame(empty)!.data as unknown as Columns<"live_power">).points.rows).toBe(0);
  const longer = new Uint8Array(empty.byteLength + 8);
  longer.set(new Uint8Array(empty, 0, 80));
  longer.set(new Uint8Array(empty, 80), 88);
  new DataView(longer.buffer).setUint16(2, 88, true);
  expect((readFrame(longer.buffer)!.data as unknown as Columns<"live_power">).points.rows).toBe(0);
});

test("a kind that the page does not know is ignored", () => {
  expect(readFrame(powerFrame({ kind: 99 }))).toBeNull();
});

test.each([
  ["its header has 40 bytes", powerFrame({ bytes: 40 })],
  ["its header has 84 bytes", powerFrame({ bytes: 84 })],
  ["it is of version 2", powerFrame({ version: 2 })],
  ["it has 79 bytes, and its header 80", powerFrame().slice(0, 79)],
  ["it ends before its table points", powerFrame().slice(0, 84)],
  ["its table points has 3 rows, which are 64 bytes of 56", powerFrame().slice(0, 136)],
  ["its texts are no list of strings", powerFrame().slice(0, -1)],
  ["its texts are no list of strings", frame({}, [[["f64", []], ["f32", []], ["u32", []]]], "[1]")],
  ["its column event names a text that there is not", frame({ kind: 2 }, [
    [["f64", []], ["f64", []], ["f32", []], ["u32", []], ["u32", []], ["u32", []]], [["f64", [5]], ["u32", [7]], ["u32", [0]], ["u32", [1]]],
  ], '["a"]')],
  ["its number or its time is none", powerFrame({ t_ms: NaN })],
  ["its number or its time is none", powerFrame({ seq: 2 ** 60 })],
])("refused: %s", (reason, bytes) => {
  expect(() => readFrame(bytes)).toThrow(`This binary frame cannot be read: ${reason}.`);
});

// The same numbers each time.
function randomness(seed: number): () => number {
  return () => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return seed / 2 ** 32; };
}

test("bytes that are wrong are refused or read, and nothing else happens", () => {
  const random = randomness(7);
  const capture = new LiveCapture("c1"); // of at most 64 rails and requests
  let refused = 0;
  for (let round = 0; round < 10_000; round++) {
    const bytes = new Uint8Array(round % 2 ? powerFrame() : tokensFrame());
    for (let flips = 0; flips <= round % 4; flips++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    const cut = round % 3 ? bytes : bytes.slice(0, Math.floor(random() * (bytes.length + 1)));
    try {
      const message = readFrame(cut.buffer as ArrayBuffer);
      if (message?.type === "live_power") capture.takePower(message.data as unknown as Columns<"live_power">);
      if (message?.type === "live_tokens") capture.tokens.take(message.data as unknown as Columns<"live_tokens">);
    } catch (fault) {
      if (!(fault instanceof BadFrame)) throw fault;
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(2500);
});
