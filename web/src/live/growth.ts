// SPDX-License-Identifier: Apache-2.0
// A capture that is being recorded: the page follows it, as often as its answers allow.
import { useEffect, useRef, useState } from "preact/hooks";
import type { CaptureSource } from "../source";

const LOOK_MS = 2000; // how often to look whether it has grown
const GROWING_MS = 10_000; // sonde record writes at least once a second
const LONGEST_MS = 60_000;

// An answer takes the server as long as the last one did: it gets ten times that long to rest.
export const restOf = (answerMs: number) => Math.min(Math.max(LOOK_MS, 10 * answerMs), LONGEST_MS);

export interface Growth {
  isGrowing: boolean;
  isFollowed: boolean;
  version: number; // changes when the page is to be made again
  toggle: () => void;
}

export function useGrowth(capture: CaptureSource): Growth {
  const [growing, setGrowing] = useState(false);
  const [isFollowed, setFollowed] = useState(true);
  const [version, setVersion] = useState(0);
  const seen = useRef({ id: "", modifiedMs: 0, at: -Infinity }); // by the page's clock

  useEffect(() => {
    if (!capture.modifiedMs) return undefined;
    if (seen.current.id !== capture.id) seen.current = { id: capture.id, modifiedMs: 0, at: -Infinity };
    let isOver = false;
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      try {
        const modifiedMs = await capture.modifiedMs!();
        if (isOver) return;
        const { modifiedMs: before } = seen.current;
        if (before !== 0 && modifiedMs !== before) {
          seen.current.at = performance.now();
          if (isFollowed) setVersion((count) => count + 1);
        }
        seen.current.modifiedMs = modifiedMs;
        setGrowing(performance.now() - seen.current.at < GROWING_MS);
      } catch {
        setGrowing(false);
      }
      if (!isOver) timer = setTimeout(look, document.hidden ? LONGEST_MS : restOf(capture.answerMs()));
    };
    look();
    return () => { isOver = true; clearTimeout(timer); };
  }, [capture.id, isFollowed]);
  return { isGrowing: growing, isFollowed, version, toggle: () => setFollowed(!isFollowed) };
}
