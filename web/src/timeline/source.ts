// SPDX-License-Identifier: Apache-2.0
// A timeline: src/query/timeline/timeline.h. Times are nanoseconds since its beginning.

import type { Slice } from "../api";

export interface Track {
  id: number;
  kind: "thread" | "python" | "stream" | "samples" | "counter";
  name: string;
  process: string | null;
  pid: number | null;
  tid: number | null;
  rank: number | null;
  lanes: number;
  slices: number;
  too_deep: number;
  minimum: number | null; // of counters
  maximum: number | null;
}

export interface Tracks {
  version: string; // of the capture: numbers of tracks and names are those of this one
  duration_ns: number;
  tracks: Track[];
}

// Of the tracks of one version.
export interface TileSource {
  tile(track: number, fromNs: number, toNs: number, columns: number): Promise<ArrayBuffer>;
  names(numbers: number[]): Promise<(string | null)[]>;
  slice(track: number, lane: number, atNs: number): Promise<Slice>;
}

export interface TimelineSource {
  tracks(progress: (text: string) => void): Promise<Tracks>;
  // `onGone`: the recording has grown, and this version is gone: its tracks are to be asked for again.
  of(version: string, onGone: () => void): TileSource;
}
