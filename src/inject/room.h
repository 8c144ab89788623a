/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing on threads of ours, which may wait for the collector where a ring is full, but not again
 * and again for one that has stopped. Each runtime has a struct inject_room of its own, zeroed, for
 * one thread at a time.
 */
#pragma once

#include "inject/inject.h"

struct inject_room {
	bool is_impatient;
	uint64_t repeated;                 /* tries that found no room */
	uint64_t waited_out;               /* records that found none however long */
	_Atomic uint64_t patient_until_ns; /* 0: as long as it takes */
};

/* Of the seconds that a program's end waits for the writer (worker.c): the rest is for counting. */
#define INJECT_ROOM_END_NS 3000000000ULL

/*
 * From any thread, when the program ends: after `left_ns` no room is waited for, and what was not
 * read is lost.
 */
void inject_room_end(struct inject_room *room, uint64_t left_ns);
/* That time is over: what is left is counted, and no longer written. */
bool inject_room_is_over(struct inject_room *room);
/* So many records are lost, and counted, without a try. */
void inject_room_lose(struct inject_room *room, uint64_t records);

/* As inject_reserve(); NULL: the record is lost, and counted. */
void *inject_room_reserve(struct inject_room *room, uint32_t bytes, struct inject_place *ret_place);
/* False: the record is lost, and counted. */
bool inject_room_write(struct inject_room *room, const struct wire_record *record);
/* False: it is not defined; nothing is counted. */
bool inject_room_define(
	struct inject_room *room, uint16_t type, uint32_t id, uint32_t device, const char *text);
/* A name of any length, in parts. */
bool inject_room_define_name(struct inject_room *room, uint32_t id, const char *name);
/* The same for counts; what the room has counted, the tries of these included, is filled in. */
void inject_room_write_counts(struct inject_room *room, struct wire_device_counts *counts);
/* At the program's end: without these the account lacks what was counted since those before. Every
 * other record leaves room for them. */
void inject_room_write_last_counts(struct inject_room *room, struct wire_device_counts *counts);
