/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the import of logs share: vllm_log.c reads lines and orders events, write.c
 * writes them. Nothing else includes this.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "importers/importer.h"
#include "importers/vllm_log/line.h"
#include "importers/vllm_log/time.h"

struct log_iteration {
	struct vllm_log_iteration what;
	uint32_t pid;
};

struct log_metrics {
	struct vllm_log_metrics what;
	uint32_t pid;
};

struct log_request {
	uint32_t id; /* in `ids` */
	uint32_t pid, lane;
	uint64_t received_ns, added_ns, end_ns; /* 0: the log does not say */
	const char *outcome;
};

struct log_process {
	uint32_t pid;
	uint64_t busy_until_ns; /* the end of its last iteration */
};

enum log_event_kind {
	EVENT_ITERATION_BEGIN,
	EVENT_ITERATION_END,
	EVENT_METRICS,
	EVENT_REQUEST_BEGIN,
	EVENT_QUEUED_BEGIN,
	EVENT_QUEUED_END,
	EVENT_REQUEST_END,
	EVENT_REQUEST_MARK, /* its end is not known */
};

struct log_event {
	uint64_t time_ns;
	uint32_t sequence; /* decides between equal times */
	enum log_event_kind kind;
	size_t index;
};

struct log_import {
	const struct import_input *input;
	struct capture_writer *writer;
	struct import_result *result;
	struct vllm_log_clock clock;
	struct intern ids;
	struct map_u64 latest; /* id → index of its last request */
	ARRAY_OF(struct log_iteration) iterations;
	ARRAY_OF(struct log_metrics) metrics;
	ARRAY_OF(struct log_request) requests;
	ARRAY_OF(struct log_event) events;
	ARRAY_OF(struct log_process) processes;
	ARRAY_OF(uint64_t) lanes; /* when each is free again */
	uint64_t lines_without_time, processes_left_out, ends_without_begin;
	bool has_coarse_time;
};

/* Sorts the events, of which there is one at least. Returns 0 or a negative errno. */
int vllm_log_write_events(struct log_import *import);
