// SPDX-License-Identifier: Apache-2.0
// What batch sizes, contexts, precisions, mixtures and sizes of models do, and which runs no other beats. The figures are those of
// `sonde runs analyse`; the page draws them.
import { Chart } from "../chart/chart";
import type { ChartProps, Point, Series } from "../chart/chart";
import { isWide } from "../chart/scale";
import { go } from "../router";
import type { Place } from "../router";
import { Waiting, useLoaded } from "../loaded";
import { ChoiceForm, ShownView, choiceOf, fileOf, kindOf, titleOf } from "./parts";
import { history } from "./source";
import type { AnalysedRun, Analyses, Figure } from "./types";
import { mixturesOf, precisionsOf } from "./beside";

const valueOf = (run: AnalysedRun, figure: Figure) => run[figure] ?? null;

type OneSeries = Analyses["series"][number] & { by: Figure };

function noteOf(series: OneSeries, capture: string): Partial<Point> {
  if (capture === series.saturated_at) return { note: "from here on at least 20 % more than with the shortest", mark: "knee" };
  return capture === series.best ? { note: "best", mark: "good" } : {};
}

const kindOfModel = (run: AnalysedRun | undefined) => [run?.model, run?.precision].filter(Boolean).join(" ");

function lineOf(found: Analyses, series: OneSeries): Series {
  const runs = new Map(found.runs.map((run) => [run.capture, run]));
  const points = series.captures.flatMap((capture): Point[] => {
    const run = runs.get(capture);
    const x = run && valueOf(run, series.by);
    const y = run && valueOf(run, series.figure);
    return x == null || y == null ? [] : [{ x, y, name: fileOf(capture), ...noteOf(series, capture) }];
  });
  return { name: kindOfModel(runs.get(series.captures[0] ?? "")) || fileOf(series.captures[0] ?? ""), points, isLine: true };
}

// Figures that are drawn besides that by which the best was chosen.
const ALSO: Figure[] = ["tokens_per_s", "tpot_p50_ns", "ttft_p50_ns"];

// Two runs of one model and precision may be in several lines.
function withOwnNames(lines: Series[]): Series[] {
  const seen = new Map<string, number>();
  return lines.map((line) => {
    const count = (seen.get(line.name) ?? 0) + 1;
    seen.set(line.name, count);
    return count > 1 ? { ...line, name: `${line.name} (${count})` } : line;
  });
}

function curveOf(found: Analyses, group: OneSeries[], figure: Figure): ChartProps[] {
  const { by } = group[0]!;
  const own = group.map((one) => (one.figure === figure ? one : { ...one, figure, best: null, saturated_at: null }));
  const series = withOwnNames(own.map((one) => lineOf(found, one)).filter(({ points }) => points.length > 1));
  if (!series.length) return [];
  return [{
    name: `${by}-${figure}`, title: `${titleOf(figure)} by ${titleOf(by).toLowerCase()}`, series,
    x: { title: titleOf(by), kind: kindOf(by), isLog: isWide(series.flatMap(({ points }) => points.map(({ x }) => x))) },
    y: { title: titleOf(figure), kind: kindOf(figure) },
  }];
}

// For each label in which runs differ, a chart of each figure, with a line for each model.
export function curvesOf(found: Analyses): ChartProps[] {
  const byNumber = found.series.filter((series): series is OneSeries => series.by !== "precision");
  const labels = [...new Set(byNumber.map(({ by }) => by))];
  return labels.flatMap((by) => {
    const group = byNumber.filter((series) => series.by === by);
    const figures = [...new Set([...group.map(({ figure }) => figure), ...ALSO])];
    return figures.flatMap((figure) => curveOf(found, group, figure));
  });
}

