/* SPDX-License-Identifier: Apache-2.0 */
/* What all ranks of traces without device work did, and what would help. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/communication.h"
#include "analyses/program/cpu_ops.h"

/* With fewer operators shares are chance. */
#define MIN_OPERATORS 20
/* Of the time: no operator runs, or threads communicate. */
#define MIN_OUTSIDE_PERCENT       50
#define MIN_COMMUNICATION_PERCENT 20
/* Of the time in operators: what the heaviest take together. */
#define MIN_HEAVY_PERCENT 50
/* Calling an operator takes PyTorch some microseconds. */
#define MAX_SHORT_NS 10000

const char *trace_cpu_advice_name(enum trace_cpu_advice advice)
{
	switch (advice) {
	case TRACE_CPU_ADVICE_OUTSIDE:
		return "outside_of_operators";
	case TRACE_CPU_ADVICE_SHORT:
		return "short_operators";
	case TRACE_CPU_ADVICE_COMMUNICATION:
		return "communication";
	case TRACE_CPU_ADVICE_HEAVY:
		return "heavy_operators";
	default:
		return NULL;
	}
}

/* Operators of one name, of all threads and ranks. */
struct named {
	const char *name;
	int64_t self_ns;
};

struct names {
	struct intern texts; /* → items */
	ARRAY_OF(struct named) items;
};

static int add_row(struct trace_cpu_summary *summary, struct names *names, const char *name,
	const struct trace_cpu_op *row)
{
	uint32_t index;
	int r;

	if (!row->is_operator)
		return 0;
	summary->self_ns += row->self_ns;
	if (communication_is_operator(name))
		summary->communication_ns += row->self_ns;
	r = intern_add(&names->texts, name, strlen(name), &index);
	if (r > 0)
		r = array_append(&names->items, (struct named){.name = name});
	if (r < 0)
		return r;
	names->items.items[index].self_ns += row->self_ns;
	return 0;
}

static int add_rank(
	struct trace_cpu_summary *summary, struct names *names, const struct trace_view *view)
{
	_cleanup_trace_cpu_ops_ struct trace_cpu_ops ops = {0};
	int r = trace_cpu_ops_init(&ops, view);

	if (r < 0)
		return r;
	summary->span_ns += ops.end_ns - ops.start_ns;
	summary->in_operators_ns += ops.in_operators_ns;
	array_foreach (&ops.threads, thread) {
		summary->threads += thread->operators != 0;
		summary->operators += thread->operators;
	}
	array_foreach (&ops.rows, row)
		r = r ?: add_row(summary, names, trace_text(view->trace, row->name), row);
	return r;
}

static int compare_named(const void *left, const void *right)
{
	const struct named *a = left, *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void find_heaviest(struct trace_cpu_summary *summary, struct names *names)
{
	size_t count = names->items.count;

	if (count)
		qsort(names->items.items, count, sizeof(*names->items.items), compare_named);
	for (size_t i = 0; i < MIN(count, (size_t)TRACE_CPU_HEAVIEST); i++) {
		if (!names->items.items[i].self_ns)
			return;
		summary->heaviest[i].name = names->items.items[i].name;
		summary->heaviest[i].self_ns = names->items.items[i].self_ns;
	}
}

static bool is_at_least(int64_t part, int64_t whole, int percent)
{
	return whole > 0 && (double)part * 100 >= (double)whole * percent;
}

static unsigned find_advice(const struct trace_cpu_summary *summary)
{
	int64_t outside_ns = summary->span_ns - summary->in_operators_ns, heavy_ns = 0;
	unsigned advice = 0;

	if (summary->operators < MIN_OPERATORS)
		return 0;
	for (size_t i = 0; i < TRACE_CPU_HEAVIEST; i++)
		heavy_ns += summary->heaviest[i].self_ns;
	if (is_at_least(outside_ns, summary->span_ns, MIN_OUTSIDE_PERCENT))
		advice |= TRACE_CPU_ADVICE_OUTSIDE;
	if (is_at_least(summary->communication_ns, summary->self_ns, MIN_COMMUNICATION_PERCENT))
		advice |= TRACE_CPU_ADVICE_COMMUNICATION;
	if (summary->self_ns / (int64_t)summary->operators < MAX_SHORT_NS)
		advice |= TRACE_CPU_ADVICE_SHORT;
	else if (!(advice & TRACE_CPU_ADVICE_COMMUNICATION) &&
		 is_at_least(heavy_ns, summary->self_ns, MIN_HEAVY_PERCENT))
		advice |= TRACE_CPU_ADVICE_HEAVY;
	return advice;
}

int trace_cpu_summary_init(
	struct trace_cpu_summary *summary, const struct trace_view *views, size_t count)
{
	struct names names = {0};
	int r = 0;

	*summary = (struct trace_cpu_summary){0};
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_rank(summary, &names, &views[i]);
	if (r == 0) {
		find_heaviest(summary, &names);
		summary->advice = find_advice(summary);
	}
	intern_done(&names.texts);
	array_done(&names.items);
	return r;
}
