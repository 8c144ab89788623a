/* SPDX-License-Identifier: Apache-2.0 */
/* What devices did, as the report shows it. */
#include <errno.h>

#include "analyses/device/device_work.h"
#include "model/format.h"
#include "report/view.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_counted(struct strbuf *out, uint64_t count, const char *what)
{
	strbuf_add(out, out->length ? "; " : "");
	format_count(out, count);
	strbuf_addf(out, " %s", what);
}

/* "DEVICE: busy 1.2 s, 34.5 % of the recording; 1,234 pieces of work". */
static void add_devices(const struct report_view *view, const struct device_work *work)
{
	array_foreach (&work->devices, device) {
		_cleanup_strbuf_ struct strbuf text = {0};

		strbuf_addf(&text, "%s: busy ", *device->name ? device->name : "unknown device");
		format_duration(&text, device->busy_ns);
		strbuf_addf(&text, ", %.1f %% of the recording; ",
			percent(device->busy_ns, model_duration_ns(view->model)));
		format_count(&text, device->count);
		strbuf_add(&text, " kernels, copies and the like");
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
}

/* Of stacks that were not taken, since an earlier launch came the same way: how right that was. */
static void add_known_stacks(const struct report_view *view)
{
	const struct model_launches *launches = &view->model->launches;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!launches->known_stacks && !launches->checked_stacks)
		return;
	format_count(&text, launches->known_stacks);
	strbuf_add(&text, " of these stacks are known from an earlier launch that came the same "
			  "way; ");
	format_count(&text, launches->checked_stacks);
	strbuf_add(&text, " more were taken all the same, and ");
	format_count(&text, launches->wrong_stacks);
	if (launches->checked_stacks)
		strbuf_addf(&text, " (%.2f %%)",
			percent(launches->wrong_stacks, launches->checked_stacks));
	strbuf_add(&text, " differed.");
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* How much of it is joined to the code that launched it, and why the rest is not. */
static void add_attribution(const struct report_view *view, const struct device_work *work)
{
	const struct model_launches *launches = &view->model->launches;
	_cleanup_strbuf_ struct strbuf text = {0};

	/* Where devices were not asked for times there are launches alone. */
	format_count(
		&text, work->count ? work->by_attribution[MODEL_ATTRIBUTED] : launches->stacks);
	strbuf_add(&text, " of ");
	format_count(&text, work->count ? work->count : launches->launches);
	strbuf_add(&text,
		work->count ? " have the stack of their launch" : " launches have their stack");
	if (launches->stacks)
		strbuf_addf(&text, " (%.2f %% of these stacks reach the thread's entry)",
			percent(launches->complete_stacks, launches->stacks));
	for (int i = MODEL_ATTRIBUTED + 1; i < MODEL_UNATTRIBUTED_MAX; i++) {
		if (work->by_attribution[i])
			add_counted(&text, work->by_attribution[i],
				model_unattributed_to_string((enum model_unattributed)i));
	}
	for (unsigned i = 0; i < WIRE_DEVICE_UNTIMED_MAX; i++) {
		_cleanup_strbuf_ struct strbuf what = {0};

		if (!launches->without_work[i] || i == WIRE_DEVICE_CAPTURED)
			continue;
		strbuf_addf(&what, "launches without device time (%s)",
			i == WIRE_DEVICE_TIMED ? "not ended, or lost"
					       : wire_device_untimed_name(i));
		add_counted(&text, launches->without_work[i], strbuf_cstr(&what));
	}
	if (launches->without_work[WIRE_DEVICE_CAPTURED])
		add_counted(&text, launches->without_work[WIRE_DEVICE_CAPTURED],
			"launches were captured into CUDA graphs");
	if (work->started_before_launch)
		add_counted(&text, work->started_before_launch, "began before their launch");
	strbuf_add_char(&text, '.');
	report_paragraph(view, strbuf_cstr(&text), 2);
	add_known_stacks(view);
	if (launches->wait_count) {
		strbuf_clear(&text);
		strbuf_add(&text, "Threads waited for devices ");
		format_duration(&text, launches->wait_ns);
		strbuf_add(&text, " in ");
		format_count(&text, launches->wait_count);
		strbuf_add(&text, launches->wait_count == 1 ? " call." : " calls.");
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
}

static void add_place(struct table *table, const struct model *model, const struct device_line *row)
{
	const struct model_frame *frame =
		row->frame == MODEL_NONE ? NULL : &model->frames.items[row->frame];
	_cleanup_strbuf_ struct strbuf name = {0};

	if (!frame) {
		if (row->unattributed == MODEL_ATTRIBUTED)
			table_cell(table, "[no frame of the program's in the stack]");
		else
			table_cellf(table, "[unattributed: %s]",
				model_unattributed_to_string(row->unattributed));
		table_cell(table, "");
		return;
	}
	if (frame->line)
		table_cellf(table, "%s:%u", frame->source_file, frame->line);
	else
		table_cell(table, model_function_module(model, frame->function));
	model_frame_name(model, row->frame, &name);
	table_cell(table, strbuf_cstr(&name));
}

static int add_lines(const struct report_view *view, const struct device_work *work, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Time", .right = true},
		{.title = "Total", .right = true},
		{.title = "Count", .right = true},
		{.title = "Launched by", .is_path = true, .shrinks_to = 14},
		{.title = "Function", .shrinks_to = 10},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	report_heading(view, "Lines that gave the device its work");
	for (size_t i = 0; i < MIN(limit, work->lines.count); i++) {
		const struct device_line *row = &work->lines.items[i];
		_cleanup_strbuf_ struct strbuf count = {0};

		table_cellf(&table, "%.2f %%", percent(row->total_ns, work->total_ns));
		table_duration(&table, row->total_ns);
		format_count(&count, row->count);
		table_cell(&table, strbuf_cstr(&count));
		add_place(&table, view->model, row);
	}
	return table_print(&table, &view->terminal, view->out);
}

int report_device(const struct report_view *view, size_t limit)
{
	_cleanup_device_work_ struct device_work work = {0};
	int r = device_work_init(&work, view->model);

	if (r < 0 || (!work.count && !view->model->launches.launches))
		return r;
	report_heading(view, "Device work");
	add_devices(view, &work);
	add_attribution(view, &work);
	report_cuda(view, &work);
	if (!work.count)
		return 0;
	return add_lines(view, &work, limit ? limit : work.lines.count);
}
