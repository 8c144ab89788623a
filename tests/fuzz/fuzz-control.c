/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes on a session's control socket, from several clients. The input: pieces, each after two
 * bytes that say which client sends how much of it. A client that gets 63 as the length closes its
 * end, one that gets 62 reads what was answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/session/control.h"
#include "target.h"
#include "wire/gate.h"

#define CLIENTS (CONTROL_CLIENTS + 2) /* two have to wait */

static char folder[] = "/tmp/sonde-fuzz-XXXXXX";
static char path[sizeof(folder) + sizeof("/" WIRE_CONTROL_NAME)];

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

/* A line of the client's: it may be changed, and some answers are longer than a socket holds. */
static void answer(void *context, char *line, struct strbuf *out)
{
	size_t length = strlen(line);

	check(length < CONTROL_LINE_BYTES && !strchr(line, '\n'));
	memset(line, 'x', length);
	strbuf_addf(out, "{\"ok\":true,\"line\":\"%s\"}", line);
	for (size_t i = 0; length > 100 && i < 2048; i++)
		strbuf_addf(out, "%s", line);
}

static int connect_client(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	check(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		closep(&fd);
	return fd;
}

static void receive(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static size_t act(int *fd, unsigned length, const uint8_t *bytes, size_t left)
{
	size_t sent = MIN((size_t)length, left);

	if (length == 63) {
		closep(fd);
		return 0;
	}
	if (*fd < 0)
		*fd = connect_client();
	if (*fd < 0)
		return 0;
	if (length == 62) {
		receive(*fd);
		return 0;
	}
	send(*fd, bytes, sent, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent;
}

static struct control *open_control(void)
{
	struct control *control;
	struct errmsg err;

	check(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/" WIRE_CONTROL_NAME, folder);
	atexit(remove_folder);
	check(control_open(&control, folder, answer, NULL, &err) == 0);
	return control;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct control *control;
	int clients[CLIENTS];

	if (!control)
		control = open_control();
	memset(clients, -1, sizeof(clients));
	while (length >= 2) {
		/* Four times the number, so that lines of any length are made of few pieces. */
		unsigned size = bytes[1] & 63, client = bytes[0] % CLIENTS;
		size_t used;

		bytes += 2;
		length -= 2;
		used = act(&clients[client], size < 62 ? size * 4 : size, bytes, length);
		bytes += used;
		length -= used;
		control_run(control);
	}
	control_run(control);
	for (size_t i = 0; i < CLIENTS; i++)
		closep(&clients[i]);
	control_run(control); /* the last two had to wait, and come now */
	control_run(control);
	return 0;
}
