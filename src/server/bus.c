/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/strbuf.h"
#include "server/bus_queue.h"
#include "server/bus_topics.h"
#include "server/guard.h"

#define CLOSE_GOING_AWAY 1001
#define CLOSE_TRY_LATER  1013

struct gap {
	uint64_t from, to, count;
	const char *reason;
};

struct bus_client {
	struct bus *bus;
	void (*wake)(void *context);
	void *context;
	struct bus_queue queue;
	struct gap gap;         /* count 0: none */
	uint64_t over_since_ns; /* 0: within its budget */
	bool is_awake;          /* was woken, and has not found the queue empty since */
	bool is_ending, is_too_slow, has_ended;
	bool takes_binary;
	struct strbuf hello; /* until it is sent */
};

struct bus {
	struct bus_limits limits;
	char epoch[BUS_EPOCH_BYTES];
	uint64_t began_ns, newest;
	struct bus_queue kept;
	struct bus_topics topics;
	ARRAY_OF(struct bus_client *) clients;
};

/* ---- envelopes ---- */

static double t_ms(const struct bus *bus, uint64_t now_ns)
{
	return (double)(now_ns - bus->began_ns) / (double)NS_PER_MS;
}

static void begin_envelope(
	struct strbuf *out, const struct bus *bus, uint64_t seq, const char *type, uint64_t now_ns)
{
	struct json_writer json = {.out = out};

	json_begin_object(&json);
	json_member_u64(&json, "v", 1);
	json_member_text(&json, "epoch", bus->epoch);
	json_member_u64(&json, "seq", seq);
	json_key(&json, "t_ms");
	json_double(&json, t_ms(bus, now_ns), 12);
	json_member_text(&json, "type", type);
	json_key(&json, "data");
}

static void write_envelope(struct strbuf *out, const struct bus *bus, uint64_t seq,
	const char *type, const char *data, size_t length, uint64_t now_ns)
{
	begin_envelope(out, bus, seq, type, now_ns);
	strbuf_add_bytes(out, data, length);
	strbuf_add_char(out, '}');
}

/* ---- one client ---- */

static void wake(struct bus_client *client)
{
	if (client->is_awake)
		return;
	client->is_awake = true;
	client->wake(client->context);
}

static void lose(
	struct bus_client *client, uint64_t from, uint64_t to, uint64_t count, const char *reason)
{
	struct gap *gap = &client->gap;

	if (!count)
		return;
	gap->from = gap->count ? MIN(gap->from, from) : from;
	gap->to = MAX(gap->count ? gap->to : 0, to);
	gap->reason = gap->count ? gap->reason : reason;
	gap->count += count;
}

static void lose_message(struct bus_client *client, const struct bus_message *message)
{
	lose(client, message->seq, message->seq, 1, "too-slow");
}

/*
 * Leaves out what may be: all that may be dropped, or those that a later one of their type
 * replaces. From the end, so that what stays moves towards it.
 */
static void thin(struct bus_client *client, enum api_class class)
{
	bool is_there[BUS_TOPICS_MAX] = {false};
	struct bus_queue *queue = &client->queue;
	size_t kept = queue->items.count;

	for (size_t i = queue->items.count; i-- > queue->first;) {
		struct bus_message *message = queue->items.items[i];

		if (message->class == class &&
			(class == API_CLASS_DROP_FIRST || is_there[message->topic])) {
			lose_message(client, message);
			queue->bytes -= message->length;
			queue->counts[class]--;
			bus_message_unref(message);
			continue;
		}
		is_there[message->topic] = true;
		queue->items.items[--kept] = message;
	}
	queue->first = kept;
}

/* Over its budget: makes place. Rarely, so that it costs little for each message. */
static void make_place(struct bus_client *client)
{
	struct bus_queue *queue = &client->queue;

	if (queue->counts[API_CLASS_DROP_FIRST])
		thin(client, API_CLASS_DROP_FIRST);
	if (queue->counts[API_CLASS_LATEST_WINS] > 2 * client->bus->topics.count + 16)
		thin(client, API_CLASS_LATEST_WINS);
}

static void give(struct bus_client *client, struct bus_message *message, uint64_t now_ns)
{
	const struct bus_limits *limits = &client->bus->limits;
	struct bus_queue *queue = &client->queue;
	size_t wanted = queue->bytes + message->length;
	bool is_kept = true;

	if (client->is_ending)
		return;
	if (wanted > limits->budget_bytes) {
		if (!client->over_since_ns)
			client->over_since_ns = now_ns;
		make_place(client);
		is_kept = message->class != API_CLASS_DROP_FIRST &&
			  wanted <= limits->budget_bytes + limits->kept_bytes;
	}
	if (!is_kept || bus_queue_add(queue, message) < 0)
		lose_message(client, message);
	if (client->over_since_ns && now_ns - client->over_since_ns > limits->patience_ns) {
		client->is_ending = true;
		client->is_too_slow = true;
	}
	wake(client);
}

