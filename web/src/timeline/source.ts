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
  duration_ns: number;
  tracks: Track[];
}

export interface TimelineSource {
  tracks(progress: (text: string) => void): Promise<Tracks>;
  tile(track: number, fromNs: number, toNs: number, columns: number): Promise<ArrayBuffer>;
  names(numbers: number[]): Promise<(string | null)[]>;
  slice(track: number, lane: number, atNs: number): Promise<Slice>;
}
