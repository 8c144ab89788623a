/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the recorded processes: side-band events. */
#include <errno.h>
#include <stdlib.h>

#include "sources/source.h"

struct process_state {
	struct sideband *sideband;
	uint32_t pid; /* it is open for this one; 0: for all */
};

/* With the BPF sampler there are the privileges to watch the whole machine. */
static int process_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct process_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	state->pid = offered->bpf ? 0 : settings->pid;
	r = sideband_open(&state->sideband, state->pid, err);
	if (r < 0) {
		free(state);
		return r;
	}
	*ret_state = state;
	return 0;
}

static int process_follow(void *pointer, uint32_t pid, struct errmsg *err)
{
	struct process_state *state = pointer;

	return pid == state->pid ? 0 : sideband_follow(state->sideband, pid, err);
}

static size_t process_descriptors(void *pointer, int *ret_fds, size_t capacity)
{
	struct process_state *state = pointer;

	return sideband_descriptors(state->sideband, ret_fds, capacity);
}

static int process_drain(void *pointer, const struct source_sink *sink)
{
	struct process_state *state = pointer;

	return sideband_drain(state->sideband, sink->event, sink->context);
}

static void process_close(void *pointer)
{
	struct process_state *state = pointer;

	sideband_free(state->sideband);
	free(state);
}

const struct source process_source = {
	.name = "process",
	.moment = SOURCE_WITH_COMMAND,
	.open = process_open,
	.follow = process_follow,
	.descriptors = process_descriptors,
	.drain = process_drain,
	.close = process_close,
};
