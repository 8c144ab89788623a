// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { LiveSession } from "../src/api";
import { StableOrder } from "../src/live/order";
import { PhaseHistory, bandsOf } from "../src/live/phases";
import { clockText, dataOf, highestOf, latestSpan, movedSpan, pictureOf, readingAt, roundUp, tableOf } from "../src/live/power";
import { LiveCapture } from "../src/live/state";
import { csvOf } from "../src/save";
import { liveGridOf } from "../src/views/live/panels";

interface Row { name: string; cost: number }
const order = () => new StableOrder<Row>((row) => row.name, (row) => row.cost);
const rows = (costs: Record<string, number>) => Object.entries(costs).map(([name, cost]) => ({ name, cost }));
const shown = (ranked: { key: string; moved: number; isNew: boolean }[]) => ranked.map(({ key, moved, isNew }) => `${key}${moved ? `+${moved}` : ""}${isNew ? "*" : ""}`).join(" ");

test("rows change places only when they differ clearly, and changes are marked for a while", () => {
  const list = order();
  expect(shown(list.rank(rows({ a: 100, b: 90, c: 10 }), 0))).toBe("a b c");
  expect(shown(list.rank(rows({ b: 105, a: 100, c: 10 }), 1000))).toBe("a b c");
  expect(shown(list.rank(rows({ b: 130, a: 100, c: 10, d: 50 }), 2000))).toBe("b+1 a d* c");
  expect(shown(list.rank(rows({ b: 130, a: 100, c: 10, d: 50 }), 2500))).toBe("b+1 a d* c");
  expect(shown(list.rank(rows({ b: 130, a: 100, d: 50 }), 8000))).toBe("b a d");
});

test("a row that grows from the end to the top passes all", () => {
  const list = order();
  list.rank(rows({ a: 4, b: 3, c: 2, d: 1 }), 0);
  expect(shown(list.rank(rows({ a: 4, b: 3, c: 2, d: 50 }), 1))).toBe("d+3 a b c");
});

test("phases lie where they were; what is open reaches to now; thousands in a pixel are one", () => {
  const history = new PhaseHistory();
  history.take({ capture: "", phases: [{ id: 1, kind: "phase", name: "prefill", pid: 1, t_ms: 100, end_ms: 200 }, { id: 2, kind: "phase", name: "decode", pid: 1, t_ms: 200, end_ms: null }] });
  expect(bandsOf(history.all(), 0, 1000, 800, 500)).toEqual([
    { kind: "phase", name: "prefill", x: 50, width: 50, isOpen: false }, { kind: "phase", name: "decode", x: 100, width: 300, isOpen: true },
  ]);
  history.take({ capture: "", phases: [{ id: 2, kind: "phase", name: "decode", pid: 1, t_ms: 200, end_ms: 300 }] });
  expect(history.size).toBe(2);
  expect(history.at(250).map(({ name }) => name)).toEqual(["decode"]);
  expect(bandsOf(history.all(), 0, 1000, 800, 500).at(-1)).toMatchObject({ x: 100, width: 50, isOpen: false });
  expect(bandsOf(history.all(), 400, 1000, 800, 500)).toEqual([]);
  const many = new PhaseHistory();
  many.take({ capture: "", phases: Array.from({ length: 10_000 }, (_, id) => ({ id, kind: "step" as const, name: "step", pid: 1, t_ms: id, end_ms: id + 1 })) });
  expect(bandsOf(many.all(), 0, 10_000, 10_000, 500).length).toBeLessThanOrEqual(501);
});

function recorded(): LiveCapture {
  const live = new LiveCapture("c");
  const rail = { parent: null, source: "perf", device: null, part: "cpu", quality: "counter", is_replayed: false, period_ms: 100, limit_w: null };
  live.session = { rails: [{ ...rail, rail: 1, name: "package-0" }, { ...rail, rail: 2, name: "=dram" }] } as LiveSession;
  live.takePower({ capture: "c", rails: [{ rail: 1, t_ms: [100, 200, 300], w: [10, 40, 20] }, { rail: 2, t_ms: [100, 200, 300], w: [1, null, 3] }] });
  return live;
}

