// SPDX-License-Identifier: Apache-2.0
// Steps, windows, requests and ranks one by one: a slider, the figures of one of them, and its part of any section. All
// figures are the report's.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { formatCell, formatCount } from "../format";
import type { Column, Report } from "../report";
import { go, hrefOf, isAt } from "../router";
import type { Place } from "../router";
import { csvOf, jsonOf, save } from "../save";
import { KINDS, metricsOf } from "../steps";
import type { Item, Items } from "../steps";
import { useDark } from "../theme";
import { useWidth } from "../width";

const HEIGHT = 120; // pixels of the chart
const WIDEST = 48; // of a bar
const WAIT_MS = 250; // before the address follows the slider
const PLAY_MS = 700; // each

const seconds = (ns: number) => (ns / 1e9).toFixed(6);

// A bar for each, or for as many as a column of pixels holds the largest of them.
export function bars(values: (number | null)[], width: number): { x: number; width: number; value: number }[] {
  const columns = Math.min(values.length, Math.max(1, Math.floor(width / 2)));
  return Array.from({ length: columns }, (_, at) => {
    const part = values.slice(Math.floor((at * values.length) / columns), Math.floor(((at + 1) * values.length) / columns));
    return { x: at * Math.min(width / columns, WIDEST), width: Math.min(width / columns, WIDEST), value: Math.max(0, ...part.map((value) => value ?? 0)) };
  });
}

function Chart({ items, metric, chosen, onChoose }: { items: Items; metric: number; chosen: number; onChoose: (at: number) => void }) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDark = useDark();
  const values = items.items.map(({ row }) => (row[metric] === null ? null : Number(row[metric])));
  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d");
    if (!context || !width) return;
    const ratio = window.devicePixelRatio || 1;
    [element.width, element.height] = [width * ratio, HEIGHT * ratio];
    context.scale(ratio, ratio);
    const all = bars(values, width);
    const largest = Math.max(...all.map(({ value }) => value)) || 1;
    const picked = Math.min(all.length - 1, Math.floor((chosen * all.length) / values.length));
    all.forEach((bar, at) => {
      const odd = items.oddFrom !== null && metric === items.oddMetric && bar.value > items.oddFrom;
      context.fillStyle = at === picked ? (isDark ? "#e8ebf0" : "#15191f") : odd ? (isDark ? "#d9694f" : "#cf4a2c") : isDark ? "#4b7fb3" : "#7fb0de";
      const height = (bar.value / largest) * (HEIGHT - 4);
      context.fillRect(bar.x, HEIGHT - height, Math.max(bar.width - (bar.width > 3 ? 1 : 0), 0.5), height);
    });
  });
  return (
    <div ref={ref} class="steps">
      <canvas ref={canvas} role="img" style={{ width: `${width}px`, height: `${HEIGHT}px` }} aria-label={`${items.table.columns[metric]!.title} of each; the slider chooses one`}
        onClick={(event) => onChoose(Math.min(values.length - 1, Math.floor((event.offsetX / Math.min(width, WIDEST * values.length)) * values.length)))} />
    </div>
  );
}