/* ---- publishing ---- */

static void keep(struct bus *bus, struct bus_message *message)
{
	bus_queue_add(&bus->kept, message);
	while (bus->kept.bytes > bus->limits.kept_bytes ||
		bus_queue_count(&bus->kept) > bus->limits.kept_messages)
		bus_message_unref(bus_queue_take(&bus->kept));
	bus_topics_keep(&bus->topics, message, &bus->limits);
}

static int publish(struct bus *bus, unsigned topic, enum api_class class, const struct strbuf *text,
	const struct strbuf *frame, uint64_t now_ns)
{
	size_t budget_bytes = bus->limits.budget_bytes;
	size_t frame_length = text->length + frame->length > budget_bytes ? 0 : frame->length;
	struct bus_message *message;

	if (text->length > budget_bytes)
		return -E2BIG;
	message = strbuf_status(text) || strbuf_status(frame)
			  ? NULL
			  : calloc(1, sizeof(*message) + text->length + frame_length);
	if (!message)
		return -ENOMEM;
	*message = (struct bus_message){.refs = 1,
		.seq = ++bus->newest,
		.topic = topic,
		.time_ns = now_ns,
		.class = class,
		.length = text->length + frame_length,
		.text_length = text->length};
	memcpy(message->bytes, strbuf_cstr(text), text->length);
	if (frame_length)
		memcpy(message->bytes + text->length, frame->data, frame_length);
	keep(bus, message);
	array_foreach (&bus->clients, client)
		give(*client, message, now_ns);
	bus_message_unref(message);
	return 0;
}

/* A field of the header that ends in zeros. */
static void set_text(char *field, size_t bytes, const char *text)
{
	for (size_t i = 0; i < bytes && text[i]; i++)
		field[i] = text[i];
}

static void write_frame(struct strbuf *out, const struct bus *bus, uint64_t seq, const char *key,
	const struct bus_data *data, uint64_t now_ns)
{
	struct api_frame_header header = {.version = 1,
		.kind = data->kind,
		.bytes = sizeof(header),
		.seq = seq,
		.t_ms = t_ms(bus, now_ns)};

	set_text(header.epoch, sizeof(header.epoch), bus->epoch);
	set_text(header.capture, sizeof(header.capture), key);
	strbuf_add_bytes(out, &header, sizeof(header));
	strbuf_add_bytes(out, data->columns, data->columns_length);
}

int bus_publish_columns(struct bus *bus, const char *type, enum api_class class, const char *key,
	const struct bus_data *data, uint64_t now_ns)
{
	_cleanup_strbuf_ struct strbuf text = {0}, frame = {0};
	unsigned topic;
	int r = bus_topics_find(&bus->topics, type, key, &topic);

	if (r < 0)
		return r;
	write_envelope(&text, bus, bus->newest + 1, type, data->json, data->length, now_ns);
	if (data->columns_length)
		write_frame(&frame, bus, bus->newest + 1, key, data, now_ns);
	return publish(bus, topic, class, &text, &frame, now_ns);
}

int bus_publish_keyed(struct bus *bus, const char *type, enum api_class class, const char *key,
	const char *data, size_t length, uint64_t now_ns)
{
	return bus_publish_columns(
		bus, type, class, key, &(struct bus_data){.json = data, .length = length}, now_ns);
}

int bus_publish(struct bus *bus, const char *type, enum api_class class, const char *data,
	size_t length, uint64_t now_ns)
{
	return bus_publish_keyed(bus, type, class, "", data, length, now_ns);
}

/* ---- clients ---- */

static void queue_snapshot(struct bus_client *client, uint64_t now_ns)
{
	const struct bus *bus = client->bus;
	struct api_snapshot_message snapshot = {.newest_seq = bus->newest};
	struct json_writer json = {.out = &client->hello};

	for (size_t i = 0; i < BUS_TOPICS_MAX; i++) {
		struct bus_message *latest = bus->topics.latest[i];

		snapshot.types += latest && bus_queue_add(&client->queue, latest) == 0;
	}
	strbuf_add_char(&client->hello, '\0');
	begin_envelope(&client->hello, bus, 0, "snapshot", now_ns);
	api_write_snapshot(&json, &snapshot);
	strbuf_add_char(&client->hello, '}');
}

