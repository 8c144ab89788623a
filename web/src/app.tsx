// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { hrefOf, usePlace } from "./router";
import type { Place } from "./router";
import type { Source } from "./source";
import { FlameView } from "./views/flame";
import { ReportView } from "./views/report";

type Loaded<T> = { state: "loading" } | { state: "failed"; why: string } | { state: "ready"; value: T };

function useLoaded<T>(load: () => Promise<T>, key: string): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  useEffect(() => {
    let isOver = false;
    setLoaded({ state: "loading" });
    load().then(
      (value) => { if (!isOver) setLoaded({ state: "ready", value }); },
      (error: unknown) => { if (!isOver) setLoaded({ state: "failed", why: error instanceof Error ? error.message : String(error) }); },
    );
    return () => { isOver = true; };
  }, [key]);
  return loaded;
}

function Waiting<T>({ loaded, what, children }: { loaded: Loaded<T>; what: string; children: (value: T) => ComponentChildren }) {
  if (loaded.state === "loading") return <main><p role="status">Loading {what} …</p></main>;
  if (loaded.state === "failed") return <main><p role="alert">{loaded.why}</p></main>;
  return <>{children(loaded.value)}</>;
}

function ReportPage({ source, place }: { source: Source; place: Place }) {
  const loaded = useLoaded(() => source.report(null), "report");
  return <Waiting loaded={loaded} what="the report">{(report) => <ReportView report={report} what={place.what} />}</Waiting>;
}

function FlamePage({ source, place }: { source: Source; place: Place }) {
  const weight = place.what || source.weights[0] || "cpu";
  const loaded = useLoaded(() => source.tree(weight), weight);
  return <Waiting loaded={loaded} what="the flame graph">{(tree) => <FlameView tree={tree} weights={source.weights} place={place} />}</Waiting>;
}

const views: Record<string, { title: string; Page: typeof ReportPage }> = {
  report: { title: "Report", Page: ReportPage },
  flame: { title: "Flame graph", Page: FlamePage },
};

export function App({ source }: { source: Source }) {
  const place = usePlace();
  const view = views[place.view];
  useEffect(() => { document.title = `${source.name}: ${view?.title ?? "sonde"}`; }, [place.view]);
  return (
    <>
      <header>
        <h1><span class="brand">sonde</span> {source.name}</h1>
        <nav aria-label="Views">
          {Object.entries(views).filter(([key]) => key !== "flame" || source.weights.length).map(([key, { title }]) => (
            <a key={key} href={hrefOf({ view: key })} aria-current={key === place.view ? "page" : undefined}>{title}</a>
          ))}
        </nav>
      </header>
      {view ? <view.Page source={source} place={place} /> : <main><p role="alert">There is no view {place.view} here: choose one above.</p></main>}
    </>
  );
}
