// SPDX-License-Identifier: Apache-2.0
// Scales of a chart: where a value lies, and which values the axis names.

export interface Scale {
  isLog: boolean;
  from: number; // values at the ends of the axis
  to: number;
  ticks: number[];
  at(value: number): number; // 0 to 1
}

// 1, 2 or 5 times a power of ten.
export function niceStep(span: number, count: number): number {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const times = raw / power;
  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

// Without what sums of steps leave behind the last digit.
const rounded = (value: number) => Number(value.toPrecision(12));

function linear(least: number, most: number, count: number): Scale {
  const low = Math.min(0, least);
  const span = most - low || Math.abs(most) || 1;
  const step = niceStep(span, count);
  const from = Math.floor(rounded(low / step)) * step;
  const to = Math.ceil(rounded((low + span) / step)) * step;
  const ticks: number[] = [];
  for (let number = 0; number <= Math.round((to - from) / step); number++) ticks.push(rounded(from + number * step));
  return { isLog: false, from, to, ticks, at: (value) => (value - from) / (to - from) };
}

// Powers of ten where they are many; with 2 and 5 where they are few.
function logarithmic(least: number, most: number, count: number): Scale {
  const low = Math.floor(Math.log10(least) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(most) - 1e-9));
  const parts = high - low < count / 2 ? [1, 2, 5] : [1];
  const skip = Math.ceil((high - low) / count);
  const ticks: number[] = [];
  for (let power = low; power <= high; power += skip) {
    for (const part of parts) if (power < high || part === 1) ticks.push(rounded(part * 10 ** power));
  }
  return { isLog: true, from: 10 ** low, to: 10 ** high, ticks, at: (value) => (Math.log10(value) - low) / (high - low) };
}

// Of these values; logarithmic where that is wanted and all are above zero. A linear one has zero on it.
export function scaleOf(values: number[], wantsLog: boolean, count = 5): Scale {
  const known = values.filter(Number.isFinite);
  if (!known.length) return linear(0, 1, count);
  const least = Math.min(...known);
  const most = Math.max(...known);
  return wantsLog && least > 0 ? logarithmic(least, most, count) : linear(least, most, count);
}

// Do they lie so far apart that a linear axis would put most of them into its corner?
export function isWide(values: number[]): boolean {
  const known = values.filter((value) => Number.isFinite(value) && value > 0);
  return known.length === values.length && known.length > 2 && Math.max(...known) / Math.min(...known) >= 12;
}
