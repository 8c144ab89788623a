// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { CallTree } from "./report";
import { connectionText, useConnection } from "./live/connection";
import { useLatest } from "./live/frames";
import { useGrowth } from "./live/growth";
import type { Growth } from "./live/growth";
import type { LiveFeed } from "./live/state";
import { Waiting, keyOf, useLoaded } from "./loaded";
import type { Loaded } from "./loaded";
import { go, hrefOf, usePlace } from "./router";
import type { Place } from "./router";
import { ExportMenu } from "./export";
import { HistoryPage } from "./history/history";
import { FILTERS } from "./source";
import type { CaptureSource, Filters, Progress, Source } from "./source";
import { OpenInPerfetto } from "./perfetto/button";
import { ControlsView } from "./views/controls";
import { FlameView } from "./views/flame";
import { LiveView } from "./views/live/view";
import { SHADES, UNASKED as SHADES_UNASKED, bandsOf } from "./graphs/bands";
import type { Shades } from "./graphs/bands";
import { KINDS, itemsOf, tokenItems } from "./steps";
import { GraphsView } from "./views/graphs";
import { PlotSource } from "./views/plot";
import { SectionView, idOf } from "./views/section";
import { StepsView } from "./views/steps";
import { ModelView } from "./views/model";
import type { Layers } from "./views/model";
import { OneSectionView, ReportView } from "./views/report";
import type { TileSource, Tracks } from "./timeline/source";
import { TimelineView } from "./views/timeline";
import { TokensView } from "./views/tokens";
import type { Inference } from "./views/tokens";

interface PageProps {
  capture: CaptureSource;
  source: Source;
  place: Place;
  filters: Filters;
  version: number; // of the capture, while it grows
  growth: Growth;
  feed: LiveFeed;
}

const ITEMS_MAX = 20_000; // steps, requests: rows that are asked for

function ReportPage({ capture, place, filters, version }: PageProps) {
  const loaded = useLoaded((progress) => capture.report(null, filters, progress), keyOf(capture.id, filters), version);
  if (loaded.state === "failed" && Object.keys(filters).length) return <FilteredSections why={loaded.why} place={place} />;
  return <Waiting loaded={loaded} what="The report">{(report) => <PlotSource.Provider value={{ capture, filters }}><ReportView report={report} place={place} canAsk={capture.filters} /></PlotSource.Provider>}</Waiting>;
}

// Of other tools' traces only some sections can be filtered: they are offered in place of all.
function FilteredSections({ why, place }: { why: string; place: Place }) {
  return (
    <main>
      <p role="alert">{why}</p>
      <p>Sections of samples and stacks: {["function", "line", "module", "class", "stack", "thread", "process"].map((by) => <><a key={by} href={hrefOf({ view: "section", what: by, query: place.query })}>{by}</a> </>)}</p>
    </main>
  );
}

function SectionPage({ capture, place, filters, version }: PageProps) {
  const loaded = useLoaded((progress) => capture.report(place.what, filters, progress), keyOf(capture.id, place.what, filters), version);
  return <Waiting loaded={loaded} what="The section">{(report) => <PlotSource.Provider value={{ capture, filters }}><OneSectionView report={report} place={place} /></PlotSource.Provider>}</Waiting>;
}

function Tree({ load, id, place, weights, version }: { load: (weight: string, progress: Progress) => Promise<CallTree>; id: string; place: Place; weights: string[]; version: number }) {
  const weight = place.what || weights[0] || "cpu";
  const loaded = useLoaded((progress) => load(weight, progress), keyOf(id, weight), version);
  return (
    <>
      {loaded.state !== "ready" && <div class="filters"><WeightChoice place={place} weights={weights} weight={weight} /></div>}
      <Waiting loaded={loaded} what="The flame graph">{(tree) => <FlameView tree={tree} weights={weights} place={place} />}</Waiting>
    </>
  );
}

// While there is no graph that has one.
function WeightChoice({ place, weights, weight }: { place: Place; weights: string[]; weight: string }) {
  return (
    <label>Width is <select value={weight} onChange={(event) => go({ ...place, what: event.currentTarget.value })}>
      {weights.map((name) => <option key={name} value={name}>{name}</option>)}
    </select></label>
  );
}

function FlamePage({ capture, place, filters, version }: PageProps) {
  return <Tree load={(weight, progress) => capture.tree(weight, filters, progress)} id={keyOf(capture.id, filters)} place={place} weights={capture.weights} version={version} />;
}

