// SPDX-License-Identifier: Apache-2.0
// The list of runs: filtered, sorted, in pages; 2 to 10 of them can be chosen for a comparison.
import { useRef } from "preact/hooks";
import { formatCount } from "../format";
import { go, hrefOf } from "../router";
import type { Place } from "../router";
import { Waiting, useLoaded } from "../loaded";
import { ChoiceForm, Empty, FIGURES, choiceOf, fileOf, placeOfRun, shortOf, showFigure, showTime } from "./parts";
import { PAGE_RUNS, history } from "./source";
import type { Choice, Order } from "./source";
import type { Figure, Run, RunList } from "./types";

export const COMPARE_MOST = 10;

interface ListColumn {
  title: string;
  order: string | null; // what the server calls it
  isFalling?: boolean; // the most or the newest first, at first
  isRight?: boolean;
  of: (run: Run) => string;
}

const figure = (key: Figure, order: string | null, isFalling = false, title = FIGURES[key].title): ListColumn =>
  ({ title, order, isFalling, isRight: true, of: (run) => showFigure(key, run[key]) });

const COLUMNS: ListColumn[] = [
  { title: "When", order: "time", isFalling: true, of: (run) => showTime(run.time_ns) },
  { title: "Model", order: "model", of: (run) => run.model ?? "" },
  { title: "Precision", order: null, of: (run) => run.precision ?? "" },
  figure("batch_size", "batch-size", false, "Batch"),
  figure("duration_ns", "duration"),
  figure("tokens_per_s", "tokens-per-s", true),
  figure("ttft_p50_ns", "ttft", false, "To first"),
  figure("tpot_p50_ns", "tpot", false, "Per token"),
  figure("joules_per_token", "joules-per-token"),
  figure("energy_j", "energy"),
  figure("gpu_busy_share", "gpu-busy", true),
  { title: "Experiment", order: "experiment", of: (run) => run.experiment ?? "" },
  { title: "Commit", order: null, of: (run) => (run.commit_id ?? "").slice(0, 12) },
  { title: "Tags", order: null, of: (run) => run.tags.join(", ") },
  { title: "Notes", order: null, of: (run) => run.notes ?? "" },
  { title: "Capture", order: null, of: (run) => fileOf(run.path) },
];

export function orderOf(place: Place): Order {
  const { order = "time", reverse = "", offset = "" } = place.query;
  return { order, reverse: reverse === "yes", offset: Math.max(0, Math.floor(Number(offset)) || 0) };
}

export const chosenOf = (place: Place) => (place.query.runs ?? "").split(",").filter((id) => /^[0-9a-f]{32}$/.test(id));

function HeadCell({ column, place, order }: { column: ListColumn; place: Place; order: Order }) {
  if (!column.order) return <th class={column.isRight ? "right" : ""}>{column.title}</th>;
  const isMine = order.order === column.order;
  const isFalling = (column.isFalling ?? false) !== order.reverse;
  const click = () => go({ ...place, query: { ...place.query, order: column.order!, reverse: isMine && !order.reverse ? "yes" : "", offset: "" } });
  return (
    <th class={column.isRight ? "right" : ""} aria-sort={isMine ? (isFalling ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={click}>{column.title}{isMine ? (isFalling ? " ▾" : " ▴") : ""}</button>
    </th>
  );
}

function Row({ run, columns, place, chosen }: { run: Run; columns: ListColumn[]; place: Place; chosen: string[] }) {
  const isChosen = chosen.includes(run.id);
  const toggle = () => {
    const runs = isChosen ? chosen.filter((id) => id !== run.id) : [...chosen, run.id];
    go({ ...place, query: { ...place.query, runs: runs.join(",") } }, true);
  };
  return (
    <tr>
      <td><input type="checkbox" checked={isChosen} disabled={!isChosen && chosen.length >= COMPARE_MOST} aria-label={`Compare ${shortOf(run.id)}`} onChange={toggle} /></td>
      <td class="code"><a href={hrefOf(placeOfRun(run.id))}>{shortOf(run.id)}</a></td>
      {columns.map((column) => <td key={column.title} class={column.isRight ? "right" : ""} title={column.of(run)}>{column.of(run)}</td>)}
    </tr>
  );
}

function Pages({ list, place, order }: { list: RunList; place: Place; order: Order }) {
  const to = (offset: number) => hrefOf({ ...place, query: { ...place.query, offset: offset ? String(offset) : "" } });
  const last = order.offset + list.runs.length;
  return (
    <p class="foot" aria-label="Pages">
      <span>{formatCount(order.offset + 1)} to {formatCount(last)} of {formatCount(list.runs_total)} runs</span>
      {order.offset > 0 && <a href={to(Math.max(0, order.offset - PAGE_RUNS))}>Before</a>}
      {last < list.runs_total && <a href={to(last)}>Next</a>}
    </p>
  );
}

function Tools({ place, choice, order }: { place: Place; choice: Choice; order: Order }) {
  const chosen = chosenOf(place);
  const canCompare = chosen.length >= 2;
  return (
    <p class="tools">
      {canCompare
        ? <a class="action" href={hrefOf({ view: "history", what: "compare", query: { runs: chosen.join(",") } })}>Compare {chosen.length} runs</a>
        : <span class="dim">Choose 2 to {COMPARE_MOST} runs to compare them{chosen.length ? "; one is chosen" : ""}.</span>}
      {chosen.length > 0 && <button type="button" onClick={() => go({ ...place, query: { ...place.query, runs: "" } }, true)}>Choose none</button>}
      <span class="save">
        <a href={history.listCsv(choice, order)} download="runs.csv">CSV</a>
        <a href={history.exported(choice)} download="runs.jsonl">Export</a>
      </span>
    </p>
  );
}

function EmptyList({ choice }: { choice: Choice }) {
  if (Object.keys(choice).length) return <Empty>No run is left by these filters: clear one of them.</Empty>;
  return <Empty>No run is in the database yet. Add captures to it: <code>sonde runs add --store FILE CAPTURE…</code>, or import runs under <a href="#/history/database">Database</a>.</Empty>;
}

// How often it has changed.
function useChanges(text: string): number {
  const seen = useRef({ text, count: 0 });
  if (seen.current.text !== text) seen.current = { text, count: seen.current.count + 1 };
  return seen.current.count;
}

export function ListView({ place }: { place: Place }) {
  const choice = choiceOf(place);
  const order = orderOf(place);
  const { runs: _, ...asked } = place.query;
  // The list of before stays until the next is there.
  const loaded = useLoaded(() => history.list(choice, order), "list", useChanges(JSON.stringify(asked)));
  return (
    <>
      <ChoiceForm place={place} />
      <Waiting loaded={loaded} what="The list of runs">{(list) => <Runs list={list} {...{ place, choice, order }} />}</Waiting>
    </>
  );
}

function Runs({ list, place, choice, order }: { list: RunList; place: Place; choice: Choice; order: Order }) {
  const columns = COLUMNS.filter((column) => list.runs.some((run) => column.of(run)));
  if (!list.runs.length) return <main><EmptyList choice={choice} /></main>;
  return (
    <main class="wide">
      <Tools {...{ place, choice, order }} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
        <table class="runs">
          <thead><tr><td /><th>Run</th>{columns.map((column) => <HeadCell key={column.title} {...{ column, place, order }} />)}</tr></thead>
          <tbody>{list.runs.map((run) => <Row key={run.id} {...{ run, columns, place }} chosen={chosenOf(place)} />)}</tbody>
        </table>
      </div>
      <Pages {...{ list, place, order }} />
    </main>
  );
}
