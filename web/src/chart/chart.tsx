// SPDX-License-Identifier: Apache-2.0
// A small chart: points, with lines through those of a series. Keys move from point to point, a line below says what each is,
// and the same values stand in a table.
import { useMemo, useState } from "preact/hooks";
import { formatCell } from "../format";
import type { Cell, Column, Kind, Table } from "../report";
import { save } from "../save";
import { TableView } from "../views/table";
import { scaleOf } from "./scale";
import type { Scale } from "./scale";

export interface Axis {
  title: string;
  kind: Kind;
  isLog?: boolean;
  names?: string[]; // of the values 0, 1, 2 …, in place of numbers
}

export interface Point {
  x: number;
  y: number;
  name: string;
  note?: string; // why it is marked
  mark?: "good" | "bad" | "knee";
  href?: string;
}

export interface Series {
  name: string;
  points: Point[];
  isLine: boolean;
  isFit?: boolean; // a curve through them, without points of its own
}

export interface ChartProps {
  name: string; // of files
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
}

const WIDTH = 720;
const HEIGHT = 320;
const PLOT = { left: 76, right: WIDTH - 28, top: 14, bottom: HEIGHT - 46 };
const NAME_LETTERS = 12;

const columnOf = (axis: Axis): Column => ({ key: axis.title, title: axis.title, kind: axis.kind, digits: 4 });

const LARGE = 1e4;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });

// 8e9 parameters are 8B.
function textOf(axis: Axis, value: number): string {
  if (!axis.names && axis.kind === "number" && Math.abs(value) >= LARGE) return compact.format(value);
  return axis.names ? axis.names[value] ?? "" : formatCell(value, columnOf(axis));
}

function scaleFor(axis: Axis, values: number[]): Scale {
  const count = axis.names?.length;
  if (count === undefined) return scaleOf(values, axis.isLog ?? false);
  const step = Math.ceil(count / 8);
  return { isLog: false, from: -0.5, to: count - 0.5, ticks: [...Array(count).keys()].filter((at) => at % step === 0), at: (value) => (value + 0.5) / count };
}

interface Scales {
  x: Scale;
  y: Scale;
}

const placeX = (scales: Scales, x: number) => PLOT.left + scales.x.at(x) * (PLOT.right - PLOT.left);
const placeY = (scales: Scales, y: number) => PLOT.bottom - scales.y.at(y) * (PLOT.bottom - PLOT.top);

function AxisX({ axis, scales }: { axis: Axis; scales: Scales }) {
  return (
    <g>
      {scales.x.ticks.map((value) => (
        <g key={value}>
          <line class="grid" x1={placeX(scales, value)} x2={placeX(scales, value)} y1={PLOT.top} y2={PLOT.bottom} />
          <text x={placeX(scales, value)} y={PLOT.bottom + 16} text-anchor="middle">{textOf(axis, value).slice(0, NAME_LETTERS)}</text>
        </g>
      ))}
      <text class="axis" x={(PLOT.left + PLOT.right) / 2} y={HEIGHT - 8} text-anchor="middle">{axis.title}</text>
    </g>
  );
}

function AxisY({ axis, scales }: { axis: Axis; scales: Scales }) {
  return (
    <g>
      {scales.y.ticks.map((value) => (
        <g key={value}>
          <line class="grid" x1={PLOT.left} x2={PLOT.right} y1={placeY(scales, value)} y2={placeY(scales, value)} />
          <text x={PLOT.left - 6} y={placeY(scales, value) + 4} text-anchor="end">{textOf(axis, value)}</text>
        </g>
      ))}
      <text class="axis" transform={`translate(14 ${(PLOT.top + PLOT.bottom) / 2}) rotate(-90)`} text-anchor="middle">{axis.title}</text>
    </g>
  );
}

