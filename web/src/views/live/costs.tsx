// SPDX-License-Identifier: Apache-2.0
// What costs the most so far and of late: functions on CPUs, kernels on devices.
import { useRef } from "preact/hooks";
import { formatDuration } from "../../format";
import { useLatest } from "../../live/frames";
import type { Changing } from "../../live/frames";
import { StableOrder } from "../../live/order";
import type { Ranked } from "../../live/order";
import type { Table } from "../../report";
import { csvOf, jsonOf, save } from "../../save";

const EVERY_MS = 1000;
const SHOWN = 12;

interface CostRow {
  name: string;
  module: string | null;
  self_ms: number;
  recent_ms: number;
}

interface Costs {
  t_ms: number;
  rows: CostRow[];
}

const NONE: Costs = { t_ms: 0, rows: [] };
const timeText = (ms: number) => formatDuration(Math.round(ms * 1e6));

function tableOf({ rows }: Costs): Table {
  const columns = (["name", "module", "self_ms", "recent_ms"] as const).map((key) => ({ key, title: key, kind: key.endsWith("_ms") ? "number" as const : "text" as const }));
  return { key: null, left_out: 0, columns, rows: rows.map((row) => [row.name, row.module, row.self_ms, row.recent_ms]) };
}

function Mark({ ranked }: { ranked: Ranked<CostRow> }) {
  if (ranked.isNew) return <span class="mark">new</span>;
  return ranked.moved > 0 ? <span class="mark" title={`${ranked.moved} places up`}>▲{ranked.moved}</span> : null;
}

interface CostsProps {
  title: string;
  noun: string;
  changing: Changing;
  read: () => Costs | null;
  isFollowed: boolean;
  empty: string;
}

export function CostsPanel({ title, noun, changing, read, isFollowed, empty }: CostsProps) {
  const costs = useLatest(changing, EVERY_MS, isFollowed, read) ?? NONE;
  const order = useRef(new StableOrder<CostRow>((row) => `${row.name}\n${row.module ?? ""}`, (row) => row.self_ms));
  const ranked = order.current.rank(costs.rows, costs.t_ms).slice(0, SHOWN);
  const highest = Math.max(...costs.rows.map((row) => row.self_ms), 1e-9);
  const latest = Math.max(...costs.rows.map((row) => row.recent_ms), 1e-9);
  return (
    <section class="card" aria-label={title}>
      <div class="head">
        <h3>{title}</h3>
        {ranked.length > 0 && <span class="save">
          <button type="button" onClick={() => save(`${noun}s.csv`, csvOf(tableOf(costs)), "text/csv")}>CSV</button>
          <button type="button" onClick={() => save(`${noun}s.json`, jsonOf(tableOf(costs)), "application/json")}>JSON</button>
        </span>}
      </div>
      {!ranked.length ? <p class="empty">{empty}</p> : (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Table: ${title}`}><table class="costs">
          <thead><tr><th class="right">So far</th><th class="right">Last 10 s</th><th>{noun === "kernel" ? "Kernel" : "Function"}</th></tr></thead>
          <tbody>
            {ranked.map((entry) => (
              <tr key={entry.key}>
                <td class="right"><span class="bar" style={{ width: `${(100 * entry.row.self_ms) / highest}%` }} /><span class="cell">{timeText(entry.row.self_ms)}</span></td>
                <td class="right"><span class="bar" style={{ width: `${(100 * entry.row.recent_ms) / latest}%` }} /><span class="cell">{timeText(entry.row.recent_ms)}</span></td>
                <td title={`${entry.row.name} ${entry.row.module ?? ""}`}><span class="code">{entry.row.name}</span> <Mark ranked={entry} /> <span class="dim">{entry.row.module}</span></td>
              </tr>
            ))}
          </tbody>
        </table></div>
      )}
    </section>
  );
}
