// SPDX-License-Identifier: Apache-2.0
// The page's one connection to its server, which keeps sonde view running: live messages, and what became of it.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Source } from "../source";
import { LiveSocket, liveAddress } from "./socket";
import type { State } from "./socket";
import { LiveFeed } from "./state";

export interface Connection {
  state: State | null; // null: the page has no server
  feed: LiveFeed;
}

export function useConnection(source: Source): Connection {
  const [state, setState] = useState<State | null>(null);
  const feed = useMemo(() => new LiveFeed(source.liveHistory), [source]);
  useEffect(() => {
    if (!source.isServed) return undefined;
    const live = new LiveSocket(liveAddress(), (message) => feed.take(message), setState);
    return () => live.close();
  }, [source]);
  return { state, feed };
}

export const connectionText: Partial<Record<State, string>> = {
  waiting: "The connection to sonde is gone: connecting again …",
  ended: "sonde has ended. What is here stays; anything else needs it started again.",
};
