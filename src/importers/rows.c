/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/rows.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text_input.h"

static const char replacement[] = "\xef\xbf\xbd";

static const char *const category_names[TRACE_CATEGORY_MAX] = {
	[TRACE_OTHER] = "other",
	[TRACE_CPU_OP] = "cpu_op",
	[TRACE_USER_ANNOTATION] = TRACE_ANNOTATION_CATEGORY,
	[TRACE_PYTHON_FUNCTION] = "python_function",
	[TRACE_RUNTIME] = "cuda_runtime",
	[TRACE_DRIVER] = "cuda_driver",
	[TRACE_KERNEL] = "kernel",
	[TRACE_MEMCPY] = "gpu_memcpy",
	[TRACE_MEMSET] = "gpu_memset",
	[TRACE_GPU_ANNOTATION] = "gpu_user_annotation",
	[TRACE_SYNC] = "cuda_sync",
	[TRACE_OVERHEAD] = "overhead",
	[TRACE_CPU_INSTANT] = "cpu_instant_event",
};

uint64_t import_max_bytes(const struct trace_read_options *options)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	if (options && options->max_bytes)
		return options->max_bytes;
	if (pages <= 0 || page_bytes <= 0)
		return UINT64_MAX;
	return (uint64_t)pages * (uint64_t)page_bytes / 4 * 3;
}

#define READ_BYTES ((size_t)1 << 20)

int import_read_file(const char *path, const struct trace_read_options *options,
	struct strbuf *ret_bytes, bool *ret_truncated, struct errmsg *err)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	uint64_t max_bytes = import_max_bytes(options), done, total;
	struct text_window window = {0};
	ssize_t got;
	int r = text_input_open(&input, path, err);

	if (r == 0)
		r = text_input_move(input, 0, &window, err);
	if (r < 0)
		return r;
	strbuf_add_bytes(ret_bytes, window.bytes, window.length);
	do {
		char *room = (char *)strbuf_room(ret_bytes, READ_BYTES);

		if (!room)
			return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
		got = text_input_read(input, room, READ_BYTES, err);
		if (got > 0)
			strbuf_take(ret_bytes, (size_t)got);
		done = text_input_position(input, &total);
		if (options && options->progress)
			options->progress(options->progress_context, done, total);
		if (ret_bytes->length > max_bytes)
			return errmsg_set(err, -EFBIG,
				"cannot read %s: it needs more than %.3g GB of memory, which is "
				"the limit here",
				path, (double)max_bytes / 1e9);
	} while (got > 0);
	*ret_truncated = text_input_damage(input) != TEXT_WHOLE;
	return (int)got;
}

/* ---- texts ---- */

static size_t clean_length(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length && text[at] && (unsigned char)text[at] < 0x80)
		at++;
	return at;
}

static int add_cleaned(
	struct intern *strings, const char *text, size_t length, uint32_t *ret_string)
{
	_cleanup_strbuf_ struct strbuf clean = {0};
	int r;

	for (size_t at = 0, step; at < length; at += step) {
		step = text[at] ? utf8_sequence_length(text + at, length - at) : 0;
		if (step)
			strbuf_add_bytes(&clean, text + at, step);
		else
			strbuf_add(&clean, replacement);
		step = MAX(step, (size_t)1);
	}
	r = strbuf_status(&clean);
	if (r == 0)
		r = intern_add(strings, clean.data, clean.length, ret_string);
	return r;
}

int import_rows_text(
	struct import_rows *rows, const char *text, size_t length, uint32_t *ret_string)
{
	struct intern *strings = &rows->trace->strings;
	int r;

	if (clean_length(text, length) < length)
		r = add_cleaned(strings, text, length, ret_string);
	else
		r = intern_add(strings, text, length, ret_string);
	if (r > 0)
		rows->text_bytes += length + sizeof(struct intern_entry);
	return rows->text_bytes > rows->max_bytes ? -EFBIG : MIN(r, 0);
}

/* ---- begin and end ---- */

int import_rows_init(
	struct import_rows *rows, const char *path, const struct trace_read_options *options)
{
	int r = 0;

	*rows = (struct import_rows){
		.trace = trace_new(path), .path = path, .max_bytes = import_max_bytes(options)};
	if (!rows->trace)
		return -ENOMEM;
	rows->trace->has_fractions = true;
	rows->trace->arguments_kept = options && options->keep_arguments;
	for (size_t i = 0; r == 0 && i < TRACE_CATEGORY_MAX; i++)
		r = import_rows_text(
			rows, category_names[i], strlen(category_names[i]), &rows->categories[i]);
	return r;
}

void import_rows_done(struct import_rows *rows)
{
	rows->trace = trace_free(rows->trace);
	intern_done(&rows->tracks);
	intern_done(&rows->correlations);
}

/* Names of devices as Kineto's files have them: that is where captures keep them. */
static int write_header(struct import_rows *rows)
{
	_cleanup_strbuf_ struct strbuf header = {0};
	int r;

	if (!rows->trace->arguments_kept || !rows->trace->devices.count)
		return 0;
	strbuf_add(&header, "\"deviceProperties\":[");
	array_foreach (&rows->trace->devices, device) {
		const char *name = trace_text(rows->trace, device->name);

		strbuf_addf(&header, "%s{\"id\":%lld,\"name\":\"",
			device == rows->trace->devices.items ? "" : ",", (long long)device->number);
		json_escape(&header, name, strlen(name));
		strbuf_add(&header, "\"}");
	}
	strbuf_add_char(&header, ']');
	r = strbuf_status(&header);
	return r < 0 ? r : import_rows_text(rows, header.data, header.length, &rows->trace->header);
}

