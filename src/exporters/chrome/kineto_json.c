/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written by hand, not with base/json.h: traces have millions of events, and most of an event is
 * text that was JSON before. Strings are escaped once each.
 */
#include "exporters/chrome/kineto_json.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "model/model.h"

struct document {
	struct strbuf *out;
	const struct trace *trace;
	const struct chrome_clock *clock; /* NULL: times are as the trace has them */
	struct strbuf escaped;            /* strings with quotes, one after the other */
	size_t *begins; /* by string: where it begins there, + 1; 0: it is not there yet */
	uint32_t *lengths;
};

static void document_done(struct document *document)
{
	strbuf_done(&document->escaped);
	free(document->begins);
	free(document->lengths);
}

static int document_init(struct document *document)
{
	size_t count = document->trace->strings.entries.count + 1;

	document->begins = calloc(count, sizeof(*document->begins));
	document->lengths = calloc(count, sizeof(*document->lengths));
	return document->begins && document->lengths ? 0 : -ENOMEM;
}

/* ---- values ---- */

static void add_digits(struct strbuf *out, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	strbuf_add_bytes(out, digits + at, sizeof(digits) - at);
}

static void add_signed(struct strbuf *out, int64_t value)
{
	if (value < 0)
		strbuf_add_char(out, '-');
	add_digits(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Microseconds: with three decimals where the trace has any. */
static void add_time(struct document *document, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char fraction[] = ".000";

	if (ns < 0)
		strbuf_add_char(document->out, '-');
	add_digits(document->out, size / NS_PER_US);
	if (!document->trace->has_fractions)
		return;
	for (unsigned i = 3, left = (unsigned)(size % NS_PER_US); i > 0; i--, left /= 10)
		fraction[i] = (char)('0' + left % 10);
	strbuf_add_bytes(document->out, fraction, 4);
}

static void add_start(struct document *document, int64_t ns)
{
	if (document->clock) {
		chrome_add_time(
			document->out, document->clock, document->clock->origin_ns + (uint64_t)ns);
		return;
	}
	strbuf_add(document->out, ",\"ts\":");
	add_time(document, ns);
}

static void add_span(struct document *document, int64_t ns, int64_t duration_ns)
{
	uint64_t start_ns = document->clock ? document->clock->origin_ns + (uint64_t)ns : 0;

	if (document->clock) {
		chrome_add_span(
			document->out, document->clock, start_ns, start_ns + (uint64_t)duration_ns);
		return;
	}
	add_start(document, ns);
	strbuf_add(document->out, ",\"dur\":");
	add_time(document, duration_ns);
}

/* In quotes. */
static void add_string(struct document *document, uint32_t string)
{
	const struct intern_entry *entry = &document->trace->strings.entries.items[string];
	struct strbuf *escaped = &document->escaped;

	if (!document->begins[string]) {
		document->begins[string] = escaped->length + 1;
		strbuf_add_char(escaped, '"');
		json_escape(escaped, entry->bytes, entry->length);
		strbuf_add_char(escaped, '"');
		document->lengths[string] =
			(uint32_t)(escaped->length + 1 - document->begins[string]);
	}
	if (strbuf_status(escaped) == 0)
		strbuf_add_bytes(document->out, escaped->data + document->begins[string] - 1,
			document->lengths[string]);
}

/* A string that is JSON already. */
static void add_json(struct document *document, uint32_t string)
{
	const struct intern_entry *entry = &document->trace->strings.entries.items[string];

	strbuf_add_bytes(document->out, entry->bytes, entry->length);
}

/* ---- members, each after a comma where there is one before it ---- */

struct members {
	struct document *document;
	bool any;
};

static struct strbuf *add_key(struct members *members, const char *key)
{
	struct strbuf *out = members->document->out;

	strbuf_add(out, members->any ? ",\"" : "\"");
	strbuf_add(out, key);
	strbuf_add_bytes(out, "\":", 2);
	members->any = true;
	return out;
}

static void member_number(struct members *members, const char *key, int64_t value)
{
	if (value != TRACE_NO_NUMBER)
		add_signed(add_key(members, key), value);
}

static void member_id(struct members *members, const char *key, uint64_t value)
{
	if (value != TRACE_NO_ID)
		add_digits(add_key(members, key), value);
}

static void member_count(struct members *members, const char *key, uint64_t value)
{
	if (value)
		add_digits(add_key(members, key), value);
}

static void member_json(struct members *members, const char *key, uint32_t string)
{
	if (!string)
		return;
	add_key(members, key);
	add_json(members->document, string);
}

static void member_string(struct members *members, const char *key, uint32_t string)
{
	if (!string)
		return;
	add_key(members, key);
	add_string(members->document, string);
}

static void member_sizes(
	struct members *members, const char *key, uint64_t x, uint64_t y, uint64_t z)
{
	const uint64_t sizes[] = {x, y, z};
	struct strbuf *out;

	if (!x && !y && !z)
		return;
	out = add_key(members, key);
	for (unsigned i = 0; i < 3; i++) {
		strbuf_add_char(out, i ? ',' : '[');
		add_digits(out, sizes[i]);
	}
	strbuf_add_char(out, ']');
}

static void member_others(struct members *members, uint32_t others)
{
	if (!others)
		return;
	if (members->any)
		strbuf_add_char(members->document->out, ',');
	add_json(members->document, others);
	members->any = true;
}

/* ---- what tells more of an event ---- */

static void add_collective(struct members *members, uint32_t index)
{
	const struct trace_collective *collective;

	if (index == MODEL_NONE)
		return;
	collective = &members->document->trace->collectives.items[index];
	member_string(members, "Collective name", collective->name);
	member_string(members, "dtype", collective->dtype);
	member_number(members, "In msg nelems", collective->in_elements);
	member_number(members, "Out msg nelems", collective->out_elements);
	member_number(members, "Group size", collective->group_size);
	member_string(members, "In split size", collective->in_split);
	member_string(members, "Out split size", collective->out_split);
	member_string(members, "Process Group Name", collective->group_name);
	member_string(members, "Process Group Description", collective->group_description);
	member_string(members, "Process Group Ranks", collective->group_ranks);
	member_number(members, "Src Rank", collective->source);
	member_number(members, "Dst Rank", collective->destination);
	member_number(members, "Seq", collective->sequence);
	member_count(members, "Comms Id", collective->communicator);
}

static void add_op(struct members *members, const struct trace_op *op)
{
	member_id(members, "Record function id", op->rf_id);
	member_number(members, "Sequence number", op->sequence);
	member_number(members, "Fwd thread id", op->forward_thread);
	member_json(members, "Concrete Inputs", op->concrete_inputs);
	member_json(members, "Input type", op->input_types);
	member_json(members, "Input Strides", op->input_strides);
	member_json(members, "Input Dims", op->input_dims);
	member_number(members, "Ev Idx", op->ev_idx);
	member_number(members, "Python id", op->python_id);
	member_number(members, "Python parent id", op->python_parent_id);
	member_number(members, "Python module id", op->python_module_id);
	member_json(members, "Call stack", op->call_stack);
	member_json(members, "Module Hierarchy", op->module_hierarchy);
	add_collective(members, op->collective);
	member_others(members, op->others);
}

/* A time on the clock of "ts". */
static void member_moment(struct members *members, const char *key, int64_t ns)
{
	const struct chrome_clock *clock = members->document->clock;

	if (ns == TRACE_NO_NUMBER)
		return;
	add_key(members, key);
	if (clock)
		chrome_add_moment(
			members->document->out, clock, clock->origin_ns + (uint64_t)MAX(ns, 0));
	else if (ns % (int64_t)NS_PER_US == 0)
		add_signed(members->document->out, ns / (int64_t)NS_PER_US);
	else
		add_time(members->document, ns);
}

/* OpenCL says how many work items there are, CUDA how many blocks of them. */
static void add_sizes(struct members *members, const struct trace_work *work)
{
	const struct model_device_work *recorded =
		trace_recorded_work(members->document->trace, work);

	if (recorded && recorded->gpu == MODEL_NONE)
		member_sizes(members, "global size", recorded->global_size[0],
			recorded->global_size[1], recorded->global_size[2]);
	else
		member_sizes(members, "grid", work->grid[0], work->grid[1], work->grid[2]);
	member_sizes(members, "block", work->block[0], work->block[1], work->block[2]);
}

static void add_launch_times(struct members *members, const struct trace_work *work)
{
	const struct trace *trace = members->document->trace;
	const struct model_device_work *recorded = trace_recorded_work(trace, work);

	member_moment(members, "queued", work->queued_ns);
	if (recorded && recorded->submit_ns)
		member_moment(members, "submitted",
			(int64_t)(recorded->submit_ns - trace->recorded_from_ns));
}

static void add_work(
	struct members *members, const struct trace_work *work, enum trace_category category)
{
	bool is_kernel = category == TRACE_KERNEL;

	add_launch_times(members, work);
	member_number(members, "device", work->device);
	member_number(members, "context", work->context);
	member_number(members, "stream", work->stream);
	member_count(members, "bytes", work->bytes);
	member_count(members, "registers per thread", work->registers);
	/* A kernel with registers has its shared memory, too. */
	if (work->shared_bytes || (is_kernel && work->registers))
		add_digits(add_key(members, "shared memory"), work->shared_bytes);
	add_sizes(members, work);
	member_count(members, "graph id", work->graph);
	member_count(members, "graph node id", work->graph_node);
	member_string(members, "cuda_sync_kind", work->sync_kind);
	member_number(members, "wait_on_stream", work->wait_stream);
	member_count(members, "wait_on_cuda_event_record_corr_id", work->wait_correlation);
	member_number(members, "wait_on_cuda_event_id", work->wait_event);
	add_collective(members, work->collective);
	member_others(members, work->others);
}

static void add_memory(struct members *members, const struct trace_memory *memory)
{
	member_number(members, "Device Type", memory->device_type);
	member_number(members, "Device Id", memory->device_id);
	member_count(members, "Addr", memory->address);
	member_number(members, "Bytes", memory->bytes);
	member_number(members, "Total Allocated", memory->total_allocated);
	member_number(members, "Total Reserved", memory->total_reserved);
	member_others(members, memory->others);
}

static void add_arguments(struct members *members, const struct trace_event *event)
{
	const struct trace *trace = members->document->trace;
	const struct trace_work *work = trace_work(trace, event);
	const struct trace_op *op = trace_op(trace, event);

	member_id(members, "External id", event->external_id);
	member_count(members, "correlation", event->correlation);
	if (op)
		add_op(members, op);
	else if (work)
		add_work(members, work, (enum trace_category)event->category);
	else if (event->detail != MODEL_NONE)
		add_memory(members, &trace->memory.items[event->detail]);
}

/* ---- events ---- */

static void add_id(struct document *document, const char *key, int64_t number, uint32_t text)
{
	strbuf_add(document->out, key);
	if (number != TRACE_NO_NUMBER)
		add_signed(document->out, number);
	else
		add_string(document, text);
}

static void add_place(struct document *document, const struct trace_track *track)
{
	add_id(document, ",\"pid\":", track->pid, track->pid_text);
	add_id(document, ",\"tid\":", track->tid, track->tid_text);
}

static void add_event(struct document *document, const struct trace_event *event)
{
	struct strbuf *out = document->out;
	struct members arguments = {.document = document};
	bool is_moment = event->duration_ns == TRACE_NO_DURATION;

	strbuf_add(out, is_moment ? ",\n{\"ph\":\"i\",\"s\":\"t\"" : ",\n{\"ph\":\"X\"");
	if (event->category_name) {
		strbuf_add(out, ",\"cat\":");
		add_string(document, event->category_name);
	}
	strbuf_add(out, ",\"name\":");
	add_string(document, event->name);
	add_place(document, &document->trace->tracks.items[event->track]);
	if (is_moment)
		add_start(document, event->start_ns);
	else
		add_span(document, event->start_ns, event->duration_ns);
	strbuf_add(out, ",\"args\":{");
	add_arguments(&arguments, event);
	strbuf_add(out, "}}");
}

static void add_flow(struct document *document, const struct trace_flow *flow)
{
	struct strbuf *out = document->out;

	strbuf_add(out, flow->is_end ? ",\n{\"ph\":\"f\",\"id\":" : ",\n{\"ph\":\"s\",\"id\":");
	add_digits(out, flow->id);
	add_place(document, &document->trace->tracks.items[flow->track]);
	add_start(document, flow->time_ns);
	strbuf_add(out, ",\"cat\":");
	add_string(document, flow->category_name);
	strbuf_add(out, ",\"name\":");
	add_string(document, flow->category_name);
	strbuf_add(out, flow->is_end ? ",\"bp\":\"e\"}" : "}");
}

static void add_counter(struct document *document, const struct trace_counter *counter)
{
	struct strbuf *out = document->out;
	struct json_writer json = {.out = out};

	strbuf_add(out, ",\n{\"ph\":\"C\",\"name\":");
	add_string(document, counter->name);
	add_place(document, &document->trace->tracks.items[counter->track]);
	add_start(document, counter->time_ns);
	if (counter->device) {
		strbuf_add(out, ",\"device\":");
		add_digits(out, counter->device - 1);
	}
	strbuf_add(out, ",\"args\":{");
	add_string(document, counter->series);
	strbuf_add_char(out, ':');
	json_double(&json, counter->value, 17);
	strbuf_add(out, "}}");
}

/* ---- names of processes and threads ---- */

/* `text` or `number`, the one that there is. Of processes the tid is 0. */
static void add_metadata(struct document *document, const struct trace_track *track,
	const char *event, const char *key, uint32_t text, int64_t number)
{
	struct members arguments = {.document = document};
	bool is_thread = strncmp(event, "thread", strlen("thread")) == 0;

	if (!text && number == TRACE_NO_NUMBER)
		return;
	strbuf_addf(document->out, ",\n{\"ph\":\"M\",\"name\":\"%s\"", event);
	add_id(document, ",\"pid\":", track->pid, track->pid_text);
	add_id(document, ",\"tid\":", is_thread ? track->tid : 0, track->tid_text);
	strbuf_add(document->out, ",\"args\":{");
	member_string(&arguments, key, text);
	member_number(&arguments, key, number);
	if (is_thread && text && track->owner_tid)
		member_number(&arguments, TRACE_OWNER, track->owner_tid);
	strbuf_add(document->out, "}}");
}

static void name_process(struct document *document, const struct trace_track *track)
{
	add_metadata(document, track, "process_name", "name", track->process_name, TRACE_NO_NUMBER);
	add_metadata(document, track, "process_labels", "labels", track->process_labels,
		TRACE_NO_NUMBER);
	add_metadata(document, track, "process_sort_index", "sort_index", 0, track->process_sort);
}

/* Of each process once, of each thread. */
static int add_names(struct document *document)
{
	const struct trace *trace = document->trace;
	struct map_u64 named = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->tracks.count; i++) {
		const struct trace_track *track = &trace->tracks.items[i];
		uint64_t key = hash_u64((uint64_t)track->pid) ^ track->pid_text;

		if (!map_u64_get(&named, key, NULL)) {
			r = map_u64_set(&named, key, 1);
			name_process(document, track);
		}
		add_metadata(document, track, "thread_name", "name", track->thread_name,
			TRACE_NO_NUMBER);
		add_metadata(
			document, track, "thread_sort_index", "sort_index", 0, track->thread_sort);
	}
	map_u64_done(&named);
	return r;
}

/* ---- the document ---- */

static int add_events(struct document *document)
{
	const struct trace *trace = document->trace;
	int r = add_names(document);

	array_foreach (&trace->events, event)
		add_event(document, event);
	array_foreach (&trace->flows, flow)
		add_flow(document, flow);
	array_foreach (&trace->counters, counter)
		add_counter(document, counter);
	strbuf_inherit_status(document->out, &document->escaped);
	return r ?: strbuf_status(document->out);
}

int kineto_write_events(
	struct strbuf *out, const struct trace *trace, const struct chrome_clock *clock)
{
	struct document document = {.out = out, .trace = trace, .clock = clock};
	int r = document_init(&document);

	r = r ?: add_events(&document);
	document_done(&document);
	return r;
}

/* The members of the document beside its events, each with a comma after it. */
static void kineto_write_header(struct strbuf *out, const struct trace *trace)
{
	const char *header = trace_text(trace, trace->header);

	if (*header) {
		strbuf_add(out, header);
		strbuf_add(out, ",\n");
		return;
	}
	strbuf_add(out, "\"schemaVersion\":1,\n");
	if (trace->base_ns)
		strbuf_addf(
			out, "\"baseTimeNanoseconds\":%llu,\n", (unsigned long long)trace->base_ns);
	if (trace->rank != MODEL_NONE)
		strbuf_addf(out, "\"distributedInfo\":{\"rank\":%u,\"world_size\":%u},\n",
			trace->rank, trace->world_size);
	strbuf_add(out, "\"displayTimeUnit\":\"ms\",\n");
}

int kineto_write_document(struct strbuf *out, const struct trace *trace)
{
	size_t events;
	int r;

	strbuf_add(out, "{\n");
	kineto_write_header(out, trace);
	strbuf_add(out, "\"traceEvents\":[");
	events = out->length;
	r = kineto_write_events(out, trace, NULL);
	/* The first one needs no comma. */
	if (strbuf_status(out) == 0 && out->length > events)
		out->data[events] = ' ';
	strbuf_add(out, "\n]}\n");
	return r ?: strbuf_status(out);
}
