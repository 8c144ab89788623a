/* SPDX-License-Identifier: Apache-2.0 */
#include "push/otlp_metrics.h"

#include <string.h>

#include "capture/protobuf.h"
#include "exporters/otlp_fields.h"

struct writer {
	struct strbuf *out;
	uint64_t start_ns, time_ns; /* Unix time */
	size_t metric, data;        /* where the open messages begin */
};

static void put_attribute(struct strbuf *out, uint32_t field, const char *key, const char *value)
{
	size_t attribute = pb_begin(out, field), inner;

	pb_put_text(out, OTLP_KEY, key);
	inner = pb_begin(out, OTLP_VALUE);
	pb_put_text(out, OTLP_VALUE_TEXT, value ? value : "");
	pb_end(out, inner);
	pb_end(out, attribute);
}

/* ---- metrics ---- */

static void cut_end(struct strbuf *name, const char *end)
{
	if (text_ends_in(strbuf_cstr(name), end))
		pb_cut(name, name->length - strlen(end));
	if (name->data)
		name->data[name->length] = '\0';
}

static void put_name(struct strbuf *out, const struct metric *metric)
{
	static const char *const units[] = {"_seconds", "_bytes", "_joules"};
	_cleanup_strbuf_ struct strbuf name = {0};
	char *first;

	strbuf_add(&name, metric->name);
	if (strbuf_status(&name) < 0) {
		strbuf_inherit_status(out, &name);
		return;
	}
	cut_end(&name, "_total");
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		cut_end(&name, units[i]);
	first = strchr(name.data, '_');
	if (first)
		*first = '.';
	pb_put_text(out, OTLP_METRIC_NAME, name.data);
}

static void begin_metric(void *context, const struct metric *metric)
{
	struct writer *writer = context;

	writer->metric = pb_begin(writer->out, OTLP_SCOPE_ITEMS);
	put_name(writer->out, metric);
	pb_put_text(writer->out, OTLP_METRIC_DESCRIPTION, metric->help);
	pb_put_text(writer->out, OTLP_METRIC_UNIT, metric->unit);
	writer->data = pb_begin(
		writer->out, metric->kind == METRIC_COUNTER ? OTLP_METRIC_SUM : OTLP_METRIC_GAUGE);
}

static void put_point(void *context, const struct metric *metric, const struct metric_point *point)
{
	struct writer *writer = context;
	struct strbuf *out = writer->out;
	size_t begin = pb_begin(out, OTLP_POINTS);
	uint64_t bits;

	/* A gauge says how it is now. */
	if (metric->kind == METRIC_COUNTER)
		pb_put_fixed64(out, OTLP_POINT_START_TIME, writer->start_ns);
	pb_put_fixed64(out, OTLP_POINT_TIME, writer->time_ns);
	if (point->is_count) {
		pb_put_fixed64(out, OTLP_POINT_INT, point->count);
	} else {
		memcpy(&bits, &point->number, sizeof(bits));
		pb_put_fixed64(out, OTLP_POINT_DOUBLE, bits);
	}
	for (size_t i = 0; i < point->label_count; i++)
		put_attribute(
			out, OTLP_POINT_ATTRIBUTES, point->labels[i].name, point->labels[i].value);
	pb_end(out, begin);
}

static void end_metric(void *context, const struct metric *metric)
{
	struct writer *writer = context;

	if (metric->kind == METRIC_COUNTER) {
		pb_put_u64(writer->out, OTLP_SUM_TEMPORALITY, OTLP_CUMULATIVE);
		pb_put_u64(writer->out, OTLP_SUM_IS_MONOTONIC, 1);
	}
	pb_end(writer->out, writer->data);
	pb_end(writer->out, writer->metric);
}

/* ---- the message ---- */

static void put_resource(struct strbuf *out, const char *host)
{
	size_t resource = pb_begin(out, OTLP_RESOURCE);

	put_attribute(out, OTLP_RESOURCE_ATTRIBUTE, "service.name", "sonde");
	put_attribute(out, OTLP_RESOURCE_ATTRIBUTE, "service.version", SONDE_VERSION);
	if (host && *host) {
		put_attribute(out, OTLP_RESOURCE_ATTRIBUTE, "service.instance.id", host);
		put_attribute(out, OTLP_RESOURCE_ATTRIBUTE, "host.name", host);
	}
	pb_end(out, resource);
}

static void put_scope(struct strbuf *out)
{
	size_t scope = pb_begin(out, OTLP_SCOPE);

	pb_put_text(out, OTLP_SCOPE_NAME, "sonde");
	pb_put_text(out, OTLP_SCOPE_VERSION, SONDE_VERSION);
	pb_end(out, scope);
}

void otlp_metrics_write(const struct metric_figures *figures, uint64_t time_realtime_ns,
	const char *host, struct strbuf *out)
{
	struct writer writer = {.out = out,
		.start_ns = figures->series->start_realtime_ns,
		.time_ns = time_realtime_ns};
	size_t resource_metrics = pb_begin(out, OTLP_RESOURCE_METRICS), scope_metrics;

	put_resource(out, host);
	scope_metrics = pb_begin(out, OTLP_SCOPES);
	put_scope(out);
	metrics_visit(figures, &(struct metric_visitor){.begin = begin_metric,
				       .point = put_point,
				       .end = end_metric,
				       .context = &writer});
	pb_end(out, scope_metrics);
	pb_end(out, resource_metrics);
}
