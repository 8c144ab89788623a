// SPDX-License-Identifier: Apache-2.0
// From live messages to what the page shows of each capture. schema/api.json has the messages.
import type {
  Envelope, Gap, Hello, Job, LiveCurrent, LiveEnded, LiveFunctions, LiveHistory, LiveKernels, LiveLayers, LivePower, LiveSession,
  LiveSummary, Messages, Snapshot,
} from "../api";
import type { Columns } from "./frame";
import { History } from "./history";
import { PhaseHistory } from "./phases";
import { TokenHistory } from "./tokens";
import { Topic } from "./topic";

const CAPTURES = 16;
const RAILS = 64; // of a capture
const GAPS = 20;
const JOBS = 200;
const WAITING = 5000; // messages, while the history is fetched
const LONGEST_INTERVAL_MS = 10_000; // of a rail: longer is a gap

export interface Miss extends Omit<Gap, "reason"> {
  reason: Gap["reason"] | "unreadable"; // by this page: socket.ts
  fromUnixMs: number | null; // when the last message before it came, by the server's clock
  toUnixMs: number;
}

const TOPICS = ["session", "summary", "power", "tokens", "phases", "functions", "kernels", "layers", "current"] as const;
type TopicName = (typeof TOPICS)[number];

export class LiveCapture {
  session: LiveSession | null = null;
  summary: LiveSummary | null = null;
  functions: LiveFunctions | null = null;
  kernels: LiveKernels | null = null;
  layers: LiveLayers | null = null;
  current: LiveCurrent | null = null;
  ended: LiveEnded | null = null;
  readonly rails = new Map<number, History>();
  readonly tokens = new TokenHistory();
  readonly phases = new PhaseHistory();
  readonly topics = Object.fromEntries(TOPICS.map((name) => [name, new Topic()])) as Record<TopicName, Topic>;
  // Of messages with history: the last that was taken, and those that wait until what was before them is here.
  takenSeq = 0;
  waiting: Envelope[] | null = null;

  constructor(readonly id: string) {}

  get isRunning(): boolean {
    return this.session !== null && this.ended === null;
  }

  // The latest time of the recording that anything was heard of.
  get nowMs(): number {
    let latest = Math.max(0, this.summary?.t_ms ?? 0, this.ended?.t_ms ?? 0);
    for (const { newestMs } of this.rails.values()) latest = Math.max(latest, newestMs);
    return latest;
  }

  takePower(data: LivePower | Columns<"live_power">): void {
    for (const { rail, t_ms, w } of "rails" in data ? data.rails : railsOf(data)) {
      if (!this.rails.has(rail) && this.rails.size >= RAILS) continue;
      const history = this.rails.get(rail) ?? new History();
      this.rails.set(rail, history);
      const period = this.session?.rails.find((known) => known.rail === rail)?.period_ms ?? 0;
      for (let at = 0; at < t_ms.length; at++) {
        const endMs = t_ms[at]!;
        const watts = w[at] ?? NaN;
        const beginMs = endMs - history.newestMs <= LONGEST_INTERVAL_MS ? history.newestMs : Math.max(0, endMs - period);
        if (Number.isNaN(watts)) history.skip(endMs);
        else history.add(beginMs, endMs, watts, watts, watts);
      }
    }
    this.topics.power.changed();
  }
}

interface Power { rail: number; t_ms: ArrayLike<number>; w: ArrayLike<number | null> }

// Points that lie behind one another by rail, without a copy.
function railsOf({ points: { rows, rail, t_ms, w } }: Columns<"live_power">): Power[] {
  const found: Power[] = [];
  for (let first = 0, at = 1; at <= rows; at++) {
    if (at < rows && rail[at] === rail[first]) continue;
    found.push({ rail: rail[first]!, t_ms: t_ms.subarray(first, at), w: w.subarray(first, at) });
    first = at;
  }
  return found;
}

type Handlers = { [Type in keyof Messages]: (feed: LiveFeed, data: Messages[Type], message: Envelope) => void };

// A type of message that is added to the schema has to be added here.
const HANDLERS: Handlers = {
  hello: (feed, data, { epoch }) => feed.greet(data, epoch),
  snapshot: (feed, data) => feed.resume(data),
  gap: (feed, data, message) => feed.miss(data, message),
  job: (feed, data) => feed.takeJob(data),
  bye: () => {}, // of the connection: socket.ts
  capture_state: () => {}, // of loading, which answers tell, too: http.ts
  live_session: (feed, data) => feed.begin(data),
  live_summary: (feed, data) => {
    const capture = feed.capture(data.capture);
    // It grows again.
    if (capture.ended && capture.ended.reason !== "end" && data.t_ms > capture.ended.t_ms) capture.ended = null;
    capture.summary = data;
    capture.topics.summary.changed();
  },
  live_power: (feed, data, message) => feed.inOrder(data.capture, message, (capture) => capture.takePower(data)),
  live_tokens: (feed, data, message) => feed.inOrder(data.capture, message, (capture) => {
    capture.tokens.take(data);
    capture.topics.tokens.changed();
  }),
  live_phases: (feed, data, message) => feed.inOrder(data.capture, message, (capture) => {
    capture.phases.take(data);
    capture.topics.phases.changed();
  }),
  live_functions: (feed, data) => feed.set(data.capture, "functions", data),
  live_kernels: (feed, data) => feed.set(data.capture, "kernels", data),
  live_layers: (feed, data) => feed.set(data.capture, "layers", data),
  live_current: (feed, data) => feed.set(data.capture, "current", data),
  live_ended: (feed, data) => {
    feed.capture(data.capture).ended = data;
    feed.capture(data.capture).topics.session.changed();
    feed.topic.changed();
  },
};

