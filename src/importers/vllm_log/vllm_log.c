/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vLLM log as a capture: iterations are ranges of their engine, requests whose end the log tells
 * are ranges that overlap, and what the engine says of itself every few seconds are marks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "importers/importers.h"
#include "importers/vllm_log/state.h"

/* Of the processes that lines name: an engine has one for each of its workers. */
#define PROCESSES_MAX 1024
/* For lines that name none. */
#define UNKNOWN_PID 1

/* ---- reading ---- */

typedef int line_function(struct log_import *import, const struct vllm_log_line *line);

static int each_line(struct log_import *import, line_function *on_line)
{
	const char *text = import->input->bytes, *end = text + import->input->length;
	int result = 0;

	while (text < end && result == 0) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)) ?: end;
		struct vllm_log_line line;

		if (vllm_log_parse(text, (size_t)(newline - text), &line))
			result = on_line(import, &line);
		else
			import->lines_without_time += newline > text;
		text = MIN(newline + 1, end);
	}
	return result;
}

/* What the clock must know before the first line. */
struct year_search {
	struct log_import import;
	struct vllm_log_time first, last;
	unsigned new_years, lines;
};

static int see_time(struct log_import *import, const struct vllm_log_line *line)
{
	struct year_search *search = (struct year_search *)import;

	if (!search->lines++)
		search->first = line->time;
	else if (search->last.month - line->time.month > 6)
		search->new_years++;
	search->last = line->time;
	return 0;
}

static int add_event(
	struct log_import *import, uint64_t time_ns, enum log_event_kind kind, size_t index)
{
	struct log_event event = {
		.time_ns = time_ns,
		.sequence = (uint32_t)import->events.count,
		.kind = kind,
		.index = index,
	};

	return array_append(&import->events, event);
}

static int tell_process(struct log_import *import, const struct vllm_log_line *line, uint32_t pid)
{
	char name[64] = "vllm";
	struct capture_process process = {.pid = pid, .name = name};
	struct capture_thread thread = {.pid = pid, .tid = pid, .name = name};
	size_t length = MIN(line->process.length, sizeof(name) - 1);
	int r;

	if (length) {
		memcpy(name, line->process.bytes, length);
		name[length] = '\0';
	}
	r = capture_writer_process(import->writer, &process);
	return r < 0 ? r : capture_writer_thread(import->writer, &thread);
}

/* The process that wrote the line; NULL: one too many, or out of memory. */
static int find_process(struct log_import *import, const struct vllm_log_line *line,
	struct log_process **ret_process)
{
	uint32_t pid = line->pid ?: UNKNOWN_PID;
	struct log_process added = {.pid = pid};
	int result;

	*ret_process = NULL;
	array_foreach (&import->processes, process) {
		if (process->pid == pid) {
			*ret_process = process;
			return 0;
		}
	}
	if (import->processes.count >= PROCESSES_MAX) {
		import->processes_left_out++;
		return 0;
	}
	result = array_append(&import->processes, added);
	if (result < 0)
		return result;
	*ret_process = &import->processes.items[import->processes.count - 1];
	return tell_process(import, line, pid);
}

/*
 * Its line is written at its end. Where times are in whole seconds many have the same: durations
 * are kept, and none begins before the one before it has ended.
 */
static int add_iteration(struct log_import *import, const struct vllm_log_line *line,
	struct log_process *process, uint64_t time_ns)
{
	struct log_iteration iteration = {.what = line->iteration, .pid = process->pid};
	uint64_t elapsed_ns = line->iteration.elapsed_ns;
	uint64_t begin_ns = MAX(process->busy_until_ns, time_ns - MIN(time_ns, elapsed_ns));
	size_t index = import->iterations.count;
	int result = array_append(&import->iterations, iteration);

	process->busy_until_ns = begin_ns + elapsed_ns;
	result = result ?: add_event(import, begin_ns, EVENT_ITERATION_BEGIN, index);
	return result ?: add_event(import, begin_ns + elapsed_ns, EVENT_ITERATION_END, index);
}

static int add_metrics(struct log_import *import, const struct vllm_log_line *line,
	const struct log_process *process, uint64_t time_ns)
{
	struct log_metrics metrics = {.what = line->metrics, .pid = process->pid};
	int result = add_event(import, time_ns, EVENT_METRICS, import->metrics.count);

	return result ?: array_append(&import->metrics, metrics);
}

