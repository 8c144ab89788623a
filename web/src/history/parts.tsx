// SPDX-License-Identifier: Apache-2.0
// What the views of the history share.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { formatCell } from "../format";
import type { Cell, Column, Kind } from "../report";
import { go } from "../router";
import type { Place } from "../router";
import { SectionView } from "../views/section";
import type { Choice } from "./source";
import type { Figure, Run, Shown } from "./types";

export const FIGURES: Record<Figure, { title: string; kind: Kind; digits?: number }> = {
  duration_ns: { title: "Duration", kind: "ns" },
  tokens_per_s: { title: "Tokens/s", kind: "number", digits: 4 },
  ttft_p50_ns: { title: "Time to first token, median", kind: "ns" },
  tpot_p50_ns: { title: "Time per token, median", kind: "ns" },
  itl_p50_ns: { title: "Between tokens, median", kind: "ns" },
  e2e_p50_ns: { title: "Request, median", kind: "ns" },
  step_p50_ns: { title: "Step, median", kind: "ns" },
  energy_j: { title: "Energy", kind: "joules" },
  average_w: { title: "Power", kind: "watts" },
  joules_per_token: { title: "J/token", kind: "number", digits: 4 },
  batch_size: { title: "Batch size", kind: "number" },
  context_length: { title: "Context length", kind: "number" },
  parameters: { title: "Parameters", kind: "number" },
  gpu_busy_share: { title: "GPU busy", kind: "share" },
  samples: { title: "Samples", kind: "count" },
  lost_samples: { title: "Lost samples", kind: "count" },
};

export const titleOf = (figure: string) => FIGURES[figure as Figure]?.title ?? figure.replace(/_/g, " ");
export const kindOf = (figure: string): Kind => FIGURES[figure as Figure]?.kind ?? (figure.endsWith("_ns") ? "ns" : "number");

export function showFigure(figure: Figure, value: Cell): string {
  const column: Column = { key: figure, ...FIGURES[figure] };
  return value === null ? "" : formatCell(value, column);
}

// "2026-11-23 21:05", of this machine's clock.
export function showTime(ns: number | null): string {
  if (ns === null) return "";
  const time = new Date(ns / 1e6);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

export const shortOf = (id: string) => id.slice(0, 8);
export const fileOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const nameOf = (run: Run) => `${shortOf(run.id)} ${fileOf(run.path)}`;
export const placeOfRun = (id: string) => ({ view: "history", what: `run/${id}`, query: {} });

export function ShownView({ shown, name }: { shown: Shown; name: string }) {
  return <SectionView section={{ ...shown, key: name, by: null, title: null, summary: name, advice: [] }} />;
}

const FIELDS: [keyof Choice, string, string][] = [
  ["search", "Search", "in path, command, notes, model"],
  ["model", "Model", "name, * for anything"],
  ["experiment", "Experiment", "name, * for anything"],
  ["tag", "Tags", "one, or several with commas"],
  ["commit", "Commit", "id, * for anything"],
  ["engine", "Engine", "such as vllm"],
  ["since", "Since", "2026-11-23, or 7d"],
  ["until", "Until", "2026-11-23"],
];

export function choiceOf(place: Place): Choice {
  return Object.fromEntries(FIELDS.flatMap(([key]) => (place.query[key] ? [[key, place.query[key]!]] : [])));
}

export function ChoiceForm({ place }: { place: Place }) {
  const change = (key: string, value: string) => go({ ...place, query: { ...place.query, [key]: value, offset: "" } });
  return (
    <form class="filters" aria-label="Which runs" onSubmit={(event) => event.preventDefault()}>
      {FIELDS.map(([key, title, hint]) => (
        <label key={key}>{title} <input value={place.query[key] ?? ""} placeholder={hint} title={hint} onChange={(event) => change(key, event.currentTarget.value)} /></label>
      ))}
      {Object.keys(choiceOf(place)).length > 0 && <button type="button" onClick={() => go({ ...place, query: {} })}>Clear</button>}
    </form>
  );
}

// Something that is done once it was asked twice, and what came of it.
export function useAction(): { isBusy: boolean; failure: string; run: (action: () => Promise<void>) => void } {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const run = (action: () => Promise<void>) => {
    setBusy(true);
    setFailure("");
    action()
      .catch((error: unknown) => setFailure(error instanceof Error ? error.message : String(error)))
      .finally(() => setBusy(false));
  };
  return { isBusy, failure, run };
}

export function Failure({ text }: { text: string }) {
  return text ? <p class="failure" role="alert">{text}</p> : null;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
