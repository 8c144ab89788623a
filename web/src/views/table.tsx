// SPDX-License-Identifier: Apache-2.0
// Any table of the report: sorted by a click on a column, a few rows at first, saved as CSV or JSON.
import { useMemo, useState } from "preact/hooks";
import { formatCell, formatCount } from "../format";
import type { Cell, Column, Table, TableBlock } from "../report";
import { csvOf, jsonOf, save } from "../save";

const STEP = 100; // rows that "more" adds
const MANY = 50; // a table that says no limit shows this many, or a few of more
const FIRST = 20;

interface Sorting {
  column: number;
  isDown: boolean;
}

const isText = (column: Column) => column.kind === "text";
const isRight = (column: Column) => !isText(column) || column.is_right;

function compare(a: Cell, b: Cell): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b));
  return Number(a) - Number(b);
}

function sorted(table: Table, sorting: Sorting | null): Cell[][] {
  if (!sorting) return table.rows;
  const sign = sorting.isDown ? -1 : 1;
  return [...table.rows].sort((a, b) => sign * compare(a[sorting.column] ?? null, b[sorting.column] ?? null));
}

function HeadCell({ column, at, sorting, onSort }: { column: Column; at: number; sorting: Sorting | null; onSort: (s: Sorting) => void }) {
  const mine = sorting?.column === at ? sorting : null;
  const click = () => onSort({ column: at, isDown: mine ? !mine.isDown : !isText(column) });
  if (!column.title) return <td />;
  return (
    <th class={isRight(column) ? "right" : ""} title={column.help} aria-sort={mine ? (mine.isDown ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={click}>{column.title}{mine ? (mine.isDown ? " ▾" : " ▴") : ""}</button>
    </th>
  );
}

function BodyCell({ value, column, largest }: { value: Cell; column: Column; largest: number }) {
  const text = formatCell(value, column);
  const classes = [isRight(column) ? "right" : "", column.is_dim ? "dim" : "", column.is_name || column.is_path || column.is_source ? "code" : "", column.is_path ? "path" : ""];
  const bar = column.kind === "share" && largest > 0 && value !== null ? `${Math.min(100, (100 * Math.abs(Number(value))) / largest)}%` : null;
  return (
    <td class={classes.filter(Boolean).join(" ")} title={isText(column) ? text : undefined}>
      {bar && <span class="bar" style={{ width: bar }} />}
      <span class="cell">{column.is_path ? <bdi>{text}</bdi> : text}</span>
    </td>
  );
}

export function TableView({ table, block, name }: { table: Table; block: TableBlock; name: string }) {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [limit, setLimit] = useState(block.limit || (table.rows.length > MANY ? FIRST : table.rows.length));
  const rows = useMemo(() => sorted(table, sorting), [table, sorting]);
  const columns = block.columns.map((at) => ({ at, column: table.columns[at]! }));
  const largest = useMemo(() => new Map(columns.map(({ at }) => [at, Math.max(0, ...table.rows.map((row) => Math.abs(Number(row[at] ?? 0)) || 0))])), [table]);
  const hidden = Math.max(0, rows.length - limit);
  const beyond = table.left_out + block.left_out;

  if (!table.rows.length) return null;
  return (
    <div class="table">
      <div class="scroll" tabIndex={0} role="region" aria-label={block.noun ?? table.key ?? name}>
        <table>
          <thead><tr>{columns.map(({ column, at }) => <HeadCell key={at} {...{ column, at, sorting }} onSort={setSorting} />)}</tr></thead>
          <tbody>
            {rows.slice(0, limit).map((row, number) => (
              <tr key={number}>{columns.map(({ column, at }) => <BodyCell key={at} value={row[at] ?? null} column={column} largest={largest.get(at)!} />)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="foot">
        {hidden > 0 && <button type="button" onClick={() => setLimit(limit + STEP)}>{formatCount(Math.min(hidden, STEP))} more</button>}
        {hidden + beyond > 0 && <span>{formatCount(hidden + beyond)} more {block.noun ?? "rows"}{beyond ? `, ${formatCount(beyond)} of them not here` : ""}</span>}
        <span class="save">
          <button type="button" onClick={() => save(`${name}.csv`, csvOf(table), "text/csv")}>CSV</button>
          <button type="button" onClick={() => save(`${name}.json`, jsonOf(table), "application/json")}>JSON</button>
        </span>
      </p>
    </div>
  );
}
