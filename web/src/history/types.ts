// SPDX-License-Identifier: Apache-2.0
// The documents of the runs database: schema/runs-*.schema.json. Only what the page reads.
import type { Block, Table } from "../report";

// Columns that are numbers, or not known.
export type Figure =
  | "duration_ns" | "tokens_per_s" | "ttft_p50_ns" | "tpot_p50_ns" | "itl_p50_ns" | "e2e_p50_ns" | "step_p50_ns" | "energy_j" | "average_w"
  | "joules_per_token" | "batch_size" | "context_length" | "parameters" | "gpu_busy_share" | "samples" | "lost_samples";

export interface RunTexts {
  path: string;
  command: string | null;
  commit_id: string | null;
  experiment: string | null;
  notes: string | null;
  model: string | null;
  precision: string | null;
  engine: string | null;
  host: string | null;
}

export type Run = { id: string; time_ns: number | null; added_ns: number; tags: string[] } & RunTexts & Record<Figure, number | null>;

export interface RunList {
  store: string;
  runs: Run[];
  runs_total: number;
}

export interface RunDocument {
  run: Run;
  kept: Record<string, number>;
  sections: { section: string; values: number }[];
}

export interface Comparison {
  runs: Run[];
  best: Record<"fastest" | "most_efficient" | "lowest_energy", string | null>;
  spread: { figure: Figure; minimum: number; maximum: number; factor: number | null; best: string }[];
}

export type AnalysedRun = {
  capture: string;
  model: string | null;
  precision: string | null;
  is_optimal: boolean | null;
  is_knee: boolean | null;
  experts: number | null;
  active_parameters: number | null;
  expert_balance: number | null;
  expert_entropy: number | null;
  expert_load: number | null;
} & Partial<Record<Figure, number | null>>;

export interface Law {
  count: number;
  scale: number | null;
  power: number | null; // null: the runs have one size
  r_squared: number | null;
}

export interface Analyses {
  runs: AnalysedRun[];
  series: { by: Figure | "precision"; figure: Figure; captures: string[]; best: string | null; saturated_at: string | null }[];
  precisions: { capture: string; baseline: string; ratios: Partial<Record<Figure, number | null>> }[];
  mixtures: { capture: string; dense: string; ratios: Partial<Record<Figure, number | null>> }[];
  scaling: Record<string, Law | null>;
  prediction: { figure: Figure; value: number; low: number; high: number } | null;
}

export interface Step {
  before: number;
  after: number;
  change_share: number;
  verdict: "worse" | "better" | "same" | "noise" | "unclear";
  figure: Figure;
  before_commit: string;
  commit: string;
}

export interface Regressions {
  experiment: string;
  commits: number;
  rows: Step[];
}

export interface Removed {
  is_done: boolean;
  runs: Run[];
}

export interface Stats {
  store: string;
  bytes: number;
  runs: number;
  oldest_ns: number | null;
  newest_ns: number | null;
}

// Any of them as the terminal shows it.
export interface Shown {
  blocks: Block[];
  tables: Table[];
}
