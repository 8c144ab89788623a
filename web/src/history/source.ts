// SPDX-License-Identifier: Apache-2.0
// The runs database behind the page: /api/runs of schema/api.json.
import { addressOf, ask, send } from "../http";
import type { Analyses, Comparison, Regressions, Removed, RunDocument, RunList, Shown, Stats } from "./types";

export type Choice = Partial<Record<"model" | "experiment" | "engine" | "commit" | "search" | "tag" | "since" | "until", string>>;

export interface Edit {
  tags: string[];
  notes: string;
  experiment: string;
}

export const PAGE_RUNS = 50;

const quiet = () => {};

// "a, b": each by itself; the server wants one parameter for each.
const tagsOf = (text: string | undefined) => (text ?? "").split(",").map((tag) => tag.trim()).filter(Boolean);
const choiceOf = (choice: Choice) => ({ ...choice, tag: tagsOf(choice.tag) });

export interface Order {
  order: string;
  reverse: boolean;
  offset: number;
}

const listed = ({ order, reverse, offset }: Order) => ({ order, reverse: reverse || null, offset: offset || null, limit: PAGE_RUNS });

export const history = {
  list: (choice: Choice, order: Order) => ask<RunList>(addressOf("list_runs", { ...choiceOf(choice), ...listed(order) }), quiet),
  listCsv: (choice: Choice, order: Order) => addressOf("list_runs", { ...choiceOf(choice), ...listed(order), format: "csv" }),
  exported: (choice: Choice) => addressOf("export_runs", choiceOf(choice)),
  run: (run: string) => ask<RunDocument>(addressOf("get_run", { run }), quiet),
  shown: (run: string, section: string) => ask<Shown>(addressOf("get_run", { run, section, format: "page" }), quiet),
  capture: (run: string) => ask<{ id: string; name: string }>(addressOf("get_run_capture", { run }), quiet),
  compare: (run: string[]) => ask<Comparison>(addressOf("compare_runs", { run }), quiet),
  compared: (run: string[]) => ask<Shown>(addressOf("compare_runs", { run, format: "page" }), quiet),
  analyse: (choice: Choice, labels: string) => ask<Analyses>(analysis(choice, labels), quiet),
  analysed: (choice: Choice, labels: string) => ask<Shown>(analysis(choice, labels, "page"), quiet),
  regressions: (experiment: string, threshold: string) => ask<Regressions>(addressOf("get_regressions", { experiment, threshold }), quiet),
  regressed: (experiment: string, threshold: string) => ask<Shown>(addressOf("get_regressions", { experiment, threshold, format: "page" }), quiet),
  stats: () => ask<Stats>(addressOf("get_runs_stats", {}), quiet),
  edit: (run: string, edit: Edit) => send<RunDocument>("edit_run", { run }, edit),
  remove: (run: string) => send<Removed>("delete_run", { run }),
  retain: (keep: number | undefined, days: number | undefined, isDone: boolean) =>
    send<Removed>("retain_runs", {}, { ...(keep && { keep }), ...(days && { max_age_days: days }), dry_run: !isDone }),
  importFile: (file: Blob) => send<{ added: number; known: number }>("import_runs", {}, file),
};

function analysis(choice: Choice, labels: string, format: string | null = null): string {
  return labels
    ? addressOf("predict_run", { ...choiceOf(choice), labels, format })
    : addressOf("analyse_runs", { ...choiceOf(choice), format });
}
