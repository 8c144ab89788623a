/* SPDX-License-Identifier: Apache-2.0 */
#include "load/load.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyses/program/rank_set.h"
#include "base/input_file.h"
#include "base/parallel.h"
#include "base/warn.h"
#include "capture/split/merge.h"
#include "importers/importer.h"
#include "load/graph_captures.h"
#include "load/progress.h"
#include "load/rank_files.h"
#include "load/run.h"
#include "load/standard_input.h"
#include "model/trace_graphs.h"

#define CAPTURE_ENDING ".pftrace"

/* ---- one file ---- */

static void warn_about(const struct trace *trace)
{
	const struct trace_damage *damage = &trace->damage;

	if (damage->truncated)
		warn("%s is cut off: the part before is shown", trace->path);
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
		warn("%s has %llu events without an end: they have no duration", trace->path,
			(unsigned long long)damage->unended_events);
	array_foreach (&trace->notes, note)
		warn("%s: %s", trace->path, trace_text(trace, *note));
}

/* One of the files that are loaded, some at a time. */
struct trace_source {
	char *path;
	const char *folder; /* as it was named; NULL: the file itself was */
	struct loading *loading;
	uint64_t done, total; /* bytes */
	enum trace_file file;
	const struct importer *importer;   /* of trace_file_identify() */
	const struct importer *refused_by; /* NULL: it is read */
	ARRAY_OF(struct trace *) traces;
	int status;
	struct errmsg err;
};

/* All of them, with one bar. */
struct loading {
	ARRAY_OF(struct trace_source) sources;
	ARRAY_OF(const char *) folders; /* as they were named */
	bool keep_arguments;
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

static int take_trace(void *context, struct trace *trace)
{
	struct trace_source *source = context;
	int r = array_append(&source->traces, trace);

	if (r < 0)
		trace_free(trace);
	return r;
}

static int load_foreign(struct trace_source *source, const struct importer *importer)
{
	const struct trace_read_options read = {
		.keep_arguments = source->loading->keep_arguments,
		.threads = source->loading->threads,
		.progress = update_progress,
		.progress_context = source,
	};
	struct trace *trace;
	int r;

	if (importer->read_ranks)
		return importer->read_ranks(source->path, &read, take_trace, source, &source->err);
	r = importer->read(&trace, source->path, &read, &source->err);
	return r < 0 ? r : take_trace(source, trace);
}

/* Of several recordings each has the name of its file: they may be of one command. */
static int name_recording(const struct trace_source *source, struct trace *trace)
{
	char *path;

	if (source->file != TRACE_FILE_CAPTURE || source->loading->sources.count < 2)
		return 0;
	path = strdup(source->path);
	if (!path)
		return -ENOMEM;
	free((char *)trace->path);
	trace->path = path;
	return 0;
}

/* All traces of an imported capture, or the rows of a recording. */
static int load_capture_rows(struct trace_source *source)
{
	_cleanup_model_ struct model *model = NULL;
	int r = model_load_for_rows(&model, source->path, source->loading->keep_arguments,
		update_progress, source, &source->err);

	if (r < 0)
		return r;
	/* Stacks are in rows of allocations. */
	model_hide_interpreter(model);
	r = model_hide_sonde(model);
	r = r ?: model_make_rows(model);
	if (r == 0)
		r = array_reserve(&source->traces, model->traces.count);
	for (size_t i = 0; r == 0 && i < model->traces.count; i++)
		r = name_recording(source, model->traces.items[i]);
	if (r < 0)
		return r;
	array_foreach (&model->traces, trace) {
		(*trace)->recorded = NULL; /* it goes */
		(*trace)->damage.truncated |= model->completeness.truncated;
		source->traces.items[source->traces.count++] = *trace;
	}
	array_clear(&model->traces);
	return 0;
}

/* Files of a folder that do not say their rank have it in their names, or nowhere. */
static void set_rank(const struct trace_source *source)
{
	const char *slash = strrchr(source->path, '/');
	struct trace *trace;

	if (!source->folder || source->traces.count != 1)
		return;
	trace = source->traces.items[0];
	if (trace->rank == MODEL_NONE)
		rank_of_name(slash ? slash + 1 : source->path, &trace->rank);
}

/* Refused files are passed over in a folder: see check_folder(). */
static int load_source(struct trace_source *source)
{
	const struct importer *importer;
	int r;

	importer = source->importer;
	if (source->folder && source->file == TRACE_FILE_FOLDER)
		return 0;
	if (source->file == TRACE_FILE_FOREIGN && !importer_has_rows(importer)) {
		source->refused_by = importer;
		return source->folder ? 0
				      : errmsg_set(&source->err, -EINVAL, "%s %s: %s", source->path,
						importer->refusal, importer->instead);
	}
	r = source->file == TRACE_FILE_FOREIGN ? load_foreign(source, importer)
					       : load_capture_rows(source);
	if (r == 0)
		set_rank(source);
	return r;
}

static void load_one(size_t index, void *context)
{
	struct loading *loading = context;
	struct trace_source *source = &loading->sources.items[index];

	source->status = load_source(source);
	for (size_t i = 0; source->status == 0 && i < source->traces.count; i++) {
		struct trace *trace = source->traces.items[i];

		if (!loading->keep_arguments &&
			(trace_join_lines(trace) < 0 || trace_join_graphs(trace, trace) < 0))
			source->status = errmsg_set(&source->err, -ENOMEM,
				"memory ran out while loading %s", source->path);
	}
}

/* ---- a folder ---- */

static int add_source(struct loading *loading, struct trace_source source)
{
	struct stat status;
	int r;

	source.loading = loading;
	if (source.path)
		source.file = trace_file_identify(source.path, &source.importer);
	if (source.path && stat(source.path, &status) == 0)
		source.total = (uint64_t)status.st_size;
	r = source.path ? array_append(&loading->sources, source) : -ENOMEM;
	if (r < 0)
		free(source.path);
	return r;
}

static bool ends_in_any(const char *name, const char *const *endings)
{
	for (; endings && *endings; endings++) {
		if (text_ends_in(name, *endings))
			return true;
	}
	return false;
}

static bool is_trace_name(const char *name)
{
	if (name[0] == '.')
		return false;
	for (const struct importer *const *importer = importers; *importer; importer++) {
		if (ends_in_any(name, (*importer)->endings))
			return true;
	}
	return text_ends_in(name, CAPTURE_ENDING);
}

/* Numbers in names count as numbers: rank_2 comes before rank_10. */
static int compare_paths(const void *left, const void *right)
{
	const struct trace_source *a = left, *b = right;

	return strverscmp(a->path, b->path);
}

/* XLA's profiler writes each profile twice: the JSON has of it at most a million events. */
static bool is_written_twice(const struct trace_source *source, const char *name)
{
	static const char json[] = ".trace.json.gz";
	_cleanup_free_ char *other = NULL;

	return text_ends_in(name, json) &&
	       asprintf(&other, "%.*s.xplane.pb", (int)(strlen(source->path) - strlen(json)),
		       source->path) > 0 &&
	       access(other, R_OK) == 0;
}

static int add_folder(struct loading *loading, const char *folder, struct errmsg *err)
{
	size_t first = loading->sources.count, length = strlen(folder);
	DIR *directory = input_opendir(folder);
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
		if (source.path && is_written_twice(&source, entry->d_name))
			free(source.path);
		else
			r = add_source(loading, source);
	}
	closedir(directory);
	if (loading->sources.count > first)
		qsort(loading->sources.items + first, loading->sources.count - first,
			sizeof(*loading->sources.items), compare_paths);
	return r < 0 ? r : array_append(&loading->folders, folder);
}

