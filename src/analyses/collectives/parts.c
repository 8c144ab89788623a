/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of ranks in collectives, from the rows of their traces. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/collectives/calls.h"
#include "analyses/collectives/size.h"
#include "analyses/device/communication.h"

struct gathering {
	struct collective_matches *matches;
	const struct trace_view *views, *view;
	size_t view_count;
	struct rank_steps steps;
	bool uses_steps;
	const uint32_t *parents; /* of the view's rows */
	struct collective_overlap overlap;
	struct intern kinds;
};

/* What is known of a row: of its own, or of the operator that launched it. Strings are the
 * trace's. */
struct details {
	const struct trace_collective *of_row, *of_operator;
	const char *operator; /* that communicates; NULL: none */
};

static const struct trace_collective *collective_at(const struct trace *trace, uint32_t index)
{
	return index == MODEL_NONE ? NULL : &trace->collectives.items[index];
}

static struct details find_details(
	const struct gathering *gathering, const struct trace_view_work *work)
{
	const struct trace *trace = gathering->view->trace;
	const struct trace_work *row = trace_work(trace, &trace->events.items[work->row]);
	struct details details = {.of_row = row ? collective_at(trace, row->collective) : NULL};
	uint32_t at = work->launch;

	while (gathering->parents && at != MODEL_NONE && !details.of_operator) {
		const struct trace_event *event = &trace->events.items[at];
		const struct trace_op *op = trace_op(trace, event);
		const char *name = trace_text(trace, event->name);

		if (op)
			details.of_operator = collective_at(trace, op->collective);
		if (!details.operator&& op && communication_is_operator(name) &&
			strcmp(name, "record_param_comms") != 0)
			details.operator= name;
		at = gathering->parents[at];
	}
	return details;
}

static uint32_t text_of(const struct details *details, size_t field)
{
	const struct trace_collective *const both[] = {details->of_row, details->of_operator};
	uint32_t text = 0;

	for (size_t i = 0; i < 2 && !text; i++) {
		if (both[i])
			memcpy(&text, (const char *)both[i] + field, sizeof(text));
	}
	return text;
}

static int64_t number_of(const struct details *details, size_t field)
{
	const struct trace_collective *const both[] = {details->of_row, details->of_operator};
	int64_t number = TRACE_NO_NUMBER;

	for (size_t i = 0; i < 2 && number == TRACE_NO_NUMBER; i++) {
		if (both[i])
			memcpy(&number, (const char *)both[i] + field, sizeof(number));
	}
	return number;
}

/* "_allgather_base" → "allgatherbase" */
static void add_letters(char *out, size_t size, const char *name)
{
	size_t length = 0;

	for (; *name && *name != '(' && length + 1 < size; name++) {
		if (isalnum((unsigned char)*name))
			out[length++] = (char)tolower((unsigned char)*name);
	}
	out[length] = '\0';
}

static bool contains_any(const char *text, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(text, *words))
			return true;
	}
	return false;
}

/* Need a rank not wait for all others? */
bool collective_is_one_sided(const char *name)
{
	static const char *const all[] = {
		"allreduce", "allgather", "reducescatter", "alltoall", "barrier", NULL};
	static const char *const some[] = {
		"broadcast", "send", "recv", "gather", "scatter", "reduce", "p2p", NULL};
	char letters[128];

	add_letters(letters, sizeof(letters), name);
	return !contains_any(letters, all) && contains_any(letters, some);
}

static int add_string(struct gathering *gathering, const char *text, size_t length, uint32_t *ret)
{
	int r = intern_add(&gathering->matches->strings, text, length, ret);

	return r < 0 ? r : 0;
}

