// SPDX-License-Identifier: Apache-2.0
// Where boxes of a flame graph lie in a picture of some width, and drawing them on a canvas or as SVG.
import type { Graph } from "./graph";
import { changeOf, pathTo } from "./graph";
import { fillOf, hashOf } from "./colours";

export const ROW = 19;
const SMALLEST = 0.4; // pixels: narrower boxes are not drawn

export interface Box {
  node: number;
  x: number;
  width: number;
  row: number;
  isAbove: boolean; // of what is zoomed into
}

export interface Picture {
  boxes: Box[];
  rows: number;
  width: number;
}

// `isUpward`: what is called stands above its caller, as in the first flame graphs; else below, as icicles hang.
export function layout(graph: Graph, zoomed: number, width: number, isUpward = false): Picture {
  const { weight } = graph;
  const above = pathTo(graph.tree, zoomed).slice(0, -1);
  const boxes: Box[] = above.map((node, row) => ({ node, x: 0, width, row, isAbove: true }));
  const scale = weight[zoomed] ? width / weight[zoomed]! : 0;
  let rows = above.length + 1;
  const stack = [zoomed];
  while (stack.length) {
    const node = stack.pop()!;
    const box = {
      node,
      x: (graph.start[node]! - graph.start[zoomed]!) * scale,
      width: weight[node]! * scale,
      row: graph.depth[node]!,
      isAbove: false,
    };
    if (box.width < SMALLEST) continue;
    boxes.push(box);
    rows = Math.max(rows, box.row + 1);
    stack.push(...graph.children[node]!);
  }
  if (isUpward) for (const box of boxes) box.row = rows - 1 - box.row;
  return { boxes, rows, width };
}

export function boxAt(picture: Picture, x: number, row: number): Box | null {
  return picture.boxes.find((box) => box.row === row && x >= box.x && x < box.x + box.width) ?? null;
}

// The same name always looks the same; what has none is grey.
export const hueOf = (name: string): number | null => (name ? hashOf(name) % 360 : null);

// Of a diff: blue is less after, red more, by the square root so that small changes are seen.
function changeFill(graph: Graph, node: number, isDark: boolean): string {
  const change = changeOf(graph, node);
  const strength = Math.min(1, Math.sqrt(Math.abs(change) / 0.2));
  if (Math.abs(change) < 0.0005) return isDark ? "#3b424d" : "#e6e9ee";
  return isDark ? `hsl(${change > 0 ? 4 : 212} ${30 + 35 * strength}% ${28 + 10 * strength}%)` : `hsl(${change > 0 ? 4 : 212} 75% ${92 - 28 * strength}%)`;
}

function boxFill(graph: Graph, node: number, isDark: boolean): string {
  const of = graph.tree.label[node]!;
  return graph.isDiff ? changeFill(graph, node, isDark) : fillOf(graph.tree, of, isDark);
}

export interface Look {
  isDark: boolean;
  found: Set<number> | null; // labels that a search found
  focus: number | null;
}

export function draw(context: CanvasRenderingContext2D, graph: Graph, picture: Picture, look: Look): void {
  const { label, names } = graph.tree;
  const text = look.isDark ? "#e8ebf0" : "#15191f";
  context.clearRect(0, 0, picture.width, picture.rows * ROW);
  context.textBaseline = "middle";
  context.font = "12px system-ui, sans-serif";
  for (const box of picture.boxes) {
    const of = label[box.node]!;
    const y = box.row * ROW;
    const isFound = look.found?.has(of);
    context.globalAlpha = box.isAbove || (look.found && !isFound) ? 0.45 : 1;
    context.fillStyle = isFound ? (look.isDark ? "#a03fb5" : "#e59bf2") : boxFill(graph, box.node, look.isDark);
    context.fillRect(box.x, y, Math.max(box.width - 0.5, 0.4), ROW - 1);
    if (box.node === look.focus) {
      context.globalAlpha = 1;
      context.strokeStyle = text;
      context.lineWidth = 2;
      context.strokeRect(box.x + 1, y + 1, Math.max(box.width - 2.5, 1), ROW - 3);
    }
    if (box.width < 28) continue;
    context.fillStyle = text;
    context.fillText(fit(context, names[of]!, box.width - 8), box.x + 4, y + ROW / 2);
  }
  context.globalAlpha = 1;
}

// As much as fits: a part as long as the width says, shorter until it does. Measuring is what takes the time.
export function fit(context: Pick<CanvasRenderingContext2D, "measureText">, text: string, width: number): string {
  const whole = context.measureText(text).width;
  if (whole <= width) return text;
  let length = Math.floor((text.length * width) / whole);
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return length > 0 ? `${text.slice(0, length)}…` : "";
}

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => escapes[c]!);

export function svgOf(graph: Graph, picture: Picture): string {
  const { names, modules } = graph.tree;
  const boxes = picture.boxes.map((box) => {
    const of = graph.tree.label[box.node]!;
    const columns = Math.floor((box.width - 8) / 7);
    const text = columns >= 3 ? `<text x="${(box.x + 4).toFixed(1)}" y="${box.row * ROW + 13}">${escaped(shortened(names[of]!, columns))}</text>` : "";
    return `<g><title>${escaped(`${names[of]} ${modules[of]}`)}</title><rect x="${box.x.toFixed(2)}" y="${box.row * ROW}" `
      + `width="${box.width.toFixed(2)}" height="${ROW - 1}" fill="${boxFill(graph, box.node, false)}"/>${text}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${picture.width}" height="${picture.rows * ROW}" `
    + `font-family="sans-serif" font-size="12">${boxes.join("")}</svg>`;
}

function shortened(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, columns - 1)}…`;
}