/* ".json, .json.gz, .json.zst" */
static void add_endings(struct strbuf *out)
{
	for (const struct importer *const *importer = importers; *importer; importer++) {
		const char *const *ending = (*importer)->endings;

		for (; ending && *ending; ending++)
			strbuf_addf(out, "%s%s", out->length ? ", " : "", *ending);
	}
}

/* What came of it: something, or a sentence. */
static int check_folder(const struct loading *loading, const char *folder, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf endings = {0};
	const struct importer *refused_by = NULL;
	size_t traces = 0, refused = 0;

	array_foreach (&loading->sources, source) {
		if (source->folder != folder)
			continue;
		traces += source->traces.count;
		if (source->refused_by)
			refused_by = source->refused_by;
		refused += source->refused_by != NULL;
	}
	if (refused)
		warn("%zu files in %s are passed over: each %s", refused, folder,
			refused_by->refusal);
	if (traces)
		return 0;
	add_endings(&endings);
	return errmsg_set(err, -ENODATA,
		"there is no trace in %s: it should hold one file for each rank, ending in %s or "
		"%s",
		folder, strbuf_cstr(&endings), CAPTURE_ENDING);
}

/* ---- all ---- */

static int compare_ranks(const void *left, const void *right)
{
	const struct trace *a = *(struct trace *const *)left, *b = *(struct trace *const *)right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strverscmp(a->path, b->path);
}

/* Those of all ranks, in their order; a note where some are missing, or there twice. */
static void order_by_rank(struct model *model)
{
	_cleanup_strbuf_ struct strbuf faults = {0};
	struct trace **traces = model->traces.items;
	size_t count = model->traces.count;

	for (size_t i = 0; i < count; i++) {
		if (traces[i]->rank == MODEL_NONE)
			return;
	}
	if (count)
		qsort(traces, count, sizeof(*traces), compare_ranks);
	rank_set_describe((const struct trace *const *)traces, count, &faults);
	if (faults.length)
		warn("%s", strbuf_cstr(&faults));
}

