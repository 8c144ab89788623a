// SPDX-License-Identifier: Apache-2.0
// The figures at the top. Rates are live; what needs a whole analysis is the report's, of a moment ago.
import type { ComponentChildren } from "preact";
import type { LiveRail, LiveSession, LiveSummary } from "../../api";
import { formatBytes, formatCell, formatCount, formatDuration, formatEnergy } from "../../format";
import { nameOf } from "../../live/power";
import type { Inference, Spread } from "../tokens";

const SHARE = { key: null, title: "", kind: "share" as const, decimals: 0 };
const RATE = { key: null, title: "", kind: "number" as const, digits: 3 };
const NONE = "–";

function Tile({ name, value, children, isBad, title }: { name: string; value: string; children?: ComponentChildren; isBad?: boolean; title?: string }) {
  return (
    <div class={`tile${isBad ? " bad" : ""}`} title={title}>
      <dt>{name}</dt>
      <dd><b>{value}</b><span>{children}</span></dd>
    </div>
  );
}

const many = (count: number, one: string, more: string) => `${formatCount(count)} ${count === 1 ? one : more}`;
const rate = (value: number | null | undefined) => (value === null || value === undefined ? NONE : formatCell(value, RATE));

function JoulesTile({ inference, hasRails }: { inference: Inference | null; hasRails: boolean }) {
  const joules = inference?.joules_per_output_token ?? null;
  const energy = inference?.energy;
  const why = !hasRails ? "no power sensor" : !inference ? "no tokens yet" : energy?.reason?.replace(/_/g, " ") ?? "not known yet";
  const text = energy?.full_j === null || !energy ? "" : `${formatEnergy(energy.full_j!)}${energy.uncertainty_j === null ? "" : ` ± ${formatEnergy(energy.uncertainty_j)}`} in all`;
  return <Tile name="Energy per token" value={joules === null ? NONE : formatEnergy(joules)} title="joules per output token, of the report">{joules === null ? why : text}</Tile>;
}

function SpreadTile({ name, spread, why, title }: { name: string; spread: Spread | null | undefined; why: string; title: string }) {
  return <Tile name={name} value={spread ? formatDuration(spread.p50) : NONE} title={title}>{spread ? `p99 ${formatDuration(spread.p99)}` : why}</Tile>;
}

function GpuTile({ summary }: { summary: LiveSummary }) {
  const busiest = [...summary.gpu_busy].sort((a, b) => b.share - a.share);
  const first = busiest[0];
  const others = busiest.slice(1, 3).map(({ device, share }) => `${device} ${formatCell(share, SHARE)}`);
  return (
    <Tile name="GPU busy" value={first ? formatCell(first.share, SHARE) : NONE} title={busiest.map(({ device, share }) => `${device}: ${formatCell(share, SHARE)}`).join("\n")}>
      {first ? [first.device, ...others].join(", ") : "no device work"}
    </Tile>
  );
}

function EnergyTile({ summary, rails }: { summary: LiveSummary; rails: LiveRail[] }) {
  const outer = rails.filter(({ parent }) => parent === null);
  const joules = outer.flatMap((rail) => {
    const found = summary.rails.find(({ rail: number }) => number === rail.rail);
    return found ? [{ name: nameOf(rail), joules: found.joules }] : [];
  });
  const [first, ...rest] = joules.sort((a, b) => b.joules - a.joules);
  if (!first) return null;
  return <Tile name="Energy so far" value={formatEnergy(first.joules)}>{[first.name, ...rest.slice(0, 2).map(({ name, joules: of }) => `${name} ${formatEnergy(of)}`)].join(", ")}</Tile>;
}

const whereText = (where: string) => where.replace(/_/g, " ");

export function LossBanner({ summary }: { summary: LiveSummary | null }) {
  if (!summary?.losses.some(({ count }) => count > 0)) return null;
  const places = summary.losses.filter(({ count }) => count > 0).map(({ where, count }) => `${formatCount(count)} ${whereText(where)}`);
  if (!summary.samples_lost) return <p class="dim">No samples were lost, but what names them: {places.join(", ")}. The report says what that means.</p>;
  return <p class="loss" role="alert"><b>Samples were lost</b>: {places.join(", ")}. All figures lack them.</p>;
}

export function Tiles({ session, summary, inference }: { session: LiveSession | null; summary: LiveSummary; inference: Inference | null }) {
  const noTokens = summary.tokens ? "with the next report" : "no tokens yet";
  const lost = summary.samples_lost;
  const waits = summary.waiting === null ? "" : `, ${rate(summary.waiting)} waiting`;
  return (
    <dl class="tiles">
      <JoulesTile inference={inference} hasRails={(session?.rails.length ?? 0) > 0} />
      <Tile name="Tokens per second" value={rate(summary.tokens_per_s)} title="of the last 10 s">{formatCount(summary.tokens)} tokens{inference?.tokens_per_s ? `, ${rate(inference.tokens_per_s)}/s overall` : ""}</Tile>
      <SpreadTile name="Time to first token" spread={inference?.ttft_ns} why={noTokens} title="median; of the report" />
      <SpreadTile name="Between tokens" spread={inference?.itl_ns} why={noTokens} title="median inter-token latency; of the report" />
      <Tile name="Requests" value={formatCount(summary.requests_running)}>running, {formatCount(summary.requests_done)} done</Tile>
      <GpuTile summary={summary} />
      <Tile name="CPUs busy" value={rate(summary.cpu_busy)} title="CPU-seconds per second, of the last 10 s">{many(summary.processes, "process", "processes")}, {many(summary.threads, "thread", "threads")}{waits}</Tile>
      <EnergyTile summary={summary} rails={session?.rails ?? []} />
      <Tile name="Samples per second" value={rate(summary.samples_per_s)}>{formatCount(summary.samples)} in {formatBytes(summary.capture_bytes)}</Tile>
      <Tile name="Samples lost" value={lost ? formatCount(lost) : "none"} isBad={lost > 0}>{lost ? "see above" : "so far"}</Tile>
    </dl>
  );
}
