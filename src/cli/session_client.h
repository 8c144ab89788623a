/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a recording that runs, and asks it: the other end of collect/session/control.h. */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"

#define SESSION_FOLDER_BYTES 512
#define SESSION_LINE_BYTES   512

/*
 * The folder of the session that `which` means: a folder, the pid of a sonde, or of a process that
 * one records; NULL: the only one of this user. Returns 0 or a negative errno with a sentence.
 */
int session_client_find(
	const char *which, char ret_folder[SESSION_FOLDER_BYTES], struct errmsg *err);
/* Sends a line, which ends with a line feed; the answer is without it. */
int session_client_ask(
	const char *folder, const char *line, struct strbuf *ret_answer, struct errmsg *err);
