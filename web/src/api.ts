// SPDX-License-Identifier: Apache-2.0
// Made of schema/api.json: schema/api.py typescript schema/api.json >web/src/api.ts

// Every answer that is no success.
export interface Failure {
  error: { code: "bad-request" | "unauthorised" | "forbidden" | "not-found" | "method-not-allowed" | "wrong-content-type" | "conflict" | "too-many-jobs" | "too-large" | "answer-too-large" | "too-many-requests" | "capture-unreadable" | "no-data" | "no-store" | "store-busy" | "store-full" | "store-damaged" | "store-failed" | "worker-failed" | "timed-out" | "busy" | "out-of-memory" | "no-page" | "read-only"; message: string; };
}

// The answer is being made. Of total, done is read; total is 0 where it is not known.
export interface Pending {
  state: "loading" | "asking";
  done: number;
  total: number;
}

export interface Status {
  name: string;
  version: string;
  mode: "view" | "serve";
  read_only: boolean;
  has_page: boolean;
  has_runs: boolean;
  uptime_ms: number;
  captures: number;
  open_captures: number;
  clients: number;
  perfetto: string | null;
}

// Runs that were added, and those that were there already.
export interface Imported {
  added: number;
  known: number;
}

// message: of state failed, why it cannot be read.
export interface Capture {
  id: string;
  name: string;
  kind: "file" | "folder";
  size: number | null;
  modified_ms: number;
  state: "closed" | "loading" | "open" | "failed";
  message: string | null;
}

export interface CaptureList {
  captures: Capture[];
}

export interface Section {
  name: string;
  summary: string;
}

// Nodes are places in label, parent, self and total. The root is node 0, its parent -1; parents come before their children. names, modules and kinds are of labels; paths, totals, self and total have one item for each capture.
export interface CallTree {
  unit: "ns" | "uj" | "bytes" | "samples";
  paths: string[];
  totals: number[];
  names: string[];
  modules?: (string | null)[];
  kinds?: string[];
  label: number[];
  parent: number[];
  self: number[][];
  total: number[][];
  pruned?: { nodes: number; total: number[]; };
  notes: string[];
}

// Slices in lanes deeper than 128 are counted in too_deep. minimum and maximum are of counters.
export interface Track {
  id: number;
  kind: "thread" | "python" | "stream" | "samples" | "counter";
  name: string | null;
  process?: string | null;
  pid?: number | null;
  tid?: number | null;
  rank?: number | null;
  lanes?: number;
  slices?: number;
  too_deep?: number;
  minimum?: number | null;
  maximum?: number | null;
}

export interface Timeline {
  version: string;
  duration_ns: number;
  tracks: Track[];
}

// kind: how to write the value, as of a column of the report.
export interface SliceDetail {
  title: string;
  kind: "text" | "count" | "ns" | "bytes";
  value: string | number;
}

// The other end, and where in the track of the slice it begins: at the slice, or at one inside of it.
export interface SliceLink {
  kind: "launched_by" | "launched" | "backward" | "forward";
  track: number;
  lane: number;
  name: string;
  start_ns: number;
  duration_ns: number;
  from_ns: number;
  from_lane: number;
}

// stack: outermost first: of the launch of device work; else what is around the slice. Links of what lies inside are its own, too.
export interface Slice {
  track: number;
  lane: number;
  name: string;
  category: string | null;
  start_ns: number;
  duration_ns: number;
  previous_ns: number | null;
  next_ns: number | null;
  details: SliceDetail[];
  stack: string[];
  links: SliceLink[];
  links_left_out: number;
}

// A text frame of /ws is one of these, or an array of several in order. Clients ignore types that they do not know.
export interface Envelope {
  v: 1;
  epoch: string;
  seq: number;
  t_ms: number;
  type: string;
  data: Record<string, unknown>;
}

// The first message. oldest_seq and newest_seq are those that can be sent again.
export interface Hello {
  version: string;
  started_unix_ms: number;
  oldest_seq: number;
  newest_seq: number;
  budget_bytes: number;
  read_only: boolean;
  is_view: boolean;
}

