/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_load.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text_input.h"
#include "cli/progress.h"
#include "cli/rank_files.h"
#include "importers/kineto.h"
#include "model/trace_capture.h"

/* ---- what a file is ---- */

/* How much of a text tells what it is. */
#define HEAD_BYTES ((size_t)4096)

static bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

/* The first byte that counts is a bracket, and what follows it can follow one in JSON. */
static bool is_json(const char *head, size_t length)
{
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < length && is_space(head[at]))
		at++;
	if (at == length || (head[at] != '{' && head[at] != '['))
		return false;
	return ++at == length || is_space(head[at]) || strchr("\"{[]}", head[at]);
}

/* An execution trace says "schema" before its nodes; Kineto "schemaVersion", or nothing. */
static bool is_execution_trace(const char *head, size_t length)
{
	static const char key[] = "\"schema\"";

	return memmem(head, length, key, sizeof(key) - 1) &&
	       !memmem(head, length, "\"traceEvents\"", strlen("\"traceEvents\""));
}

/* A packet has a length, and then a field, neither of which is text, or one byte is not. */
static bool is_capture(const char *head, size_t length)
{
	if (!length || head[0] != '\n')
		return false;
	for (size_t i = 1; i < MIN(length, (size_t)16); i++) {
		if ((unsigned char)head[i] >= 0x80 ||
			((unsigned char)head[i] < ' ' && !is_space(head[i])))
			return true;
	}
	return false;
}

static enum trace_file file_of_text(const char *path)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	struct text_window window = {0};
	struct errmsg err;
	size_t length;

	if (text_input_open(&input, path, &err) < 0 || text_input_move(input, 0, &window, &err) < 0)
		return TRACE_FILE_OTHER;
	length = MIN(window.length, HEAD_BYTES);
	if (!is_json(window.bytes, length))
		return is_capture(window.bytes, length) ? TRACE_FILE_CAPTURE : TRACE_FILE_TEXT;
	return is_execution_trace(window.bytes, length) ? TRACE_FILE_EXECUTION : TRACE_FILE_KINETO;
}

enum trace_file trace_file_of(const char *path)
{
	enum trace_file file;
	struct stat status;

	if (stat(path, &status) < 0)
		return TRACE_FILE_OTHER;
	if (S_ISDIR(status.st_mode))
		return TRACE_FILE_FOLDER;
	if (!S_ISREG(status.st_mode))
		return TRACE_FILE_OTHER;
	file = file_of_text(path);
	if (file == TRACE_FILE_CAPTURE && capture_holds_traces(path))
		return TRACE_FILE_IMPORTED;
	return file;
}

/* ---- one file ---- */

void trace_list_done(struct trace_list *list)
{
	array_foreach (&list->items, trace)
		trace_free(*trace);
	array_done(&list->items);
}

static void warn_about(const struct trace *trace)
{
	const struct trace_damage *damage = &trace->damage;

	if (damage->truncated)
		warn("%s is cut off: what came before is shown", trace->path);
	if (damage->skipped_events)
		warn("%s is damaged: %llu of its events, in %llu bytes, were not understood and "
		     "are left out",
			trace->path, (unsigned long long)damage->skipped_events,
			(unsigned long long)damage->skipped_bytes);
	else if (damage->skipped_bytes)
		warn("%s has %llu bytes around its events or behind its end that were not "
		     "understood and are left out",
			trace->path, (unsigned long long)damage->skipped_bytes);
	if (damage->repaired_times)
		warn("%s has %llu durations that are negative or too large: they count as 0",
			trace->path, (unsigned long long)damage->repaired_times);
	if (damage->unended_events)
		warn("%s has %llu events that begin and do not end: they have no duration",
			trace->path, (unsigned long long)damage->unended_events);
}

static int load_kineto(const char *path, const struct trace_load_options *options,
	struct progress *progress, struct trace_list *list, struct errmsg *err)
{
	const struct trace_read_options read = {
		.keep_arguments = options && options->keep_arguments,
		.progress = progress_update,
		.progress_context = progress,
	};
	_cleanup_trace_ struct trace *trace = NULL;
	int r = kineto_read(&trace, path, &read, err);

