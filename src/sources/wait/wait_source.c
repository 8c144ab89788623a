/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting threads: each wait measured where that is asked for and can be done, else sampled. Their
 * records come through the CPU sampler's ring. */
#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "sources/source.h"
#include "sources/wait/exact_waits.h"
#include "sources/wait/sampled_waits.h"

/* One of the two. */
struct wait_state {
	struct exact_waits *exact;
	struct sampled_waits *sampled;
	uint64_t period_ns, min_ns;
	struct errmsg why_sampled;
};

static int wait_probe(const struct source_settings *settings, struct errmsg *reason)
{
	return !settings->samples || !settings->waits;
}

static int open_one(struct wait_state *state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct errmsg reason = {{0}};

	if (!offered->bpf)
		return errmsg_set(err, -EPERM,
			"waiting threads are not recorded: that needs the BPF mode: %s",
			source_why_no_bpf(offered));
	if (settings->exact_waits) {
		if (exact_waits_open(&state->exact, offered->bpf, settings->wait_min_ns, &reason) ==
			0)
			return 0;
		errmsg_set(&state->why_sampled, 0, "waiting is sampled: %s", reason.text);
	}
	return sampled_waits_open(&state->sampled, offered->bpf, settings->wait_period_ns, err);
}

static int wait_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct wait_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	state->period_ns = settings->wait_period_ns;
	state->min_ns = settings->wait_min_ns;
	r = open_one(state, settings, offered, err);
	if (r < 0) {
		free(state);
		return r;
	}
	*ret_state = state;
	return 0;
}

static void wait_capabilities(void *pointer, struct source_capabilities *offered)
{
	const struct wait_state *state = pointer;

	offered->wait_mode = state->exact ? "exact" : "sample";
	offered->wait_period_ns = state->exact ? 0 : state->period_ns;
	offered->wait_min_ns = state->exact ? state->min_ns : 0;
}

static int wait_start(void *pointer, struct errmsg *err)
{
	struct wait_state *state = pointer;

	return state->exact ? exact_waits_start(state->exact, err)
			    : sampled_waits_start(state->sampled, err);
}

static void wait_pause(void *pointer)
{
	struct wait_state *state = pointer;

	if (state->exact)
		exact_waits_stop(state->exact);
	else
		sampled_waits_pause(state->sampled);
}

/* They are begun anew with each window. */
static int wait_resume(void *pointer, uint64_t from_ns)
{
	struct wait_state *state = pointer;

	return state->exact ? exact_waits_resume(state->exact, from_ns)
			    : sampled_waits_resume(state->sampled, from_ns);
}

static size_t wait_descriptors(void *pointer, int *ret_fds, size_t capacity)
{
	const struct wait_state *state = pointer;

	if (state->exact || !capacity)
		return 0;
	ret_fds[0] = sampled_waits_descriptor(state->sampled);
	return 1;
}

static int wait_drain(void *pointer, const struct source_sink *sink)
{
	struct wait_state *state = pointer;

	return state->sampled ? sampled_waits_run(state->sampled) : 0;
}

static void wait_stop(void *pointer)
{
	struct wait_state *state = pointer;

	if (state->exact)
		exact_waits_stop(state->exact);
	else
		sampled_waits_stop(state->sampled);
}

static void wait_account(void *pointer, struct source_account *account)
{
	const struct wait_state *state = pointer;
	struct sampled_waits_account sampled = {0};
	struct exact_waits_account exact = {0};

	if (state->exact)
		exact_waits_account(state->exact, &exact);
	else
		sampled_waits_account(state->sampled, &sampled);
	account->waiting.count += exact.run_count + sampled.run_count;
	account->waiting.time_ns += exact.run_time_ns + sampled.run_time_ns;
}

static void note_exact(
	const struct exact_waits_account *account, source_note_function *add, void *context)
{
	struct errmsg note;

	if (account->unmeasured) {
		errmsg_set(&note, 0,
			"%llu begins or ends of waits are missing: the kernel did not report them",
			(unsigned long long)account->unmeasured);
		add(context, note.text);
	}
	if (account->crowded) {
		errmsg_set(&note, 0,
			"%llu waits were counted without their stacks, because more came than "
			"could be written; give a larger --wait-min",
			(unsigned long long)account->crowded);
		add(context, note.text);
	}
	if (account->lost) {
		errmsg_set(&note, 0,
			"%llu waits, %llu ms together, are missing: the sample ring was full; give "
			"a larger --wait-min",
			(unsigned long long)account->lost,
			(unsigned long long)(account->lost_ns / NS_PER_MS));
		add(context, note.text);
	}
}

static void wait_notes(void *pointer, source_note_function *add, void *context)
{
	const struct wait_state *state = pointer;
	struct exact_waits_account exact;

	if (state->why_sampled.text[0])
		add(context, state->why_sampled.text);
	if (!state->exact)
		return;
	exact_waits_account(state->exact, &exact);
	note_exact(&exact, add, context);
}

static void wait_close(void *pointer)
{
	struct wait_state *state = pointer;

	exact_waits_free(state->exact);
	sampled_waits_free(state->sampled);
	free(state);
}

const struct source wait_source = {
	.name = "wait",
	.moment = SOURCE_WITH_COMMAND,
	.is_optional = true,
	.probe = wait_probe,
	.open = wait_open,
	.capabilities = wait_capabilities,
	.start = wait_start,
	.pause = wait_pause,
	.resume = wait_resume,
	.descriptors = wait_descriptors,
	.drain = wait_drain,
	.stop = wait_stop,
	.account = wait_account,
	.notes = wait_notes,
	.close = wait_close,
};