// The latest message of each type that only counts by its latest follows, types of them, with the seq that they had. Messages after newest_seq come after those.
export interface Snapshot {
  types: number;
  newest_seq: number;
}

// These messages are lost to this client, both ends included: it was too slow for them, or asked for what is no longer kept, or of another epoch.
export interface Gap {
  from: number;
  to: number;
  count: number;
  reason: "too-slow" | "too-old" | "new-epoch";
}

// The last message.
export interface Bye {
  reason: "server-ends" | "too-slow";
}

// minimum and maximum are of numbers, choices of type choice; a parameter without default must be given.
export interface CommandParameter {
  name: string;
  type: "string" | "integer" | "number" | "choice";
  default: string | number | null;
  choices: string[];
  minimum: number | null;
  maximum: number | null;
}

export interface Command {
  name: string;
  description: string | null;
  parameters: CommandParameter[];
}

export interface CommandList {
  commands: Command[];
}

// A recording. capture: its id in /api/captures, once it has a file. exit_status: of the recorded command, 128 and the signal where one ended it. window: null when it has none that can be opened.
export interface Job {
  id: string;
  command: string;
  state: "running" | "ended" | "failed" | "cancelled";
  capture: string | null;
  started_unix_ms: number;
  exit_status: number | null;
  window: "open" | "closed" | null;
  message: string | null;
}

export interface JobList {
  jobs: Job[];
}

// A capture is being loaded, is open, or could not be read.
export interface CaptureState {
  capture: string;
  state: "loading" | "open" | "failed" | "closed";
  done: number;
  total: number;
}

// A source of power figures: a domain of the capture. parent: the rail that it is a part of, whose energy contains its own.
export interface LiveRail {
  rail: number;
  parent: number | null;
  name: string | null;
  source: string | null;
  device: string | null;
  part: string | null;
  quality: string | null;
  is_replayed: boolean;
  period_ms: number | null;
  limit_w: number | null;
}

// A capture is being recorded, and how. Sent again when that is known better, as when a rail appears. All t_ms of live messages are since the start of this recording.
export interface LiveSession {
  capture: string;
  generation: number;
  name: string;
  command: string[];
  host: string | null;
  started_unix_ms: number | null;
  period_ns: number | null;
  whole_machine: boolean;
  wait_mode: string | null;
  launch_stacks: string | null;
  rails: LiveRail[];
  absences: ({ source: string | null; reason: string | null; })[];
}

// Where the recording is. Rates are of the last 10 s of the recording.
export interface LiveSummary {
  capture: string;
  t_ms: number;
  samples: number;
  samples_per_s: number | null;
  cpu_busy: number | null;
  waiting: number | null;
  samples_lost: number;
  losses: ({ where: string; count: number; })[];
  processes: number;
  threads: number;
  tokens: number;
  tokens_per_s: number | null;
  requests_running: number;
  requests_done: number;
  rails: ({ rail: number; joules: number; })[];
  kernels: number;
  gpu_busy: ({ device: string; share: number; })[];
  capture_bytes: number;
}

// Intervals of energy since the last message, in the order of their times. Of a rail with more than fit, neighbours are merged to two points: those of the least and of the most power.
export interface LivePower {
  capture: string;
  rails: ({ rail: number; t_ms: number[]; w: (number | null)[]; })[];
}

// Tokens that came, and requests that began or ended, in the order of the capture.
export interface LiveTokens {
  capture: string;
  tokens: ({ pid: number; request: string | null; index: number | null; t_ms: number; gap_ms: number | null; phase: string | null; })[];
  requests: ({ pid: number; request: string | null; t_ms: number; event: "queued" | "prefill" | "done"; })[];
}

// Phases of inference, steps and windows that began or ended. One that ends comes again, with the same id.
export interface LivePhases {
  capture: string;
  phases: ({ id: number; kind: "phase" | "step" | "window"; name: string | null; pid: number | null; t_ms: number; end_ms: number | null; })[];
}

// The functions with the most CPU time of their own since the start, the most first.
export interface LiveFunctions {
  capture: string;
  t_ms: number;
  rows: ({ name: string; module: string | null; self_ms: number; recent_ms: number; })[];
}

