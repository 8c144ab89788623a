// SPDX-License-Identifier: Apache-2.0
// The server's answers: schema/api.json.
import { methods, paths } from "./api";
import type { Capture, CaptureList, CommandList, Failure, JobList, LiveHistory, Operations, Pending, Slice, Status } from "./api";
import { formatBytes } from "./format";
import type { CallTree, Report } from "./report";
import { WEIGHTS } from "./source";
import type { CaptureSource, Controls, Export, Filters, Progress, Source } from "./source";
import type { TileSource, TimelineSource } from "./timeline/source";

const CONFLICT = 409; // a version of a capture that is gone
const WAIT_S = 2; // for an answer, before the progress is asked for again

type Parameters = Record<string, string | number | boolean | string[] | null | undefined>;

// The operation's address; parameters that are not in its path are its query, without those that are empty.
export function addressOf(operation: keyof Operations, parameters: Parameters): string {
  const rest = { ...parameters };
  const path = paths[operation].replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name];
    delete rest[name];
    return encodeURIComponent(String(value));
  });
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(rest)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") query.append(key, String(one));
    }
  }
  return query.size ? `${path}?${query}` : path;
}

class Refusal extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

async function failureOf(response: Response): Promise<Refusal> {
  try {
    return new Refusal(response.status, ((await response.json()) as Failure).error.message);
  } catch {
    return new Refusal(response.status, `The server answered ${response.status} ${response.statusText}.`);
  }
}

function progressText(pending: Pending): string {
  if (pending.state === "asking") return "computing";
  return pending.total ? `reading, ${Math.floor((100 * pending.done) / pending.total)} %` : "reading";
}

async function request(address: string, options?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("The server does not answer: it has ended, or the connection is gone. Reload the page when it is back.");
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

let lastAnswerMs = 0;

// Asks until the answer is there.
async function answerOf(address: string, progress: Progress): Promise<Response> {
  const begin = performance.now();
  for (;;) {
    const response = await request(address);
    lastAnswerMs = performance.now() - begin;
    if (response.status !== 202) return response;
    progress(progressText((await response.json()) as Pending));
  }
}

export async function ask<T>(address: string, progress: Progress): Promise<T> {
  return (await (await answerOf(address, progress)).json()) as T;
}

// Of an operation that changes something. A body that is no file goes as JSON.
export async function send<T>(operation: keyof Operations, parameters: Parameters, body?: object): Promise<T> {
  const isFile = body instanceof Blob;
  const headers = { "Content-Type": isFile ? "application/x-ndjson" : "application/json" };
  const options = { method: methods[operation], ...(body && { headers, body: isFile ? body : JSON.stringify(body) }) };
  return (await (await request(addressOf(operation, parameters), options)).json()) as T;
}

// With the name that the server gives it.
async function askFile(address: string, progress: Progress): Promise<Export> {
  const response = await answerOf(address, progress);
  const name = /filename="([^"]*)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
  return { name: name ?? "export", content: await response.blob() };
}

export async function askBytes(address: string): Promise<ArrayBuffer> {
  return (await request(address)).arrayBuffer();
}

const NAMES_AT_ONCE = 300; // an address has at most some thousand bytes

function tileSource(capture: string, version: string): TileSource {
  return {
    tile: (track, fromNs, toNs, columns) =>
      askBytes(addressOf("get_timeline_tile", { capture, version, track, from: Math.max(0, Math.floor(fromNs)), to: Math.max(1, Math.ceil(toNs)), columns })),
    names: async (numbers) => {
      const texts: (string | null)[] = [];
      for (let at = 0; at < numbers.length; at += NAMES_AT_ONCE) {
        const names = numbers.slice(at, at + NAMES_AT_ONCE).join(",");
        texts.push(...(await ask<(string | null)[]>(addressOf("get_timeline_names", { capture, version, names }), () => {})));
      }
      return texts;
    },
    slice: (track, lane, atNs) => ask<Slice>(addressOf("get_timeline_slice", { capture, version, track, lane, at: Math.max(0, Math.floor(atNs)) }), () => {}),
  };
}

