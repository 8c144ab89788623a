// SPDX-License-Identifier: Apache-2.0
// A report as the program writes it for the page: schema/page.schema.json.

export type Kind =
  | "text" | "integer" | "count" | "ns" | "bytes" | "share" | "joules" | "watts" | "number" | "flag"
  | "rows" | "object" | "map" | "list";

export type Cell = string | number | boolean | null;

export interface Column {
  key: string | null; // in JSON and CSV
  title: string | null; // null: not shown
  kind: Kind;
  help?: string;
  unknown?: string; // what stands for null
  decimals?: number;
  digits?: number;
  is_change?: boolean;
  is_dim?: boolean;
  is_path?: boolean;
  is_source?: boolean;
  is_name?: boolean;
  is_right?: boolean;
}

export interface Table {
  key: string | null;
  left_out: number;
  columns: Column[];
  rows: Cell[][];
}

export interface TextBlock {
  kind: "title" | "heading" | "sentence" | "advice" | "lines";
  text: string;
  indent?: number;
}

export interface TableBlock {
  kind: "table";
  table: number;
  columns: number[]; // places in the table's columns
  limit: number; // rows at first; 0: all
  left_out: number;
  noun: string | null;
  rest_share?: number;
}

export interface BarsBlock {
  kind: "bars";
  table: number;
  title: string;
  unit: string;
  scale: number;
}

export type Block = TextBlock | TableBlock | BarsBlock;

export interface Advice {
  section: string;
  id: string;
  sentence: string;
  evidence: Record<string, number | null>;
  saves_ns: number | null;
  docs: string | null; // "docs/python.md": the page that says more
}

export interface Section {
  key: string | null;
  by: string | null; // what --by calls it
  title: string | null;
  summary: string | null;
  blocks: Block[];
  tables: Table[];
  advice: Advice[];
}

export interface Report {
  format: "sonde-page";
  version: number;
  sonde_version: string;
  sections: Section[];
  names: { by: string; summary: string }[];
}

// A call tree: src/query/query.h. Nodes and labels are columns. A node's parent stands before it; the first is the root.
export interface CallTree {
  weight: string; // --weight
  unit: "ns" | "uj" | "bytes" | "samples";
  paths: string[]; // of one side, or of before and after
  totals: number[]; // of each side
  names: string[]; // of labels
  modules: string[];
  kinds: string[];
  label: number[]; // of nodes
  parent: number[];
  self: number[][]; // of each side, of nodes
  total: number[][];
  pruned: { nodes: number; total: number[] | number };
  notes: string[];
}
