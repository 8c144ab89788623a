/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live messages, from who publishes them to every client, without ever waiting for one.
 *
 * Messages are numbered from 1 within an epoch, which is one run of the server. The latest are
 * kept, so that a client that comes back gets those that it missed. Each client has a budget of
 * bytes that wait for it. Over it, messages are left out by their class (server/api.h): first those
 * that may be dropped, then those that a later one of their type and key replaces; the others once
 * there are more than are kept for clients that come back. A client that stays over its budget is
 * closed, and may come back. Every number that a client does not get lies between `from` and `to`
 * of a gap message that it gets.
 *
 * The key says what a message is about, as a capture's id; "" is none. Of each type and key of
 * which only the latest counts, a new client gets it; of the others of a key it can ask for a
 * while.
 *
 * No network here: who has the connection asks for the next frame when it can be sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "server/api.h"

struct bus_limits {
	size_t kept_bytes, kept_messages; /* for clients that come back */
	size_t budget_bytes;              /* of each client */
	uint64_t patience_ns;             /* then one over its budget is closed */
	size_t history_bytes;             /* of each key: for clients that come late */
	uint64_t history_ns;
};

#define BUS_LIMITS_DEFAULT                                                                         \
	{                                                                                          \
		.kept_bytes = 8 << 20, .kept_messages = 65536, .budget_bytes = 1 << 20,            \
		.patience_ns = 5 * NS_PER_S, .history_bytes = 4 << 20,                             \
		.history_ns = 600 * NS_PER_S                                                       \
	}

/* Texts that begin envelopes and numbers in them; see schema/api.json. */
#define BUS_EPOCH_BYTES 33
#define BUS_TYPE_BYTES  48
#define BUS_KEY_BYTES   24

struct bus;
struct bus_client;

struct bus_data {
	const char *json;
	size_t length;
	uint8_t kind;
	const void *columns;
	size_t columns_length; /* 0: none */
};

/* Of frames that are joined from several messages. */
#define BUS_FRAME_BYTES (64 << 10)

/* What bus_next() appended: one frame to send. */
struct bus_frame {
	bool is_binary;
	bool is_last; /* close with this code after it */
	unsigned close_code;
};

/* `epoch`: NULL: a new one. Returns 0 or a negative errno. */
int bus_open(
	struct bus **ret_bus, const struct bus_limits *limits, const char *epoch, uint64_t now_ns);
/* After all clients were removed. */
struct bus *bus_close(struct bus *bus);
/* What can be sent again; oldest is newest + 1 when nothing is. */
void bus_range(const struct bus *bus, uint64_t *ret_oldest, uint64_t *ret_newest);

/*
 * `data` is JSON, of text messages the member `data` of their envelope. Returns 0, -ENOMEM, or
 * -E2BIG: it is larger than the budget of a client, or has one type too many. Never waits.
 */
int bus_publish(struct bus *bus, const char *type, enum api_class class, const char *data,
	size_t length, uint64_t now_ns);
/* The same about `key`, of less than BUS_KEY_BYTES. */
int bus_publish_keyed(struct bus *bus, const char *type, enum api_class class, const char *key,
	const char *data, size_t length, uint64_t now_ns);
/*
 * The same with `columns`, what a binary frame of `kind` has behind its header (x-frame of
 * schema/api.json): clients that take binary frames get it, others the text; both have one number.
 * Where both together are larger than the budget of a client, all get the text.
 */
int bus_publish_columns(struct bus *bus, const char *type, enum api_class class, const char *key,
	const struct bus_data *data, uint64_t now_ns);
/* What is kept for later clients of all messages with this key. */
void bus_forget(struct bus *bus, const char *key);
/* Appends LiveHistory of schema/api.json. */
void bus_write_history(struct bus *bus, const char *key, struct strbuf *out, uint64_t now_ns);

/*
 * `wake`: there is a frame for the client; called again only after bus_next() had none. Then
 * `hello`, the member `data` of the first message. `epoch` and `seq` are those of the last message
 * that it has; NULL: it is new, and gets a snapshot. Returns 0 or -ENOMEM.
 */
int bus_add(struct bus *bus, struct bus_client **ret_client, const char *hello, const char *epoch,
	uint64_t seq, void (*wake)(void *context), void *context, uint64_t now_ns);
/* From now on it gets binary frames of messages that have columns. */
void bus_take_binary(struct bus_client *client);
struct bus_client *bus_remove(struct bus_client *client);
/*
 * Appends the next frame to `out`: an envelope, or an array of those that wait, up to
 * BUS_FRAME_BYTES, since each frame costs its receiver and the kernel as much as many messages do.
 * Returns false where there is none for now, and where memory has run out (strbuf_status()).
 */
bool bus_next(struct bus_client *client, struct strbuf *out, struct bus_frame *ret_frame,
	uint64_t now_ns);
/* The server ends: each gets what waits, and a message that says so, then is closed. */
void bus_say_bye(struct bus *bus, uint64_t now_ns);
/* Its last message was made, or will be when it can be sent. */
bool bus_is_ending(const struct bus_client *client);
