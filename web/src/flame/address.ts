// SPDX-License-Identifier: Apache-2.0
import type { Graph } from "./graph";
import { pathTo } from "./graph";

// A node's address: the positions of its ancestors among their siblings, which a reload keeps.
export function addressOf(graph: Graph, node: number): string {
  return pathTo(graph.tree, node).slice(1).map((child) => graph.children[graph.tree.parent[child]!]!.indexOf(child)).join(".");
}

export function nodeOf(graph: Graph, address: string): number {
  let node = 0;
  for (const part of address ? address.split(".") : []) node = graph.children[node]?.[Number(part)] ?? node;
  return node;
}
