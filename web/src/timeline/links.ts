// SPDX-License-Identifier: Apache-2.0
// Arrows from the selected slice to what it launched, and from work to its launch: as curves over the tracks.
import type { Slice, SliceLink } from "../api";
import { GUTTER, LANE, xOf } from "./draw";
import type { Look, Row, View } from "./draw";

export interface End {
  x: number; // of the picture; may lie outside of it
  y: number;
}

export interface Arrow {
  from: End;
  to: End;
}

// Where a slice of a lane lies; of a lane that is folded away, the last one that is shown. Null: the track is not there.
function endOf(rows: Row[], view: View, track: number, lane: number, ns: number): End | null {
  const row = rows.find((candidate) => candidate.track.id === track);
  if (!row) return null;
  return { x: GUTTER + xOf(view, ns), y: row.top + Math.min(lane, row.lanes - 1) * LANE + LANE / 2 };
}

// In the direction of cause and effect: from the launch to its work, from the operator to its gradient.
export function arrowOf(slice: Slice, link: SliceLink, rows: Row[], view: View): Arrow | null {
  const near = endOf(rows, view, slice.track, link.from_lane, link.from_ns);
  const far = endOf(rows, view, link.track, link.lane, link.start_ns);
  if (!near || !far) return null;
  return link.kind === "launched" || link.kind === "backward" ? { from: near, to: far } : { from: far, to: near };
}

const HEAD = 6; // pixels

function drawArrow(context: CanvasRenderingContext2D, { from, to }: Arrow): void {
  const bend = Math.max(30, Math.min(Math.abs(to.x - from.x) / 2, 200));
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.bezierCurveTo(from.x + bend, from.y, to.x - bend, to.y, to.x - 2, to.y);
  context.stroke();
  context.beginPath();
  context.moveTo(to.x, to.y);
  context.lineTo(to.x - HEAD, to.y - HEAD / 2);
  context.lineTo(to.x - HEAD, to.y + HEAD / 2);
  context.fill();
}

export function drawLinks(context: CanvasRenderingContext2D, slice: Slice, rows: Row[], view: View, look: Look): void {
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, view.width, 1e6);
  context.clip();
  context.strokeStyle = context.fillStyle = look.isDark ? "#ffb86b" : "#b4540a";
  context.lineWidth = 1.5;
  for (const link of slice.links) {
    const arrow = arrowOf(slice, link, rows, view);
    if (arrow) drawArrow(context, arrow);
  }
  context.restore();
}
