/* SPDX-License-Identifier: Apache-2.0 */
#include "load/trace_samples.h"

#include <errno.h>
#include <string.h>

#include "analyses/program/trace_held.h"
#include "analyses/program/trace_programs.h"
#include "base/strbuf.h"

/* What there is to weigh. */
struct content {
	bool has_works, has_threads;
	bool has_bytes;      /* allocations of devices' memory */
	bool has_host_bytes; /* only of the host's */
};

static bool has_rows_of_threads(const struct trace_view *view)
{
	array_foreach (&view->trace->events, event) {
		if (trace_view_is_of_thread(view, event))
			return true;
	}
	return false;
}

static struct content content_of(const struct trace_view *views, size_t count)
{
	struct content content = {0};
	bool only_host = false;

	for (size_t i = 0; i < count; i++) {
		content.has_works |= views[i].works.count != 0;
		content.has_threads |= has_rows_of_threads(&views[i]);
		content.has_bytes |= trace_held_has_any(&views[i], &only_host);
		content.has_host_bytes |= only_host;
	}
	return content;
}

/* "gpu (the time of device work), gpu-idle and …" */
static void list_available(struct strbuf *out, const struct content *content)
{
	const struct {
		bool has;
		const char *weight;
	} weights[] = {
		{content->has_works, "gpu (the time of device work)"},
		{content->has_works, "gpu-idle"},
		{content->has_bytes, "gpu-bytes (memory at the device's peak)"},
		{content->has_threads,
			"wall (how long threads were in operators, calls and annotations)"},
		{content->has_works && content->has_threads, "cpu+gpu"},
	};
	size_t left = 0;

	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		left += weights[i].has;
	strbuf_add(out, left ? "it has " : "it has no operators, calls or annotations, either");
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
		if (weights[i].has)
			strbuf_addf(out, "%s%s", weights[i].weight,
				--left > 1 ? ", "
				: left     ? " and "
					   : "");
	}
}

static const char *why_no_bytes(const struct content *content)
{
	return content->has_host_bytes
		       ? "has allocations of the host's memory, but none of a device's"
		       : "has no allocations of a device's memory (record it with "
			 "profile_memory=True and with_stack=True, or take a snapshot with "
			 "torch.cuda.memory._dump_snapshot())";
}

/* NULL: the traces have it. */
static const char *what_lacks(enum model_weight weight, const struct content *content)
{
	switch (weight) {
	case MODEL_WEIGHT_WAIT:
		return "does not say what of its time a thread waited";
	case MODEL_WEIGHT_ENERGY:
		return "has no energy";
	case MODEL_WEIGHT_GPU:
	case MODEL_WEIGHT_GPU_IDLE:
		return content->has_works ? NULL : "has no work of a device";
	case MODEL_WEIGHT_GPU_BYTES:
		return content->has_bytes ? NULL : why_no_bytes(content);
	case MODEL_WEIGHT_CPU_GPU:
		return content->has_works && content->has_threads ? NULL
								  : "does not have both sides";
	default:
		return content->has_threads ? NULL : "has no operators, calls or annotations";
	}
}

/* The traces' name stands where a recording has its command. */
static int name_model(struct model *model, const char *path)
{
	uint32_t id;
	int r = intern_add(&model->strings, path, strlen(path), &id);

	if (r < 0)
		return r;
	model->session.command_line = intern_get(&model->strings, id);
	return 0;
}

static int fill(struct model *model, const struct trace_view *views, size_t count,
	const struct shown_options *shown, const char *path, struct weight_spans *ret_spans)
{
	enum model_weight weight = shown_weight(shown);
	bool wants_idle = weight == MODEL_WEIGHT_GPU_IDLE;
	bool wants_held = weight == MODEL_WEIGHT_GPU_BYTES;
	const struct trace_programs_options options = {
		.wants_thread_time = !wants_idle && !wants_held && weight != MODEL_WEIGHT_GPU,
		.joins_backward = shown_side(shown) == MODEL_SIDE_MODULES,
		.idle = wants_idle ? ret_spans : NULL,
		.held = wants_held ? ret_spans : NULL,
	};
	int r = trace_programs_fill_stacks(model, views, count, &options);

	if (r < 0)
		return r;
	r = show_as_asked(model, shown);
	return r < 0 ? r : name_model(model, path);
}

int fill_trace_samples(struct model *model, const struct trace_view *views, size_t count,
	struct shown_options *shown, const char *path, struct weight_spans *ret_spans,
	struct errmsg *err)
{
	const struct content content = content_of(views, count);
	const char *lacks = what_lacks(shown_weight(shown), &content);
	_cleanup_strbuf_ struct strbuf available = {0};

	if (lacks) {
		list_available(&available, &content);
		return errmsg_set(err, -ENODATA,
			"--weight %s: %s is another tool's trace, and %s: %s",
			model_weight_to_string(shown_weight(shown)), path, lacks,
			strbuf_cstr(&available));
	}
	if (fill(model, views, count, shown, path, ret_spans) < 0)
		return errmsg_set(
			err, -ENOMEM, "memory ran out while making the stacks of %s", path);
	if (shown_weight(shown) == MODEL_WEIGHT_CPU)
		shown->weight = model_weight_to_string(MODEL_WEIGHT_WALL);
	return 0;
}
