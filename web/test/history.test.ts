// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import { curvesOf, frontOf, scalingOf } from "../src/history/analyses";
import { mixturesOf, precisionsOf } from "../src/history/beside";
import { chosenOf, orderOf } from "../src/history/list";
import { choiceOf, showTime } from "../src/history/parts";
import { figuresOf, lineOf } from "../src/history/regressions";
import { history } from "../src/history/source";
import type { AnalysedRun, Analyses, Regressions, Step } from "../src/history/types";

afterEach(() => vi.unstubAllGlobals());

function asked(answer: unknown = {}) {
  const requests: [string, RequestInit | undefined][] = [];
  vi.stubGlobal("fetch", async (address: string, init?: RequestInit) => {
    requests.push([address, init]);
    return new Response(JSON.stringify(answer));
  });
  return requests;
}

const place = (query: Record<string, string>) => ({ view: "history", what: "", query });

test("what an address asks for", () => {
  expect(orderOf(place({ order: "energy", reverse: "yes", offset: "50" }))).toEqual({ order: "energy", reverse: true, offset: 50 });
  expect(orderOf(place({ offset: "-3" }))).toEqual({ order: "time", reverse: false, offset: 0 });
  expect(orderOf(place({ offset: "x" })).offset).toBe(0);
  expect(choiceOf(place({ model: "a", other: "b", tag: "" }))).toEqual({ model: "a" });
  const id = "0123456789abcdef0123456789abcdef";
  expect(chosenOf(place({ runs: `${id},../x,${id.slice(1)}` }))).toEqual([id]);
});

test("each tag and each run is a parameter of its own", async () => {
  const requests = asked({ runs: [] });
  await history.list({ tag: "a, b c", search: "x&y" }, { order: "time", reverse: false, offset: 0 });
  await history.compare(["0123", "4567"]);
  expect(requests.map(([address]) => address)).toEqual([
    "/api/runs?tag=a&tag=b+c&search=x%26y&order=time&limit=50", "/api/runs/compare?run=0123&run=4567",
  ]);
});

test("changes go with their method and body", async () => {
  const requests = asked();
  await history.edit("0123", { tags: ["<b>"], notes: "", experiment: "e" });
  await history.remove("0123");
  await history.retain(5, undefined, false);
  expect(requests.map(([address, init]) => [init?.method, address, init?.body])).toEqual([
    ["PATCH", "/api/runs/0123", '{"tags":["<b>"],"notes":"","experiment":"e"}'], ["DELETE", "/api/runs/0123", undefined],
    ["POST", "/api/runs/retention", '{"keep":5,"dry_run":true}'],
  ]);
});

test("a time is written as the terminal writes it", () => {
  expect(showTime(null)).toBe("");
  expect(showTime(new Date(2026, 10, 3, 4, 5).getTime() * 1e6)).toBe("2026-11-03 04:05");
});

const run = (capture: string, more: Partial<AnalysedRun>): AnalysedRun =>
  ({ capture, model: "m", precision: null, is_optimal: false, is_knee: false, experts: null, active_parameters: null, expert_balance: null, expert_entropy: null, expert_load: null, ...more });

const found: Analyses = {
  runs: [
    run("/a/1", { batch_size: 1, tokens_per_s: 10, joules_per_token: 4, parameters: 1e9 }),
    run("/a/2", { batch_size: 2, tokens_per_s: 30, joules_per_token: 2, parameters: 1e9, is_optimal: true }),
    run("/a/3", { batch_size: 4, tokens_per_s: 40, joules_per_token: 3, parameters: 8e9, is_optimal: true, is_knee: true }),
    run("/a/4", { batch_size: 8, tokens_per_s: null, joules_per_token: 1 }),
  ],
  series: [{ by: "batch_size", figure: "joules_per_token", captures: ["/a/1", "/a/2", "/a/3", "/gone"], best: "/a/2", saturated_at: "/a/3" }],
  scaling: { joules_per_token: { count: 3, scale: 2, power: 0.5, r_squared: 0.9 }, tpot_p50_ns: { count: 3, scale: null, power: null, r_squared: null } },
  precisions: [],
  mixtures: [],
  prediction: null,
};

test("a curve has the runs in their order, its best and where it saturates", () => {
  const [energy, throughput] = curvesOf(found);
  expect(energy!.series[0]!.points.map(({ x, y, mark }) => [x, y, mark])).toEqual([[1, 4, undefined], [2, 2, "good"], [4, 3, "knee"]]);
  expect(throughput!.title).toBe("Tokens/s by batch size");
  expect(throughput!.series[0]!.points.map(({ mark }) => mark)).toEqual([undefined, undefined, undefined]);
});

