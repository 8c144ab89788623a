// SPDX-License-Identifier: Apache-2.0
import { expect, test, vi } from "vitest";
import { COLUMNS, TileCache, levelOf, spanOf, tilesOf } from "../src/timeline/cache";
import { formatPlace, rowsOf, ticks } from "../src/timeline/draw";
import type { TileSource, Track } from "../src/timeline/source";
import { decodeTile } from "../src/timeline/tile";
import type { Slices } from "../src/timeline/tile";
import type { Slice } from "../src/api";
import { delayText } from "../src/timeline/details";
import { arrowOf } from "../src/timeline/links";
import { addressOfSlice, neighbour, sliceOfAddress } from "../src/timeline/selection";
import { around, moved } from "../src/views/timeline";

const track: Track = { id: 3, kind: "stream", name: "stream 7", process: "python", pid: 1, tid: null, rank: null, lanes: 40, slices: 9, too_deep: 0, minimum: null, maximum: null };

// As src/query/timeline/timeline.h lays a tile out.
function encode(slices: { start: number; duration: number; name: number; lane: number }[], flows: { from: number; to: number }[] = []): ArrayBuffer {
  const bytes = new ArrayBuffer(48 + slices.length * 40 + flows.length * 32);
  const view = new DataView(bytes);
  [0x4c544e53, 1, 3, 0].forEach((value, at) => view.setUint32(4 * at, value, true));
  view.setUint32(36, slices.length, true);
  view.setUint32(40, flows.length, true);
  let at = 48;
  for (const column of [(s: (typeof slices)[0]) => s.start, (s: (typeof slices)[0]) => s.duration, (s: (typeof slices)[0]) => s.duration]) {
    for (const slice of slices) { view.setFloat64(at, column(slice), true); at += 8; }
  }
  for (const column of [(s: (typeof slices)[0]) => s.name, () => 1, (s: (typeof slices)[0]) => s.lane, () => 2]) {
    for (const slice of slices) { view.setUint32(at, column(slice), true); at += 4; }
  }
  for (const column of [(f: (typeof flows)[0]) => f.from, (f: (typeof flows)[0]) => f.to]) {
    for (const flow of flows) { view.setFloat64(at, column(flow), true); at += 8; }
  }
  return bytes;
}

const slices = [{ start: 10, duration: 5, name: 1, lane: 0 }, { start: 20, duration: 1, name: 2, lane: 1 }, { start: 30, duration: 2, name: 1, lane: 0 }];

test("a tile's bytes are read as they are laid out", () => {
  const tile = decodeTile(encode(slices, [{ from: 1, to: 10 }])) as Slices;
  expect([...tile.start]).toEqual([10, 20, 30]);
  expect([...tile.name]).toEqual([1, 2, 1]);
  expect([...tile.lane]).toEqual([0, 1, 0]);
  expect([tile.flows.from[0], tile.flows.to[0]]).toEqual([1, 10]);
});

test("bytes of something else are refused, and so is a tile that was cut", () => {
  expect(() => decodeTile(new ArrayBuffer(10))).toThrow("another version");
  expect(() => decodeTile(new ArrayBuffer(100))).toThrow("another version");
  expect(() => decodeTile(encode(slices).slice(0, 70))).toThrow(RangeError);
});

test("a level's tiles are as fine as the picture, and cover it", () => {
  for (const nsPerPixel of [0.5, 1, 3, 1000, 12345678]) {
    const level = levelOf(nsPerPixel);
    expect(spanOf(level) / COLUMNS).toBeLessThanOrEqual(Math.max(2 * nsPerPixel, 1));
    expect(spanOf(level)).toBeGreaterThanOrEqual(1024);
  }
  expect(tilesOf(0, 1000, 3000)).toEqual([0, 1, 2]);
});

const pause = () => new Promise((resolve) => setTimeout(resolve, 0));

function sourceOf(tile: TileSource["tile"]): TileSource {
  return { tile, names: async (numbers) => numbers.map((number) => `name ${number}`), slice: async () => { throw new Error("not asked for"); } };
}

test("a coarser tile stands in until the exact one is there", async () => {
  const asked: [number, number][] = [];
  const cache = new TileCache(sourceOf(async (_, from, to) => { asked.push([from, to]); return encode(slices); }), 8192, () => {});
  cache.begin();
  expect(cache.find(3, 1, 0, 2048)).toEqual([]);
  await pause();
  expect(asked).toEqual([[0, 2048]]);
  expect(cache.find(3, 1, 0, 2048).length).toBe(1);
  const fine = cache.find(3, 0, 0, 2048);
  expect(fine.map(({ fromNs, toNs }) => [fromNs, toNs])).toEqual([[0, 1024], [1024, 2048]]);
  await pause();
  expect(asked.length).toBe(3);
});

test("what fails is said, and not asked for again and again", async () => {
  const tile = vi.fn(async () => { throw new Error("the server is gone"); });
  let changes = 0;
  const cache = new TileCache(sourceOf(tile), 1024, () => { changes++; });
  for (let picture = 0; picture < 3; picture++) {
    cache.begin();
    cache.find(3, 0, 0, 1024);
    await pause();
  }
  expect(tile).toHaveBeenCalledTimes(1);
  expect(cache.fault).toBe("the server is gone");
  expect(changes).toBe(1);
});

