/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which captures are being recorded right now, and their live messages: for each a process that
 * follows the file (live/follower.h) and writes messages, which go to the bus under the capture's
 * id. A capture is followed when it has grown between two looks; nobody looks while there is no
 * client.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/bus.h"
#include "server/captures.h"
#include "server/loop.h"

struct followers;

struct followers_setup {
	struct loop *loop;
	struct bus *bus;
	struct captures *captures;
	uint64_t memory_bytes; /* of each process; 0: no limit */
	bool follows_at_once;  /* the captures are being recorded: there is no need to see it */
};

/* Returns 0 or -ENOMEM. */
int followers_open(struct followers **ret_followers, const struct followers_setup *setup);
struct followers *followers_close(struct followers *followers);
/* Looks, now and then. `is_wanted`: there are clients. */
void followers_tick(struct followers *followers, uint64_t now_ns, bool is_wanted);
