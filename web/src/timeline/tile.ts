// SPDX-License-Identifier: Apache-2.0
// A tile's bytes: timeline_tile() in src/query/timeline/timeline.h has the layout.

const MAGIC = 0x4c544e53;
const HEAD_BYTES = 48;
const SLICES = 0;

export interface Slices {
  kind: "slices";
  count: number;
  start: Float64Array;
  duration: Float64Array;
  busy: Float64Array; // of those that were merged, together
  name: Uint32Array;
  merged: Uint32Array; // 1: one by itself
  lane: Uint32Array;
  category: Uint32Array;
  flows: { count: number; from: Float64Array; to: Float64Array; fromTrack: Uint32Array; fromLane: Uint32Array; toLane: Uint32Array };
  flowsLeftOut: number;
}

export interface CounterColumns {
  kind: "counter";
  count: number;
  start: Float64Array;
  first: Float64Array;
  minimum: Float64Array;
  maximum: Float64Array;
  last: Float64Array;
}

export type Tile = Slices | CounterColumns;

// Throws a RangeError where bytes are missing.
class Reader {
  constructor(private bytes: ArrayBuffer, private at: number) {}

  doubles(count: number): Float64Array {
    const array = new Float64Array(this.bytes, this.at, count);
    this.at += array.byteLength;
    return array;
  }

  integers(count: number): Uint32Array {
    const array = new Uint32Array(this.bytes, this.at, count);
    this.at += array.byteLength;
    return array;
  }

  // Integers may leave it between two doubles.
  copiedDoubles(count: number): Float64Array {
    const array = new Float64Array(this.bytes.slice(this.at, this.at + 8 * count));
    if (array.length !== count) throw new RangeError("the tile ends too early");
    this.at += array.byteLength;
    return array;
  }
}

function slicesOf(reader: Reader, count: number, flowCount: number, flowsLeftOut: number): Slices {
  const [start, duration, busy] = [reader.doubles(count), reader.doubles(count), reader.doubles(count)];
  const [name, merged, lane, category] = [reader.integers(count), reader.integers(count), reader.integers(count), reader.integers(count)];
  const [from, to] = [reader.copiedDoubles(flowCount), reader.copiedDoubles(flowCount)];
  const [fromTrack, fromLane, toLane] = [reader.integers(flowCount), reader.integers(flowCount), reader.integers(flowCount)];
  return { kind: "slices", count, start, duration, busy, name, merged, lane, category, flows: { count: flowCount, from, to, fromTrack, fromLane, toLane }, flowsLeftOut };
}

export function decodeTile(bytes: ArrayBuffer): Tile {
  const head = new DataView(bytes);
  if (bytes.byteLength < HEAD_BYTES || head.getUint32(0, true) !== MAGIC || head.getUint32(4, true) !== 1) {
    throw new Error("The server's timeline is of another version than the page: reload the page.");
  }
  const count = head.getUint32(36, true);
  const reader = new Reader(bytes, HEAD_BYTES);
  if (head.getUint32(12, true) === SLICES) return slicesOf(reader, count, head.getUint32(40, true), head.getUint32(44, true));
  return {
    kind: "counter", count, start: reader.doubles(count), first: reader.doubles(count),
    minimum: reader.doubles(count), maximum: reader.doubles(count), last: reader.doubles(count),
  };
}