function ComparePage({ capture, source, place, filters }: PageProps) {
  const others = source.captures.filter(({ id }) => id !== capture.id);
  const after = place.query.after ?? "";
  return (
    <>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <span>{capture.name} is before.</span>
        <label>After is <select value={after} onChange={(event) => go({ ...place, query: { ...place.query, after: event.currentTarget.value, zoom: "", function: "" } })}>
          <option value="">choose one</option>
          {others.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
        </select></label>
      </form>
      {after
        ? <Tree load={(weight, progress) => capture.difference!(after, weight, filters, progress)} id={keyOf(capture.id, after, filters)} place={place} weights={capture.weights} version={0} />
        : <main><p>Choose the capture to compare with: the flame graph shows in red what takes more of it, in blue what takes less.</p></main>}
    </>
  );
}

function ModelPage({ capture, place, filters, version }: PageProps) {
  const loaded = useLoaded((progress) => capture.figures("layer", filters, progress), keyOf(capture.id, filters), version);
  return <Waiting loaded={loaded} what="The model">{({ layers }) => <ModelView layers={(layers ?? null) as Layers | null} place={place} />}</Waiting>;
}

function TokensPage({ capture, place, filters, version }: PageProps) {
  const loaded = useLoaded((progress) => capture.figures("token", filters, progress), keyOf(capture.id, filters), version);
  return <Waiting loaded={loaded} what="The list of tokens">{({ inference }) => <TokensView inference={(inference ?? null) as Inference | null} place={place} />}</Waiting>;
}

interface Tracked {
  tracks: Tracks;
  source: TileSource;
}

// The tracks of a capture, anew when it has grown: when the page follows it, and when those that it has are gone.
function useTracks(capture: CaptureSource, version: number): Loaded<Tracked> {
  const [gone, setGone] = useState(0);
  const load = async (progress: Progress) => {
    const tracks = await capture.timeline!.tracks(progress);
    let isGone = false;
    const onGone = () => { if (!isGone) setGone((count) => count + 1); isGone = true; };
    return { tracks, source: capture.timeline!.of(tracks.version, onGone) };
  };
  return useLoaded(load, keyOf(capture.id), version + gone);
}

function TimelinePage({ capture, place, version }: PageProps) {
  const loaded = useTracks(capture, version);
  return <Waiting loaded={loaded} what="The timeline">{({ tracks, source }) => <TimelineView source={source} tracks={tracks} place={place} />}</Waiting>;
}

function LivePage({ capture, source, place, growth, feed }: PageProps) {
  const live = useLatest(feed.topic, LIVE_MS, true, () => feed.find(capture.id));
  if (!live) return <main><p>{capture.name} is not being recorded: nothing was heard of it since this page was opened. <a href={hrefOf({ view: "report", query: place.query })}>Its report</a> has it all.</p></main>;
  return <LiveView key={live.id} capture={capture} live={live} feed={feed} place={place} growth={growth} controls={source.controls} />;
}

function ControlsPage({ source, feed }: PageProps) {
  return <ControlsView controls={source.controls!} feed={feed} />;
}

// Where the address names none: the first of these that the recording has.
const UNASKED = ["step", "request", "window", "rank"];

function StepsPage({ capture, place, filters, version }: PageProps) {
  const kinds = KINDS[place.what] ? [place.what] : UNASKED;
  const loadKind = async (kind: string, progress: Progress) => {
    const { by, orBy } = KINDS[kind]!;
    const report = await capture.report(by, filters, progress, ITEMS_MAX);
    if (kind === "token") return { kind, report, items: tokenItems(((await capture.figures(by, filters, progress)).inference ?? null) as Inference | null, ITEMS_MAX) };
    const items = itemsOf(kind, report);
    return { kind, report, items: items ?? (orBy ? itemsOf(kind, await capture.report(orBy, filters, progress, ITEMS_MAX)) : null) };
  };
  const load = async (progress: Progress) => {
    const first = await loadKind(kinds[0]!, progress);
    for (const kind of first.items ? [] : kinds.slice(1)) {
      const found = await loadKind(kind, progress);
      if (found.items) return found;
    }
    return first;
  };
  const loaded = useLoaded(load, keyOf(capture.id, place.what, filters), version);
  const sectionOf = (section: string, filter: Filters) => <PartOfReport capture={capture} by={section} filters={{ ...filters, ...filter }} />;
  return <Waiting loaded={loaded} what="The list">{({ kind, report, items }) => <StepsView kind={kind} items={items} names={report.names} place={place} sectionOf={sectionOf} />}</Waiting>;
}

// A section, inside of another view.
function PartOfReport({ capture, by, filters }: { capture: CaptureSource; by: string; filters: Filters }) {
  const loaded = useLoaded((progress) => capture.report(by, filters, progress), keyOf(capture.id, by, filters));
  if (loaded.state === "loading") return <p role="status">The section is being made{loaded.text && `: ${loaded.text}`} …</p>;
  if (loaded.state === "failed") return <p role="alert">{loaded.why}</p>;
  return <>{loaded.value.sections.filter(({ blocks }) => blocks.length).map((section) => <SectionView key={idOf(section)} section={section} />)}</>;
}

// What graphs are shaded by: of the choice, or of the first kind that there is.
async function shadesOf(capture: CaptureSource, chosen: string, progress: Progress): Promise<Shades> {
  if (chosen === "none") return { kind: "none", bands: [] };
  for (const kind of chosen ? [chosen] : SHADES_UNASKED) {
    const bands = bandsOf(kind, await capture.report(KINDS[kind]!.by, {}, progress, ITEMS_MAX));
    if (bands.length || chosen) return { kind, bands };
  }
  return { kind: "none", bands: [] };
}

function GraphsPage({ capture, place, version }: PageProps) {
  const chosen = SHADES[place.query.shade ?? ""] ? place.query.shade! : "";
  const loaded = useTracks(capture, version);
  const shaded = useLoaded((progress) => shadesOf(capture, chosen, progress), keyOf(capture.id, chosen), version);
  return <Waiting loaded={loaded} what="The list of graphs">{({ tracks, source }) => <GraphsView source={source} tracks={tracks} place={place} chosen={chosen} shaded={shaded} />}</Waiting>;
}

function CapturesPage({ source }: PageProps) {
  return (
    <main>
      <h3>Captures</h3>
      <ul>{source.captures.map(({ id, name, detail }) => <li key={id}><a href={hrefOf({ view: "report", query: { capture: id } })}>{name}</a> <span class="dim">{detail}</span></li>)}</ul>
    </main>
  );
}

interface PageView {
  title: string | null; // null: not among the links
  Page: (props: PageProps) => ComponentChildren;
  isThere: (capture: CaptureSource, source: Source) => boolean;
  isListed?: (capture: CaptureSource, feed: LiveFeed) => boolean; // among the links, as long as it has something to show
}

const LIVE_MS = 100;
const UNHEARD_MS = 1500; // the server sends what it has at once

const views: Record<string, PageView> = {
  captures: { title: "Captures", Page: CapturesPage, isThere: (_, source) => source.captures.length > 1 },
  live: { title: "Live", Page: LivePage, isThere: (_, source) => source.isServed, isListed: (capture, feed) => feed.find(capture.id) !== null },
  record: { title: "Record", Page: ControlsPage, isThere: (_, source) => source.controls !== null, isListed: (_, feed) => (feed.hello?.is_view === false && !feed.hello.read_only) || feed.jobs.size > 0 },
  report: { title: "Report", Page: ReportPage, isThere: () => true },
  section: { title: null, Page: SectionPage, isThere: (capture) => capture.filters },
  flame: { title: "Flame graph", Page: FlamePage, isThere: (capture) => capture.weights.length > 0 },
  timeline: { title: "Timeline", Page: TimelinePage, isThere: (capture) => capture.timeline !== null },
  steps: { title: "Steps", Page: StepsPage, isThere: (capture) => capture.filters },
  graphs: { title: "Graphs", Page: GraphsPage, isThere: (capture) => capture.timeline !== null },
  model: { title: "Model", Page: ModelPage, isThere: (capture) => capture.has("layer") },
  tokens: { title: "Tokens", Page: TokensPage, isThere: (capture) => capture.has("token") },
  compare: { title: "Compare", Page: ComparePage, isThere: (capture, source) => capture.difference !== null && source.captures.length > 1 },
};

function FilterBar({ capture, place, filters }: { capture: CaptureSource; place: Place; filters: Filters }) {
  const [isOpen, setOpen] = useState(Object.keys(filters).length > 0);
  const menu = <ExportMenu key={capture.id} capture={capture} weight={(place.view === "flame" && place.what) || "cpu"} filters={filters} />;
  if (!isOpen) return <div class="filters"><button type="button" onClick={() => setOpen(true)}>Filter</button>{menu}</div>;
  const change = (key: string, value: string) => go({ ...place, query: { ...place.query, [key]: value, zoom: "" } });
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      {FILTERS.map(([key, hint]) => (
        <label key={key}>{key} <input value={filters[key] ?? ""} placeholder={hint} title={hint} onChange={(event) => change(key, event.currentTarget.value)} /></label>
      ))}
      {Object.keys(filters).length > 0 && <a href={hrefOf({ view: place.view, what: place.what, query: { capture: place.query.capture ?? "" } })}>Clear</a>}
      {menu}
    </form>
  );
}

