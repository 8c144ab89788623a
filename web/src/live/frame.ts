// SPDX-License-Identifier: Apache-2.0
// Binary frames: messages that are columns of numbers, read where they lie. schema/api.json has their form (x-frame).
import { frameHeader, frameKinds } from "../api";
import type { Envelope } from "../api";

type Kinds = typeof frameKinds;
export type FrameType = keyof Kinds;
interface Arrays { f64: Float64Array; f32: Float32Array; u32: Uint32Array; text: Uint32Array }
type Table<Columns> = { rows: number } & { [Name in keyof Columns]: Columns[Name] extends keyof Arrays ? Arrays[Columns[Name]] : never };

// The data of a message in columns: its tables by name, and the texts that they name.
export type Columns<Type extends FrameType> = { capture: string; texts: Texts } & { [Name in keyof Kinds[Type]["tables"]]: Table<Kinds[Type]["tables"][Name]> };

const NONE = 0xffffffff;
const BYTES = { f64: 8, f32: 4, u32: 4, text: 4 };
const MAKERS = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, text: Uint32Array };

export class Texts {
  constructor(private texts: string[]) {}

  at(place: number): string | null {
    return place === NONE ? null : this.texts[place]!;
  }
}

// A frame that is none, with the number of its message where that can be read.
export class BadFrame extends Error {
  constructor(reason: string, readonly header: Pick<Envelope, "epoch" | "seq" | "t_ms"> | null) { super(`This binary frame cannot be read: ${reason}.`); }
}

type Header = Pick<Envelope, "epoch" | "seq" | "t_ms"> & { kind: number; bytes: number; capture: string };

function readHeader(buffer: ArrayBuffer): Header {
  const { version, kind, bytes, seq, t_ms, epoch, capture } = frameHeader;
  const end = capture.at + capture.bytes;
  if (buffer.byteLength < end) throw new BadFrame(`it has ${buffer.byteLength} bytes, and its header ${end}`, null);
  const view = new DataView(buffer);
  const text = ({ at, bytes: length }: { at: number; bytes: number }) => {
    const field = new Uint8Array(buffer, at, length);
    const zero = field.indexOf(0);
    return String.fromCharCode(...field.subarray(0, zero < 0 ? length : zero));
  };
  const header = {
    kind: view.getUint8(kind.at), bytes: view.getUint16(bytes.at, true), seq: Number(view.getBigUint64(seq.at, true)),
    t_ms: view.getFloat64(t_ms.at, true), epoch: text(epoch), capture: text(capture),
  };
  if (view.getUint8(version.at) !== 1) throw new BadFrame(`it is of version ${view.getUint8(version.at)}`, null);
  if (!Number.isSafeInteger(header.seq) || !Number.isFinite(header.t_ms)) throw new BadFrame("its number or its time is none", null);
  // A longer header has more behind what is known here.
  if (header.bytes < end || header.bytes % 8 !== 0 || header.bytes > buffer.byteLength) throw new BadFrame(`its header has ${header.bytes} bytes`, header);
  return header;
}

const aligned = (bytes: number) => Math.ceil(bytes / 8) * 8;

class Reader {
  constructor(private buffer: ArrayBuffer, private header: Header, private at: number) {}

  fail(reason: string): never {
    throw new BadFrame(reason, this.header);
  }

  table(name: string, columns: Record<string, keyof Arrays>): Record<string, unknown> {
    const left = this.buffer.byteLength - this.at;
    if (left < 8) this.fail(`it ends before its table ${name}`);
    const rows = new Uint32Array(this.buffer, this.at, 1)[0]!;
    const needed = Object.values(columns).reduce((sum, type) => sum + aligned(rows * BYTES[type]), 8);
    if (needed > left) this.fail(`its table ${name} has ${rows} rows, which are ${needed} bytes of ${left}`);
    this.at += 8;
    const table: Record<string, unknown> = { rows };
    for (const [column, type] of Object.entries(columns)) {
      table[column] = new MAKERS[type](this.buffer, this.at, rows);
      this.at += aligned(rows * BYTES[type]);
    }
    return table;
  }

  texts(): string[] {
    try {
      const texts: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(this.buffer, this.at)));
      if (Array.isArray(texts) && texts.every((text) => typeof text === "string")) return texts;
    } catch { /* said below */ }
    return this.fail("its texts are no list of strings");
  }
}

// The envelope whose data are columns. Of a kind that the page does not know: null, as of types that it does not know.
export function readFrame(buffer: ArrayBuffer): Envelope | null {
  const header = readHeader(buffer);
  const known = Object.entries(frameKinds).find(([, { kind }]) => kind === header.kind);
  if (!known) return null;
  const [type, { tables }] = known;
  const reader = new Reader(buffer, header, header.bytes);
  const data: Record<string, unknown> = { capture: header.capture };
  for (const [name, columns] of Object.entries(tables)) data[name] = reader.table(name, columns);
  const texts = reader.texts();
  for (const [name, columns] of Object.entries(tables)) {
    const table = data[name] as Record<string, Uint32Array>;
    for (const column of Object.keys(columns).filter((one) => columns[one as keyof typeof columns] === "text")) {
      if (table[column]!.some((place) => place !== NONE && place >= texts.length)) reader.fail(`its column ${column} names a text that there is not`);
    }
  }
  data.texts = new Texts(texts);
  return { v: 1, epoch: header.epoch, seq: header.seq, t_ms: header.t_ms, type, data } as Envelope;
}
