/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/ring_reader.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

/* What may wait for the collector: a third of a second of 300,000 records a second. */
#define MAX_WAITING_BYTES ((size_t)15 << 20)
/* A buffer that once was larger is not kept. */
#define KEPT_BYTES ((size_t)2 << 20)

/* Before each record. */
struct origin {
	uint32_t pid, reserved;
};

struct ring_reader {
	struct target_rings *rings;
	pthread_t thread;
	bool is_running;
	int stop_fd;        /* readable: the thread is to end */
	struct strbuf read; /* by whoever locked the rings, and so what follows */
	bool was_read;      /* since the last take */
	int result;
	struct strbuf taken; /* the collector's: no lock */
};

static void keep_record(void *context, uint32_t pid, const struct wire_record *record)
{
	struct ring_reader *reader = context;
	const struct origin origin = {.pid = pid};
	char *room = strbuf_room(&reader->read, sizeof(origin) + record->length_bytes);

	if (!room)
		return;
	memcpy(room, &origin, sizeof(origin));
	memcpy(room + sizeof(origin), record, record->length_bytes);
	strbuf_take(&reader->read, sizeof(origin) + record->length_bytes);
}

/* Returns how long the rings can be left alone now. */
static int read_rings(struct ring_reader *reader)
{
	int result = 0, pause_ms = 1;
	double fill;

	target_rings_lock(reader->rings);
	if (reader->read.length < MAX_WAITING_BYTES && reader->result == 0) {
		result = target_rings_drain(reader->rings, keep_record, reader);
		reader->was_read = true;
		fill = target_rings_fill(reader->rings);
		pause_ms = fill > 0.4 ? 0 : fill > 0.1 ? 1 : fill > 0.02 ? 3 : 10;
	} else {
		/* Late is not dead: a process whose ring is full would close the gate. */
		target_gate_beat(target_rings_gate(reader->rings));
	}
	if (result == 0)
		result = strbuf_status(&reader->read);
	if (result < 0)
		reader->result = result;
	target_rings_unlock(reader->rings);
	return pause_ms;
}

static void *run(void *context)
{
	struct ring_reader *reader = context;
	struct pollfd stop = {.fd = reader->stop_fd, .events = POLLIN};

	pthread_setname_np(pthread_self(), "sonde-rings");
	while (poll(&stop, 1, read_rings(reader)) <= 0)
		;
	return NULL;
}

int ring_reader_start(struct ring_reader **ret_reader, struct target_rings *rings)
{
	struct ring_reader *reader = calloc(1, sizeof(*reader));
	int result;

	if (!reader)
		return -ENOMEM;
	reader->rings = rings;
	reader->stop_fd = eventfd(0, EFD_CLOEXEC);
	result = reader->stop_fd < 0 ? -errno : -pthread_create(&reader->thread, NULL, run, reader);
	reader->is_running = result == 0;
	if (result < 0) {
		ring_reader_free(reader);
		return result;
	}
	*ret_reader = reader;
	return 0;
}

int ring_reader_take(
	struct ring_reader *reader, target_rings_record_function *on_record, void *context)
{
	struct strbuf read;
	int result;

	if (reader->taken.capacity > KEPT_BYTES)
		strbuf_done(&reader->taken);
	strbuf_clear(&reader->taken);
	target_rings_lock(reader->rings);
	read = reader->read;
	reader->read = reader->taken;
	result = reader->result < 0 ? reader->result : reader->was_read;
	reader->was_read = false;
	target_rings_unlock(reader->rings);
	reader->taken = read;
	for (size_t at = 0; at < read.length;) {
		const struct origin *origin = (const void *)(read.data + at);
		const struct wire_record *record = (const void *)(origin + 1);

		on_record(context, origin->pid, record);
		at += sizeof(*origin) + record->length_bytes;
	}
	return result;
}

void ring_reader_stop(struct ring_reader *reader)
{
	const uint64_t one = 1;

	if (!reader || !reader->is_running)
		return;
	while (write(reader->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(reader->thread, NULL);
	reader->is_running = false;
}

struct ring_reader *ring_reader_free(struct ring_reader *reader)
{
	if (!reader)
		return NULL;
	ring_reader_stop(reader);
	closep(&reader->stop_fd);
	strbuf_done(&reader->read);
	strbuf_done(&reader->taken);
	free(reader);
	return NULL;
}