/* Ranks tell a group best; in traces that name none, groups have names alone. */
static int add_group(struct gathering *gathering, const struct details *details,
	struct collective_match_kind *kind)
{
	const struct trace *trace = gathering->view->trace;
	const uint32_t name = text_of(details, offsetof(struct trace_collective, group_name));
	const uint32_t description =
		text_of(details, offsetof(struct trace_collective, group_description));
	const uint32_t ranks = text_of(details, offsetof(struct trace_collective, group_ranks));
	const char *const shown = trace_text(trace, description ?: name);
	_cleanup_strbuf_ struct strbuf all = {0};
	int r;

	if (!name && !ranks)
		return 0;
	strbuf_addf(&all, "%s\n%s\n%s", trace_text(trace, name), trace_text(trace, description),
		trace_text(trace, ranks));
	r = strbuf_status(&all);
	if (r == 0)
		r = add_string(gathering, strbuf_cstr(&all), all.length, &kind->group);
	return r < 0 ? r : add_string(gathering, shown, strlen(shown), &kind->group_name);
}

/* All-to-all may move another size on each rank. */
static void add_size(const struct gathering *gathering, const char *name,
	const struct details *details, struct collective_match_kind *kind)
{
	char letters[128];

	add_letters(letters, sizeof(letters), name);
	if (!strstr(letters, "alltoall"))
		kind->elements = number_of(details, offsetof(struct trace_collective, in_elements));
	kind->has_bytes = gathering->view->trace->recorded != NULL;
}

/* Of the larger buffer; see collective_size.h. */
static int64_t bytes_of(const struct trace *trace, const struct details *details)
{
	const int64_t in = number_of(details, offsetof(struct trace_collective, in_elements));
	const int64_t out = number_of(details, offsetof(struct trace_collective, out_elements));
	const uint32_t dtype = text_of(details, offsetof(struct trace_collective, dtype));
	const unsigned element_bytes = collective_element_bytes(trace_text(trace, dtype));
	int64_t bytes;

	if (!element_bytes || MAX(in, out) < 0 ||
		__builtin_mul_overflow(MAX(in, out), (int64_t)element_bytes, &bytes))
		return TRACE_NO_NUMBER;
	return bytes;
}

/* Of a recording: what NCCL's call says, or why it does not. */
static void check_size(struct gathering *gathering, const struct details *details,
	const struct trace_work *row, struct collective_part *part)
{
	const struct model *model = gathering->view->trace->recorded;
	const struct model_device_work *work =
		model && row && row->recorded ? &model->device_works.items[row->recorded - 1]
					      : NULL;

	if (!work || !work->collective)
		return;
	gathering->matches->unsized[model->collectives.items[work->collective - 1].unknown]++;
	part->is_share = (number_of(details, offsetof(struct trace_collective, in_elements)) ==
				 TRACE_NO_NUMBER) !=
			 (number_of(details, offsetof(struct trace_collective, out_elements)) ==
				 TRACE_NO_NUMBER);
}

static int add_kind(struct gathering *gathering, const char *name, const char *kernel,
	const struct details *details, struct collective_part *part)
{
	struct collective_match_kind kind;
	int r;

	memset(&kind, 0, sizeof(kind));
	kind.elements = TRACE_NO_NUMBER;
	kind.group_size = number_of(details, offsetof(struct trace_collective, group_size));
	if (kind.group_size == TRACE_NO_NUMBER && !gathering->view->trace->recorded &&
		gathering->view->trace->world_size > gathering->view_count)
		kind.group_size = gathering->view->trace->world_size; /* at most */
	part->sequence = number_of(details, offsetof(struct trace_collective, sequence));
	r = add_string(gathering, name, strlen(name), &kind.name);
	if (r == 0)
		r = add_group(gathering, details, &kind);
	if (r < 0)
		return r;
	if (!kind.group)
		part->sequence = TRACE_NO_NUMBER; /* of which group is not known */
	kind.has_sequence = part->sequence != TRACE_NO_NUMBER;
	if (!kind.has_sequence)
		add_size(gathering, name, details, &kind);
	if (!kind.group)
		r = add_string(gathering, kernel, strcspn(kernel, "("), &kind.kernel);
	if (r == 0)
		r = intern_add(&gathering->kinds, &kind, sizeof(kind), &part->kind);
	return r > 0 ? array_append(&gathering->matches->kinds, kind) : r;
}

