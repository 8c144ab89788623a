/* SPDX-License-Identifier: Apache-2.0 */
/* The hottest lines in their source, as far as the files are here to read. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/source_text.h"
#include "model/format.h"
#include "report/view.h"

#define FILES_SHOWN    3
#define LINES_AROUND   3
#define LINES_SHOWN    60    /* of one file */
#define SMALLEST_SHARE 0.005 /* a line below is no reason to show more source */
#define FIGURE_COLUMNS 28

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

/* As many characters as fit; source is not shortened in the middle as names are. */
static void add_cut(struct strbuf *out, const struct strbuf *text, size_t columns)
{
	size_t length = 0, count = 0;

	while (length < text->length && count < columns) {
		length++;
		while (length < text->length && ((unsigned char)text->data[length] & 0xc0) == 0x80)
			length++;
		count++;
	}
	strbuf_add_bytes(out, strbuf_cstr(text), length);
	if (length < text->length)
		strbuf_add(out, "\xe2\x80\xa6");
}

static void add_source_line(const struct report_view *view, const struct breakdown *breakdown,
	const char *file, uint32_t number, const char *text, size_t length)
{
	const struct breakdown_row *row = row_of_line(breakdown, file, number);
	_cleanup_strbuf_ struct strbuf line = {0}, plain = {0}, figures = {0};
	size_t room = view->terminal.width > FIGURE_COLUMNS + 30
			      ? view->terminal.width - FIGURE_COLUMNS
			      : 30;

	if (row) {
		strbuf_addf(&figures, "%6.2f %%  ",
			100.0 * (double)row->total_samples / (double)breakdown->samples);
		report_add_time(&figures, view->model, row->total_samples);
	}
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\t')
			strbuf_add(&line, "    ");
		else
			strbuf_add_char(&line, text[i]);
	}
	escape_plain(&plain, strbuf_cstr(&line));
	strbuf_addf(view->out, "%-18s %s%6u%s  ", figures.length ? strbuf_cstr(&figures) : "",
		terminal_dim(&view->terminal), number, terminal_plain(&view->terminal));
	add_cut(view->out, &plain, room);
	strbuf_add_char(view->out, '\n');
}

static void add_excerpt(const struct report_view *view, const struct breakdown *breakdown,
	const char *file, const struct strbuf *source)
{
	const char *at = strbuf_cstr(source), *end = at + source->length;
	bool gap = false;
	size_t shown = 0;

	for (uint32_t number = 1; at < end && shown < LINES_SHOWN; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		if (is_near_cost(breakdown, file, number)) {
			if (gap && shown)
				strbuf_addf(view->out, "%25s\n", "\xe2\x8b\xae");
			gap = false;
			shown++;
			add_source_line(view, breakdown, file, number, at, length);
		} else {
			gap = true;
		}
		at = newline ? newline + 1 : end;
	}
}

static bool is_newer_than_recording(const struct model *model, const struct stat *status)
{
	uint64_t start_ns = model->session.start_realtime_ns;

	return start_ns && (uint64_t)status->st_mtim.tv_sec > start_ns / NS_PER_S;
}

static void add_file(
	const struct report_view *view, const struct breakdown *breakdown, const char *file)
{
	_cleanup_strbuf_ struct strbuf source = {0}, heading = {0};
	struct stat status;
	int r = source_text_read(file, &source);

	escape_plain(&heading, file);
	report_heading(view, strbuf_cstr(&heading));
	if (r < 0 || stat(file, &status) < 0) {
		strbuf_clear(&heading);
		strbuf_addf(
			&heading, "The source cannot be shown: %s.", strerror(r < 0 ? -r : errno));
		report_paragraph(view, strbuf_cstr(&heading), 0);
		return;
	}
	if (is_newer_than_recording(view->model, &status))
		report_paragraph(view,
			"The file was changed after the recording: lines may not be those that "
			"ran.",
			0);
	add_excerpt(view, breakdown, file, &source);
}

void report_source(const struct report_view *view, const struct breakdown *breakdown)
{
	const char *files[FILES_SHOWN] = {0};
	size_t count = 0;

	array_foreach (&breakdown->rows, row) {
		const struct breakdown_line *line = line_of(breakdown, row);
		bool known = false;

		if (!line || !line->line || line->source_file[0] != '/' || count == FILES_SHOWN ||
			(double)row->self_samples < SMALLEST_SHARE * (double)breakdown->samples)
			continue;
		for (size_t i = 0; i < count; i++)
			known |= files[i] == line->source_file;
		if (!known)
			files[count++] = line->source_file;
	}
	for (size_t i = 0; i < count; i++)
		add_file(view, breakdown, files[i]);
}
