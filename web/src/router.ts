// SPDX-License-Identifier: Apache-2.0
// Every view has an address: #/VIEW/WHAT?name=value. It works from a file, too.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string; // "report", "flame"; "": what suits the capture
  what: string; // a section, a weight; "": none
  query: Record<string, string>;
}

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/").map(decodeURIComponent);
  return { view, what: rest.join("/"), query: Object.fromEntries(new URLSearchParams(query)) };
}

export function hrefOf(place: { view: string; what?: string; query?: Record<string, string> }): string {
  const query = new URLSearchParams(Object.entries(place.query ?? {}).filter(([, value]) => value !== "")).toString();
  const path = [place.view, place.what ?? ""].filter(Boolean).map(encodeURIComponent).join("/");
  return `#/${path}${query ? `?${query}` : ""}`;
}

// `isSame`: does not add to the history, for what changes with each key.
export function go(place: Parameters<typeof hrefOf>[0], isSame = false): void {
  const href = hrefOf(place);
  if (isSame) {
    history.replaceState(null, "", href);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href;
  }
}

// Is the page still there? For what writes to the address later: a view is told of a new address after it was set.
export function isAt(place: Place): boolean {
  const now = parsePlace(location.hash);
  return now.view === place.view && now.what === place.what && now.query.capture === place.query.capture;
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => parsePlace(location.hash));
  useEffect(() => {
    const changed = () => setPlace(parsePlace(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return place;
}
