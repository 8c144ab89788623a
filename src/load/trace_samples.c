/* SPDX-License-Identifier: Apache-2.0 */
#include "load/trace_samples.h"

#include <errno.h>
#include <string.h>

#include "analyses/program/trace_programs.h"

/* What there is to weigh. */
struct content {
	bool has_works, has_threads;
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

	for (size_t i = 0; i < count; i++) {
		content.has_works |= views[i].works.count != 0;
		content.has_threads |= has_rows_of_threads(&views[i]);
	}
	return content;
}

static const char *available(const struct content *content)
{
	if (content->has_works && content->has_threads)
		return "it has gpu (the time of device work), gpu-idle, wall (how long threads "
		       "were in operators, calls and annotations) and cpu+gpu";
	if (content->has_works)
		return "it has gpu (the time of device work) and gpu-idle";
	if (content->has_threads)
		return "it has wall (how long threads were in operators, calls and annotations)";
	return "it has no operators, calls or annotations, either";
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
	const struct shown_options *shown, const char *path, struct idle_spans *ret_idle)
{
	enum model_weight weight = shown_weight(shown);
	bool wants_idle = weight == MODEL_WEIGHT_GPU_IDLE;
	const struct trace_programs_options options = {
		.wants_thread_time = !wants_idle && weight != MODEL_WEIGHT_GPU,
		.joins_backward = shown_side(shown) == MODEL_SIDE_MODULES,
		.idle = wants_idle ? ret_idle : NULL,
	};
	int r = trace_programs_fill_stacks(model, views, count, &options);

	if (r < 0)
		return r;
	r = show_as_asked(model, shown);
	return r < 0 ? r : name_model(model, path);
}

int fill_trace_samples(struct model *model, const struct trace_view *views, size_t count,
	struct shown_options *shown, const char *path, struct idle_spans *ret_idle,
	struct errmsg *err)
{
	const struct content content = content_of(views, count);
	const char *lacks = what_lacks(shown_weight(shown), &content);

	if (lacks)
		return errmsg_set(err, -ENODATA,
			"--weight %s: %s is another tool's trace, and %s: %s",
			model_weight_to_string(shown_weight(shown)), path, lacks,
			available(&content));
	if (fill(model, views, count, shown, path, ret_idle) < 0)
		return errmsg_set(
			err, -ENOMEM, "memory ran out while making the stacks of %s", path);
	if (shown_weight(shown) == MODEL_WEIGHT_CPU)
		shown->weight = model_weight_to_string(MODEL_WEIGHT_WALL);
	return 0;
}
