// SPDX-License-Identifier: Apache-2.0
// The slice that is selected: it stands in the address, and the server says what is known of it.
import { useEffect, useState } from "preact/hooks";
import type { Slice } from "../api";
import type { TileSource } from "./source";

export interface Chosen {
  track: number;
  lane: number;
  atNs: number;
}

export const addressOfSlice = ({ track, lane, atNs }: Chosen) => `${track}.${lane}.${Math.round(atNs)}`;

// Null: it is no slice's address.
export function sliceOfAddress(text: string | undefined): Chosen | null {
  const match = /^(\d{1,9})\.(\d{1,3})\.(\d{1,16})$/.exec(text ?? "");
  return match && { track: Number(match[1]), lane: Number(match[2]), atNs: Number(match[3]) };
}

export interface Selected {
  slice: Slice | null;
  fault: string | null;
}

export function useSlice(source: TileSource, address: string): Selected {
  const [selected, setSelected] = useState<Selected>({ slice: null, fault: null });
  useEffect(() => {
    const chosen = sliceOfAddress(address);
    let isOver = false;
    if (!chosen) return setSelected({ slice: null, fault: null });
    source.slice(chosen.track, chosen.lane, chosen.atNs).then(
      (slice) => { if (!isOver) setSelected({ slice, fault: null }); },
      (error: unknown) => { if (!isOver) setSelected({ slice: null, fault: error instanceof Error ? error.message : String(error) }); },
    );
    return () => { isOver = true; };
  }, [source, address]);
  return selected;
}

// What a key with Shift leads to from a slice: its neighbours, what it lies in, or what lies in it. Null: nowhere.
export function neighbour(slice: Slice, key: string): Chosen | null {
  const { track, lane, start_ns, previous_ns, next_ns } = slice;
  if (key === "ArrowLeft" && previous_ns !== null) return { track, lane, atNs: previous_ns };
  if (key === "ArrowRight" && next_ns !== null) return { track, lane, atNs: next_ns };
  if (key === "ArrowUp" && lane > 0) return { track, lane: lane - 1, atNs: start_ns };
  return null;
}
