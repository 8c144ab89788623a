// SPDX-License-Identifier: Apache-2.0
// Tiles of the tracks that are in view, at the level of detail of the picture; the coarser ones stand in until they are there.
import { decodeTile } from "./tile";
import type { Tile } from "./tile";
import type { TileSource } from "./source";

export const COLUMNS = 1024; // of a tile
const TILES_MAX = 2000; // that are kept
const REQUESTS_MAX = 6; // at once
const SMALLEST_NS = 1024; // that a tile spans

export interface Placed {
  tile: Tile;
  fromNs: number;
  toNs: number;
}

// A level is twice as coarse as the one before it: its tiles span 2^level times the smallest.
export function levelOf(nsPerPixel: number): number {
  return Math.max(0, Math.ceil(Math.log2((nsPerPixel * COLUMNS) / SMALLEST_NS)));
}

export const spanOf = (level: number) => SMALLEST_NS * 2 ** level;

// The numbers of a level's tiles that the span touches.
export function tilesOf(level: number, fromNs: number, toNs: number): number[] {
  const span = spanOf(level);
  const found = [];
  for (let at = Math.max(0, Math.floor(fromNs / span)); at * span < toNs; at++) found.push(at);
  return found;
}

interface Wanted {
  key: string;
  track: number;
  level: number;
  at: number;
}

export class TileCache {
  private tiles = new Map<string, Tile>(); // in the order of their last use
  private wanted: Wanted[] = [];
  private asked = new Set<string>();
  private failed = new Set<string>(); // not asked for again
  private names = new Map<number, string>();
  private namesWanted = new Set<number>();
  private areNamesAsked = false;
  fault: string | null = null;

  constructor(private source: TileSource, private durationNs: number, private onChange: () => void) {}

  // What there is to draw of a track: the tiles of the level, and where one is missing a coarser one. Asks for the missing.
  // A call forgets what earlier ones wanted and is not asked for yet: begin() does, before each picture.
  begin(): void {
    this.wanted = [];
  }

  find(track: number, level: number, fromNs: number, toNs: number): Placed[] {
    const top = levelOf((2 * this.durationNs) / COLUMNS);
    const placed: Placed[] = [];
    for (const at of tilesOf(level, fromNs, Math.min(toNs, this.durationNs))) {
      const exact = this.take(`${track}/${level}/${at}`);
      if (exact) {
        placed.push({ tile: exact, fromNs: at * spanOf(level), toNs: (at + 1) * spanOf(level) });
        continue;
      }
      this.wanted.push({ key: `${track}/${level}/${at}`, track, level, at });
      for (let coarse = level + 1, place = at >> 1; coarse <= top; coarse++, place >>= 1) {
        const tile = this.take(`${track}/${coarse}/${place}`);
        if (!tile) continue;
        placed.push({ tile, fromNs: at * spanOf(level), toNs: (at + 1) * spanOf(level) });
        break;
      }
    }
    this.ask();
    return placed;
  }

  // Empty until it is there.
  name(number: number): string {
    const known = this.names.get(number);
    if (known !== undefined) return known;
    this.namesWanted.add(number);
    this.askNames();
    return "";
  }

  private take(key: string): Tile | undefined {
    const tile = this.tiles.get(key);
    if (tile) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
    }
    return tile;
  }

  private ask(): void {
    while (this.asked.size < REQUESTS_MAX) {
      const next = this.wanted.shift();
      if (!next) return;
      if (this.asked.has(next.key) || this.failed.has(next.key)) continue;
      this.asked.add(next.key);
      const span = spanOf(next.level);
      this.source.tile(next.track, next.at * span, (next.at + 1) * span, COLUMNS).then(
        (bytes) => this.keep(next.key, decodeTile(bytes)),
        (error: unknown) => {
          this.failed.add(next.key);
          this.fault = error instanceof Error ? error.message : String(error);
        },
      ).finally(() => {
        this.asked.delete(next.key);
        this.onChange();
      });
    }
  }

  private keep(key: string, tile: Tile): void {
    this.tiles.set(key, tile);
    this.fault = null;
    for (const oldest of this.tiles.keys()) {
      if (this.tiles.size <= TILES_MAX) break;
      this.tiles.delete(oldest);
    }
  }

  private askNames(): void {
    if (this.areNamesAsked) return;
    this.areNamesAsked = true;
    // All that one picture needs, in one request.
    queueMicrotask(async () => {
      const numbers = [...this.namesWanted].slice(0, 1000);
      try {
        const texts = await this.source.names(numbers);
        numbers.forEach((number, at) => this.names.set(number, texts[at] ?? ""));
      } catch (error) {
        this.fault = error instanceof Error ? error.message : String(error);
        for (const number of numbers) this.names.set(number, "?");
      }
      for (const number of numbers) this.namesWanted.delete(number);
      this.areNamesAsked = false;
      this.onChange();
    });
  }
}