// The kernels and copies with the most device time since the start, the most first.
export interface LiveKernels {
  capture: string;
  t_ms: number;
  rows: ({ name: string; module: string | null; count: number; self_ms: number; recent_ms: number; })[];
}

// Time of a model's layers and components, without what is inside them, by the ranges of hooks. The rows are those of the report's section layer, one for each component of each layer.
export interface LiveLayers {
  capture: string;
  t_ms: number;
  rows: ({ pid: number; layer: number | null; component: string; calls: number; own_ms: number; recent_ms: number; })[];
}

// The innermost open range of each thread and domain: what runs now.
export interface LiveCurrent {
  capture: string;
  t_ms: number;
  rows: ({ pid: number; tid: number; thread: string | null; domain: string | null; name: string | null; depth: number; since_ms: number; })[];
}

// The capture is followed no longer. end: the recording ended. stalled: the file has not grown for a while; it is followed again when it grows. unreadable: it is damaged, or another file. crashed: the process that followed it is gone.
export interface LiveEnded {
  capture: string;
  t_ms: number;
  reason: "end" | "stalled" | "unreadable" | "crashed";
  message: string | null;
  exit_status: number | null;
}

// What a client that comes late missed of a capture: the envelopes of live_power, live_tokens and live_phases of the last 10 minutes, as they were sent, oldest first; of too much the oldest are left out. Those after newest_seq come over /ws; one that comes both ways has the same seq.
export interface LiveHistory {
  epoch: string;
  newest_seq: number;
  messages: Envelope[];
}

