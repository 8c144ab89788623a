// SPDX-License-Identifier: Apache-2.0
// Recordings that the server starts: a form for each command that its operator allows, and what became of them.
import { useEffect, useState } from "preact/hooks";
import type { Command, CommandParameter, Job } from "../api";
import { useLatest } from "../live/frames";
import type { LiveFeed } from "../live/state";
import { Waiting, useLoaded } from "../loaded";
import { hrefOf } from "../router";
import type { Controls } from "../source";

const EVERY_MS = 100;

type Values = Record<string, string>;

export const firstValues = (command: Command): Values => Object.fromEntries(command.parameters.map(({ name, default: value, choices }) => [name, String(value ?? choices[0] ?? "")]));

// What is left empty is not sent: the operator's default holds.
export function parametersOf(command: Command, values: Values): Record<string, string | number> {
  const given = command.parameters.filter(({ name }) => (values[name] ?? "") !== "");
  return Object.fromEntries(given.map(({ name, type }) => [name, type === "integer" || type === "number" ? Number(values[name]) : values[name]!]));
}

interface FieldProps {
  parameter: CommandParameter;
  value: string;
  onChange: (value: string) => void;
}

function Input({ parameter: { type, choices, minimum, maximum }, value, onChange }: FieldProps) {
  if (type === "choice") {
    return <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>{choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}</select>;
  }
  if (type === "string") return <input value={value} onInput={(event) => onChange(event.currentTarget.value)} />;
  return <input type="number" value={value} min={minimum ?? undefined} max={maximum ?? undefined} step={type === "integer" ? 1 : "any"} onInput={(event) => onChange(event.currentTarget.value)} />;
}

function Field(props: FieldProps) {
  const { name, minimum, maximum } = props.parameter;
  const bounds = minimum !== null && maximum !== null ? `${minimum} to ${maximum}` : minimum !== null ? `from ${minimum}` : maximum !== null ? `up to ${maximum}` : "";
  return (
    <label>{name} <Input {...props} />
      {bounds && <span class="dim"> {bounds}</span>}
    </label>
  );
}

// Runs what a button asks for; its failure is a sentence below it.
function useAction(): { isBusy: boolean; fault: string; run: (action: () => Promise<void>) => void } {
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const run = (action: () => Promise<void>) => {
    setBusy(true);
    setFault("");
    action().catch((error: unknown) => setFault(error instanceof Error ? error.message : String(error))).finally(() => setBusy(false));
  };
  return { isBusy, fault, run };
}

function CommandForm({ commands, controls, onJob }: { commands: Command[]; controls: Controls; onJob: (job: Job) => void }) {
  const [name, setName] = useState(commands[0]!.name);
  const command = commands.find((candidate) => candidate.name === name) ?? commands[0]!;
  const [values, setValues] = useState<Values>(() => firstValues(command));
  const { isBusy, fault, run } = useAction();
  useEffect(() => setValues(firstValues(command)), [command.name]);
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => onJob(await controls.start(command.name, parametersOf(command, values))));
  };
  return (
    <form class="command" onSubmit={submit}>
      <label>Command <select value={command.name} onChange={(event) => setName(event.currentTarget.value)}>
        {commands.map((candidate) => <option key={candidate.name} value={candidate.name}>{candidate.name}</option>)}
      </select></label>
      {command.description && <p class="dim">{command.description}</p>}
      {command.parameters.map((parameter) => (
        <Field key={parameter.name} parameter={parameter} value={values[parameter.name] ?? ""} onChange={(value) => setValues({ ...values, [parameter.name]: value })} />
      ))}
      <p><button type="submit" disabled={isBusy}>Record it</button></p>
      {fault && <p role="alert">{fault}</p>}
    </form>
  );
}

const STATES: Record<Job["state"], string> = { running: "running", ended: "ended", failed: "failed", cancelled: "cancelled" };

function stateText({ state, exit_status }: Job): string {
  return exit_status === null || state === "running" ? STATES[state] : `${STATES[state]}, exit status ${exit_status}`;
}

// Of a recording that runs: to end it, and to open and close its window.
export function JobButtons({ job, controls, onJob }: { job: Job; controls: Controls; onJob: (job: Job) => void }) {
  const { isBusy, fault, run } = useAction();
  if (job.state !== "running") return null;
  const next = job.window === "open" ? "close" : "open";
  return (
    <span class="job-buttons">
      {job.window !== null && <button type="button" disabled={isBusy} onClick={() => run(async () => onJob(await controls.window(job.id, next)))}>{next === "open" ? "Open window" : "Close window"}</button>}
      <button type="button" disabled={isBusy} onClick={() => run(async () => onJob(await controls.cancel(job.id)))}>Cancel</button>
      {fault && <span role="alert">{fault}</span>}
    </span>
  );
}

function JobList({ jobs, controls, isReadOnly, onJob }: { jobs: Job[]; controls: Controls; isReadOnly: boolean; onJob: (job: Job) => void }) {
  if (!jobs.length) return <p class="empty">Nothing has been recorded from here yet.</p>;
  return (
    <div class="table"><div class="scroll" tabIndex={0} role="region" aria-label="Recordings"><table>
      <thead><tr><th>Command</th><th>Started</th><th>State</th><th>Capture</th><td /></tr></thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <td>{job.command}</td>
            <td>{new Date(job.started_unix_ms).toLocaleTimeString()}</td>
            <td>{stateText(job)} <span class="dim">{job.message}</span></td>
            <td>{job.capture && <a href={hrefOf({ view: job.state === "running" ? "live" : "report", query: { capture: job.capture } })}>{job.state === "running" ? "Live" : "Report"}</a>}</td>
            <td>{!isReadOnly && <JobButtons job={job} controls={controls} onJob={onJob} />}</td>
          </tr>
        ))}
      </tbody>
    </table></div></div>
  );
}

// The jobs of the server, the latest first; asked for once for each run of the server, then told by messages.
export function useJobs(controls: Controls | null, feed: LiveFeed): Job[] {
  const hello = useLatest(feed.topic, EVERY_MS, true, () => feed.hello);
  useEffect(() => {
    if (!controls || !hello) return;
    controls.jobs().then((jobs) => feed.takeJobs(jobs), () => {});
  }, [controls, hello?.started_unix_ms]);
  return useLatest(feed.jobTopic, EVERY_MS, true, () => [...feed.jobs.values()].sort((a, b) => b.started_unix_ms - a.started_unix_ms));
}

function NoCommands() {
  return (
    <p class="empty">
      Nothing may be started from here. The operator of the server lists what may be run in a file, and starts the server with <code>sonde serve --commands FILE</code>.
    </p>
  );
}

export function ControlsView({ controls, feed }: { controls: Controls; feed: LiveFeed }) {
  const jobs = useJobs(controls, feed);
  const isReadOnly = useLatest(feed.topic, EVERY_MS, true, () => feed.hello?.read_only ?? false);
  const loaded = useLoaded(() => controls.commands(), "commands");
  const onJob = (job: Job) => feed.takeJob(job);
  return (
    <Waiting loaded={loaded} what="The list of commands">{(commands) => (
      <main>
        <h3>Record</h3>
        {isReadOnly ? <p class="empty">This server is read-only: nothing is started, cancelled or changed from here.</p>
          : commands.length ? <CommandForm commands={commands} controls={controls} onJob={onJob} /> : <NoCommands />}
        <h3>Recordings</h3>
        <JobList jobs={jobs} controls={controls} isReadOnly={isReadOnly} onJob={onJob} />
      </main>
    )}</Waiting>
  );
}