// Throughput and energy: the front are the runs that no other beats in both.
export function frontOf(found: Analyses): ChartProps | null {
  const pointOf = (run: AnalysedRun): Point[] => {
    const [x, y] = [valueOf(run, "tokens_per_s"), valueOf(run, "joules_per_token")];
    if (x === null || y === null) return [];
    const note = run.is_knee ? "on the front, and its knee" : run.is_optimal ? "on the front: no run is better in both" : undefined;
    return [{ x, y, name: fileOf(run.capture), ...(note && { note }), ...(run.is_knee ? { mark: "knee" as const } : run.is_optimal ? { mark: "good" as const } : {}) }];
  };
  const front = found.runs.filter((run) => run.is_optimal).flatMap(pointOf).sort((a, b) => a.x - b.x);
  const others = found.runs.filter((run) => !run.is_optimal).flatMap(pointOf);
  const all = [...front, ...others];
  if (!front.length || all.length < 2) return null;
  return {
    name: "pareto", title: "Throughput and energy: the front, and its knee",
    x: { title: "Tokens/s", kind: "number", isLog: isWide(all.map(({ x }) => x)) },
    y: { title: "J/token", kind: "number", isLog: isWide(all.map(({ y }) => y)) },
    series: [{ name: "front", points: front, isLine: true }, { name: "other runs", points: others, isLine: false }],
  };
}

const FIT_POINTS = 24;
const SCALED: Figure[] = ["joules_per_token", "tpot_p50_ns"];

function fitOf(scale: number, power: number, least: number, most: number): Point[] {
  return [...Array(FIT_POINTS).keys()].map((at) => {
    const x = least * (most / least) ** (at / (FIT_POINTS - 1));
    return { x, y: scale * x ** power, name: "fit" };
  });
}

// A figure by parameters, with the power law through it.
export function scalingOf(found: Analyses): ChartProps[] {
  return SCALED.flatMap((figure) => {
    const { scale = null, power = null, r_squared = null } = found.scaling?.[figure] ?? {};
    const points = found.runs.flatMap((run): Point[] => {
      const [x, y] = [valueOf(run, "parameters"), valueOf(run, figure)];
      return x === null || y === null ? [] : [{ x, y, name: fileOf(run.capture) }];
    });
    if (scale === null || power === null || points.length < 2) return [];
    const sizes = points.map(({ x }) => x);
    const fit = fitOf(scale, power, Math.min(...sizes), Math.max(...sizes));
    return [{
      name: `scaling-${figure}`, title: `${titleOf(figure)} grows with parameters to the power of ${power.toPrecision(3)} (R² ${(r_squared ?? 0).toFixed(2)})`,
      x: { title: "Parameters", kind: "number" as const, isLog: true }, y: { title: titleOf(figure), kind: kindOf(figure), isLog: isWide(points.map(({ y }) => y)) },
      series: [{ name: "runs", points, isLine: false }, { name: "power law", points: fit, isLine: true, isFit: true }],
    }];
  });
}

function Charts({ found }: { found: Analyses }) {
  const front = frontOf(found);
  const charts = [...(front ? [front] : []), ...curvesOf(found), ...precisionsOf(found), ...mixturesOf(found), ...scalingOf(found)];
  if (!charts.length) return <p class="dim">There is nothing to draw: runs need a label, such as batch_size, context_length or precision, in which they differ, and figures of tokens.</p>;
  return <div class="charts">{charts.map((chart) => <Chart key={chart.name} {...chart} />)}</div>;
}

function PredictForm({ place }: { place: Place }) {
  const change = (labels: string) => go({ ...place, query: { ...place.query, labels } });
  return (
    <form class="tools" aria-label="Predict" onSubmit={(event) => event.preventDefault()}>
      <label>Predict a run with <input size={40} value={place.query.labels ?? ""} placeholder="batch_size=16,context_length=2048" onChange={(event) => change(event.currentTarget.value)} /></label>
    </form>
  );
}

export function AnalysesView({ place }: { place: Place }) {
  const choice = choiceOf(place);
  const labels = place.query.labels ?? "";
  const loaded = useLoaded(() => Promise.all([history.analyse(choice, labels), history.analysed(choice, labels)]), JSON.stringify([choice, labels]));
  return (
    <>
      <ChoiceForm place={place} />
      <div class="inset"><PredictForm place={place} /></div>
      <Waiting loaded={loaded} what="The analysis">{([found, shown]) => <main class="wide"><Charts found={found} /><ShownView shown={shown} name="analyses" /></main>}</Waiting>
    </>
  );
}
