// SPDX-License-Identifier: Apache-2.0
// binary_frames.mjs TEXT BINARY ROUNDS: what the page takes to read the messages of these files, each behind its length, as JSON.
// Milliseconds are medians of so many rounds over all messages, the two in turn: to read them, and to read them and keep their
// tokens and power as the page does.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const web = join(dirname(fileURLToPath(import.meta.url)), "..", "web");
const { createServer } = await import(join(web, "node_modules/vite/dist/node/index.js"));
const vite = await createServer({ root: web, configFile: false, logLevel: "error", server: { middlewareMode: true, watch: null }, optimizeDeps: { noDiscovery: true } });
const { readFrame } = await vite.ssrLoadModule("/src/live/frame.ts");
const { LiveCapture } = await vite.ssrLoadModule("/src/live/state.ts");

function messagesOf(path) {
  const bytes = readFileSync(path);
  const found = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32LE(at);
    found.push(bytes.buffer.slice(bytes.byteOffset + at + 4, bytes.byteOffset + at + 4 + length));
    at += 4 + length;
  }
  return found;
}

function take(capture, { type, data }) {
  if (type === "live_power") capture.takePower(data);
  else capture.tokens.take(data);
}

// The socket has text as a string, and binary frames as buffers.
const ways = {
  text: { messages: messagesOf(process.argv[2]).map((bytes) => Buffer.from(bytes).toString()), read: (text) => JSON.parse(text) },
  binary: { messages: messagesOf(process.argv[3]), read: readFrame },
};
const rounds = Number(process.argv[4]);
const times = { text: { read: [], take: [] }, binary: { read: [], take: [] } };

function round(name, what, { messages, read }) {
  const capture = new LiveCapture("");
  const begin = performance.now();
  for (const message of messages) {
    const envelope = read(message);
    if (what === "take") take(capture, envelope);
  }
  times[name][what].push(performance.now() - begin);
}

for (let i = 0; i < rounds + 2; i++) for (const what of ["read", "take"]) for (const [name, way] of Object.entries(ways)) round(name, what, way);
const median = (values) => values.slice(2).sort((left, right) => left - right)[Math.floor(rounds / 2)];
console.log(JSON.stringify(Object.fromEntries(Object.entries(times).map(([name, { read, take: taken }]) => [name, { read_ms: median(read), take_ms: median(taken) }]))));
await vite.close();
