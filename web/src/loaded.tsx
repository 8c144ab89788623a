// SPDX-License-Identifier: Apache-2.0
// What a view shows takes a while to come, or does not come.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Progress } from "./source";

export type Loaded<T> = { state: "loading"; text: string } | { state: "failed"; why: string } | { state: "ready"; value: T };

// What `key` names; asked for again when `version` changes, while what there is stays on the page.
export function useLoaded<T>(load: (progress: Progress) => Promise<T>, key: string, version = 0): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading", text: "" });
  const shown = useRef("");
  useEffect(() => {
    let isOver = false;
    const isAgain = shown.current === key;
    const set = (value: Loaded<T>) => { if (!isOver) setLoaded(value); };
    if (!isAgain) set({ state: "loading", text: "" });
    load((text) => { if (!isAgain) set({ state: "loading", text }); }).then(
      (value) => { if (!isOver) shown.current = key; set({ state: "ready", value }); },
      (error: unknown) => set({ state: "failed", why: error instanceof Error ? error.message : String(error) }),
    );
    return () => { isOver = true; };
  }, [key, version]);
  return loaded;
}

export function Waiting<T>({ loaded, what, children }: { loaded: Loaded<T>; what: string; children: (value: T) => ComponentChildren }) {
  if (loaded.state === "loading") return <main><p role="status">{what} is being made{loaded.text && `: ${loaded.text}`} …</p></main>;
  if (loaded.state === "failed") return <main><p role="alert">{loaded.why}</p></main>;
  return <>{children(loaded.value)}</>;
}

export const keyOf = (...parts: unknown[]) => JSON.stringify(parts);