// Of each operation: its method and path, parameters and answer.
export interface Operations {
  // GET /api/openapi.json: This document.
  get_openapi: { parameters: {}; answer: Record<string, unknown> };
  // GET /api/status: What the server is, and what it has open.
  get_status: { parameters: {}; answer: Status };
  // GET /api/captures: The captures and traces that can be opened.
  list_captures: { parameters: {}; answer: CaptureList };
  // GET /api/captures/{capture}: One capture.
  get_capture: { parameters: { capture: string; }; answer: Capture };
  // GET /api/captures/{capture}/file: The capture itself, to keep it or to open it in Perfetto.
  get_capture_file: { parameters: { capture: string; }; answer: Blob };
  // GET /api/captures/{capture}/live: What live messages said of a capture before: for clients that come late.
  get_live: { parameters: { capture: string; }; answer: LiveHistory };
  // GET /api/captures/{capture}/sections: What can be asked for with by.
  get_sections: { parameters: { capture: string; wait?: number; }; answer: Section[] };
  // GET /api/captures/{capture}/report: The report, or one section of it.
  get_report: { parameters: { capture: string; format?: "json" | "page" | "csv"; wait?: number; by?: string; sort?: "self" | "total"; limit?: number; slo?: string; price?: string; co2?: string; "comm-kernels"?: string; peak?: string; rank?: number; "hta-compatible"?: boolean; "include-last-step"?: boolean; "drop-last-step"?: boolean; annotation?: string; instance?: number; operator?: string; weight?: "cpu" | "wait" | "wall" | "gpu" | "gpu-idle" | "gpu-bytes" | "cpu+gpu" | "energy"; stacks?: "all" | "user" | "kernel" | "modules"; "fold-libraries"?: "yes" | "no"; "show-interpreter"?: boolean; process?: string; thread?: string; time?: string; step?: string; window?: string; range?: string; symbol?: string; }; answer: Record<string, unknown> };
  // GET /api/captures/{capture}/export: The capture in another tool's format, as sonde export writes it.
  get_export: { parameters: { capture: string; format: string; wait?: number; roots?: "none" | "process" | "thread"; weight?: "cpu" | "wait" | "wall" | "gpu" | "gpu-idle" | "gpu-bytes" | "cpu+gpu" | "energy"; stacks?: "all" | "user" | "kernel" | "modules"; "fold-libraries"?: "yes" | "no"; "show-interpreter"?: boolean; process?: string; thread?: string; time?: string; step?: string; window?: string; range?: string; symbol?: string; }; answer: Blob };
  // GET /api/captures/{capture}/call-tree: The call tree, for flame graphs.
  get_call_tree: { parameters: { capture: string; wait?: number; roots?: "none" | "process" | "thread"; "min-share"?: number; "comm-kernels"?: string; weight?: "cpu" | "wait" | "wall" | "gpu" | "gpu-idle" | "gpu-bytes" | "cpu+gpu" | "energy"; stacks?: "all" | "user" | "kernel" | "modules"; "fold-libraries"?: "yes" | "no"; "show-interpreter"?: boolean; process?: string; thread?: string; time?: string; step?: string; window?: string; range?: string; symbol?: string; }; answer: CallTree };
  // GET /api/captures/{capture}/call-tree/{after}: The call trees of this capture and a later one, side by side.
  get_call_tree_diff: { parameters: { capture: string; after: string; wait?: number; roots?: "none" | "process" | "thread"; "min-share"?: number; "comm-kernels"?: string; weight?: "cpu" | "wait" | "wall" | "gpu" | "gpu-idle" | "gpu-bytes" | "cpu+gpu" | "energy"; stacks?: "all" | "user" | "kernel" | "modules"; "fold-libraries"?: "yes" | "no"; "show-interpreter"?: boolean; process?: string; thread?: string; time?: string; step?: string; window?: string; range?: string; symbol?: string; }; answer: CallTree };
  // GET /api/captures/{capture}/timeline: What happened when: the tracks that tiles can be asked of.
  get_timeline: { parameters: { capture: string; wait?: number; }; answer: Timeline };
  // GET /api/captures/{capture}/timeline/tile: A track in a span of time at a width in columns, as little-endian arrays: src/query/timeline/timeline.h has the layout.
  get_timeline_tile: { parameters: { capture: string; wait?: number; track: number; from: number; to: number; columns: number; version?: string; }; answer: Blob };
  // GET /api/captures/{capture}/timeline/names: The texts of numbers in tiles, in their order; null for a number that there is not.
  get_timeline_names: { parameters: { capture: string; wait?: number; names: string; version?: string; }; answer: (string | null)[] };
  // GET /api/captures/{capture}/timeline/slice: What is known of one slice: its details, the stack that it comes from, and the slices that it launched or was launched by.
  get_timeline_slice: { parameters: { capture: string; wait?: number; track: number; lane: number; at: number; version?: string; }; answer: Slice };
  // GET /api/captures/{capture}/diff/{after}: What changed from this capture to a later one, as sonde diff --json prints it.
  get_diff: { parameters: { capture: string; after: string; wait?: number; by?: "function" | "module" | "work"; sort?: "self" | "total"; limit?: number; weight?: "cpu" | "wait" | "wall" | "gpu" | "gpu-idle" | "gpu-bytes" | "cpu+gpu" | "energy"; stacks?: "all" | "user" | "kernel" | "modules"; "fold-libraries"?: "yes" | "no"; "show-interpreter"?: boolean; process?: string; thread?: string; time?: string; step?: string; window?: string; range?: string; symbol?: string; }; answer: Record<string, unknown> };
  // GET /api/commands: The commands that may be started: those of the operator's file, and no others.
  list_commands: { parameters: {}; answer: CommandList };
  // GET /api/jobs: The recordings that this server started; the latest first.
  list_jobs: { parameters: {}; answer: JobList };
  // POST /api/jobs: Records one of the commands of /api/commands.
  start_job: { parameters: {}; body: { command: string; parameters?: Record<string, unknown>; }; answer: Job };
  // GET /api/jobs/{job}: One job.
  get_job: { parameters: { job: string; }; answer: Job };
  // POST /api/jobs/{job}/cancel: Ends the command; what was recorded until then is kept.
  cancel_job: { parameters: { job: string; }; answer: Job };
  // POST /api/jobs/{job}/window: Opens or closes a window of the recording, as sonde ctl does.
  set_job_window: { parameters: { job: string; }; body: { action: "open" | "close"; }; answer: Job };
  // GET /api/runs: Runs of the database, as sonde runs list --json prints them.
  list_runs: { parameters: { format?: "json" | "page" | "csv"; model?: string; experiment?: string; engine?: string; commit?: string; search?: string; tag?: string[]; since?: string; until?: string; order?: "time" | "added" | "duration" | "energy" | "joules-per-token" | "tokens-per-s" | "ttft" | "tpot" | "step" | "gpu-busy" | "batch-size" | "model" | "experiment"; reverse?: boolean; limit?: number; offset?: number; }; answer: Record<string, unknown> };
  // GET /api/runs/compare: Runs beside each other, as sonde runs compare --json prints them.
  compare_runs: { parameters: { run: string[]; format?: "json" | "page" | "csv"; }; answer: Record<string, unknown> };
  // GET /api/runs/analyse: Batch sizes, contexts, precisions, mixtures, scaling, throughput and energy, as sonde runs analyse --json prints them.
  analyse_runs: { parameters: { format?: "json" | "page" | "csv"; model?: string; experiment?: string; engine?: string; commit?: string; search?: string; tag?: string[]; since?: string; until?: string; price?: string; co2?: string; }; answer: Record<string, unknown> };
  // GET /api/runs/predict: The same with what a run with these labels would take, as sonde runs analyse --predict --json prints it.
  predict_run: { parameters: { labels: string; format?: "json" | "page" | "csv"; model?: string; experiment?: string; engine?: string; commit?: string; search?: string; tag?: string[]; since?: string; until?: string; price?: string; co2?: string; }; answer: Record<string, unknown> };
  // GET /api/runs/regressions: What changed from commit to commit of an experiment, as sonde runs regressions --json prints it.
  get_regressions: { parameters: { experiment: string; threshold?: number; format?: "json" | "page" | "csv"; }; answer: Record<string, unknown> };
  // GET /api/runs/stats: How many runs there are, since when, and how large the database is, as sonde runs stats --json prints it.
  get_runs_stats: { parameters: {}; answer: Record<string, unknown> };
  // POST /api/runs/retention: Deletes the runs that are too many or too old, or lists them, as sonde runs retention --json prints it. Their captures stay.
  retain_runs: { parameters: {}; body: { keep?: number; max_age_days?: number; dry_run?: boolean; }; answer: Record<string, unknown> };
  // GET /api/runs/export: Runs as JSON lines, as sonde runs export writes them.
  export_runs: { parameters: { run?: string[]; model?: string; experiment?: string; engine?: string; commit?: string; search?: string; tag?: string[]; since?: string; until?: string; }; answer: Blob };
  // POST /api/runs/import: Adds runs that were exported, each as a whole or not at all; those that are there already are passed over.
  import_runs: { parameters: {}; body: Blob; answer: Imported };
  // GET /api/runs/{run}: What is kept of a run, as sonde runs show --json prints it.
  get_run: { parameters: { run: string; section?: string; format?: "json" | "page" | "csv"; }; answer: Record<string, unknown> };
  // PATCH /api/runs/{run}: Changes the labels of a run: those that are given, all or none. Answers as get_run does.
  edit_run: { parameters: { run: string; }; body: { tags?: string[]; notes?: string; experiment?: string; }; answer: Record<string, unknown> };
  // DELETE /api/runs/{run}: Deletes a run with all that belongs to it, as sonde runs delete --json prints it. Its capture stays.
  delete_run: { parameters: { run: string; }; answer: Record<string, unknown> };
  // GET /api/runs/{run}/capture: The capture of a run, where this server offers it.
  get_run_capture: { parameters: { run: string; }; answer: Capture };
  // GET /ws: Live messages, over a WebSocket. With epoch and seq, the last message that the client has: those after it are sent again, or a gap and a snapshot. With binary=true, messages whose x-message has columns come as binary frames, described by x-frame. Clients send nothing.
  open_socket: { parameters: { epoch?: string; seq?: number; binary?: boolean; }; answer: Envelope };
}

