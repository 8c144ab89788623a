/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a recording, and the time that was recorded: without windows that is all of it,
 * else what lies in them. What divides by time, or looks at what follows on what, asks here.
 */
#pragma once

#include "base/json_reader.h"
#include "model/model.h"

#define WINDOW_CHOICE_RANGES 32

/* Which windows count: of --window. Empty: all. */
struct window_choice {
	struct {
		uint32_t first, last;
	} ranges[WINDOW_CHOICE_RANGES];
	uint32_t count;
};

/* "3", "1,4-6". Returns 0, or -EINVAL with a sentence. */
int window_choice_parse(const char *text, struct window_choice *ret_choice, struct errmsg *err);
bool window_choice_has(const struct window_choice *choice, uint32_t number);

/* Sets what opened or closed it, where an export's argument "opened_by" or "closed_by" has a name
 * of those; leaves the others as they are. */
void model_window_take_name(
	struct model_window *window, const struct json_text *key, const struct json_text *text);

struct trace;

/* The index of the window that a moment lies in; MODEL_NONE: of none. Windows are by begin, and
 * none begins before the one before it has ended. */
uint32_t windows_at(const struct model_window *windows, size_t count, uint64_t time_ns);
uint32_t model_window_at(const struct model *model, uint64_t time_ns);
/* How much of [begin_ns, end_ns) was recorded. */
uint64_t model_recorded_ns(const struct model *model, uint64_t begin_ns, uint64_t end_ns);
/* Was all recorded that lies between two moments? Time between two windows was not. */
bool model_is_continuous(const struct model *model, uint64_t begin_ns, uint64_t end_ns);

/* The same of a trace's times: all that is not of a recording with windows was recorded. */
int64_t trace_recorded_ns(const struct trace *trace, int64_t begin_ns, int64_t end_ns);
bool trace_is_continuous(const struct trace *trace, int64_t begin_ns, int64_t end_ns);
