/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of a vLLM log: "LEVEL MM-DD HH:MM:SS [FILE:LINE] MESSAGE", in newer releases behind
 * "(PROCESS pid=PID) ", maybe coloured, maybe with a year and a fraction of a second where the user
 * changed the format. A message counts only where it begins: prompts are logged, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vllm_log_kind {
	VLLM_LOG_OTHER,
	VLLM_LOG_ITERATION,
	VLLM_LOG_METRICS,
	VLLM_LOG_RECEIVED,
	VLLM_LOG_ADDED,
	VLLM_LOG_FINISHED,
	VLLM_LOG_ABORTED, /* `request` may name several, with commas between them */
	VLLM_LOG_FAILED,
};

/* As it is written: a year may be missing. */
struct vllm_log_time {
	int year; /* 0: not known */
	int month, day, hour, minute, second;
	uint32_t nanosecond;
	bool has_fraction;
};

struct vllm_log_text {
	const char *bytes; /* in the line */
	size_t length;
};

struct vllm_log_iteration {
	uint64_t number, context_requests, context_tokens, generation_requests, generation_tokens;
	uint64_t elapsed_ns;
};

/* NaN: not in the line. */
struct vllm_log_metrics {
	double prompt_tokens_per_s, generation_tokens_per_s;
	double running_requests, waiting_requests, preemptions;
	double kv_cache_percent, prefix_cache_hit_percent;
};

struct vllm_log_line {
	struct vllm_log_time time;
	struct vllm_log_text process; /* "EngineCore_DP0"; empty: not known */
	uint32_t pid;                 /* 0: not known */
	enum vllm_log_kind kind;
	struct vllm_log_text request;
	union {
		struct vllm_log_iteration iteration;
		struct vllm_log_metrics metrics;
	};
};

/* False for a line without a time, such as the second of a message. */
bool vllm_log_parse(const char *line, size_t length, struct vllm_log_line *ret_line);
