// SPDX-License-Identifier: Apache-2.0
// What graphs are shaded by: steps and windows in turns, requests by their phases. Of the report's sections.
import type { Report } from "../report";
import { itemsOf } from "../steps";
import type { Band } from "./draw";

export const SHADES: Record<string, string> = { none: "nothing", step: "steps", window: "windows", request: "requests: prefill, decode" };

export interface Shades {
  kind: string;
  bands: Band[];
}

// Without a choice: the first of these that the recording has.
export const UNASKED = ["request", "step", "window"];

export function bandsOf(kind: string, report: Report): Band[] {
  const found = kind ? itemsOf(kind, report) : null;
  if (!found) return [];
  const column = (key: string) => found.table.columns.findIndex((candidate) => candidate.key === key);
  const [queue, prefill] = [column("queue_ns"), column("prefill_ns")];
  return found.items.flatMap(({ name, row, fromNs, toNs }, at): Band[] => {
    if (fromNs === null || toNs === null) return [];
    if (kind !== "request") return [{ fromNs, toNs, kind: at % 2, name }];
    const begins = fromNs + Number(row[queue] ?? 0);
    const decodes = begins + Number(row[prefill] ?? 0);
    return [{ fromNs: begins, toNs: decodes, kind: 1, name: `${name}, prefill` }, { fromNs: decodes, toNs, kind: 2, name: `${name}, decode` }];
  });
}