static int leave_out(struct gathering *gathering, const char *name, const struct details *details,
	const struct collective_part *part)
{
	struct collective_matches *matches = gathering->matches;
	struct collective_left_out_parts parts, *found;
	struct collective_match_kind kind;
	uint32_t id;
	int r;

	memset(&kind, 0, sizeof(kind));
	r = add_group(gathering, details, &kind);
	memset(&parts, 0, sizeof(parts));
	parts.key.bytes = part->bytes;
	parts.key.group_name = kind.group_name;
	r = r ?: add_string(gathering, name, strcspn(name, "("), &parts.key.name);
	if (r < 0)
		return r;
	r = intern_add(&matches->left_out_keys, &parts.key, sizeof(parts.key), &id);
	if (r > 0)
		r = array_append(&matches->left_out, parts);
	if (r < 0)
		return r;
	matches->one_sided++;
	found = &matches->left_out.items[id];
	found->count++;
	found->time_ns += (uint64_t)collective_part_ns(part);
	return 0;
}

static int add_part(struct gathering *gathering, const struct trace_view_work *work)
{
	const struct trace_view *view = gathering->view;
	const struct trace *trace = view->trace;
	const struct trace_event *launch =
		work->launch == MODEL_NONE ? NULL : &trace->events.items[work->launch];
	const struct details details = find_details(gathering, work);
	const uint32_t given = text_of(&details, offsetof(struct trace_collective, name));
	const char *kernel = trace_text(trace, trace->events.items[work->row].name);
	const char *name = given ? trace_text(trace, given) : details.operator?: kernel;
	struct collective_part part = {
		.step = RANK_NO_STEP,
		.bytes = bytes_of(trace, &details),
		.start_ns = rank_common_ns(gathering->views, view, work->start_ns),
		.end_ns = rank_common_ns(gathering->views, view, work->end_ns),
	};
	const struct collective_rank_key rank = {
		.rank = launch ? rank_of_row(view, launch) : view->rank,
		.view = trace->recorded ? 0 : (uint32_t)(view - gathering->views),
	};
	int r;

	if (rank.rank == MODEL_NONE || (trace->recorded && !launch))
		return 0;
	if (collective_is_one_sided(name))
		return leave_out(gathering, name, &details, &part);
	if (launch && gathering->uses_steps)
		part.step = rank_step_at(&gathering->steps, rank.rank,
			rank_common_ns(gathering->views, view, trace_view_start_ns(view, launch)));
	r = intern_add(&gathering->matches->ranks, &rank, sizeof(rank), &part.rank);
	if (r >= 0)
		r = add_kind(gathering, name, kernel, &details, &part);
	check_size(gathering, &details, trace_work(trace, &trace->events.items[work->row]), &part);
	if (r == 0)
		r = add_string(gathering, kernel, strcspn(kernel, "("), &part.kernel);
	if (r == 0)
		r = collective_overlap_add(&gathering->overlap, work->start_ns, work->end_ns,
			gathering->matches->kinds.items[part.kind].name,
			&gathering->matches->strings, &gathering->matches->covers,
			&part.exposed_ns);
	if (r < 0)
		return r;
	if (part.sequence != TRACE_NO_NUMBER)
		part.step = RANK_NO_STEP; /* it says more */
	return array_append(&gathering->matches->parts, part);
}

/* ---- calls of the host ---- */

static const struct model_range_field *field_of(
	const struct model *model, const struct model_range *range, const char *name)
{
	for (uint32_t i = 0; i < range->field_count; i++) {
		const struct model_range_field *field =
			&model->range_fields.items[range->first_field + i];

		if (strcmp(field->name, name) == 0)
			return field;
	}
	return NULL;
}

