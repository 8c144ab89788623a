/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the runs database and their columns, of every backend. Reading, writing, lists,
 * export and import go by these; a backend says how its own are made (sqlite/migrations.c).
 *
 * A new column comes last in its table and with a migration; docs/runs.md lists them. Times "_ns"
 * of a run are nanoseconds since its recording began, but for time_ns and added_ns, which are Unix
 * time.
 */
#pragma once

#include "report/shape.h"
#include "store/value.h"

#define STORE_VERSION 4 /* of the tables: the number of migrations */

struct store_column {
	const char *name;
	enum store_type type;
	enum report_kind kind; /* how it reads */
	const char *title;     /* in lists; NULL: its name */
};

struct store_table {
	const char *name;
	const struct store_column *columns;
	size_t count;
	size_t key_count; /* the first columns, by which a row is the only one */
};

/* In the order in which their rows can be written: each may refer to those before. */
enum store_table_id {
	STORE_RUNS,
	STORE_TAGS,
	STORE_FIGURE_NAMES, /* of figures; not of a run */
	STORE_FIGURES,      /* every value of every section of the report */
	STORE_RAILS,
	STORE_POWER,
	STORE_REQUESTS,
	STORE_TOKENS,
	STORE_LAYERS,
	STORE_TABLE_MAX,
};

extern const struct store_table store_tables[STORE_TABLE_MAX];

