// SPDX-License-Identifier: Apache-2.0
// Values as the terminal writes them: src/model/format.c and src/report/render_terminal.c. Both are held to
// schema/formats.json by their tests.
import type { Cell, Column } from "./report";

const NS_PER_US = 1e3;
const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;
const MINUTES_FROM_S = 600;

// As printf's %.*f: what lies exactly between two goes to the even one, where toFixed() goes up.
function fixed(value: number, places: number): string {
  const text = Math.abs(value).toFixed(100);
  const end = text.indexOf(".") + places + 1;
  if (!/^50*$/.test(text.slice(end))) return value.toFixed(places);
  const below = text.slice(0, places ? end : end - 1);
  const up = Number(below.at(-1)) % 2 ? 10 ** -places : 0;
  return `${value < 0 ? "-" : ""}${(Number(below) + up).toFixed(places)}`;
}

// Three significant digits of a value below 1000, and what comes after it.
function digits(value: number, unit: string): string {
  return `${fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

function minutes(seconds: number): string {
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function formatDuration(ns: number): string {
  const size = Math.round(Math.abs(ns));
  const sign = ns < 0 ? "-" : "";
  if (size >= MINUTES_FROM_S * NS_PER_S) return sign + minutes(Math.floor((size + NS_PER_S / 2) / NS_PER_S));
  if (size >= 999.5 * NS_PER_MS) return sign + digits(size / NS_PER_S, "s");
  if (size >= 999.5 * NS_PER_US) return sign + digits(size / NS_PER_MS, "ms");
  if (size >= NS_PER_US) return sign + digits(size / NS_PER_US, "µs");
  return `${sign}${size} ${size ? "ns" : "s"}`;
}

export function formatEnergy(joules: number): string {
  const units: [number, string][] = [[1e6, "MJ"], [1e3, "kJ"], [1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]];
  const size = Math.abs(joules);
  const sign = joules < 0 ? "-" : "";
  for (const [from, name] of units) if (size >= 0.9995 * from) return sign + digits(size / from, name);
  return size > 0 ? `${sign}under 1 µJ` : "0 J";
}

export function formatBytes(bytes: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  if (bytes < 1024) return `${bytes} B`;
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 999.5 && unit + 1 < units.length; unit++) value /= 1024;
  return digits(value, units[unit]!);
}

export function formatCount(count: number): string {
  return count.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function formatWatts(watts: number): string {
  const size = Math.abs(watts);
  return `${fixed(watts, size < 9.95 ? 2 : size < 99.5 ? 1 : 0)} W`;
}

// As printf's %.*g.
function formatSignificant(value: number, places: number): string {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(places)))));
  if (exponent < -4 || exponent >= places) {
    const [mantissa, power] = value.toExponential(places - 1).split("e");
    const size = Math.abs(Number(power)).toString().padStart(2, "0");
    return `${trimZeros(mantissa!)}e${Number(power) < 0 ? "-" : "+"}${size}`;
  }
  return trimZeros(fixed(value, places - 1 - exponent));
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function formatKnown(value: string | number | boolean, column: Column): string {
  const number = Number(value);
  switch (column.kind) {
    case "count": return formatCount(number);
    case "ns": return formatDuration(number);
    case "bytes": return formatBytes(number);
    case "share": return `${fixed(100 * number, column.decimals ?? 2)} %`;
    case "joules": return formatEnergy(number);
    case "watts": return formatWatts(number);
    case "number": return column.decimals ? fixed(number, column.decimals) : formatSignificant(number, column.digits ?? 6);
    case "flag": return value ? "yes" : "";
    default: return String(value);
  }
}

export function formatCell(value: Cell, column: Column): string {
  if (value === null) return column.unknown ?? "";
  const text = formatKnown(value, column);
  return column.is_change && Number(value) >= 0 ? `+${text}` : text;
}
