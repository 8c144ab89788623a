// SPDX-License-Identifier: Apache-2.0
// Drawing at most so often, in frames of the browser, and not while the page is hidden.
import { useEffect, useRef, useState } from "preact/hooks";

const CALM_MS = 1000; // where the system asks for less motion

const prefersCalm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Frames {
  private isAsked = false;
  private isClosed = false;
  private lastMs = -Infinity;

  constructor(private draw: () => void, private everyMs: number) {}

  ask(): void {
    if (this.isAsked || this.isClosed) return;
    this.isAsked = true;
    const restMs = this.lastMs + (prefersCalm() ? Math.max(this.everyMs, CALM_MS) : this.everyMs) - performance.now();
    setTimeout(() => requestAnimationFrame(() => this.run()), Math.max(0, restMs));
  }

  close(): void {
    this.isClosed = true;
  }

  private run(): void {
    this.isAsked = false;
    if (this.isClosed) return;
    this.lastMs = performance.now();
    this.draw();
  }
}

export interface Changing {
  subscribe(changed: () => void): () => void;
}

// Draws when `changing` does. `draw` may be another one each time.
export function useFrames(changing: Changing, everyMs: number, isFollowed: boolean, draw: () => void): void {
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    if (!isFollowed) return undefined;
    const frames = new Frames(() => latest.current(), everyMs);
    const unsubscribe = changing.subscribe(() => frames.ask());
    frames.ask();
    return () => { unsubscribe(); frames.close(); };
  }, [changing, everyMs, isFollowed]);
}

// The latest of what changes; while it is not followed, as it was then.
export function useLatest<T>(changing: Changing, everyMs: number, isFollowed: boolean, read: () => T): T {
  const [value, setValue] = useState<{ of: T }>(() => ({ of: read() }));
  useFrames(changing, everyMs, isFollowed, () => setValue({ of: read() }));
  return value.of;
}
