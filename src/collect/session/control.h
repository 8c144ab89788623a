/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's control socket, `control` in its folder: one line in, one line out, by which `sonde
 * ctl` and programs open and close windows.
 *
 * A line is "start [LABEL]", "stop", "step [NAME]" or "status", and is answered by one line of
 * JSON: an object with "ok", and "error", a sentence, where that is false. Only the folder's owner
 * can reach the socket. Clients that do not read lose their answers; nobody waits for them.
 */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"

#define CONTROL_CLIENTS    16
#define CONTROL_LINE_BYTES 512

struct control;

/* Appends the answer to a line, which has no line feed, without one. */
typedef void control_answer_function(void *context, char *line, struct strbuf *answer);

/* Returns 0 or a negative errno with a sentence. */
int control_open(struct control **ret_control, const char *folder, control_answer_function *answer,
	void *context, struct errmsg *err);
struct control *control_free(struct control *control);
/* Readable when control_run() has something to do. */
int control_descriptor(const struct control *control);
/* Takes new clients and answers all lines that are there. */
void control_run(struct control *control);