export const paths: Record<keyof Operations, string> = {
  get_openapi: "/api/openapi.json",
  get_status: "/api/status",
  list_captures: "/api/captures",
  get_capture: "/api/captures/{capture}",
  get_capture_file: "/api/captures/{capture}/file",
  get_live: "/api/captures/{capture}/live",
  get_sections: "/api/captures/{capture}/sections",
  get_report: "/api/captures/{capture}/report",
  get_export: "/api/captures/{capture}/export",
  get_call_tree: "/api/captures/{capture}/call-tree",
  get_call_tree_diff: "/api/captures/{capture}/call-tree/{after}",
  get_timeline: "/api/captures/{capture}/timeline",
  get_timeline_tile: "/api/captures/{capture}/timeline/tile",
  get_timeline_names: "/api/captures/{capture}/timeline/names",
  get_timeline_slice: "/api/captures/{capture}/timeline/slice",
  get_diff: "/api/captures/{capture}/diff/{after}",
  list_commands: "/api/commands",
  list_jobs: "/api/jobs",
  start_job: "/api/jobs",
  get_job: "/api/jobs/{job}",
  cancel_job: "/api/jobs/{job}/cancel",
  set_job_window: "/api/jobs/{job}/window",
  list_runs: "/api/runs",
  compare_runs: "/api/runs/compare",
  analyse_runs: "/api/runs/analyse",
  predict_run: "/api/runs/predict",
  get_regressions: "/api/runs/regressions",
  get_runs_stats: "/api/runs/stats",
  retain_runs: "/api/runs/retention",
  export_runs: "/api/runs/export",
  import_runs: "/api/runs/import",
  get_run: "/api/runs/{run}",
  edit_run: "/api/runs/{run}",
  delete_run: "/api/runs/{run}",
  get_run_capture: "/api/runs/{run}/capture",
  open_socket: "/ws",
};

