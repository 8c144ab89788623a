/* SPDX-License-Identifier: Apache-2.0 */
/* How work reaches devices, and what would help, as the report shows it. */
#include <assert.h>

#include "analyses/cpu/charge.h"
#include "analyses/device/advice.h"
#include "model/format.h"
#include "report/trace/trace.h"
#include "report/view.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* With one device its name stands above. */
static void add_name(struct strbuf *out, const struct device_overlap *overlap, uint32_t device)
{
	const char *name = overlap->devices.items[device].name;

	if (overlap->devices.count > 1)
		strbuf_addf(out, "%s: ", *name ? name : "unknown device");
}

/* What would be 0.0 % is not worth its place. */
static bool is_worth_showing(uint64_t part_ns, uint64_t whole_ns)
{
	return percent(part_ns, whole_ns) >= 0.05;
}

static void add_part(struct strbuf *out, const char *what, uint64_t part_ns, uint64_t whole_ns)
{
	if (is_worth_showing(part_ns, whole_ns))
		strbuf_addf(out, "%s %.1f %%, ", what, percent(part_ns, whole_ns));
}

static void add_hidden(struct strbuf *out, const struct device_overlap_device *device,
	enum device_activity activity, const char *what)
{
	uint64_t all_ns = device_overlap_total_ns(device, activity);

	if (is_worth_showing(all_ns, device->span_ns))
		strbuf_addf(out, "; %.1f %% of the %s ran beside computing",
			percent(device_overlap_hidden_ns(device, activity), all_ns), what);
}

