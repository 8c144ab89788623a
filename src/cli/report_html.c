/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_html.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "model/trace_capture.h"
#include "page/page.h"
#include "query/child.h"
#include "query/export.h"

#define ANSWER_MAX ((size_t)256 << 20)

struct question {
	struct query *query;
	struct query_options options;
	const struct exporter *exporter;
};

static int ask_report(void *context, struct strbuf *out, struct errmsg *err)
{
	struct question *question = context;

	return query_report(question->query, &question->options, REPORT_FORM_PAGE, NULL, out, err);
}

static int ask_tree(void *context, struct strbuf *out, struct errmsg *err)
{
	struct question *question = context;

	return query_call_tree(question->query, &question->options, out, err);
}

static int ask_figures(void *context, struct strbuf *out, struct errmsg *err)
{
	struct question *question = context;

	return query_report(question->query, &question->options, REPORT_FORM_JSON, NULL, out, err);
}

static int ask_plot(void *context, struct strbuf *out, struct errmsg *err)
{
	struct question *question = context;

	return query_plot(question->query, &question->options, question->exporter, out, err);
}

/* The pictures of sections, by their formats. */
static int add_plots(struct question *question, struct json_writer *json, struct errmsg *err)
{
	static const char *const names[] = {"roofline", "memory"};

	json_begin_object(json);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_strbuf_ struct strbuf plot = {0};
		int r;

		question->exporter = exporter_find(names[i]);
		r = query_in_child(ask_plot, question, ANSWER_MAX, &plot, err);
		if (r == -ENODATA || r == -EINVAL)
			continue;
		if (r < 0)
			return r;
		json_key(json, names[i]);
		json_string_n(json, strbuf_cstr(&plot), plot.length);
	}
	json_end_object(json);
	return 0;
}

/* A call tree by each weight that the files have. */
static int add_trees(struct question *question, struct json_writer *json, struct errmsg *err)
{
	bool is_foreign = model_is_foreign(question->query->model);
	bool is_first = true;

	strbuf_add(json->out, "{");
	for (const char *const *weight = weight_choices; *weight; weight++) {
		_cleanup_strbuf_ struct strbuf tree = {0};
		int r;

		if (is_foreign && strcmp(*weight, "cpu") == 0)
			continue;
		question->options.shown.weight = *weight;
		r = query_in_child(ask_tree, question, ANSWER_MAX, &tree, err);
		if (r == -ENODATA || r == -EINVAL)
			continue;
		if (r < 0)
			return r;
		strbuf_addf(json->out, "%s\"%s\":", is_first ? "" : ",", *weight);
		strbuf_add_bytes(json->out, tree.data, tree.length);
		is_first = false;
	}
	strbuf_add(json->out, "}");
	return 0;
}

/* A section as its view draws it; nothing where there are no figures in it. */
static int add_section(struct question *question, const char *by, const char *member,
	struct strbuf *data, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf figures = {0};
	_cleanup_strbuf_ struct strbuf begin = {0};
	int r;

	question->options.by = by;
	r = query_in_child(ask_figures, question, ANSWER_MAX, &figures, err);
	question->options.by = NULL;
	strbuf_addf(&begin, "\n  \"%s\": {", member);
	if (r < 0 || !strstr(strbuf_cstr(&figures), strbuf_cstr(&begin)))
		return r == -ENODATA || r == -EINVAL ? 0 : r;
	strbuf_addf(data, "%s\"%s\":", data->data[data->length - 1] == '{' ? "" : ",", by);
	strbuf_add_bytes(data, figures.data, figures.length);
	return 0;
}

static int add_figures(struct question *question, struct strbuf *data, struct errmsg *err)
{
	int r;

	strbuf_add(data, "{");
	r = add_section(question, "layer", "layers", data, err);
	if (r == 0)
		r = add_section(question, "token", "inference", data, err);
	strbuf_add(data, "}");
	return r;
}

static int make(struct question *question, struct strbuf *data, struct errmsg *err)
{
	struct json_writer json = {.out = data};
	int r;

	strbuf_add(data, "{\"name\":");
	json_string(&json, path_base_name(question->query->paths[0]));
	strbuf_add(data, ",\"report\":");
	r = query_in_child(ask_report, question, ANSWER_MAX, data, err);
	if (r < 0)
		return r;
	strbuf_add(data, ",\"figures\":");
	r = add_figures(question, data, err);
	if (r < 0)
		return r;
	strbuf_add(data, ",\"trees\":");
	r = add_trees(question, &json, err);
	if (r < 0)
		return r;
	strbuf_add(data, ",\"plots\":");
	r = add_plots(question, &(struct json_writer){.out = data}, err);
	strbuf_add(data, "}");
	return r;
}

int report_html(struct query *query, const struct query_options *options, const char *output)
{
	struct question question = {.query = query, .options = *options};
	_cleanup_strbuf_ struct strbuf data = {0};
	_cleanup_strbuf_ struct strbuf page = {0};
	struct errmsg err;
	int r = page_check(&err);

	if (r == 0)
		r = make(&question, &data, &err);
	if (r == 0)
		r = page_write_file(&page, strbuf_cstr(&data), data.length, &err);
	if (r == 0)
		r = output_write(output, page.data, page.length, &err);
	return r < 0 ? fail(&err) : EXIT_OK;
}
