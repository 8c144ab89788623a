// SPDX-License-Identifier: Apache-2.0
// The page's formats against those of the terminal.
import { expect, test } from "vitest";
import vectors from "../../schema/formats.json";
import { formatCell } from "../src/format";
import type { Section } from "../src/report";

interface Vectors extends Section {
  texts: string[];
}

test("every value reads as in the terminal", () => {
  const pairs = (vectors as unknown as Vectors[]).flatMap(({ tables, texts }) => {
    const column = tables[0]!.columns[0]!;
    expect(texts.length).toBe(tables[0]!.rows.length);
    return texts.map((text, at) => ({ column, value: tables[0]!.rows[at]![0]!, text }));
  });
  expect(pairs.length).toBeGreaterThan(300);
  expect(pairs.map(({ column, value }) => ({ column, value, text: formatCell(value, column) }))).toEqual(pairs);
});
