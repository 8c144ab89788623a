// SPDX-License-Identifier: Apache-2.0
// What the chart of power draws: the rails of a capture between two times, in columns that all rails share.
import type { LiveRail } from "../api";
import type { Cell, Column, Table } from "../report";
import { Columns, columnMsOf } from "./history";
import type { LiveCapture } from "./state";

export interface Span {
  fromMs: number;
  toMs: number;
}

export interface PowerPicture extends Span {
  columnMs: number;
  times: number[]; // s, the middle of each column
  rails: { rail: LiveRail; columns: Columns }[];
}

export const LENGTHS: [string, number][] = [["30 s", 30_000], ["2 min", 120_000], ["10 min", 600_000], ["1 h", 3_600_000], ["all", 0]];
const SHORTEST_MS = 1000;
const FIRST_MS = 20_000;

export function nameOf(rail: LiveRail): string {
  return [rail.name ?? `rail ${rail.rail}`, rail.device].filter((part) => part && part !== rail.name).join(" ") || rail.name || `rail ${rail.rail}`;
}

// The last `lengthMs`; 0: all there is. A recording that is shorter fills a scale that grows by steps.
export function latestSpan(nowMs: number, lengthMs: number): Span {
  if (lengthMs && nowMs >= lengthMs) return { fromMs: nowMs - lengthMs, toMs: nowMs };
  let toMs = FIRST_MS;
  while (toMs < nowMs) toMs *= 1.5;
  return { fromMs: 0, toMs: Math.min(toMs, lengthMs || Infinity) };
}

export function movedSpan({ fromMs, toMs }: Span, nowMs: number, factor: number, shift: number): Span {
  const length = Math.max((toMs - fromMs) * factor, SHORTEST_MS);
  const middle = (fromMs + toMs) / 2 + (toMs - fromMs) * shift;
  const from = Math.max(0, Math.min(middle - length / 2, nowMs - length / 2));
  return { fromMs: from, toMs: from + length };
}

export function pictureOf(live: LiveCapture, of: LiveRail[], { fromMs, toMs }: Span, width: number): PowerPicture {
  const columnMs = columnMsOf(fromMs, toMs, width);
  const first = Math.floor(fromMs / columnMs);
  const count = Math.floor(toMs / columnMs) - first + 1;
  const times = Array.from({ length: count }, (_, at) => ((first + at + 0.5) * columnMs) / 1000);
  const rails = of.map((rail) => ({ rail, columns: live.rails.get(rail.rail)?.read(fromMs, toMs, columnMs) ?? new Columns(count) }));
  return { fromMs, toMs, columnMs, times, rails };
}

// As uPlot takes it: the times, then of each rail its mean, its maximum and its minimum.
export function dataOf({ times, rails }: PowerPicture): (number | null)[][] {
  const known = (columns: Columns, values: Float32Array) => times.map((_, at) => (columns.weight[at] ? values[at]! : null));
  return [times, ...rails.flatMap(({ columns }) => [times.map((_, at) => columns.mean(at)), known(columns, columns.high), known(columns, columns.low)])];
}

// The end of the scale: 1, 2, 3, 5 or 8 and zeros, so that it does not move with every reading.
export function roundUp(watts: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(watts, 1e-3)));
  return ([1, 2, 3, 5, 8, 10].find((step) => step * power >= watts) ?? 10) * power;
}

export function highestOf(picture: PowerPicture, isHidden: (rail: number) => boolean): number {
  let highest = 0;
  for (const { rail, columns } of picture.rails) {
    if (isHidden(rail.rail)) continue;
    for (let at = 0; at < columns.high.length; at++) if (columns.weight[at]) highest = Math.max(highest, columns.high[at]!);
  }
  return roundUp(highest * 1.05);
}

export interface Reading {
  mean: number;
  low: number;
  high: number;
}

export function readingAt(picture: PowerPicture, columns: Columns, ms: number): Reading | null {
  const at = Math.floor(ms / picture.columnMs) - Math.floor(picture.fromMs / picture.columnMs);
  const mean = at >= 0 && at < columns.weight.length ? columns.mean(at) : null;
  return mean === null ? null : { mean, low: columns.low[at]!, high: columns.high[at]! };
}

export function tableOf(picture: PowerPicture): Table {
  const watts = (rail: LiveRail, what: string): Column => ({ key: `${nameOf(rail)}_${what}_w`, title: what, kind: "watts" });
  const columns: Column[] = [
    { key: "from_ms", title: "From", kind: "number" },
    { key: "to_ms", title: "To", kind: "number" },
    ...picture.rails.flatMap(({ rail }) => [watts(rail, "mean"), watts(rail, "min"), watts(rail, "max")]),
  ];
  const origin = Math.floor(picture.fromMs / picture.columnMs);
  const rows: Cell[][] = picture.times.map((_, at) => [
    (origin + at) * picture.columnMs, (origin + at + 1) * picture.columnMs,
    ...picture.rails.flatMap(({ columns: of }) => (of.weight[at] ? [of.mean(at), of.low[at]!, of.high[at]!] : [null, null, null])),
  ]);
  return { key: "power", left_out: 0, columns, rows };
}

export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  return hours ? `${hours}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}` : `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
}
