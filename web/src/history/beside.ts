// SPDX-License-Identifier: Apache-2.0
// Runs beside others: precisions and the widest of them, mixtures of experts and dense models. Which run stands beside which, and the
// ratios, are those of `sonde runs analyse`.
import type { ChartProps, Point, Series } from "../chart/chart";
import { isWide } from "../chart/scale";
import { fileOf, kindOf, titleOf } from "./parts";
import type { AnalysedRun, Analyses, Figure } from "./types";

const DRAWN: Figure[] = ["joules_per_token", "tokens_per_s", "tpot_p50_ns"];

type Runs = Map<string, AnalysedRun>;

const runsOf = (found: Analyses): Runs => new Map(found.runs.map((run) => [run.capture, run]));

function ratioText(ratio: number | null | undefined, of: string): string | undefined {
  return ratio == null ? undefined : `${Number(ratio.toPrecision(3))} times that of ${of}`;
}

// ---- precisions ----

// The widest first, as the analysis has them: the baseline, then the rest.
function inOrder(found: Analyses, captures: string[]): { baseline: string | null; captures: string[] } {
  const baseline = found.precisions.find(({ capture }) => captures.includes(capture))?.baseline ?? null;
  return { baseline, captures: baseline === null ? captures : [baseline, ...captures.filter((capture) => capture !== baseline)] };
}

function precisionChart(found: Analyses, runs: Runs, figure: Figure): ChartProps[] {
  const groups = found.series.filter(({ by }) => by === "precision").map((series) => ({ best: series.figure === figure ? series.best : null, ...inOrder(found, series.captures) }));
  const names = [...new Set(groups.flatMap(({ captures }) => captures.map((capture) => runs.get(capture)?.precision || "not known")))];
  const series = groups.flatMap(({ best, baseline, captures }): Series[] => {
    const base = baseline === null ? undefined : runs.get(baseline);
    const points = captures.flatMap((capture): Point[] => {
      const run = runs.get(capture);
      const y = run?.[figure] ?? null;
      if (!run || y === null) return [];
      const ratio = ratioText(found.precisions.find((pair) => pair.capture === capture)?.ratios[figure], base?.precision ?? "");
      const note = capture === baseline ? "the baseline" : [ratio, capture === best ? "best" : undefined].filter(Boolean).join("; ");
      return [{ x: names.indexOf(run.precision || "not known"), y, name: fileOf(capture), ...(note && { note }), ...(capture === best ? { mark: "good" as const } : capture === baseline ? { mark: "knee" as const } : {}) }];
    });
    const known = base?.[figure] ?? null;
    const model = runs.get(captures[0]!)?.model ?? "";
    const line = known === null ? [] : [{ name: `baseline ${[model, base!.precision].filter(Boolean).join(" ")}`, isLine: true, isFit: true, points: [0, names.length - 1].map((x) => ({ x, y: known, name: "baseline" })) }];
    return points.length > 1 ? [{ name: model || "runs", points, isLine: false }, ...line] : [];
  });
  if (!series.length) return [];
  return [{ name: `precision-${figure}`, title: `${titleOf(figure)} by precision, beside the widest`, series, x: { title: "Precision", kind: "text", names }, y: { title: titleOf(figure), kind: kindOf(figure) } }];
}

export function precisionsOf(found: Analyses): ChartProps[] {
  const runs = runsOf(found);
  return DRAWN.flatMap((figure) => precisionChart(found, runs, figure));
}

// ---- mixtures of experts ----

const mixtureName = (run: AnalysedRun | undefined, capture: string) => run?.model || fileOf(capture);

// Each mixture and the dense run beside it, over one another.
function pairChart(found: Analyses, runs: Runs, figure: Figure): ChartProps[] {
  const pairs = found.mixtures.filter(({ capture, dense }) => runs.get(capture)?.[figure] != null && runs.get(dense)?.[figure] != null);
  if (!pairs.length) return [];
  const series: Series[] = [
    { name: "mixture of experts", isLine: false, points: pairs.map(({ capture, dense, ratios }, x) => {
      const note = ratioText(ratios[figure], fileOf(dense));
      return { x, y: runs.get(capture)![figure]!, name: fileOf(capture), ...(note && { note }) };
    }) },
    { name: "dense run beside it", isLine: false, points: pairs.map(({ capture, dense }, x) => ({ x, y: runs.get(dense)![figure]!, name: fileOf(dense), note: `beside ${fileOf(capture)}` })) },
  ];
  const names = pairs.map(({ capture }) => mixtureName(runs.get(capture), capture));
  return [{ name: `mixtures-${figure}`, title: `${titleOf(figure)} of mixtures of experts and of dense runs`, series, x: { title: "Mixture", kind: "text", names }, y: { title: titleOf(figure), kind: kindOf(figure) } }];
}

function pointsOf(runs: AnalysedRun[], x: (run: AnalysedRun) => number | null | undefined): Point[] {
  return runs.flatMap((run): Point[] => {
    const at = x(run);
    const y = run.joules_per_token ?? null;
    const note = (run.experts ?? 0) > 1 ? `${run.experts} experts` : "dense";
    return at == null || y === null ? [] : [{ x: at, y, name: fileOf(run.capture), note }];
  });
}

// What a token costs by what is active for it: of a dense run all its parameters.
function activeChart(mixtures: AnalysedRun[], dense: AnalysedRun[]): ChartProps[] {
  const series = [
    { name: "mixture of experts", isLine: false, points: pointsOf(mixtures, (run) => run.active_parameters) },
    { name: "dense run", isLine: false, points: pointsOf(dense, (run) => run.parameters) },
  ].filter(({ points }) => points.length);
  const all = series.flatMap(({ points }) => points);
  if (!series.some(({ name }) => name.startsWith("mixture")) || all.length < 2) return [];
  return [{ name: "mixtures-active", title: "J/token by active parameters", series, x: { title: "Active parameters", kind: "number", isLog: isWide(all.map(({ x }) => x)) }, y: { title: titleOf("joules_per_token"), kind: kindOf("joules_per_token") } }];
}

// How evenly experts are chosen: each is 1 when all are chosen equally often.
const EVENNESS: ["expert_balance" | "expert_entropy" | "expert_load", string, string][] = [
  ["expert_balance", "balance", "Balance of experts"], ["expert_entropy", "entropy", "Entropy of choices, of its most"], ["expert_load", "load", "Load balance of experts"],
];

function evennessCharts(mixtures: AnalysedRun[]): ChartProps[] {
  return EVENNESS.flatMap(([key, name, title]) => {
    const points = pointsOf(mixtures, (run) => run[key]);
    if (points.length < 2) return [];
    return [{
      name: `mixtures-${name}`, title: `J/token by the ${title.toLowerCase()} (1: all are chosen equally often)`, series: [{ name: "mixture of experts", points, isLine: false }],
      x: { title, kind: "number" as const }, y: { title: titleOf("joules_per_token"), kind: kindOf("joules_per_token") },
    }];
  });
}

export function mixturesOf(found: Analyses): ChartProps[] {
  const runs = runsOf(found);
  const mixtures = found.runs.filter(({ experts }) => (experts ?? 0) > 1);
  const dense = found.runs.filter(({ experts }) => !((experts ?? 0) > 1));
  return [...DRAWN.flatMap((figure) => pairChart(found, runs, figure)), ...activeChart(mixtures, dense), ...evennessCharts(mixtures)];
}
