// SPDX-License-Identifier: Apache-2.0
// One run: what is kept of it, its labels, which can be changed, and its end.
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import { go, hrefOf } from "../router";
import type { Place } from "../router";
import { Waiting, useLoaded } from "../loaded";
import { Failure, ShownView, fileOf, shortOf, useAction } from "./parts";
import { history } from "./source";
import type { Run, RunDocument } from "./types";

// Where it can be opened; a sentence where it cannot.
function CaptureLink({ run }: { run: Run }) {
  const loaded = useLoaded(() => history.capture(run.id), run.id);
  if (loaded.state === "loading") return <p class="dim" role="status">Looking for its capture …</p>;
  if (loaded.state === "failed") return <p class="dim">{run.path}: {loaded.why}</p>;
  const { id, name } = loaded.value;
  const to = (view: string) => hrefOf({ view, query: { capture: id } });
  return <p>Its capture {name}: <a href={to("report")}>report</a>, <a href={to("flame")}>flame graph</a>, <a href={to("timeline")}>timeline</a></p>;
}

function Tags({ tags, change }: { tags: string[]; change: (tags: string[]) => void }) {
  const [text, setText] = useState("");
  const add = () => { if (text.trim() && !tags.includes(text.trim())) change([...tags, text.trim()]); setText(""); };
  return (
    <p class="tags">
      <span>Tags</span>
      {tags.map((tag) => <span key={tag} class="tag">{tag} <button type="button" aria-label={`Take the tag ${tag}`} onClick={() => change(tags.filter((one) => one !== tag))}>×</button></span>)}
      <input value={text} aria-label="New tag" placeholder="new tag" maxLength={255} onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === "Enter") { event.preventDefault(); add(); } }} />
      <button type="button" onClick={add}>Add</button>
    </p>
  );
}

function Labels({ run, saved }: { run: Run; saved: (run: Run) => void }) {
  const [tags, setTags] = useState(run.tags);
  const [notes, setNotes] = useState(run.notes ?? "");
  const [experiment, setExperiment] = useState(run.experiment ?? "");
  const [isSaved, setSaved] = useState(false);
  const { isBusy, failure, run: act } = useAction();
  const isSame = JSON.stringify([tags, notes, experiment]) === JSON.stringify([run.tags, run.notes ?? "", run.experiment ?? ""]);
  const submit = (event: Event) => {
    event.preventDefault();
    act(async () => {
      saved((await history.edit(run.id, { tags, notes, experiment })).run);
      setSaved(true);
    });
  };
  return (
    <form class="labels" onSubmit={submit} aria-label="Labels">
      <Tags tags={tags} change={setTags} />
      <label>Experiment <input value={experiment} maxLength={255} onInput={(event) => setExperiment(event.currentTarget.value)} /></label>
      <label>Notes <textarea rows={3} value={notes} maxLength={16384} onInput={(event) => setNotes(event.currentTarget.value)} /></label>
      <p><button type="submit" disabled={isSame || isBusy}>Save</button> <span role="status" class="dim">{isSame && isSaved ? "Saved." : ""}</span></p>
      <Failure text={failure} />
    </form>
  );
}

function LabelsShown({ run }: { run: Run }) {
  const lines: [string, string][] = [["Tags", run.tags.join(", ")], ["Experiment", run.experiment ?? ""], ["Notes", run.notes ?? ""]];
  return <>{lines.filter(([, text]) => text).map(([title, text]) => <p key={title}>{title}: {text}</p>)}</>;
}

function End({ document: { run, kept } }: { document: RunDocument }) {
  const [isAsked, setAsked] = useState(false);
  const { isBusy, failure, run: act } = useAction();
  const rows = Object.entries(kept).filter(([, count]) => count > 0).map(([table, count]) => `${formatCount(count)} ${table}`);
  if (!isAsked) return <p><button type="button" onClick={() => setAsked(true)}>Delete this run …</button></p>;
  const remove = () => act(async () => { await history.remove(run.id); go({ view: "history" }); });
  return (
    <div class="confirm" role="group" aria-label="Delete this run?">
      <p>This deletes the run {shortOf(run.id)} and all that belongs to it{rows.length > 0 && `: ${rows.join(", ")}`}. Its capture {fileOf(run.path)} stays.</p>
      <p><button type="button" class="danger" disabled={isBusy} onClick={remove}>Delete</button> <button type="button" onClick={() => setAsked(false)}>Keep it</button></p>
      <Failure text={failure} />
    </div>
  );
}

function Details({ found, place, canChange }: { found: RunDocument; place: Place; canChange: boolean }) {
  const [run, setRun] = useState(found.run);
  const section = place.query.section ?? "";
  const loaded = useLoaded(() => history.shown(run.id, section), `${run.id} ${section}`);
  const change = (name: string) => go({ ...place, query: { section: name } });
  return (
    <main>
      <h2>Run {shortOf(run.id)} <span class="dim">{fileOf(run.path)}</span></h2>
      <CaptureLink run={run} />
      {canChange ? <Labels run={run} saved={setRun} /> : <LabelsShown run={run} />}
      <p class="tools"><label>Show <select value={section} onChange={(event) => change(event.currentTarget.value)}>
        <option value="">its figures</option>
        {found.sections.map((one) => <option key={one.section} value={one.section}>section {one.section} of its report</option>)}
      </select></label></p>
      <Waiting loaded={loaded} what="The run">{(shown) => <ShownView shown={shown} name={section || "run"} />}</Waiting>
      {canChange && <End document={found} />}
    </main>
  );
}

export function RunView({ place, canChange }: { place: Place; canChange: boolean }) {
  const id = place.what.slice("run/".length);
  const loaded = useLoaded(() => history.run(id), id);
  return <Waiting loaded={loaded} what="The run">{(found) => <Details key={id} found={found} place={place} canChange={canChange} />}</Waiting>;
}
