// SPDX-License-Identifier: Apache-2.0
// Hands a file to Perfetto's page in another window: it answers "PONG" to "PING" once it listens, then takes the bytes.
// https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui

// What its page can load: it runs in WebAssembly, with 32-bit addresses.
export const PERFETTO_BYTES_MAX = 2 ** 31;
const PING_MS = 50;

export interface Clock {
  setTimeout(call: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

const browserClock: Clock = { setTimeout: (call, ms) => setTimeout(call, ms), clearTimeout: (timer) => clearTimeout(timer as number) };

// Why it cannot be handed over; null: it can.
export function refusal(name: string, bytes: number | null): string | null {
  if (name.endsWith(".zst")) return "Perfetto does not read .zst: unpack the file, or write another one with sonde export -f pftrace.";
  if (name.endsWith(".log")) return "Perfetto does not read logs.";
  if ((bytes ?? 0) > PERFETTO_BYTES_MAX) return "Perfetto's page loads files of at most 2 GiB: record less, or cut out a part with sonde export --time.";
  return null;
}

// Resolves when the page listens. Only messages of this window and origin count.
export function whenReady(target: Window, origin: string, timeoutMs: number, here: Window = window, clock: Clock = browserClock): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: unknown;
    let left = Math.ceil(timeoutMs / PING_MS);
    let isOver = false;
    const end = (settle: () => void) => {
      isOver = true;
      clock.clearTimeout(timer);
      here.removeEventListener("message", heard);
      settle();
    };
    const heard = (event: MessageEvent) => {
      if (event.source === target && event.origin === origin && event.data === "PONG") end(resolve);
    };
    const ping = () => {
      if (target.closed) return end(() => reject(new Error("Its window was closed.")));
      if (left-- <= 0) return end(() => reject(new Error(`${origin} does not answer: is it reachable from this browser? Download the file and open it there, or give another page with --perfetto.`)));
      target.postMessage("PING", origin);
      if (!isOver) timer = clock.setTimeout(ping, PING_MS);
    };
    here.addEventListener("message", heard);
    ping();
  });
}

export function handOver(target: Window, origin: string, title: string, buffer: ArrayBuffer): void {
  target.postMessage({ perfetto: { buffer, title, fileName: title, keepApiOpen: false } }, origin, [buffer]);
}
