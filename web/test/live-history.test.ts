// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { History, TIERS, columnMsOf } from "../src/live/history";

// Of every column that has readings: [index, low, mean, high].
function read(history: History, fromMs: number, toMs: number, columnMs: number) {
  const columns = history.read(fromMs, toMs, columnMs);
  return [...columns.weight].flatMap((weight, at) => (weight ? [[at, columns.low[at]!, columns.mean(at)!, columns.high[at]!]] : []));
}

test("a column has the least, the mean by time and the most of its readings", () => {
  const history = new History();
  history.add(0, 30, 10, 10, 10);
  history.add(30, 100, 20, 20, 20);
  history.add(100, 200, 5, 5, 5);
  expect(read(history, 0, 199, 100)).toEqual([[0, 10, 17, 20], [1, 5, 5, 5]]);
  expect(read(history, 0, 199, 200)).toEqual([[0, 5, 11, 20]]);
  expect(history.latest).toBe(5);
});

test("a long interval fills its columns, and what was not measured is a gap", () => {
  const history = new History();
  history.add(0, 500, 7, 7, 7);
  history.add(900, 1000, 9, 9, 9);
  expect(read(history, 0, 999, 100).map(([at]) => at)).toEqual([0, 1, 2, 3, 4, 9]);
});

test("what was sent again counts once", () => {
  const [once, twice] = [new History(), new History()];
  for (const history of [once, twice]) for (let t = 0; t < 2000; t += 50) history.add(t, t + 50, t, t, t);
  for (let t = 0; t < 2000; t += 50) twice.add(t, t + 50, t, t, t);
  expect(read(twice, 0, 2000, 300)).toEqual(read(once, 0, 2000, 300));
});

test("a peak of a hundredth of a second is seen after a day, in bounded memory", () => {
  const history = new History();
  const day = 86_400_000;
  for (let t = 0; t < day; t += 60_000) history.add(t, t + 60_000, 50, 50, 50);
  expect(Math.max(...history.read(0, day, 120_000).high)).toBe(50);
  const spiky = new History();
  spiky.add(0, 10, 400, 400, 400);
  spiky.add(10, 20, 50, 50, 50);
  for (let t = 20; t < day; t += 5000) spiky.add(t, t + 5000, 50, 50, 50);
  expect(spiky.read(0, day, columnMsOf(0, day, 700)).high[0]).toBe(400);
  // The first hundred milliseconds are no longer in the finest tier, which does not stand in for a coarser one.
  expect(spiky.read(0, 1000, 100).high[0]).toBe(400);
});

test("tiers agree: the same readings at any width have the same extremes and mean", () => {
  const history = new History();
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  let sum = 0;
  let [least, most] = [Infinity, -Infinity];
  for (let t = 0; t < 240_000; t += 100) {
    const watts = Math.fround(20 + 80 * random());
    history.add(t, t + 100, watts, watts, watts);
    sum += watts * 100;
    [least, most] = [Math.min(least, watts), Math.max(most, watts)];
  }
  for (const columnMs of [100, 300, 1000, 7000, 10_000, 120_000]) {
    const columns = history.read(0, 239_999, columnMs);
    expect(Math.min(...columns.low)).toBe(least);
    expect(Math.max(...columns.high)).toBe(most);
    expect(columns.sum.reduce((a, b) => a + b, 0)).toBeCloseTo(sum, 3);
  }
});

test("columns are whole buckets, and lie on the same places when time moves on", () => {
  for (const [from, to, wanted] of [[0, 30_000, 1200], [5_000, 125_000, 900], [0, 1_800_000, 1000], [0, 86_400_000, 300]] as const) {
    const columnMs = columnMsOf(from, to, wanted);
    expect(TIERS.some(({ widthMs }) => columnMs % widthMs === 0)).toBe(true);
    expect((to - from) / columnMs).toBeLessThanOrEqual(wanted);
  }
  const history = new History();
  for (let t = 0; t < 60_000; t += 100) history.add(t, t + 100, t, t, t);
  const columnMs = columnMsOf(0, 30_000, 100);
  const [early, late] = [history.read(0, 30_000, columnMs), history.read(10 * columnMs + 37, 30_000 + 10 * columnMs + 37, columnMs)];
  expect(late.high[0]).toBe(early.high[10]);
});

test("readings that cannot be are not taken", () => {
  const history = new History();
  history.add(-5, 10, 1, 1, 1);
  history.add(10, 5, 1, 1, 1);
  history.add(0, 1e300, 1, 1, 1);
  history.add(0, 10, NaN, NaN, NaN);
  history.add(0, 10, 1, Infinity, 1);
  expect(history.latest).toBe(null);
  expect(read(history, 0, 1000, 100)).toEqual([]);
});
