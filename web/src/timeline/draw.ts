// SPDX-License-Identifier: Apache-2.0
// Tracks below each other on one canvas: which rows they take, what is drawn in them, and what is at a place.
import { hueOf } from "../flame/draw";
import { formatCell } from "../format";
import type { TileCache, Placed } from "./cache";
import { levelOf } from "./cache";
import type { Track } from "./source";
import type { CounterColumns, Slices } from "./tile";

export const LANE = 16;
export const GUTTER = 210; // pixels, for the names of tracks
export const RULER = 26;
const COUNTER_ROW = 44;
const TRACK_GAP = 8;
const LANES_SHOWN = 12; // of a track that is not opened

export interface Row {
  track: Track;
  top: number;
  height: number;
  lanes: number; // that are shown
  isHead: boolean; // the first of its process
}

export interface View {
  fromNs: number;
  toNs: number;
  width: number; // of the picture, beside the gutter
}

export interface Hit {
  track: Track;
  name: string;
  startNs: number;
  durationNs: number;
  merged: number;
  busyNs: number;
  lane: number;
}

const ownerOf = (track: Track) => `${track.rank}/${track.pid}/${track.process}`;

// Programs first, then devices, then what belongs to neither: counters, and rows that a trace has of itself.
function inOrder(tracks: Track[]): Track[] {
  const ranks = new Map<string, number>();
  for (const track of tracks) {
    const rank = track.tid !== null ? 0 : track.kind === "stream" ? 1 : 2;
    ranks.set(ownerOf(track), Math.min(rank, ranks.get(ownerOf(track)) ?? 2));
  }
  return [...tracks].sort((a, b) => ranks.get(ownerOf(a))! - ranks.get(ownerOf(b))!);
}

export function rowsOf(tracks: Track[], opened: Set<number>): Row[] {
  let top = RULER;
  let process: string | undefined;
  return inOrder(tracks).map((track) => {
    const owner = ownerOf(track);
    const isHead = owner !== process;
    process = owner;
    top += isHead ? 22 : 0;
    const lanes = track.kind === "counter" ? 1 : Math.max(1, opened.has(track.id) ? track.lanes : Math.min(track.lanes, LANES_SHOWN));
    const height = track.kind === "counter" ? COUNTER_ROW : lanes * LANE;
    const row = { track, top, height, lanes, isHead };
    top += height + TRACK_GAP;
    return row;
  });
}

export const heightOf = (rows: Row[]) => (rows.length ? rows.at(-1)!.top + rows.at(-1)!.height + TRACK_GAP : RULER);

export const xOf = (view: View, ns: number) => ((ns - view.fromNs) / (view.toNs - view.fromNs)) * view.width;

export interface Look {
  isDark: boolean;
  selected: { track: number; lane: number; atNs: number; durationNs: number } | null;
}

interface Pen {
  context: CanvasRenderingContext2D;
  cache: TileCache;
  view: View;
  look: Look;
}

const ink = (look: Look) => (look.isDark ? "#e8ebf0" : "#15191f");
const faint = (look: Look) => (look.isDark ? "#a0abb8" : "#59636f");

// Slices may reach over the edges of tiles: each tile draws what is inside of it.
function drawSlices({ context, cache, view, look }: Pen, row: Row, { fromNs, toNs }: Placed, tile: Slices): void {
  for (let i = 0; i < tile.count; i++) {
    const start = Math.max(tile.start[i]!, fromNs, view.fromNs);
    const end = Math.min(tile.start[i]! + tile.duration[i]!, toNs, view.toNs);
    if (end < start || tile.lane[i]! >= row.lanes) continue;
    const x = GUTTER + xOf(view, start);
    const width = Math.max(0.6, ((end - start) / (view.toNs - view.fromNs)) * view.width);
    const y = row.top + tile.lane[i]! * LANE;
    const name = width > 3 || tile.merged[i] === 1 ? cache.name(tile.name[i]!) : "";
    const hue = hueOf(name);
    const isMany = tile.merged[i]! > 1;
    context.globalAlpha = isMany ? 0.35 + 0.65 * Math.min(1, tile.busy[i]! / Math.max(tile.duration[i]!, 1)) : 1;
    context.fillStyle = hue === null ? (look.isDark ? "#4a5462" : "#b9c2cd") : look.isDark ? `hsl(${hue} 40% 36%)` : `hsl(${hue} 58% 70%)`;
    context.fillRect(x, y, width, LANE - 2);
    context.globalAlpha = 1;
    if (width < 30 || isMany || !name) continue;
    context.save();
    context.beginPath();
    context.rect(x, y, width - 2, LANE);
    context.clip();
    context.fillStyle = ink(look);
    context.fillText(name, x + 3, y + LANE / 2 - 0.5);
    context.restore();
  }
}