function timelineSource(capture: string): TimelineSource {
  return {
    tracks: (progress) => ask(addressOf("get_timeline", { capture, wait: WAIT_S }), progress),
    of: (version, onGone) => {
      const source = tileSource(capture, version);
      const noticed = <A extends unknown[], T>(method: (...given: A) => Promise<T>) => (...given: A) => method(...given).catch((error: unknown) => {
        if (error instanceof Refusal && error.status === CONFLICT) onGone();
        throw error;
      });
      return { tile: noticed(source.tile), names: noticed(source.names), slice: noticed(source.slice) };
    },
  };
}

function captureSource(capture: Capture): CaptureSource {
  const parameters = (more: Parameters, filters: Filters) => ({ capture: capture.id, wait: WAIT_S, ...filters, ...more });
  return {
    id: capture.id,
    name: capture.name,
    weights: WEIGHTS,
    filters: true,
    fileHref: capture.kind === "file" ? addressOf("get_capture_file", { capture: capture.id }) : null,
    sizeBytes: capture.size,
    report: (by, filters, progress, limit) => ask<Report>(addressOf("get_report", parameters({ format: "page", by, limit }, filters)), progress),
    figures: (by, filters, progress) => ask(addressOf("get_report", parameters({ format: "json", by }, filters)), progress),
    export: (format, weight, filters, progress) => askFile(addressOf("get_export", parameters({ format, weight }, filters)), progress),
    plot: async (format, filters, progress) => (await askFile(addressOf("get_export", parameters({ format }, filters)), progress)).content,
    speedscopeHref: (weight, filters) => {
      const profile = addressOf("get_export", { capture: capture.id, format: "speedscope", weight, ...filters });
      return `/speedscope/#profileURL=${encodeURIComponent(profile)}&title=${encodeURIComponent(capture.name)}`;
    },
    has: () => true,
    tree: async (weight, filters, progress) => ({
      ...(await ask<CallTree>(addressOf("get_call_tree", parameters({ weight }, filters)), progress)), weight,
    }),
    difference: async (after, weight, filters, progress) => ({
      ...(await ask<CallTree>(addressOf("get_call_tree_diff", parameters({ after, weight }, filters)), progress)), weight,
    }),
    timeline: timelineSource(capture.id),
    modifiedMs: async () => ((await (await request(addressOf("get_capture", { capture: capture.id }))).json()) as Capture).modified_ms,
    answerMs: () => lastAnswerMs,
  };
}

const controls: Controls = {
  commands: async () => (await ask<CommandList>(paths.list_commands, () => {})).commands,
  jobs: async () => (await ask<JobList>(paths.list_jobs, () => {})).jobs,
  start: (command, parameters) => send("start_job", {}, { command, parameters }),
  cancel: (job) => send("cancel_job", { job }),
  window: (job, action) => send("set_job_window", { job }, { action }),
};

export async function httpSource(): Promise<Source> {
  const [{ captures }, { perfetto, has_runs, read_only }] = await Promise.all([ask<CaptureList>(paths.list_captures, () => {}), ask<Status>(paths.get_status, () => {})]);
  const sources = new Map(captures.map((capture) => [capture.id, captureSource(capture)]));
  return {
    isServed: true,
    perfetto: perfetto ?? null,
    history: has_runs ? { canChange: !read_only } : null,
    captures: captures.map(({ id, name, size }) => ({ id, name, detail: size === null ? "" : formatBytes(size) })),
    capture: (id) => sources.get(id) ?? (captures.length === 1 ? sources.get(captures[0]!.id) ?? null : null),
    controls,
    refresh: httpSource,
    liveHistory: (capture) => ask<LiveHistory>(addressOf("get_live", { capture }), () => {}),
  };
}
