/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finished sentences for people about what traces a runtime (enum wire_device_note). They are
 * written on any thread, kept while the gate is closed, and sent by a thread of ours.
 */
#pragma once

#include "inject/room.h"

/* Neither waits nor allocates. Who repeats himself is heard 32 times. */
void inject_note(unsigned note, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* False while some wait for the gate. */
bool inject_send_notes(struct inject_room *room);
/* In another session: what the tracer is and does wrong is said again. */
void inject_repeat_notes(void);