/* "From its first work to its last, 1.2 s: computing 60.0 %, copying 5.0 %, idle 35.0 %". */
static void add_overlap(
	const struct report_view *view, const struct device_overlap *overlap, uint32_t index)
{
	const struct device_overlap_device *device = &overlap->devices.items[index];
	uint64_t copy_ns = device_overlap_total_ns(device, DEVICE_COPY);
	_cleanup_strbuf_ struct strbuf text = {0};

	add_name(&text, overlap, index);
	strbuf_add(&text, "Of ");
	format_duration(&text, device->span_ns);
	strbuf_add(&text, " from the first work to the last: ");
	add_part(&text, "computing", device_overlap_total_ns(device, DEVICE_COMPUTE),
		device->span_ns);
	add_part(&text, "only copying", copy_ns - device_overlap_hidden_ns(device, DEVICE_COPY),
		device->span_ns);
	add_part(
		&text, "only communicating", device->by_set[DEVICE_COMMUNICATION], device->span_ns);
	strbuf_addf(&text, "idle %.1f %%", percent(device->by_set[0], device->span_ns));
	add_hidden(&text, device, DEVICE_COPY, "copying");
	add_hidden(&text, device, DEVICE_COMMUNICATION, "communication");
	strbuf_add_char(&text, '.');
	if (device_overlap_total_ns(device, DEVICE_COMMUNICATION)) {
		strbuf_add(&text, " Kernels that communicate are known: ");
		communication_add_counts(&text, device->communication_works);
		strbuf_add(&text, ". --comm-kernels adds names.");
	}
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* "5.1 µs (median; 9 of 10 within 7.0 µs, 99 of 100 within 20 µs)". */
static void add_distribution(struct strbuf *out, const struct device_distribution *times)
{
	format_duration(out, times->median_ns);
	strbuf_add(out, " (median; 90 % within ");
	format_duration(out, times->p90_ns);
	strbuf_add(out, ", 99 % within ");
	format_duration(out, times->p99_ns);
	strbuf_add_char(out, ')');
}

static void add_launches(const struct report_view *view,
	const struct device_launches_device *device, const struct strbuf *name)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (device->kernel_launches) {
		strbuf_addf(&text, "%sA launch takes ", strbuf_cstr(name));
		add_distribution(&text, &device->call);
		if (device->latency.count) {
			strbuf_add(&text, "; on an idle queue the kernel starts ");
			add_distribution(&text, &device->latency);
			strbuf_add(&text, " after the call began");
		}
		strbuf_add_char(&text, '.');
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
	if (!device->span_ns || !device->launches)
		return;
	strbuf_clear(&text);
	strbuf_addf(&text,
		"%sQueue depth: %.1f launches waited for the device on average, at most ",
		strbuf_cstr(name), device_launches_mean_depth(device));
	format_count(&text, device->depth_max);
	strbuf_addf(&text, "; none for %.1f %% of the time.",
		percent(device->empty_ns, device->span_ns));
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* Idle time of one call that blocks. */
struct block {
	int64_t time_ns;
	uint32_t stack;
};

static struct block longest_block(
	const struct trace_idle *idle, const struct trace_idle_place *place)
{
	struct block longest = {.stack = MODEL_NONE};
	uint32_t call = MODEL_NONE;
	int64_t time_ns = 0;

	for (uint32_t i = place->first; i < place->first + place->count; i++) {
		const struct trace_idle_gap *gap = &idle->gaps.items[i];

		time_ns = gap->call == call ? time_ns : 0;
		time_ns += gap->end_ns - gap->start_ns;
		call = gap->call;
		if (call != MODEL_NONE && time_ns > longest.time_ns)
			longest = (struct block){.time_ns = time_ns, .stack = gap->stack};
	}
	return longest;
}

/* "; the longest, 463 ms, is load at feed.py:15". */
static void add_longest_block(
	const struct report_view *view, const struct block *block, struct strbuf *text)
{
	uint32_t index = charge_frame(view->model, block->stack);
	const struct model_frame *frame;

	strbuf_add(text, "; the longest, ");
	format_duration(text, (uint64_t)block->time_ns);
	if (index == MODEL_NONE) {
		strbuf_add(text, ", has no stack");
		return;
	}
	frame = &view->model->frames.items[index];
	strbuf_add(text, ", is in ");
	model_frame_name(view->model, index, text);
	if (frame->line)
		strbuf_addf(text, " (%s:%u)", frame->source_file, frame->line);
}

static void add_blocking(const struct report_view *view,
	const struct device_overlap_device *overlap, const struct trace_idle *idle,
	const struct trace_idle_place *place, struct strbuf *text)
{
	const struct block block = longest_block(idle, place);

	strbuf_addf(text,
		"Calls that block keep it idle for %.0f %% of the time: synchronisations, and "
		"copies that are waited for",
		percent((uint64_t)place->by_cause_ns[TRACE_IDLE_BLOCKED], overlap->span_ns));
	add_longest_block(view, &block, text);
	strbuf_add(text, ". Copy from pinned memory without waiting, and read results later or "
			 "less often.");
}

static void add_saving(struct strbuf *text, uint64_t saves_ns)
{
	strbuf_add(text, " At most ");
	format_duration(text, saves_ns);
	strbuf_add(text, " can be saved so.");
}

/* NULL: not known, since filters left something out. */
static const struct trace_idle *idle_of(
	const struct report_view *view, const struct trace_report *timeline)
{
	return timeline && !view->model->is_narrowed ? trace_results_idle(timeline->results, 0)
						     : NULL;
}

static void add_advice(const struct report_view *view, const struct device_overlap_device *overlap,
	const struct device_launches_device *launches, const struct trace_report *timeline,
	const struct strbuf *name)
{
	const struct trace_idle *idle = idle_of(view, timeline);
	const struct trace_idle_place *place =
		idle ? trace_idle_of_device(idle, timeline->views, overlap->name) : NULL;
	enum device_advice advice = device_advice(overlap, launches, place);
	uint64_t saves_ns = overlap->by_set[0];
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, strbuf_cstr(name));
	switch (advice) {
	case DEVICE_ADVICE_BLOCKING:
		assert(place);
		saves_ns = (uint64_t)place->by_cause_ns[TRACE_IDLE_BLOCKED];
		add_blocking(view, overlap, idle, place, &text);
		break;
	case DEVICE_ADVICE_LAUNCH_BOUND:
		strbuf_addf(&text,
			"Launch-bound: %.0f %% of the kernels are shorter than their launch, and "
			"the device idles for the next one: fuse kernels, give each more work, or "
			"launch them together as a graph.",
			percent(launches->short_kernels, launches->kernel_launches));
		break;
	case DEVICE_ADVICE_HOST_BOUND:
		strbuf_addf(&text,
			"It waits for the program for %.0f %% of the time: \"Why devices were "
			"idle\" says for which lines.",
			percent(overlap->by_set[0], overlap->span_ns));
		break;
	case DEVICE_ADVICE_QUEUED:
		strbuf_addf(&text,
			"It is idle for %.0f %% of the time although work waits: the driver takes "
			"that long between kernels; give each more work, or hand it over earlier "
			"(flush).",
			percent(overlap->by_set[0], overlap->span_ns));
		break;
	case DEVICE_ADVICE_COPIES:
		saves_ns = overlap->by_set[DEVICE_COPY];
		strbuf_addf(&text,
			"It only copies for %.0f %% of the time: copy less, or on a second queue "
			"while it computes.",
			percent(overlap->by_set[DEVICE_COPY], overlap->span_ns));
		break;
	case DEVICE_ADVICE_COMMUNICATION:
		saves_ns = overlap->by_set[DEVICE_COMMUNICATION];
		strbuf_addf(&text,
			"It only communicates for %.0f %% of the time: overlap that with "
			"computing, or look which rank the others wait for.",
			percent(overlap->by_set[DEVICE_COMMUNICATION], overlap->span_ns));
		break;
	default:
		return;
	}
	add_saving(&text, saves_ns);
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* All analyses have their devices in the order of their first work: the same. */
int report_device_flow(const struct report_view *view, const struct trace_report *timeline)
{
	_cleanup_device_launches_ struct device_launches launches = {0};
	_cleanup_device_overlap_ struct device_overlap overlap = {0};
	int r = device_overlap_init(&overlap, view->model);

	r = r ?: device_launches_init(&launches, view->model);
	for (uint32_t i = 0; r == 0 && i < launches.devices.count; i++) {
		_cleanup_strbuf_ struct strbuf name = {0};

		add_name(&name, &overlap, i);
		add_overlap(view, &overlap, i);
		add_launches(view, &launches.devices.items[i], &name);
		add_advice(view, &overlap.devices.items[i], &launches.devices.items[i], timeline,
			&name);
	}
	return r;
}
