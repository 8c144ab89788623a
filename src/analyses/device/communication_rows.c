/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/communication_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"

/* A stream is used for communication when so many of its kernels are known to be. */
#define STREAM_PERCENT 90

struct finding {
	const struct trace *trace;
	uint8_t *evidence;       /* by row */
	uint8_t *operators;      /* by name: 0 not asked, 1 no, 2 communicates */
	uint8_t *kernels;        /* by name: enum communication_evidence + 1; 0: not asked */
	uint8_t *stacks;         /* of a recording, likewise; NULL: it is none */
	const uint32_t *parents; /* NULL: no operator of the trace communicates */
};

/* Kernels of a stream. */
struct use {
	uint64_t kernels, communicate;
	int64_t compute_ns;
	int64_t device;
};

static bool is_operator(const struct trace_event *event)
{
	return event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION;
}

static bool is_communication(struct finding *finding, const struct trace_event *event)
{
	uint8_t *known = &finding->operators[event->name];
	const struct trace_op *op = trace_op(finding->trace, event);

	if (op && op->collective != MODEL_NONE)
		return true;
	if (!*known)
		*known = 1 + communication_is_operator(trace_text(finding->trace, event->name));
	return *known == 2;
}

static int find_parents(struct finding *finding)
{
	bool communicates = false;

	array_foreach (&finding->trace->events, event)
		communicates =
			communicates || (is_operator(event) && is_communication(finding, event));
	if (!communicates)
		return 0;
	finding->parents = trace_parents(finding->trace, false);
	return finding->parents ? 0 : -ENOMEM;
}

/* The innermost operator or annotation around the launch; NULL when there is none. */
static const struct trace_event *operator_of(
	const struct finding *finding, const struct trace_event *kernel)
{
	uint32_t row = trace_launch(finding->trace, kernel);

	while (finding->parents && row != MODEL_NONE) {
		const struct trace_event *event = &finding->trace->events.items[row];

		if (is_operator(event))
			return event;
		row = finding->parents[row];
	}
	return NULL;
}

/* Did a library of collectives launch it? */
static bool is_launched_by_library(struct finding *finding, const struct trace_work *work)
{
	const struct model *model = finding->trace->recorded;
	uint32_t stack;

	if (!model || !work || !work->recorded)
		return false;
	stack = model->device_works.items[work->recorded - 1].stack;
	if (stack == MODEL_NONE)
		return false;
	if (!finding->stacks[stack])
		finding->stacks[stack] = 1 + communication_is_stack(model, stack);
	return finding->stacks[stack] == 2;
}

static enum communication_evidence evidence_of(
	struct finding *finding, const struct trace_event *kernel)
{
	const struct trace_work *work = trace_work(finding->trace, kernel);
	uint8_t *by_name = &finding->kernels[kernel->name];
	const struct trace_event *op;

	/* Only communication carries what it moves among whom. */
	if (work && work->collective != MODEL_NONE)
		return COMMUNICATION_BY_GROUP;
	op = operator_of(finding, kernel);
	if ((op && is_communication(finding, op)) || is_launched_by_library(finding, work))
		return COMMUNICATION_BY_OPERATOR;
	if (!*by_name)
		*by_name = (uint8_t)(1 + communication_of_name(
						 trace_text(finding->trace, kernel->name)));
	return (enum communication_evidence)(*by_name - 1);
}

static int64_t device_of(const struct trace *trace, const struct trace_event *kernel)
{
	const struct trace_work *work = trace_work(trace, kernel);

	return work && work->device != TRACE_NO_NUMBER ? work->device
						       : trace->tracks.items[kernel->track].pid;
}

static void add_use(struct finding *finding, struct use *uses, const struct trace_event *kernel,
	enum communication_evidence evidence)
{
	struct use *use = &uses[kernel->track];

	use->device = device_of(finding->trace, kernel);
	use->kernels++;
	use->communicate += evidence != COMMUNICATION_NOT;
	if (evidence == COMMUNICATION_NOT)
		use->compute_ns += MAX(kernel->duration_ns, (int64_t)0);
}

/* A stream on which a device computes most is for computing, whatever else runs there. */
static bool is_for_communication(
	const struct trace *trace, const struct use *uses, const struct use *use)
{
	if (use->communicate * 100 < use->kernels * STREAM_PERCENT)
		return false;
	for (size_t i = 0; i < trace->tracks.count; i++) {
		if (uses[i].kernels && uses[i].device == use->device &&
			uses[i].compute_ns > use->compute_ns)
			return true;
	}
	return false;
}

/* What no operator that computes launched onto a stream of communication belongs to it. */
static void add_streams(struct finding *finding, const struct use *uses)
{
	array_foreach (&finding->trace->events, event) {
		size_t row = (size_t)(event - finding->trace->events.items);
		const struct use *use = &uses[event->track];

		if (event->category != TRACE_KERNEL || finding->evidence[row] ||
			use->communicate == use->kernels || !use->communicate)
			continue;
		if (is_for_communication(finding->trace, uses, use) && !operator_of(finding, event))
			finding->evidence[row] = COMMUNICATION_BY_STREAM;
	}
}

static int find(struct finding *finding)
{
	_cleanup_free_ struct use *uses = calloc(finding->trace->tracks.count + 1, sizeof(*uses));
	int r = uses ? find_parents(finding) : -ENOMEM;

	if (r < 0)
		return r;
	array_foreach (&finding->trace->events, event) {
		size_t row = (size_t)(event - finding->trace->events.items);

		if (event->category != TRACE_KERNEL)
			continue;
		finding->evidence[row] = (uint8_t)evidence_of(finding, event);
		add_use(finding, uses, event, (enum communication_evidence)finding->evidence[row]);
	}
	add_streams(finding, uses);
	return 0;
}

int communication_of_rows(const struct trace *trace, uint8_t **ret_evidence)
{
	size_t names = trace->strings.entries.count + 1;
	struct finding finding = {
		.trace = trace,
		.evidence = calloc(trace->events.count + 1, 1),
		.operators = calloc(names, 1),
		.kernels = calloc(names, 1),
		.stacks = calloc(trace->recorded ? trace->recorded->stacks.count + 1 : 1, 1),
	};
	bool is_ready = finding.evidence && finding.operators && finding.kernels && finding.stacks;
	int r = is_ready ? find(&finding) : -ENOMEM;

	free(finding.operators);
	free(finding.kernels);
	free(finding.stacks);
	if (r < 0)
		free(finding.evidence);
	else
		*ret_evidence = finding.evidence;
	return r;
}