int import_rows_finish(struct import_rows *rows, int r, const char *what, struct trace **ret_trace,
	struct errmsg *err)
{
	if (r == 0 && !rows->trace->events.count)
		return errmsg_set(err, -ENODATA, "cannot read %s: %s", rows->path, what);
	if (r == 0)
		r = write_header(rows);
	if (r == 0)
		r = trace_finish(rows->trace);
	if (r == -EFBIG)
		return errmsg_set(err, r,
			"cannot read %s: its first %zu events need more than %.3g GB of memory, "
			"which is the limit here; record less, or read it on a machine with more",
			rows->path, rows->trace->events.count, (double)rows->max_bytes / 1e9);
	if (r == -ENOMEM)
		return errmsg_set(err, r, "cannot read %s: out of memory", rows->path);
	if (r == 0)
		*ret_trace = TAKE_PTR(rows->trace);
	return r;
}

int import_rows_note(struct import_rows *rows, const char *format, ...)
{
	struct errmsg note;
	uint32_t string;
	va_list arguments;
	int r;

	va_start(arguments, format);
	vsnprintf(note.text, sizeof(note.text), format, arguments);
	va_end(arguments);
	r = import_rows_text(rows, note.text, strlen(note.text), &string);
	return r < 0 ? r : array_append(&rows->trace->notes, string);
}

/* ---- tracks ---- */

struct track_key {
	int64_t pid, tid;
	uint64_t also;
	uint32_t pid_text, tid_text;
};

struct trace_track import_rows_thread(int64_t pid, int64_t tid)
{
	return (struct trace_track){
		.pid = pid,
		.tid = tid,
		.process_sort = TRACE_NO_NUMBER,
		.thread_sort = TRACE_NO_NUMBER,
	};
}

int import_rows_track(struct import_rows *rows, const struct trace_track *track, uint64_t also,
	uint32_t *ret_track)
{
	const struct track_key key = {
		track->pid, track->tid, also, track->pid_text, track->tid_text};
	int r = intern_add(&rows->tracks, &key, sizeof(key), ret_track);

	return r <= 0 ? r : array_append(&rows->trace->tracks, *track);
}

int import_rows_correlation(
	struct import_rows *rows, uint64_t process, uint64_t correlation, uint64_t *ret_number)
{
	const uint64_t key[] = {process, correlation};
	uint32_t id;
	int r = intern_add(&rows->correlations, key, sizeof(key), &id);

	*ret_number = id + 1ULL;
	return MIN(r, 0);
}

/* ---- rows ---- */

struct trace_event import_rows_event(const struct import_rows *rows, enum trace_category category)
{
	return (struct trace_event){
		.duration_ns = TRACE_NO_DURATION,
		.external_id = TRACE_NO_ID,
		.category = (uint8_t)category,
		.category_name = rows->categories[category],
		.detail = MODEL_NONE,
	};
}

static uint64_t bytes_in_use(const struct import_rows *rows)
{
	const struct trace *trace = rows->trace;

	return rows->text_bytes + trace->events.count * sizeof(*trace->events.items) +
	       trace->works.count * sizeof(*trace->works.items) +
	       trace->ops.count * sizeof(*trace->ops.items) +
	       trace->memory.count * sizeof(*trace->memory.items);
}

int import_rows_add(struct import_rows *rows, struct trace_event *event)
{
	struct trace *trace = rows->trace;

	if (event->duration_ns != TRACE_NO_DURATION && event->duration_ns < 0) {
		event->duration_ns = 0;
		trace->damage.repaired_times++;
	}
	event->file_index = (uint32_t)trace->events.count;
	if (trace->events.count >= MODEL_NONE || bytes_in_use(rows) > rows->max_bytes)
		return -EFBIG;
	return array_append(&trace->events, *event);
}

int import_rows_add_work(
	struct import_rows *rows, struct trace_event *event, const struct trace_work *work)
{
	event->detail = (uint32_t)rows->trace->works.count;
	return array_append(&rows->trace->works, *work) < 0 ? -ENOMEM
							    : import_rows_add(rows, event);
}

int import_rows_add_op(
	struct import_rows *rows, struct trace_event *event, const struct trace_op *op)
{
	event->detail = (uint32_t)rows->trace->ops.count;
	return array_append(&rows->trace->ops, *op) < 0 ? -ENOMEM : import_rows_add(rows, event);
}

int import_rows_add_memory(
	struct import_rows *rows, struct trace_event *event, const struct trace_memory *memory)
{
	event->detail = (uint32_t)rows->trace->memory.count;
	return array_append(&rows->trace->memory, *memory) < 0 ? -ENOMEM
							       : import_rows_add(rows, event);
}

/* A category of another kind has that name: an annotation cannot have it, too. */
static bool is_taken(const struct import_rows *rows, uint32_t name)
{
	for (size_t i = 0; i < TRACE_CATEGORY_MAX; i++) {
		if (rows->categories[i] == name)
			return true;
	}
	return false;
}

int import_rows_add_range(struct import_rows *rows, struct trace_event *event, const char *domain)
{
	_cleanup_strbuf_ struct strbuf argument = {0};
	struct trace_op op = trace_no_op;
	uint32_t name = 0;
	int r;

	if (!domain || !*domain)
		return import_rows_add(rows, event);
	r = import_rows_text(rows, domain, strlen(domain), &name);
	if (r < 0)
		return r;
	if (is_taken(rows, name))
		return import_rows_add(rows, event);
	strbuf_add(&argument, "\"" TRACE_RANGE_DOMAIN "\":\"");
	json_escape(&argument, domain, strlen(domain));
	strbuf_add_char(&argument, '"');
	r = strbuf_status(&argument);
	if (r == 0)
		r = import_rows_text(rows, argument.data, argument.length, &op.others);
	event->category_name = name;
	return r < 0 ? r : import_rows_add_op(rows, event, &op);
}
