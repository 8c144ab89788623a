// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { boxAt, fit, layout, svgOf } from "../src/flame/draw";
import { fillOf, kindOf, legendOf } from "../src/flame/colours";
import { callees, callers, changeOf, costs, graphOf, pathTo, search } from "../src/flame/graph";
import type { CallTree } from "../src/report";
import { addressOf, nodeOf } from "../src/flame/address";

// "a;b;c" and what each stack weighs, on one side or two.
function treeOf(...sides: Record<string, number>[]): CallTree {
  const names = ["all"];
  const label = [0];
  const parent = [-1];
  const known = new Map<string, number>([["", 0]]);
  const self = sides.map(() => [0]);
  const total = sides.map(() => [0]);
  sides.forEach((stacks, side) => {
    for (const [stack, weight] of Object.entries(stacks)) {
      let at = 0;
      let path = "";
      total[side]![0]! += weight;
      for (const frame of stack.split(";")) {
        path += `;${frame}`;
        if (!names.includes(frame)) names.push(frame);
        let node = known.get(path);
        if (node === undefined) {
          node = label.length;
          known.set(path, node);
          label.push(names.indexOf(frame));
          parent.push(at);
          for (const list of [...self, ...total]) list.push(0);
        }
        total[side]![node]! += weight;
        at = node;
      }
      self[side]![at]! += weight;
    }
  });
  return {
    weight: "cpu", unit: "ns", paths: sides.map((_, at) => `run${at}`), totals: total.map((list) => list[0]!), names,
    modules: names.map((name) => (name.startsWith("py_") ? "python" : "lib.so")), kinds: names.map(() => "native"),
    label, parent, self, total, pruned: { nodes: 0, total: 0 }, notes: [],
  };
}

const stacks = { "main;work;sgemm": 50, "main;work;work;sgemm": 20, "main;py_load;read": 20, "main": 10 };

test("children lie beside each other, largest first", () => {
  const graph = graphOf(treeOf(stacks));
  const picture = layout(graph, 0, 1000);
  const names = picture.boxes.filter((box) => box.row === 2).map((box) => [graph.tree.names[graph.tree.label[box.node]!], box.x, box.width]);
  expect(names.sort((a, b) => Number(a[1]) - Number(b[1]))).toEqual([["work", 0, 700], ["py_load", 700, 200]]);
  expect(picture.rows).toBe(5);
});

test("zooming fills the width and keeps what is above", () => {
  const graph = graphOf(treeOf(stacks));
  const node = nodeOf(graph, "0.1");
  const picture = layout(graph, node, 600);
  expect(pathTo(graph.tree, node).map((at) => graph.tree.names[graph.tree.label[at]!])).toEqual(["all", "main", "py_load"]);
  expect(picture.boxes.filter((box) => box.isAbove).map((box) => box.width)).toEqual([600, 600]);
  expect(boxAt(picture, 300, 2)?.node).toBe(node);
  expect(boxAt(picture, 300, 3)?.width).toBe(600);
  expect(boxAt(picture, 300, 9)).toBeNull();
  expect(addressOf(graph, node)).toBe("0.1");
});

test("a function that calls itself counts once", () => {
  const graph = graphOf(treeOf(stacks));
  const rows = costs(graph).map((row) => [graph.tree.names[row.label], row.self[0], row.total[0]]);
  expect(rows).toEqual([["sgemm", 70, 70], ["read", 20, 20], ["main", 10, 100], ["work", 0, 70], ["py_load", 0, 20]]);
});

test("callers and callees of a function, over all its places", () => {
  const graph = graphOf(treeOf(stacks));
  const label = graph.tree.names.indexOf("sgemm");
  const above = graphOf(callers(graph, label));
  expect(above.tree.totals).toEqual([70]);
  expect(costs(above).map((row) => [above.tree.names[row.label], row.total[0]])).toContainEqual(["main", 70]);
  const below = graphOf(callees(graph, graph.tree.names.indexOf("work")));
  expect(below.tree.totals).toEqual([70]);
  expect(below.tree.total[0]!.filter((_, node) => below.tree.names[below.tree.label[node]!] === "sgemm")).toEqual([50, 20]);
});

