/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source for tests alone: it takes no samples, it makes some up. It was added by the steps of
 * sources/source.h: this file, its declaration in toy-source.h, and a line in the table of
 * test-sources.c.
 */
#include "toy-source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

struct toy {
	uint32_t pid;
	int descriptors[2];
	unsigned handed_over;
};

struct toy_script toy_script;

static void log_call(char call)
{
	size_t length = strlen(toy_script.calls);

	if (length + 1 < sizeof(toy_script.calls))
		toy_script.calls[length] = call;
}

static int toy_probe(const struct source_settings *settings, struct errmsg *reason)
{
	log_call('p');
	if (toy_script.refuses)
		return errmsg_set(reason, -EPERM, "the toy is in its box; take it out");
	return toy_script.is_unwanted;
}

static int toy_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct toy *toy;

	log_call('o');
	if (toy_script.fails)
		return errmsg_set(err, -EIO, "the toy is broken; buy a new one");
	toy = calloc(1, sizeof(*toy));
	if (!toy)
		return -ENOMEM;
	toy->pid = settings->pid;
	if (pipe(toy->descriptors) < 0) {
		free(toy);
		return -errno;
	}
	*ret_state = toy;
	return 0;
}

static void toy_capabilities(void *state, struct source_capabilities *offered)
{
	log_call('k');
	offered->unwind_mode = "toy";
	offered->unwind_mode_reason = "";
}

static int toy_follow(void *state, uint32_t pid, struct errmsg *err)
{
	log_call('f');
	return 0;
}

/* There is work from now on: the loop comes at once. */
static int toy_start(void *state, struct errmsg *err)
{
	struct toy *toy = state;

	log_call('s');
	return write(toy->descriptors[1], "", 1) == 1 ? 0 : -errno;
}

static int toy_set_active(void *state, bool active)
{
	log_call(active ? '+' : '-');
	return 0;
}

static size_t toy_descriptors(void *state, int *ret_fds, size_t capacity)
{
	struct toy *toy = state;

	if (!capacity)
		return 0;
	ret_fds[0] = toy->descriptors[0];
	return 1;
}

static int toy_timeout_ms(void *state)
{
	return 7;
}

static int toy_drain(void *state, const struct source_sink *sink)
{
	struct toy *toy = state;
	char byte;

	if (!toy->handed_over && read(toy->descriptors[0], &byte, 1) < 0)
		return -errno;
	for (; toy->handed_over < TOY_SAMPLES; toy->handed_over++) {
		const struct wire_sample sample = {
			.record = {.type = WIRE_RECORD_SAMPLE, .length_bytes = sizeof(sample)},
			.time_ns = monotonic_now_ns(),
			.pid = toy->pid,
			.tid = toy->pid,
			.process_name = "toy",
			.thread_name = "toy",
		};

		sink->record(sink->context, &sample.record);
	}
	return 0;
}

static void toy_stop(void *state)
{
	log_call('S');
}

static int toy_finish(void *state, uint64_t end_ns, const struct source_sink *sink)
{
	log_call('F');
	return 0;
}

static void toy_account(void *state, struct source_account *account)
{
	source_account_lost(account, "toy_box", 0, TOY_LOST);
	account->samples_lost += TOY_LOST;
}

static void toy_notes(void *state, source_note_function *add, void *context)
{
	add(context, TOY_NOTE);
}

static void toy_close(void *state)
{
	struct toy *toy = state;

	log_call('c');
	close(toy->descriptors[0]);
	close(toy->descriptors[1]);
	free(toy);
}

const struct source toy_source = {
	.name = "toy",
	.moment = SOURCE_WITH_COMMAND,
	.probe = toy_probe,
	.open = toy_open,
	.capabilities = toy_capabilities,
	.follow = toy_follow,
	.start = toy_start,
	.set_active = toy_set_active,
	.descriptors = toy_descriptors,
	.timeout_ms = toy_timeout_ms,
	.drain = toy_drain,
	.stop = toy_stop,
	.finish = toy_finish,
	.account = toy_account,
	.notes = toy_notes,
	.close = toy_close,
};
