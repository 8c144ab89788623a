// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Envelope } from "../src/api";
import { LiveSocket, delayOf } from "../src/live/socket";
import { powerFrame } from "./frames";

// A double of a browser's WebSocket.
class Double {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string | ArrayBuffer }) => void) | null = null;
  onclose: (() => void) | null = null;
  binaryType = "";
  isClosed = false;
  constructor(public address: string) {}
  close() { this.isClosed = true; }
  send(data: ArrayBuffer) { this.onmessage?.({ data }); }
  join(seqs: number[]) {
    this.onmessage?.({ data: JSON.stringify(seqs.map((seq) => ({ v: 1, epoch: "e1", seq, t_ms: 0, type: "power", data: {} }))) });
  }
  say(type: string, seq: number, epoch = "e1", data = {}) { this.onmessage?.({ data: JSON.stringify({ v: 1, epoch, seq, t_ms: 0, type, data }) }); }
}

function connect() {
  const sockets: Double[] = [];
  const messages: Envelope[] = [];
  const states: string[] = [];
  const timers: (() => void)[] = [];
  const live = new LiveSocket("ws://here/ws", (message) => messages.push(message), (state) => states.push(state),
    (address) => { const socket = new Double(address); sockets.push(socket); return socket as unknown as WebSocket; },
    { setTimeout: (call) => timers.push(call), clearTimeout: () => { timers.length = 0; }, random: () => 1 });
  return { live, sockets, messages, states, timers };
}

test("after a loss it goes on from the last message, and takes none twice", () => {
  const { sockets, messages, timers, states } = connect();
  sockets[0]!.onopen?.();
  sockets[0]!.say("hello", 0);
  sockets[0]!.say("power", 1);
  sockets[0]!.say("power", 2);
  sockets[0]!.onclose?.();
  expect(states.at(-1)).toBe("waiting");
  timers.shift()!();
  expect(sockets[1]!.address).toBe("ws://here/ws?binary=true&epoch=e1&seq=2");
  sockets[1]!.say("power", 2);
  sockets[1]!.say("power", 3);
  expect(messages.map((message) => message.seq)).toEqual([0, 1, 2, 3]);
});

test("messages that were joined come one by one, and those that were had already do not", () => {
  const { sockets, messages } = connect();
  sockets[0]!.say("power", 1);
  sockets[0]!.join([1, 2, 3]);
  expect(messages.map((message) => message.seq)).toEqual([1, 2, 3]);
});

test("a new epoch begins at its first message", () => {
  const { sockets, messages } = connect();
  sockets[0]!.say("power", 7);
  sockets[0]!.say("power", 1, "e2");
  expect(messages.map((message) => [message.epoch, message.seq])).toEqual([["e1", 7], ["e2", 1]]);
});

test("binary frames count as messages, and one that cannot be read is a gap of one", () => {
  const { sockets, messages, timers } = connect();
  sockets[0]!.send(powerFrame({ epoch: "e1", seq: 1 }));
  sockets[0]!.send(powerFrame({ epoch: "e1", seq: 1 }));
  sockets[0]!.send(powerFrame({ epoch: "e1", seq: 2 }).slice(0, 90));
  sockets[0]!.send(new ArrayBuffer(3));
  sockets[0]!.send(powerFrame({ epoch: "e1", seq: 3, kind: 200 }));
  sockets[0]!.say("power", 4);
  expect(messages.map(({ type, seq }) => [type, seq])).toEqual([["live_power", 1], ["gap", 2], ["power", 4]]);
  expect(messages[1]!.data).toEqual({ from: 2, to: 2, count: 1, reason: "unreadable" });
  sockets[0]!.onclose?.();
  timers.shift()!();
  expect(sockets[1]!.address).toBe("ws://here/ws?binary=true&epoch=e1&seq=4");
});

test("what an earlier socket still says is not listened to", () => {
  const { sockets, messages, timers } = connect();
  sockets[0]!.onclose?.();
  timers.shift()!();
  sockets[0]!.say("power", 1);
  sockets[0]!.onclose?.();
  expect(messages).toEqual([]);
  expect(timers.length).toBe(0);
  expect(sockets.length).toBe(2);
});

test("it ends with the server, and with its page", () => {
  const first = connect();
  first.sockets[0]!.say("bye", 0, "e1", { reason: "server-ends" });
  first.sockets[0]!.onclose?.();
  expect(first.states.at(-1)).toBe("ended");
  expect(first.timers.length).toBe(0);
  const second = connect();
  second.live.close();
  expect(second.sockets[0]!.isClosed).toBe(true);
});

test("it waits longer each time, up to half a minute", () => {
  expect([0, 1, 2, 10].map((attempt) => delayOf(attempt, 1))).toEqual([500, 1000, 2000, 30000]);
  expect(delayOf(5, 0)).toBe(0);
});
