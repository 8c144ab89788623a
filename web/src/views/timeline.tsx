// SPDX-License-Identifier: Apache-2.0
// What happened when: threads, streams, samples and counters over time. The server computes what a picture needs of it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Slice, SliceLink } from "../api";
import { formatCount } from "../format";
import { go, hrefOf, isAt } from "../router";
import type { Place } from "../router";
import { save } from "../save";
import { useDark } from "../theme";
import { TileCache } from "../timeline/cache";
import { SliceDetails } from "../timeline/details";
import { GUTTER, LANE, RULER, draw, drawRuler, firstIn, formatNs, formatPlace, heightOf, hitAt, rowsOf } from "../timeline/draw";
import type { Hit, Look, Row, View } from "../timeline/draw";
import { drawLinks } from "../timeline/links";
import { addressOfSlice, neighbour, sliceOfAddress, useSlice } from "../timeline/selection";
import type { Chosen } from "../timeline/selection";
import type { TileSource, Tracks } from "../timeline/source";

const SHORTEST_NS = 100; // that can be zoomed into
const ADDRESS_MS = 300;

function clamp(fromNs: number, toNs: number, durationNs: number): [number, number] {
  const span = Math.min(Math.max(toNs - fromNs, SHORTEST_NS), durationNs);
  const from = Math.min(Math.max(fromNs, 0), durationNs - span);
  return [from, from + span];
}

// By a factor around a place between 0 and 1, and by a part of the picture to the right.
export function moved(view: [number, number], durationNs: number, factor: number, around: number, shift: number): [number, number] {
  const span = view[1] - view[0];
  const from = view[0] + span * (around * (1 - factor) + shift);
  return clamp(from, from + span * factor, durationNs);
}

// So that a slice is in view: moved to its middle, and as far out as it is long.
export function around(view: [number, number], startNs: number, lengthNs: number, durationNs: number): [number, number] {
  if (startNs >= view[0] && startNs + lengthNs <= view[1]) return view;
  const span = Math.max(view[1] - view[0], lengthNs * 1.2);
  const from = startNs + lengthNs / 2 - span / 2;
  return clamp(from, from + span, durationNs);
}

const KEYS: Record<string, [number, number]> = {
  w: [0.7, 0], "+": [0.7, 0], s: [1 / 0.7, 0], "-": [1 / 0.7, 0],
  a: [1, -0.2], ArrowLeft: [1, -0.2], d: [1, 0.2], ArrowRight: [1, 0.2],
};

