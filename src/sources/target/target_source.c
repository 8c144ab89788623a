/* SPDX-License-Identifier: Apache-2.0 */
/* What injected libraries write into the rings of the session folder, and the folder itself. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "sources/source.h"
#include "sources/target/ring_reader.h"
#include "wire/api.h"

/* At the end, processes have so long to hand over what they hold back. */
#define DRAIN_NS NS_PER_S
/* The loop sleeps so long at most: programs copy the stacks of their launches until it has answered
 * how the first ones were unwound. */
#define TIMEOUT_MS        10
#define TIMEOUT_COPIES_MS 2

struct target_state {
	struct target_rings *rings; /* NULL: there is no folder */
	struct errmsg why_no_rings;
	struct ring_reader *reader; /* empties them once they are used */
	bool is_stopped;
	struct errmsg drain_note;
};

static int target_probe(const struct source_settings *settings, struct errmsg *reason)
{
	return !settings->gate;
}

/* For programs that join the session later, without its variables. */
static int link_library(const struct target_rings *rings, const char *library, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf path = {0};

	if (!library)
		return 0;
	strbuf_addf(&path, "%s/" WIRE_API_LIBRARY, target_rings_folder(rings));
	if (strbuf_status(&path) < 0)
		return -ENOMEM;
	if (symlink(library, strbuf_cstr(&path)) == 0)
		return 0;
	return errmsg_set(err, -errno, "device work is not recorded: cannot make %s: %s",
		strbuf_cstr(&path), strerror(errno));
}

/* A recording goes on without the folder; whoever needs it finds why there is none. */
static int target_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct target_state *state = calloc(1, sizeof(*state));

	if (!state)
		return -ENOMEM;
	if (target_rings_open(&state->rings, settings->gate, &state->why_no_rings) == 0 &&
		link_library(state->rings, settings->library, &state->why_no_rings) < 0)
		state->rings = target_rings_free(state->rings);
	if (!state->rings && !state->why_no_rings.text[0])
		errmsg_set(&state->why_no_rings, 0, "device work is not recorded: out of memory");
	*ret_state = state;
	return 0;
}

static void target_capabilities(void *pointer, struct source_capabilities *offered)
{
	struct target_state *state = pointer;

	offered->rings = state->rings;
	offered->why_no_rings = state->why_no_rings;
}

static size_t target_descriptors(void *pointer, int *ret_fds, size_t capacity)
{
	const struct target_state *state = pointer;

	if (!state->rings || !capacity)
		return 0;
	ret_fds[0] = target_rings_descriptor(state->rings);
	return 1;
}

static int target_timeout_ms(void *pointer)
{
	const struct target_state *state = pointer;

	if (!state->reader)
		return -1;
	return target_rings_gate(state->rings)->stacks == WIRE_LAUNCH_STACKS_MARKER
		       ? TIMEOUT_MS
		       : TIMEOUT_COPIES_MS;
}

/* Without a thread for it, or after its end, the rings are read here. */
static int target_drain(void *pointer, const struct source_sink *sink)
{
	struct target_state *state = pointer;
	int r;

	if (!state->rings)
		return 0;
	if (state->reader) {
		r = ring_reader_take(state->reader, sink->target_record, sink->context);
		if (r < 0)
			return r;
		if (!state->is_stopped) {
			if (r > 0)
				sink->target_read(sink->context);
			return 0;
		}
	}
	r = target_rings_drain(state->rings, sink->target_record, sink->context);
	if (r < 0)
		return r;
	if (target_rings_is_used(state->rings) && !state->is_stopped)
		ring_reader_start(&state->reader, state->rings);
	sink->target_read(sink->context);
	return 0;
}

static void target_stop(void *pointer)
{
	struct target_state *state = pointer;

	state->is_stopped = true;
	if (!state->rings)
		return;
	target_rings_lock(state->rings);
	target_gate_drain(target_rings_gate(state->rings));
	target_rings_unlock(state->rings);
	ring_reader_stop(state->reader);
}

static int target_finish(void *pointer, uint64_t end_ns, const struct source_sink *sink)
{
	const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
	struct target_state *state = pointer;
	uint64_t until_ns = monotonic_now_ns() + DRAIN_NS;
	unsigned holding;
	int r = 0;

	if (!state->rings)
		return 0;
	while ((holding = target_rings_holding(state->rings)) && monotonic_now_ns() < until_ns &&
		r == 0) {
		r = target_drain(state, sink);
		nanosleep(&pause, NULL);
	}
	if (holding)
		errmsg_set(&state->drain_note, 0,
			"%u processes did not hand over their last device work within %d s",
			holding, (int)(DRAIN_NS / NS_PER_S));
	target_gate_close(target_rings_gate(state->rings));
	return r;
}

static void target_account(void *pointer, struct source_account *account)
{
	struct target_state *state = pointer;

	if (!state->rings)
		return;
	target_rings_lock(state->rings);
	target_rings_account(state->rings, &account->rings);
	target_rings_unlock(state->rings);
}

static void target_notes(void *pointer, source_note_function *add, void *context)
{
	struct target_state *state = pointer;
	struct errmsg note;

	if (state->drain_note.text[0])
		add(context, state->drain_note.text);
	if (!state->rings || !target_rings_is_removed(state->rings))
		return;
	errmsg_set(&note, 0,
		"the session's folder %s was removed while it was recorded: device work of "
		"processes that began later is missing",
		target_rings_folder(state->rings));
	add(context, note.text);
}

static void target_close(void *pointer)
{
	struct target_state *state = pointer;

	ring_reader_free(state->reader);
	target_rings_free(state->rings);
	free(state);
}

const struct source target_source = {
	.name = "target",
	.moment = SOURCE_BEFORE_COMMAND,
	.probe = target_probe,
	.open = target_open,
	.capabilities = target_capabilities,
	.descriptors = target_descriptors,
	.timeout_ms = target_timeout_ms,
	.drain = target_drain,
	.stop = target_stop,
	.finish = target_finish,
	.account = target_account,
	.notes = target_notes,
	.close = target_close,
};
