// SPDX-License-Identifier: Apache-2.0
// Power by rail over time, with phases shaded behind it.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { hueOf } from "../../flame/draw";
import { formatCell, formatDuration } from "../../format";
import { useFrames, useLatest } from "../../live/frames";
import { bandsOf } from "../../live/phases";
import { LENGTHS, clockText, dataOf, highestOf, latestSpan, movedSpan, nameOf, pictureOf, readingAt, tableOf } from "../../live/power";
import type { PowerPicture, Span } from "../../live/power";
import type { LiveCapture } from "../../live/state";
import type { LiveRail } from "../../api";
import { go } from "../../router";
import type { Place } from "../../router";
import { csvOf, jsonOf, save } from "../../save";
import { useDark } from "../../theme";

const EVERY_MS = 100;
const FIRST_READING_MS = 500;
const HEIGHT = 280;
const STRIP = 6; // pixels of a step or window above the curves
const COLOURS = {
  light: ["#0b62b8", "#b3470b", "#2e7d32", "#7b3fb5", "#a3195b", "#00737a", "#7a5c00", "#4a4f57"],
  dark: ["#7fb8f0", "#f2a16b", "#86c98a", "#c39bee", "#f08cb9", "#5fc9d1", "#d8bb5a", "#b6bec9"],
};
const WATTS = { key: null, title: "", kind: "watts" as const };
const HUES: Record<string, number> = { prefill: 212, decode: 160, mixed: 185, pre_inference: 40, post_inference: 280 };

export const colourOf = (at: number, isDark: boolean) => COLOURS[isDark ? "dark" : "light"][at % 8]!;
const hueOfPhase = (name: string) => HUES[name] ?? hueOf(name) ?? 0;
const shadeOf = (name: string, isDark: boolean) => `hsl(${hueOfPhase(name)} ${isDark ? "45% 45% / " : "60% 55% / "}${name === "decode" ? 0.12 : 0.3})`;
const edgeOf = (name: string, isDark: boolean) => `hsl(${hueOfPhase(name)} ${isDark ? "45% 55%" : "55% 45%"})`;

interface Drawn {
  live: LiveCapture;
  span: Span;
  isDark: boolean;
}

// Phases fill the height; steps and windows are a strip at the top, each with a row of its own.
function drawPhases(plot: uPlot, { live, span, isDark }: Drawn): void {
  const { ctx: context, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "top";
  context.textAlign = "left";
  for (const band of bandsOf(live.phases.all(), span.fromMs, span.toMs, live.nowMs, bbox.width)) {
    const isPhase = band.kind === "phase";
    const top = bbox.top + (isPhase ? 0 : band.kind === "window" ? 0 : STRIP * ratio);
    context.fillStyle = isPhase ? shadeOf(band.name, isDark) : edgeOf(band.name, isDark);
    context.fillRect(bbox.left + band.x, top, band.width, isPhase ? bbox.height : (STRIP - 1) * ratio);
    if (!isPhase || context.measureText(band.name).width > band.width - 8 * ratio) continue;
    context.fillStyle = isDark ? "#c8d0da" : "#3b434d";
    context.fillText(band.name, bbox.left + band.x + 4 * ratio, bbox.top + 2.4 * STRIP * ratio);
  }
  context.restore();
}

function axesOf(isDark: boolean): uPlot.Axis[] {
  const common = {
    stroke: isDark ? "#a0abb8" : "#59636f", font: "12px system-ui, sans-serif", ticks: { show: false },
    grid: { stroke: isDark ? "#2b323c" : "#e6e9ee", width: 1 },
  };
  return [
    { ...common, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400], space: 80, size: 30, values: (_, at) => at.map((s) => clockText(s * 1000)) },
    { ...common, size: 62, values: (_, at) => at.map((w) => `${w} W`) },
  ];
}

