/* SPDX-License-Identifier: Apache-2.0 */
/* Power and energy in a recording. Nothing outside of the session includes this. */
#pragma once

#include "base/errmsg.h"

struct session;

/*
 * Finds the sources, before the command is started: where one that the user requires is missing,
 * that is an error with a sentence for each that was tried. Then measures the machine at rest, if
 * that is asked for.
 */
int session_open_energy(struct session *session, struct errmsg *err);
/* The recording begins now. */
void session_start_energy(struct session *session);
int session_collect_energy(struct session *session);
/* Up to the recording's end, in bounded time. */
int session_finish_energy(struct session *session);
void session_add_energy_notes(
	struct session *session, void (*add)(void *context, const char *sentence));
void session_close_energy(struct session *session);
