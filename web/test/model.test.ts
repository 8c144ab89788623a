// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { treemap } from "../src/treemap";
import { gridOf } from "../src/views/model";
import type { LayerRow } from "../src/views/model";

test("areas are as large as their weights, inside of the whole, and do not overlap", () => {
  const weights = [60, 60, 40, 30, 20, 20, 10];
  const areas = treemap(weights, { x: 0, y: 0, width: 600, height: 400 });
  areas.forEach((area, at) => {
    expect(area.width * area.height).toBeCloseTo((weights[at]! / 240) * 240000);
    expect(area.x).toBeGreaterThanOrEqual(0);
    expect(area.x + area.width).toBeLessThanOrEqual(600 + 1e-6);
    expect(area.y + area.height).toBeLessThanOrEqual(400 + 1e-6);
  });
  for (const [i, a] of areas.entries()) {
    for (const b of areas.slice(i + 1)) {
      const overlap = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 1e-6 && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 1e-6;
      expect(overlap).toBe(false);
    }
  }
  expect(treemap([], { x: 0, y: 0, width: 1, height: 1 })).toEqual([]);
});

const row = (layer: number | null, role: string, own_ns: number, full_j: number | null = null): LayerRow =>
  ({ layer, role, rest: false, calls: 1, total_ns: own_ns, own_ns, cpu_time_ns: null, device_busy_ns: 0, energy: { full_j, net_j: null, uncertainty_j: null, reason: null } });

test("a grid adds the rows of a cell, largest component first; what is not known is no cell", () => {
  const layers = { steps: 2, rows: [row(1, "gate", 5), row(0, "gate", 10, 0.5), row(0, "q", 40), row(0, "q", 2), row(null, "head", 7)] };
  const grid = gridOf(layers, "time");
  expect(grid.roles).toEqual(["q", "gate", "head"]);
  expect(grid.layers).toEqual([0, 1, null]);
  expect(grid.cells.get("0/q")).toBe(42);
  expect(gridOf(layers, "step").cells.get("0/q")).toBe(21);
  expect([...gridOf(layers, "energy").cells]).toEqual([["0/gate", 0.5]]);
  expect(gridOf(layers, "device").cells.size).toBe(0);
});
