// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { hrefOf, parsePlace } from "../src/router";
import { csvOf, jsonOf } from "../src/save";
import type { Table } from "../src/report";

test("a place and its address", () => {
  const place = { view: "flame", what: "cpu+gpu", query: { search: "a b&c", zoom: "0.1" } };
  expect(parsePlace(hrefOf(place))).toEqual(place);
  expect(parsePlace("")).toEqual({ view: "", what: "", query: {} });
  expect(hrefOf({ view: "flame", query: { search: "" } })).toBe("#/flame");
});

const table: Table = {
  key: "rows", left_out: 0,
  columns: [
    { key: null, title: "Shown only", kind: "text" },
    { key: "name", title: "Name", kind: "text" },
    { key: "total_ns", title: "Total", kind: "ns" },
  ],
  rows: [["x", "=SUM(A1), \"q\"", -5], ["y", null, null]],
};

test("CSV has the keys, quotes what needs it and defuses formulas", () => {
  expect(csvOf(table)).toBe("name,total_ns\r\n\"'=SUM(A1), \"\"q\"\"\",-5\r\n,\r\n");
});

test("JSON has the keys", () => {
  expect(JSON.parse(jsonOf(table))).toEqual([{ name: "=SUM(A1), \"q\"", total_ns: -5 }, { name: null, total_ns: null }]);
});
