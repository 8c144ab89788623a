// SPDX-License-Identifier: Apache-2.0
// The history: the runs database of a server that has one.
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { hrefOf } from "../router";
import type { Place } from "../router";
import { AnalysesView } from "./analyses";
import { CompareView } from "./compare";
import { DatabaseView } from "./database";
import { ListView } from "./list";
import { RegressionsView } from "./regressions";
import { RunView } from "./run";
import "./history.css";

export interface HistoryProps {
  place: Place;
  canChange: boolean;
}

interface HistoryPart {
  title: string | null; // null: not among the links
  View: (props: HistoryProps) => ComponentChildren;
}

const parts: Record<string, HistoryPart> = {
  "": { title: "Runs", View: ListView },
  run: { title: null, View: RunView },
  compare: { title: "Compare", View: CompareView },
  analyses: { title: "Analyses", View: AnalysesView },
  regressions: { title: "Regressions", View: RegressionsView },
  database: { title: "Database", View: DatabaseView },
};

export function HistoryPage({ place, canChange }: HistoryProps) {
  const name = place.what.split("/")[0] ?? "";
  const part = Object.hasOwn(parts, name) ? parts[name] : undefined;
  useEffect(() => { document.title = `History: ${part?.title ?? "run"}`; }, [name]);
  return (
    <>
      <header>
        <h1><span class="brand">sonde</span> History</h1>
        <nav aria-label="Views">
          {Object.entries(parts).filter(([, { title }]) => title).map(([key, { title }]) => (
            <a key={key} href={hrefOf({ view: "history", what: key })} aria-current={key === name ? "page" : undefined}>{title}</a>
          ))}
          <a href="#/">Captures</a>
        </nav>
      </header>
      {part ? <part.View place={place} canChange={canChange} /> : <main><p role="alert">There is no view {place.what} in the history: choose one above.</p></main>}
    </>
  );
}
