// SPDX-License-Identifier: Apache-2.0
// Rows by cost that change places only when they differ clearly: a list that jumps cannot be read.

const CLEARLY = 1.1; // times the cost of the row above
const MARKED_MS = 5000;

export interface Ranked<Row> {
  row: Row;
  key: string;
  moved: number; // places up (above 0) or down, of late
  isNew: boolean;
}

interface Change {
  at: number; // t_ms
  moved: number;
  isNew: boolean;
}

export class StableOrder<Row> {
  private keys: string[] = [];
  private changes = new Map<string, Change>();

  constructor(private keyOf: (row: Row) => string, private costOf: (row: Row) => number) {}

  // `atMs`: when the rows were so; changes are marked for some seconds.
  rank(rows: Row[], atMs: number): Ranked<Row>[] {
    const byKey = new Map(rows.map((row) => [this.keyOf(row), row]));
    const isFirst = this.keys.length === 0;
    const before = this.keys;
    const known = before.filter((key) => byKey.has(key));
    const seen = new Set(known);
    const keys = this.sorted([...known, ...[...byKey.keys()].filter((key) => !seen.has(key))], byKey);
    if (!isFirst) this.note(before, keys, seen, atMs);
    this.keys = keys;
    return keys.map((key) => {
      const change = this.changes.get(key);
      const isLate = change !== undefined && atMs - change.at < MARKED_MS && atMs >= change.at;
      return { row: byKey.get(key)!, key, moved: isLate ? change.moved : 0, isNew: isLate && change.isNew };
    });
  }

  // Each moves up past those that cost clearly less.
  private sorted(keys: string[], byKey: Map<string, Row>): string[] {
    const cost = (key: string) => this.costOf(byKey.get(key)!);
    const sorted: string[] = [];
    for (const key of keys) {
      let at = sorted.length;
      while (at > 0 && cost(key) > CLEARLY * cost(sorted[at - 1]!)) at--;
      sorted.splice(at, 0, key);
    }
    return sorted;
  }

  private note(before: string[], keys: string[], seen: Set<string>, atMs: number): void {
    const places = new Map(before.filter((key) => seen.has(key)).map((key, at) => [key, at]));
    const stayed = keys.filter((key) => seen.has(key));
    stayed.forEach((key, at) => {
      const moved = places.get(key)! - at;
      if (moved > 0) this.changes.set(key, { at: atMs, moved, isNew: false });
    });
    for (const key of keys) if (!seen.has(key)) this.changes.set(key, { at: atMs, moved: 0, isNew: true });
    for (const key of this.changes.keys()) if (!keys.includes(key)) this.changes.delete(key);
  }
}
