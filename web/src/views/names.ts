// SPDX-License-Identifier: Apache-2.0
// What the list of sections calls those that are not in the report: as their headings would, in place of --by's words.
const NAMES: Record<string, string> = {
  annotations: "Annotations", avoidable: "Costs that can often be avoided", bandwidth: "Memory bandwidth", calls: "Calls of the runtime",
  category: "Kinds of operators", cgroup: "Control groups", class: "Whose code it is", client: "Requests as the load generator saw them",
  counter: "Counters", cpu: "CPUs", "cpu-operators": "Operators of the CPU", "critical-path": "Critical path", "device-waits": "Waits for devices",
  energy: "Energy", expert: "Experts", function: "Hottest functions", gil: "Python's interpreter lock", graph: "CUDA graphs",
  host: "Why devices were idle", idle: "Idle time breakdown", kernel: "Kernel breakdown", "kernel-counters": "Counters of kernels",
  launches: "Launches", layer: "Layers", line: "Hottest lines", memory: "Memory", module: "Program files", "nn-module": "Modules of the model",
  operators: "Operators and their kernels", overlap: "Copies and communication beside computing", phase: "Prefill and decode", process: "Processes",
  queue: "Queue length", range: "Ranges", rank: "Ranks", recording: "Recordings of this run", request: "Requests",
  roofline: "Operators and the roof of the device", run: "Runs side by side", sequences: "Sequences of kernels", stack: "Hottest stacks",
  stalls: "Stalls of warps", step: "Steps", stragglers: "Stragglers", temporal: "Temporal breakdown", thread: "Threads", token: "Tokens",
  "unified-memory": "Unified memory", wait: "Waiting", window: "Windows",
};

export const nameOf = (by: string): string => NAMES[by] ?? by.charAt(0).toUpperCase() + by.slice(1).replace(/-/g, " ");