/* What it missed, or that it cannot have it and what counts now. */
static void resume(struct bus_client *client, const char *epoch, uint64_t seq, uint64_t now_ns)
{
	const struct bus *bus = client->bus;
	uint64_t oldest, newest;

	bus_range(bus, &oldest, &newest);
	if (epoch && strcmp(epoch, bus->epoch) == 0 && seq <= newest && seq + 1 >= oldest) {
		for (size_t i = bus->kept.first; i < bus->kept.items.count; i++) {
			struct bus_message *message = bus->kept.items.items[i];

			if (message->seq > seq && bus_queue_add(&client->queue, message) < 0)
				lose_message(client, message);
		}
		return;
	}
	if (epoch && strcmp(epoch, bus->epoch) == 0 && seq < newest)
		lose(client, seq + 1, newest, newest - seq, "too-old");
	else if (epoch && newest)
		lose(client, 1, newest, newest, "new-epoch");
	queue_snapshot(client, now_ns);
}

int bus_add(struct bus *bus, struct bus_client **ret_client, const char *hello, const char *epoch,
	uint64_t seq, void (*wake_client)(void *context), void *context, uint64_t now_ns)
{
	struct bus_client *client = calloc(1, sizeof(*client));

	if (!client || array_append(&bus->clients, client) < 0) {
		free(client);
		return -ENOMEM;
	}
	client->bus = bus;
	client->wake = wake_client;
	client->context = context;
	/* It is woken once, when all is there. */
	client->is_awake = true;
	write_envelope(&client->hello, bus, 0, "hello", hello, strlen(hello), now_ns);
	resume(client, epoch, seq, now_ns);
	client->is_awake = false;
	wake(client);
	*ret_client = client;
	return 0;
}

struct bus_client *bus_remove(struct bus_client *client)
{
	struct bus *bus;

	if (!client)
		return NULL;
	bus = client->bus;
	for (size_t i = 0; i < bus->clients.count; i++) {
		if (bus->clients.items[i] == client) {
			bus->clients.items[i] = bus->clients.items[--bus->clients.count];
			break;
		}
	}
	bus_queue_done(&client->queue);
	strbuf_done(&client->hello);
	free(client);
	return NULL;
}

bool bus_is_ending(const struct bus_client *client)
{
	return client->is_ending;
}

void bus_take_binary(struct bus_client *client)
{
	client->takes_binary = true;
}

/* ---- frames ---- */

/* The hello; then, behind a NUL, the snapshot. */
static void add_hello(struct bus_client *client, struct strbuf *out)
{
	size_t length = strlen(strbuf_cstr(&client->hello));
	struct strbuf rest = {0};

	strbuf_add_bytes(out, client->hello.data, length);
	if (length < client->hello.length)
		strbuf_add_bytes(
			&rest, client->hello.data + length + 1, client->hello.length - length - 1);
	strbuf_inherit_status(out, &rest);
	strbuf_done(&client->hello);
	client->hello = rest;
}

static void add_gap(struct bus_client *client, struct strbuf *out, uint64_t now_ns)
{
	const struct api_gap_message gap = {.from = client->gap.from,
		.to = client->gap.to,
		.count = client->gap.count,
		.reason = client->gap.reason};
	struct json_writer json = {.out = out};

	client->gap = (struct gap){0};
	begin_envelope(out, client->bus, 0, "gap", now_ns);
	api_write_gap(&json, &gap);
	strbuf_add_char(out, '}');
}

static void add_bye(
	struct bus_client *client, struct strbuf *out, struct bus_frame *frame, uint64_t now_ns)
{
	const struct api_bye_message bye = {
		.reason = client->is_too_slow ? "too-slow" : "server-ends"};
	struct json_writer json = {.out = out};

	client->has_ended = true;
	begin_envelope(out, client->bus, 0, "bye", now_ns);
	api_write_bye(&json, &bye);
	strbuf_add_char(out, '}');
	frame->is_last = true;
	frame->close_code = client->is_too_slow ? CLOSE_TRY_LATER : CLOSE_GOING_AWAY;
}

static void add_message(struct strbuf *out, struct bus_queue *queue, bool is_binary)
{
	struct bus_message *message = bus_queue_take(queue);

	if (is_binary)
		strbuf_add_bytes(out, message->bytes + message->text_length,
			message->length - message->text_length);
	else
		strbuf_add_bytes(out, message->bytes, message->text_length);
	bus_message_unref(message);
}

