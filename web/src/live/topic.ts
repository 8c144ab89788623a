// SPDX-License-Identifier: Apache-2.0
// Who wants to know when something changed.
import type { Changing } from "./frames";

export class Topic implements Changing {
  private listeners = new Set<() => void>();

  subscribe(changed: () => void): () => void {
    this.listeners.add(changed);
    return () => { this.listeners.delete(changed); };
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }
}
