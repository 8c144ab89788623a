// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { hrefOf, isAt, parsePlace } from "../src/router";
import { csvOf, jsonOf } from "../src/save";
import type { Table } from "../src/report";

test("a place and its address", () => {
  const place = { view: "flame", what: "cpu+gpu", query: { search: "a b&c", zoom: "0.1" } };
  expect(parsePlace(hrefOf(place))).toEqual(place);
  expect(parsePlace("")).toEqual({ view: "", what: "", query: {} });
  expect(hrefOf({ view: "flame", query: { search: "" } })).toBe("#/flame");
});

test("what writes to the address later knows whether the page went elsewhere", () => {
  const place = parsePlace("#/steps/rank?n=1&capture=a");
  const at = (hash: string) => {
    Object.assign(globalThis, { location: { hash } });
    return isAt(place);
  };
  expect(at("#/steps/rank?capture=a&n=2&metric=3")).toBe(true);
  expect(at("#/steps/token?capture=a")).toBe(false);
  expect(at("#/steps/rank?n=1&capture=b")).toBe(false);
  expect(at("")).toBe(false);
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
