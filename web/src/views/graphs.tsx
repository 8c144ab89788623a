// SPDX-License-Identifier: Apache-2.0
// Power, busy CPUs and devices, tokens per second and the program's counters over a recording. A part can be selected, for
// the other views.
import { useEffect, useRef, useState } from "preact/hooks";
import { formatCell } from "../format";
import { SHADES } from "../graphs/bands";
import type { Shades } from "../graphs/bands";
import { GRAPH_HEIGHT, drawGraph, roundUp, valueAt } from "../graphs/draw";
import type { Band } from "../graphs/draw";
import type { Loaded } from "../loaded";
import { go, hrefOf } from "../router";
import type { Place } from "../router";
import { save } from "../save";
import { KINDS } from "../steps";
import { useDark } from "../theme";
import { formatNs, formatPlace, ticks } from "../timeline/draw";
import { decodeTile } from "../timeline/tile";
import type { CounterColumns } from "../timeline/tile";
import type { TileSource, Track, Tracks } from "../timeline/source";
import { useWidth } from "../width";

const FIRST = 12; // graphs at first
const COLUMNS_MAX = 2048;

const seconds = (ns: number) => (ns / 1e9).toFixed(6);
const formatValue = (value: number) => formatCell(value, { key: null, title: "", kind: "number", digits: 4 });

// Rates and power before what programs count.
const rankOf = ({ process }: Track) => (process === "rates" ? 0 : process === "energy" || process?.includes("GPU") ? 1 : 2);
export const countersOf = ({ tracks }: Tracks): Track[] => tracks.filter(({ kind }) => kind === "counter").sort((a, b) => rankOf(a) - rankOf(b));

function useTile(source: TileSource, track: number, fromNs: number, toNs: number, columns: number): [CounterColumns | null, string | null] {
  const [tile, setTile] = useState<CounterColumns | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    if (!columns) return undefined;
    source.tile(track, fromNs, toNs, Math.min(columns, COLUMNS_MAX)).then(
      (bytes) => { if (!isOver) setTile(decodeTile(bytes) as CounterColumns); },
      (error: unknown) => { if (!isOver) setFault(error instanceof Error ? error.message : String(error)); },
    );
    return () => { isOver = true; };
  }, [source, track, fromNs, toNs, columns]);
  return [tile, fault];
}

interface Shared {
  source: TileSource;
  span: [number, number];
  bands: Band[];
  selected: [number, number] | null;
  cursor: number | null;
  onCursor: (ns: number | null) => void;
  onSelect: (span: [number, number] | null) => void;
  onZoom: (span: [number, number] | null) => void;
}

function csvOf(tile: CounterColumns): string {
  const lines = ["start_ns,first,minimum,maximum,last"];
  for (let i = 0; i < tile.count; i++) lines.push([tile.start[i], tile.first[i], tile.minimum[i], tile.maximum[i], tile.last[i]].join());
  return `${lines.join("\r\n")}\r\n`;
}

// Drag selects; the arrows move the cursor, with Shift they select; Enter zooms into the selection, Escape drops it, 0 shows all.
function useKeys({ span, selected, cursor, onCursor, onSelect, onZoom }: Shared) {
  return (event: KeyboardEvent) => {
    const step = (span[1] - span[0]) / 100;
    const at = cursor ?? span[0];
    const move = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (move !== undefined) {
      const next = Math.min(Math.max(at + move, span[0]), span[1]);
      if (event.shiftKey) {
        const fixed = selected ? (Math.abs(selected[0] - at) < Math.abs(selected[1] - at) ? selected[1] : selected[0]) : at;
        onSelect([Math.min(fixed, next), Math.max(fixed, next)]);
      }
      onCursor(next);
    } else if (event.key === "Enter" && selected) onZoom(selected);
    else if (event.key === "Escape") onSelect(null);
    else if (event.key === "0") onZoom(null);
    else return;
    event.preventDefault();
  };
}

function Graph({ track, shared }: { track: Track; shared: Shared }) {
  const { span, bands, selected, cursor, onCursor, onSelect } = shared;
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<number | null>(null);
  const isDark = useDark();
  const [tile, fault] = useTile(shared.source, track.id, span[0], span[1], width);
  const top = roundUp(track.maximum ?? 1);
  const press = useKeys(shared);
  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    if (!context || !width) return;
    [element.width, element.height] = [width * ratio, GRAPH_HEIGHT * ratio];
    context.scale(ratio, ratio);
    drawGraph(context, tile, { fromNs: span[0], toNs: span[1], width, top, isDark, bands, selected, cursor });
  });
  const nsAt = (event: MouseEvent) => span[0] + (event.offsetX / Math.max(width, 1)) * (span[1] - span[0]);
  const moved = (event: MouseEvent) => {
    const at = nsAt(event);
    onCursor(at);
    if (drag.current !== null) onSelect([Math.min(drag.current, at), Math.max(drag.current, at)]);
  };
  const value = tile && cursor !== null ? valueAt(tile, cursor) : null;
  const band = cursor === null ? undefined : bands.find(({ fromNs, toNs }) => cursor >= fromNs && cursor < toNs);
  return (
    <figure class="graph">
      <figcaption>
        <b>{track.name}</b> <span class="dim">{track.process !== "rates" && track.process}{track.rank !== null && ` rank ${track.rank}`}</span>
        <span class="value">{value === null ? `0 to ${formatValue(top)}` : `${formatValue(value)} at ${formatPlace(cursor!, (span[1] - span[0]) / 200, span[1])}`}{value !== null && band && `, ${band.name}`}</span>
        <span class="save">
          <button type="button" aria-label={`CSV of ${track.name}`} onClick={() => tile && save(`${track.name}.csv`, csvOf(tile), "text/csv")}>CSV</button>
          <button type="button" aria-label={`PNG of ${track.name}`} onClick={() => canvas.current!.toBlob((blob) => blob && save(`${track.name}.png`, blob))}>PNG</button>
        </span>
      </figcaption>
      {fault && <p role="alert">{fault}</p>}
      <div ref={ref}>
        <canvas
          ref={canvas} tabIndex={0} role="img" style={{ width: `${width}px`, height: `${GRAPH_HEIGHT}px` }}
          aria-label={`${track.name}, at most ${formatValue(track.maximum ?? 0)}: the arrow keys read its values`}
          onKeyDown={press} onMouseMove={moved} onMouseLeave={() => { onCursor(null); drag.current = null; }}
          onMouseDown={(event) => { drag.current = nsAt(event); onSelect(null); }} onMouseUp={() => { drag.current = null; }}
        />
      </div>
    </figure>
  );
}

