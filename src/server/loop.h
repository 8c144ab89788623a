/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that the server waits for besides its clients: pipes of workers, sources of live
 * messages, a clock. All are in one epoll descriptor, which libwebsockets waits for with its own.
 */
#pragma once

#include <stdint.h>

struct loop {
	int epoll_fd;
};

/* Embedded by who waits; `ready` may remove any watch and free its owner. */
struct loop_watch {
	int fd;
	void (*ready)(struct loop_watch *watch);
};

/* All return 0 or a negative errno. */
int loop_open(struct loop *loop);
void loop_close(struct loop *loop);
/* Until loop_remove(): when there is something to read, or the other end has closed. */
int loop_add(struct loop *loop, struct loop_watch *watch);
/* Does not close the descriptor. */
void loop_remove(struct loop *loop, struct loop_watch *watch);
/* Calls those that are ready; waits for one at most `timeout_ms`, 0: not at all. */
int loop_run(struct loop *loop, int timeout_ms);
