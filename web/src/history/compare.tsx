// SPDX-License-Identifier: Apache-2.0
// 2 to 10 runs side by side: which is best in what, how far they are spread, and whether repeated runs differ.
import type { ComponentChildren } from "preact";
import { hrefOf } from "../router";
import type { Place } from "../router";
import { Waiting, useLoaded } from "../loaded";
import { COMPARE_MOST, chosenOf } from "./list";
import { Empty, FIGURES, ShownView, fileOf, placeOfRun, shortOf, showFigure, showTime, titleOf } from "./parts";
import { history } from "./source";
import type { Comparison, Figure, Run, Shown } from "./types";

const BEST = { fastest: "fastest", most_efficient: "least energy for a token", lowest_energy: "least energy" };

const TEXTS: [string, (run: Run) => string][] = [
  ["Recorded", (run) => showTime(run.time_ns)], ["Model", (run) => run.model ?? ""], ["Precision", (run) => run.precision ?? ""],
  ["Engine", (run) => run.engine ?? ""], ["Host", (run) => run.host ?? ""], ["Experiment", (run) => run.experiment ?? ""],
  ["Commit", (run) => run.commit_id ?? ""], ["Tags", (run) => run.tags.join(", ")],
];

function TextRows({ runs }: { runs: Run[] }) {
  return (
    <>
      {TEXTS.filter(([, of]) => runs.some(of)).map(([title, of]) => (
        <tr key={title}><th scope="row">{title}</th>{runs.map((run) => <td key={run.id} class="right">{of(run)}</td>)}</tr>
      ))}
    </>
  );
}

function FigureRows({ found }: { found: Comparison }) {
  const figures = (Object.keys(FIGURES) as Figure[]).filter((figure) => found.runs.some((run) => run[figure] !== null));
  return (
    <>
      {figures.map((figure) => {
        const spread = found.spread.find((one) => one.figure === figure);
        return (
          <tr key={figure}>
            <th scope="row">{titleOf(figure)}</th>
            {found.runs.map((run) => {
              const isBest = spread?.best === run.id && spread.minimum !== spread.maximum;
              return <td key={run.id} class={`right ${isBest ? "best" : ""}`}>{showFigure(figure, run[figure])}{isBest && <span class="dim"> best</span>}</td>;
            })}
          </tr>
        );
      })}
    </>
  );
}

function SideBySide({ found }: { found: Comparison }) {
  const bestOf = (id: string) => (Object.keys(BEST) as (keyof typeof BEST)[]).filter((what) => found.best[what] === id).map((what) => BEST[what]);
  const head = (run: Run): ComponentChildren => (
    <th key={run.id} scope="col" class="right"><a href={hrefOf(placeOfRun(run.id))}>{shortOf(run.id)}</a><br /><span class="dim">{fileOf(run.path)}</span><br />{bestOf(run.id).join(", ")}</th>
  );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Runs side by side">
      <table class="side">
        <thead><tr><td />{found.runs.map(head)}</tr></thead>
        <tbody><TextRows runs={found.runs} /><FigureRows found={found} /></tbody>
      </table>
    </div>
  );
}

// The table of runs stands above, side by side.
function withoutRuns(shown: Shown): Shown {
  const first = shown.blocks.findIndex((block) => block.kind === "table");
  return { ...shown, blocks: shown.blocks.filter((_, at) => at !== first) };
}

export function CompareView({ place }: { place: Place }) {
  const runs = chosenOf(place);
  const key = runs.join(",");
  const canAsk = runs.length >= 2 && runs.length <= COMPARE_MOST;
  const loaded = useLoaded(() => (canAsk ? Promise.all([history.compare(runs), history.compared(runs)]) : Promise.resolve(null)), key);
  return (
    <Waiting loaded={loaded} what="The comparison">
      {(found) => (
        <main class="wide">
          {found ? <><SideBySide found={found[0]} /><ShownView shown={withoutRuns(found[1])} name="compare" /></>
            : <Empty>Choose 2 to {COMPARE_MOST} runs in the <a href="#/history">list</a>, and then Compare.</Empty>}
        </main>
      )}
    </Waiting>
  );
}
