/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/internal.h"

/* Runs, their tags, and the values of the sections of their reports. */
static const char first[] =
	"CREATE TABLE runs ("
	"number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL, "
	"bytes INTEGER, added_ns INTEGER NOT NULL, time_ns INTEGER, host TEXT, "
	"command TEXT, commit_id TEXT, experiment TEXT, notes TEXT, model TEXT, "
	"precision TEXT, engine TEXT, sonde_version TEXT, architecture TEXT, "
	"kernel_release TEXT, cpu_count INTEGER, exit_status INTEGER, "
	"duration_ns INTEGER, cpu_time_ns INTEGER, cpu_busy_share REAL, "
	"gpu_busy_share REAL, gpu_works INTEGER, samples INTEGER, "
	"lost_samples INTEGER, processes INTEGER, threads INTEGER, steps INTEGER, "
	"step_p50_ns INTEGER, batch_size REAL, context_length REAL, parameters REAL, "
	"active_parameters REAL, experts REAL, kv_cache_bytes REAL, "
	"expert_balance REAL, requests INTEGER, prompt_tokens INTEGER, "
	"output_tokens INTEGER, tokens_per_s REAL, ttft_p50_ns INTEGER, "
	"ttft_p99_ns INTEGER, tpot_p50_ns INTEGER, itl_p50_ns INTEGER, "
	"itl_p99_ns INTEGER, e2e_p50_ns INTEGER, e2e_p99_ns INTEGER, "
	"measured_j REAL, energy_j REAL, uncertainty_j REAL, energy_reason TEXT, "
	"average_w REAL, peak_w REAL, prefill_j REAL, decode_j REAL, "
	"joules_per_token REAL, tokens_per_j REAL, edp_js REAL, "
	"edp_per_token_js REAL, prefill_edp_js REAL, decode_edp_js REAL, "
	"price_per_kwh REAL, co2_g_per_kwh REAL"
	") STRICT;"
	"CREATE TABLE tags (run INTEGER NOT NULL REFERENCES runs (number) ON DELETE "
	"CASCADE, tag TEXT NOT NULL, PRIMARY KEY (tag, run)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX tags_of_run ON tags (run);"
	"CREATE TABLE figure_names (name INTEGER PRIMARY KEY, section TEXT NOT NULL, "
	"table_name TEXT NOT NULL, column_name TEXT NOT NULL, kind TEXT NOT NULL, "
	"UNIQUE (section, table_name, column_name)) STRICT;"
	"CREATE TABLE figures (run INTEGER NOT NULL REFERENCES runs (number) ON "
	"DELETE CASCADE, name INTEGER NOT NULL REFERENCES figure_names (name), "
	"row_number INTEGER NOT NULL, integer_value INTEGER, number_value REAL, "
	"text_value TEXT, PRIMARY KEY (run, name, row_number)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX runs_by_time ON runs (time_ns);";

/* Requests, tokens, layers and power in tables of their own. */
static const char second[] =
	"CREATE TABLE rails (run INTEGER NOT NULL REFERENCES runs (number) ON DELETE "
	"CASCADE, rail INTEGER NOT NULL, name TEXT, part TEXT, device TEXT, host "
	"TEXT, source TEXT, quality TEXT, parent INTEGER, idle_w REAL, limit_w REAL, "
	"measured_j REAL, uncertainty_j REAL, PRIMARY KEY (run, rail)) STRICT, "
	"WITHOUT ROWID;"
	"CREATE TABLE power (run INTEGER NOT NULL REFERENCES runs (number) ON DELETE "
	"CASCADE, rail INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER "
	"NOT NULL, energy_j REAL, gap TEXT, PRIMARY KEY (run, rail, begin_ns)) "
	"STRICT, WITHOUT ROWID;"
	"CREATE TABLE requests (run INTEGER NOT NULL REFERENCES runs (number) ON "
	"DELETE CASCADE, request INTEGER NOT NULL, name TEXT, pid INTEGER, arrival_ns "
	"INTEGER, prefill_ns INTEGER, first_ns INTEGER, last_ns INTEGER, "
	"prompt_tokens INTEGER, cached_tokens INTEGER, output_tokens INTEGER, "
	"batch_size INTEGER, preemptions INTEGER, end_reason TEXT, energy_j REAL, "
	"uncertainty_j REAL, is_allocated INTEGER, PRIMARY KEY (run, request)) "
	"STRICT, WITHOUT ROWID;"
	"CREATE TABLE tokens (run INTEGER NOT NULL REFERENCES runs (number) ON DELETE "
	"CASCADE, request INTEGER NOT NULL, chunk INTEGER NOT NULL, time_ns INTEGER, "
	"gap_ns INTEGER, PRIMARY KEY (run, request, chunk)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE layers (run INTEGER NOT NULL REFERENCES runs (number) ON DELETE "
	"CASCADE, row_number INTEGER NOT NULL, layer INTEGER, role TEXT, pid INTEGER, "
	"is_rest INTEGER, calls INTEGER, total_ns INTEGER, own_ns INTEGER, samples "
	"INTEGER, device_busy_ns INTEGER, energy_j REAL, uncertainty_j REAL, PRIMARY "
	"KEY (run, row_number)) STRICT, WITHOUT ROWID;";

/* What lists are filtered and sorted by. */
static const char third[] = "CREATE INDEX runs_by_model ON runs (model, time_ns);"
			    "CREATE INDEX runs_by_experiment ON runs (experiment, time_ns);"
			    "CREATE INDEX runs_by_engine ON runs (engine, time_ns);"
			    "CREATE INDEX runs_by_duration ON runs (duration_ns);"
			    "CREATE INDEX runs_by_energy ON runs (energy_j);"
			    "CREATE INDEX runs_by_joules_per_token ON runs (joules_per_token);"
			    "CREATE INDEX runs_by_tokens_per_s ON runs (tokens_per_s);"
			    "CREATE INDEX runs_by_added ON runs (added_ns);";

static const char fourth[] = "ALTER TABLE runs ADD COLUMN expert_entropy REAL;"
			     "ALTER TABLE runs ADD COLUMN expert_load REAL;";

const char *const sqlite_migrations[STORE_VERSION] = {first, second, third, fourth};
