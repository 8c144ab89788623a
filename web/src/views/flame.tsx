// SPDX-License-Identifier: Apache-2.0
// The flame graph on a canvas, the functions beside it, and a function's callers and callees (sandwich).
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ROW, boxAt, draw, layout, svgOf } from "../flame/draw";
import type { Picture } from "../flame/draw";
import { legendOf } from "../flame/colours";
import { addressOf, nodeOf } from "../flame/address";
import { callees, callers, costs, graphOf, search } from "../flame/graph";
import type { Cost, Graph } from "../flame/graph";
import { formatBytes, formatCell, formatCount, formatDuration, formatEnergy } from "../format";
import type { CallTree, Cell } from "../report";
import { go } from "../router";
import type { Place } from "../router";
import { csvOfRows, save } from "../save";
import { useDark } from "../theme";
import { useWidth } from "../width";

const SHARE = { key: null, title: "", kind: "share" as const };
const SIDES = [" before", " after"];
const FUNCTIONS = 200; // rows of the table

export function formatWeight(tree: CallTree, weight: number): string {
  if (tree.unit === "uj") return formatEnergy(weight / 1e6);
  if (tree.unit === "bytes") return formatBytes(weight);
  if (tree.unit === "ns") return formatDuration(weight);
  return `${formatCount(weight)} samples`;
}

const formatShare = (tree: CallTree, weight: number, side = 0) => formatCell(tree.totals[side] ? weight / tree.totals[side]! : 0, SHARE);

// "1.2 s, 12 %; self 3 ms", or of a diff both sides.
function figuresOf({ tree }: Graph, node: number): string {
  const sides = tree.total.map((side, at) => formatShare(tree, side[node]!, at));
  if (sides.length > 1) return `before ${sides[0]} → after ${sides[1]} (${formatWeight(tree, tree.total[0]![node]!)} → ${formatWeight(tree, tree.total[1]![node]!)})`;
  return `${formatWeight(tree, tree.total[0]![node]!)}, ${sides[0]}; self ${formatWeight(tree, tree.self[0]![node]!)}`;
}

function Legend({ graph }: { graph: Graph }) {
  const isDark = useDark();
  const entries: [string, string][] = graph.isDiff
    ? [["less after", isDark ? "hsl(212 65% 38%)" : "hsl(212 75% 64%)"], ["no change", isDark ? "#3b424d" : "#e6e9ee"], ["more after", isDark ? "hsl(4 65% 38%)" : "hsl(4 75% 64%)"]]
    : legendOf(graph.tree, isDark);
  return <ul class="legend" aria-label="Colours">{entries.map(([words, colour]) => <li key={words}><i style={{ background: colour }} />{words}</li>)}</ul>;
}

function nextFocus(graph: Graph, node: number, key: string): number {
  const parent = graph.tree.parent[node]!;
  const beside = parent >= 0 ? graph.children[parent]! : [node];
  const at = beside.indexOf(node);
  switch (key) {
    case "ArrowUp": return Math.max(parent, 0);
    case "ArrowDown": return graph.children[node]![0] ?? node;
    case "ArrowLeft": return beside[at - 1] ?? node;
    case "ArrowRight": return beside[at + 1] ?? node;
    default: return node;
  }
}

const FLIPPED: Record<string, string> = { ArrowUp: "ArrowDown", ArrowDown: "ArrowUp" };

interface GraphProps {
  graph: Graph;
  found: Set<number> | null;
  zoom: number;
  onZoom: (node: number) => void;
  onPick: (label: number) => void;
  name: string;
  isUpward?: boolean;
}

