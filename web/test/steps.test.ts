// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { bandsOf } from "../src/graphs/bands";
import { roundUp, valueAt } from "../src/graphs/draw";
import type { Cell, Column, Report, Section } from "../src/report";
import { itemsOf, metricsOf, tokenItems } from "../src/steps";
import type { CounterColumns } from "../src/timeline/tile";
import { bars, filterOf } from "../src/views/steps";
import { countersOf } from "../src/views/graphs";

const column = (key: string | null, title: string | null, kind: Column["kind"]): Column => ({ key, title, kind });

function reportOf(...tables: { key: string; columns: Column[]; rows: Cell[][] }[]): Report {
  const section: Section = { key: "steps", by: "step", title: null, summary: null, blocks: [], advice: [], tables: tables.map((table) => ({ ...table, left_out: 0 })) };
  return { format: "sonde-page", version: 1, sonde_version: "0", sections: [section], names: [] };
}

const slowest = {
  key: "slowest",
  columns: [column("number", "Step", "integer"), column("begin_ns", null, "ns"), column("duration_ns", "Duration", "ns"), column("device_busy_ns", "Device", "ns"), column("pid", "PID", "integer")],
  rows: [[7, 2000, 900, 0, 1], [6, 1000, 500, 0, 1], [5, 0, 400, 0, 1]] as Cell[][],
};
const all = { key: "rows", columns: [column("p95_ns", "p95", "ns")], rows: [[600]] as Cell[][] };

test("steps come in the order of time, with what the report calls slow", () => {
  const found = itemsOf("step", reportOf(slowest, all))!;
  expect(found.items.map(({ name, fromNs, toNs }) => [name, fromNs, toNs])).toEqual([["5", 0, 400], ["6", 1000, 1500], ["7", 2000, 2900]]);
  expect(found.oddFrom).toBe(600);
  expect(found.table.rows.map((row) => row[0])).toEqual([5, 6, 7]);
  // Only what differs from nothing can be drawn; the duration comes first.
  expect(metricsOf(found)).toEqual([2]);
});

test("without steps there are none, and several programs have no common percentile", () => {
  expect(itemsOf("step", reportOf({ ...slowest, rows: [] }))).toBeNull();
  expect(itemsOf("window", reportOf(slowest, all))).toBeNull();
  expect(itemsOf("step", reportOf(slowest, { ...all, rows: [[600], [700]] }))!.oddFrom).toBeNull();
});

test("ranks come from whichever section has them", () => {
  const rank = { key: "temporal", columns: [column("rank", null, "integer"), column("idle_ns", "Idle", "ns")], rows: [[0, 5], [1, 7]] as Cell[][] };
  const found = itemsOf("rank", reportOf(slowest, rank))!;
  expect(found.items.map(({ name, fromNs }) => [name, fromNs])).toEqual([["0", null], ["1", null]]);
  expect(metricsOf(found)).toEqual([1]);
});

test("steps of the same number keep apart", () => {
  const rows: Cell[][] = [[1, 0, 10, 0, 1], [1, 5, 10, 0, 2]];
  expect(itemsOf("step", reportOf({ ...slowest, rows }))!.items.map(({ name }) => name)).toEqual(["1", "1, 2."]);
});

test("the filter of an item is its time, of a window its number", () => {
  const item = { name: "3", row: [], fromNs: 1_500_000_000, toNs: 2_000_000_000 };
  expect(filterOf("step", item)).toEqual({ time: "1.500000..2.000000" });
  expect(filterOf("window", item)).toEqual({ window: "3" });
  expect(filterOf("request", { ...item, toNs: null })).toBeNull();
});

test("each bar is the largest of those that it stands for", () => {
  const many = bars(Array.from({ length: 1000 }, (_, at) => (at === 500 ? 9 : 1)), 100);
  expect(many.length).toBe(50);
  expect(many.filter(({ value }) => value === 9).length).toBe(1);
  expect(bars([3, null], 1000).map(({ value, width }) => [value, width])).toEqual([[3, 48], [0, 48]]);
});

test("requests are shaded by their phases", () => {
  const requests = {
    key: "requests",
    columns: [column("begin_ns", "Arrived", "ns"), column("queue_ns", "Queued", "ns"), column("prefill_ns", "Prefill", "ns"), column("e2e_ns", "Total", "ns"), column("id", "Request", "text")],
    rows: [[100, 10, 50, 400, "a"]] as Cell[][],
  };
  expect(bandsOf("request", reportOf(requests))).toEqual([
    { fromNs: 110, toNs: 160, kind: 1, name: "a, prefill" },
    { fromNs: 160, toNs: 500, kind: 2, name: "a, decode" },
  ]);
  expect(bandsOf("step", reportOf(slowest)).map(({ kind }) => kind)).toEqual([0, 1, 0]);
  expect(bandsOf("", reportOf(slowest))).toEqual([]);
});

test("a counter keeps its value until it changes", () => {
  const columns = (values: number[]) => Float64Array.from(values);
  const tile: CounterColumns = { kind: "counter", count: 2, start: columns([10, 20]), first: columns([1, 5]), minimum: columns([1, 5]), maximum: columns([3, 5]), last: columns([2, 5]) };
  expect([5, 10, 19, 20, 1000].map((ns) => valueAt(tile, ns))).toEqual([null, 2, 2, 5, 5]);
});

test("axes end at round values", () => {
  expect([0, 0.8, 1, 1.04, 37, 101, 240, 5000].map(roundUp)).toEqual([1, 1, 1, 2, 50, 200, 250, 5000]);
});

test("rates and power come before what programs count", () => {
  const track = (id: number, process: string, kind: "counter" | "thread" = "counter") => ({ id, kind, name: "", process, pid: null, tid: null, rank: null, lanes: 0, slices: 0, too_deep: 0, minimum: 0, maximum: 1 });
  expect(countersOf({ version: "0", duration_ns: 1, tracks: [track(0, "python"), track(1, "energy"), track(2, "python", "thread"), track(3, "rates")] }).map(({ id }) => id)).toEqual([3, 1, 0]);
});

test("tokens of all requests come in the order of time", () => {
  const request = (id: string, begin_ns: number) => ({ id, pid: 1, begin_ns, ttft_ns: 50, output_tokens: 3, itl_ns: [10, 20], energy: null });
  const inference = { requests: [request("b", 100), request("a", 0)], itl_ns: { p50: 10, p99: 20 } };
  const found = tokenItems(inference, 5)!;
  expect(found.items.map(({ name, fromNs, toNs }) => [name, fromNs, toNs])).toEqual([["1 of request a", 0, 50], ["2 of request a", 50, 60], ["3 of request a", 60, 80], ["1 of request b", 100, 150], ["2 of request b", 150, 160]]);
  expect([found.leftOut, found.oddFrom]).toEqual([1, 20]);
  expect(tokenItems({ ...inference, requests: [] }, 5)).toBeNull();
  expect(tokenItems(null, 5)).toBeNull();
});