function drawCounter({ context, view, look }: Pen, row: Row, { fromNs, toNs }: Placed, tile: CounterColumns): void {
  const low = Math.min(0, row.track.minimum ?? 0);
  const high = Math.max(row.track.maximum ?? 1, low + 1e-12);
  const yOf = (value: number) => row.top + (row.height - 2) * (1 - (value - low) / (high - low));
  context.strokeStyle = context.fillStyle = look.isDark ? "#7fb8f0" : "#0b62b8";
  context.lineWidth = 1;
  context.beginPath();
  for (let i = 0; i < tile.count; i++) {
    const x = GUTTER + xOf(view, Math.max(tile.start[i]!, fromNs, view.fromNs));
    const next = GUTTER + xOf(view, Math.min(i + 1 < tile.count ? tile.start[i + 1]! : toNs, toNs, view.toNs));
    if (next < x) continue;
    context.fillRect(x, yOf(tile.maximum[i]!), 1, Math.max(1, yOf(tile.minimum[i]!) - yOf(tile.maximum[i]!)));
    if (i) context.lineTo(x, yOf(tile.last[i]!));
    else context.moveTo(x, yOf(tile.last[i]!));
    context.lineTo(next, yOf(tile.last[i]!));
  }
  context.stroke();
}

// Steps of 1, 2 or 5: about one for each hundred pixels.
export function ticks(view: View): number[] {
  const wanted = ((view.toNs - view.fromNs) * 110) / Math.max(view.width, 1);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted)!);
  const found = [];
  for (let at = Math.ceil(view.fromNs / step) * step; at <= view.toNs; at += step) found.push(at);
  return found;
}

const NS = { key: null, title: "", kind: "ns" as const };
export const formatNs = (ns: number) => formatCell(Math.round(ns), NS);

