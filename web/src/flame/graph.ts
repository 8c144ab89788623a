// SPDX-License-Identifier: Apache-2.0
// A call tree with what drawing, searching and sandwiching need. No DOM here: tests run it alone.
import type { CallTree } from "../report";

export interface Graph {
  tree: CallTree;
  isDiff: boolean;
  scales: number[]; // of each side: what a change is a part of
  weight: number[]; // of each node: its total; of a diff the mean of both sides' parts
  children: number[][]; // of each node, largest first
  depth: number[];
  start: number[]; // of each node, in weight from the left
}

export interface Cost {
  label: number;
  self: number[]; // of each side
  total: number[]; // a function that calls itself counts once
}

const sumOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0);

// By what a side's weights are divided: its own total, or for both the larger one.
function scalesOf(tree: CallTree, isNormalised: boolean): number[] {
  const largest = Math.max(...tree.total.map((side) => side[0]!));
  return tree.total.map((side) => (isNormalised ? side[0]! : largest) || 1);
}

function weightsOf(tree: CallTree, scales: number[]): number[] {
  if (tree.total.length === 1) return tree.total[0]!;
  return tree.parent.map((_, node) => sumOf(tree.total.map((side, at) => side[node]! / scales[at]!)) / tree.total.length);
}

// `isNormalised`, of a diff: shares of each side are compared, not amounts.
export function graphOf(tree: CallTree, isNormalised = true): Graph {
  const { parent, label } = tree;
  const scales = scalesOf(tree, isNormalised);
  const weight = weightsOf(tree, scales);
  const children: number[][] = parent.map(() => []);
  const depth = parent.map(() => 0);
  const start = parent.map(() => 0);
  for (let node = 1; node < parent.length; node++) children[parent[node]!]!.push(node);
  const name = (node: number) => tree.names[label[node]!]!;
  for (const list of children) if (list.length > 1) list.sort((a, b) => weight[b]! - weight[a]! || (name(a) < name(b) ? -1 : 1));
  for (let node = 0; node < parent.length; node++) {
    let next = start[node]!;
    for (const child of children[node]!) {
      depth[child] = depth[node]! + 1;
      start[child] = next;
      next += weight[child]!;
    }
  }
  return { tree, isDiff: tree.total.length > 1, scales, weight, children, depth, start };
}

// A node's part of a side, 0 to 1.
export function shareOf(tree: CallTree, node: number, side = 0): number {
  const all = tree.total[side]![0]!;
  return all ? tree.total[side]![node]! / all : 0;
}

// Of a diff: how much more of the scale a node takes after than before.
export function changeOf({ tree, scales }: Graph, node: number): number {
  return tree.total[1]![node]! / scales[1]! - tree.total[0]![node]! / scales[0]!;
}

// From the root down to the node, both included.
export function pathTo(tree: CallTree, node: number): number[] {
  const path = [node];
  while (node > 0) {
    node = tree.parent[node]!;
    path.unshift(node);
  }
  return path;
}

function hasCallerOf({ label, parent }: CallTree, node: number): boolean {
  const wanted = label[node];
  for (let at = parent[node]!; at > 0; at = parent[at]!) if (label[at] === wanted) return true;
  return false;
}

// By function, most of their own first.
export function costs({ tree }: Graph): Cost[] {
  const { label, self, total } = tree;
  const found: (Cost | undefined)[] = [];
  for (let node = 1; node < label.length; node++) {
    const key = label[node]!;
    const cost = (found[key] ??= { label: key, self: self.map(() => 0), total: total.map(() => 0) });
    const isOutermost = !hasCallerOf(tree, node);
    for (let side = 0; side < self.length; side++) {
      cost.self[side]! += self[side]![node]!;
      if (isOutermost) cost.total[side]! += total[side]![node]!;
    }
  }
  return found.filter((cost) => cost !== undefined).sort((a, b) => sumOf(b.self) - sumOf(a.self) || sumOf(b.total) - sumOf(a.total));
}

// The outermost nodes of a label.
function occurrences(graph: Graph, wanted: number): number[] {
  const found: number[] = [];
  const stack = [0];
  while (stack.length) {
    const node = stack.pop()!;
    if (node && graph.tree.label[node] === wanted) found.push(node);
    else stack.push(...graph.children[node]!);
  }
  return found;
}

// A tree that is made of another's nodes.
class Merged {
  private parent = [-1];
  private label: number[];
  private self: number[][];
  private total: number[][];
  private known = new Map<string, number>();

  constructor(private of: CallTree, root: number) {
    this.label = [root];
    this.self = of.self.map(() => [0]);
    this.total = of.total.map(() => [0]);
  }

  child(parent: number, label: number): number {
    const key = `${parent}/${label}`;
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.parent.length;
      this.known.set(key, node);
      this.parent.push(parent);
      this.label.push(label);
      for (const side of [...this.self, ...this.total]) side.push(0);
    }
    return node;
  }

  addTotal(into: number, node: number): void {
    this.total.forEach((side, at) => { side[into]! += this.of.total[at]![node]!; });
  }

  addSelf(into: number, from: number[][], node: number): void {
    this.self.forEach((side, at) => { side[into]! += from[at]![node]!; });
  }

  tree(): CallTree {
    const { parent, label, self, total } = this;
    return { ...this.of, parent, label, self, total, totals: total.map((side) => side[0]!), pruned: { nodes: 0, total: 0 } };
  }
}

// What a function calls, over all its places: it is the root.
export function callees(graph: Graph, wanted: number): CallTree {
  const merged = new Merged(graph.tree, wanted);
  for (const place of occurrences(graph, wanted)) {
    const stack: [number, number][] = [[place, 0]];
    while (stack.length) {
      const [node, into] = stack.pop()!;
      merged.addTotal(into, node);
      merged.addSelf(into, graph.tree.self, node);
      for (const child of graph.children[node]!) stack.push([child, merged.child(into, graph.tree.label[child]!)]);
    }
  }
  return merged.tree();
}

// What calls a function, over all its places: it is the root, its callers are below.
export function callers(graph: Graph, wanted: number): CallTree {
  const { label, parent, total } = graph.tree;
  const merged = new Merged(graph.tree, wanted);
  for (const place of occurrences(graph, wanted)) {
    let into = 0;
    merged.addTotal(0, place);
    for (let node = parent[place]!; node > 0; node = parent[node]!) {
      into = merged.child(into, label[node]!);
      merged.addTotal(into, place);
    }
    merged.addSelf(into, total, place);
  }
  return merged.tree();
}

// What a search finds: its labels, and their part of all, where what is inside another counts once.
export function search(graph: Graph, text: string): { labels: Set<number>; share: number } {
  const wanted = text.toLowerCase();
  const { names, modules } = graph.tree;
  const labels = new Set<number>();
  names.forEach((value, label) => {
    if (value.toLowerCase().includes(wanted) || modules[label]!.toLowerCase().includes(wanted)) labels.add(label);
  });
  let found = 0;
  const stack = [...(graph.children[0] ?? [])];
  while (stack.length) {
    const node = stack.pop()!;
    if (labels.has(graph.tree.label[node]!)) found += graph.weight[node]!;
    else stack.push(...graph.children[node]!);
  }
  const all = graph.weight[0]!;
  return { labels, share: all ? found / all : 0 };
}
