// SPDX-License-Identifier: Apache-2.0
// What layers and components of a model take: as a map of layers by components, and as areas. Of report --by layer --json.
import { useRef } from "preact/hooks";
import { formatCell } from "../format";
import type { Column } from "../report";
import { go } from "../router";
import { csvOfRows, save } from "../save";
import type { Place } from "../router";
import { useDark } from "../theme";
import { treemap } from "../treemap";

export interface LayerRow {
  layer: number | null; // null: outside of layers
  role: string;
  rest: boolean; // of what its components do not cover
  calls: number;
  total_ns: number;
  own_ns: number;
  cpu_time_ns: number | null;
  device_busy_ns: number | null;
  energy: { full_j: number | null; net_j: number | null; uncertainty_j: number | null; reason: string | null } | null;
}

export interface Layers {
  steps: number;
  rows: LayerRow[];
}

interface Metric {
  title: string;
  kind: Column["kind"];
  of: (row: LayerRow, layers: Layers) => number | null;
}

const METRICS: Record<string, Metric> = {
  time: { title: "Time", kind: "ns", of: (row) => row.own_ns },
  step: { title: "Time per step", kind: "ns", of: (row, { steps }) => (steps ? row.own_ns / steps : null) },
  cpu: { title: "CPU time", kind: "ns", of: (row) => row.cpu_time_ns },
  device: { title: "Device time", kind: "ns", of: (row) => row.device_busy_ns },
  energy: { title: "Energy", kind: "joules", of: (row) => row.energy?.full_j ?? null },
};

export interface Grid {
  roles: string[];
  layers: (number | null)[];
  cells: Map<string, number>;
  largest: number;
}

export function gridOf(layers: Layers, metric: keyof typeof METRICS): Grid {
  const cells = new Map<string, number>();
  const sums = new Map<string, number>();
  for (const row of layers.rows) {
    const value = METRICS[metric]!.of(row, layers);
    if (value === null || value === 0) continue;
    const key = `${row.layer}/${row.role}`;
    cells.set(key, (cells.get(key) ?? 0) + value);
    sums.set(row.role, (sums.get(row.role) ?? 0) + value);
  }
  const numbers = [...new Set(layers.rows.map((row) => row.layer))].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
  const roles = [...sums.keys()].sort((a, b) => sums.get(b)! - sums.get(a)!);
  return { roles, layers: numbers, cells, largest: Math.max(0, ...cells.values()) };
}

const layerName = (layer: number | null) => (layer === null ? "outside" : `layer ${layer}`);

export function HeatMap({ grid, column, isDark }: { grid: Grid; column: Column; isDark: boolean }) {
  const shade = (value: number) => {
    const strength = grid.largest ? value / grid.largest : 0;
    return isDark ? `hsl(14 70% ${14 + 28 * strength}%)` : `hsl(14 85% ${97 - 42 * strength}%)`;
  };
  return (
    <div class="table"><div class="scroll" tabIndex={0} role="region" aria-label="Layers by components">
      <table class="heat">
        <thead><tr><td />{grid.roles.map((role) => <th key={role} scope="col">{role}</th>)}</tr></thead>
        <tbody>
          {grid.layers.map((layer) => (
            <tr key={layer}>
              <th scope="row">{layerName(layer)}</th>
              {grid.roles.map((role) => {
                const value = grid.cells.get(`${layer}/${role}`) ?? null;
                return <td key={role} class="right" style={value === null ? undefined : { background: shade(value) }}>{value === null ? "" : formatCell(value, column)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div></div>
  );
}

const GOLDEN_ANGLE = 137.5; // hues that follow each other so are far apart, however many there are
const LETTER = 6.5; // as wide, at most
const AREA = { x: 0, y: 0, width: 1000, height: 360 };

function Areas({ grid, column, isDark }: { grid: Grid; column: Column; isDark: boolean }) {
  const parts = [...grid.cells].map(([key, value]) => ({ key, value })).filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  const svg = useRef<SVGSVGElement>(null);
  const hues = new Map([...grid.roles].sort().map((role, at) => [role, Math.round(at * GOLDEN_ANGLE) % 360]));
  const areas = treemap(parts.map(({ value }) => value), AREA);
  return (
    <>
      <svg ref={svg} xmlns="http://www.w3.org/2000/svg" class="areas" viewBox={`0 0 ${AREA.width} ${AREA.height}`} role="img" aria-label="Components as areas; the table above has the same figures">
        {parts.map(({ key, value }, at) => {
          const [layer, role] = key.split("/") as [string, string];
          const { x, y, width, height } = areas[at]!;
          const name = layer === "null" ? role : `${role} ${layer}`;
          return (
            <g key={key}>
              <title>{`${layerName(layer === "null" ? null : Number(layer))}, ${role}: ${formatCell(value, column)}`}</title>
              <rect x={x} y={y} width={Math.max(width - 1, 0.5)} height={Math.max(height - 1, 0.5)} fill={`hsl(${hues.get(role)} ${isDark ? "38% 32%" : "62% 76%"})`} />
              {width > LETTER * name.length + 4 && height > 14 && <text x={x + 4} y={y + 14}>{name}</text>}
            </g>
          );
        })}
      </svg>
      <p class="foot"><span class="save"><button type="button" onClick={() => save("areas.svg", svg.current!.outerHTML, "image/svg+xml")}>SVG</button></span></p>
    </>
  );
}

// A row for each layer, in nanoseconds or joules as the report has them.
function csvOfGrid({ roles, layers, cells }: Grid): string {
  return csvOfRows(["layer", ...roles], layers.map((layer) => [layer ?? "outside", ...roles.map((role) => cells.get(`${layer}/${role}`) ?? null)]));
}

export function ModelView({ layers, place }: { layers: Layers | null; place: Place }) {
  const isDark = useDark();
  const known = layers ? Object.keys(METRICS).filter((name) => gridOf(layers, name).cells.size) : [];
  const metric = known.includes(place.what) ? place.what : known[0];
  if (!layers || !metric) {
    return <main><p>No layers were recorded: record with --hooks transformers:component, or call sonde.watch(model), and look again.</p></main>;
  }
  const grid = gridOf(layers, metric);
  const noJoules = known.includes("energy") ? null : layers.rows.map(({ energy }) => energy?.reason).find(Boolean);
  const column: Column = { key: null, title: METRICS[metric]!.title, kind: METRICS[metric]!.kind };
  return (
    <main class="wide">
      <form class="tools" onSubmit={(event) => event.preventDefault()}>
        <label>Show <select value={metric} onChange={(event) => go({ ...place, what: event.currentTarget.value })}>
          {known.map((name) => <option key={name} value={name}>{METRICS[name]!.title}</option>)}
        </select></label>
        <span class="dim">of {layers.steps} forward passes that were watched{noJoules && `; their energy is not known: ${noJoules.replace(/_/g, " ")}`}</span>
        <span class="save"><button type="button" onClick={() => save(`layers-${metric}.csv`, csvOfGrid(grid), "text/csv")}>CSV</button></span>
      </form>
      <HeatMap grid={grid} column={column} isDark={isDark} />
      <Areas grid={grid} column={column} isDark={isDark} />
    </main>
  );
}
