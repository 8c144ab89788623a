// SPDX-License-Identifier: Apache-2.0
// When the tokens of each request came: a cell each, the darker the longer it took. Of report --by token --json.
import { useState } from "preact/hooks";
import { formatCell, formatCount, formatDuration } from "../format";
import { go, hrefOf } from "../router";
import type { Place } from "../router";
import { csvOfRows, save } from "../save";
import { useDark } from "../theme";

export interface Request {
  id: string | null;
  pid: number;
  begin_ns: number | null;
  ttft_ns: number | null;
  output_tokens: number | null;
  itl_ns: number[]; // from each chunk of tokens to the next
  energy: { full_j: number | null; uncertainty_j: number | null } | null;
}

export interface Spread {
  p50: number;
  p99: number;
}

export interface Inference {
  requests: Request[];
  requests_total: number;
  ttft_ns: Spread | null;
  itl_ns: Spread | null;
  tokens_per_s: number | null; // of the whole recording
  joules_per_output_token: number | null;
  energy: { full_j: number | null; uncertainty_j: number | null; reason: string | null } | null;
}

const CELLS = 4000; // of a request
const SIZE = 15; // pixels of a cell
const JOULES = { key: null, title: "", kind: "joules" as const };

export interface Token {
  number: number; // from 1
  took_ns: number;
  from_ns: number | null; // since the recording's start
}

// The first took the time to first token, each other the time since the one before.
export function tokensOf(request: Request): Token[] {
  const took = request.ttft_ns === null ? request.itl_ns : [request.ttft_ns, ...request.itl_ns];
  let at = request.ttft_ns === null ? null : request.begin_ns;
  return took.map((took_ns, index) => {
    const from_ns = at;
    if (at !== null) at += took_ns;
    return { number: index + (request.ttft_ns === null ? 2 : 1), took_ns, from_ns };
  });
}

// 0: as fast as the median or faster; 1: as slow as the 99th percentile or slower.
export function slowness({ took_ns }: { took_ns: number }, spread: Spread | null): number {
  if (!spread || spread.p99 <= spread.p50) return 0;
  return Math.min(1, Math.max(0, (took_ns - spread.p50) / (spread.p99 - spread.p50)));
}

export const FIRST_TOKEN = { light: "#9cc3ea", dark: "#3f6ea0" };

// 0 is pale, 1 red.
export function shadeOf(strength: number, isDark: boolean): string {
  return isDark ? `hsl(14 ${20 + 55 * strength}% ${24 + 20 * strength}%)` : `hsl(14 ${45 + 45 * strength}% ${92 - 40 * strength}%)`;
}

export const COLOURS = { gap: "time since the token before", energy: "joules a token of the request" };
export type Colour = keyof typeof COLOURS;

// A token is too short for a sensor: those of a request share its joules.
export function joulesPerToken({ energy, output_tokens }: Request): number | null {
  return energy?.full_j && output_tokens ? energy.full_j / output_tokens : null;
}

export const unknownShade = (isDark: boolean) => (isDark ? "#39414c" : "#dde2e8");

interface Scale {
  by: Colour;
  spread: Spread | null;
  mostJoules: number; // a token, of any request
}

function fillOf(token: Token, joules: number | null, { by, spread, mostJoules }: Scale, isDark: boolean): string {
  if (by === "energy") return joules === null ? unknownShade(isDark) : shadeOf(joules / mostJoules, isDark);
  return token.number === 1 ? FIRST_TOKEN[isDark ? "dark" : "light"] : shadeOf(slowness(token, spread), isDark);
}

const seconds = (ns: number) => (ns / 1e9).toFixed(6);

