// SPDX-License-Identifier: Apache-2.0
// The power of one rail over hours, in bounded memory: the same readings in buckets of several widths, each kept as long
// as its memory allows. Every bucket has minimum, maximum and mean, so that no peak is lost in a wide one.

interface Width {
  widthMs: number;
  buckets: number;
}

export const TIERS: Width[] = [
  { widthMs: 100, buckets: 6000 }, // ten minutes
  { widthMs: 1000, buckets: 3600 }, // an hour
  { widthMs: 10_000, buckets: 8640 }, // a day
  { widthMs: 120_000, buckets: 5040 }, // a week
];
const LONGEST_MS = 30 * 86_400_000; // a reading that is later than that is no reading
const EMPTY = -1;

class Tier {
  readonly widthMs: number;
  private numbers: Float64Array; // of the bucket that a slot holds
  private low: Float32Array;
  private high: Float32Array;
  private sum: Float64Array; // W · ms
  private weight: Float64Array; // ms
  private newest = EMPTY;

  constructor({ widthMs, buckets }: Width) {
    this.widthMs = widthMs;
    this.numbers = new Float64Array(buckets).fill(EMPTY);
    this.low = new Float32Array(buckets);
    this.high = new Float32Array(buckets);
    this.sum = new Float64Array(buckets);
    this.weight = new Float64Array(buckets);
  }

  add(fromMs: number, toMs: number, low: number, high: number, mean: number): void {
    // An interval that ends where a bucket begins is not in that bucket.
    const last = Math.max(Math.floor(fromMs / this.widthMs), Math.ceil(toMs / this.widthMs) - 1);
    const first = Math.max(Math.floor(fromMs / this.widthMs), last - this.numbers.length + 1, this.newest - this.numbers.length + 1);
    for (let number = first; number <= last; number++) {
      const inside = Math.min(toMs, (number + 1) * this.widthMs) - Math.max(fromMs, number * this.widthMs);
      this.addTo(number, low, high, mean, Math.max(inside, 1e-3));
    }
    this.newest = Math.max(this.newest, last);
  }

  private addTo(number: number, low: number, high: number, mean: number, weight: number): void {
    const slot = number % this.numbers.length;
    if (this.numbers[slot] !== number) {
      this.numbers[slot] = number;
      this.low[slot] = low;
      this.high[slot] = high;
      this.sum[slot] = 0;
      this.weight[slot] = 0;
    }
    this.low[slot] = Math.min(this.low[slot]!, low);
    this.high[slot] = Math.max(this.high[slot]!, high);
    this.sum[slot] = this.sum[slot]! + mean * weight;
    this.weight[slot] = this.weight[slot]! + weight;
  }

  reachesBackTo(ms: number): boolean {
    return Math.floor(ms / this.widthMs) > this.newest - this.numbers.length;
  }

  // Adds the buckets between to columns that begin at multiples of columnMs.
  read(fromMs: number, toMs: number, columnMs: number, columns: Columns): void {
    const origin = Math.floor(fromMs / columnMs);
    const first = Math.max(0, Math.floor(fromMs / this.widthMs), this.newest - this.numbers.length + 1);
    const last = Math.min(this.newest, Math.floor(toMs / this.widthMs));
    for (let number = first; number <= last; number++) {
      const slot = number % this.numbers.length;
      if (this.numbers[slot] !== number) continue;
      const column = Math.floor((number * this.widthMs) / columnMs) - origin;
      if (column >= 0 && column < columns.weight.length) columns.add(column, this.low[slot]!, this.high[slot]!, this.sum[slot]!, this.weight[slot]!);
    }
  }
}

// What is drawn: a weight of 0 is a gap.
export class Columns {
  low: Float32Array;
  high: Float32Array;
  sum: Float64Array;
  weight: Float64Array;

  constructor(count: number) {
    this.low = new Float32Array(count);
    this.high = new Float32Array(count);
    this.sum = new Float64Array(count);
    this.weight = new Float64Array(count);
  }

  add(at: number, low: number, high: number, sum: number, weight: number): void {
    const isFirst = this.weight[at] === 0;
    this.low[at] = isFirst ? low : Math.min(this.low[at]!, low);
    this.high[at] = isFirst ? high : Math.max(this.high[at]!, high);
    this.sum[at] = this.sum[at]! + sum;
    this.weight[at] = this.weight[at]! + weight;
  }

  mean(at: number): number | null {
    return this.weight[at] ? this.sum[at]! / this.weight[at]! : null;
  }
}

// Columns lie on the same places while the picture moves on: they are a whole number of buckets wide, from 0 on.
export function columnMsOf(fromMs: number, toMs: number, wanted: number): number {
  const widest = (toMs - fromMs) / Math.max(wanted, 1);
  const tier = [...TIERS].reverse().find(({ widthMs }) => widthMs <= widest) ?? TIERS[0]!;
  return Math.max(1, Math.ceil(widest / tier.widthMs)) * tier.widthMs;
}

export class History {
  private tiers = TIERS.map((width) => new Tier(width));
  newestMs = -Infinity;
  latest: number | null = null;

  // Of the mean power between two times. What ends before the newest is had already: it was sent again.
  add(fromMs: number, toMs: number, low: number, high: number, mean: number): void {
    const isTime = fromMs >= 0 && toMs >= fromMs && toMs < LONGEST_MS;
    if (!isTime || toMs <= this.newestMs || !Number.isFinite(low + high + mean)) return;
    for (const tier of this.tiers) tier.add(fromMs, toMs, low, high, mean);
    this.newestMs = toMs;
    this.latest = mean;
  }

  // Up to then there is no reading.
  skip(toMs: number): void {
    if (!(toMs > this.newestMs && toMs < LONGEST_MS)) return;
    this.newestMs = toMs;
    this.latest = null;
  }

  // From the tier whose buckets are no wider than a column, or the finest that still has the beginning.
  read(fromMs: number, toMs: number, columnMs: number): Columns {
    const columns = new Columns(Math.floor(toMs / columnMs) - Math.floor(fromMs / columnMs) + 1);
    const fitting = this.tiers.findLastIndex((tier) => tier.widthMs <= columnMs);
    const from = Math.max(fromMs, 0);
    const tier = this.tiers.slice(Math.max(fitting, 0)).find((candidate) => candidate.reachesBackTo(from)) ?? this.tiers.at(-1)!;
    tier.read(from, toMs, columnMs, columns);
    return columns;
  }
}
