// SPDX-License-Identifier: Apache-2.0
// What happened when: threads, streams, samples and counters over time. The server computes what a picture needs of it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount } from "../format";
import { go, hrefOf } from "../router";
import type { Place } from "../router";
import { useDark } from "../theme";
import { TileCache } from "../timeline/cache";
import { GUTTER, draw, formatNs, heightOf, hitAt, rowsOf } from "../timeline/draw";
import type { Hit, View } from "../timeline/draw";
import type { TimelineSource, Tracks } from "../timeline/source";

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

const KEYS: Record<string, [number, number]> = {
  w: [0.7, 0], "+": [0.7, 0], s: [1 / 0.7, 0], "-": [1 / 0.7, 0],
  a: [1, -0.2], ArrowLeft: [1, -0.2], d: [1, 0.2], ArrowRight: [1, 0.2],
};

// What is shown, with an address. That follows a moment later: browsers refuse many new addresses in a second.
function useSpan(place: Place, durationNs: number): [[number, number], (span: [number, number]) => void] {
  const wanted = clamp(Number(place.query.from ?? 0), Number(place.query.to ?? durationNs), durationNs);
  const [span, setSpan] = useState(wanted);
  const written = useRef(location.hash);
  // Another address, by a link or by going back.
  useEffect(() => {
    if (location.hash !== written.current) setSpan(wanted);
    written.current = location.hash;
  }, [place.query.from, place.query.to]);
  useEffect(() => {
    const query = { ...place.query, from: String(Math.round(span[0])), to: String(Math.round(span[1])) };
    if (hrefOf({ view: "timeline", query }) === location.hash || (!place.query.from && span[0] === 0 && span[1] === durationNs)) return;
    const timer = setTimeout(() => {
      written.current = hrefOf({ view: "timeline", query });
      go({ view: "timeline", query }, true);
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [span]);
  return [span, setSpan];
}

function Details({ hit }: { hit: Hit | null }) {
  if (!hit) return <>Scroll with Ctrl zooms, drag moves; w, s, a, d and the arrows do the same, 0 shows all. Click selects.</>;
  const many = hit.merged > 1 ? `${formatCount(hit.merged)} slices, most of them ` : "";
  const busy = hit.merged > 1 ? `, ${formatNs(hit.busyNs)} together` : "";
  return <>{many}<b>{hit.name}</b> at {formatNs(hit.startNs)}, {formatNs(hit.durationNs)}{busy} <span class="dim">{hit.track.process} {hit.track.name}</span></>;
}

export function TimelineView({ source, tracks, place }: { source: TimelineSource; tracks: Tracks; place: Place }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [opened, setOpened] = useState<Set<number>>(new Set());
  const [hovered, setHovered] = useState<Hit | null>(null);
  const [selected, setSelected] = useState<Hit | null>(null);
  const [, redraw] = useState(0);
  const drag = useRef<{ x: number; view: [number, number] } | null>(null);
  const isDark = useDark();
  const durationNs = Math.max(tracks.duration_ns, SHORTEST_NS);
  const cache = useMemo(() => new TileCache(source, durationNs, () => redraw((count) => count + 1)), [source, durationNs]);
  const rows = useMemo(() => rowsOf(tracks.tracks, opened), [tracks, opened]);
  const [[fromNs, toNs], show] = useSpan(place, durationNs);
  const view: View = { fromNs, toNs, width: Math.max(width - GUTTER, 1) };
  const height = heightOf(rows);

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current!;
    const ratio = window.devicePixelRatio || 1;
    const context = element.getContext("2d");
    if (!context || width <= GUTTER) return;
    if (element.width !== width * ratio || element.height !== height * ratio) {
      element.width = width * ratio;
      element.height = height * ratio;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scrolled = box.current!;
    draw(context, cache, rows, view, { isDark, selected }, [scrolled.scrollTop, scrolled.scrollTop + scrolled.clientHeight]);
  });

  // Not passive: Ctrl and the wheel would zoom the page.
  useEffect(() => {
    const element = canvas.current!;
    const turned = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.shiftKey && !event.deltaX) return;
      event.preventDefault();
      const around = (event.offsetX - GUTTER) / view.width;
      const shift = event.ctrlKey ? 0 : (event.deltaX || event.deltaY) / view.width;
      show(moved([fromNs, toNs], durationNs, event.ctrlKey ? 1.0015 ** event.deltaY : 1, around, shift));
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  });

  const press = (event: KeyboardEvent) => {
    const move = KEYS[event.key];
    if (event.key === "0") show([0, durationNs]);
    else if (move) show(moved([fromNs, toNs], durationNs, move[0], 0.5, move[1]));
    else if (event.key === "f" && selected) show(clamp(selected.startNs - selected.durationNs * 0.1, selected.startNs + selected.durationNs * 1.1, durationNs));
    else return;
    event.preventDefault();
  };
  const moveTo = (event: MouseEvent) => {
    if (drag.current) {
      const shift = (drag.current.x - event.offsetX) / view.width;
      show(moved(drag.current.view, durationNs, 1, 0, shift));
    } else {
      setHovered(hitAt(cache, rows, view, event.offsetX, event.offsetY));
    }
  };
  const release = (event: MouseEvent) => {
    const isClick = drag.current && Math.abs(drag.current.x - event.offsetX) < 3;
    drag.current = null;
    if (!isClick) return;
    if (event.offsetX >= GUTTER) return setSelected(hitAt(cache, rows, view, event.offsetX, event.offsetY));
    const row = rows.find((candidate) => event.offsetY >= candidate.top && event.offsetY < candidate.top + candidate.height);
    if (row) setOpened(new Set(opened.has(row.track.id) ? [...opened].filter((id) => id !== row.track.id) : [...opened, row.track.id]));
  };

  if (!tracks.tracks.length) return <main><p>Nothing of this recording has a place in time.</p></main>;
  const seconds = (ns: number) => (ns / 1e9).toFixed(6);
  return (
    <main class="wide">
      <p class="details" aria-live="polite"><Details hit={hovered ?? selected} /></p>
      {cache.fault && <p role="alert">{cache.fault}</p>}
      <p class="foot">
        {formatNs(fromNs)} to {formatNs(toNs)} of {formatNs(durationNs)}
        <a href={hrefOf({ view: "report", query: { capture: place.query.capture ?? "", time: `${seconds(fromNs)}..${seconds(toNs)}` } })}>Report of this time</a>
      </p>
      <div ref={box} class="timeline" onScroll={() => redraw((count) => count + 1)}>
        <canvas
          ref={canvas} tabIndex={0} role="img" style={{ width: `${width}px`, height: `${height}px` }}
          aria-label={`Timeline of ${tracks.tracks.length} tracks, ${formatNs(durationNs)}`}
          onKeyDown={press} onMouseMove={moveTo} onMouseUp={release} onMouseLeave={() => { setHovered(null); drag.current = null; }}
          onMouseDown={(event) => { drag.current = { x: event.offsetX, view: [fromNs, toNs] }; }}
        />
      </div>
    </main>
  );
}