// What is shown, with an address. That follows a moment later: browsers refuse many new addresses in a second.
function useSpan(place: Place, durationNs: number): [[number, number], (span: [number, number]) => void] {
  const wanted = clamp(Number(place.query.from ?? 0), Number(place.query.to ?? durationNs), durationNs);
  const [span, setSpan] = useState(wanted);
  const written = useRef([place.query.from, place.query.to].join());
  const lastNs = useRef(durationNs);
  // A recording has grown while all of it was shown.
  useEffect(() => {
    if (span[0] === 0 && span[1] === lastNs.current) setSpan([0, durationNs]);
    lastNs.current = durationNs;
  }, [durationNs]);
  // Another address, by a link or by going back.
  useEffect(() => {
    const asked = [place.query.from, place.query.to].join();
    if (asked !== written.current) setSpan(wanted);
    written.current = asked;
  }, [place.query.from, place.query.to]);
  useEffect(() => {
    const [from, to] = span.map((ns) => String(Math.round(ns))) as [string, string];
    if ((place.query.from === from && place.query.to === to) || (!place.query.from && span[0] === 0 && span[1] === durationNs)) return;
    const timer = setTimeout(() => {
      if (!isAt(place)) return;
      written.current = [from, to].join();
      go({ view: "timeline", query: { ...place.query, from, to } }, true);
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [span, place]);
  return [span, setSpan];
}

function Hint({ hit }: { hit: Hit | null }) {
  if (!hit) return <>Scroll with Ctrl zooms, drag moves; w, s, a, d and the arrows do the same, 0 shows all. Click or Shift and arrows select, Enter follows an arrow, f zooms to the slice.</>;
  const many = hit.merged > 1 ? `${formatCount(hit.merged)} slices, most of them ` : "";
  const busy = hit.merged > 1 ? `, ${formatNs(hit.busyNs)} together` : "";
  return <>{many}<b>{hit.name}</b> at {formatNs(hit.startNs)}, {formatNs(hit.durationNs)}{busy} <span class="dim">{hit.track.process} {hit.track.name}</span></>;
}

interface CanvasProps {
  cache: TileCache;
  rows: Row[];
  span: [number, number];
  durationNs: number;
  chosen: Chosen | null;
  slice: Slice | null;
  label: string;
  onShow: (span: [number, number]) => void;
  onHover: (hit: Hit | null) => void;
  onChoose: (chosen: Chosen | null) => void;
  onOpen: (track: number) => void;
  onFollow: (link: SliceLink) => void;
}

// Draws what is in view, on a canvas as large as that: browsers limit their size, and recordings have thousands of threads.
function useDrawing({ cache, rows, span, chosen, slice }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [[width, shown], setSize] = useState([0, 0]);
  const [, redraw] = useState(0);
  const isDark = useDark();
  const view: View = { fromNs: span[0], toNs: span[1], width: Math.max(width - GUTTER, 1) };
  const height = heightOf(rows);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setSize([Math.floor(entry!.contentRect.width), Math.ceil(entry!.contentRect.height)]));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = canvas.current!;
    const ratio = window.devicePixelRatio || 1;
    const context = element.getContext("2d");
    if (!context || width <= GUTTER) return;
    if (element.width !== width * ratio || element.height !== shown * ratio) {
      element.width = width * ratio;
      element.height = shown * ratio;
    }
    const top = box.current!.scrollTop;
    context.setTransform(ratio, 0, 0, ratio, 0, -top * ratio);
    const look: Look = { isDark, selected: chosen && { ...chosen, durationNs: slice?.duration_ns ?? 0 } };
    draw(context, cache, rows, view, look, [top, top + shown]);
    if (slice) drawLinks(context, slice, rows, view, look);
    drawRuler(context, view, look, top);
  });
  // The track of a slice that was jumped to; its details make the picture smaller.
  useEffect(() => {
    const row = rows.find(({ track }) => track.id === chosen?.track);
    const scrolled = box.current;
    if (!row || !scrolled || !chosen) return;
    const y = row.top + Math.min(chosen.lane, row.lanes - 1) * LANE;
    if (y < scrolled.scrollTop + RULER || y + LANE > scrolled.scrollTop + scrolled.clientHeight) scrolled.scrollTop = y - scrolled.clientHeight / 2;
  }, [chosen?.track, chosen?.lane, shown]);
  return { box, canvas, view, width, height, shown, redraw: () => redraw((count) => count + 1) };
}

// Not passive: Ctrl and the wheel would zoom the page.
function useWheel(canvas: { current: HTMLCanvasElement | null }, view: View, { span, durationNs, onShow }: CanvasProps): void {
  useEffect(() => {
    const element = canvas.current!;
    const turned = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.shiftKey && !event.deltaX) return;
      event.preventDefault();
      const place = (event.offsetX - GUTTER) / view.width;
      const shift = event.ctrlKey ? 0 : (event.deltaX || event.deltaY) / view.width;
      onShow(moved(span, durationNs, event.ctrlKey ? 1.0015 ** event.deltaY : 1, place, shift));
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  });
}

function TimelineCanvas(props: CanvasProps) {
  const { cache, rows, span, durationNs, slice, onShow, onHover, onChoose, onOpen, onFollow } = props;
  const { box, canvas, view, width, height, shown, redraw } = useDrawing(props);
  const drag = useRef<{ x: number; view: [number, number] } | null>(null);
  useWheel(canvas, view, props);

  const select = (key: string) => onChoose(slice ? neighbour(slice, key) ?? props.chosen : firstIn(cache, rows, view, box.current!.scrollTop));
  const press = (event: KeyboardEvent) => {
    const move = KEYS[event.key];
    if (event.shiftKey && event.key.startsWith("Arrow")) select(event.key);
    else if (event.key === "0") onShow([0, durationNs]);
    else if (move) onShow(moved(span, durationNs, move[0], 0.5, move[1]));
    else if (event.key === "f" && slice) onShow(clamp(slice.start_ns - slice.duration_ns * 0.1, slice.start_ns + slice.duration_ns * 1.1, durationNs));
    else if (event.key === "Enter" && slice?.links[0]) onFollow(slice.links[0]);
    else if (event.key === "Escape" && slice) onChoose(null);
    else return;
    event.preventDefault();
  };
  const yOf = (event: MouseEvent) => event.offsetY + box.current!.scrollTop;
  const moveTo = (event: MouseEvent) => {
    if (drag.current) onShow(moved(drag.current.view, durationNs, 1, 0, (drag.current.x - event.offsetX) / view.width));
    else onHover(hitAt(cache, rows, view, event.offsetX, yOf(event)));
  };
  const release = (event: MouseEvent) => {
    const isClick = drag.current && Math.abs(drag.current.x - event.offsetX) < 3;
    drag.current = null;
    if (!isClick) return;
    const row = rows.find((candidate) => yOf(event) >= candidate.top && yOf(event) < candidate.top + candidate.height);
    if (event.offsetX < GUTTER) return row && onOpen(row.track.id);
    const hit = hitAt(cache, rows, view, event.offsetX, yOf(event));
    if (hit && hit.merged > 1) onShow(clamp(hit.startNs - hit.durationNs * 0.1, hit.startNs + hit.durationNs * 1.1, durationNs));
    else onChoose(hit && { track: hit.track.id, lane: hit.lane, atNs: hit.startNs });
  };
  return (
    <>
      <div ref={box} class="timeline" onScroll={redraw}>
        <div style={{ height: `${height}px` }}><canvas
          ref={canvas} tabIndex={0} role="img" style={{ width: `${width}px`, height: `${shown}px` }} aria-label={props.label}
          onKeyDown={press} onMouseMove={moveTo} onMouseUp={release} onMouseLeave={() => { onHover(null); drag.current = null; }}
          onMouseDown={(event) => { drag.current = { x: event.offsetX, view: span }; }}
        /></div>
      </div>
      <p class="foot"><span class="save"><button type="button" onClick={() => canvas.current!.toBlob((blob) => blob && save("timeline.png", blob))}>PNG</button></span></p>
    </>
  );
}