// Keys: arrows walk, Enter zooms, Escape zooms out, f shows the function by itself.
function FlameCanvas({ graph, found, zoom, onZoom, onPick, name, isUpward = false }: GraphProps) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [focus, setFocus] = useState<number | null>(null);
  const isDark = useDark();
  const picture: Picture = useMemo(() => layout(graph, zoom, width, isUpward), [graph, zoom, width, isUpward]);
  const { tree } = graph;

  useEffect(() => {
    const element = canvas.current!;
    const ratio = window.devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = picture.rows * ROW * ratio;
    const context = element.getContext("2d");
    if (!context || !width) return;
    context.scale(ratio, ratio);
    draw(context, graph, picture, { isDark, found, focus });
  }, [graph, picture, isDark, found, focus, width]);

  const nodeAt = (event: MouseEvent) => {
    const place = canvas.current!.getBoundingClientRect();
    return boxAt(picture, event.clientX - place.left, Math.floor((event.clientY - place.top) / ROW))?.node ?? null;
  };
  const press = (event: KeyboardEvent) => {
    const node = focus ?? zoom;
    if (event.key.startsWith("Arrow")) setFocus(nextFocus(graph, node, isUpward ? FLIPPED[event.key] ?? event.key : event.key));
    else if (event.key === "Enter") onZoom(node);
    else if (event.key === "Escape") onZoom(Math.max(tree.parent[zoom]!, 0));
    else if (event.key === "f" && node) onPick(tree.label[node]!);
    else return;
    event.preventDefault();
  };
  const label = focus === null ? null : tree.label[focus]!;
  return (
    <div ref={ref} class="flame">
      <p class="details" aria-live="polite">
        {label === null
          ? "Click zooms, Shift and click shows a function's callers; arrows, Enter, Escape and f do the same."
          : <><b>{tree.names[label]}</b> <span class="dim">{tree.modules[label]}</span> {figuresOf(graph, focus!)}</>}
      </p>
      <canvas
        ref={canvas} tabIndex={0} role="img" style={{ width: `${width}px`, height: `${picture.rows * ROW}px` }}
        aria-label={`${name}: ${figuresOf(graph, 0)}. The table of functions has the same figures.`}
        onMouseMove={(event) => setFocus(nodeAt(event))} onMouseLeave={() => setFocus(null)}
        onClick={(event) => {
          const node = nodeAt(event);
          if (node === null) return;
          if (event.shiftKey && node) onPick(tree.label[node]!);
          else onZoom(node);
        }}
        onKeyDown={press}
      />
      {tree.pruned.nodes > 0 && <p class="foot">{formatCount(tree.pruned.nodes)} frames are too small to be drawn.</p>}
      <p class="foot"><span class="save">
        <button type="button" onClick={() => save(`${name}.svg`, svgOf(graph, picture), "image/svg+xml")}>SVG</button>
        <button type="button" onClick={() => canvas.current!.toBlob((blob) => blob && save(`${name}.png`, blob))}>PNG</button>
      </span></p>
    </div>
  );
}

// For a file: of each side self and total, in the tree's unit.
export function tableOf({ tree }: Graph, rows: Cost[]): [string[], Cell[][]] {
  const sides = tree.paths.map((_, side) => (tree.paths.length > 1 ? SIDES[side]!.trim() : ""));
  const names = sides.flatMap((side) => ["self", "total"].map((what) => [what, side, tree.unit].filter(Boolean).join("_")));
  return [[...names, "function", "module"], rows.map(({ label, self, total }) => [...sides.flatMap((_, side) => [self[side]!, total[side]!]), tree.names[label]!, tree.modules[label]!])];
}

function Functions({ graph, onPick, found }: { graph: Graph; onPick: (label: number) => void; found: Set<number> | null }) {
  const { tree } = graph;
  const [made, setMade] = useState<{ of: Graph | null; rows: Cost[] }>({ of: null, rows: [] });
  // When the graph is painted: both at once would hold up the page.
  useEffect(() => {
    const timer = setTimeout(() => setMade({ of: graph, rows: costs(graph) }));
    return () => clearTimeout(timer);
  }, [graph]);
  const rows = made.of === graph ? made.rows.filter((row) => !found || found.has(row.label)) : [];
  return (
    <div class="table"><div class="scroll" tabIndex={0} role="region" aria-label="Functions">
      <table>
        <thead><tr>
          {tree.paths.map((path, side) => <><th class="right" title={path}>Self{graph.isDiff ? SIDES[side] : ""}</th><th class="right">%</th><th class="right">Total</th><th class="right">%</th></>)}
          <th>Function</th><th>Module</th>
        </tr></thead>
        <tbody>
          {rows.slice(0, FUNCTIONS).map((row) => (
            <tr key={row.label}>
              {tree.paths.map((_, side) => (
                <>
                  <td class="right">{formatWeight(tree, row.self[side]!)}</td><td class="right">{formatShare(tree, row.self[side]!, side)}</td>
                  <td class="right">{formatWeight(tree, row.total[side]!)}</td><td class="right">{formatShare(tree, row.total[side]!, side)}</td>
                </>
              ))}
              <td class="code"><button type="button" class="link" onClick={() => onPick(row.label)}>{tree.names[row.label]}</button></td>
              <td class="dim">{tree.modules[row.label]}</td>
            </tr>
          ))}
        </tbody>
      </table></div>
      <p class="foot">
        {rows.length > FUNCTIONS && <span>{formatCount(rows.length - FUNCTIONS)} more functions: search narrows them.</span>}
        <span class="save"><button type="button" onClick={() => save("functions.csv", csvOfRows(...tableOf(graph, rows)), "text/csv")}>CSV</button></span>
      </p>
    </div>
  );
}

