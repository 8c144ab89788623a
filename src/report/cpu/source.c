/* SPDX-License-Identifier: Apache-2.0 */
/* The hottest lines in their source, as far as the files are here to read. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/source_text.h"
#include "report/cpu/dimensions.h"
#include "report/view.h"

#define LINES_AROUND   3
#define LINES_SHOWN    60    /* of one file */
#define SMALLEST_SHARE 0.005 /* a line below is no reason to show more source */

static const struct report_column columns[] = {
	REPORT_TOTAL_COLUMNS,
	{.title = "Line", .kind = REPORT_INTEGER, .is_dim = true},
	{.title = "Source", .kind = REPORT_TEXT, .is_source = true, .shrinks_to = 30},
};
const struct report_shape report_source_shape = REPORT_SHAPE(columns);

static const struct breakdown_line *line_of(
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	return row->key == MODEL_NONE ? NULL : &breakdown->lines.items[row->key];
}

/* The row of a line of this file; source files are interned, equal names are equal pointers. */
static const struct breakdown_row *row_of_line(
	const struct breakdown *breakdown, const char *file, uint32_t number)
{
	array_foreach (&breakdown->rows, row) {
		const struct breakdown_line *line = line_of(breakdown, row);

		if (line && line->line == number && line->source_file == file)
			return row;
	}
	return NULL;
}

/* Is a line that cost enough within reach? */
static bool is_near_cost(const struct breakdown *breakdown, const char *file, uint32_t number)
{
	array_foreach (&breakdown->rows, row) {
		const struct breakdown_line *line = line_of(breakdown, row);

		if (!line || line->source_file != file || !line->line ||
			(double)row->total_samples < SMALLEST_SHARE * (double)breakdown->samples)
			continue;
		if (number + LINES_AROUND >= line->line && number <= line->line + LINES_AROUND)
			return true;
	}
	return false;
}

static void add_no_weight(struct result *result)
{
	for (size_t i = 0; i < REPORT_WEIGHT_COUNT; i++)
		result_null(result);
}

static void add_line(struct result *result, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row, uint32_t number,
	const char *text, size_t length)
{
	_cleanup_strbuf_ struct strbuf line = {0};

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\t')
			strbuf_add(&line, "    ");
		else
			strbuf_add_char(&line, text[i]);
	}
	if (row)
		report_add_weight(result, model, breakdown->samples, row->total_samples,
			breakdown_uncertainty(breakdown, model, row, true));
	else
		add_no_weight(result);
	result_u64(result, number);
	strbuf_inherit_status(&result->texts, &line);
	result_text(result, strbuf_cstr(&line));
}

static void add_gap(struct result *result)
{
	add_no_weight(result);
	result_null(result);
	result_text(result, "\xe2\x8b\xae");
}

static uint32_t add_excerpt(struct result *result, const struct model *model,
	const struct breakdown *breakdown, const char *file, const struct strbuf *source)
{
	const char *at = strbuf_cstr(source), *end = at + source->length;
	uint32_t table = result_open(result);
	bool gap = false;
	size_t shown = 0;

	for (uint32_t number = 1; at < end && shown < LINES_SHOWN; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		if (is_near_cost(breakdown, file, number)) {
			if (gap && shown)
				add_gap(result);
			gap = false;
			shown++;
			add_line(result, model, breakdown, row_of_line(breakdown, file, number),
				number, at, length);
		} else {
			gap = true;
		}
		at = newline ? newline + 1 : end;
	}
	result_close(result);
	return table;
}

static bool is_newer_than_recording(const struct model *model, const struct stat *status)
{
	uint64_t start_ns = model->session.start_realtime_ns;

	return start_ns && (uint64_t)status->st_mtim.tv_sec > start_ns / NS_PER_S;
}

static int add_file(struct result *result, const struct model *model,
	const struct breakdown *breakdown, const char *file)
{
	_cleanup_strbuf_ struct strbuf source = {0};
	struct stat status;
	int r = source_text_read(file, &source);

	if (r == -ENOMEM)
		return r;
	result_heading(result, file);
	if (r < 0 || stat(file, &status) < 0) {
		result_sentencef(
			result, 0, "The source cannot be shown: %s.", strerror(r < 0 ? -r : errno));
		result_null(result);
		return 0;
	}
	if (is_newer_than_recording(model, &status))
		result_sentence(result, 0,
			"The file was changed after the recording: lines may not be those that "
			"ran.");
	result_show(result, add_excerpt(result, model, breakdown, file, &source),
		&(struct result_show){0});
	return 0;
}

/* Returns how many. */
static size_t hottest_files(
	const struct breakdown *breakdown, const char *files[REPORT_SOURCE_FILES])
{
	size_t count = 0;

	array_foreach (&breakdown->rows, row) {
		const struct breakdown_line *line = line_of(breakdown, row);
		bool known = false;

		if (!line || !line->line || line->source_file[0] != '/' ||
			count == REPORT_SOURCE_FILES ||
			(double)row->self_samples < SMALLEST_SHARE * (double)breakdown->samples)
			continue;
		for (size_t i = 0; i < count; i++)
			known |= files[i] == line->source_file;
		if (!known)
			files[count++] = line->source_file;
	}
	return count;
}

int report_add_source(
	struct result *result, const struct report_input *input, const struct breakdown *breakdown)
{
	const char *files[REPORT_SOURCE_FILES];
	size_t count = input->is_json ? 0 : hottest_files(breakdown, files);
	int r;

	for (size_t i = 0; i < count; i++) {
		r = add_file(result, input->view->model, breakdown, files[i]);
		if (r < 0)
			return r;
	}
	for (size_t i = count; i < REPORT_SOURCE_FILES; i++)
		result_null(result);
	return 0;
}
