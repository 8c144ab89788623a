/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runs/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "report/render.h"
#include "store/change.h"
#include "store/choice.h"
#include "store/documents.h"
#include "store/exchange.h"
#include "store/sqlite/sqlite.h"

/* How long to wait for another program that writes; who asks can ask again. */
#define PATIENCE_MS 2000

/* ---- what is asked for ---- */

/* Parameters that several operations have. */
#define FILTER_OF(parameters)                                                                      \
	(struct store_filter)                                                                      \
	{                                                                                          \
		.model = given((parameters)->model),                                               \
		.experiment = given((parameters)->experiment),                                     \
		.engine = given((parameters)->engine), .commit = given((parameters)->commit),      \
		.search = given((parameters)->search), .tags = (parameters)->tag.values,           \
		.tag_count = (parameters)->tag.count                                               \
	}

/* A form field that was left empty asks for nothing. */
static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static int set_times(
	struct store_filter *filter, const char *since, const char *until, struct errmsg *err)
{
	int r = store_time_parse("since", since, &filter->since_ns, err);

	return r < 0 ? r : store_time_parse("until", until, &filter->until_ns, err);
}

static int open_store(struct store **ret_store, const struct runs_question *question,
	enum store_mode mode, struct errmsg *err)
{
	int r;

	store_sqlite_set_patience(PATIENCE_MS);
	r = store_open(ret_store, question->server->options->store, mode, err);
	/* A run that is not there is another matter. */
	return r == -ENOENT ? -ENODEV : r;
}

/* ---- forms ---- */

