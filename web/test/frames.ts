// SPDX-License-Identifier: Apache-2.0
// Binary frames as schema/api.json has them (x-frame), made byte by byte.
interface Header { epoch?: string; seq?: number; kind?: number; version?: number; bytes?: number; t_ms?: number; capture?: string }
type Column = ["f64" | "f32" | "u32", number[]];

const BYTES = { f64: 8, f32: 4, u32: 4 };

export function frame({ epoch = "e1", seq = 1, kind = 1, version = 1, bytes = 80, t_ms = 1.5, capture = "c1" }: Header, tables: Column[][], texts: string): ArrayBuffer {
  const out: number[] = [];
  const view = new DataView(new ArrayBuffer(8));
  const put = (size: number, set: () => void) => { set(); for (let at = 0; at < size; at++) out.push(view.getUint8(at)); };
  const text = (value: string, size: number) => { for (let at = 0; at < size; at++) out.push(value.charCodeAt(at) || 0); };
  put(1, () => view.setUint8(0, version));
  put(1, () => view.setUint8(0, kind));
  put(2, () => view.setUint16(0, bytes, true));
  put(4, () => view.setUint32(0, 0));
  put(8, () => view.setBigUint64(0, BigInt(seq), true));
  put(8, () => view.setFloat64(0, t_ms, true));
  text(epoch, 32);
  text(capture, 24);
  for (const columns of tables) {
    put(4, () => view.setUint32(0, columns[0]![1].length, true));
    put(4, () => view.setUint32(0, 0));
    for (const [type, values] of columns) {
      for (const value of values) {
        if (type === "f64") put(BYTES[type], () => view.setFloat64(0, value, true));
        else if (type === "f32") put(BYTES[type], () => view.setFloat32(0, value, true));
        else put(BYTES[type], () => view.setUint32(0, value, true));
      }
      while (out.length % 8) out.push(0);
    }
  }
  out.push(...new TextEncoder().encode(texts));
  return new Uint8Array(out).buffer;
}

export function powerFrame(header: Header = {}): ArrayBuffer {
  return frame(header, [[["f64", [100, 200, 100]], ["f32", [10.5, NaN, 3]], ["u32", [1, 1, 4]]]], "[]");
}

export function tokensFrame(header: Header = {}): ArrayBuffer {
  const none = 0xffffffff;
  return frame({ kind: 2, ...header }, [
    [["f64", [20, 40]], ["f64", [0, NaN]], ["f32", [NaN, 20]], ["u32", [7, 7]], ["u32", [0, none]], ["u32", [1, none]]],
    [["f64", [5]], ["u32", [7]], ["u32", [0]], ["u32", [2]]],
  ], JSON.stringify(["ré\u{1f600}quest", "decode", "prefill"]));
}
