/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bus_topics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bus_topics_find(
	struct bus_topics *topics, const char *type, const char *key, unsigned *ret_topic)
{
	unsigned place = topics->count;

	for (unsigned i = 0; i < topics->count; i++) {
		const struct bus_topic *topic = &topics->names[i];

		if (strcmp(topic->type, type) == 0 && strcmp(topic->key, key) == 0) {
			*ret_topic = i;
			return 0;
		}
		if (!*topic->type && place == topics->count)
			place = i;
	}
	if (place == BUS_TOPICS_MAX || strlen(type) >= BUS_TYPE_BYTES ||
		strlen(key) >= BUS_KEY_BYTES)
		return -E2BIG;
	snprintf(topics->names[place].type, BUS_TYPE_BYTES, "%s", type);
	snprintf(topics->names[place].key, BUS_KEY_BYTES, "%s", key);
	topics->count = MAX(topics->count, place + 1);
	*ret_topic = place;
	return 0;
}

static struct bus_history *find_history(struct bus_topics *topics, const char *key)
{
	array_foreach (&topics->histories, history) {
		if (strcmp(history->key, key) == 0)
			return history;
	}
	return NULL;
}

static struct bus_history *make_history(struct bus_topics *topics, const char *key)
{
	struct bus_history history = {0};
	struct bus_history *known = find_history(topics, key);

	if (known)
		return known;
	snprintf(history.key, sizeof(history.key), "%s", key);
	if (array_append(&topics->histories, history) < 0)
		return NULL;
	return &topics->histories.items[topics->histories.count - 1];
}

static void trim(struct bus_history *history, const struct bus_limits *limits, uint64_t now_ns)
{
	struct bus_queue *queue = &history->messages;

	while (bus_queue_count(queue) &&
		(queue->bytes > limits->history_bytes ||
			now_ns - queue->items.items[queue->first]->time_ns > limits->history_ns))
		bus_message_unref(bus_queue_take(queue));
}

void bus_topics_keep(
	struct bus_topics *topics, struct bus_message *message, const struct bus_limits *limits)
{
	const char *key = topics->names[message->topic].key;
	struct bus_history *history;

	if (message->class == API_CLASS_LATEST_WINS) {
		bus_message_unref(topics->latest[message->topic]);
		topics->latest[message->topic] = bus_message_ref(message);
		return;
	}
	history = *key ? make_history(topics, key) : NULL;
	if (!history)
		return;
	bus_queue_add(&history->messages, message);
	trim(history, limits, message->time_ns);
}

void bus_topics_forget(struct bus_topics *topics, const char *key)
{
	struct bus_history *history = find_history(topics, key);

	for (unsigned i = 0; i < topics->count; i++) {
		if (strcmp(topics->names[i].key, key) != 0)
			continue;
		bus_message_unref(topics->latest[i]);
		topics->latest[i] = NULL;
		topics->names[i] = (struct bus_topic){0};
	}
	if (!history)
		return;
	bus_queue_done(&history->messages);
	*history = topics->histories.items[--topics->histories.count];
}

void bus_topics_write_history(struct bus_topics *topics, const char *key,
	const struct bus_limits *limits, struct strbuf *out, uint64_t now_ns)
{
	struct bus_history *history = find_history(topics, key);
	bool is_first = true;

	if (!history)
		return;
	trim(history, limits, now_ns);
	for (size_t i = history->messages.first; i < history->messages.items.count; i++) {
		const struct bus_message *message = history->messages.items.items[i];

		if (!is_first)
			strbuf_add_char(out, ',');
		strbuf_add_bytes(out, message->bytes, message->text_length);
		is_first = false;
	}
}

void bus_topics_done(struct bus_topics *topics)
{
	for (size_t i = 0; i < BUS_TOPICS_MAX; i++)
		bus_message_unref(topics->latest[i]);
	array_foreach (&topics->histories, history)
		bus_queue_done(&history->messages);
	array_done(&topics->histories);
}