function Strip({ request, scale, place }: { request: Request; scale: Scale; place: Place }) {
  const isDark = useDark();
  const [picked, setPicked] = useState<Token | null>(null);
  const tokens = tokensOf(request);
  const joules = request.energy?.full_j ?? null;
  const perToken = joulesPerToken(request);
  const summary = [
    request.output_tokens === null ? "" : `${formatCount(request.output_tokens)} tokens`,
    request.ttft_ns === null ? "" : `first after ${formatDuration(request.ttft_ns)}`,
    joules === null ? "" : formatCell(joules, JOULES),
    perToken === null ? "" : `${formatCell(perToken, JOULES)} a token`,
  ].filter(Boolean).join(", ");
  const press = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !tokens.length) return;
    const at = picked ? tokens.indexOf(tokens.find((token) => token.number === picked.number)!) + step : 0;
    setPicked(tokens[Math.min(Math.max(at, 0), tokens.length - 1)]!);
    event.preventDefault();
  };
  return (
    <section aria-label={`Request ${request.id ?? "without a name"}`}>
      <h4>Request {request.id ?? "without a name"} <span class="dim">{summary}</span></h4>
      <div class="tokens" role="slider" tabIndex={0} aria-label="token" aria-valuemin={1} aria-valuemax={tokens.length} aria-valuenow={picked?.number ?? 1}
        aria-valuetext={picked ? `token ${picked.number}, ${formatDuration(picked.took_ns)}` : summary} onKeyDown={press}>
        {tokens.slice(0, CELLS).map((token) => (
          <i key={token.number} class={picked?.number === token.number ? "picked" : ""} style={{ background: fillOf(token, perToken, scale, isDark), width: `${SIZE}px`, height: `${SIZE}px` }}
            title={`token ${token.number}: ${formatDuration(token.took_ns)}`} onClick={() => setPicked(token)} />
        ))}
      </div>
      {tokens.length > CELLS && <p class="foot">{formatCount(tokens.length - CELLS)} more tokens are not drawn.</p>}
      <p class="details" aria-live="polite">
        {picked && (
          <>
            Token {picked.number} took {formatDuration(picked.took_ns)}.{" "}
            {picked.from_ns !== null && place.query.capture !== undefined && (
              <>
                <a href={hrefOf({ view: "timeline", query: { capture: place.query.capture, from: String(Math.round(picked.from_ns)), to: String(Math.round(picked.from_ns + picked.took_ns)) } })}>Timeline</a>{" "}
                <a href={hrefOf({ view: "report", query: { ...place.query, time: `${seconds(picked.from_ns)}..${seconds(picked.from_ns + picked.took_ns)}` } })}>Report of this time</a>
              </>
            )}
          </>
        )}
      </p>
    </section>
  );
}

function csvOfTokens(requests: Request[]): string {
  return csvOfRows(["request", "token", "from_ns", "took_ns", "joules_per_token_of_request"], requests.flatMap((request) => tokensOf(request).map(({ number, from_ns, took_ns }) => [request.id, number, from_ns, took_ns, joulesPerToken(request)])));
}

export function TokensView({ inference, place }: { inference: Inference | null; place: Place }) {
  const requests = inference?.requests.filter((request) => request.itl_ns.length) ?? [];
  if (!inference || !requests.length) {
    return <main><p>No tokens were recorded: record with --hooks transformers, or call sonde.token(), and look again.</p></main>;
  }
  const spread = inference.itl_ns;
  const mostJoules = Math.max(0, ...requests.map((request) => joulesPerToken(request) ?? 0));
  const by: Colour = place.what === "energy" && mostJoules > 0 ? "energy" : "gap";
  const scale: Scale = { by, spread, mostJoules };
  return (
    <main>
      <form class="tools" onSubmit={(event) => event.preventDefault()}>
        <label>Colour is <select value={by} onChange={(event) => go({ ...place, what: event.currentTarget.value })}>
          {Object.entries(COLOURS).map(([key, text]) => <option key={key} value={key} disabled={key === "energy" && !mostJoules}>{text}</option>)}
        </select></label>
        <span class="save"><button type="button" onClick={() => save("tokens.csv", csvOfTokens(requests), "text/csv")}>CSV</button></span>
      </form>
      {by === "gap"
        ? <p>A cell is a token, or several that came together: blue the first, after its time to first token; the others the redder the
          longer they took{spread && <>, from the median of {formatDuration(spread.p50)} to the 99th percentile of {formatDuration(spread.p99)}</>}.</p>
        : <p>A cell is a token, or several that came together. A token is too short for a power sensor, so those of a request share its joules: the redder,
          the more, up to {formatCell(mostJoules, JOULES)} a token.</p>}
      {requests.map((request, at) => <Strip key={at} request={request} scale={scale} place={place} />)}
    </main>
  );
}
