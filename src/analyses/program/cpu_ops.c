/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/cpu_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/trace_order.h"
#include "base/text.h"

const char *trace_cpu_op_kind(const struct trace_cpu_op *row)
{
	if (row->category == TRACE_USER_ANNOTATION)
		return "annotation";
	return row->category == TRACE_CPU_OP || row->category == TRACE_OTHER ? "operator" : "call";
}

void trace_cpu_thread_name(
	const struct trace *trace, const struct trace_cpu_thread *thread, struct strbuf *out)
{
	const struct trace_track *track = &trace->tracks.items[thread->track];

	if (track->tid != TRACE_NO_NUMBER)
		strbuf_addf(out, "thread %lld", (long long)track->tid);
	else
		strbuf_addf(out, "thread %s", trace_text(trace, track->tid_text));
	/* Kineto names threads without a name after their number. */
	if (track->thread_name &&
		strncmp(trace_text(trace, track->thread_name), "thread ", strlen("thread ")) != 0)
		strbuf_addf(out, " (%s)", trace_text(trace, track->thread_name));
}

/* ---- which rows count ---- */

/* Collectives and compiled graphs are work, though PyTorch writes annotations for them. */
static bool is_working_annotation(const char *name)
{
	static const char *const beginnings[] = {
		"gloo:", "nccl:", "mpi:", "ucc:", "## Call CompiledFxGraph"};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (begins_with(name, beginnings[i]))
			return true;
	}
	return false;
}

static bool counts(const struct trace_view *view, const struct trace_event *event)
{
	if (begins_with(trace_text(view->trace, event->name), "ProfilerStep#"))
		return false;
	return event->category != TRACE_PYTHON_FUNCTION;
}

/* ---- one thread after the other ---- */

/* Where a name's row is, of the thread that was there last. */
struct known_row {
	uint32_t thread; /* + 1; 0: of none */
	uint32_t row;
};

struct open_row {
	int64_t end_ns;
	uint32_t row;
};

/* While some thread is in an operator: intervals of each thread, in its order. */
struct intervals {
	ARRAY_OF(int64_t) starts, ends;
};

struct sweep {
	struct trace_cpu_ops *ops;
	const struct trace_view *view;
	struct known_row *known; /* by name */
	struct open_row *open;
	size_t depth;
	int64_t at_ns;
	int64_t until_ns; /* end of the thread's last interval */
	struct intervals intervals;
};

static int find_row(struct sweep *sweep, const struct trace_event *event, uint32_t *ret_row)
{
	struct known_row *known = &sweep->known[event->name];
	uint32_t thread = (uint32_t)sweep->ops->threads.count; /* the last one's index, + 1 */
	const char *name = trace_text(sweep->view->trace, event->name);
	int r = 0;

	if (known->thread != thread) {
		*known = (struct known_row){thread, (uint32_t)sweep->ops->rows.count};
		r = array_append(&sweep->ops->rows,
			(struct trace_cpu_op){
				.name = event->name,
				.thread = thread - 1,
				.category = (enum trace_category)event->category,
				.is_operator = event->category != TRACE_USER_ANNOTATION ||
					       is_working_annotation(name),
				.until_ns = INT64_MIN,
			});
	}
	*ret_row = known->row;
	return r;
}

/* The time up to `time_ns` is the innermost row's; those that end before are closed. */
static void pass_time(struct sweep *sweep, int64_t time_ns)
{
	while (sweep->depth) {
		const struct open_row *top = &sweep->open[sweep->depth - 1];
		int64_t end_ns = MIN(top->end_ns, time_ns);

		if (end_ns > sweep->at_ns) {
			sweep->ops->rows.items[top->row].self_ns += end_ns - sweep->at_ns;
			sweep->at_ns = end_ns;
		}
		if (top->end_ns > time_ns)
			return;
		sweep->depth--;
	}
	sweep->at_ns = MAX(sweep->at_ns, time_ns);
}

/* Adds the part of the row that no operator of the thread had before. */
static int add_interval(struct sweep *sweep, int64_t start_ns, int64_t end_ns)
{
	struct trace_cpu_ops *ops = sweep->ops;
	int r;

	start_ns = MAX(start_ns, sweep->until_ns);
	if (end_ns <= start_ns)
		return 0;
	sweep->until_ns = end_ns;
	ops->threads.items[ops->threads.count - 1].in_operators_ns += end_ns - start_ns;
	r = array_append(&sweep->intervals.starts, start_ns);
	return r ?: array_append(&sweep->intervals.ends, end_ns);
}