function Sandwich({ graph, label, isNormalised, onPick, onClose }: { graph: Graph; label: number; isNormalised: boolean; onPick: (label: number) => void; onClose: () => void }) {
  const [above, below] = useMemo(() => [graphOf(callers(graph, label), isNormalised), graphOf(callees(graph, label), isNormalised)], [graph, label]);
  const [zooms, setZooms] = useState([0, 0]);
  const name = graph.tree.names[label]!;
  useEffect(() => setZooms([0, 0]), [label]);
  return (
    <div class="sandwich">
      <h3>{name} <button type="button" onClick={onClose}>Back to the whole graph</button></h3>
      <h4>Callers: each row called the one above it</h4>
      <FlameCanvas graph={above} found={null} zoom={zooms[0]!} onZoom={(node) => setZooms([node, zooms[1]!])} onPick={onPick} name={`callers of ${name}`} />
      <h4>Callees</h4>
      <FlameCanvas graph={below} found={null} zoom={zooms[1]!} onZoom={(node) => setZooms([zooms[0]!, node])} onPick={onPick} name={`callees of ${name}`} />
    </div>
  );
}

export function FlameView({ tree, weights, place }: { tree: CallTree; weights: string[]; place: Place }) {
  const isNormalised = place.query.amounts !== "yes";
  const isUpward = place.query.grows === "up";
  const graph = useMemo(() => graphOf(tree, isNormalised), [tree, isNormalised]);
  const text = place.query.search ?? "";
  const result = useMemo(() => (text ? search(graph, text) : null), [graph, text]);
  const picked = place.query.function === undefined ? null : tree.names.indexOf(place.query.function);
  const change = (query: Record<string, string>, isSame = false) => go({ view: place.view, what: place.what || tree.weight, query: { ...place.query, ...query } }, isSame);
  const pick = (label: number) => change({ function: tree.names[label]! });

  return (
    <main>
      <form class="tools" onSubmit={(event) => event.preventDefault()}>
        <label>Width is <select value={tree.weight} onChange={(event) => go({ view: place.view, what: event.currentTarget.value, query: { ...place.query, zoom: "", function: "" } })}>
          {weights.map((weight) => <option key={weight} value={weight}>{weight}</option>)}
        </select></label>
        <label>Search <input type="search" value={text} onInput={(event) => change({ search: event.currentTarget.value }, true)} /></label>
        <label><input type="checkbox" checked={isUpward} onChange={(event) => change({ grows: event.currentTarget.checked ? "up" : "" }, true)} /> Grow upward</label>
        {graph.isDiff && <label title="Shares of each side are compared; else amounts"><input type="checkbox" checked={isNormalised} onChange={(event) => change({ amounts: event.currentTarget.checked ? "" : "yes", zoom: "" }, true)} /> Normalised</label>}
        {result && <span role="status">{formatCell(result.share, SHARE)} in {formatCount(result.labels.size)} functions</span>}
      </form>
      <Legend graph={graph} />
      {tree.notes.map((note) => <p key={note}>{note}</p>)}
      {!graph.weight[0] ? <p>Nothing here weighs anything by {tree.weight}: choose another width, or widen the filters.</p> : picked !== null && picked >= 0
        ? <Sandwich graph={graph} isNormalised={isNormalised} label={picked} onPick={pick} onClose={() => change({ function: "" })} />
        : <FlameCanvas graph={graph} found={result?.labels ?? null} zoom={nodeOf(graph, place.query.zoom ?? "")} onZoom={(node) => change({ zoom: addressOf(graph, node) })} onPick={pick} name={`flame graph by ${tree.weight}`} isUpward={isUpward} />}
      <h3>Functions</h3>
      <Functions graph={graph} onPick={pick} found={result?.labels ?? null} />
    </main>
  );
}
