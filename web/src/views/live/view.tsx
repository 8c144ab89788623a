// SPDX-License-Identifier: Apache-2.0
// A recording while it runs. Live messages bring what is counted; the report's sections, asked for again as the capture
// grows, bring what needs an analysis.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Growth } from "../../live/growth";
import { useLatest } from "../../live/frames";
import { clockText } from "../../live/power";
import type { LiveCapture, LiveFeed, Miss } from "../../live/state";
import { formatCount, formatDuration } from "../../format";
import { keyOf, useLoaded } from "../../loaded";
import type { Place } from "../../router";
import type { CaptureSource, Controls } from "../../source";
import type { Inference } from "../tokens";
import { JobButtons, useJobs } from "../controls";
import { CostsPanel } from "./costs";
import "./live.css";
import { CurrentPanel, IdlePanel, LayersPanel } from "./panels";
import { PowerPanel } from "./power";
import { LossBanner, Tiles } from "./tiles";
import { TokenStream } from "./tokens";

const SUMMARY_MS = 250;
const CARD_PADDING = 32;

const REASONS: Record<Miss["reason"], string> = {
  "too-slow": "this page was too slow for them",
  "too-old": "sonde no longer keeps them",
  "new-epoch": "sonde was started again",
  unreadable: "this page could not read it", // one at a time
};

const timeOfDay = (unixMs: number) => new Date(unixMs).toLocaleTimeString();

function Misses({ misses }: { misses: Miss[] }) {
  const last = misses.at(-1);
  if (!last) return null;
  const when = last.fromUnixMs === null ? `before ${timeOfDay(last.toUnixMs)}` : `between ${timeOfDay(last.fromUnixMs)} and ${timeOfDay(last.toUnixMs)}`;
  const before = misses.slice(0, -1).reduce((sum, { count }) => sum + count, 0);
  return (
    <p class="missed" role="status">
      {formatCount(last.count)} {last.count === 1 ? "message was" : "messages were"} missed {when}: {REASONS[last.reason]}. The recording has them all.
      {before > 0 && ` ${formatCount(before)} more were missed earlier.`}
    </p>
  );
}

const ENDS = { stalled: "The file has stopped growing", unreadable: "The file cannot be read", crashed: "Live figures have stopped" };

function stateOf({ ended }: LiveCapture): { text: string; look: string } {
  if (!ended) return { text: "Recording", look: "running" };
  if (ended.reason !== "end") return { text: ended.message ?? ENDS[ended.reason], look: "stopped" };
  const status = ended.exit_status === null ? "" : `, exit status ${ended.exit_status}`;
  return { text: `Ended after ${formatDuration(Math.round(ended.t_ms * 1e6))}${status}`, look: "ended" };
}

// Of the recording, where this server can end it.
function SessionButtons({ live, feed, controls }: { live: LiveCapture; feed: LiveFeed; controls: Controls }) {
  const job = useJobs(controls, feed).find(({ capture }) => capture === live.id);
  if (!job || feed.hello?.read_only) return null;
  return <JobButtons job={job} controls={controls} onJob={(changed) => feed.takeJob(changed)} />;
}

function SessionLine({ live, feed, growth, controls }: { live: LiveCapture; feed: LiveFeed; growth: Growth; controls: Controls | null }) {
  const { session } = useLatest(live.topics.session, SUMMARY_MS, true, () => ({ session: live.session }));
  const nowMs = useLatest(live.topics.summary, SUMMARY_MS, growth.isFollowed, () => live.nowMs);
  const { text, look } = stateOf(live);
  const [program = "", ...words] = session?.command ?? [];
  const command = program ? [program.replace(/.*\//, ""), ...words].join(" ") : session?.whole_machine ? "the whole machine" : "running processes";
  return (
    <div class="session">
      <span class={`state ${look}`} role="status">{text}</span>
      <span class="clock">{clockText(nowMs)}</span>
      <span class="command code" title={session?.command.join(" ")}>{command}</span>
      {session?.host && <span class="dim">on {session.host}</span>}
      {live.isRunning && <button type="button" aria-pressed={!growth.isFollowed} onClick={growth.toggle}>{growth.isFollowed ? "Pause" : "Follow again"}</button>}
      {controls && <SessionButtons live={live} feed={feed} controls={controls} />}
      {!growth.isFollowed && <span class="dim">Paused at {clockText(nowMs)}; the recording goes on.</span>}
    </div>
  );
}

function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

interface LiveViewProps {
  capture: CaptureSource;
  live: LiveCapture;
  feed: LiveFeed;
  place: Place;
  growth: Growth;
  controls: Controls | null;
}

export function LiveView({ capture, live, feed, place, growth, controls }: LiveViewProps) {
  const [ref, width] = useWidth();
  const { isFollowed, version } = growth;
  const { summary, session } = useLatest(live.topics.summary, SUMMARY_MS, isFollowed, () => ({ summary: live.summary, session: live.session }));
  const misses = useLatest(feed.topic, SUMMARY_MS, true, () => feed.misses);
  const hasTokens = (summary?.tokens ?? 0) > 0;
  const hasKernels = (summary?.kernels ?? 0) > 0;
  const tokens = useLoaded(async (progress) => (hasTokens ? capture.figures("token", {}, progress) : null), keyOf(capture.id, "token", hasTokens), version);
  const idle = useLoaded(async (progress) => (hasKernels ? capture.report("idle", {}, progress) : null), keyOf(capture.id, "idle", hasKernels), version);
  const inference = tokens.state === "ready" ? ((tokens.value?.inference ?? null) as Inference | null) : null;
  const inner = Math.max(0, width - CARD_PADDING);
  const running = <CurrentPanel live={live} isFollowed={isFollowed} />;
  const kernels = (
    <CostsPanel title="Kernels by device time" noun="kernel" changing={live.topics.kernels} read={() => live.kernels} isFollowed={isFollowed}
      empty="No work of a device has been recorded: kernels come from CUDA and OpenCL programs." />
  );
  return (
    <main class="wide live-view">
      <div ref={ref} class="live-grid">
        <SessionLine live={live} feed={feed} growth={growth} controls={controls} />
        <LossBanner summary={summary} />
        <Misses misses={misses} />
        {summary ? <Tiles session={session} summary={summary} inference={inference} /> : <p role="status">The first figures are on their way …</p>}
        <PowerPanel live={live} place={place} width={inner} isFollowed={isFollowed} />
        <TokenStream live={live} inference={inference} width={inner} isFollowed={isFollowed} />
        <CostsPanel title="Functions by CPU time" noun="function" changing={live.topics.functions} read={() => live.functions} isFollowed={isFollowed}
          empty="No sample has been taken: the recorded processes have used no CPU time yet." />
        {hasKernels ? kernels : running}
        <LayersPanel live={live} isFollowed={isFollowed} />
        {hasKernels ? running : kernels}
        <IdlePanel live={live} idle={idle} isFollowed={isFollowed} />
      </div>
    </main>
  );
}