static int64_t field_number(
	const struct model *model, const struct model_range *range, const char *name)
{
	const struct model_range_field *field = field_of(model, range, name);

	return field && field->type != WIRE_RANGE_TEXT && field->type != WIRE_RANGE_DOUBLE
		       ? (int64_t)field->value
		       : TRACE_NO_NUMBER;
}

/* An asynchronous one is over when it is issued; one in another is that one's. */
static bool is_call(const struct model *model, const struct model_range *range,
	const struct model_range *before)
{
	const struct model_range_field *async = field_of(model, range, COLLECTIVE_ASYNC);

	return collective_is_call(range->name) && !range->is_mark && !range->is_open &&
	       !(async && async->value) &&
	       model->processes.items[range->process].rank != MODEL_NONE &&
	       !(before && before->thread == range->thread && before->end_ns > range->start_ns);
}

static int add_call(
	struct gathering *gathering, const struct model *model, const struct model_range *range)
{
	const struct trace *trace = gathering->view->trace;
	const struct model_range_field *group = field_of(model, range, COLLECTIVE_GROUP);
	const int64_t start_ns = (int64_t)(range->start_ns - trace->recorded_from_ns);
	struct collective_call call = {
		.rank.rank = model->processes.items[range->process].rank,
		.name = range->name,
		.group = group && group->type == WIRE_RANGE_TEXT ? group->text : NULL,
		.group_size = field_number(model, range, COLLECTIVE_GROUP_SIZE),
		.sequence = field_number(model, range, COLLECTIVE_SEQUENCE),
		.bytes = field_number(model, range, COLLECTIVE_BYTES),
		.step = RANK_NO_STEP,
		.start_ns = rank_common_ns(gathering->views, gathering->view, start_ns),
	};

	call.end_ns = call.start_ns + (int64_t)(range->end_ns - range->start_ns);
	if (call.bytes != TRACE_NO_NUMBER)
		call.bytes = collective_size_of_part(range->name, call.bytes, call.group_size);
	if (gathering->uses_steps)
		call.step = rank_step_at(&gathering->steps, call.rank.rank, call.start_ns);
	return collective_calls_add(gathering->matches, &gathering->kinds, &call);
}

static int add_calls(struct gathering *gathering)
{
	const struct model *model = gathering->view->trace->recorded;
	struct map_u64 last_of_thread = {0};
	int r = 0;

	for (size_t i = 0; model && r == 0 && i < model->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[i];
		const struct model_range *before = NULL;
		uint64_t known;

		if (map_u64_get(&last_of_thread, range->thread, &known))
			before = &model->ranges.items[known];
		if (!is_call(model, range, before))
			continue;
		r = add_call(gathering, model, range);
		if (r == 0)
			r = map_u64_set(&last_of_thread, range->thread, i);
	}
	map_u64_done(&last_of_thread);
	return r;
}

/* ---- rows of the host ---- */

/* Libraries that communicate without a device have rows of their own names in other tools' traces:
 * operators around them, "c10d::allreduce_", are over when they are issued. */
static bool is_row_of_host(const struct trace_view *view, const struct trace_event *event)
{
	static const char *const beginnings[] = {"gloo:", "mpi:", "ucc:"};
	const char *name = trace_text(view->trace, event->name);

	if (!trace_view_is_of_thread(view, event))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return collective_is_call(name);
	}
	return false;
}

