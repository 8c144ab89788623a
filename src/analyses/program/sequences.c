/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/sequences.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Work that an operator launched, itself or through what it calls. */
struct launched {
	uint32_t op, replay, work; /* rows, the second as in ops.c; index in view.works */
	int64_t start_ns;
};

struct search {
	const struct trace_view *view;
	const struct trace_sequence_options *options;
	uint32_t *ops; /* of rows: the outermost operator looked for that they lie in, or are */
	ARRAY_OF(struct launched) launched;
	ARRAY_OF(uint32_t) text; /* of the sequence at hand */
};

static bool is_looked_for(const struct search *search, const struct trace_event *event)
{
	if (event->duration_ns == TRACE_NO_DURATION)
		return false;
	if (!search->options->op)
		return event->category == TRACE_CPU_OP;
	return (event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION) &&
	       strstr(trace_text(search->view->trace, event->name), search->options->op);
}

/* Rows of a track come after those they lie in. */
static int find_ops(struct search *search)
{
	const struct trace *trace = search->view->trace;
	const uint32_t *parents = trace_parents(trace, false);

	search->ops = malloc((trace->events.count + 1) * sizeof(*search->ops));
	if (!parents || !search->ops)
		return -ENOMEM;
	array_foreach (&trace->rows, row) {
		uint32_t parent = parents[*row];
		uint32_t op = parent == MODEL_NONE ? MODEL_NONE : search->ops[parent];

		if (op == MODEL_NONE && is_looked_for(search, &trace->events.items[*row]))
			op = *row;
		search->ops[*row] = op;
	}
	return 0;
}

static int compare_launched(const void *left, const void *right)
{
	const struct launched *a = left, *b = right;

	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	if (a->replay != b->replay)
		return a->replay < b->replay ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int find_launched(struct search *search)
{
	const struct trace_view *view = search->view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		uint32_t op, replay = MODEL_NONE;

		if (work->launch == MODEL_NONE)
			continue;
		op = search->ops[work->origin];
		if (op != MODEL_NONE && work->origin != work->launch)
			replay = work->launch;
		/* What is looked for may be around the graph's launch. */
		if (op == MODEL_NONE)
			op = search->ops[work->launch];
		if (op != MODEL_NONE)
			r = array_append(&search->launched,
				(struct launched){op, replay, i, work->start_ns});
	}
	if (search->launched.count)
		qsort(search->launched.items, search->launched.count,
			sizeof(*search->launched.items), compare_launched);
	return r;
}

/* ---- sequences ---- */

/* The operator's name, then those of its kernels, are the sequence's key. */
static int add_sequence(struct trace_sequences *sequences, struct search *search,
	const struct launched *launched, size_t count)
{
	const struct trace_view *view = search->view;
	const struct trace_event *op = &view->trace->events.items[launched->op];
	struct trace_sequence *sequence;
	int64_t kernel_ns = 0;
	uint32_t id;
	int r;

	array_clear(&search->text);
	r = array_append(&search->text, op->name);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct trace_view_work *work = &view->works.items[launched[i].work];

		kernel_ns += work->end_ns - work->start_ns;
		r = array_append(&search->text, view->trace->events.items[work->row].name);
	}
	if (r < 0)
		return r;
	r = intern_add(&sequences->texts, search->text.items,
		search->text.count * sizeof(*search->text.items), &id);
	if (r > 0)
		r = array_append(&sequences->items,
			(struct trace_sequence){.op = op->name, .kernel_count = count});
	if (r < 0)
		return r;
	sequence = &sequences->items.items[id];
	sequence->count++;
	sequence->kernel_ns += kernel_ns;
	sequence->op_ns += trace_view_end_ns(view, op) - trace_view_start_ns(view, op);
	sequences->operators++;
	return 0;
}

static int add_sequences(struct trace_sequences *sequences, struct search *search)
{
	const struct launched *items = search->launched.items;
	size_t count = search->launched.count;
	size_t shortest = search->options->shortest ?: TRACE_SEQUENCE_SHORTEST;
	int r = 0;

	for (size_t first = 0, next; r == 0 && first < count; first = next) {
		for (next = first + 1; next < count && items[next].op == items[first].op &&
				       items[next].replay == items[first].replay;)
			next++;
		if (next - first >= shortest)
			r = add_sequence(sequences, search, items + first, next - first);
	}
	return r;
}

static int compare_sequences(const void *left, const void *right)
{
	const struct trace_sequence *a = left, *b = right;
	size_t common = MIN(a->kernel_count, b->kernel_count);

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->kernel_ns != b->kernel_ns)
		return a->kernel_ns > b->kernel_ns ? -1 : 1;
	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	for (size_t i = 0; i < common; i++) {
		if (a->kernels[i] != b->kernels[i])
			return a->kernels[i] < b->kernels[i] ? -1 : 1;
	}
	return a->kernel_count < b->kernel_count ? -1 : a->kernel_count > b->kernel_count;
}

/* Copies of the keys, where names are aligned as their type wants them. */
static int keep_kernels(struct trace_sequences *sequences)
{
	size_t total = 0;

	array_foreach (&sequences->items, sequence)
		total += sequence->kernel_count;
	sequences->kernels = malloc((total + 1) * sizeof(*sequences->kernels));
	if (!sequences->kernels)
		return -ENOMEM;
	total = 0;
	for (uint32_t i = 0; i < sequences->items.count; i++) {
		struct trace_sequence *sequence = &sequences->items.items[i];
		const char *text = intern_get(&sequences->texts, i);

		sequence->kernels = sequences->kernels + total;
		memcpy(sequences->kernels + total, text + sizeof(uint32_t),
			sequence->kernel_count * sizeof(uint32_t));
		total += sequence->kernel_count;
	}
	return 0;
}

int trace_sequences_init(struct trace_sequences *sequences, const struct trace_view *view,
	const struct trace_sequence_options *options)
{
	struct search search = {.view = view, .options = options};
	int r;

	*sequences = (struct trace_sequences){0};
	r = find_ops(&search);
	r = r ?: find_launched(&search);
	r = r ?: add_sequences(sequences, &search);
	r = r ?: keep_kernels(sequences);
	if (r == 0 && sequences->items.count)
		qsort(sequences->items.items, sequences->items.count,
			sizeof(*sequences->items.items), compare_sequences);
	free(search.ops);
	array_done(&search.launched);
	array_done(&search.text);
	if (r < 0)
		trace_sequences_done(sequences);
	return r;
}

void trace_sequences_done(struct trace_sequences *sequences)
{
	array_done(&sequences->items);
	intern_done(&sequences->texts);
	free(sequences->kernels);
	sequences->kernels = NULL;
}