test("names of one picture are asked for together", async () => {
  const source = sourceOf(async () => encode(slices));
  const names = vi.spyOn(source, "names");
  const cache = new TileCache(source, 1024, () => {});
  expect([cache.name(1), cache.name(2), cache.name(1)]).toEqual(["", "", ""]);
  await pause();
  expect(names).toHaveBeenCalledTimes(1);
  expect(cache.name(2)).toBe("name 2");
});

test("moving stays inside the recording", () => {
  expect(moved([0, 1000], 1000, 0.5, 0.5, 0)).toEqual([250, 750]);
  expect(moved([250, 750], 1000, 2, 0.5, 0)).toEqual([0, 1000]);
  expect(moved([800, 1000], 1000, 1, 0, 0.5)).toEqual([800, 1000]);
  expect(moved([0, 1000], 1e9, 1e-9, 0.5, 0)[1] - moved([0, 1000], 1e9, 1e-9, 0.5, 0)[0]).toBeCloseTo(100);
});

test("rows do not overlap, and a deep track opens", () => {
  const rows = rowsOf([track, { ...track, id: 4, kind: "counter", lanes: 1 }], new Set());
  expect(rows[0]!.lanes).toBeLessThan(40);
  expect(rows[1]!.top).toBeGreaterThanOrEqual(rows[0]!.top + rows[0]!.height);
  expect(rows.map((row) => row.isHead)).toEqual([true, false]);
  expect(rowsOf([track], new Set([3]))[0]!.lanes).toBe(40);
});

test("about one tick for each hundred pixels, at round times", () => {
  const found = ticks({ fromNs: 0, toNs: 1e9, width: 1000 });
  expect(found.length).toBeGreaterThan(4);
  expect(found.length).toBeLessThan(12);
  expect(found[1]! % 1e8).toBe(0);
});

const link = { kind: "launched" as const, track: 3, lane: 20, name: "kernel", start_ns: 5000, duration_ns: 10, from_ns: 100, from_lane: 1 };
const slice: Slice = {
  track: 1, lane: 0, name: "op", category: "cpu_op", start_ns: 50, duration_ns: 400, previous_ns: null, next_ns: 900, details: [], stack: [], links: [link], links_left_out: 0,
};

test("an arrow goes from the launch to its work, from whichever end it was asked", () => {
  const thread: Track = { ...track, id: 1, kind: "thread", tid: 1, lanes: 2 };
  const rows = rowsOf([thread, track], new Set());
  const view = { fromNs: 0, toNs: 10_000, width: 1000 };
  const launched = arrowOf(slice, link, rows, view)!;
  expect(launched.to.x - launched.from.x).toBeCloseTo(490);
  expect(launched.from.y).toBe(rows[0]!.top + 16 + 8);
  // Its lane is folded away: the arrow ends at the last one that is shown.
  expect(launched.to.y).toBe(rows[1]!.top + 11 * 16 + 8);
  const back = arrowOf({ ...slice, track: 3, start_ns: 5000 }, { ...link, kind: "launched_by", track: 1, lane: 1, start_ns: 100, from_ns: 5000, from_lane: 20 }, rows, view)!;
  expect(back).toEqual(launched);
  expect(arrowOf(slice, { ...link, track: 99 }, rows, view)).toBeNull();
  expect(delayText(link)).toBe("4.90 µs later");
});

test("a selected slice has an address, and anything else is none", () => {
  const chosen = { track: 12, lane: 3, atNs: 123456789 };
  expect(sliceOfAddress(addressOfSlice(chosen))).toEqual(chosen);
  for (const text of [undefined, "", "1.2", "1.2.x", "-1.0.0", "1.2.3.4"]) expect(sliceOfAddress(text)).toBeNull();
});

test("keys lead to the neighbours of a slice", () => {
  expect(neighbour(slice, "ArrowRight")).toEqual({ track: 1, lane: 0, atNs: 900 });
  expect(neighbour(slice, "ArrowLeft")).toBeNull();
  expect(neighbour({ ...slice, lane: 2 }, "ArrowUp")).toEqual({ track: 1, lane: 1, atNs: 50 });
});

test("a jump keeps the width of the view unless the slice is longer, and does not move what is in view", () => {
  expect(around([0, 100], 20, 10, 10_000)).toEqual([0, 100]);
  expect(around([0, 100], 5000, 10, 10_000)).toEqual([4955, 5055]);
  expect(around([0, 100], 5000, 1000, 10_000)).toEqual([4900, 6100]);
  expect(around([0, 100], 9990, 10, 10_000)).toEqual([9900, 10_000]);
});

test("places in time are as fine as the ruler", () => {
  expect(formatPlace(873_600_000, 200_000, 874_000_000)).toBe("873.6 ms");
  expect(formatPlace(43_123_456_000, 1000, 43_200_000_000)).toBe("43.123456 s");
  expect(formatPlace(5_000_000_000, 5_000_000_000, 40_000_000_000)).toBe("5 s");
  expect(formatPlace(12, 1, 500)).toBe("12 ns");
});
