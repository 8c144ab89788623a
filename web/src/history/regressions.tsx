// SPDX-License-Identifier: Apache-2.0
// A figure from commit to commit of an experiment, with the changes marked that are more than noise.
import { Chart } from "../chart/chart";
import type { ChartProps, Point } from "../chart/chart";
import { go } from "../router";
import type { Place } from "../router";
import { Waiting, useLoaded } from "../loaded";
import { Empty, ShownView, kindOf, titleOf } from "./parts";
import { history } from "./source";
import type { Regressions, Step } from "./types";

const SHORT = 10;
const MARKS: Partial<Record<Step["verdict"], Point["mark"]>> = { worse: "bad", better: "good" };

export function lineOf(found: Regressions, figure: string): ChartProps | null {
  const steps = found.rows.filter((row) => row.figure === figure);
  if (!steps.length) return null;
  const names = [steps[0]!.before_commit, ...steps.map((step) => step.commit)].map((commit) => commit.slice(0, SHORT));
  const points: Point[] = [{ x: 0, y: steps[0]!.before, name: names[0]! }];
  steps.forEach((step, at) => {
    const change = `${step.change_share >= 0 ? "+" : ""}${(100 * step.change_share).toFixed(1)} %: ${step.verdict}`;
    const mark = MARKS[step.verdict];
    points.push({ x: at + 1, y: step.after, name: names[at + 1]!, note: change, ...(mark && { mark }) });
  });
  return {
    name: `regressions-${figure}`, title: `${titleOf(figure)} of ${found.experiment}, by commit`,
    x: { title: "Commit", kind: "text", names }, y: { title: titleOf(figure), kind: kindOf(figure) },
    series: [{ name: titleOf(figure), points, isLine: true }],
  };
}

// First those that got worse.
export function figuresOf(found: Regressions): string[] {
  const isWorse = (figure: string) => found.rows.some((row) => row.figure === figure && row.verdict === "worse");
  const figures = [...new Set(found.rows.map((row) => row.figure as string))];
  return [...figures.filter(isWorse), ...figures.filter((figure) => !isWorse(figure))];
}

function Line({ found, place }: { found: Regressions; place: Place }) {
  const figures = figuresOf(found);
  const figure = figures.includes(place.query.figure ?? "") ? place.query.figure! : figures[0];
  const chart = figure ? lineOf(found, figure) : null;
  if (!chart) return <Empty>{found.experiment} has runs of {found.commits === 1 ? "one commit" : `${found.commits} commits`}: runs of two or more are needed, added with --commit.</Empty>;
  return (
    <>
      <p class="tools"><label>Figure <select value={figure} onChange={(event) => go({ ...place, query: { ...place.query, figure: event.currentTarget.value } })}>
        {figures.map((name) => <option key={name} value={name}>{titleOf(name)}</option>)}
      </select></label></p>
      <Chart key={chart.name} {...chart} />
    </>
  );
}

function Found({ place }: { place: Place }) {
  const { experiment = "", threshold = "" } = place.query;
  const loaded = useLoaded(() => Promise.all([history.regressions(experiment, threshold), history.regressed(experiment, threshold)]), JSON.stringify([experiment, threshold]));
  return <Waiting loaded={loaded} what="The comparison of commits">{([found, shown]) => <main><Line found={found} place={place} /><ShownView shown={shown} name="regressions" /></main>}</Waiting>;
}

export function RegressionsView({ place }: { place: Place }) {
  const change = (key: string, value: string) => go({ ...place, query: { ...place.query, [key]: value } });
  return (
    <>
      <form class="filters" aria-label="Which runs" onSubmit={(event) => event.preventDefault()}>
        <label>Experiment <input value={place.query.experiment ?? ""} onChange={(event) => change("experiment", event.currentTarget.value)} /></label>
        <label>Changes from <input type="number" min="0" max="1000" step="any" value={place.query.threshold ?? "5"} onChange={(event) => change("threshold", event.currentTarget.value)} /> %</label>
      </form>
      {place.query.experiment ? <Found place={place} /> : <main><Empty>Name an experiment: its runs are compared commit by commit. <code>sonde runs add --experiment NAME --commit ID</code> gives runs both.</Empty></main>}
    </>
  );
}
