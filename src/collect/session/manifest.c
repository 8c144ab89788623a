/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "capture/split/split.h"
#include "sources/process/proc_ranks.h"

#define MANIFEST_VERSION 1
/* So many windows make a document that is not written again at each of them. */
#define MANY_WINDOWS      100
#define WRITE_INTERVAL_NS NS_PER_S

struct manifest_process {
	uint32_t pid;
	bool joined_late;
	struct proc_ranks ranks;
};

struct manifest_window {
	struct capture_window window;
	char *label;
};

struct manifest_steps {
	uint32_t pid;
	char *name;
	uint64_t count;
};

struct manifest {
	char *path, *capture_path, *sonde_version, *host, *session_folder;
	uint64_t start_ns, start_realtime_ns;
	ARRAY_OF(struct manifest_process) processes;
	ARRAY_OF(struct manifest_window) windows;
	ARRAY_OF(struct manifest_steps) steps;
	struct output_how how;
	bool is_split;
	uint64_t written_ns; /* when it was last */
};

/* NULL stays NULL; false: no memory. */
static bool copy_text(char **ret_copy, const char *text)
{
	*ret_copy = text ? strdup(text) : NULL;
	return !text || *ret_copy;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int manifest_new(struct manifest **ret_manifest, const char *capture_path,
	const struct output_how *how, const struct capture_session *session,
	const char *session_folder)
{
	struct manifest *manifest = calloc(1, sizeof(*manifest));

	if (!manifest)
		return -ENOMEM;
	/* It is written again and again, in its own place. */
	manifest->how = (struct output_how){.access = how->access, .group = how->group};
	manifest->start_ns = session->start_time_ns;
	manifest->start_realtime_ns = session->start_realtime_ns;
	if (asprintf(&manifest->path, "%s" MANIFEST_SUFFIX, capture_path) < 0)
		manifest->path = NULL;
	if (!manifest->path || !copy_text(&manifest->capture_path, capture_path) ||
		!copy_text(&manifest->sonde_version, session->sonde_version) ||
		!copy_text(&manifest->host, session->host) ||
		!copy_text(&manifest->session_folder, session_folder)) {
		manifest_free(manifest);
		return -ENOMEM;
	}
	*ret_manifest = manifest;
	return 0;
}

int manifest_rename(struct manifest *manifest, const char *capture_path)
{
	char *path, *copy = strdup(capture_path);

	if (!copy || asprintf(&path, "%s" MANIFEST_SUFFIX, capture_path) < 0) {
		free(copy);
		return -ENOMEM;
	}
	free(manifest->path);
	free(manifest->capture_path);
	manifest->path = path;
	manifest->capture_path = copy;
	return 0;
}

struct manifest *manifest_free(struct manifest *manifest)
{
	if (!manifest)
		return NULL;
	array_foreach (&manifest->windows, window)
		free(window->label);
	array_foreach (&manifest->steps, steps)
		free(steps->name);
	array_done(&manifest->windows);
	array_done(&manifest->steps);
	array_done(&manifest->processes);
	free(manifest->path);
	free(manifest->capture_path);
	free(manifest->sonde_version);
	free(manifest->host);
	free(manifest->session_folder);
	free(manifest);
	return NULL;
}

/* ---- processes ---- */

int manifest_process(struct manifest *manifest, uint32_t pid, bool joined_late)
{
	struct manifest_process process = {
		.pid = pid, .joined_late = joined_late, .ranks = proc_read_ranks(pid)};

	array_foreach (&manifest->processes, known) {
		if (known->pid != pid)
			continue;
		if (process.ranks.rank >= 0) /* else it may have ended */
			known->ranks = process.ranks;
		return 0;
	}
	return array_append(&manifest->processes, process);
}

/* ---- steps and windows ---- */

int manifest_step(struct manifest *manifest, uint32_t pid, const char *name)
{
	struct manifest_steps steps = {.pid = pid, .count = 1};
	int r;

	array_foreach (&manifest->steps, known) {
		if (known->pid == pid && strcmp(known->name, name) == 0) {
			known->count++;
			return 0;
		}
	}
	if (!copy_text(&steps.name, name))
		return -ENOMEM;
	r = array_append(&manifest->steps, steps);
	if (r < 0)
		free(steps.name);
	return r;
}

int manifest_window(struct manifest *manifest, const struct capture_window *window)
{
	struct manifest_window kept = {.window = *window};
	int r;

	if (!copy_text(&kept.label, window->label))
		return -ENOMEM;
	array_foreach (&manifest->windows, known) {
		if (known->window.number != window->number)
			continue;
		free(known->label);
		*known = kept;
		return 0;
	}
	r = array_append(&manifest->windows, kept);
	if (r < 0)
		free(kept.label);
	return r;
}

void manifest_split(struct manifest *manifest)
{
	manifest->is_split = true;
}

/* ---- the document ---- */

static void member_text(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && *text)
		json_string(json, text);
	else
		json_null(json);
}

