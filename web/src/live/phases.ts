// SPDX-License-Identifier: Apache-2.0
// Phases, steps and windows: the latest of them, and where they lie in a picture.
import type { LivePhases } from "../api";

export type Phase = LivePhases["phases"][number];

const KEPT = 20_000;
const FORGOTTEN = KEPT / 4; // at once

export class PhaseHistory {
  private phases = new Map<number, Phase>();

  take({ phases }: LivePhases): void {
    for (const phase of phases) this.phases.set(phase.id, phase);
    if (this.phases.size <= KEPT) return;
    let left = FORGOTTEN;
    for (const id of this.phases.keys()) {
      if (left-- <= 0) break;
      this.phases.delete(id);
    }
  }

  get size(): number {
    return this.phases.size;
  }

  all(): Iterable<Phase> {
    return this.phases.values();
  }

  // That contain a time, the shortest last.
  at(ms: number): Phase[] {
    const found = [...this.phases.values()].filter(({ t_ms, end_ms }) => t_ms <= ms && (end_ms === null || end_ms >= ms));
    return found.sort((a, b) => a.t_ms - b.t_ms);
  }
}

export interface Band {
  kind: Phase["kind"];
  name: string;
  x: number; // pixels
  width: number;
  isOpen: boolean;
}

// What to draw of those between two times, in pixels from the first. Of many in one pixel, one of each name.
export function bandsOf(phases: Iterable<Phase>, fromMs: number, toMs: number, nowMs: number, width: number): Band[] {
  const perMs = width / (toMs - fromMs);
  const drawnTo = new Map<string, number>();
  const bands: Band[] = [];
  for (const { kind, name, t_ms, end_ms } of phases) {
    const endMs = end_ms ?? nowMs;
    if (endMs < fromMs || t_ms > toMs) continue;
    const x = Math.max(0, (t_ms - fromMs) * perMs);
    const end = Math.min(width, (endMs - fromMs) * perMs);
    const key = `${kind}/${name}`;
    if (end_ms !== null && end < (drawnTo.get(key) ?? -1) + 1) continue;
    drawnTo.set(key, end);
    bands.push({ kind, name: name ?? kind, x, width: Math.max(end - x, 0.5), isOpen: end_ms === null });
  }
  return bands;
}