// What stays when the view changes.
function keptQuery(place: Place): Record<string, string> {
  const kept = ["capture", ...FILTERS.map(([key]) => key)];
  return Object.fromEntries(Object.entries(place.query).filter(([key]) => kept.includes(key)));
}

// With the captures that came after the page was opened, once something is heard of them.
function useNewest(given: Source, feed: LiveFeed): Source {
  const [source, setSource] = useState(given);
  const asked = useRef(new Set(given.captures.map(({ id }) => id)));
  useEffect(() => {
    const look = () => {
      const heardOf = [...feed.ids, ...[...feed.jobs.values()].flatMap((job) => job.capture ?? [])];
      const unknown = heardOf.filter((id) => !asked.current.has(id));
      unknown.forEach((id) => asked.current.add(id));
      if (unknown.length) given.refresh?.().then(setSource, () => {});
    };
    const unsubscribes = [feed.topic.subscribe(look), feed.jobTopic.subscribe(look)];
    return () => unsubscribes.forEach((unsubscribe) => unsubscribe());
  }, [given, feed]);
  return source;
}

function WithoutCapture({ source, feed }: { source: Source; feed: LiveFeed }) {
  return (
    <>
      {source.history && <header><h1><span class="brand">sonde</span></h1><nav aria-label="Views"><a href={hrefOf({ view: "history" })}>History</a></nav></header>}
      {source.controls ? <ControlsView controls={source.controls} feed={feed} /> : <main><p>There is no capture here yet.</p></main>}
    </>
  );
}

