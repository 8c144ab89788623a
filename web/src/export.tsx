// SPDX-License-Identifier: Apache-2.0
// The capture in other tools' formats: saved, or opened in speedscope's app, which the server has beside this page.
import { useState } from "preact/hooks";
import { save } from "./save";
import type { CaptureSource, Filters, Progress } from "./source";

// [format, what it is for, whether --weight changes it]
const FORMATS: [string, string, boolean][] = [
  ["flamegraph", "flame graph (SVG)", true],
  ["folded", "folded stacks", true],
  ["speedscope", "speedscope", true],
  ["pprof", "pprof", true],
  ["otlp", "OpenTelemetry profile", true],
  ["csv", "functions (CSV)", true],
  ["perf-script", "perf script", true],
  ["json", "report (JSON)", false],
  ["jsonl", "all events (JSON lines)", false],
  ["chrome", "Chrome trace", false],
  ["pftrace", "Perfetto trace of the rows", false],
  ["chakra", "Chakra trace", false],
  ["roofline", "operators under the roof (SVG)", false],
  ["memory", "memory over time (SVG)", false],
  ["collectives", "bandwidth of collectives (SVG)", false],
];

// What is being made, or why it could not be.
function useWork(): [string, (work: (progress: Progress) => Promise<void>) => void] {
  const [said, setSaid] = useState("");
  const start = (work: (progress: Progress) => Promise<void>) => {
    setSaid("being made …");
    work((text) => setSaid(`being made: ${text} …`)).then(() => setSaid(""), (error: unknown) => setSaid(error instanceof Error ? error.message : String(error)));
  };
  return [said, start];
}

export function ExportMenu({ capture, weight, filters }: { capture: CaptureSource; weight: string; filters: Filters }) {
  const [said, start] = useWork();
  const [speedscope, setSpeedscope] = useState("");
  const make = capture.export;
  if (!make) return null;
  const pick = (format: string, isWeighed: boolean) => start(async (progress) => {
    const { name, content } = await make(format, isWeighed ? weight : null, filters, progress);
    save(name, content);
  });
  // Made here first, so that its progress and failures are shown here; the server keeps it for speedscope's page.
  const open = () => start(async (progress) => {
    const href = capture.speedscopeHref!(weight, filters);
    setSpeedscope("");
    await make("speedscope", weight, filters, progress);
    if (!window.open(href)) setSpeedscope(href);
  });
  return (
    <span class="export">
      <label>Save as <select value="" onChange={(event) => {
        const format = FORMATS.find(([name]) => name === event.currentTarget.value);
        event.currentTarget.value = "";
        if (format) pick(format[0], format[2]);
      }}>
        <option value="">choose …</option>
        {FORMATS.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
      </select></label>
      {capture.speedscopeHref && <button type="button" onClick={open}>Open in speedscope</button>}
      {speedscope && <a href={speedscope} target="_blank" rel="noreferrer">speedscope is ready: open it</a>}
      {said && <span class="said" role="status">{said}</span>}
    </span>
  );
}
