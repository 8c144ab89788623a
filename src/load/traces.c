/* SPDX-License-Identifier: Apache-2.0 */
#include "load/traces.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/warn.h"
#include "importers/kineto/kineto.h"
#include "load/parallel.h"
#include "load/progress.h"
#include "load/rank_files.h"
#include "model/trace_capture.h"

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

/* One of the files that are loaded, some at a time. */
struct trace_source {
	char *path;
	const char *folder; /* as it was named; NULL: the file itself was */
	struct loading *loading;
	uint64_t done, total; /* bytes */
	enum trace_file file;
	struct trace_list traces;
	int status;
	struct errmsg err;
};

/* All of them, with one bar. */
struct loading {
	ARRAY_OF(struct trace_source) sources;
	ARRAY_OF(const char *) folders; /* as they were named */
	struct trace_load_options options;
	unsigned threads;     /* for each */
	pthread_mutex_t lock; /* of the bar and what it shows */
	struct progress progress;
};

static void update_progress(void *context, uint64_t done, uint64_t total)
{
	struct trace_source *source = context;
	struct loading *loading = source->loading;

	pthread_mutex_lock(&loading->lock);
	source->done = done;
	source->total = total;
	done = total = 0;
	array_foreach (&loading->sources, each) {
		done += each->done;
		total += each->total;
	}
	progress_update(&loading->progress, done, total);
	pthread_mutex_unlock(&loading->lock);
}

static int load_kineto(struct trace_source *source)
{
	const struct trace_read_options read = {
		.keep_arguments = source->loading->options.keep_arguments,
		.threads = source->loading->threads,
		.progress = update_progress,
		.progress_context = source,
	};
	_cleanup_trace_ struct trace *trace = NULL;
	int r = kineto_read(&trace, source->path, &read, &source->err);

	r = r ?: array_append(&source->traces.items, trace);
	if (r == 0)
		trace = NULL;
	return r;
}

/* All traces of an imported capture, or that of a recording. */
static int load_capture_traces(struct trace_source *source)
{
	_cleanup_model_ struct model *model = NULL;
	struct trace_list *list = &source->traces;
	struct trace *trace;
	int r = model_load(&model, source->path, update_progress, source, &source->err);

	for (size_t i = 0; r == 0 && i < model->traces.count; i++) {
		model->traces.items[i]->damage.truncated |= model->completeness.truncated;
		r = array_append(&list->items, model->traces.items[i]);
		if (r == 0)
			trace_ref(model->traces.items[i]);
	}
	if (r < 0 || model->traces.count)
		return r;
	r = trace_from_model(&trace, model, &source->err);
	if (r < 0)
		return r;
	trace->recorded = NULL; /* it goes */
	r = array_append(&list->items, trace);
	if (r < 0)
		trace_free(trace);
	return r;
}

/* Files of a folder that do not say their rank have it in their names, or nowhere. */
static void set_rank(const struct trace_source *source)
{
	const char *slash = strrchr(source->path, '/');
	struct trace *trace;

	if (!source->folder || source->traces.items.count != 1)
		return;
	trace = source->traces.items.items[0];
	if (trace->rank == MODEL_NONE)
		rank_of_name(slash ? slash + 1 : source->path, &trace->rank);
}

static int load_source(struct trace_source *source)
{
	int r;

	if (source->folder)
		source->file = trace_file_of(source->path);
	if (source->file == TRACE_FILE_EXECUTION && !source->folder)
		return errmsg_set(&source->err, -EINVAL,
			"%s is an execution trace, which has no times: name the Kineto trace of "
			"the same run, or link both with `sonde chakra link`",
			source->path);
	if (source->file == TRACE_FILE_EXECUTION || source->file == TRACE_FILE_FOLDER)
		return 0;
	r = source->file == TRACE_FILE_KINETO ? load_kineto(source) : load_capture_traces(source);
	if (r == 0)
		set_rank(source);
	return r;
}

static void load_one(size_t index, void *context)
{
	struct loading *loading = context;
	struct trace_source *source = &loading->sources.items[index];

	source->status = load_source(source);
}

/* ---- a folder ---- */

static int add_source(struct loading *loading, struct trace_source source)
{
	struct stat status;
	int r;

	source.loading = loading;
	if (source.path && stat(source.path, &status) == 0)
		source.total = (uint64_t)status.st_size;
	r = source.path ? array_append(&loading->sources, source) : -ENOMEM;
	if (r < 0)
		free(source.path);
	return r;
}

static bool is_trace_name(const char *name)
{
	static const char *const ends[] = {".json", ".json.gz", ".json.zst", ".pftrace"};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (name[0] != '.' && text_ends_in(name, ends[i]))
			return true;
	}
	return false;
}

/* Numbers in names count as numbers: rank_2 comes before rank_10. */
static int compare_paths(const void *left, const void *right)
{
	const struct trace_source *a = left, *b = right;

	return strverscmp(a->path, b->path);
}

