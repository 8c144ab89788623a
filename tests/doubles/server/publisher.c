/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose live messages a test makes, in place of those of a recording: for each line
 * "TYPE CLASS COUNT BYTES" of standard input it publishes so many messages of so many bytes, and
 * prints "published" with the number of the last one. CLASS is the place in enum api_class.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "server/bus.h"
#include "server/server.h"

static struct {
	struct loop_watch watch; /* first */
	struct loop *loop;
	struct bus *bus;
	char line[256];
	size_t length;
} publisher;

static void publish(const char *line)
{
	char type[32], *data;
	unsigned class, count, bytes;
	uint64_t oldest, newest;

	if (sscanf(line, "%31s %u %u %u", type, &class, &count, &bytes) != 4)
		return;
	data = malloc(bytes + 16);
	for (unsigned i = 0; data && i < count; i++) {
		int length = snprintf(data, bytes + 16, "{\"pad\":\"%0*d\"}", (int)bytes, 0);

		length = MIN(length, (int)bytes + 15);
		bus_publish(publisher.bus, type, (enum api_class) class, data, (size_t)length,
			monotonic_now_ns());
	}
	free(data);
	bus_range(publisher.bus, &oldest, &newest);
	printf("published %llu\n", (unsigned long long)newest);
	fflush(stdout);
}

static void readable(struct loop_watch *watch)
{
	char byte;

	while (read(watch->fd, &byte, 1) == 1) {
		if (byte != '\n' && publisher.length + 1 < sizeof(publisher.line)) {
			publisher.line[publisher.length++] = byte;
			continue;
		}
		publisher.line[publisher.length] = '\0';
		publisher.length = 0;
		publish(publisher.line);
		return;
	}
}

static int start(void *context, struct loop *loop, struct bus *bus)
{
	publisher.watch = (struct loop_watch){.fd = STDIN_FILENO, .ready = readable};
	publisher.loop = loop;
	publisher.bus = bus;
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	return loop_add(loop, &publisher.watch);
}

static void listening(void *context, const char *address)
{
	printf("%s\n", address);
	fflush(stdout);
}

int main(void)
{
	const struct server_source source = {.start = start};
	const struct server_options options = {
		.listen = "127.0.0.1:0",
		.limits = ANSWERS_LIMITS_DEFAULT,
		.source = &source,
		.listening = listening,
	};
	struct errmsg err;

	if (server_run(&options, &err) == 0)
		return 0;
	fprintf(stderr, "%s\n", err.text);
	return 1;
}