/* X(id, name, type, kind, title) */
#define STORE_RUN_COLUMNS(X)                                                                       \
	X(NUMBER, "number", INTEGER, INTEGER, NULL)                                                \
	X(ID, "id", TEXT, TEXT, NULL)                                                              \
	X(PATH, "path", TEXT, TEXT, NULL)                                                          \
	X(BYTES, "bytes", INTEGER, BYTES, NULL)                                                    \
	X(ADDED, "added_ns", INTEGER, NS, NULL)                                                    \
	X(TIME, "time_ns", INTEGER, NS, NULL)                                                      \
	X(HOST, "host", TEXT, TEXT, NULL)                                                          \
	X(COMMAND, "command", TEXT, TEXT, NULL)                                                    \
	X(COMMIT, "commit_id", TEXT, TEXT, NULL)                                                   \
	X(EXPERIMENT, "experiment", TEXT, TEXT, NULL)                                              \
	X(NOTES, "notes", TEXT, TEXT, NULL)                                                        \
	X(MODEL, "model", TEXT, TEXT, NULL)                                                        \
	X(PRECISION, "precision", TEXT, TEXT, NULL)                                                \
	X(ENGINE, "engine", TEXT, TEXT, NULL)                                                      \
	X(SONDE_VERSION, "sonde_version", TEXT, TEXT, NULL)                                        \
	X(ARCHITECTURE, "architecture", TEXT, TEXT, NULL)                                          \
	X(KERNEL_RELEASE, "kernel_release", TEXT, TEXT, NULL)                                      \
	X(CPU_COUNT, "cpu_count", INTEGER, COUNT, NULL)                                            \
	X(EXIT_STATUS, "exit_status", INTEGER, INTEGER, NULL)                                      \
	X(DURATION, "duration_ns", INTEGER, NS, "Duration")                                        \
	X(CPU_TIME, "cpu_time_ns", INTEGER, NS, NULL)                                              \
	X(CPU_BUSY, "cpu_busy_share", NUMBER, SHARE, NULL)                                         \
	X(GPU_BUSY, "gpu_busy_share", NUMBER, SHARE, "GPU busy")                                   \
	X(GPU_WORKS, "gpu_works", INTEGER, COUNT, NULL)                                            \
	X(SAMPLES, "samples", INTEGER, COUNT, NULL)                                                \
	X(LOST, "lost_samples", INTEGER, COUNT, NULL)                                              \
	X(PROCESSES, "processes", INTEGER, COUNT, NULL)                                            \
	X(THREADS, "threads", INTEGER, COUNT, NULL)                                                \
	X(STEPS, "steps", INTEGER, COUNT, NULL)                                                    \
	X(STEP_P50, "step_p50_ns", INTEGER, NS, NULL)                                              \
	X(BATCH_SIZE, "batch_size", NUMBER, NUMBER, "Batch")                                       \
	X(CONTEXT_LENGTH, "context_length", NUMBER, NUMBER, NULL)                                  \
	X(PARAMETERS, "parameters", NUMBER, NUMBER, NULL)                                          \
	X(ACTIVE_PARAMETERS, "active_parameters", NUMBER, NUMBER, NULL)                            \
	X(EXPERTS, "experts", NUMBER, NUMBER, NULL)                                                \
	X(KV_CACHE, "kv_cache_bytes", NUMBER, NUMBER, NULL)                                        \
	X(EXPERT_BALANCE, "expert_balance", NUMBER, NUMBER, NULL)                                  \
	X(REQUESTS, "requests", INTEGER, COUNT, NULL)                                              \
	X(PROMPT_TOKENS, "prompt_tokens", INTEGER, COUNT, NULL)                                    \
	X(OUTPUT_TOKENS, "output_tokens", INTEGER, COUNT, NULL)                                    \
	X(TOKENS_PER_S, "tokens_per_s", NUMBER, NUMBER, "Tokens/s")                                \
	X(TTFT_P50, "ttft_p50_ns", INTEGER, NS, "To first")                                        \
	X(TTFT_P99, "ttft_p99_ns", INTEGER, NS, NULL)                                              \
	X(TPOT_P50, "tpot_p50_ns", INTEGER, NS, "Per token")                                       \
	X(ITL_P50, "itl_p50_ns", INTEGER, NS, NULL)                                                \
	X(ITL_P99, "itl_p99_ns", INTEGER, NS, NULL)                                                \
	X(E2E_P50, "e2e_p50_ns", INTEGER, NS, NULL)                                                \
	X(E2E_P99, "e2e_p99_ns", INTEGER, NS, NULL)                                                \
	X(MEASURED_J, "measured_j", NUMBER, JOULES, NULL)                                          \
	X(ENERGY_J, "energy_j", NUMBER, JOULES, "Energy")                                          \
	X(UNCERTAINTY_J, "uncertainty_j", NUMBER, JOULES, NULL)                                    \
	X(ENERGY_REASON, "energy_reason", TEXT, TEXT, NULL)                                        \
	X(AVERAGE_W, "average_w", NUMBER, WATTS, "Power")                                          \
	X(PEAK_W, "peak_w", NUMBER, WATTS, NULL)                                                   \
	X(PREFILL_J, "prefill_j", NUMBER, JOULES, NULL)                                            \
	X(DECODE_J, "decode_j", NUMBER, JOULES, NULL)                                              \
	X(JOULES_PER_TOKEN, "joules_per_token", NUMBER, NUMBER, "J/token")                         \
	X(TOKENS_PER_J, "tokens_per_j", NUMBER, NUMBER, NULL)                                      \
	X(EDP, "edp_js", NUMBER, NUMBER, NULL)                                                     \
	X(EDP_PER_TOKEN, "edp_per_token_js", NUMBER, NUMBER, NULL)                                 \
	X(PREFILL_EDP, "prefill_edp_js", NUMBER, NUMBER, NULL)                                     \
	X(DECODE_EDP, "decode_edp_js", NUMBER, NUMBER, NULL)                                       \
	X(PRICE, "price_per_kwh", NUMBER, NUMBER, NULL)                                            \
	X(CO2_RATE, "co2_g_per_kwh", NUMBER, NUMBER, NULL)                                         \
	X(EXPERT_ENTROPY, "expert_entropy", NUMBER, NUMBER, NULL)                                  \
	X(EXPERT_LOAD, "expert_load", NUMBER, NUMBER, NULL)

enum store_run_column {
#define STORE_RUN_ENUM(id, name, type, kind, title) STORE_RUN_##id,
	STORE_RUN_COLUMNS(STORE_RUN_ENUM)
#undef STORE_RUN_ENUM
		STORE_RUN_COLUMN_MAX
};

/* The column of that name; NULL: there is none. */
const struct store_column *store_column_find(const struct store_table *table, const char *name);