/* The latest request of this id that has not ended; with `begins` a new one where there is none. */
static int find_request(struct log_import *import, const struct vllm_log_text *text, uint32_t pid,
	bool begins, struct log_request **ret_request)
{
	struct log_request added = {.pid = pid};
	uint64_t index;
	int result = intern_add(&import->ids, text->bytes, text->length, &added.id);

	*ret_request = NULL;
	if (result < 0)
		return result;
	if (map_u64_get(&import->latest, added.id, &index) &&
		!import->requests.items[index].end_ns) {
		*ret_request = &import->requests.items[index];
		return 0;
	}
	if (!begins)
		return 0;
	result = map_u64_set(&import->latest, added.id, import->requests.count);
	result = result ?: array_append(&import->requests, added);
	if (result == 0)
		*ret_request = &import->requests.items[import->requests.count - 1];
	return result;
}

static int begin_request(
	struct log_import *import, const struct vllm_log_line *line, uint32_t pid, uint64_t time_ns)
{
	struct log_request *request;
	int result = find_request(import, &line->request, pid, true, &request);

	if (result < 0)
		return result;
	if (line->kind == VLLM_LOG_RECEIVED)
		request->received_ns = request->received_ns ?: time_ns;
	else
		request->added_ns = request->added_ns ?: time_ns;
	return 0;
}

/* One line may end several requests. */
static int end_requests(
	struct log_import *import, const struct vllm_log_line *line, uint32_t pid, uint64_t time_ns)
{
	const char *at = line->request.bytes, *end = at + line->request.length;
	int result = 0;

	while (at < end && result == 0) {
		const char *comma = memchr(at, ',', (size_t)(end - at)) ?: end;
		struct vllm_log_text text = {at, (size_t)(comma - at)};
		struct log_request *request = NULL;

		if (text.length)
			result = find_request(import, &text, pid, false, &request);
		if (request) {
			request->end_ns = time_ns;
			request->outcome = line->kind == VLLM_LOG_FINISHED  ? "finished"
					   : line->kind == VLLM_LOG_ABORTED ? "aborted"
									    : "failed";
		} else if (text.length && result == 0) {
			import->ends_without_begin++;
		}
		at = MIN(comma + 1, end);
	}
	return result;
}

static int read_line(struct log_import *import, const struct vllm_log_line *line)
{
	uint64_t time_ns = vllm_log_clock_ns(&import->clock, &line->time);
	struct log_process *process;
	int result;

	if (line->kind == VLLM_LOG_OTHER)
		return 0;
	result = find_process(import, line, &process);
	if (result < 0 || !process)
		return result;
	import->has_coarse_time = import->has_coarse_time || !line->time.has_fraction;
	switch (line->kind) {
	case VLLM_LOG_ITERATION:
		return add_iteration(import, line, process, time_ns);
	case VLLM_LOG_METRICS:
		return add_metrics(import, line, process, time_ns);
	case VLLM_LOG_RECEIVED:
	case VLLM_LOG_ADDED:
		return begin_request(import, line, process->pid, time_ns);
	case VLLM_LOG_FINISHED:
	case VLLM_LOG_ABORTED:
	case VLLM_LOG_FAILED:
		return end_requests(import, line, process->pid, time_ns);
	case VLLM_LOG_OTHER:
		break;
	}
	return 0;
}

/* ---- requests: their lanes and events ---- */

static uint64_t request_begin_ns(const struct log_request *request)
{
	return request->received_ns ?: request->added_ns;
}

static int by_begin(const void *left, const void *right)
{
	const struct log_request *a = left, *b = right;
	uint64_t a_ns = request_begin_ns(a), b_ns = request_begin_ns(b);

	return a_ns < b_ns ? -1 : a_ns > b_ns;
}

/* Ranges on one lane nest: a request gets the first lane that is free. */
static int choose_lane(struct log_import *import, struct log_request *request)
{
	uint64_t begin_ns = request_begin_ns(request);
	size_t lane = 0;

	while (lane < import->lanes.count && import->lanes.items[lane] > begin_ns)
		lane++;
	if (lane == import->lanes.count && array_append(&import->lanes, 0) < 0)
		return -ENOMEM;
	import->lanes.items[lane] = request->end_ns;
	request->lane = (uint32_t)lane + 1;
	return 0;
}

