// SPDX-License-Identifier: Apache-2.0
// The live connection: connects again by itself, from the last message on. schema/api.json has the messages.
import type { Envelope } from "../api";
import { BadFrame, readFrame } from "./frame";

export type State = "connecting" | "open" | "waiting" | "ended";

export interface Clock {
  setTimeout(call: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
  random(): number;
}

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
const browserClock: Clock = { setTimeout: (call, ms) => setTimeout(call, ms), clearTimeout: (timer) => clearTimeout(timer as number), random: Math.random };

// Doubled each time, up to the longest, and a random part of that: clients that lost one server do not return together.
export const delayOf = (attempt: number, random: number) => random * Math.min(FIRST_MS * 2 ** attempt, LONGEST_MS);

export class LiveSocket {
  private socket: WebSocket | null = null;
  private generation = 0; // what an earlier socket still says is not listened to
  private attempt = 0;
  private timer: unknown = null;
  private epoch = "";
  private seq = 0;

  constructor(
    private address: string,
    private onMessage: (message: Envelope) => void,
    private onState: (state: State) => void,
    private open: (address: string) => WebSocket = (to) => new WebSocket(to),
    private clock: Clock = browserClock,
  ) {
    this.connect();
  }

  close(): void {
    this.generation++;
    this.clock.clearTimeout(this.timer);
    this.socket?.close();
    this.onState("ended");
  }

  private connect(): void {
    const generation = ++this.generation;
    const isMine = () => generation === this.generation;
    const resume = this.epoch ? `&epoch=${encodeURIComponent(this.epoch)}&seq=${this.seq}` : "";
    this.onState("connecting");
    const socket = this.open(`${this.address}?binary=true${resume}`);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { if (isMine()) this.onState("open"); };
    socket.onmessage = (event) => { if (isMine()) this.receive(event.data as string | ArrayBuffer); };
    socket.onclose = () => { if (isMine()) this.retry(); };
  }

  private receive(data: string | ArrayBuffer): void {
    const messages = typeof data === "string" ? (JSON.parse(data) as Envelope | Envelope[]) : (binaryMessage(data) ?? []);
    this.attempt = 0;
    for (const message of Array.isArray(messages) ? messages : [messages]) this.take(message);
  }

  private take(message: Envelope): void {
    if (message.epoch !== this.epoch) this.seq = 0;
    this.epoch = message.epoch;
    // What is sent again after a reconnect was had already.
    if (message.seq && message.seq <= this.seq) return;
    if (message.seq) this.seq = message.seq;
    this.onMessage(message);
    if (message.type === "bye" && message.data.reason === "server-ends") this.close();
  }

  private retry(): void {
    this.onState("waiting");
    this.timer = this.clock.setTimeout(() => this.connect(), delayOf(this.attempt++, this.clock.random()));
  }
}

// One that cannot be read is a gap of one message, where its number can.
function binaryMessage(data: ArrayBuffer): Envelope | null {
  try {
    return readFrame(data);
  } catch (fault) {
    if (!(fault instanceof BadFrame)) throw fault;
    const { header } = fault;
    return header && { v: 1, ...header, type: "gap", data: { from: header.seq, to: header.seq, count: 1, reason: "unreadable" } };
  }
}

export function liveAddress(): string {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
}