// Those that are not asked for with GET.
export const methods: Partial<Record<keyof Operations, string>> = {
  start_job: "POST",
  cancel_job: "POST",
  set_job_window: "POST",
  retain_runs: "POST",
  import_runs: "POST",
  edit_run: "PATCH",
  delete_run: "DELETE",
};

// Of each type of message, its data.
export interface Messages {
  hello: Hello;
  snapshot: Snapshot;
  gap: Gap;
  bye: Bye;
  job: Job;
  capture_state: CaptureState;
  live_session: LiveSession;
  live_summary: LiveSummary;
  live_power: LivePower;
  live_tokens: LiveTokens;
  live_phases: LivePhases;
  live_functions: LiveFunctions;
  live_kernels: LiveKernels;
  live_layers: LiveLayers;
  live_current: LiveCurrent;
  live_ended: LiveEnded;
}

// A binary frame is one message: this header, then the tables of its kind as x-message of its schema lists them, then the texts. All is little-endian, and every part begins at a multiple of 8 bytes. A table is its number of rows as u32 and four bytes of zeros, then its columns. A text is a u32: its place among the texts, a JSON array of strings that fills the rest of the frame; 4294967295 is null. NaN is null. seq, t_ms and epoch are those of the envelope, capture is the member of that name; texts in the header end in zeros.
export const frameHeader = {
  version: { type: "u8", at: 0, bytes: 1 },
  kind: { type: "u8", at: 1, bytes: 1 },
  bytes: { type: "u16", at: 2, bytes: 2 },
  zero: { type: "u32", at: 4, bytes: 4 },
  seq: { type: "u64", at: 8, bytes: 8 },
  t_ms: { type: "f64", at: 16, bytes: 8 },
  epoch: { type: "char32", at: 24, bytes: 32 },
  capture: { type: "char24", at: 56, bytes: 24 },
} as const;

// Of each kind of binary frame, its tables.
export const frameKinds = {
  live_power: {
    kind: 1,
    tables: {
      points: { t_ms: "f64", w: "f32", rail: "u32" },
    },
  },
  live_tokens: {
    kind: 2,
    tables: {
      tokens: { t_ms: "f64", index: "f64", gap_ms: "f32", pid: "u32", request: "text", phase: "text" },
      requests: { t_ms: "f64", pid: "u32", request: "text", event: "text" },
    },
  },
} as const;
