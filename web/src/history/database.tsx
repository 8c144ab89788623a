// SPDX-License-Identifier: Apache-2.0
// How large the database is, which runs are kept, and runs from and for other databases.
import { useState } from "preact/hooks";
import { formatBytes, formatCount } from "../format";
import { hrefOf } from "../router";
import { Waiting, useLoaded } from "../loaded";
import { Empty, Failure, fileOf, placeOfRun, shortOf, showTime, useAction } from "./parts";
import { history } from "./source";
import type { Removed, Run } from "./types";

const runs = (count: number) => `${formatCount(count)} ${count === 1 ? "run" : "runs"}`;
const SHOWN = 100;

function Going({ found }: { found: Run[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Runs that would be deleted">
      <table>
        <thead><tr><th>Run</th><th>When</th><th>Experiment</th><th>Capture</th></tr></thead>
        <tbody>{found.slice(0, SHOWN).map((run) => (
          <tr key={run.id}><td class="code"><a href={hrefOf(placeOfRun(run.id))}>{shortOf(run.id)}</a></td><td>{showTime(run.time_ns)}</td><td>{run.experiment ?? ""}</td><td class="code">{fileOf(run.path)}</td></tr>
        ))}</tbody>
      </table>
    </div>
  );
}

function Outcome({ removed, isBusy, confirm }: { removed: Removed; isBusy: boolean; confirm: () => void }) {
  const count = removed.runs.length;
  if (removed.is_done) return <p role="status">{runs(count)} deleted; their captures stay.</p>;
  if (!count) return <Empty>No run would be deleted.</Empty>;
  return (
    <div class="confirm" role="group" aria-label="Delete these runs?">
      <p>{runs(count)} would be deleted with all that belongs to them; their captures stay.{count > SHOWN && ` The first ${SHOWN}:`}</p>
      <Going found={removed.runs} />
      <p><button type="button" class="danger" disabled={isBusy} onClick={confirm}>Delete {runs(count)}</button></p>
    </div>
  );
}

function Retention({ changed }: { changed: () => void }) {
  const [keep, setKeep] = useState("");
  const [days, setDays] = useState("");
  const [removed, setRemoved] = useState<Removed | null>(null);
  const { isBusy, failure, run } = useAction();
  const ask = (isDone: boolean) => run(async () => {
    setRemoved(await history.retain(Number(keep) || undefined, Number(days) || undefined, isDone));
    if (isDone) changed();
  });
  const set = (change: (text: string) => void) => (event: { currentTarget: HTMLInputElement }) => { setRemoved(null); change(event.currentTarget.value); };
  return (
    <section aria-label="Retention">
      <h3>Retention</h3>
      <form class="tools" onSubmit={(event) => { event.preventDefault(); ask(false); }}>
        <label>Keep the newest <input type="number" min="1" max="1000000000" value={keep} onInput={set(setKeep)} /> runs</label>
        <label>and none older than <input type="number" min="1" max="100000" value={days} onInput={set(setDays)} /> days</label>
        <button type="submit" disabled={isBusy || (!keep && !days)}>Show what would be deleted</button>
      </form>
      {removed && <Outcome removed={removed} isBusy={isBusy} confirm={() => ask(true)} />}
      <Failure text={failure} />
    </section>
  );
}

function Import({ changed }: { changed: () => void }) {
  const [done, setDone] = useState("");
  const { isBusy, failure, run } = useAction();
  const chosen = (event: { currentTarget: HTMLInputElement }) => {
    const file = event.currentTarget.files?.[0];
    if (!file) return;
    setDone("");
    run(async () => {
      const { added, known } = await history.importFile(file);
      setDone(`${runs(added)} added; ${formatCount(known)} ${known === 1 ? "was" : "were"} there already.`);
      changed();
    });
  };
  return (
    <section aria-label="Import">
      <h3>Import</h3>
      <p><label>Runs that were exported: <input type="file" accept=".jsonl,application/x-ndjson" disabled={isBusy} onChange={chosen} /></label></p>
      {isBusy && <p role="status">Importing …</p>}
      {done && <p role="status">{done}</p>}
      <Failure text={failure} />
    </section>
  );
}

export function DatabaseView({ canChange }: { canChange: boolean }) {
  const [version, setVersion] = useState(0);
  const loaded = useLoaded(() => history.stats(), "stats", version);
  const changed = () => setVersion(version + 1);
  return (
    <Waiting loaded={loaded} what="The database">
      {(stats) => (
        <main>
          <h2>The runs database</h2>
          <p>{stats.store}: {runs(stats.runs)}, {formatBytes(stats.bytes)}{stats.runs > 0 && `, recorded from ${showTime(stats.oldest_ns)} to ${showTime(stats.newest_ns)}`}.</p>
          <p><a href={history.exported({})} download="runs.jsonl">Export all runs</a></p>
          {canChange ? <><Retention changed={changed} /><Import changed={changed} /></> : <Empty>This server only reads: it was started with --read-only.</Empty>}
        </main>
      )}
    </Waiting>
  );
}
