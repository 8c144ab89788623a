/* SPDX-License-Identifier: Apache-2.0 */
#include "server/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Then libwebsockets looks at its clients again. */
#define CALLS_AT_ONCE 64

int loop_open(struct loop *loop)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

void loop_close(struct loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

int loop_add(struct loop *loop, struct loop_watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) < 0 ? -errno : 0;
}

void loop_remove(struct loop *loop, struct loop_watch *watch)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
}

/* One event at a time: the one before may have removed the watch of the next. */
int loop_run(struct loop *loop, int timeout_ms)
{
	for (int i = 0; i < CALLS_AT_ONCE; i++) {
		struct epoll_event event;
		int count = epoll_wait(loop->epoll_fd, &event, 1, i ? 0 : timeout_ms);

		if (count <= 0)
			return count < 0 && errno != EINTR ? -errno : 0;
		((struct loop_watch *)event.data.ptr)->ready(event.data.ptr);
	}
	return 0;
}
