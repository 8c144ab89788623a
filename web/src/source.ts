// SPDX-License-Identifier: Apache-2.0
// Where the page's data comes from: a server, or what was written into the page itself.
import type { Command, Job, LiveHistory } from "./api";
import type { CallTree, Report } from "./report";
import type { TimelineSource } from "./timeline/source";

// What leaves something out of a report or a call tree: keys and values of the command line's filters.
export type Filters = Record<string, string>;

export const WEIGHTS = ["cpu", "wait", "wall", "gpu", "gpu-idle", "gpu-bytes", "cpu+gpu", "energy"];
export const FILTERS: [string, string][] = [
  ["process", "pid, or pattern of names"],
  ["thread", "tid, or pattern of names"],
  ["symbol", "pattern of a function in the stack"],
  ["time", "START..END in seconds"],
  ["step", "number, or first-last"],
  ["range", "pattern of NVTX ranges"],
  ["window", "windows, such as 1,3-5"],
];

export interface CaptureSource {
  id: string;
  name: string;
  weights: string[]; // of call trees
  filters: boolean; // are they understood?
  fileHref: string | null; // where the capture itself is
  sizeBytes: number | null; // of that file
  report(by: string | null, filters: Filters, progress: Progress, limit?: number): Promise<Report>; // limit: rows of each table
  figures(by: string, filters: Filters, progress: Progress): Promise<Figures>; // a section as report --json has it
  has(by: string): boolean; // may it have figures of this section?
  tree(weight: string, filters: Filters, progress: Progress): Promise<CallTree>;
  difference: ((after: string, weight: string, filters: Filters, progress: Progress) => Promise<CallTree>) | null;
  timeline: TimelineSource | null;
  // In another tool's format, as sonde export writes it; null: this page cannot.
  export: ((format: string, weight: string | null, filters: Filters, progress: Progress) => Promise<Export>) | null;
  // The picture of a section as an SVG; null: this page has none of it.
  plot: (format: string, filters: Filters, progress: Progress) => Promise<Blob | null>;
  speedscopeHref: ((weight: string, filters: Filters) => string) | null; // speedscope's app, with this profile
  modifiedMs: (() => Promise<number>) | null; // when it was written to; null: it does not change
  answerMs: () => number; // how long the last answer took
}

export interface Export {
  name: string; // to save it as
  content: Blob;
}

// Recordings that the server starts, and those that it is part of.
export interface Controls {
  commands(): Promise<Command[]>;
  jobs(): Promise<Job[]>; // the latest first
  start(command: string, parameters: Record<string, string | number>): Promise<Job>;
  cancel(job: string): Promise<Job>;
  window(job: string, action: "open" | "close"): Promise<Job>;
}

export type Figures = Record<string, unknown>;

export interface Source {
  isServed: boolean; // by a server that may end
  perfetto: string | null; // the address of the page that captures may be handed to
  history: { canChange: boolean } | null; // of runs; null: there is no database
  captures: { id: string; name: string; detail: string }[];
  capture(id: string): CaptureSource | null;
  controls: Controls | null; // null: nothing can be started from the page
  refresh: (() => Promise<Source>) | null; // with the captures that there are now
  liveHistory: ((capture: string) => Promise<LiveHistory>) | null; // what live messages said before; null: there are none
}

// Called while an answer is being made: what is done of all of it, 0 where that is not known.
export type Progress = (text: string) => void;

// What `sonde report --html` writes into the element sonde-data.
export interface Embedded {
  name: string;
  report: Report;
  trees: Record<string, Omit<CallTree, "weight">>; // by weight
  figures: Record<string, Figures>; // by section
  plots: Record<string, string>; // SVG, by format
}

// Those that say something: with weight, and with work of devices where they add that to another.
function weightsOf(trees: Embedded["trees"]): string[] {
  const totalOf = (weight: string) => trees[weight]?.totals[0] ?? 0;
  return Object.keys(trees).filter((weight) => totalOf(weight) > 0 && (weight !== "cpu+gpu" || totalOf(weight) !== totalOf("cpu")));
}

export function embeddedSource(data: Embedded): Source {
  const capture: CaptureSource = {
    id: "",
    name: data.name,
    weights: weightsOf(data.trees),
    filters: false,
    fileHref: null,
    sizeBytes: null,
    report: async () => data.report,
    figures: async (by) => data.figures[by] ?? {},
    has: (by) => by in data.figures,
    tree: async (weight) => {
      const tree = data.trees[weight];
      if (!tree) throw new Error(`This file has no flame graph by ${weight}: choose another.`);
      return { ...tree, weight };
    },
    difference: null,
    timeline: null,
    export: null,
    plot: async (format) => (format in data.plots ? new Blob([data.plots[format]!], { type: "image/svg+xml" }) : null),
    speedscopeHref: null,
    modifiedMs: null,
    answerMs: () => 0,
  };
  return { isServed: false, perfetto: null, history: null, captures: [{ id: "", name: data.name, detail: "" }], capture: () => capture, controls: null, refresh: null, liveHistory: null };
}
