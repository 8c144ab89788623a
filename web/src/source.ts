// SPDX-License-Identifier: Apache-2.0
// Where the page's data comes from: a server, or what was written into the page itself.
import type { CallTree, Report } from "./report";

// What `sonde report --html` writes into the element sonde-data.
export interface Embedded {
  name: string;
  report: Report;
  trees: Record<string, Omit<CallTree, "weight">>; // by weight
}

export interface Source {
  name: string;
  weights: string[]; // of call trees
  report(by: string | null): Promise<Report>;
  tree(weight: string): Promise<CallTree>;
}

// Those that say something: with weight, and with work of devices where they add that to another.
function weightsOf(trees: Embedded["trees"]): string[] {
  const totalOf = (weight: string) => trees[weight]?.totals[0] ?? 0;
  return Object.keys(trees).filter((weight) => totalOf(weight) > 0 && (weight !== "cpu+gpu" || totalOf(weight) !== totalOf("cpu")));
}

export function embeddedSource(data: Embedded): Source {
  return {
    name: data.name,
    weights: weightsOf(data.trees),
    report: async () => data.report,
    tree: async (weight) => {
      const tree = data.trees[weight];
      if (!tree) throw new Error(`This file has no flame graph by ${weight}: choose another.`);
      return { ...tree, weight };
    },
  };
}

export function findSource(): Source {
  const element = document.getElementById("sonde-data");
  if (element) return embeddedSource(JSON.parse(element.textContent ?? "") as Embedded);
  throw new Error("This page has no data: it was not written by sonde report --html.");
}
