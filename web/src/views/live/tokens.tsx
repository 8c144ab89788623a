// SPDX-License-Identifier: Apache-2.0
// Tokens as they come: a row for each of the latest requests, a cell for each token, on a canvas.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCell, formatCount, formatDuration } from "../../format";
import { useLatest } from "../../live/frames";
import type { LiveRequest, LiveToken } from "../../live/tokens";
import type { LiveCapture } from "../../live/state";
import type { Cell, Column, Table } from "../../report";
import { csvOf, jsonOf, save } from "../../save";
import { useDark } from "../../theme";
import { COLOURS, FIRST_TOKEN, joulesPerToken, shadeOf, slowness, unknownShade } from "../tokens";
import type { Colour, Inference, Spread } from "../tokens";

const EVERY_MS = 100;
const SHOWN = 8;
const CELL = 12;
const STEP = CELL + 1;
const LINES = 3; // of cells, of a request
const JOULES = { key: null, title: "", kind: "joules" as const };

interface Row {
  request: LiveRequest;
  count: number; // of its tokens, when this was made
  state: LiveRequest["state"];
}

// A row in which nothing has come since stays the same one, and is not drawn again.
function rowsOf(live: LiveCapture, before: Row[]): Row[] {
  return live.tokens.latest(SHOWN).map((request) => {
    const known = before.find((row) => row.request === request);
    return known && known.count === request.count && known.state === request.state ? known : { request, count: request.count, state: request.state };
  });
}

interface Scale {
  spread: Spread | null; // of the report
  energies: Map<string, number>; // J for each token of a request, of the report
  by: Colour;
}

const ns = (ms: number) => Math.round(ms * 1e6);

// Of the report's requests, by process and name.
function energiesOf(inference: Inference | null): Map<string, number> {
  return new Map((inference?.requests ?? []).flatMap((request) => {
    const joules = joulesPerToken(request);
    return joules === null ? [] : [[`${request.pid}/${request.id ?? ""}`, joules] as [string, number]];
  }));
}

function fillOf(row: Row, at: number, { spread, energies, by }: Scale, isDark: boolean): string {
  if (by === "energy") {
    const joules = energies.get(row.request.key);
    const highest = Math.max(...energies.values());
    return joules === undefined ? unknownShade(isDark) : shadeOf(joules / highest, isDark);
  }
  const gap = row.request.gapMs(at);
  return Number.isNaN(gap) ? FIRST_TOKEN[isDark ? "dark" : "light"] : shadeOf(slowness({ took_ns: ns(gap) }, spread), isDark);
}

// The place of each cell: as many as fit, the latest last.
const perLine = (width: number) => Math.max(1, Math.floor(width / STEP));
const firstOf = (row: Row, width: number) => Math.max(row.request.first, row.count - LINES * perLine(width));

function drawRow(context: CanvasRenderingContext2D, row: Row, width: number, scale: Scale, picked: number | null, isDark: boolean): void {
  const across = perLine(width);
  const first = firstOf(row, width);
  context.clearRect(0, 0, width, LINES * STEP);
  for (let at = first; at < row.count; at++) {
    const x = ((at - first) % across) * STEP;
    const y = Math.floor((at - first) / across) * STEP;
    context.fillStyle = fillOf(row, at, scale, isDark);
    context.fillRect(x, y, CELL, CELL);
    if (at !== picked) continue;
    context.strokeStyle = isDark ? "#e8ebf0" : "#15191f";
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, CELL - 2, CELL - 2);
  }
}

function tokenText({ number, gap_ms, t_ms, phase }: LiveToken): string {
  const took = gap_ms === null ? "the first" : `${formatDuration(ns(gap_ms))} after the one before`;
  return `Token ${formatCount(number)}: ${took}, at ${formatDuration(ns(t_ms))}${phase ? `, ${phase}` : ""}.`;
}

function summaryOf({ request, count, state }: Row): string {
  const first = request.beginMs !== null && count > 0 && request.first === 0 ? request.at(0).t_ms - request.beginMs : null;
  const parts = [`${formatCount(count)} tokens`, first !== null && first >= 0 && `first after ${formatDuration(ns(first))}`, state !== "running" && state];
  return parts.filter(Boolean).join(", ");
}