function SeriesView({ series, number, scales, picked }: { series: Series; number: number; scales: Scales; picked: Point | undefined }) {
  const places = series.points.map((point) => [placeX(scales, point.x), placeY(scales, point.y)] as const);
  return (
    <g class={`series s${number % 6}`}>
      {series.isLine && <polyline class={series.isFit ? "fit" : ""} points={places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")} />}
      {!series.isFit && series.points.map((point, at) => (
        <circle key={at} class={`${point.mark ?? ""} ${point === picked ? "picked" : ""}`} cx={places[at]![0]} cy={places[at]![1]} r={point.mark ? 6 : 4} data-name={point.name} />
      ))}
    </g>
  );
}

// Which point is nearest to the pointer.
function nearest(points: Point[], scales: Scales, x: number, y: number): number {
  const distances = points.map((point) => Math.hypot(placeX(scales, point.x) - x, placeY(scales, point.y) - y));
  const least = Math.min(...distances);
  return least < 40 ? distances.indexOf(least) : -1;
}

function Details({ point, x, y }: { point: Point | undefined; x: Axis; y: Axis }) {
  if (!point) return <p class="details dim">Point at a value, or move from one to the next with the arrow keys.</p>;
  const text = `${y.title} ${textOf(y, point.y)} at ${x.title} ${textOf(x, point.x)}${point.note ? `: ${point.note}` : ""}`;
  return <p class="details" aria-live="polite"><b>{point.href ? <a href={point.href}>{point.name}</a> : point.name}</b> {text}</p>;
}

export function tableOf({ x, y, series }: ChartProps): Table {
  const columns: Column[] = [
    { key: "series", title: "Series", kind: "text" }, { key: "name", title: "Name", kind: "text" },
    { ...columnOf(x), kind: x.names ? "text" : x.kind }, columnOf(y), { key: "note", title: "Note", kind: "text" },
  ];
  const rows: Cell[][] = series.filter(({ isFit }) => !isFit).flatMap(({ name, points }) =>
    points.map((point) => [name, point.name, x.names ? textOf(x, point.x) : point.x, point.y, point.note ?? null]));
  return { key: "points", left_out: 0, columns, rows };
}

// With the colours that the page gives it, so that it looks the same elsewhere.
function saveSvg(name: string, element: Element | null): void {
  const copy = element?.cloneNode(true) as SVGSVGElement | undefined;
  if (!element || !copy) return;
  const style = getComputedStyle(document.documentElement);
  const colours = [...Array(6).keys()].map((at) => style.getPropertyValue(`--series-${at}`));
  const rules = colours.map((colour, at) => `.s${at} circle{fill:${colour}}.s${at} polyline{stroke:${colour}}`).join("");
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "style");
  sheet.textContent = `text{font:12px sans-serif;fill:${style.getPropertyValue("--ink")}}.grid{stroke:${style.getPropertyValue("--rule")}}polyline{fill:none}${rules}`;
  copy.prepend(sheet);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  save(`${name}.svg`, new XMLSerializer().serializeToString(copy), "image/svg+xml");
}

export function Chart(props: ChartProps) {
  const { name, title, x, y, series } = props;
  const [at, setAt] = useState(-1);
  const points = useMemo(() => series.filter(({ isFit }) => !isFit).flatMap((one) => one.points), [series]);
  const scales = useMemo(() => {
    const all = series.flatMap((one) => one.points);
    return { x: scaleFor(x, all.map((point) => point.x)), y: scaleFor(y, all.map((point) => point.y)) };
  }, [series, x, y]);
  const table = useMemo(() => tableOf(props), [series]);
  const moved = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const href = points[at]?.href;
    if (event.key === "Enter" && href) location.hash = href;
    if (!step) return;
    event.preventDefault();
    setAt(at < 0 ? 0 : (at + step + points.length) % points.length);
  };
  const pointed = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setAt(nearest(points, scales, ((event.clientX - box.left) * WIDTH) / box.width, ((event.clientY - box.top) * HEIGHT) / box.height));
  };
  const id = `chart-${name}`;
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <svg id={id} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="application" aria-label={`${title}: ${points.length} values; the arrow keys move between them`} tabindex={0}
        onKeyDown={moved} onMouseMove={pointed} onClick={() => { const href = points[at]?.href; if (href) location.hash = href; }}>
        <AxisX axis={x} scales={scales} />
        <AxisY axis={y} scales={scales} />
        {series.map((one, number) => <SeriesView key={one.name} series={one} number={number} scales={scales} picked={points[at]} />)}
      </svg>
      {series.length > 1 && <p class="legend">{series.map((one, number) => <span key={one.name} class={`s${number % 6}`}>{one.name}</span>)}</p>}
      <Details point={points[at]} x={x} y={y} />
      <details>
        <summary>As a table</summary>
        <TableView table={table} name={name} block={{ kind: "table", table: 0, columns: [0, 1, 2, 3, 4], limit: 0, left_out: 0, noun: title }} />
        <p class="foot"><button type="button" onClick={() => saveSvg(name, document.getElementById(id))}>SVG</button></p>
      </details>
    </figure>
  );
}
