// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { tableOf } from "../src/chart/chart";
import { isWide, niceStep, scaleOf } from "../src/chart/scale";

test("steps of an axis are 1, 2 or 5 times a power of ten", () => {
  expect([0.7, 3, 9, 40, 99, 1000].map((span) => niceStep(span, 5))).toEqual([0.2, 1, 2, 10, 20, 200]);
});

test("a linear axis has zero on it, and the most within it", () => {
  const scale = scaleOf([3, 41], false);
  expect([scale.from, scale.to, scale.at(0), scale.at(scale.to)]).toEqual([0, 50, 0, 1]);
  expect(scale.ticks).toEqual([0, 10, 20, 30, 40, 50]);
  expect(scaleOf([-3, 4], false).ticks).toEqual([-4, -2, 0, 2, 4]);
});

test("ticks have no digits that adding up leaves behind", () => {
  expect(scaleOf([0, 0.6], false).ticks).toEqual([0, 0.2, 0.4, 0.6]);
});

test("a logarithmic axis goes by powers of ten", () => {
  const scale = scaleOf([1, 64], true);
  expect([scale.from, scale.to]).toEqual([1, 100]);
  expect(scale.ticks).toEqual([1, 2, 5, 10, 20, 50, 100]);
  expect(scale.at(10)).toBeCloseTo(0.5);
  expect(scaleOf([1e-9, 1e9], true).ticks.length).toBeLessThanOrEqual(6);
  expect(scaleOf([1000, 1000], true).to).toBeGreaterThan(scaleOf([1000, 1000], true).from);
});

test("what has no logarithm gets a linear axis", () => {
  expect(scaleOf([0, 100], true).isLog).toBe(false);
  expect(scaleOf([-5, 100], true).isLog).toBe(false);
});

test("one value, none, and what is no number", () => {
  for (const values of [[], [7], [0], [NaN], [Infinity, 3], [-2]]) {
    const scale = scaleOf(values, false);
    expect(scale.to).toBeGreaterThan(scale.from);
    for (const value of values.filter(Number.isFinite)) {
      expect(scale.at(value)).toBeGreaterThanOrEqual(0);
      expect(scale.at(value)).toBeLessThanOrEqual(1);
    }
  }
});

test("values that lie far apart", () => {
  expect(isWide([1, 2, 64])).toBe(true);
  expect(isWide([1, 2, 10])).toBe(false);
  expect(isWide([0, 1, 100])).toBe(false);
});

test("the table of a chart has every value, and none of a fit", () => {
  const point = (x: number, y: number, note?: string) => ({ x, y, name: `p${x}`, ...(note && { note }) });
  const table = tableOf({
    name: "n", title: "t", x: { title: "Batch", kind: "number" }, y: { title: "J/token", kind: "number" },
    series: [{ name: "a", isLine: true, points: [point(1, 2, "best"), point(2, 3)] }, { name: "fit", isLine: true, isFit: true, points: [point(9, 9)] }],
  });
  expect(table.rows).toEqual([["a", "p1", 1, 2, "best"], ["a", "p2", 2, 3, null]]);
});
