// SPDX-License-Identifier: Apache-2.0
// What happens again and again in a run: the rows of the report's sections, in the order of time. No DOM here.
import type { Cell, Column, Report, Table } from "./report";
import { tokensOf } from "./views/tokens";
import type { Inference } from "./views/tokens";

interface Kind {
  by: string; // the section
  orBy?: string; // where that has none
  title: string;
  tables: string[]; // keys of its table
  name: string; // key of the column that names a row
  duration: string | null; // key of the column that says how long it took
  missing: string;
}

export const KINDS: Record<string, Kind> = {
  step: { by: "step", title: "Step", tables: ["slowest"], name: "number", duration: "duration_ns", missing: "No steps were recorded: call sonde.step() or the profiler's step(), or see docs/python.md." },
  request: { by: "request", title: "Request", tables: ["requests"], name: "id", duration: "e2e_ns", missing: "No requests to a model were recorded: record with --hooks transformers or vllm, or call sonde.token()." },
  token: { by: "token", title: "Token", tables: [], name: "token", duration: "took_ns", missing: "No tokens were recorded: record with --hooks transformers, or call sonde.token()." },
  window: { by: "window", title: "Window", tables: ["rows"], name: "number", duration: "duration_ns", missing: "The recording has no windows: give sonde record a --window." },
  rank: { by: "rank", orBy: "temporal", title: "Rank", tables: ["rows", "ranks", "temporal"], name: "rank", duration: null, missing: "This is no job of several ranks: open a folder with the traces of all ranks, or record with a launcher that says its rank." },
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
    const table = section.tables.find(({ key, columns }) => kind.tables.includes(key ?? "") && columns.some((column) => column.key === kind.name));
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
  // Ranks have no time: they come by their numbers.
  items.sort((a, b) => (begin >= 0 ? (a.fromNs ?? Infinity) - (b.fromNs ?? Infinity) : Number(a.name) - Number(b.name)));
  return { table: { ...table, rows: items.map(({ row }) => row) }, items, leftOut: table.left_out, oddMetric: duration, oddFrom: name === "step" ? ninetyFifth(report) : null };
}

// Columns that bars can be made of: numbers with a title that differ, the duration first.
export function metricsOf({ table, oddMetric }: Items): number[] {
  const kinds = ["ns", "count", "bytes", "joules", "watts", "share", "number"];
  const found = table.columns.flatMap((column, at) => (column.title && column.key !== "begin_ns" && kinds.includes(column.kind) && table.rows.some((row) => Number(row[at] ?? 0)) ? [at] : []));
  return found.sort((a, b) => Number(b === oddMetric) - Number(a === oddMetric));
}

const TOKEN_COLUMNS: Column[] = [
  { key: "token", title: "Token", kind: "integer" },
  { key: "begin_ns", title: "Begin", kind: "ns" },
  { key: "took_ns", title: "Time", kind: "ns" },
  { key: "request", title: "Request", kind: "text" },
];

// Tokens of all requests, which the report has as times between them. Null: there are none.
export function tokenItems(inference: Pick<Inference, "requests" | "itl_ns"> | null, most: number): Items | null {
  const rows = (inference?.requests ?? []).flatMap((request) => tokensOf(request).map((token): Cell[] => [token.number, token.from_ns, token.took_ns, request.id]));
  if (!rows.length) return null;
  rows.sort((a, b) => Number(a[1] ?? Infinity) - Number(b[1] ?? Infinity));
  const items = rows.slice(0, most).map((row): Item => {
    const fromNs = row[1] === null ? null : Number(row[1]);
    return { name: row[3] === null ? String(row[0]) : `${row[0]} of request ${row[3]}`, row, fromNs, toNs: fromNs === null ? null : fromNs + Number(row[2]) };
  });
  const table: Table = { key: "tokens", left_out: rows.length - items.length, columns: TOKEN_COLUMNS, rows: items.map(({ row }) => row) };
  return { table, items, leftOut: table.left_out, oddMetric: 2, oddFrom: inference?.itl_ns?.p99 ?? null };
}