function Figures({ items, item }: { items: Items; item: Item }) {
  const facts = items.table.columns.flatMap((column, at): [string, string][] => {
    const value = item.row[at] ?? null;
    const text = value === null ? "" : formatCell(value, column);
    return column.title && text ? [[column.title, text]] : [];
  });
  return <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

// To the views that show its time alone.
function Links({ item, kind, place }: { item: Item; kind: string; place: Place }) {
  const capture = place.query.capture ?? "";
  if (item.fromNs === null || item.toNs === null) return null;
  const room = (item.toNs - item.fromNs) * 0.05;
  const filter: Record<string, string> = kind === "window" ? { window: item.name } : { time: `${seconds(item.fromNs)}..${seconds(item.toNs)}` };
  return (
    <p class="foot">
      <a href={hrefOf({ view: "timeline", query: { capture, from: String(Math.max(0, Math.round(item.fromNs - room))), to: String(Math.round(item.toNs + room)) } })}>Timeline</a>
      <a href={hrefOf({ view: "flame", query: { capture, ...filter } })}>Flame graph</a>
      <a href={hrefOf({ view: "report", query: { capture, ...filter } })}>Report</a> of it alone
    </p>
  );
}

export interface StepsProps {
  kind: string;
  items: Items | null;
  names: Report["names"]; // of sections
  place: Place;
  sectionOf: (by: string, filter: Record<string, string>) => ComponentChildren; // a section of the report, of this part alone
}

export function filterOf(kind: string, item: Item): Record<string, string> | null {
  if (kind === "window") return { window: item.name };
  return item.fromNs !== null && item.toNs !== null && item.toNs > item.fromNs ? { time: `${seconds(item.fromNs)}..${seconds(item.toNs)}` } : null;
}

function Chooser({ place, kind }: { place: Place; kind: string }) {
  return (
    <label>Show <select value={kind} onChange={(event) => go({ ...place, what: event.currentTarget.value, query: { ...place.query, n: "", metric: "" } })}>
      {Object.entries(KINDS).map(([key, { title }]) => <option key={key} value={key}>{title}s</option>)}
    </select></label>
  );
}

function Steps({ items, place, kind, names, sectionOf }: { items: Items; place: Place; kind: string; names: Report["names"]; sectionOf: StepsProps["sectionOf"] }) {
  const named = items.items.findIndex(({ name }) => name === place.query.n);
  const [at, setAt] = useState(Math.max(named, 0));
  const metrics = metricsOf(items);
  const metric = metrics.find((column) => String(column) === place.query.metric) ?? metrics[0];
  const chosen = Math.min(at, items.items.length - 1);
  const item = items.items[chosen]!;
  const by = place.query.section ?? "function";
  const filter = filterOf(kind, item);
  const change = (query: Record<string, string>) => go({ ...place, query: { ...place.query, ...query } }, true);

  // The address may name one that the slider has since left.
  const written = useRef(place.query.n);
  useEffect(() => {
    if (named >= 0 && place.query.n !== written.current) setAt(named);
    written.current = place.query.n;
  }, [named]);
  useEffect(() => {
    if (place.query.n === item.name || (!place.query.n && !chosen)) return;
    const timer = setTimeout(() => {
      if (!isAt(place)) return;
      written.current = item.name;
      change({ n: item.name });
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [chosen, place]);
  const settled = place.query.n === item.name || (!place.query.n && !chosen);
  const { title } = KINDS[kind]!;
  const last = items.items.length - 1;
  const [isPlaying, setPlaying] = useState(false);
  useEffect(() => {
    if (!isPlaying) return undefined;
    if (chosen >= last) return setPlaying(false);
    const timer = setTimeout(() => setAt(chosen + 1), PLAY_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, chosen]);
  return (
    <>
      <form class="tools" onSubmit={(event) => event.preventDefault()}>
        <Chooser place={place} kind={kind} />
        {metrics.length > 1 && (
          <label>Bars are <select value={metric} onChange={(event) => change({ metric: event.currentTarget.value })}>
            {metrics.map((column) => <option key={column} value={column}>{items.table.columns[column]!.title}</option>)}
          </select></label>
        )}
        {last > 0 && <button type="button" aria-pressed={isPlaying} onClick={() => { if (chosen >= last) setAt(0); setPlaying(!isPlaying); }}>{isPlaying ? "Pause" : "Play"}</button>}
        <span class="save">
          <button type="button" onClick={() => save(`${kind}s.csv`, csvOf(items.table), "text/csv")}>CSV</button>
          <button type="button" onClick={() => save(`${kind}s.json`, jsonOf(items.table), "application/json")}>JSON</button>
        </span>
      </form>
      {metric !== undefined && <Chart items={items} metric={metric} chosen={chosen} onChoose={setAt} />}
      <input type="range" class="slider" min={0} max={items.items.length - 1} value={chosen} aria-label={title} aria-valuetext={`${title} ${item.name}`} onInput={(event) => setAt(Number(event.currentTarget.value))} />
      {items.items.some(({ row }) => items.oddFrom !== null && Number(row[items.oddMetric]) > items.oddFrom) && <p class="foot">Red ones took longer than the {kind === "token" ? "99th" : "95th"} percentile, {formatCell(items.oddFrom, { kind: "ns" } as Column)}.</p>}
      {items.leftOut > 0 && <p class="foot">{formatCount(items.leftOut)} more are not here.</p>}
      <h3 aria-live="polite">{title} {item.name} <span class="dim">{formatCount(chosen + 1)} of {formatCount(items.items.length)}</span></h3>
      <Figures items={items} item={item} />
      <Links item={item} kind={kind} place={place} />
      {filter && (
        <>
          <label class="tools">Section of it <select value={by} onChange={(event) => change({ section: event.currentTarget.value })}>
            {names.map(({ by: name, summary }) => <option key={name} value={name} title={summary}>{name}</option>)}
          </select></label>
          {settled ? sectionOf(by, filter) : <p role="status">The section is being made …</p>}
        </>
      )}
    </>
  );
}

export function StepsView({ kind, items, names, place, sectionOf }: StepsProps) {
  return (
    <main>
      {items
        ? <Steps key={kind} items={items} place={place} kind={kind} names={names} sectionOf={sectionOf} />
        : <><form class="tools" onSubmit={(event) => event.preventDefault()}><Chooser place={place} kind={kind} /></form><p>{KINDS[kind]!.missing}</p></>}
    </main>
  );
}