static int add_event(struct sweep *sweep, const struct trace_event *event)
{
	int64_t end_ns = MAX(trace_end_ns(event), event->start_ns);
	int64_t new_ns;
	struct trace_cpu_op *op;
	uint32_t row = 0;
	int r;

	pass_time(sweep, event->start_ns);
	r = find_row(sweep, event, &row);
	if (r < 0)
		return r;
	op = &sweep->ops->rows.items[row];
	op->count++;
	new_ns = MAX(event->start_ns, op->until_ns);
	op->total_ns += MAX(end_ns, new_ns) - new_ns;
	op->until_ns = MAX(op->until_ns, end_ns);
	sweep->open[sweep->depth++] = (struct open_row){end_ns, row};
	if (!op->is_operator)
		return 0;
	sweep->ops->threads.items[op->thread].operators++;
	return add_interval(sweep, event->start_ns, end_ns);
}

static int add_thread(struct sweep *sweep, uint32_t index)
{
	const struct trace *trace = sweep->view->trace;
	const struct trace_track *track = &trace->tracks.items[index];
	struct trace_cpu_thread *thread = NULL;
	int r = 0;

	sweep->at_ns = sweep->until_ns = INT64_MIN;
	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		const struct trace_event *event =
			&trace->events.items[trace->rows.items[track->first + i]];

		if (!trace_view_is_of_thread(sweep->view, event))
			continue;
		if (!thread) {
			r = array_append(
				&sweep->ops->threads, (struct trace_cpu_thread){.track = index,
							      .start_ns = event->start_ns,
							      .end_ns = event->start_ns});
			if (r < 0)
				return r;
			thread = &sweep->ops->threads.items[sweep->ops->threads.count - 1];
		}
		thread->end_ns = MAX(thread->end_ns, trace_end_ns(event));
		if (counts(sweep->view, event))
			r = add_event(sweep, event);
	}
	pass_time(sweep, INT64_MAX);
	return r;
}

/* ---- all threads ---- */

/* The time that at least one thread was in an operator. */
static int unite(struct sweep *sweep)
{
	size_t count = sweep->intervals.starts.count;
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int64_t until_ns = INT64_MIN;
	int r = order ? trace_order_stable(sweep->intervals.starts.items, order, count) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		int64_t start_ns = sweep->intervals.starts.items[order[i]];
		int64_t end_ns = sweep->intervals.ends.items[order[i]];

		start_ns = MAX(start_ns, until_ns);
		sweep->ops->in_operators_ns += MAX(end_ns - start_ns, (int64_t)0);
		until_ns = MAX(until_ns, end_ns);
	}
	return r;
}

/* Equal ones by name and total: the order does not hang on how strings and threads are numbered. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct trace_cpu_op *a = left, *b = right;
	const struct trace *trace = context;
	int order;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	order = strcmp(trace_text(trace, a->name), trace_text(trace, b->name));
	if (order)
		return order;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static void finish(struct trace_cpu_ops *ops, const struct trace *trace)
{
	if (ops->rows.count)
		qsort_r(ops->rows.items, ops->rows.count, sizeof(*ops->rows.items), compare_rows,
			(void *)trace);
	for (size_t i = 0; i < ops->threads.count; i++) {
		const struct trace_cpu_thread *thread = &ops->threads.items[i];

		ops->start_ns = i ? MIN(ops->start_ns, thread->start_ns) : thread->start_ns;
		ops->end_ns = i ? MAX(ops->end_ns, thread->end_ns) : thread->end_ns;
	}
}

int trace_cpu_ops_init(struct trace_cpu_ops *ops, const struct trace_view *view)
{
	const struct trace *trace = view->trace;
	struct sweep sweep = {.ops = ops, .view = view};
	uint32_t longest = 0;
	int r;

	*ops = (struct trace_cpu_ops){0};
	array_foreach (&trace->tracks, track)
		longest = MAX(longest, track->count);
	sweep.known = calloc(trace->strings.entries.count + 1, sizeof(*sweep.known));
	sweep.open = malloc(((size_t)longest + 1) * sizeof(*sweep.open));
	r = sweep.known && sweep.open ? 0 : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < trace->tracks.count; i++)
		r = add_thread(&sweep, i);
	r = r ?: unite(&sweep);
	free(sweep.known);
	free(sweep.open);
	array_done(&sweep.intervals.starts);
	array_done(&sweep.intervals.ends);
	if (r < 0)
		trace_cpu_ops_done(ops);
	else
		finish(ops, trace);
	return r;
}

void trace_cpu_ops_done(struct trace_cpu_ops *ops)
{
	array_done(&ops->rows);
	array_done(&ops->threads);
}
