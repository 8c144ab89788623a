// SPDX-License-Identifier: Apache-2.0
// The colours of frames, as in the SVG of sonde export: by what runs there; native code has a shade for each module.
import type { CallTree } from "../report";

export type FrameKind = "task" | "python" | "native" | "jit" | "kernel" | "device" | "idle" | "waiting" | "energy" | "operator";

const WORDS: Record<FrameKind, string> = {
  task: "process, thread", python: "Python", native: "native code", jit: "JIT", kernel: "kernel of the system", device: "device work",
  idle: "device idle", waiting: "waiting", energy: "energy of nobody", operator: "operators, calls",
};

interface Colour {
  hue: number;
  saturation: number;
  spread: number; // hues that modules may have beyond the first
  pale?: number; // lighter by so much
}

const COLOURS: Record<FrameKind, Colour> = {
  task: { hue: 220, saturation: 14, spread: 0, pale: 12 },
  python: { hue: 46, saturation: 85, spread: 0 },
  native: { hue: 165, saturation: 48, spread: 90 },
  jit: { hue: 70, saturation: 58, spread: 0 },
  kernel: { hue: 16, saturation: 80, spread: 0 },
  device: { hue: 305, saturation: 55, spread: 0 },
  idle: { hue: 220, saturation: 25, spread: 0 },
  waiting: { hue: 350, saturation: 60, spread: 0 },
  energy: { hue: 28, saturation: 20, spread: 0 },
  operator: { hue: 265, saturation: 45, spread: 0 },
};

// Modules in brackets are no files: they say what stands at the end of a stack.
const BY_MODULE: Record<string, FrameKind> = {
  "[gpu]": "device", "[device]": "device", "[idle]": "idle", "[waiting]": "waiting", "[energy]": "energy", "[python]": "python",
  "[operator]": "operator", "[annotation]": "operator", "[runtime]": "operator", "[driver]": "operator",
};
const BY_KIND: Record<string, FrameKind> = { task: "task", interpreted: "python", jit: "jit", kernel: "kernel" };

export function kindOf(tree: CallTree, label: number): FrameKind {
  return BY_MODULE[tree.modules[label] ?? ""] ?? BY_KIND[tree.kinds[label] ?? ""] ?? "native";
}

export function hashOf(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0;
  return hash;
}

function colourOf(kind: FrameKind, module: string, shade: number, isDark: boolean): string {
  const { hue, saturation, spread, pale = 0 } = COLOURS[kind];
  const turned = hue + (spread ? hashOf(module) % spread : 0);
  return isDark ? `hsl(${turned} ${Math.round(saturation * 0.6)}% ${27 + shade}%)` : `hsl(${turned} ${saturation}% ${73 + shade * (pale ? 0.4 : 1) + pale}%)`;
}

export const fillOf = (tree: CallTree, label: number, isDark: boolean) =>
  colourOf(kindOf(tree, label), tree.modules[label] ?? "", hashOf(tree.names[label]!) % 9, isDark);

// What the graph has, in the order above: [words, colour].
export function legendOf(tree: CallTree, isDark: boolean): [string, string][] {
  const there = new Set(tree.names.map((_, label) => kindOf(tree, label)));
  return (Object.keys(WORDS) as FrameKind[]).filter((kind) => there.has(kind)).map((kind) => [WORDS[kind], colourOf(kind, "", 4, isDark)]);
}
