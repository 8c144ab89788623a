// SPDX-License-Identifier: Apache-2.0
// The smaller panels: layers by components, what runs now, why devices were idle.
import { useState } from "preact/hooks";
import type { LiveLayers } from "../../api";
import { formatDuration } from "../../format";
import { useLatest } from "../../live/frames";
import type { LiveCapture } from "../../live/state";
import type { Loaded } from "../../loaded";
import type { Report, Table } from "../../report";
import { csvOf, jsonOf, save } from "../../save";
import { useDark } from "../../theme";
import { HeatMap } from "../model";
import type { Grid } from "../model";
import { SectionView } from "../section";

const EVERY_MS = 1000;
const CURRENT_MS = 250;
const ROWS = 40; // of what runs now
const NS = { key: null, title: "", kind: "ns" as const };

export type LayerMetric = "own_ms" | "recent_ms";

// The components that take the most stand first, as in the view of the model.
export function liveGridOf({ rows }: LiveLayers, metric: LayerMetric): Grid {
  const cells = new Map<string, number>();
  const sums = new Map<string, number>();
  for (const row of rows) {
    const value = row[metric] * 1e6;
    sums.set(row.component, (sums.get(row.component) ?? 0) + row.own_ms);
    if (value > 0) cells.set(`${row.layer}/${row.component}`, (cells.get(`${row.layer}/${row.component}`) ?? 0) + value);
  }
  const layers = [...new Set(rows.map(({ layer }) => layer))].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
  const roles = [...sums.keys()].sort((a, b) => sums.get(b)! - sums.get(a)!);
  return { roles, layers, cells: new Map([...cells].map(([key, value]) => [key, Math.round(value)])), largest: Math.max(0, ...cells.values()) };
}

function layerTable({ rows }: LiveLayers): Table {
  const keys = ["pid", "layer", "component", "calls", "own_ms", "recent_ms"] as const;
  const columns = keys.map((key) => ({ key, title: key, kind: key === "component" ? "text" as const : "number" as const }));
  return { key: "layers", left_out: 0, columns, rows: rows.map((row) => keys.map((key) => row[key])) };
}

function SaveTable({ name, table }: { name: string; table: () => Table }) {
  return (
    <span class="save">
      <button type="button" onClick={() => save(`${name}.csv`, csvOf(table()), "text/csv")}>CSV</button>
      <button type="button" onClick={() => save(`${name}.json`, jsonOf(table()), "application/json")}>JSON</button>
    </span>
  );
}

export function LayersPanel({ live, isFollowed }: { live: LiveCapture; isFollowed: boolean }) {
  const layers = useLatest(live.topics.layers, EVERY_MS, isFollowed, () => live.layers);
  const [metric, setMetric] = useState<LayerMetric>("own_ms");
  const isDark = useDark();
  const rows = layers?.rows ?? [];
  return (
    <section class="card wide" aria-label="Layers">
      <div class="head">
        <h3>Layers by component</h3>
        {rows.length > 0 && <label>Time <select value={metric} onChange={(event) => setMetric(event.currentTarget.value as LayerMetric)}>
          <option value="own_ms">so far</option>
          <option value="recent_ms">of the last 10 s</option>
        </select></label>}
        {rows.length > 0 && <SaveTable name="layers" table={() => layerTable(layers!)} />}
      </div>
      {!rows.length
        ? <p class="empty">No layer has been seen: record with --hooks transformers:component, or call sonde.watch(model).</p>
        : <HeatMap grid={liveGridOf(layers!, metric)} column={NS} isDark={isDark} />}
    </section>
  );
}

export function CurrentPanel({ live, isFollowed }: { live: LiveCapture; isFollowed: boolean }) {
  const current = useLatest(live.topics.current, CURRENT_MS, isFollowed, () => live.current);
  const rows = current?.rows ?? [];
  return (
    <section class="card" aria-label="Running now">
      <h3>Running now</h3>
      {!rows.length ? <p class="empty">No range is open: ranges come from NVTX, from sonde's hooks and from sonde_range_begin().</p> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Table: running now"><table>
          <thead><tr><th>Thread</th><th>Range</th><th class="right">For</th></tr></thead>
          <tbody>
            {rows.slice(0, ROWS).map((row) => (
              <tr key={`${row.tid}/${row.domain}`}>
                <td>{row.thread ?? row.tid} <span class="dim">{row.pid}</span></td>
                <td><span class="code">{row.name}</span> <span class="dim">{row.domain}</span></td>
                <td class="right">{formatDuration(Math.max(0, Math.round((current!.t_ms - row.since_ms) * 1e6)))}</td>
              </tr>
            ))}
          </tbody>
        </table></div>
      )}
      {rows.length > ROWS && <p class="foot">{rows.length - ROWS} more are not shown.</p>}
    </section>
  );
}

// As the report has it: it is asked for again as the recording grows.
export function IdlePanel({ live, idle, isFollowed }: { live: LiveCapture; idle: Loaded<Report | null>; isFollowed: boolean }) {
  const hasKernels = useLatest(live.topics.summary, EVERY_MS, isFollowed, () => (live.summary?.kernels ?? 0) > 0);
  const sections = idle.state === "ready" ? idle.value?.sections.filter(({ by }) => by === "idle") ?? [] : [];
  const blocks = sections.flatMap((section) => section.blocks);
  return (
    <section class={sections.length ? "card wide" : "card"} aria-label="Why devices were idle">
      {!blocks.some(({ kind }) => kind === "heading" || kind === "title") && <h3>Why devices were idle</h3>}
      {!hasKernels
        ? <p class="empty">No work of a device has been recorded.</p>
        : idle.state === "loading" ? <p role="status">The first figures are being made …</p>
        : idle.state === "failed" ? <p class="empty">{idle.why}</p>
        : sections.map((section, at) => <SectionView key={at} section={section} />)}
    </section>
  );
}
