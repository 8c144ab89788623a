// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Block, Section } from "../src/report";
import { nameOf } from "../src/views/names";
import { withoutAdvice } from "../src/views/section";

const text = (kind: "title" | "heading" | "sentence" | "advice", of: string): Block => ({ kind, text: of });
const sectionOf = (...blocks: Block[]): Section => ({ key: "a", by: "a", title: null, summary: null, tables: [], advice: [], blocks });
const left = (...blocks: Block[]) => withoutAdvice(sectionOf(...blocks)).blocks.map((block) => ("text" in block ? block.text : block.kind));

test("advice that stands above the report is not in its section again", () => {
  expect(left(text("heading", "Where"), text("sentence", "Of 3 ms"), text("advice", "Launch less."))).toEqual(["Where", "Of 3 ms"]);
});

test("a heading with nothing but advice goes with it, and what explains the advice", () => {
  expect(left(text("heading", "What to change"), text("advice", "Wait less."), text("sentence", "docs say how"), text("heading", "Table"), text("sentence", "rows"))).toEqual(["Table", "rows"]);
  expect(left(text("title", "a.json"), text("advice", "Record more."))).toEqual(["a.json"]);
});

test("sections that are not shown have names that people read", () => {
  expect(nameOf("cpu-operators")).toBe("Operators of the CPU");
  expect(nameOf("unheard-of")).toBe("Unheard of");
});