export class LiveFeed {
  hello: Hello | null = null;
  misses: Miss[] = [];
  readonly topic = new Topic(); // captures come and end, messages are missed, the first job comes
  readonly jobs = new Map<string, Job>();
  readonly jobTopic = new Topic();
  private epoch = "";
  private latestMs: number | null = null; // t_ms of the last message
  private toCome: number | null = null; // messages of the snapshot
  private wasReady = false;
  private captures = new Map<string, LiveCapture>();

  constructor(private fetchHistory: ((capture: string) => Promise<LiveHistory>) | null = null) {}

  // The snapshot is here, with all that follows it.
  get isReady(): boolean {
    return this.toCome === 0;
  }

  take(message: Envelope): void {
    if (this.toCome && message.seq) this.toCome--;
    this.handle(message);
    this.latestMs = message.t_ms;
    if (this.isReady && !this.wasReady) this.topic.changed();
    this.wasReady = this.isReady;
  }

  get ids(): string[] {
    return [...this.captures.keys()];
  }

  // null: nothing was heard of it.
  find(id: string): LiveCapture | null {
    return this.captures.get(id) ?? null;
  }

  capture(id: string): LiveCapture {
    const capture = this.captures.get(id) ?? new LiveCapture(id);
    this.captures.delete(id);
    this.captures.set(id, capture);
    if (this.captures.size > CAPTURES) this.captures.delete(this.captures.keys().next().value!);
    return capture;
  }

  // Another run of the server numbers anew, and sends what it has.
  greet(hello: Hello, epoch: string): void {
    if (this.epoch && this.epoch !== epoch) {
      this.captures.clear();
      this.jobs.clear();
    }
    this.epoch = epoch;
    this.hello = hello;
    this.topic.changed();
  }

  begin(session: LiveSession): void {
    const before = this.captures.get(session.capture);
    if (before?.session && before.session.generation !== session.generation) this.captures.delete(session.capture);
    const capture = this.capture(session.capture);
    const isNew = capture.session === null;
    capture.session = session;
    capture.topics.session.changed();
    if (isNew) this.fetch(capture);
    this.topic.changed();
  }

  miss(gap: Gap, { t_ms }: Envelope): void {
    const started = this.hello?.started_unix_ms ?? 0;
    this.misses = [...this.misses, { ...gap, fromUnixMs: this.latestMs === null ? null : started + this.latestMs, toUnixMs: started + t_ms }].slice(-GAPS);
    this.topic.changed();
  }

  // As they were when asked for, the latest first: what messages said since then counts more.
  takeJobs(jobs: Job[]): void {
    for (const job of [...jobs].reverse()) if (!this.jobs.has(job.id)) this.takeJob(job);
  }

  takeJob(job: Job): void {
    const isFirst = this.jobs.size === 0;
    this.jobs.set(job.id, job);
    if (isFirst) this.topic.changed();
    if (this.jobs.size > JOBS) this.jobs.delete(this.jobs.keys().next().value!);
    this.jobTopic.changed();
  }

  set<Name extends "functions" | "kernels" | "layers" | "current">(id: string, name: Name, data: LiveCapture[Name]): void {
    const capture = this.capture(id);
    capture[name] = data;
    capture.topics[name].changed();
  }

  // Messages of which each counts, and which the history has, too.
  inOrder(id: string, message: Envelope, take: (capture: LiveCapture) => void): void {
    const capture = this.capture(id);
    if (capture.waiting && capture.waiting.length < WAITING) {
      capture.waiting.push(message);
    } else if (message.seq > capture.takenSeq) {
      capture.takenSeq = message.seq;
      take(capture);
    }
  }

  // Messages with history are not in the snapshot.
  resume({ types }: Snapshot): void {
    this.toCome = types;
    for (const capture of this.captures.values()) this.fetch(capture);
  }

  private handle(message: Envelope): void {
    const handler = HANDLERS[message.type as keyof Messages] as ((feed: LiveFeed, data: unknown, message: Envelope) => void) | undefined;
    handler?.(this, message.data, message);
  }

  private fetch(capture: LiveCapture): void {
    if (!this.fetchHistory || capture.waiting) return;
    capture.waiting = [];
    const done = (before: Envelope[]) => {
      const after = capture.waiting ?? [];
      capture.waiting = null;
      if (this.captures.get(capture.id) !== capture) return;
      for (const message of [...before, ...after]) this.handle(message);
    };
    // Without the history there is what comes from now on.
    this.fetchHistory(capture.id).then(({ epoch, messages }) => done(epoch === this.epoch ? messages : []), () => done([]));
  }
}
