// SPDX-License-Identifier: Apache-2.0
// The pictures beside tables of sections: those that the program draws, and the chart of ranks, whose values are the table's.
import { createContext } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { Chart } from "../chart/chart";
import type { ChartProps } from "../chart/chart";
import { keyOf, useLoaded } from "../loaded";
import type { Cell, Section, Table } from "../report";
import type { CaptureSource, Filters } from "../source";

// Of which capture the sections are; null: of none, as those of the history.
export const PlotSource = createContext<{ capture: CaptureSource; filters: Filters } | null>(null);

// Formats of `sonde export` by their section.
const DRAWN: Record<string, { format: string; text: string }> = {
  roofline: { format: "roofline", text: "Operators under the roof of the device" },
  memory: { format: "memory", text: "Memory of devices over time" },
};

function Picture({ capture, filters, format, text }: { capture: CaptureSource; filters: Filters; format: string; text: string }) {
  const loaded = useLoaded((progress) => capture.plot(format, filters, progress), keyOf(capture.id, format, filters));
  const picture = loaded.state === "ready" ? loaded.value : null;
  const address = useMemo(() => (picture ? URL.createObjectURL(picture) : null), [picture]);
  useEffect(() => () => { if (address) URL.revokeObjectURL(address); }, [address]);
  if (loaded.state === "loading") return <p role="status">The picture is being made{loaded.text && `: ${loaded.text}`} …</p>;
  if (loaded.state === "failed") return <p class="dim">There is no picture: {loaded.why}</p>;
  if (!address) return null;
  return (
    <figure class="picture">
      <img src={address} alt={`${text}; the values stand in the table`} />
      <figcaption><a href={address} download={`${format}.svg`}>SVG</a></figcaption>
    </figure>
  );
}

const WAITED: [string, string][] = [["caused_ns", "others waited for it"], ["suffered_ns", "it waited itself"]];

// Which rank the others waited for, and which ranks waited; null: the table is of something else.
export function ranksChart(table: Table): ChartProps | null {
  const places = Object.fromEntries(table.columns.map(({ key }, at) => [key, at]));
  const rank = places.rank;
  if (rank === undefined || WAITED.some(([key]) => places[key] === undefined) || table.rows.length < 2) return null;
  const rows = [...table.rows].sort((a, b) => Number(a[rank]) - Number(b[rank]));
  const names = rows.map((row) => String(row[rank]));
  const isNumber = (cell: Cell | undefined): cell is number => typeof cell === "number";
  return {
    name: "ranks", title: "Waiting in collectives, by rank", x: { title: "Rank", kind: "integer", names }, y: { title: "Time", kind: "ns" },
    series: WAITED.map(([key, name]) => ({ name, isLine: false, points: rows.flatMap((row, x) => {
      const y = row[places[key]!];
      return isNumber(y) ? [{ x, y, name: `rank ${names[x]}`, note: name }] : [];
    }) })),
  };
}

export function Plots({ section }: { section: Section }) {
  const source = useContext(PlotSource);
  const drawn = section.by !== null && section.tables.length ? DRAWN[section.by] : undefined;
  const charts = section.tables.flatMap((table) => ranksChart(table) ?? []);
  return (
    <>
      {source && drawn && <Picture {...source} {...drawn} />}
      {charts.map((chart) => <Chart key={chart.name} {...chart} />)}
    </>
  );
}