static int add_row_of_host(struct gathering *gathering, const struct trace_event *event)
{
	const struct trace_view *view = gathering->view;
	const struct trace_op *op = trace_op(view->trace, event);
	const struct details details = {
		.of_row = op ? collective_at(view->trace, op->collective) : NULL};
	const uint32_t group = text_of(&details, offsetof(struct trace_collective, group_name));
	struct collective_call call = {
		.rank = {.rank = view->rank, .view = (uint32_t)(view - gathering->views)},
		.name = trace_text(view->trace, event->name),
		.group = group ? trace_text(view->trace, group) : NULL,
		.group_size = number_of(&details, offsetof(struct trace_collective, group_size)),
		.sequence = number_of(&details, offsetof(struct trace_collective, sequence)),
		.bytes = bytes_of(view->trace, &details),
		.step = RANK_NO_STEP,
		.start_ns =
			rank_common_ns(gathering->views, view, trace_view_start_ns(view, event)),
		.end_ns = rank_common_ns(gathering->views, view, trace_view_end_ns(view, event)),
	};

	if (gathering->uses_steps)
		call.step = rank_step_at(&gathering->steps, view->rank, call.start_ns);
	return collective_calls_add(gathering->matches, &gathering->kinds, &call);
}

/* Where a device communicates, its work stands for it. */
static int add_rows_of_host(struct gathering *gathering)
{
	const struct trace_view *view = gathering->view;
	int r = 0;

	if (view->trace->recorded || view->rank == MODEL_NONE)
		return 0;
	array_foreach (&view->works, work) {
		if (work->kind == TRACE_COMMUNICATION)
			return 0;
	}
	for (size_t i = 0; r == 0 && i < view->trace->events.count; i++) {
		const struct trace_event *event = &view->trace->events.items[i];

		if (is_row_of_host(view, event))
			r = add_row_of_host(gathering, event);
	}
	return r;
}

/* ---- all ---- */

static bool communicates(const struct trace_view *view, uint32_t device)
{
	array_foreach (&view->works, work) {
		if (work->kind == TRACE_COMMUNICATION &&
			view->streams.items[work->stream].device == device)
			return true;
	}
	return false;
}

/* Of one device: its own kernels hide its communication. */
static int add_device(struct gathering *gathering, uint32_t device)
{
	const struct trace_view *view = gathering->view;
	int r;

	if (!communicates(view, device))
		return 0;
	r = collective_overlap_init(&gathering->overlap, view, device);
	array_foreach (&view->works, work) {
		if (r == 0 && work->kind == TRACE_COMMUNICATION &&
			view->streams.items[work->stream].device == device)
			r = add_part(gathering, work);
	}
	collective_overlap_done(&gathering->overlap);
	gathering->overlap = (struct collective_overlap){0};
	return r;
}

static int add_view(struct gathering *gathering)
{
	const struct trace_view *view = gathering->view;
	bool has_operators = false;
	int r = 0;

	array_foreach (&view->works, work)
		has_operators |= work->kind == TRACE_COMMUNICATION && work->launch != MODEL_NONE;
	if (has_operators) {
		gathering->parents = trace_parents(view->trace, false);
		r = gathering->parents ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < view->devices.count; i++)
		r = add_device(gathering, i);
	gathering->parents = NULL;
	if (r == 0)
		r = add_rows_of_host(gathering);
	return r < 0 ? r : add_calls(gathering);
}

/* Steps tell where in the program ranks were when all have one of the same number. */
static bool has_common_step(const struct rank_steps *steps, size_t view_count)
{
	uint64_t number, ranks;
	size_t position = 0;

	while (map_u64_next(&steps->numbers, &position, &number, &ranks)) {
		if (ranks == steps->ranks.entries.count && ranks >= view_count)
			return true;
	}
	return false;
}

int collective_parts_find(
	struct collective_matches *matches, const struct trace_view *views, size_t view_count)
{
	struct gathering gathering = {.matches = matches, .views = views, .view_count = view_count};
	uint32_t nothing;
	int r = rank_steps_init(&gathering.steps, views, view_count);

	if (r < 0)
		return r;
	gathering.uses_steps = has_common_step(&gathering.steps, view_count);
	r = intern_add(&matches->strings, "", 0, &nothing);
	for (size_t i = 0; r >= 0 && i < view_count; i++) {
		gathering.view = &views[i];
		r = add_view(&gathering);
	}
	rank_steps_done(&gathering.steps);
	intern_done(&gathering.kinds);
	return r < 0 ? r : 0;
}
