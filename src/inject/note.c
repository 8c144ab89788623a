/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/note.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_NOTES 32

enum note_state {
	NOTE_FREE,
	NOTE_READY,
	NOTE_TAKEN, /* being sent */
	NOTE_TOLD,
};

static struct {
	_Atomic uint32_t state; /* enum note_state */
	uint32_t note;
	char text[WIRE_DEVICE_TEXT_BYTES];
} notes[MAX_NOTES];
static _Atomic uint32_t note_count;

void inject_note(unsigned note, const char *format, ...)
{
	uint32_t i = atomic_load_explicit(&note_count, memory_order_relaxed);
	va_list arguments;

	if (i >= MAX_NOTES)
		return;
	i = atomic_fetch_add_explicit(&note_count, 1, memory_order_relaxed);
	if (i >= MAX_NOTES)
		return;
	notes[i].note = note;
	va_start(arguments, format);
	vsnprintf(notes[i].text, sizeof(notes[i].text), format, arguments);
	va_end(arguments);
	atomic_store_explicit(&notes[i].state, NOTE_READY, memory_order_release);
}

/* Each runtime has a thread that sends. */
bool inject_send_notes(struct inject_room *room)
{
	bool all = true;

	for (size_t i = 0; i < MAX_NOTES; i++) {
		uint32_t state = NOTE_READY;
		bool is_sent;

		if (!atomic_compare_exchange_strong(&notes[i].state, &state, NOTE_TAKEN))
			continue;
		is_sent = inject_room_define(
			room, WIRE_RECORD_DEVICE_NOTE, notes[i].note, 0, notes[i].text);
		all = all && is_sent;
		atomic_store_explicit(
			&notes[i].state, is_sent ? NOTE_TOLD : NOTE_READY, memory_order_release);
	}
	return all;
}

void inject_repeat_notes(void)
{
	for (size_t i = 0; i < MAX_NOTES; i++) {
		uint32_t told = NOTE_TOLD;

		if (notes[i].note == WIRE_NOTE_TRACER || notes[i].note == WIRE_NOTE_FAULTY)
			atomic_compare_exchange_strong(&notes[i].state, &told, NOTE_READY);
	}
}
