/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More of the report of traces as JSON: critical paths, stragglers, sequences of kernels, memory.
 * Described in docs/json.md.
 */
#pragma once

#include "analyses/memory/memory.h"
#include "analyses/path/critical_path.h"
#include "analyses/program/sequences.h"
#include "analyses/program/trace_stragglers.h"
#include "base/json.h"

/* One rank's: an object. `details`: every step of each path, too. */
void trace_json_critical_paths(struct json_writer *json, const struct trace_view *view,
	const struct critical_paths *paths, size_t limit, bool details);
void trace_json_stragglers(struct json_writer *json, const struct trace_stragglers *stragglers);
void trace_json_sequences(struct json_writer *json, const struct trace_view *view,
	const struct trace_sequences *sequences, size_t limit);
/* `details`: every point of the timelines, too. */
void trace_json_memory(struct json_writer *json, const struct trace_view *view,
	const struct trace_memory_use *use, size_t limit, bool details);
