/* SPDX-License-Identifier: Apache-2.0 */
#include "push/prometheus.h"

/* Quotes, backslashes and lines' ends are escaped; other control characters are left out. */
static void add_label(struct strbuf *out, char separator, const struct metric_label *label)
{
	strbuf_addf(out, "%c%s=\"", separator, label->name);
	for (const char *c = label->value ? label->value : ""; *c; c++) {
		if (*c == '\n')
			strbuf_add(out, "\\n");
		else if (*c == '"' || *c == '\\')
			strbuf_addf(out, "\\%c", *c);
		else if ((unsigned char)*c >= ' ')
			strbuf_add_char(out, *c);
	}
	strbuf_add_char(out, '"');
}

static void write_head(void *context, const struct metric *metric)
{
	strbuf_addf(context, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
		metric->name, metric->kind == METRIC_COUNTER ? "counter" : "gauge");
}

static void write_point(
	void *context, const struct metric *metric, const struct metric_point *point)
{
	struct strbuf *out = context;

	strbuf_add(out, metric->name);
	for (size_t i = 0; i < point->label_count; i++)
		add_label(out, i ? ',' : '{', &point->labels[i]);
	strbuf_add(out, point->label_count ? "} " : " ");
	if (point->is_count)
		strbuf_addf(out, "%llu\n", (unsigned long long)point->count);
	else
		strbuf_addf(out, "%.*f\n", point->digits, point->number);
}

void prometheus_write(const struct metric_figures *figures, struct strbuf *out)
{
	metrics_visit(figures, &(struct metric_visitor){
				       .begin = write_head, .point = write_point, .context = out});
}
