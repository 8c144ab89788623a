/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/room.h"

#include <string.h>
#include <time.h>

#define PAUSE_NS   1000000
#define MAX_PAUSES 200 /* for one record */

void inject_room_end(struct inject_room *room, uint64_t left_ns)
{
	atomic_store_explicit(
		&room->patient_until_ns, inject_now_ns() + left_ns, memory_order_relaxed);
}

bool inject_room_is_over(struct inject_room *room)
{
	uint64_t until_ns = atomic_load_explicit(&room->patient_until_ns, memory_order_relaxed);

	return until_ns && inject_now_ns() >= until_ns;
}

/* `pauses`: of this record so far; 0: it has found room. */
static bool wait_for_room(struct inject_room *room, unsigned pauses)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	if (!pauses)
		room->is_impatient = false;
	else if (pauses > MAX_PAUSES || inject_room_is_over(room))
		room->is_impatient = true;
	if (!pauses || room->is_impatient || !inject_is_writable())
		return false;
	room->repeated++;
	nanosleep(&pause, NULL);
	return true;
}

void *inject_room_reserve(struct inject_room *room, uint32_t bytes, struct inject_place *ret_place)
{
	unsigned pauses = 0;
	void *to;

	while (!(to = inject_reserve(bytes, ret_place)))
		if (!wait_for_room(room, ++pauses)) {
			room->waited_out++;
			return NULL;
		}
	wait_for_room(room, 0);
	return to;
}

bool inject_room_write(struct inject_room *room, const struct wire_record *record)
{
	struct inject_place place;
	void *to = inject_room_reserve(room, record->length_bytes, &place);

	if (!to)
		return false;
	memcpy(to, record, record->length_bytes);
	inject_commit(&place);
	return true;
}

void inject_room_lose(struct inject_room *room, uint64_t records)
{
	unsigned char *data;
	uint32_t index;
	struct wire_ring *ring = inject_ring(&data, &index);

	room->waited_out += records;
	if (ring)
		atomic_store_explicit(&ring->lost,
			atomic_load_explicit(&ring->lost, memory_order_relaxed) + records,
			memory_order_relaxed);
}

bool inject_room_define(
	struct inject_room *room, uint16_t type, uint32_t id, uint32_t device, const char *text)
{
	unsigned pauses = 0;

	while (!inject_define(type, id, device, text))
		if (!wait_for_room(room, ++pauses))
			return false;
	wait_for_room(room, 0);
	return true;
}

bool inject_room_define_name(struct inject_room *room, uint32_t id, const char *name)
{
	if (!inject_room_define(room, WIRE_RECORD_DEVICE_NAME, id, 0, name))
		return false;
	for (size_t rest = strlen(name); rest > WIRE_DEVICE_TEXT_BYTES;
		rest -= WIRE_DEVICE_TEXT_BYTES)
		if (!inject_room_define(room, WIRE_RECORD_DEVICE_NAME_PART, id, 0,
			    name + strlen(name) - rest + WIRE_DEVICE_TEXT_BYTES))
			return false;
	return true;
}

/* One that finds no room is no loss: the next one has all that it had. */
void inject_room_write_counts(struct inject_room *room, struct wire_device_counts *counts)
{
	unsigned pauses = 0;
	bool is_written;

	do {
		counts->waited_out = room->waited_out;
		counts->repeated = room->repeated;
		is_written = inject_write(&counts->record);
	} while (!is_written && wait_for_room(room, ++pauses));
	if (is_written)
		wait_for_room(room, 0);
	else if (inject_is_writable())
		room->repeated++;
}

void inject_room_write_last_counts(struct inject_room *room, struct wire_device_counts *counts)
{
	counts->waited_out = room->waited_out;
	counts->repeated = room->repeated;
	inject_write_last(counts);
}
