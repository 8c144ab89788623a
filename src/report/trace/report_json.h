/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of traces as JSON: HTA's analyses, each of the view of one index. They append objects
 * to an array that is open. Described in docs/json.md.
 */
#pragma once

#include "analyses/trace_results.h"
#include "base/json.h"

#define TRACE_REPORT_JSON_VERSION 1

struct trace_json_options {
	size_t limit; /* rows of each table; 0: all */
	bool details; /* series and single launches, too */
};

/* Time as a number of nanoseconds. */
void trace_json_ns(struct json_writer *json, const char *key, int64_t ns);
/* Part of a whole; null where the whole is 0. */
void trace_json_share(struct json_writer *json, const char *key, double part, double whole);
/* Null for TRACE_NO_NUMBER. */
void trace_json_number(struct json_writer *json, const char *key, int64_t number);
/* "name" */
void trace_json_name(struct json_writer *json, const struct trace_view *view, uint32_t string);
/* "rank", and "device": null when it is not known, or all. */
void trace_json_place(struct json_writer *json, const struct trace_view *view, uint32_t device);

/* A trace and what is to be known of it: an object. */
void trace_json_trace(struct json_writer *json, const struct trace_view *view);

/* All return 0 or -ENOMEM. */
int trace_json_idle(struct json_writer *json, struct trace_results *results, size_t index,
	const struct trace_json_options *options);
/* All ranks together: the member "summary", null with hta_compatible; and an array. */
int trace_json_summary(struct json_writer *json, struct trace_results *results);
/* The member "cpu_summary", null with device work. */
int trace_json_cpu_summary(struct json_writer *json, struct trace_results *results);
int trace_json_host(struct json_writer *json, struct trace_results *results, size_t limit);