static void member_known(struct json_writer *json, const char *key, bool is_known, uint64_t value)
{
	json_key(json, key);
	if (is_known)
		json_u64(json, value);
	else
		json_null(json);
}

static void member_moment(struct json_writer *json, const struct manifest *manifest,
	const char *const keys[2], bool is_known, uint64_t time_ns)
{
	uint64_t since_start_ns = time_ns - manifest->start_ns; /* may be before it: it wraps */

	member_known(json, keys[0], is_known && manifest->start_realtime_ns,
		manifest->start_realtime_ns + since_start_ns);
	member_known(json, keys[1], is_known, time_ns);
}

/* Null where memory ran out. */
static void member_file(struct json_writer *json, const struct manifest *manifest, uint32_t window)
{
	_cleanup_free_ char *part = NULL;

	if (manifest->is_split)
		part = capture_split_path(manifest->capture_path, window);
	else
		copy_text(&part, manifest->capture_path);
	member_text(json, "file", part ? file_name(part) : NULL);
}

static void write_window(struct json_writer *json, const struct manifest *manifest,
	const struct manifest_window *entry)
{
	static const char *const begin[] = {"begin_unix_time_ns", "begin_monotonic_ns"};
	static const char *const end[] = {"end_unix_time_ns", "end_monotonic_ns"};
	const struct capture_window *window = &entry->window;
	bool has_steps = window->last_step >= window->first_step;

	json_begin_object(json);
	member_known(json, "number", true, window->number);
	member_text(json, "label", entry->label);
	member_moment(json, manifest, begin, true, window->begin_ns);
	member_moment(json, manifest, end, window->end_ns != 0, window->end_ns);
	member_text(json, "opened_by", capture_window_trigger_name(window->opened_by));
	member_text(json, "closed_by",
		window->end_ns ? capture_window_reason_name(window->closed_by) : NULL);
	member_known(json, "leader_pid", window->leader_pid != 0, window->leader_pid);
	member_known(json, "first_step", has_steps, window->first_step);
	member_known(json, "last_step", has_steps, window->last_step);
	member_file(json, manifest, window->number);
	json_end_object(json);
}

static void member_number(struct json_writer *json, const char *key, int64_t number)
{
	member_known(json, key, number >= 0, (uint64_t)number);
}

static void write_process(struct json_writer *json, const struct manifest_process *process)
{
	json_begin_object(json);
	member_known(json, "pid", true, process->pid);
	member_number(json, "rank", process->ranks.rank);
	member_number(json, "world_size", process->ranks.world_size);
	member_number(json, "local_rank", process->ranks.local_rank);
	json_key(json, "joined_late");
	json_bool(json, process->joined_late);
	json_end_object(json);
}

static void write_lists(struct json_writer *json, const struct manifest *manifest)
{
	json_key(json, "windows");
	json_begin_array(json);
	array_foreach (&manifest->windows, window)
		write_window(json, manifest, window);
	json_end_array(json);
	json_key(json, "processes");
	json_begin_array(json);
	array_foreach (&manifest->processes, process)
		write_process(json, process);
	json_end_array(json);
	json_key(json, "steps");
	json_begin_array(json);
	array_foreach (&manifest->steps, steps) {
		json_begin_object(json);
		member_known(json, "pid", true, steps->pid);
		member_text(json, "name", steps->name);
		member_known(json, "count", true, steps->count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_document(struct strbuf *out, const struct manifest *manifest, bool is_last)
{
	static const char *const start[] = {"start_unix_time_ns", "start_monotonic_ns"};
	struct json_writer json = {.out = out, .pretty = true};

	json_begin_object(&json);
	member_text(&json, "format", "sonde-windows");
	member_known(&json, "version", true, MANIFEST_VERSION);
	member_text(&json, "sonde_version", manifest->sonde_version);
	member_text(&json, "capture", file_name(manifest->capture_path));
	member_text(&json, "host", manifest->host);
	member_text(&json, "session", manifest->session_folder);
	member_moment(&json, manifest, start, true, manifest->start_ns);
	json_key(&json, "recording_ended");
	json_bool(&json, is_last);
	write_lists(&json, manifest);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
}

int manifest_write(struct manifest *manifest, bool is_last, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf document = {0};
	struct errmsg reason = {""};
	uint64_t now_ns = monotonic_now_ns();
	int r;

	if (!is_last && manifest->windows.count > MANY_WINDOWS &&
		now_ns - manifest->written_ns < WRITE_INTERVAL_NS)
		return 0;
	manifest->written_ns = now_ns;
	write_document(&document, manifest, is_last);
	r = strbuf_status(&document);
	if (r < 0)
		errmsg_set(&reason, r, "%s", strerror(-r));
	if (r == 0)
		r = output_place_write(
			manifest->path, &manifest->how, document.data, document.length, &reason);
	if (r < 0)
		return errmsg_set(err, r,
			"the list of windows could not be written to %s: %s; the capture has all "
			"of them (sonde report --by window)",
			manifest->path, reason.text);
	return 0;
}