static int add_folder(struct loading *loading, const char *folder, struct errmsg *err)
{
	size_t first = loading->sources.count, length = strlen(folder);
	DIR *directory = opendir(folder);
	struct dirent *entry;
	int r = 0;

	if (!directory)
		return errmsg_set(err, -errno, "cannot read %s: %s", folder, strerror(errno));
	while (length > 1 && folder[length - 1] == '/')
		length--;
	while (r == 0 && (entry = readdir(directory))) {
		struct trace_source source = {.folder = folder};

		if (!is_trace_name(entry->d_name))
			continue;
		if (asprintf(&source.path, "%.*s/%s", (int)length, folder, entry->d_name) < 0)
			source.path = NULL;
		r = add_source(loading, source);
	}
	closedir(directory);
	if (loading->sources.count > first)
		qsort(loading->sources.items + first, loading->sources.count - first,
			sizeof(*loading->sources.items), compare_paths);
	return r < 0 ? r : array_append(&loading->folders, folder);
}

static bool has_device_work(const struct trace_source *source)
{
	array_foreach (&source->traces.items, trace) {
		array_foreach (&(*trace)->events, event) {
			if (trace_is_work(event))
				return true;
		}
	}
	return false;
}

/*
 * Several recordings are not read as one: where they have device work they are traces of their
 * devices, and else there is nothing to show.
 */
static int check_recordings(const struct loading *loading, const char *folder, struct errmsg *err)
{
	size_t recordings = 0, others = 0;
	const char *first = NULL;
	bool has_work = false;

	array_foreach (&loading->sources, source) {
		if (source->folder != folder)
			continue;
		if (source->file != TRACE_FILE_CAPTURE) {
			others += source->traces.items.count;
			continue;
		}
		recordings++;
		first = first ? first : source->path;
		has_work |= has_device_work(source);
	}
	if (!recordings || others)
		return 0;
	if (!has_work)
		return errmsg_set(err, -EINVAL,
			"%s is a folder of recordings (%zu), without device work, and not of "
			"traces: recordings are read one at a time; try sonde report %s, or "
			"sonde diff with two of them",
			folder, recordings, first);
	warn("%s is a folder of recordings (%zu): shown is their device work, each as one rank; "
	     "what else was recorded is read one at a time, as by sonde report %s",
		folder, recordings, first);
	return 0;
}

/* What came of it: something, or a sentence. */
static int check_folder(const struct loading *loading, const char *folder, struct errmsg *err)
{
	size_t traces = 0, execution_traces = 0;

	array_foreach (&loading->sources, source) {
		if (source->folder != folder)
			continue;
		traces += source->traces.items.count;
		execution_traces += source->file == TRACE_FILE_EXECUTION;
	}
	if (execution_traces)
		warn("%zu execution traces in %s are passed over: they have no times",
			execution_traces, folder);
	if (traces)
		return check_recordings(loading, folder, err);
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

static int find_sources(
	struct loading *loading, const char *const *paths, size_t count, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		enum trace_file file = trace_file_of(paths[i]);

		if (file == TRACE_FILE_FOLDER)
			r = add_folder(loading, paths[i], err);
		else
			r = add_source(loading,
				(struct trace_source){.path = strdup(paths[i]), .file = file});
	}
	return r;
}

static void load_sources(struct loading *loading)
{
	size_t count = loading->sources.count;
	char what[256];

	if (count == 1)
		snprintf(what, sizeof(what), "loading %s", loading->sources.items[0].path);
	else
		snprintf(what, sizeof(what), "loading %zu traces", count);
	loading->threads = parallel_share(count);
	progress_begin(&loading->progress, what);
	parallel_each(count, load_one, loading);
	progress_end(&loading->progress);
}

/* The first failure is that of all. */
static int check_sources(const struct loading *loading, struct errmsg *err)
{
	int r = 0;

	array_foreach (&loading->sources, source) {
		if (source->status < 0) {
			*err = source->err;
			return source->status;
		}
	}
	for (size_t i = 0; r == 0 && i < loading->folders.count; i++)
		r = check_folder(loading, loading->folders.items[i], err);
	return r;
}

static int take_traces(struct loading *loading, struct trace_list *list)
{
	array_foreach (&loading->sources, source) {
		if (array_reserve(&list->items, source->traces.items.count) < 0)
			return -ENOMEM;
		array_foreach (&source->traces.items, trace) {
			warn_about(*trace);
			list->items.items[list->items.count++] = *trace;
		}
		array_clear(&source->traces.items);
	}
	return 0;
}

static void loading_done(struct loading *loading)
{
	array_foreach (&loading->sources, source) {
		trace_list_done(&source->traces);
		free(source->path);
	}
	array_done(&loading->sources);
	array_done(&loading->folders);
	pthread_mutex_destroy(&loading->lock);
}

int load_traces(const char *const *paths, size_t count, const struct trace_load_options *options,
	struct trace_list *ret_list, struct errmsg *err)
{
	_cleanup_(loading_done) struct loading loading = {.lock = PTHREAD_MUTEX_INITIALIZER};
	_cleanup_trace_list_ struct trace_list list = {0};
	int r;

	if (options)
		loading.options = *options;
	r = find_sources(&loading, paths, count, err);
	if (r == 0)
		load_sources(&loading);
	if (r == 0)
		r = check_sources(&loading, err);
	if (r == 0)
		r = take_traces(&loading, &list);
	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while loading the traces");
	if (r < 0)
		return r;
	order_by_rank(&list);
	*ret_list = list;
	list = (struct trace_list){0};
	return 0;
}
