// SPDX-License-Identifier: Apache-2.0
// One counter over time on a canvas: the line of its last values, the spread of each column, what is shaded, the selection.
import type { CounterColumns } from "../timeline/tile";

export const GRAPH_HEIGHT = 88;
const TOP = 6;

export interface Band {
  fromNs: number;
  toNs: number;
  kind: number; // which of the colours
  name: string;
}

export interface GraphLook {
  fromNs: number;
  toNs: number;
  width: number;
  top: number; // the largest value that fits
  isDark: boolean;
  bands: Band[];
  selected: [number, number] | null; // ns
  cursor: number | null; // ns
}

const BANDS = { light: ["#e9eef6", "#f6efe4", "#e9f3e8"], dark: ["#1d2735", "#2d261b", "#1c2a1d"] };

const xOf = ({ fromNs, toNs, width }: GraphLook, ns: number) => ((ns - fromNs) / (toNs - fromNs)) * width;

function drawBands(context: CanvasRenderingContext2D, look: GraphLook): void {
  const colours = look.isDark ? BANDS.dark : BANDS.light;
  for (const { fromNs, toNs, kind } of look.bands) {
    if (toNs < look.fromNs || fromNs > look.toNs) continue;
    const x = Math.max(0, xOf(look, fromNs));
    context.fillStyle = colours[kind % colours.length]!;
    context.fillRect(x, 0, Math.max(1, Math.min(look.width, xOf(look, toNs)) - x), GRAPH_HEIGHT);
  }
}

export function drawGraph(context: CanvasRenderingContext2D, tile: CounterColumns | null, look: GraphLook): void {
  context.clearRect(0, 0, look.width, GRAPH_HEIGHT);
  drawBands(context, look);
  if (look.selected) {
    const [from, to] = look.selected.map((ns) => xOf(look, ns)) as [number, number];
    context.fillStyle = look.isDark ? "#7fb8f040" : "#0b62b830";
    context.fillRect(from, 0, Math.max(1, to - from), GRAPH_HEIGHT);
  }
  const yOf = (value: number) => TOP + (GRAPH_HEIGHT - TOP - 1) * (1 - Math.max(0, value) / look.top);
  context.strokeStyle = context.fillStyle = look.isDark ? "#7fb8f0" : "#0b62b8";
  context.lineWidth = 1.2;
  context.beginPath();
  for (let i = 0; tile && i < tile.count; i++) {
    const x = Math.max(0, xOf(look, tile.start[i]!));
    const next = Math.min(look.width, i + 1 < tile.count ? xOf(look, tile.start[i + 1]!) : look.width);
    if (tile.maximum[i]! > tile.minimum[i]!) context.fillRect(x, yOf(tile.maximum[i]!), 1, yOf(tile.minimum[i]!) - yOf(tile.maximum[i]!));
    if (i) context.lineTo(x, yOf(tile.last[i]!));
    else context.moveTo(x, yOf(tile.last[i]!));
    context.lineTo(Math.max(x, next), yOf(tile.last[i]!));
  }
  context.stroke();
  if (look.cursor === null) return;
  context.fillStyle = look.isDark ? "#e8ebf0" : "#15191f";
  context.fillRect(Math.round(xOf(look, look.cursor)), 0, 1, GRAPH_HEIGHT);
}

// The value at a time: that of the last column that begins before it. Null: it had none yet.
export function valueAt(tile: CounterColumns, ns: number): number | null {
  let low = 0;
  let high = tile.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tile.start[middle]! <= ns) low = middle + 1;
    else high = middle;
  }
  return low ? tile.last[low - 1]! : null;
}

// What fits above all values: 1, 2 or 5 times a power of ten.
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= value * 0.9999)!;
}
