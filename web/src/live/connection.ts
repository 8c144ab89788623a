// SPDX-License-Identifier: Apache-2.0
// The page's one connection to its server, which keeps sonde view running, and what became of it.
import { useEffect, useState } from "preact/hooks";
import { LiveSocket, liveAddress } from "./socket";
import type { State } from "./socket";

export function useConnection(isServed: boolean): State | null {
  const [state, setState] = useState<State | null>(null);
  useEffect(() => {
    if (!isServed) return undefined;
    const live = new LiveSocket(liveAddress(), () => {}, setState);
    return () => live.close();
  }, [isServed]);
  return state;
}

export const connectionText: Partial<Record<State, string>> = {
  waiting: "The connection to sonde is gone: connecting again …",
  ended: "sonde has ended. What is here stays; anything else needs it started again.",
};
