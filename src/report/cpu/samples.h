/* SPDX-License-Identifier: Apache-2.0 */
/* What samples weigh, and the rows of a breakdown of them: for the report, sonde top and diff. */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "report/section.h"

/*
 * Share, time, count, energy and bytes of samples, as self or as total. The terminal shows the one
 * of time, count, energy and bytes that is known.
 */
#define REPORT_WEIGHT_COLUMNS(name, share, time, count, energy, bytes)                             \
	{.key = name "_share", .title = (share), .kind = REPORT_SHARE},                            \
		{.key = name "_time_ns",                                                           \
			.title = (time),                                                           \
			.kind = REPORT_NS,                                                         \
			.hide = REPORT_HIDE_UNKNOWN,                                               \
			.help = "null where samples have no time"},                                \
		{.key = name "_samples",                                                           \
			.kind = REPORT_COUNT,                                                      \
			.help = "null with a --weight that is not counted in samples"},            \
		{.title = (count), .kind = REPORT_COUNT, .hide = REPORT_HIDE_UNKNOWN},             \
		{.key = name "_energy_uj",                                                         \
			.kind = REPORT_COUNT,                                                      \
			.help = "microjoules, with --weight energy; else null"},                   \
		{.title = (energy), .kind = REPORT_JOULES, .hide = REPORT_HIDE_UNKNOWN},           \
		{.key = name "_bytes",                                                             \
			.title = (bytes),                                                          \
			.kind = REPORT_BYTES,                                                      \
			.hide = REPORT_HIDE_UNKNOWN,                                               \
			.help = "with --weight gpu-bytes; else null"},                             \
		{.key = name "_energy_uncertainty_uj",                                             \
			.kind = REPORT_COUNT,                                                      \
			.help = "one standard uncertainty, in microjoules; null: not known"},      \
		{.title = "\xc2\xb1", .kind = REPORT_JOULES, .hide = REPORT_HIDE_UNKNOWN},         \
	{                                                                                          \
		.key = name "_energy_uncertainty_reason", .kind = REPORT_TEXT,                     \
		.help = "why it is not known"                                                      \
	}
#define REPORT_SELF_COLUMNS                                                                        \
	REPORT_WEIGHT_COLUMNS(                                                                     \
		"self", "Self", "Self time", "Self count", "Self energy", "Self bytes")
#define REPORT_TOTAL_COLUMNS                                                                       \
	REPORT_WEIGHT_COLUMNS(                                                                     \
		"total", "Total", "Total time", "Total count", "Total energy", "Total bytes")
/* The same in JSON only. */
#define REPORT_WEIGHT_KEYS(name)                                                                   \
	{.key = name "_share", .kind = REPORT_SHARE}, {.key = name "_time_ns", .kind = REPORT_NS}, \
		{.key = name "_samples", .kind = REPORT_COUNT}, {.kind = REPORT_COUNT},            \
		{.key = name "_energy_uj", .kind = REPORT_COUNT}, {.kind = REPORT_JOULES},         \
		{.key = name "_bytes", .kind = REPORT_BYTES},                                      \
		{.key = name "_energy_uncertainty_uj", .kind = REPORT_COUNT},                      \
		{.kind = REPORT_JOULES},                                                           \
	{                                                                                          \
		.key = name "_energy_uncertainty_reason", .kind = REPORT_TEXT                      \
	}
#define REPORT_WEIGHT_COUNT 10
void report_add_weight(struct result *result, const struct model *model, uint64_t all,
	uint64_t samples, struct energy_uncertainty uncertainty);

/* A heading, with what the samples are weighed by: "Threads (CPU time)". */
void report_weight_heading(
	struct result *result, const struct report_view *view, const char *heading);

/* What a thread waits for, for a person: "a lock or condition". Not of WIRE_WAIT_NONE. */
const char *report_wait_meaning(enum wire_wait reason);

/* The column of a dimension's rows, and rows of it. Returns the table, for result_show(). */
const struct report_column *report_breakdown_column(enum breakdown_by by);
uint32_t report_add_breakdown(struct result *result, const struct model *model,
	const struct breakdown *breakdown, size_t first, size_t count);
