// SPDX-License-Identifier: Apache-2.0
// The latest requests and the latest tokens of each, in bounded memory.
import type { LiveTokens } from "../api";
import type { Columns } from "./frame";

const REQUESTS = 64;
const TOKENS = 4096; // of a request
const FIRST_SIZE = 64;

export interface LiveToken {
  number: number; // from 1
  index: number | null; // as marked
  t_ms: number;
  gap_ms: number | null;
  phase: string | null;
}

export class LiveRequest {
  count = 0; // of all its tokens
  state: "queued" | "prefill" | "running" | "done" = "running";
  beginMs: number | null = null;
  endMs: number | null = null;
  latestMs = -Infinity;
  private times = new Float64Array(FIRST_SIZE);
  private gaps = new Float32Array(FIRST_SIZE); // NaN: none
  private indexes = new Float64Array(FIRST_SIZE); // NaN: none
  private phases = new Uint8Array(FIRST_SIZE);
  private phaseNames: (string | null)[] = [];

  constructor(readonly key: string, readonly pid: number, readonly name: string | null) {}

  // The oldest token that is still here.
  get first(): number {
    return Math.max(0, this.count - TOKENS);
  }

  // NaN: there is none.
  add(t_ms: number, index: number, gap_ms: number, phase: string | null): void {
    if (this.count === this.times.length && this.count < TOKENS) this.grow();
    const slot = this.count % TOKENS;
    this.times[slot] = t_ms;
    this.gaps[slot] = gap_ms;
    this.indexes[slot] = index;
    this.phases[slot] = this.phaseOf(phase);
    this.count++;
    this.latestMs = t_ms;
  }

  gapMs(at: number): number {
    return this.gaps[at % TOKENS]!;
  }

  at(at: number): LiveToken {
    const slot = at % TOKENS;
    const known = (value: number) => (Number.isNaN(value) ? null : value);
    return {
      number: at + 1, index: known(this.indexes[slot]!), t_ms: this.times[slot]!, gap_ms: known(this.gaps[slot]!),
      phase: this.phaseNames[this.phases[slot]!] ?? null,
    };
  }

  private phaseOf(name: string | null): number {
    const found = this.phaseNames.indexOf(name);
    if (found >= 0 || this.phaseNames.length > 254) return found < 0 ? 255 : found;
    return this.phaseNames.push(name) - 1;
  }

  private grow(): void {
    const size = Math.min(2 * this.times.length, TOKENS);
    const grown = <T extends { set(from: T): void }>(to: T, from: T): T => { to.set(from); return to; };
    this.times = grown(new Float64Array(size), this.times);
    this.gaps = grown(new Float32Array(size), this.gaps);
    this.indexes = grown(new Float64Array(size), this.indexes);
    this.phases = grown(new Uint8Array(size), this.phases);
  }
}

const STATES = { queued: "queued", prefill: "prefill", done: "done" } as const;

export class TokenHistory {
  // In the order in which they were last heard of.
  private requests = new Map<string, LiveRequest>();

  take(data: LiveTokens | Columns<"live_tokens">): void {
    if ("texts" in data) {
      this.takeColumns(data);
      return;
    }
    for (const event of data.requests) this.note(event.pid, event.request, event.event, event.t_ms);
    for (const { pid, request, t_ms, index, gap_ms, phase } of data.tokens) this.running(pid, request).add(t_ms, index ?? NaN, gap_ms ?? NaN, phase);
  }

  private takeColumns({ requests: events, tokens, texts }: Columns<"live_tokens">): void {
    for (let at = 0; at < events.rows; at++) {
      const event = texts.at(events.event[at]!);
      if (event !== null && Object.hasOwn(STATES, event)) this.note(events.pid[at]!, texts.at(events.request[at]!), event as keyof typeof STATES, events.t_ms[at]!);
    }
    for (let at = 0; at < tokens.rows; at++) {
      this.running(tokens.pid[at]!, texts.at(tokens.request[at]!)).add(tokens.t_ms[at]!, tokens.index[at]!, tokens.gap_ms[at]!, texts.at(tokens.phase[at]!));
    }
  }

  private note(pid: number, name: string | null, event: keyof typeof STATES, t_ms: number): void {
    const request = this.request(pid, name);
    request.state = STATES[event];
    if (event === "done") request.endMs = t_ms;
    else request.beginMs ??= t_ms;
  }

  private running(pid: number, name: string | null): LiveRequest {
    const request = this.request(pid, name);
    if (request.state !== "done") request.state = "running";
    return request;
  }

  // The latest first, those that run before those that are done.
  latest(count: number): LiveRequest[] {
    const all = [...this.requests.values()].reverse();
    return [...all.filter(({ state }) => state !== "done"), ...all.filter(({ state }) => state === "done")].slice(0, count);
  }

  get size(): number {
    return this.requests.size;
  }

  private request(pid: number, name: string | null): LiveRequest {
    const key = `${pid}/${name ?? ""}`;
    const request = this.requests.get(key) ?? new LiveRequest(key, pid, name);
    this.requests.delete(key);
    this.requests.set(key, request);
    if (this.requests.size > REQUESTS) this.requests.delete(this.requests.keys().next().value!);
    return request;
  }
}
