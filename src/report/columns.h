/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns that several sections have, and what fills them: each macro stands in a list of columns,
 * and the function beside it gives the values of all of them.
 */
#pragma once

#include "analyses/device/communication.h"
#include "analyses/statistics.h"
#include "report/rows.h"
#include "report/section.h"
#include "report/view.h"

/* A device: in the terminal what tells it from the others of the report. */
#define REPORT_DEVICE_COLUMNS                                                                      \
	{.title = "GPU",                                                                           \
		.kind = REPORT_TEXT,                                                               \
		.views = REPORT_ALL_VIEWS,                                                         \
		.join = REPORT_JOIN_NUMBER_OF_RANKS},                                              \
		{.key = "rank", .kind = REPORT_INTEGER, .join = REPORT_JOIN_RANK},                 \
		{.key = "device",                                                                  \
			.kind = REPORT_INTEGER,                                                    \
			.help = "its number; null: not known, or all of them"},                    \
	{                                                                                          \
		.key = "device_name", .kind = REPORT_TEXT                                          \
	}
/* "rank 3", "GPU 0" or "rank 3 GPU 0": what tells the device from the others of the report. */
void columns_name_device(const struct trace_report *report, const struct trace_view *view,
	uint32_t device, struct strbuf *out);
void columns_add_device(struct result *result, const struct trace_report *report,
	const struct trace_view *view, uint32_t device);

/* A stream of a device. */
#define REPORT_STREAM_COLUMNS                                                                      \
	REPORT_DEVICE_COLUMNS,                                                                     \
		{.title = "Stream", .kind = REPORT_TEXT, .views = REPORT_ALL_VIEWS},               \
	{                                                                                          \
		.key = "stream", .kind = REPORT_INTEGER, .join = REPORT_JOIN_KEY                   \
	}
void columns_add_stream(struct result *result, const struct trace_report *report,
	const struct trace_view *view, uint32_t stream);

/* Of rows that are not of a device: view->rank. Shown where there are several. */
#define REPORT_RANK_COLUMN                                                                         \
	{                                                                                          \
		.key = "rank", .title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME,  \
		.views = REPORT_ALL_VIEWS, .join = REPORT_JOIN_RANK                                \
	}

/* A figure that the table of another tool's definitions shows in place of ours. */
#define REPORT_FOREIGN_NUMBER(of_title)                                                            \
	{                                                                                          \
		.title = (of_title), .kind = REPORT_NUMBER, .views = 1U << REPORT_VIEW_FOREIGN     \
	}

/* A frame of a recording: its line and its function. */
#define REPORT_FRAME_COLUMNS(line_title)                                                           \
	{.title = (line_title), .kind = REPORT_TEXT, .is_path = true, .shrinks_to = 14},           \
		{.title = "Function", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 10},     \
		{.key = "function", .kind = REPORT_TEXT}, {.key = "module", .kind = REPORT_TEXT},  \
		{.key = "source_file", .kind = REPORT_TEXT},                                       \
	{                                                                                          \
		.key = "line", .kind = REPORT_INTEGER                                              \
	}
/* "train.py:12", else the frame's module; null for MODEL_NONE. */
void columns_add_line(struct result *result, const struct model *model, uint32_t index);
/* `index` MODEL_NONE: none is known; then `why` stands in place of the line, if it is not NULL. */
void columns_add_frame(
	struct result *result, const struct model *model, uint32_t index, const char *why);

/* "main (/bin/app);step (train.py:12)", from the outermost frame on; null for MODEL_NONE. */
void columns_add_stack(struct result *result, const struct model *model, uint32_t index);

/* Of many values, as an object: {"count": …, "mean": …, …}. */
extern const struct report_shape columns_describe_shape;
void columns_add_describe(struct result *result, const struct trace_describe *describe);

/* Kernels that communicate, by how that is known, as a map. */
extern const struct report_shape columns_communication_shape;
void columns_add_communication(
	struct result *result, const uint64_t counts[COMMUNICATION_EVIDENCE_MAX]);

/* Null for TRACE_NO_NUMBER. */
void columns_add_number(struct result *result, int64_t number);

/* Has any rank device work? If not, a section that is alone says so. */
bool columns_has_works(struct result *result, const struct report_input *input);

/* A column "samples": null in traces of other tools, which have none. */
void columns_add_samples(struct result *result, const struct model *model, uint64_t samples);
/* A column "cpu_time_ns": of samples of running threads; null where their time is not known. */
void columns_add_cpu_time(struct result *result, const struct model *model, uint64_t samples);
/* Null where it is not known. */
void columns_add_rank(struct result *result, const struct model_process *process);
