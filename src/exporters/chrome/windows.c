/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chrome/windows.h"

#include <stdio.h>

#include "analyses/selection.h"
#include "base/json.h"
#include "exporters/chrome/ranges.h"

/* Above every pid and tid (2^22), and below the numbers of devices and ranges (2^30). */
#define WINDOWS_PROCESS  ((1u << 30) - 1)
#define FIRST_STEPS_LINE (1u << 29)

struct place {
	uint64_t process;
	uint32_t line;
};

static void begin_event(struct json_writer *json, const char *phase, const char *name)
{
	/* A capture may have windows and nothing in them. */
	if (json->out->data[json->out->length - 1] != '[')
		strbuf_add_bytes(json->out, ",\n", 2);
	json_begin_object(json);
	json_member_text(json, "ph", phase);
	json_member_text(json, "name", name);
}

static void end_event(struct json_writer *json, const struct place *place)
{
	json_member_u64(json, "pid", place->process);
	json_member_u64(json, "tid", place->line);
	json_end_object(json);
}

static void name_place(
	struct strbuf *out, const char *event, const char *name, const struct place *place)
{
	struct json_writer json = {.out = out};

	begin_event(&json, "M", event);
	json_key(&json, "args");
	json_begin_object(&json);
	json_member_text(&json, "name", name);
	json_end_object(&json);
	end_event(&json, place);
}

static void add_window(struct strbuf *out, const struct model_window *window,
	const struct chrome_clock *clock, const struct place *place)
{
	struct json_writer json = {.out = out};
	char name[32];

	snprintf(name, sizeof(name), "window %u", window->number);
	begin_event(&json, "X", *window->label ? window->label : name);
	json_key(&json, "args");
	json_begin_object(&json);
	json_member_u64(&json, "number", window->number);
	json_member_text(&json, "opened_by", capture_window_trigger_name(window->opened_by));
	json_member_text(&json, "closed_by", capture_window_reason_name(window->closed_by));
	json_end_object(&json);
	chrome_add_span(out, clock, window->begin_ns, window->end_ns);
	end_event(&json, place);
}

/* Called what tools for the PyTorch profiler's traces look for. */
static void add_step(struct strbuf *out, const struct model_step *step,
	const struct chrome_clock *clock, const struct place *place)
{
	struct json_writer json = {.out = out};
	char name[48];

	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	begin_event(&json, "X", name);
	json_member_text(&json, "cat", "user_annotation");
	json_key(&json, "args");
	json_begin_object(&json);
	json_member_text(&json, "name", step->name);
	json_member_u64(&json, "number", step->number);
	if (step->is_cut)
		json_member_text(&json, "end", "cut off");
	json_end_object(&json);
	chrome_add_span(out, clock, step->start_ns, step->end_ns);
	end_event(&json, place);
}

int chrome_add_windows(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers)
{
	struct place place = {.process = WINDOWS_PROCESS, .line = 1};

	bool has_windows = !selection_left_out(model, SELECTION_WINDOWS);

	if (has_windows && model->windows.count)
		name_place(out, "process_name", "Windows", &place);
	for (size_t i = 0; has_windows && i < model->windows.count; i++)
		add_window(out, &model->windows.items[i], clock, &place);
	place.line = FIRST_STEPS_LINE;
	for (size_t i = 0; i < model->steps.count; i++) {
		const struct model_step *step = &model->steps.items[i];

		place.process = process_numbers[step->process];
		if (!i || step[-1].process != step->process || step[-1].name != step->name) {
			place.line++;
			name_place(out, "thread_name", "steps", &place);
		}
		add_step(out, step, clock, &place);
	}
	return strbuf_status(out);
}