// Of each rail a line for the mean, and two without a line for the band from minimum to maximum.
function seriesOf(rails: LiveRail[], isHidden: (rail: number) => boolean, isDark: boolean): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  rails.forEach((rail, at) => {
    const stroke = colourOf(at, isDark);
    const common = { show: !isHidden(rail.rail), points: { show: false } };
    const edge = { ...common, stroke: "transparent", width: 0 };
    series.push({ ...common, label: nameOf(rail), stroke, width: rail.parent === null ? 1.6 : 1.1, dash: rail.parent === null ? undefined : [5, 3] }, edge, edge);
    bands.push({ series: [3 * at + 2, 3 * at + 3], fill: `${stroke}33` });
  });
  return { series, bands };
}

interface Shown {
  plot: uPlot;
  picture: PowerPicture;
}

interface ChartProps {
  live: LiveCapture;
  rails: LiveRail[];
  hidden: Set<number>;
  width: number;
  span: Span | null; // null: the latest
  lengthMs: number;
  isFollowed: boolean;
  onSpan: (span: Span) => void;
  onCursor: (ms: number | null, picture: PowerPicture) => void;
}

function usePlot(props: ChartProps): { box: { current: HTMLDivElement | null }; shown: { current: Shown | null } } {
  const { live, rails, hidden, width, span, lengthMs } = props;
  const box = useRef<HTMLDivElement>(null);
  const shown = useRef<Shown | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const isDark = useDark();
  const key = JSON.stringify([rails, [...hidden], isDark]);

  useLayoutEffect(() => {
    if (!width) return undefined;
    const spanNow = () => latest.current.span ?? latestSpan(live.nowMs, latest.current.lengthMs);
    const { series, bands } = seriesOf(rails, (rail) => hidden.has(rail), isDark);
    const msOf = (plot: uPlot, left: number | undefined) => (left === undefined || left < 0 ? null : plot.posToVal(left, "x") * 1000);
    const plot = new uPlot({
      width, height: HEIGHT, series, bands, axes: axesOf(isDark), legend: { show: false },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      hooks: {
        drawClear: [(drawn) => drawPhases(drawn, { live, span: spanNow(), isDark })],
        setCursor: [(drawn) => { if (shown.current) latest.current.onCursor(msOf(drawn, drawn.cursor.left), shown.current.picture); }],
        setSelect: [(drawn) => {
          if (drawn.select.width < 4) return;
          latest.current.onSpan({ fromMs: msOf(drawn, drawn.select.left)!, toMs: msOf(drawn, drawn.select.left + drawn.select.width)! });
          drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }, undefined, box.current!);
    plot.over.addEventListener("dblclick", () => latest.current.onSpan(latestSpan(live.nowMs, 0)));
    shown.current = { plot, picture: pictureOf(live, rails, spanNow(), width) };
    redraw(shown.current, latest.current);
    return () => { plot.destroy(); shown.current = null; };
  }, [key, width]);

  useEffect(() => { if (shown.current) redraw(shown.current, latest.current); }, [span, lengthMs]);
  return { box, shown };
}

function redraw(shown: Shown, { live, rails, hidden, span, lengthMs }: ChartProps): void {
  const { plot } = shown;
  const wanted = span ?? latestSpan(live.nowMs, lengthMs);
  shown.picture = pictureOf(live, rails, wanted, Math.max(plot.over.clientWidth, 1));
  const highest = highestOf(shown.picture, (rail) => hidden.has(rail));
  plot.batch(() => {
    plot.setData(dataOf(shown.picture) as uPlot.AlignedData, false);
    plot.setScale("x", { min: wanted.fromMs / 1000, max: wanted.toMs / 1000 });
    plot.setScale("y", { min: 0, max: highest });
  });
}

interface Cursor {
  ms: number;
  picture: PowerPicture;
}

// The latest reading of each rail, or that under the cursor.
function Legend({ live, rails, hidden, cursor, onToggle }: { live: LiveCapture; rails: LiveRail[]; hidden: Set<number>; cursor: Cursor | null; onToggle: (rail: number) => void }) {
  const isDark = useDark();
  return (
    <ul class="rails" aria-label="Rails, with their latest power or that under the cursor">
      {rails.map((rail, at) => {
        const parent = rails.find(({ rail: number }) => number === rail.parent);
        return (
          <li key={rail.rail}>
            <button type="button" aria-pressed={!hidden.has(rail.rail)} onClick={() => onToggle(rail.rail)} title={`${rail.source ?? ""} ${rail.quality ?? ""}`.trim()}>
              <i style={{ background: colourOf(at, isDark) }} />{nameOf(rail)} <b>{valueText(live, rail, cursor)}</b>
            </button>
            <span class="dim">{[parent && `part of ${nameOf(parent)}`, rail.is_replayed && "replayed", rail.quality === "estimated" && "estimated"].filter(Boolean).join(", ")}</span>
          </li>
        );
      })}
    </ul>
  );
}

function valueText(live: LiveCapture, rail: LiveRail, cursor: Cursor | null): string {
  if (!cursor) return formatCell(live.rails.get(rail.rail)?.latest ?? null, { ...WATTS, unknown: "–" });
  const columns = cursor.picture.rails.find(({ rail: { rail: number } }) => number === rail.rail)?.columns;
  const reading = columns ? readingAt(cursor.picture, columns, cursor.ms) : null;
  if (!reading) return "no reading";
  const mean = formatCell(reading.mean, WATTS);
  return reading.high - reading.low < 0.005 ? mean : `${mean} (${formatCell(reading.low, WATTS)} to ${formatCell(reading.high, WATTS)})`;
}

function cursorText(live: LiveCapture, { ms }: Cursor): string {
  const phases = live.phases.at(ms).slice(-3).map(({ kind, name }) => name ?? kind);
  return `at ${formatDuration(Math.round(ms) * 1e6)}${phases.length ? `: ${phases.join(", ")}` : ""}`;
}

function pngOf(plot: uPlot, isDark: boolean): void {
  const { canvas } = plot.ctx;
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const context = copy.getContext("2d")!;
  context.fillStyle = isDark ? "#14171c" : "#ffffff";
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => blob && save("power.png", blob));
}

// "no power sensor: …", each source with its reason.
function NoPower({ live }: { live: LiveCapture }) {
  const absences = live.session?.absences ?? [];
  if (live.session?.rails.length) return <p class="empty">No reading has come yet.</p>;
  return (
    <div class="empty">
      <p>No power is recorded: this machine has no sensor that sonde can read{absences.length ? ":" : "."}</p>
      <ul>{absences.map(({ source, reason }) => <li key={source}><b>{source}</b> {reason}</li>)}</ul>
    </div>
  );
}

function Lengths({ place, lengthMs, span, onLatest }: { place: Place; lengthMs: number; span: Span | null; onLatest: () => void }) {
  return (
    <span class="choice" role="group" aria-label="Length of time that is shown">
      {LENGTHS.map(([text, ms]) => (
        <button key={text} type="button" aria-pressed={!span && ms === lengthMs} onClick={() => { onLatest(); go({ ...place, query: { ...place.query, span: String(ms / 1000) } }, true); }}>{text}</button>
      ))}
    </span>
  );
}

const lengthOf = (place: Place) => LENGTHS.find(([, ms]) => String(ms / 1000) === place.query.span)?.[1] ?? LENGTHS[1]![1];
const ZOOMS: Record<string, [number, number]> = { "+": [0.7, 0], w: [0.7, 0], "-": [1 / 0.7, 0], s: [1 / 0.7, 0], a: [1, -0.25], d: [1, 0.25], PageUp: [1, -0.8], PageDown: [1, 0.8] };

interface PanelProps {
  live: LiveCapture;
  place: Place;
  width: number;
  isFollowed: boolean;
}

export function PowerPanel(props: PanelProps) {
  const { live, isFollowed } = props;
  const rails = useLatest(live.topics.session, EVERY_MS, isFollowed, () => live.session?.rails ?? []);
  const hasReadings = useLatest(live.topics.power, FIRST_READING_MS, isFollowed, () => live.rails.size > 0);
  if (!rails.length || !hasReadings) return <section class="card wide" aria-label="Power"><h3>Power</h3><NoPower live={live} /></section>;
  return <PowerChart {...props} rails={rails} />;
}

function PowerChart({ live, place, width, isFollowed, rails }: PanelProps & { rails: LiveRail[] }) {
  const [span, setSpan] = useState<Span | null>(null);
  const [hidden, setHidden] = useState<Set<number>>(new Set());
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const isDark = useDark();
  const lengthMs = lengthOf(place);
  // Stops where it was when it is not followed.
  const [stopped, setStopped] = useState<Span | null>(null);
  useEffect(() => setStopped(isFollowed ? null : latestSpan(live.nowMs, lengthMs)), [isFollowed]);
  const shownSpan = span ?? stopped;
  const props: ChartProps = {
    live, rails, hidden, width, lengthMs, isFollowed, span: shownSpan, onSpan: setSpan,
    onCursor: (ms, picture) => setCursor(ms === null ? null : { ms, picture }),
  };
  const { box, shown } = usePlot(props);
  useFrames(live.topics.power, EVERY_MS, isFollowed && !span, () => {
    if (shown.current) redraw(shown.current, props);
    setCursor((now) => (now && shown.current ? { ms: now.ms, picture: shown.current.picture } : now));
  });

  const press = (event: KeyboardEvent) => {
    const now = shownSpan ?? latestSpan(live.nowMs, lengthMs);
    const zoom = ZOOMS[event.key];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "0" || event.key === "Home") setSpan(null);
    else if (zoom) setSpan(movedSpan(now, live.nowMs, zoom[0], zoom[1]));
    else if (step && shown.current) moveCursor(shown.current, cursor, step * (event.shiftKey ? 10 : 1));
    else return;
    event.preventDefault();
  };
  const text = cursor ? cursorText(live, cursor) : "";
  return (
    <section class="card wide" aria-label="Power">
      <div class="head">
        <h3>Power</h3>
        <Lengths place={place} lengthMs={lengthMs} span={span} onLatest={() => setSpan(null)} />
        {span && <button type="button" onClick={() => setSpan(null)}>Back to the latest</button>}
        <span class="save">
          <button type="button" onClick={() => shown.current && save("power.csv", csvOf(tableOf(shown.current.picture)), "text/csv")}>CSV</button>
          <button type="button" onClick={() => shown.current && save("power.json", jsonOf(tableOf(shown.current.picture)), "application/json")}>JSON</button>
          <button type="button" onClick={() => shown.current && pngOf(shown.current.plot, isDark)}>PNG</button>
        </span>
      </div>
      <Legend live={live} rails={rails} hidden={hidden} cursor={cursor}
        onToggle={(rail) => setHidden(new Set(hidden.has(rail) ? [...hidden].filter((other) => other !== rail) : [...hidden, rail]))} />
      <div ref={box} class="plot" tabIndex={0} role="slider" aria-label="Power over time" aria-valuemin={0} aria-valuemax={Math.round(live.nowMs / 1000)}
        aria-valuenow={Math.round((cursor?.ms ?? live.nowMs) / 1000)} aria-valuetext={cursor ? `${text} ${rails.map((rail) => `${nameOf(rail)} ${valueText(live, rail, cursor)}`).join(", ")}` : "the latest"} onKeyDown={press} />
      <p class="details">{text || "Drag zooms, double click shows all. Arrows move the cursor, + and - zoom, a and d move, 0 shows the latest."}</p>
    </section>
  );
}

function moveCursor({ plot, picture }: Shown, cursor: Cursor | null, columns: number): void {
  const ms = Math.min(Math.max((cursor?.ms ?? picture.toMs) + columns * picture.columnMs, picture.fromMs), picture.toMs);
  plot.setCursor({ left: plot.valToPos(ms / 1000, "x"), top: plot.over.clientHeight / 2 });
}
