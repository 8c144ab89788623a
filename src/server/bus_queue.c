/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bus_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bus_message_unref(struct bus_message *message)
{
	if (message && --message->refs == 0)
		free(message);
}

struct bus_message *bus_message_ref(struct bus_message *message)
{
	message->refs++;
	return message;
}

int bus_queue_add(struct bus_queue *queue, struct bus_message *message)
{
	if (array_append(&queue->items, message) < 0)
		return -ENOMEM;
	bus_message_ref(message);
	queue->bytes += message->length;
	queue->counts[message->class]++;
	return 0;
}

size_t bus_queue_count(const struct bus_queue *queue)
{
	return queue->items.count - queue->first;
}

struct bus_message *bus_queue_take(struct bus_queue *queue)
{
	struct bus_message *message = queue->items.items[queue->first++];

	queue->bytes -= message->length;
	queue->counts[message->class]--;
	if (queue->first > 64 && queue->first > queue->items.count / 2) {
		queue->items.count -= queue->first;
		memmove(queue->items.items, queue->items.items + queue->first,
			queue->items.count * sizeof(queue->items.items[0]));
		queue->first = 0;
	}
	return message;
}

void bus_queue_done(struct bus_queue *queue)
{
	while (bus_queue_count(queue))
		bus_message_unref(bus_queue_take(queue));
	array_done(&queue->items);
	*queue = (struct bus_queue){0};
}