static int render_page(const struct result *result, struct strbuf *out)
{
	struct json_writer json = {.out = out};
	int r;

	json_begin_object(&json);
	r = report_render_page(result, &json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return r;
}

static int render(
	const struct result *result, enum api_format format, struct strbuf *out, struct errmsg *err)
{
	int r = format == API_FORMAT_PAGE
			? render_page(result, out)
			: report_render(result,
				  format == API_FORMAT_CSV ? REPORT_FORM_CSV : REPORT_FORM_JSON,
				  NULL, out);

	return r == -ENODATA ? errmsg_set(err, -EINVAL, "this document has no rows for csv")
	       : r < 0       ? errmsg_set(err, r, "memory ran out while answering")
			     : 0;
}

/* ---- documents ---- */

static int answer_list(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_list_runs_parameters *asked = &question->parameters->list_runs;
	struct store_filter filter = FILTER_OF(asked);
	struct store_order order = {.limit = asked->limit, .offset = asked->offset};
	int r = set_times(&filter, asked->since, asked->until, err);

	if (r < 0)
		return r;
	if (store_order_choose(&order, store_order_names[asked->order], asked->reverse) < 0)
		return errmsg_set(err, -EINVAL, "runs have no such order");
	return store_list(store, &filter, &order, result, err);
}

static int answer_run(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_get_run_parameters *asked = &question->parameters->run;

	return store_show(store, asked->run, given(asked->section), result, err);
}

static int answer_compare(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_texts *runs = &question->parameters->compare_runs.run;

	return store_compare(store, runs->values, runs->count, result, err);
}

static int analyse(struct store *store, const struct store_filter *filter, const char *price,
	const char *co2, const char *predict, struct result *result, struct errmsg *err)
{
	struct store_question question = {.predict = predict};
	int r = store_rates_parse(price, co2, &question.rates, err);

	return r < 0 ? r : store_analyse(store, filter, &question, result, err);
}

static int answer_analyse(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_analyse_runs_parameters *asked = &question->parameters->analyse_runs;
	struct store_filter filter = FILTER_OF(asked);
	int r = set_times(&filter, asked->since, asked->until, err);

	return r < 0 ? r : analyse(store, &filter, asked->price, asked->co2, NULL, result, err);
}

static int answer_predict(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_predict_run_parameters *asked = &question->parameters->predict_run;
	struct store_filter filter = FILTER_OF(asked);
	int r = set_times(&filter, asked->since, asked->until, err);

	return r < 0 ? r
		     : analyse(store, &filter, asked->price, asked->co2, asked->labels, result,
			       err);
}

static int answer_regressions(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_get_regressions_parameters *asked = &question->parameters->regressions;
	size_t worse;

	return store_regressions(store, asked->experiment, asked->threshold, result, &worse, err);
}

static int answer_stats(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	(void)question;
	return store_stats(store, result, err);
}

static int answer_delete(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	int r = store_find_run(store, question->parameters->delete_run.run, &rows, err);

	if (r == 0)
		r = store_delete(store, &rows, err);
	return r < 0 ? r : store_removed(store, &rows, true, result, err);
}

static int answer_retention(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_retain_runs_parameters *asked = &question->parameters->retain_runs;
	const struct store_retention retention = {.keep = asked->keep,
		.max_age_ns = (int64_t)asked->max_age_days * 24 * 3600 * (int64_t)NS_PER_S};
	_cleanup_run_rows_ struct run_rows rows = {0};
	int r;

	if (!asked->has_keep && !asked->has_max_age_days)
		return errmsg_set(err, -EINVAL, "retention needs keep or max_age_days, or both");
	r = store_find_expired(store, &retention, &rows, err);
	if (r == 0 && !asked->dry_run)
		r = store_delete(store, &rows, err);
	return r < 0 ? r : store_removed(store, &rows, !asked->dry_run, result, err);
}

static int answer_edit(const struct runs_question *question, struct store *store,
	struct result *result, struct errmsg *err)
{
	const struct api_edit_run_parameters *asked = &question->parameters->edit_run;
	const struct store_edit edit = {.has_tags = asked->has_tags,
		.has_note = asked->has_notes,
		.has_experiment = asked->has_experiment,
		.tags = asked->tags.values,
		.tag_count = asked->tags.count,
		.note = asked->notes,
		.experiment = asked->experiment};
	_cleanup_run_rows_ struct run_rows rows = {0};
	int r = store_find_run(store, asked->run, &rows, err);

	if (r == 0)
		r = store_edit(store, &rows.items.items[0], &edit, err);
	return r < 0 ? r : store_show(store, asked->run, NULL, result, err);
}

/* ---- what is no document ---- */

static int answer_import(const struct runs_question *question, struct store *store,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_fclose_ FILE *file = fmemopen((void *)question->body, question->body_length, "r");
	struct store_imported imported = {0};
	struct json_writer json = {.out = out};
	int r;

	if (!file)
		return errmsg_set(err, -ENOMEM, "memory ran out while importing");
	r = store_import(store, file, "the body", &imported, err);
	json_begin_object(&json);
	json_member_u64(&json, "added", imported.runs);
	json_member_u64(&json, "known", imported.known);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return r;
}

static int answer_export(const struct runs_question *question, struct store *store,
	struct strbuf *out, struct errmsg *err)
{
	const struct api_export_runs_parameters *asked = &question->parameters->export_runs;
	const struct store_order oldest = {.rising = true};
	struct store_filter filter = FILTER_OF(asked);
	_cleanup_run_rows_ struct run_rows rows = {0};
	struct output_file file = {.place = OUTPUT_PLACE_NONE};
	int r = set_times(&filter, asked->since, asked->until, err);

	for (size_t i = 0; r == 0 && i < asked->run.count; i++)
		r = store_find_run(store, asked->run.values[i], &rows, err);
	if (r == 0 && !asked->run.count)
		r = store_read_runs(store, &filter, &oldest, &rows, err);
	if (r == 0)
		r = store_export(store, &rows, &file, err);
	/* It was not opened, and so is all in memory. */
	*out = file.out;
	return r;
}

/* Of those that the server offers, that whose file the run was made of. */
static const struct capture *offered_capture(const struct server *server, const char *path)
{
	for (size_t i = 0; i < captures_count(server->captures); i++) {
		const struct capture *capture = captures_get(server->captures, i);
		_cleanup_free_ char *full = capture->is_gone ? NULL : realpath(capture->path, NULL);

		if (full && strcmp(full, path) == 0)
			return capture;
	}
	return NULL;
}

static int answer_capture(const struct runs_question *question, struct store *store,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	struct json_writer json = {.out = out};
	const struct capture *capture;
	int r = store_find_run(store, question->parameters->run_capture.run, &rows, err);

	if (r < 0)
		return r;
	capture = offered_capture(question->server, run_text(&rows.items.items[0], STORE_RUN_PATH));
	if (!capture)
		return errmsg_set(err, -ENODATA,
			"the capture of this run is not among those that this server offers: serve "
			"its folder to open it");
	write_capture(&json, question->server, capture);
	strbuf_add_char(out, '\n');
	return 0;
}

/* ---- all ---- */

static const struct {
	enum store_mode mode;
	/* One of them. */
	int (*make)(const struct runs_question *question, struct store *store,
		struct result *result, struct errmsg *err);
	int (*write)(const struct runs_question *question, struct store *store, struct strbuf *out,
		struct errmsg *err);
} answers[API_OPERATION_MAX] = {
	[API_LIST_RUNS] = {STORE_READ, answer_list, NULL},
	[API_GET_RUN] = {STORE_READ, answer_run, NULL},
	[API_COMPARE_RUNS] = {STORE_READ, answer_compare, NULL},
	[API_ANALYSE_RUNS] = {STORE_READ, answer_analyse, NULL},
	[API_PREDICT_RUN] = {STORE_READ, answer_predict, NULL},
	[API_GET_REGRESSIONS] = {STORE_READ, answer_regressions, NULL},
	[API_GET_RUNS_STATS] = {STORE_READ, answer_stats, NULL},
	[API_EXPORT_RUNS] = {STORE_READ, NULL, answer_export},
	[API_GET_RUN_CAPTURE] = {STORE_READ, NULL, answer_capture},
	[API_DELETE_RUN] = {STORE_WRITE, answer_delete, NULL},
	[API_EDIT_RUN] = {STORE_WRITE, answer_edit, NULL},
	[API_RETAIN_RUNS] = {STORE_WRITE, answer_retention, NULL},
	[API_IMPORT_RUNS] = {STORE_WRITE, NULL, answer_import},
};

int runs_answer(void *context, struct strbuf *out, struct errmsg *err)
{
	const struct runs_question *question = context;
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	int r = open_store(&store, question, answers[question->operation].mode, err);

	if (r < 0)
		return r;
	if (answers[question->operation].write)
		return answers[question->operation].write(question, store, out, err);
	r = answers[question->operation].make(question, store, &result, err);
	return r < 0 ? r : render(&result, question->format, out, err);
}