function Strip({ row, width, scale, joules }: { row: Row; width: number; scale: Scale; joules: number | undefined }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [picked, setPicked] = useState<number | null>(null);
  const isDark = useDark();
  const { request, count } = row;
  const lines = Math.max(1, Math.min(LINES, Math.ceil((count - firstOf(row, width)) / perLine(width))));
  useEffect(() => {
    const element = canvas.current!;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(lines * STEP * ratio)];
    if (element.width !== wide || element.height !== high) [element.width, element.height] = [wide, high];
    const context = element.getContext("2d");
    if (!context || width <= 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawRow(context, row, width, scale, picked, isDark);
  }, [row, width, scale, picked, isDark, lines]);

  const tokenAt = (event: MouseEvent) => {
    const at = firstOf(row, width) + Math.floor(event.offsetY / STEP) * perLine(width) + Math.floor(event.offsetX / STEP);
    setPicked(at < count ? at : null);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perLine(width), ArrowUp: -perLine(width) }[event.key];
    if (event.key === "Escape") setPicked(null);
    else if (step && count) setPicked(Math.min(Math.max((picked ?? count - 1 - step) + step, firstOf(row, width)), count - 1));
    else return;
    event.preventDefault();
  };
  const token = picked !== null && picked >= request.first && picked < count ? request.at(picked) : null;
  const name = request.name ?? "without a name";
  return (
    <div class="strip">
      <p><b>{name}</b> <span class="dim">{summaryOf(row)}{joules !== undefined && `, ${formatCell(joules, JOULES)} a token`}</span></p>
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${lines * STEP}px` }} tabIndex={0} role="slider" aria-label={`Tokens of request ${name}`}
        aria-valuemin={1} aria-valuemax={Math.max(count, 1)} aria-valuenow={token?.number ?? Math.max(count, 1)} aria-valuetext={token ? tokenText(token) : summaryOf(row)}
        onMouseMove={tokenAt} onMouseLeave={() => setPicked(null)} onKeyDown={press} />
      {token && <p class="tip">{tokenText(token)}</p>}
    </div>
  );
}

function tableOf(rows: Row[]): Table {
  const columns: Column[] = ["pid", "request", "token", "t_ms", "gap_ms", "phase"].map((key) => ({ key, title: key, kind: key === "request" || key === "phase" ? "text" : "number" }));
  const cells: Cell[][] = rows.flatMap(({ request, count }) => Array.from({ length: count - request.first }, (_, at) => {
    const token = request.at(request.first + at);
    return [request.pid, request.name, token.number, token.t_ms, token.gap_ms, token.phase];
  }));
  return { key: "tokens", left_out: 0, columns, rows: cells };
}

export function TokenStream({ live, inference, width, isFollowed }: { live: LiveCapture; inference: Inference | null; width: number; isFollowed: boolean }) {
  const [by, setBy] = useState<Colour>("gap");
  const drawn = useRef<Row[]>([]);
  const rows = useLatest(live.topics.tokens, EVERY_MS, isFollowed, () => (drawn.current = rowsOf(live, drawn.current)));
  const spread = inference?.itl_ns ?? null;
  const energies = useMemo(() => energiesOf(inference), [inference]);
  const scale: Scale = useMemo(() => ({ spread, energies, by }), [spread, energies, by]);
  const all = live.tokens.size;
  return (
    <section class="card wide" aria-label="Tokens">
      <div class="head">
        <h3>Tokens</h3>
        {rows.length > 0 && <label>Colour is <select value={by} onChange={(event) => setBy(event.currentTarget.value as Colour)}>
          {Object.entries(COLOURS).map(([key, text]) => <option key={key} value={key} disabled={key === "energy" && !energies.size}>{text}</option>)}
        </select></label>}
        {rows.length > 0 && <span class="save">
          <button type="button" onClick={() => save("tokens.csv", csvOf(tableOf(rows)), "text/csv")}>CSV</button>
          <button type="button" onClick={() => save("tokens.json", jsonOf(tableOf(rows)), "application/json")}>JSON</button>
        </span>}
      </div>
      {!rows.length && <p class="empty">No token has come yet. They come from --hooks transformers, from vLLM, and from sonde.token() in your program.</p>}
      {rows.map((row) => <Strip key={row.request.key} row={row} width={width} scale={scale} joules={energies.get(row.request.key)} />)}
      {rows.length > 0 && <p class="foot">
        {by === "gap" && (spread ? `Blue is a first token; the redder, the longer since the one before: from ${formatDuration(spread.p50)} (median) to ${formatDuration(spread.p99)} (99th percentile).` : "Blue is a first token. Shades come with the first figures of the report.")}
        {by === "energy" && "The redder, the more joules for each token of the request, by the report."}
        {all > rows.length && ` ${formatCount(all - rows.length)} earlier requests are not drawn.`}
      </p>}
    </section>
  );
}