	r = r ?: array_append(&list->items, trace);
	if (r == 0)
		trace = NULL;
	return r;
}

/* All traces of an imported capture, or that of a recording. */
static int load_capture_traces(
	const char *path, struct progress *progress, struct trace_list *list, struct errmsg *err)
{
	_cleanup_model_ struct model *model = NULL;
	struct trace *trace;
	int r = model_load(&model, path, progress_update, progress, err);

	for (size_t i = 0; r == 0 && i < model->traces.count; i++) {
		model->traces.items[i]->damage.truncated |= model->completeness.truncated;
		r = array_append(&list->items, model->traces.items[i]);
		if (r == 0)
			trace_ref(model->traces.items[i]);
	}
	if (r < 0 || model->traces.count)
		return r;
	r = trace_from_model(&trace, model, err);
	if (r < 0)
		return r;
	r = array_append(&list->items, trace);
	if (r < 0)
		trace_free(trace);
	return r;
}

static int load_file(const char *path, enum trace_file file,
	const struct trace_load_options *options, struct trace_list *list, struct errmsg *err)
{
	size_t before = list->items.count;
	struct progress progress;
	char what[256];
	int r;

	if (file == TRACE_FILE_EXECUTION)
		return errmsg_set(err, -EINVAL,
			"%s is an execution trace, which has no times: name the Kineto trace of "
			"the same run, or link both with `sonde chakra link`",
			path);
	snprintf(what, sizeof(what), "loading %s", path);
	progress_begin(&progress, what);
	if (file == TRACE_FILE_KINETO)
		r = load_kineto(path, options, &progress, list, err);
	else
		r = load_capture_traces(path, &progress, list, err);
	progress_end(&progress);
	for (size_t i = before; r == 0 && i < list->items.count; i++)
		warn_about(list->items.items[i]);
	return r;
}

/* ---- a folder ---- */

struct path_list {
	ARRAY_OF(char *) items;
};

static void path_list_done(struct path_list *list)
{
	array_foreach (&list->items, path)
		free(*path);
	array_done(&list->items);
}

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length > end_length && strcmp(name + length - end_length, end) == 0;
}

static bool is_trace_name(const char *name)
{
	static const char *const ends[] = {".json", ".json.gz", ".json.zst", ".pftrace"};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (name[0] != '.' && ends_in(name, ends[i]))
			return true;
	}
	return false;
}

/* Numbers in names count as numbers: rank_2 comes before rank_10. */
static int compare_paths(const void *left, const void *right)
{
	return strverscmp(*(char *const *)left, *(char *const *)right);
}

static int list_folder(const char *folder, struct path_list *paths, struct errmsg *err)
{
	DIR *directory = opendir(folder);
	size_t length = strlen(folder);
	struct dirent *entry;
	int r = 0;

	if (!directory)
		return errmsg_set(err, -errno, "cannot read %s: %s", folder, strerror(errno));
	while (length > 1 && folder[length - 1] == '/')
		length--;
	while (r == 0 && (entry = readdir(directory))) {
		_cleanup_free_ char *path = NULL;

		if (!is_trace_name(entry->d_name))
			continue;
		if (asprintf(&path, "%.*s/%s", (int)length, folder, entry->d_name) < 0) {
			path = NULL;
			r = -ENOMEM;
			break;
		}
		r = array_append(&paths->items, path);
		if (r == 0)
			path = NULL;
	}
	closedir(directory);
	if (paths->items.count)
		qsort(paths->items.items, paths->items.count, sizeof(*paths->items.items),
			compare_paths);
	return r;
}

/* Files that do not say their rank have it in their names, or nowhere. */
static int load_ranked(const char *path, enum trace_file file,
	const struct trace_load_options *options, struct trace_list *list, struct errmsg *err)
{
	size_t before = list->items.count;
	const char *slash = strrchr(path, '/');
	struct trace *trace;
	int r = load_file(path, file, options, list, err);

	if (r < 0 || list->items.count != before + 1)
		return r;
	trace = list->items.items[before];
	if (trace->rank == MODEL_NONE)
		rank_of_name(slash ? slash + 1 : path, &trace->rank);
	return 0;
}

