/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a capture that grows, and writes live messages of it to a socket: the whole life of a
 * process, which only reads the file, so that the recorder never waits for it.
 *
 * A message is a struct live_packet, `length` bytes of JSON and `columns_length` bytes of the same
 * as columns (live/columns.h). The process waits where nobody reads them: the next message is then
 * of all that came meanwhile.
 */
#pragma once

#include <stdint.h>

#include "live/live.h"

struct live_packet {
	uint16_t message;  /* enum live_message */
	uint16_t is_final; /* of LIVE_ENDED: growth would change nothing */
	uint32_t length, columns_length;
};

struct live_setup {
	int fd;     /* of the capture: a regular file, from its beginning on */
	int socket; /* a stream; the follower ends when its other end is closed */
	const char *capture, *name;
	uint64_t generation;
	/* Without growth for so long it is reported as stalled; and for this long it ends. */
	uint64_t stalled_ns, gone_ns;
};

#define LIVE_STALLED_NS (10 * NS_PER_S)
#define LIVE_GONE_NS    (600 * NS_PER_S)

/*
 * Returns when the recording has ended, the file cannot be read on, or the socket is closed: each
 * but the last was sent in a message.
 */
void live_follow(const struct live_setup *setup);
