/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what happened to pages of unified memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/trace_capture_state.h"
#include "model/unified.h"

/* Members of an object, without its braces. */
static int add_arguments(
	struct capture_rows *rows, const struct model_unified_memory *item, struct trace_op *detail)
{
	const struct capture_unified_memory *unified = &item->unified;
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_writer json = {.out = &text};
	char address[24];

	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)unified->address);
	json_begin_object(&json);
	json_member_text(&json, "address", address);
	if (model_unified_has_bytes(unified->type))
		json_member_u64(&json, "bytes", unified->value);
	if (unified->type == WIRE_UNIFIED_DEVICE_FAULT)
		json_member_u64(&json, "fault groups", unified->value);
	if (model_unified_cause(unified))
		json_member_text(&json, "cause", model_unified_cause(unified));
	if (*item->from)
		json_member_text(&json, "from", item->from);
	if (*item->to)
		json_member_text(&json, "to", item->to);
	json_end_object(&json);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	text.data[text.length - 1] = '\0';
	return capture_rows_text(rows->trace, text.data + 1, &detail->others);
}

static int add_row(struct capture_rows *rows, const struct model_unified_memory *item)
{
	struct trace_event event = {
		.start_ns = (int64_t)(item->start_ns - rows->origin_ns),
		.duration_ns = item->end_ns > item->start_ns
				       ? (int64_t)(item->end_ns - item->start_ns)
				       : TRACE_NO_DURATION,
		.external_id = TRACE_NO_ID,
		.category = TRACE_OTHER,
		.detail = (uint32_t)rows->trace->ops.count,
	};
	struct trace_op detail = trace_no_op;
	int r = capture_rows_text(rows->trace, TRACE_UNIFIED_CATEGORY, &event.category_name);

	r = r
		    ?: capture_rows_text(
			       rows->trace, model_unified_title(item->unified.type), &event.name);
	r = r ?: add_arguments(rows, item, &detail);
	r = r ?: capture_rows_unified_track(rows, item, &event.track);
	r = r ?: array_append(&rows->trace->ops, detail);
	return r ?: capture_rows_add(rows, &event);
}

int capture_rows_add_unified(struct capture_rows *rows)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rows->model->unified_memory.count; i++)
		r = add_row(rows, &rows->model->unified_memory.items[i]);
	return r;
}