static int find_sources(
	struct loading *loading, const char *const *paths, size_t count, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (trace_file_of(paths[i]) == TRACE_FILE_FOLDER)
			r = add_folder(loading, paths[i], err);
		else
			r = add_source(loading,
				(struct trace_source){.path = strdup(load_path(paths[i]))});
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

static int take_rows(struct loading *loading, struct model *model)
{
	array_foreach (&loading->sources, source) {
		if (array_reserve(&model->traces, source->traces.count) < 0)
			return -ENOMEM;
		array_foreach (&source->traces, trace) {
			warn_about(*trace);
			model->traces.items[model->traces.count++] = *trace;
		}
		array_clear(&source->traces);
	}
	return 0;
}

static void loading_done(struct loading *loading)
{
	array_foreach (&loading->sources, source) {
		array_foreach (&source->traces, trace)
			trace_free(*trace);
		array_done(&source->traces);
		free(source->path);
	}
	array_done(&loading->sources);
	array_done(&loading->folders);
	pthread_mutex_destroy(&loading->lock);
}

static int load_rows(struct model **ret_model, struct loading *loading, struct errmsg *err)
{
	_cleanup_model_ struct model *model = model_new();
	int r = model ? 0 : -ENOMEM;

	if (r == 0) {
		load_sources(loading);
		r = check_sources(loading, err);
	}
	if (r == 0)
		r = take_rows(loading, model);
	if (r == 0 && !loading->keep_arguments)
		r = join_graph_captures(model);
	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while loading the traces");
	if (r < 0)
		return r;
	order_by_rank(model);
	*ret_model = TAKE_PTR(model);
	return 0;
}

/* ---- several recordings ---- */

/* Are all of them recordings, whose samples count? */
static bool is_run(const struct loading *loading)
{
	array_foreach (&loading->sources, source) {
		if (source->file != TRACE_FILE_CAPTURE)
			return false;
	}
	return loading->sources.count != 0;
}

static int load_recordings(struct model **ret_model, const struct loading *loading,
	const struct shown_options *shown, const struct selection *selection, struct errmsg *err)
{
	ARRAY_OF(const char *) paths = {0};
	int r = 0;

	array_foreach (&loading->sources, source)
		r = r ?: array_append(&paths, source->path);
	if (r < 0)
		errmsg_set(err, r, "memory ran out while loading the recordings");
	else if (paths.count == 1)
		r = load_capture(paths.items[0], shown, selection, ret_model, err);
	else
		r = load_run(ret_model, paths.items, paths.count, shown, selection, err);
	array_done(&paths);
	return r;
}

static int merge_sources(const struct loading *loading, const char *output,
	const struct capture_writer_options *options, uint64_t *ret_bytes, struct errmsg *err)
{
	size_t count = loading->sources.count;
	_cleanup_free_ struct model_source *clocks = calloc(count, sizeof(*clocks));
	_cleanup_free_ struct capture_merge_source *sources = calloc(count, sizeof(*sources));
	int r;

	if (!clocks || !sources)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	for (size_t i = 0; i < count; i++)
		clocks[i].path = loading->sources.items[i].path;
	r = run_find_clocks(clocks, count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		sources[i] = (struct capture_merge_source){clocks[i].path, clocks[i].clock};
	return capture_merge(output, sources, count, options, ret_bytes, err);
}

int load_merge(const char *const *paths, size_t count, const char *output,
	const struct capture_writer_options *options, size_t *ret_count, uint64_t *ret_bytes,
	struct errmsg *err)
{
	_cleanup_(loading_done) struct loading loading = {.lock = PTHREAD_MUTEX_INITIALIZER};
	int r = find_sources(&loading, paths, count, err);

	if (r < 0)
		return r;
	if (!is_run(&loading))
		return errmsg_set(err, -EINVAL,
			"%s has more than recordings of sonde, or none: give recordings alone, or "
			"traces alone",
			paths[0]);
	*ret_count = loading.sources.count;
	return merge_sources(&loading, output, options, ret_bytes, err);
}

bool load_is_foreign(const char *const *paths, size_t count)
{
	_cleanup_(loading_done) struct loading loading = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct errmsg err;

	if (count == 1 && !trace_file_is_trace(trace_file_of(paths[0])))
		return false;
	return find_sources(&loading, paths, count, &err) < 0 || !is_run(&loading);
}

int load_model(struct model **ret_model, const char *const *paths, size_t count,
	const struct load_options *options, struct errmsg *err)
{
	static const struct load_options defaults = {0};
	static const struct shown_options all = {0};
	static const struct selection everything = {0};
	_cleanup_(loading_done) struct loading loading = {.lock = PTHREAD_MUTEX_INITIALIZER};
	const struct shown_options *shown;
	const struct selection *selection;
	int r;

	if (!options)
		options = &defaults;
	shown = options->shown ?: &all;
	selection = options->selection ?: &everything;
	if (count == 1 && !options->rows_only && !trace_file_is_trace(trace_file_of(paths[0])))
		return load_capture(paths[0], shown, selection, ret_model, err);
	loading.keep_arguments = options->keep_arguments;
	r = find_sources(&loading, paths, count, err);
	if (r < 0)
		return r;
	if (!options->rows_only && is_run(&loading))
		return load_recordings(ret_model, &loading, shown, selection, err);
	return load_rows(ret_model, &loading, err);
}
