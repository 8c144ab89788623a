// SPDX-License-Identifier: Apache-2.0
// What happens again and again in a run: the rows of the report's sections, in the order of time. No DOM here.
import type { Cell, Report, Table } from "./report";

interface Kind {
  by: string; // the section
  title: string;
  table: string; // key of its table
  name: string; // key of the column that names a row
  duration: string | null; // key of the column that says how long it took
  missing: string;
}

export const KINDS: Record<string, Kind> = {
  step: { by: "step", title: "Step", table: "slowest", name: "number", duration: "duration_ns", missing: "No steps were recorded: call sonde.step() or the profiler's step(), or see docs/python.md." },
  request: { by: "request", title: "Request", table: "requests", name: "id", duration: "e2e_ns", missing: "No requests to a model were recorded: record with --hooks transformers or vllm, or call sonde.token()." },
  window: { by: "window", title: "Window", table: "rows", name: "number", duration: "duration_ns", missing: "The recording has no windows: give sonde record a --window." },
  rank: { by: "rank", title: "Rank", table: "rows", name: "rank", duration: null, missing: "This is no job of several ranks: open a folder with the traces of all ranks, or record with a launcher that says its rank." },
};

export interface Item {
  name: string;
  row: Cell[];
  fromNs: number | null; // since the recording began
  toNs: number | null;
}

export interface Items {
  table: Table;
  items: Item[];
  leftOut: number;
  oddMetric: number; // a column of the table
  oddFrom: number | null; // a value of it that the report calls the 95th percentile
}

function tableOf(report: Report, kind: Kind): Table | null {
  for (const section of report.sections) {
    const table = section.tables.find(({ key, columns }) => key === kind.table && columns.some((column) => column.key === kind.name));
    if (table?.rows.length) return table;
  }
  return null;
}

// Where the report has one row for all steps of a program, and it is the only one.
function ninetyFifth(report: Report): number | null {
  const rows = report.sections.flatMap(({ tables }) => tables).filter(({ key, columns }) => key === "rows" && columns.some((column) => column.key === "p95_ns"));
  if (rows.length !== 1 || rows[0]!.rows.length !== 1) return null;
  const value = rows[0]!.rows[0]![rows[0]!.columns.findIndex(({ key }) => key === "p95_ns")];
  return typeof value === "number" ? value : null;
}

// Ranks and processes number their steps each: what is not the first of a name gets a number behind it.
function namer(): (name: string) => string {
  const seen = new Map<string, number>();
  return (name) => {
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count > 1 ? `${name}, ${count}.` : name;
  };
}

// Null: the report has none.
export function itemsOf(name: string, report: Report): Items | null {
  const kind = KINDS[name]!;
  const table = tableOf(report, kind);
  if (!table) return null;
  const at = (key: string | null) => table.columns.findIndex((column) => column.key !== null && column.key === key);
  const [begin, duration, label] = [at("begin_ns"), at(kind.duration), at(kind.name)];
  const nameOf = namer();
  const items = table.rows.map((row, number): Item => {
    const from = row[begin];
    const length = row[duration];
    const fromNs = typeof from === "number" ? from : null;
    return { name: nameOf(String(row[label] ?? number + 1)), row, fromNs, toNs: fromNs !== null && typeof length === "number" ? fromNs + length : null };
  });
  if (begin >= 0) items.sort((a, b) => (a.fromNs ?? Infinity) - (b.fromNs ?? Infinity));
  return { table: { ...table, rows: items.map(({ row }) => row) }, items, leftOut: table.left_out, oddMetric: duration, oddFrom: name === "step" ? ninetyFifth(report) : null };
}

// Columns that bars can be made of: numbers with a title that differ, the duration first.
export function metricsOf({ table, oddMetric }: Items): number[] {
  const kinds = ["ns", "count", "bytes", "joules", "watts", "share", "number"];
  const found = table.columns.flatMap((column, at) => (column.title && column.key !== "begin_ns" && kinds.includes(column.kind) && table.rows.some((row) => Number(row[at] ?? 0)) ? [at] : []));
  return found.sort((a, b) => Number(b === oddMetric) - Number(a === oddMetric));
}