test("the front goes by throughput, with its knee; runs without a figure are not drawn", () => {
  const [front, others] = frontOf(found)!.series;
  expect(front!.points.map(({ name, mark }) => [name, mark])).toEqual([["2", "good"], ["3", "knee"]]);
  expect(others!.points.map(({ name }) => name)).toEqual(["1"]);
  expect(frontOf({ ...found, runs: [] })).toBe(null);
});

test("the power law goes through the sizes that there are; a law that is not known is not drawn", () => {
  const charts = scalingOf(found);
  expect(charts.length).toBe(1);
  const fit = charts[0]!.series[1]!.points;
  expect(fit[0]!.y).toBeCloseTo(2 * 1e9 ** 0.5);
  expect(fit.at(-1)!.x).toBeCloseTo(8e9);
});

test("precisions stand beside the widest, with the ratios of the analysis", () => {
  const charts = precisionsOf({ ...found,
    runs: [run("/q/8", { precision: "int8", joules_per_token: 2 }), run("/q/16", { precision: "bf16", joules_per_token: 4 }), run("/q/x", { precision: "awq", joules_per_token: null })],
    series: [{ by: "precision", figure: "joules_per_token", captures: ["/q/8", "/q/16", "/q/x"], best: "/q/8", saturated_at: null }],
    precisions: [{ capture: "/q/8", baseline: "/q/16", ratios: { joules_per_token: 0.5 } }, { capture: "/q/x", baseline: "/q/16", ratios: { joules_per_token: null } }],
  });
  expect(charts.map(({ name }) => name)).toEqual(["precision-joules_per_token"]);
  const [runs, baseline] = charts[0]!.series;
  expect(charts[0]!.x.names).toEqual(["bf16", "int8", "awq"]);
  expect(runs!.points).toEqual([{ x: 0, y: 4, name: "16", note: "the baseline", mark: "knee" }, { x: 1, y: 2, name: "8", note: "0.5 times that of bf16; best", mark: "good" }]);
  expect(baseline).toMatchObject({ name: "baseline m bf16", isFit: true, points: [{ x: 0, y: 4 }, { x: 2, y: 4 }] });
  // Not among the curves, whose x is a number.
  expect(curvesOf({ ...found, series: [{ by: "precision", figure: "joules_per_token", captures: ["/a/1", "/a/2"], best: null, saturated_at: null }] })).toEqual([]);
});

test("mixtures stand beside dense runs; without one there is only what is active", () => {
  const mixture = run("/m/moe", { model: "moe", experts: 8, parameters: 4e9, active_parameters: 1e9, joules_per_token: 1, tokens_per_s: 50, expert_balance: 0.5 });
  const dense = run("/m/dense", { parameters: 1e9, joules_per_token: 2 });
  const charts = mixturesOf({ ...found, runs: [mixture, dense], mixtures: [{ capture: "/m/moe", dense: "/m/dense", ratios: { joules_per_token: 0.5, tokens_per_s: null } }] });
  expect(charts.map(({ name }) => name)).toEqual(["mixtures-joules_per_token", "mixtures-active"]);
  expect(charts[0]!.series.map(({ points }) => points)).toEqual([
    [{ x: 0, y: 1, name: "moe", note: "0.5 times that of dense" }], [{ x: 0, y: 2, name: "dense", note: "beside moe" }]]);
  expect(charts[1]!.series.map(({ points }) => points.map(({ x, note }) => [x, note]))).toEqual([[[1e9, "8 experts"]], [[1e9, "dense"]]]);
  expect(mixturesOf({ ...found, runs: [dense] })).toEqual([]);
  expect(mixturesOf({ ...found, runs: [mixture, { ...mixture, capture: "/m/other", expert_balance: 1, expert_entropy: 0.9 }] }).map(({ name }) => name)).toEqual(["mixtures-active", "mixtures-balance"]);
});

const step = (figure: Step["figure"], before: number, after: number, verdict: Step["verdict"], from: string, commit: string): Step =>
  ({ figure, before, after, change_share: after / before - 1, verdict, before_commit: from, commit });

test("a line over commits marks what changed, and the figures that got worse come first", () => {
  const changes: Regressions = { experiment: "e", commits: 3, rows: [
    step("tokens_per_s", 10, 11, "same", "a", "b"), step("energy_j", 5, 5, "same", "a", "b"), step("energy_j", 5, 7, "worse", "b", "c"),
  ] };
  expect(figuresOf(changes)).toEqual(["energy_j", "tokens_per_s"]);
  const line = lineOf(changes, "energy_j")!;
  expect(line.x.names).toEqual(["a", "b", "c"]);
  expect(line.series[0]!.points.map(({ y, mark }) => [y, mark])).toEqual([[5, undefined], [5, undefined], [7, "bad"]]);
  expect(line.series[0]!.points[2]!.note).toBe("+40.0 %: worse");
  expect(lineOf(changes, "average_w")).toBe(null);
});