static int load_folder(const char *folder, const struct trace_load_options *options,
	struct trace_list *list, struct errmsg *err)
{
	_cleanup_(path_list_done) struct path_list paths = {0};
	size_t before = list->items.count, execution_traces = 0;
	int r = list_folder(folder, &paths, err);

	for (size_t i = 0; r == 0 && i < paths.items.count; i++) {
		enum trace_file file = trace_file_of(paths.items.items[i]);

		execution_traces += file == TRACE_FILE_EXECUTION;
		if (file != TRACE_FILE_EXECUTION && file != TRACE_FILE_FOLDER)
			r = load_ranked(paths.items.items[i], file, options, list, err);
	}
	if (r == 0 && execution_traces)
		warn("%zu execution traces in %s are passed over: they have no times",
			execution_traces, folder);
	if (r < 0 || list->items.count > before)
		return r;
	return errmsg_set(err, -ENODATA,
		"there is no trace in %s: it should hold one file for each rank, ending in .json, "
		".json.gz, .json.zst or .pftrace",
		folder);
}

/* ---- all ---- */

static int compare_ranks(const void *left, const void *right)
{
	const struct trace *a = *(struct trace *const *)left, *b = *(struct trace *const *)right;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

#define NAMED_RANKS 4 /* that are missing */

/* "rank 2 of 4 is missing"; `traces`: by rank. */
static void warn_of_missing_ranks(struct trace *const *traces, size_t count)
{
	uint32_t world_size = traces[count - 1]->world_size, missing = world_size, named = 0;
	_cleanup_strbuf_ struct strbuf names = {0};

	for (size_t i = 0; i < count; i++) {
		bool is_first = i == 0 || traces[i]->rank != traces[i - 1]->rank;

		missing -= is_first && traces[i]->rank < world_size;
	}
	if (!missing)
		return;
	for (uint32_t rank = 0, i = 0; rank < world_size && named < NAMED_RANKS; rank++) {
		while (i < count && traces[i]->rank < rank)
			i++;
		if (i < count && traces[i]->rank == rank)
			continue;
		strbuf_addf(&names, "%s%u", named ? ", " : "", rank);
		named++;
	}
	if (missing > named)
		strbuf_addf(&names, " and %u more", missing - named);
	warn("rank%s %s of %u %s missing: figures over ranks are of the others",
		missing == 1 ? "" : "s", strbuf_cstr(&names), world_size,
		missing == 1 ? "is" : "are");
}

/* Those of all ranks, in their order; said where that cannot be right. */
static void order_by_rank(struct trace_list *list)
{
	struct trace **traces = list->items.items;
	size_t count = list->items.count;

	for (size_t i = 0; i < count; i++) {
		if (traces[i]->rank == MODEL_NONE)
			return;
	}
	if (count)
		qsort(traces, count, sizeof(*traces), compare_ranks);
	for (size_t i = 1; i < count; i++) {
		if (traces[i]->rank == traces[i - 1]->rank)
			warn("%s and %s are both of rank %u: they count as two ranks",
				traces[i - 1]->path, traces[i]->path, traces[i]->rank);
	}
	if (count > 1)
		warn_of_missing_ranks(traces, count);
}

int load_traces(const char *const *paths, size_t count, const struct trace_load_options *options,
	struct trace_list *ret_list, struct errmsg *err)
{
	_cleanup_trace_list_ struct trace_list list = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		enum trace_file file = trace_file_of(paths[i]);

		if (file == TRACE_FILE_FOLDER)
			r = load_folder(paths[i], options, &list, err);
		else
			r = load_file(paths[i], file, options, &list, err);
	}
	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while loading the traces");
	if (r < 0)
		return r;
	order_by_rank(&list);
	*ret_list = list;
	list = (struct trace_list){0};
	return 0;
}