const toggled = (set: Set<number>, id: number) => new Set(set.has(id) ? [...set].filter((other) => other !== id) : [...set, id]);
const seconds = (ns: number) => (ns / 1e9).toFixed(6);

export function TimelineView({ source, tracks, place }: { source: TileSource; tracks: Tracks; place: Place }) {
  const [opened, setOpened] = useState<Set<number>>(new Set());
  const [hovered, setHovered] = useState<Hit | null>(null);
  const [, redraw] = useState(0);
  const durationNs = Math.max(tracks.duration_ns, SHORTEST_NS);
  const cache = useMemo(() => new TileCache(source, durationNs, () => redraw((count) => count + 1)), [source, durationNs]);
  const rows = useMemo(() => rowsOf(tracks.tracks, opened), [tracks, opened]);
  const [span, show] = useSpan(place, durationNs);
  const address = place.query.slice ?? "";
  const chosen = useMemo(() => sliceOfAddress(address), [address]);
  const { slice, fault } = useSlice(source, address);

  // A span that is not yet in the address goes with it.
  const choose = (wanted: Chosen | null, shown = span) => {
    const query = { ...place.query, from: String(Math.round(shown[0])), to: String(Math.round(shown[1])), slice: wanted ? addressOfSlice(wanted) : "" };
    go({ view: "timeline", query }, true);
  };
  const follow = (link: SliceLink) => {
    const row = rows.find(({ track }) => track.id === link.track);
    if (row && link.lane >= row.lanes) setOpened(toggled(opened, link.track));
    const shown = around(span, link.start_ns, link.duration_ns, durationNs);
    show(shown);
    choose({ track: link.track, lane: link.lane, atNs: link.start_ns }, shown);
  };
  const pick = (wanted: Chosen | null) => {
    const shown = wanted ? around(span, wanted.atNs, 0, durationNs) : span;
    show(shown);
    choose(wanted, shown);
  };

  const placed = (ns: number) => formatPlace(ns, (span[1] - span[0]) / 100, span[1]);
  if (!tracks.tracks.length) return <main><p>Nothing of this recording has a place in time.</p></main>;
  return (
    <main class={slice ? "wide with-slice" : "wide"}>
      <p class="details" aria-live="polite"><Hint hit={hovered} /></p>
      {(cache.fault ?? fault) && <p role="alert">{cache.fault ?? fault}</p>}
      <p class="foot">
        {placed(span[0])} to {placed(span[1])} of {formatNs(durationNs)}
        {["report", "flame"].map((view) => (
          <a key={view} href={hrefOf({ view, query: { capture: place.query.capture ?? "", time: `${seconds(span[0])}..${seconds(span[1])}` } })}>
            {view === "report" ? "Report" : "Flame graph"} of this time
          </a>
        ))}
      </p>
      <TimelineCanvas
        cache={cache} rows={rows} span={span} durationNs={durationNs} chosen={chosen} slice={slice}
        label={`Timeline of ${tracks.tracks.length} tracks, ${formatNs(durationNs)}`}
        onShow={show} onHover={setHovered} onChoose={pick} onOpen={(track) => setOpened(toggled(opened, track))} onFollow={follow}
      />
      {slice && <SliceDetails slice={slice} track={tracks.tracks.find(({ id }) => id === slice.track)} onFollow={follow} onClose={() => choose(null)} />}
    </main>
  );
}
