// SPDX-License-Identifier: Apache-2.0
// What is known of the selected slice, and the ways to the slices that it is linked to.
import type { Slice, SliceLink } from "../api";
import { formatCell, formatCount } from "../format";
import { save } from "../save";
import { formatNs, formatPlace } from "./draw";
import type { Track } from "./source";

const WAYS: Record<SliceLink["kind"], string> = { launched: "Launched", launched_by: "Launched by", backward: "Its gradient", forward: "Gradient of" };
const LINKS_SHOWN = 12;

// "12 µs later", from this end to the other.
export function delayText(link: SliceLink): string {
  const delay = link.start_ns - link.from_ns;
  if (!delay) return "at the same time";
  return `${formatNs(Math.abs(delay))} ${delay > 0 ? "later" : "earlier"}`;
}

function Links({ slice, onFollow }: { slice: Slice; onFollow: (link: SliceLink) => void }) {
  const hidden = slice.links.length - LINKS_SHOWN + slice.links_left_out;
  return (
    <div>
      <h4>Arrows</h4>
      <ul class="links">
        {slice.links.slice(0, LINKS_SHOWN).map((link, at) => (
          <li key={at}>{WAYS[link.kind]} <button type="button" class="link" onClick={() => onFollow(link)}>{link.name}</button> <span class="dim">{delayText(link)}, {formatNs(link.duration_ns)}</span></li>
        ))}
      </ul>
      {hidden > 0 && <p class="foot">{formatCount(hidden)} more are not listed.</p>}
    </div>
  );
}

export function SliceDetails({ slice, track, onFollow, onClose }: { slice: Slice; track: Track | undefined; onFollow: (link: SliceLink) => void; onClose: () => void }) {
  const facts: [string, string][] = [
    ["start", formatPlace(slice.start_ns, 1, slice.start_ns)],
    ["duration", formatNs(slice.duration_ns)],
    ...(slice.category ? [["kind", slice.category] as [string, string]] : []),
    ["track", [track?.process, track?.name].filter(Boolean).join(" ")],
    ...slice.details.map(({ title, kind, value }) => [title, formatCell(value, { key: null, title, kind })] as [string, string]),
  ];
  return (
    <section class="slice" aria-label="Selected slice">
      <p class="title"><span class="name">{slice.name}</span>
        <span class="save">
          <button type="button" onClick={() => save("slice.json", `${JSON.stringify(slice, null, 2)}\n`, "application/json")}>JSON</button>
          <button type="button" onClick={onClose}>Close</button>
        </span>
      </p>
      <div class="parts">
        <dl>{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
        {slice.links.length > 0 && <Links slice={slice} onFollow={onFollow} />}
        {slice.stack.length > 0 && (
          <div>
            <h4>{slice.links.some(({ kind }) => kind === "launched_by") ? "Launched from" : "Inside of"}, outermost first</h4>
            <ol class="stack" tabIndex={0} aria-label="Stack">{slice.stack.map((frame, at) => <li key={at}>{frame}</li>)}</ol>
          </div>
        )}
      </div>
    </section>
  );
}
