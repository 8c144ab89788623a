/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/exporters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/rows.h"

const struct exporter *const exporters[] = {
	&folded_exporter,
	&flamegraph_exporter,
	&speedscope_exporter,
	&firefox_exporter,
	&pprof_exporter,
	&otlp_exporter,
	&chrome_exporter,
	&chakra_exporter,
	&pftrace_exporter,
	&csv_exporter,
	&tables_exporter,
	&json_exporter,
	&jsonl_exporter,
	&memory_exporter,
	&collectives_exporter,
	&perf_script_exporter,
	&roofline_exporter,
	&vllm_csv_exporter,
	NULL,
};

const struct exporter *exporter_find(const char *name)
{
	for (const struct exporter *const *exporter = exporters; *exporter; exporter++) {
		if (strcmp((*exporter)->name, name) == 0)
			return *exporter;
	}
	return NULL;
}

const struct export_options *export_options_or_default(const struct export_options *options)
{
	static const struct export_options defaults = {.size = sizeof(defaults)};

	return options ? options : &defaults;
}

struct export_unit export_unit_of(const struct model *model, bool counts)
{
	if (model->counts_bytes)
		return counts ? (struct export_unit){"inuse_objects", "count"}
			      : (struct export_unit){"inuse_space", "bytes"};
	if (counts)
		return (struct export_unit){"samples", "count"};
	return model->counts_energy ? (struct export_unit){"energy", "microjoules"}
				    : (struct export_unit){"cpu", "nanoseconds"};
}

bool export_has_weight(const struct model *model)
{
	return model_has_time(model) || model->counts_energy || model->counts_bytes;
}

const char *export_title(const struct model *model, const struct export_options *options)
{
	if (options->title && *options->title)
		return options->title;
	return *model->session.command_line ? model->session.command_line : "CPU samples";
}

static void write_range_field(struct json_writer *json, const struct model_range_field *field)
{
	double real;

	json_key(json, *field->name ? field->name : "value");
	switch (field->type) {
	case WIRE_RANGE_U64:
		json_u64(json, field->value);
		break;
	case WIRE_RANGE_I64:
		json_i64(json, (int64_t)field->value);
		break;
	case WIRE_RANGE_DOUBLE:
		memcpy(&real, &field->value, sizeof(real));
		json_double(json, real, 9);
		break;
	default:
		json_string(json, field->text);
	}
}

void export_range_fields(
	struct json_writer *json, const struct model *model, const struct model_range *range)
{
	for (uint32_t i = 0; i < range->field_count; i++)
		write_range_field(json, &model->range_fields.items[range->first_field + i]);
}

uint32_t export_inlined_after(const struct model *model, uint32_t frame)
{
	uint32_t count = 0;

	while (frame + count + 1 < model->frames.count &&
		model->frames.items[frame + count + 1].inlined)
		count++;
	return count;
}

int export_result(int r, const struct strbuf *out, const char *format, struct errmsg *err)
{
	r = r ?: strbuf_status(out);
	if (r == -ENOMEM)
		return errmsg_set(err, r,
			"memory ran out while writing the %s export: select fewer samples with "
			"--time, --process or --thread",
			format);
	return r;
}

int export_rows(const struct model *model, const struct export_options *options, struct strbuf *out,
	const char *format,
	int (*write)(const struct trace_report *trace, const struct export_options *options,
		struct strbuf *out, struct errmsg *err),
	struct errmsg *err)
{
	static const struct trace_view_options rows = {0};
	_cleanup_trace_report_ struct trace_report trace = {0};
	int r = trace_report_init(&trace, model, &rows, UINT64_MAX, err);

	if (r == 0)
		r = write(&trace, export_options_or_default(options), out, err);
	return export_result(r, out, format, err);
}

void export_files_done(struct export_files *files)
{
	array_foreach (&files->items, file) {
		strbuf_done(&file->content);
		free(file->own_name);
	}
	array_done(&files->items);
}
