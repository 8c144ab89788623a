/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/source_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define set_foreach(set, entry)                                                                    \
	for (struct source_entry *entry = (set)->entries; entry < (set)->entries + (set)->count;   \
		entry++)
#define set_foreach_reversed(set, entry)                                                           \
	for (struct source_entry *entry = (set)->entries + (set)->count; entry-- > (set)->entries;)

static void close_entry(struct source_entry *entry)
{
	if (entry->state)
		entry->source->close(TAKE_PTR(entry->state));
	entry->is_started = false;
}

/* An optional source that failed is left out; of others the failure is the recording's. */
static int forgive(struct source_entry *entry, int result, struct errmsg *err)
{
	if (result == 0)
		return 0;
	close_entry(entry);
	if (entry->source->is_optional)
		return 0;
	if (err)
		*err = entry->note;
	entry->note.text[0] = '\0';
	return result;
}

int source_set_probe(struct source_set *set, const struct source *const *table,
	const struct source_settings *settings, struct errmsg *err)
{
	for (; *table; table++) {
		struct source_entry *entry = &set->entries[set->count];
		int r;

		assert(set->count < SOURCES_MAX);
		*entry = (struct source_entry){.source = *table};
		r = (*table)->probe ? (*table)->probe(settings, &entry->note) : 0;
		if (r > 0)
			continue;
		set->count++;
		r = forgive(entry, r, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int start_entry(struct source_entry *entry)
{
	int r;

	if (!entry->state || entry->is_started)
		return 0;
	r = entry->source->start ? entry->source->start(entry->state, &entry->note) : 0;
	entry->is_started = r == 0;
	return r;
}

static int open_entry(
	struct source_set *set, struct source_entry *entry, const struct source_settings *settings)
{
	const struct source *source = entry->source;
	int r = source->open(&entry->state, settings, &set->offered, &entry->note);

	if (r == 0 && source->moment == SOURCE_AT_LAUNCH)
		r = start_entry(entry);
	if (r == 0 && source->capabilities)
		source->capabilities(entry->state, &set->offered);
	return r;
}

int source_set_open(struct source_set *set, enum source_moment moment,
	const struct source_settings *settings, struct errmsg *err)
{
	set_foreach(set, entry)
	{
		int r;

		if (entry->source->moment != moment || entry->state || entry->note.text[0])
			continue;
		r = forgive(entry, open_entry(set, entry, settings), err);
		if (r < 0)
			return r;
	}
	return 0;
}

int source_set_follow(struct source_set *set, uint32_t pid, struct errmsg *err)
{
	set_foreach(set, entry)
	{
		int r = entry->state && entry->source->follow
				? entry->source->follow(entry->state, pid, err)
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int source_set_start(struct source_set *set, struct errmsg *err)
{
	set_foreach(set, entry)
	{
		int r = forgive(entry, start_entry(entry), err);

		if (r < 0)
			return r;
	}
	return 0;
}

int source_set_switch(struct source_set *set, bool active)
{
	set_foreach(set, entry)
	{
		int r = entry->source->set_active && entry->is_started
				? entry->source->set_active(entry->state, active)
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

void source_set_pause(struct source_set *set)
{
	set_foreach(set, entry)
	{
		if (entry->is_started && entry->source->pause)
			entry->source->pause(entry->state);
	}
}

int source_set_resume(struct source_set *set, uint64_t from_ns)
{
	set_foreach(set, entry)
	{
		int r = entry->is_started && entry->source->resume
				? entry->source->resume(entry->state, from_ns)
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

size_t source_set_descriptors(struct source_set *set, int *ret_fds, size_t capacity)
{
	size_t count = 0;

	set_foreach(set, entry)
	{
		if (entry->state && entry->source->descriptors)
			count += entry->source->descriptors(
				entry->state, ret_fds + count, capacity - count);
	}
	return count;
}

int source_set_timeout_ms(struct source_set *set, int otherwise)
{
	set_foreach(set, entry)
	{
		int timeout_ms = entry->state && entry->source->timeout_ms
					 ? entry->source->timeout_ms(entry->state)
					 : -1;

		if (timeout_ms >= 0)
			otherwise = MIN(otherwise, timeout_ms);
	}
	return otherwise;
}

/* A source may hand its records over through the ring of one before it. */
int source_set_drain(struct source_set *set, const struct source_sink *sink)
{
	set_foreach_reversed(set, entry)
	{
		int r = entry->state && entry->source->drain
				? entry->source->drain(entry->state, sink)
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

void source_set_stop(struct source_set *set)
{
	set_foreach_reversed(set, entry)
	{
		if (entry->is_started && entry->source->stop)
			entry->source->stop(entry->state);
		entry->is_started = false;
	}
}

int source_set_finish(struct source_set *set, uint64_t end_ns, const struct source_sink *sink)
{
	set_foreach(set, entry)
	{
		int r = entry->state && entry->source->finish
				? entry->source->finish(entry->state, end_ns, sink)
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

void source_set_account(struct source_set *set, struct source_account *ret_account)
{
	*ret_account = (struct source_account){0};
	set_foreach(set, entry)
	{
		if (entry->state && entry->source->account)
			entry->source->account(entry->state, ret_account);
	}
}

void source_set_notes(struct source_set *set, source_note_function *add, void *context)
{
	set_foreach(set, entry)
	{
		if (entry->note.text[0])
			add(context, entry->note.text);
		if (entry->state && entry->source->notes)
			entry->source->notes(entry->state, add, context);
	}
}

void source_set_close(struct source_set *set)
{
	set_foreach_reversed(set, entry) close_entry(entry);
	set->count = 0;
}