test("a picture has the rails in columns that they share, with gaps as null", () => {
  const live = recorded();
  const picture = pictureOf(live, live.session!.rails, { fromMs: 0, toMs: 300 }, 3);
  expect(dataOf(picture)).toEqual([[0.05, 0.15, 0.25, 0.35], [10, 40, 20, null], [10, 40, 20, null], [10, 40, 20, null], [1, null, 3, null], [1, null, 3, null], [1, null, 3, null]]);
  expect(highestOf(picture, () => false)).toBe(50);
  expect(highestOf(picture, (rail) => rail === 1)).toBe(5);
  expect(readingAt(picture, picture.rails[0]!.columns, 150)).toEqual({ mean: 40, low: 40, high: 40 });
  expect(readingAt(picture, picture.rails[1]!.columns, 150)).toBe(null);
  expect(readingAt(picture, picture.rails[1]!.columns, 1e9)).toBe(null);
  expect(csvOf(tableOf(picture)).split("\r\n").slice(0, 3)).toEqual([
    "from_ms,to_ms,package-0_mean_w,package-0_min_w,package-0_max_w,'=dram_mean_w,'=dram_min_w,'=dram_max_w", "0,100,10,10,10,1,1,1", "100,200,40,40,40,,,",
  ]);
});

test("a rail without readings has its place in the picture", () => {
  const live = recorded();
  const [first, second] = live.session!.rails;
  const picture = pictureOf(live, [first!, { ...second!, rail: 9 }], { fromMs: 0, toMs: 300 }, 3);
  expect(dataOf(picture).map((column) => column.length)).toEqual(Array(7).fill(4));
  expect(dataOf(picture)[4]).toEqual([null, null, null, null]);
});

test("scales and spans", () => {
  expect([0.5, 9, 31, 52, 81, 450].map(roundUp)).toEqual([0.5, 10, 50, 80, 100, 500]);
  expect(latestSpan(5000, 30_000)).toEqual({ fromMs: 0, toMs: 20_000 });
  expect(latestSpan(29_000, 30_000)).toEqual({ fromMs: 0, toMs: 30_000 });
  expect(latestSpan(100_000, 30_000)).toEqual({ fromMs: 70_000, toMs: 100_000 });
  const all = latestSpan(3_600_000, 0);
  expect(all.fromMs).toBe(0);
  expect(all.toMs).toBeGreaterThanOrEqual(3_600_000);
  expect(movedSpan({ fromMs: 1000, toMs: 3000 }, 10_000, 0.5, 0)).toEqual({ fromMs: 1500, toMs: 2500 });
  expect(movedSpan({ fromMs: 1000, toMs: 3000 }, 10_000, 1, -5)).toEqual({ fromMs: 0, toMs: 2000 });
  expect(movedSpan({ fromMs: 0, toMs: 1000 }, 10_000, 0.1, 0).toMs).toBeGreaterThanOrEqual(1000);
  expect([0, 59_999, 61_000, 3_661_000].map(clockText)).toEqual(["0:00", "0:59", "1:01", "1:01:01"]);
});

test("layers by components: the same rows so far and of late", () => {
  const row = { pid: 1, calls: 1, recent_ms: 0 };
  const layers = { capture: "", t_ms: 0, rows: [
    { ...row, layer: 1, component: "q", own_ms: 1 }, { ...row, layer: 0, component: "mlp", own_ms: 5, recent_ms: 2 }, { ...row, layer: null, component: "embed", own_ms: 0.5 },
    { ...row, pid: 2, layer: 0, component: "mlp", own_ms: 3 },
  ] };
  const grid = liveGridOf(layers, "own_ms");
  expect([grid.roles, grid.layers, grid.largest]).toEqual([["mlp", "q", "embed"], [0, 1, null], 8e6]);
  expect([...liveGridOf(layers, "recent_ms").cells]).toEqual([["0/mlp", 2e6]]);
  expect(liveGridOf(layers, "recent_ms").roles).toEqual(grid.roles);
});