test("what a search finds counts once", () => {
  const graph = graphOf(treeOf(stacks));
  expect(search(graph, "WORK").share).toBeCloseTo(0.7);
  expect(search(graph, "python").share).toBeCloseTo(0.2);
  expect(search(graph, "nothing")).toEqual({ labels: new Set(), share: 0 });
});

test("of a diff the width is the mean of both sides' shares", () => {
  const graph = graphOf(treeOf({ "main;a": 100 }, { "main;a": 50, "main;b": 150 }));
  const picture = layout(graph, 0, 1000);
  const widths = Object.fromEntries(picture.boxes.map((box) => [graph.tree.names[graph.tree.label[box.node]!], Math.round(box.width)]));
  expect(widths).toEqual({ all: 1000, main: 1000, a: 625, b: 375 });
});

test("names with markup stay text in an SVG", () => {
  const graph = graphOf(treeOf({ "<script>alert(1)</script>": 1 }));
  const svg = svgOf(graph, layout(graph, 0, 800));
  expect(svg).not.toContain("<script>");
  expect(svg).toContain("&lt;script&gt;");
});

test("a comparison is of shares, or of amounts", () => {
  // The same work, and as much again of something else.
  const tree = treeOf({ work: 100 }, { work: 100, more: 100 });
  const work = tree.label.indexOf(tree.names.indexOf("work"));
  expect(changeOf(graphOf(tree), work)).toBeCloseTo(-0.5);
  const amounts = graphOf(tree, false);
  expect(changeOf(amounts, work)).toBeCloseTo(0);
  expect(changeOf(amounts, tree.label.indexOf(tree.names.indexOf("more")))).toBeCloseTo(0.5);
  // As wide as both sides take of the larger one.
  expect(amounts.weight[work]).toBeCloseTo(0.5);
});

test("a graph that grows upward has its root at the bottom", () => {
  const graph = graphOf(treeOf(stacks));
  const [down, up] = [layout(graph, 0, 1000), layout(graph, 0, 1000, true)];
  expect(up.rows).toBe(down.rows);
  expect(boxAt(up, 10, up.rows - 1)?.node).toBe(0);
  expect(boxAt(down, 10, 0)?.node).toBe(0);
});

test("frames are coloured by what runs there, and the legend names what is there", () => {
  const tree = treeOf({ "main;kernel_of_gpu;wait": 1 });
  tree.kinds = ["task", "interpreted", "native", "kernel"];
  tree.modules = ["", "train.py", "[gpu]", "[waiting]"];
  expect(tree.names.map((_, label) => kindOf(tree, label))).toEqual(["task", "python", "device", "waiting"]);
  expect(legendOf(tree, false).map(([words]) => words)).toEqual(["process, thread", "Python", "device work", "waiting"]);
  const native = { ...tree, kinds: ["native", "native", "native", "native"], modules: ["a.so", "b.so", "a.so", "a.so"], names: ["f", "f", "f", "g"] };
  expect(fillOf(native, 0, false)).toBe(fillOf(native, 2, false));
  expect(fillOf(native, 0, false)).not.toBe(fillOf(native, 1, false));
});

test("names are cut to what fits", () => {
  let measured = 0;
  // Letters of 10 pixels, the first ones of 30.
  const context = { measureText: (text: string) => { measured++; return { width: [...text].reduce((sum, letter) => sum + (letter === "W" ? 30 : 10), 0) } as TextMetrics; } };
  expect(fit(context, "abc", 30)).toBe("abc");
  expect(fit(context, "abcdefghij", 55)).toBe("abcd…");
  expect(fit(context, "WWabcdefghij", 60)).toBe("W…");
  expect(fit(context, "WW", 20)).toBe("");
  measured = 0;
  fit(context, "a".repeat(1000), 100);
  expect(measured).toBeLessThan(5);
});
