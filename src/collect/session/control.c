/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session/control.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "wire/gate.h"

struct client {
	int fd; /* -1: none */
	size_t length;
	char line[CONTROL_LINE_BYTES];
};

struct control {
	int fd, poll_fd;
	control_answer_function *answer;
	void *context;
	struct client clients[CONTROL_CLIENTS];
};

static int listen_at(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/" WIRE_CONTROL_NAME,
		    folder) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		chmod(address.sun_path, 0600) < 0 || listen(fd, CONTROL_CLIENTS) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static bool watch(const struct control *control, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(control->poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int control_open(struct control **ret_control, const char *folder, control_answer_function *answer,
	void *context, struct errmsg *err)
{
	struct control *control = calloc(1, sizeof(*control));
	int result;

	if (!control)
		return -ENOMEM;
	control->answer = answer;
	control->context = context;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		control->clients[i].fd = -1;
	control->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	control->fd = control->poll_fd < 0 ? -errno : listen_at(folder);
	result = control->fd < 0 ? control->fd : watch(control, control->fd) ? 0 : -errno;
	if (result < 0) {
		control_free(control);
		return errmsg_set(err, result,
			"sonde ctl cannot reach this session: cannot make a socket in %s: %s",
			folder, strerror(-result));
	}
	*ret_control = control;
	return 0;
}

struct control *control_free(struct control *control)
{
	if (!control)
		return NULL;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		closep(&control->clients[i].fd);
	closep(&control->fd);
	closep(&control->poll_fd);
	free(control);
	return NULL;
}

int control_descriptor(const struct control *control)
{
	return control->poll_fd;
}

static struct client *free_client(struct control *control)
{
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (control->clients[i].fd < 0)
			return &control->clients[i];
	}
	return NULL;
}

/* Those that are too many wait to be accepted. */
static void take_clients(struct control *control)
{
	struct client *client;

	while ((client = free_client(control))) {
		client->length = 0;
		client->fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client->fd < 0)
			return;
		if (!watch(control, client->fd))
			closep(&client->fd);
	}
}

static void answer_line(struct control *control, struct client *client)
{
	_cleanup_strbuf_ struct strbuf answer = {0};

	control->answer(control->context, client->line, &answer);
	strbuf_add_char(&answer, '\n');
	if (strbuf_status(&answer) < 0 ||
		send(client->fd, answer.data, answer.length, MSG_NOSIGNAL | MSG_DONTWAIT) !=
			(ssize_t)answer.length)
		closep(&client->fd);
}

static void answer_lines(struct control *control, struct client *client)
{
	char *end;

	while (client->fd >= 0 && (end = memchr(client->line, '\n', client->length))) {
		size_t taken = (size_t)(end - client->line) + 1;

		*end = '\0';
		answer_line(control, client);
		memmove(client->line, client->line + taken, client->length - taken);
		client->length -= taken;
	}
	if (client->length == sizeof(client->line)) /* no line of ours is so long */
		closep(&client->fd);
}

static void read_client(struct control *control, struct client *client)
{
	ssize_t got = read(
		client->fd, client->line + client->length, sizeof(client->line) - client->length);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		closep(&client->fd);
		return;
	}
	client->length += (size_t)got;
	answer_lines(control, client);
}

void control_run(struct control *control)
{
	take_clients(control);
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (control->clients[i].fd >= 0)
			read_client(control, &control->clients[i]);
	}
}