function Ruler({ span }: { span: [number, number] }) {
  const [ref, width] = useWidth();
  const shown = ticks({ fromNs: span[0], toNs: span[1], width });
  const step = shown.length > 1 ? shown[1]! - shown[0]! : span[1] - span[0];
  return (
    <div ref={ref} class="ruler" aria-hidden="true">
      {width > 0 && shown.map((ns) => <span key={ns} style={{ left: `${((ns - span[0]) / (span[1] - span[0])) * 100}%` }}>{formatPlace(ns, step, span[1])}</span>)}
    </div>
  );
}

function Selection({ span, place, onZoom }: { span: [number, number]; place: Place; onZoom: (span: [number, number]) => void }) {
  const capture = place.query.capture ?? "";
  const time = `${seconds(span[0])}..${seconds(span[1])}`;
  return (
    <span class="selection">
      {formatPlace(span[0], (span[1] - span[0]) / 100, span[1])} to {formatPlace(span[1], (span[1] - span[0]) / 100, span[1])}:{" "}
      <button type="button" onClick={() => onZoom(span)}>Zoom</button>{" "}
      <a href={hrefOf({ view: "timeline", query: { capture, from: String(Math.round(span[0])), to: String(Math.round(span[1])) } })}>Timeline</a>{" "}
      <a href={hrefOf({ view: "flame", query: { capture, time } })}>Flame graph</a>{" "}
      <a href={hrefOf({ view: "report", query: { capture, time } })}>Report</a>
    </span>
  );
}

export interface GraphsProps {
  source: TileSource;
  tracks: Tracks;
  place: Place;
  chosen: string; // what to shade; "": what there is
  shaded: Loaded<Shades>;
}

const NO_BANDS: Band[] = [];

export function GraphsView({ source, tracks, place, chosen, shaded }: GraphsProps) {
  const [cursor, setCursor] = useState<number | null>(null);
  const [selected, setSelected] = useState<[number, number] | null>(null);
  const [limit, setLimit] = useState(FIRST);
  const counters = countersOf(tracks);
  const { kind, bands } = shaded.state === "ready" ? shaded.value : { kind: chosen || "none", bands: NO_BANDS };
  const end = Math.max(tracks.duration_ns, 1);
  const from = Math.min(Math.max(0, Number(place.query.from ?? 0) || 0), end - 1);
  const to = Math.min(Math.max(from + 1, Number(place.query.to ?? end) || end), end);
  const change = (query: Record<string, string>) => go({ ...place, query: { ...place.query, ...query } });
  const zoom = (span: [number, number] | null) => {
    setSelected(null);
    change({ from: span ? String(Math.floor(span[0])) : "", to: span ? String(Math.ceil(span[1])) : "" });
  };
  if (!counters.length) return <main><p>Nothing here is a graph over time: the recording has no samples, device work, power sensors or counters. sonde doctor says which sensors there are.</p></main>;
  const graphs = counters.slice(0, limit).map((track) => (
    <Graph key={track.id} track={track} shared={{ source, span: [from, to], bands, selected, cursor, onCursor: setCursor, onSelect: setSelected, onZoom: zoom }} />
  ));
  return (
    <main class="wide">
      <form class="tools" onSubmit={(event) => event.preventDefault()}>
        <label>Shade <select value={chosen || kind} onChange={(event) => change({ shade: event.currentTarget.value })}>
          {Object.entries(SHADES).map(([key, text]) => <option key={key} value={key}>{text}</option>)}
        </select></label>
        {(from > 0 || to < end) && <button type="button" onClick={() => zoom(null)}>Show all {formatNs(end)}</button>}
        {selected && selected[1] > selected[0] ? <Selection span={selected} place={place} onZoom={zoom} /> : <span class="dim">Drag over a graph, or Shift and arrows, select a time.</span>}
      </form>
      <Ruler span={[from, to]} />
      {shaded.state === "failed" && <p role="alert">{shaded.why}</p>}
      {shaded.state === "ready" && kind !== "none" && !bands.length && <p>{KINDS[kind]!.missing}</p>}
      {graphs}
      {counters.length > limit && <p class="foot"><button type="button" onClick={() => setLimit(limit + FIRST)}>{Math.min(FIRST, counters.length - limit)} more of {counters.length}</button></p>}
    </main>
  );
}