export function App({ source: given }: { source: Source }) {
  const place = usePlace();
  const { state, feed } = useConnection(given);
  const source = useNewest(given, feed);
  const capture = useMemo(() => source.capture(place.query.capture ?? "") ?? source.capture(source.captures[0]?.id ?? ""), [source, place.query.capture]);
  return (
    <>
      {state && connectionText[state] && <p class="connection" role="alert">{connectionText[state]}</p>}
      {place.view === "history" && source.history ? <HistoryPage place={place} canChange={source.history.canChange} />
        : capture ? <CapturePage source={source} capture={capture} feed={feed} place={place} />
        : <WithoutCapture source={source} feed={feed} />}
    </>
  );
}

// Without one in the address: live figures of what is being recorded, also after its end; otherwise the report.
// null: not known yet.
function useViewName(place: Place, capture: CaptureSource, source: Source, feed: LiveFeed): string | null {
  const isRunning = useLatest(feed.topic, LIVE_MS, true, () => (feed.isReady ? feed.find(capture.id)?.isRunning ?? false : null));
  const [isLate, setLate] = useState(!source.isServed);
  const wereLive = useRef(new Set<string>());
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), UNHEARD_MS);
    return () => clearTimeout(timer);
  }, []);
  if (place.view) return place.view;
  if (isRunning) wereLive.current.add(capture.id);
  if (wereLive.current.has(capture.id)) return "live";
  return isRunning === false || isLate ? "report" : null;
}

function CapturePage({ source, capture, feed, place: given }: { source: Source; capture: CaptureSource; feed: LiveFeed; place: Place }) {
  const viewName = useViewName(given, capture, source, feed);
  const place = { ...given, view: viewName ?? "" };
  const view = views[place.view];
  const filters = useMemo(() => Object.fromEntries(FILTERS.flatMap(([key]) => (place.query[key] ? [[key, place.query[key]]] : []))), [JSON.stringify(place.query)]);
  const { name } = capture;
  useEffect(() => { document.title = `${name}: ${view?.title ?? "sonde"}`; }, [place.view, name]);
  const isThere = view?.isThere(capture, source);
  const growth = useGrowth(capture);
  return (
    <>
      <header>
        <h1><span class="brand">sonde</span> {name}</h1>
        <nav aria-label="Views">
          {Object.entries(views).filter(([, { title, isThere: is, isListed }]) => title && is(capture, source) && (isListed?.(capture, feed) ?? true)).map(([key, { title }]) => (
            <a key={key} href={hrefOf({ view: key, query: keptQuery(place) })} aria-current={key === place.view ? "page" : undefined}>{title}</a>
          ))}
          {source.history && <a href={hrefOf({ view: "history" })}>History</a>}
          {capture.fileHref && <a href={capture.fileHref} download>Download</a>}
          {capture.fileHref && source.perfetto && <OpenInPerfetto capture={capture} address={source.perfetto} />}
        </nav>
        {growth.isGrowing && <label class="live"><input type="checkbox" checked={growth.isFollowed} onChange={growth.toggle} /> Recording: follow it</label>}
      </header>
      {capture.filters && ["report", "section", "flame", "steps", "model", "tokens", "compare"].includes(place.view) && <FilterBar capture={capture} place={place} filters={filters} />}
      {view && isThere
        ? <view.Page capture={capture} source={source} place={place} filters={filters} version={growth.version} growth={growth} feed={feed} />
        : <main>{viewName === null ? <p role="status">Connecting …</p> : <p role="alert">There is no view {place.view} here: choose one above.</p>}</main>}
    </>
  );
}