/* Does the client get this message, the first one or one behind it, as a binary frame? */
static bool is_binary(const struct bus_client *client, size_t place)
{
	const struct bus_queue *queue = &client->queue;
	const struct bus_message *message = queue->items.items[queue->first + place];

	return client->takes_binary && message->length > message->text_length;
}

/* Does the message of this place go into a text frame that has so many bytes? */
static bool joins(const struct bus_client *client, size_t place, size_t bytes)
{
	const struct bus_queue *queue = &client->queue;

	return place < bus_queue_count(queue) && !is_binary(client, place) &&
	       bytes + queue->items.items[queue->first + place]->text_length + 2 <= BUS_FRAME_BYTES;
}

static void add_messages(struct bus_client *client, struct strbuf *out, struct bus_frame *frame)
{
	struct bus_queue *queue = &client->queue;
	const struct bus_message *first = queue->items.items[queue->first];
	size_t begin = out->length;

	frame->is_binary = is_binary(client, 0);
	if (joins(client, 0, 0) && joins(client, 1, first->text_length)) {
		strbuf_add_char(out, '[');
		add_message(out, queue, false);
		while (joins(client, 0, out->length - begin)) {
			strbuf_add_char(out, ',');
			add_message(out, queue, false);
		}
		strbuf_add_char(out, ']');
	} else {
		add_message(out, queue, frame->is_binary);
	}
	if (queue->bytes <= client->bus->limits.budget_bytes)
		client->over_since_ns = 0;
}

/* What a client that is closed did not get: it may ask for it when it comes back. */
static void lose_rest(struct bus_client *client)
{
	while (bus_queue_count(&client->queue)) {
		struct bus_message *message = bus_queue_take(&client->queue);

		lose_message(client, message);
		bus_message_unref(message);
	}
}

bool bus_next(
	struct bus_client *client, struct strbuf *out, struct bus_frame *ret_frame, uint64_t now_ns)
{
	struct bus_frame frame = {0};

	if (client->has_ended)
		return false;
	if (client->is_ending && client->is_too_slow && !client->hello.length)
		lose_rest(client);
	if (client->hello.length) {
		add_hello(client, out);
	} else if (client->gap.count) {
		add_gap(client, out, now_ns);
	} else if (bus_queue_count(&client->queue)) {
		add_messages(client, out, &frame);
	} else if (client->is_ending) {
		add_bye(client, out, &frame, now_ns);
	} else {
		client->is_awake = false;
		return false;
	}
	*ret_frame = frame;
	return strbuf_status(out) == 0;
}

void bus_say_bye(struct bus *bus, uint64_t now_ns)
{
	(void)now_ns;
	array_foreach (&bus->clients, client) {
		(*client)->is_ending = true;
		wake(*client);
	}
}

/* ---- the bus ---- */

int bus_open(
	struct bus **ret_bus, const struct bus_limits *limits, const char *epoch, uint64_t now_ns)
{
	struct bus *bus = calloc(1, sizeof(*bus));
	int r = bus ? 0 : -ENOMEM;

	if (bus && !epoch)
		r = guard_make_token(bus->epoch);
	else if (bus)
		snprintf(bus->epoch, sizeof(bus->epoch), "%s", epoch);
	if (r < 0) {
		free(bus);
		return r;
	}
	bus->limits = *limits;
	bus->began_ns = now_ns;
	*ret_bus = bus;
	return 0;
}

struct bus *bus_close(struct bus *bus)
{
	if (bus) {
		while (bus->clients.count)
			bus_remove(bus->clients.items[0]);
		array_done(&bus->clients);
		bus_queue_done(&bus->kept);
		bus_topics_done(&bus->topics);
		free(bus);
	}
	return NULL;
}

void bus_range(const struct bus *bus, uint64_t *ret_oldest, uint64_t *ret_newest)
{
	*ret_newest = bus->newest;
	*ret_oldest = bus_queue_count(&bus->kept) ? bus->kept.items.items[bus->kept.first]->seq
						  : bus->newest + 1;
}

/* ---- what is kept of a key ---- */

void bus_forget(struct bus *bus, const char *key)
{
	bus_topics_forget(&bus->topics, key);
}

void bus_write_history(struct bus *bus, const char *key, struct strbuf *out, uint64_t now_ns)
{
	struct json_writer json = {.out = out};

	json_begin_object(&json);
	json_member_text(&json, "epoch", bus->epoch);
	json_member_u64(&json, "newest_seq", bus->newest);
	json_key(&json, "messages");
	strbuf_add_char(out, '[');
	bus_topics_write_history(&bus->topics, key, &bus->limits, out, now_ns);
	strbuf_add(out, "]}");
}