static int add_request_events(struct log_import *import, size_t index)
{
	struct log_request *request = &import->requests.items[index];
	uint64_t begin_ns = request_begin_ns(request);
	int result;

	if (!request->end_ns)
		return add_event(import, begin_ns, EVENT_REQUEST_MARK, index);
	request->end_ns = MAX(request->end_ns, begin_ns);
	result = choose_lane(import, request);
	result = result ?: add_event(import, begin_ns, EVENT_REQUEST_BEGIN, index);
	if (request->received_ns && request->added_ns >= begin_ns &&
		request->added_ns <= request->end_ns) {
		result = result ?: add_event(import, begin_ns, EVENT_QUEUED_BEGIN, index);
		result = result ?: add_event(import, request->added_ns, EVENT_QUEUED_END, index);
	}
	return result ?: add_event(import, request->end_ns, EVENT_REQUEST_END, index);
}

/* ---- all of it ---- */

static void add_notes(struct log_import *import)
{
	struct import_result *result = import->result;
	uint64_t without_end = 0;

	array_foreach (&import->requests, request)
		without_end += !request->end_ns;
	if (import->has_coarse_time)
		import_note(result,
			"the log's times are whole seconds: iterations keep their measured "
			"durations and follow one another, the times of requests are exact to 1 s");
	if (without_end)
		import_note(result,
			"%llu of %zu requests have no end in the log, and are marks: vLLM logs the "
			"end with --enable-log-requests --enable-log-outputs",
			(unsigned long long)without_end, import->requests.count);
	if (import->ends_without_begin)
		import_note(result, "%llu ends belong to requests whose begin is not in the log",
			(unsigned long long)import->ends_without_begin);
	if (import->processes_left_out)
		import_note(result, "%llu lines were left out: they are of more than %d processes",
			(unsigned long long)import->processes_left_out, PROCESSES_MAX);
	if (import->lines_without_time)
		import_note(result, "%llu lines have no time, and were left out",
			(unsigned long long)import->lines_without_time);
}

/* The log's first line is the begin of the recording; its times count from 1970. */
static int write_session(struct log_import *import, const struct vllm_log_time *first)
{
	struct vllm_log_clock clock = import->clock;
	uint64_t begin_ns = vllm_log_clock_ns(&clock, first);
	const char *const command[] = {import->input->path};
	struct capture_session session = {
		.sonde_version = SONDE_VERSION,
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.command = command,
		.command_count = 1,
		.unwind_mode = "",
		.start_time_ns = begin_ns,
		.start_realtime_ns = begin_ns,
		.start_boottime_ns = begin_ns,
	};

	return capture_writer_session(import->writer, &session);
}

static int run(struct log_import *import, const struct vllm_log_time *first, struct errmsg *err)
{
	int result = write_session(import, first);

	result = result ?: each_line(import, read_line);
	if (import->requests.count)
		qsort(import->requests.items, import->requests.count,
			sizeof(*import->requests.items), by_begin);
	for (size_t i = 0; i < import->requests.count && result == 0; i++)
		result = add_request_events(import, i);
	if (result < 0)
		return errmsg_set(
			err, result, "memory ran out while reading %s", import->input->path);
	if (!import->events.count)
		return errmsg_set(err, -ENODATA,
			"%s has no line that vLLM's engine writes: give the log of a server that "
			"ran with --enable-log-requests or --enable-logging-iteration-details",
			import->input->path);
	result = vllm_log_write_events(import);
	if (result < 0)
		return errmsg_set(
			err, result, "memory ran out while reading %s", import->input->path);
	add_notes(import);
	return 0;
}

static int vllm_log_import(const struct import_input *input, struct capture_writer *writer,
	struct import_result *ret_result, struct errmsg *err)
{
	struct year_search search = {.import = {.input = input}};
	struct log_import import = {.input = input, .writer = writer, .result = ret_result};
	int result;

	*ret_result = (struct import_result){0};
	each_line(&search.import, see_time);
	if (search.lines)
		vllm_log_clock_begin(
			&import.clock, &search.last, search.new_years, input->modified_s);
	result = run(&import, &search.first, err);
	array_done(&import.iterations);
	array_done(&import.metrics);
	array_done(&import.requests);
	array_done(&import.events);
	array_done(&import.processes);
	array_done(&import.lanes);
	map_u64_done(&import.latest);
	intern_done(&import.ids);
	return result;
}

/* Its lines may come late: any text may be one, and vllm_log_import() says when it is none. */
static bool vllm_log_knows(const char *head, size_t length)
{
	return !length || !memchr(head, '\0', length);
}

const struct importer vllm_log_importer = {
	.name = "vllm-log",
	.description = "the log of a vLLM server: iterations, requests, throughput",
	.knows = vllm_log_knows,
	.knows_any_text = true,
	.import = vllm_log_import,
};
