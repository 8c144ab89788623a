// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { CaptureSource } from "../source";
import { handOver, refusal, whenReady } from "./handover";

const ANSWER_MS = 30_000;

async function open(capture: CaptureSource, address: string, say: (text: string) => void): Promise<void> {
  const refused = refusal(capture.name, capture.sizeBytes);
  if (refused) throw new Error(refused);
  // At once, while the click still counts: browsers block windows that open later.
  const target = window.open(address);
  if (!target) throw new Error("The browser blocked the window: allow windows of this page.");
  say("Waiting for Perfetto …");
  const { origin } = new URL(address);
  const file = fetch(capture.fileHref!).then((response) => {
    if (!response.ok) throw new Error(`The capture could not be read: ${response.status} ${response.statusText}`);
    return response.arrayBuffer();
  });
  const [buffer] = await Promise.all([file, whenReady(target, origin, ANSWER_MS)]);
  handOver(target, origin, capture.name, buffer);
}

export function OpenInPerfetto({ capture, address }: { capture: CaptureSource; address: string }) {
  const [said, setSaid] = useState("");
  const click = () => {
    open(capture, address, setSaid).then(() => setSaid(""), (error: unknown) => setSaid(error instanceof Error ? error.message : String(error)));
  };
  return (
    <>
      <button type="button" class="link" title={`Hands the capture to ${address}, in this browser; nothing goes to a server`} onClick={click}>Open in Perfetto</button>
      {said && <span class="said" role="status">{said}</span>}
    </>
  );
}
