// SPDX-License-Identifier: Apache-2.0
// Saving what a view shows: as CSV, JSON, SVG or PNG.
import type { Cell, Table } from "./report";

export function save(name: string, content: Blob | string, type = "text/plain"): void {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// RFC 4180. A text that a spreadsheet would take for a formula is quoted with an apostrophe, as by report --csv.
function csvCell(value: Cell): string {
  if (value === null) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

const keyed = (table: Table) => table.columns.map((column, at) => ({ key: column.key, at })).filter((c) => c.key !== null);

export function csvOf(table: Table): string {
  const columns = keyed(table);
  const lines = [columns.map((column) => csvCell(column.key)), ...table.rows.map((row) => columns.map((c) => csvCell(row[c.at] ?? null)))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

export function jsonOf(table: Table): string {
  const columns = keyed(table);
  const rows = table.rows.map((row) => Object.fromEntries(columns.map((column) => [column.key, row[column.at] ?? null])));
  return `${JSON.stringify(rows, null, 2)}\n`;
}

// Rows that have no columns of the report: the first line names them.
export function csvOfRows(names: string[], rows: Cell[][]): string {
  return [names, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}