// A place in time, as fine as `stepNs` needs; in the unit that suits `endNs`.
export function formatPlace(ns: number, stepNs: number, endNs: number): string {
  const [unit, name] = endNs >= 1e9 ? [1e9, "s"] : endNs >= 1e6 ? [1e6, "ms"] : endNs >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${(ns / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / Math.max(stepNs, 1)) - 1e-9))))} ${name}`;
}

function drawGrid({ context, view, look }: Pen, [from, to]: [number, number]): void {
  context.strokeStyle = look.isDark ? "#323a45" : "#d9dee5";
  context.beginPath();
  for (const tick of ticks(view)) {
    const x = Math.round(GUTTER + xOf(view, tick)) + 0.5;
    context.moveTo(x, from);
    context.lineTo(x, to);
  }
  context.stroke();
}

// Over all tracks, at the top of what is scrolled into view.
export function drawRuler(context: CanvasRenderingContext2D, view: View, look: Look, top: number): void {
  const shown = ticks(view);
  const step = shown.length > 1 ? shown[1]! - shown[0]! : view.toNs - view.fromNs;
  context.fillStyle = look.isDark ? "#14171c" : "#ffffff";
  context.fillRect(0, top, GUTTER + view.width, RULER - 6);
  context.fillStyle = faint(look);
  context.font = "12px system-ui, sans-serif";
  for (const tick of shown) context.fillText(formatPlace(tick, step, view.toNs), Math.round(GUTTER + xOf(view, tick)) + 3.5, top + 11);
}

function drawName({ context, look }: Pen, row: Row): void {
  const { track } = row;
  context.fillStyle = ink(look);
  if (row.isHead) {
    context.font = "600 12px system-ui, sans-serif";
    context.fillText([track.process ?? "", track.tid === null ? "" : track.pid ?? "", track.rank === null ? "" : `rank ${track.rank}`].filter(Boolean).join(" "), 4, row.top - 10);
  }
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = faint(look);
  context.save();
  context.beginPath();
  context.rect(0, row.top, GUTTER - 8, Math.max(row.height, LANE));
  context.clip();
  context.fillText(track.kind === "python" || track.kind === "samples" ? `${track.name} (${track.kind})` : track.name, 10, row.top + 8);
  if (row.lanes < track.lanes && row.height > 2 * LANE) context.fillText(`${track.lanes - row.lanes} deeper: click`, 10, row.top + 8 + LANE);
  context.restore();
}

// What is above the scrolled part and below it is not drawn, and its tiles are not asked for.
export function draw(context: CanvasRenderingContext2D, cache: TileCache, rows: Row[], view: View, look: Look, visible: [number, number]): void {
  const pen = { context, cache, view, look };
  context.textBaseline = "middle";
  context.font = "12px system-ui, sans-serif";
  context.clearRect(0, visible[0], GUTTER + view.width, visible[1] - visible[0]);
  drawGrid(pen, visible);
  const level = levelOf((view.toNs - view.fromNs) / Math.max(view.width, 1));
  cache.begin();
  for (const row of rows) {
    if (row.top + row.height < visible[0] || row.top - 22 > visible[1]) continue;
    drawName(pen, row);
    for (const placed of cache.find(row.track.id, level, view.fromNs, view.toNs)) {
      if (placed.tile.kind === "slices") drawSlices(pen, row, placed, placed.tile);
      else drawCounter(pen, row, placed, placed.tile);
    }
  }
  drawSelected(pen, rows);
}

function drawSelected({ context, view, look }: Pen, rows: Row[]): void {
  const { selected } = look;
  const row = rows.find((candidate) => candidate.track.id === selected?.track);
  if (!selected || !row || selected.lane >= row.lanes) return;
  const x = GUTTER + Math.max(0, xOf(view, selected.atNs));
  const end = GUTTER + Math.min(view.width, xOf(view, selected.atNs + selected.durationNs));
  if (end < x) return;
  context.strokeStyle = ink(look);
  context.lineWidth = 2;
  context.strokeRect(x, row.top + selected.lane * LANE, Math.max(end - x, 2), LANE - 2);
}

// The slice at a place; null: there is none.
export function hitAt(cache: TileCache, rows: Row[], view: View, x: number, y: number): Hit | null {
  const row = rows.find((candidate) => y >= candidate.top && y < candidate.top + candidate.height);
  if (!row || x < GUTTER || row.track.kind === "counter") return null;
  const lane = Math.floor((y - row.top) / LANE);
  const nsPerPixel = (view.toNs - view.fromNs) / Math.max(view.width, 1);
  const at = view.fromNs + (x - GUTTER) * nsPerPixel;
  for (const { tile } of cache.find(row.track.id, levelOf(nsPerPixel), at, at + 1)) {
    if (tile.kind !== "slices") continue;
    for (let i = 0; i < tile.count; i++) {
      const start = tile.start[i]!;
      if (tile.lane[i] !== lane || at < start - nsPerPixel || at > start + Math.max(tile.duration[i]!, nsPerPixel)) continue;
      return { track: row.track, lane, name: cache.name(tile.name[i]!), startNs: start, durationNs: tile.duration[i]!, merged: tile.merged[i]!, busyNs: tile.busy[i]! };
    }
  }
  return null;
}

// The first slice by itself that begins in view, of the first track below `top` that has one; null: there is none.
export function firstIn(cache: TileCache, rows: Row[], view: View, top: number): { track: number; lane: number; atNs: number } | null {
  const level = levelOf((view.toNs - view.fromNs) / Math.max(view.width, 1));
  for (const row of rows) {
    if (row.top + row.height < top || row.track.kind === "counter") continue;
    for (const { tile } of cache.find(row.track.id, level, view.fromNs, view.toNs)) {
      if (tile.kind !== "slices") continue;
      for (let i = 0; i < tile.count; i++) {
        if (tile.merged[i] === 1 && tile.start[i]! >= view.fromNs && tile.start[i]! < view.toNs) return { track: row.track.id, lane: tile.lane[i]!, atNs: tile.start[i]! };
      }
    }
  }
  return null;
}
