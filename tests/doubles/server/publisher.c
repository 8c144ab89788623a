/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose live messages a test makes, in place of those of a recording: for each line
 * "TYPE CLASS COUNT BYTES" of standard input it publishes so many messages of so many bytes, and
 * prints "published" with the number of the last one. CLASS is the place in enum api_class. With
 * "rate TYPE CLASS COUNT BYTES PER_SECOND" they come evenly, each with the time at which it was due
 * (sent_ns, monotonic); then it also prints how late the latest one was, and the CPU time that one
 * took to publish, both in ns.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
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

static struct {
	struct loop_watch watch; /* first: of a timer */
	char type[32];
	unsigned class, count, bytes, sent;
	double per_second;
	uint64_t begin_ns, latest_ns, cpu_ns;
} rate;

static void print_published(void)
{
	uint64_t oldest, newest;

	bus_range(publisher.bus, &oldest, &newest);
	printf("published %llu", (unsigned long long)newest);
}

static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t due_ns(unsigned index)
{
	return rate.begin_ns + (uint64_t)((double)index * (double)NS_PER_S / rate.per_second);
}

static void publish_due(void)
{
	uint64_t now = monotonic_now_ns(), cpu = cpu_now_ns();

	for (; rate.sent < rate.count && due_ns(rate.sent) <= now; rate.sent++) {
		char data[4096];
		int length = snprintf(data, sizeof(data), "{\"sent_ns\":%llu,\"pad\":\"%0*d\"}",
			(unsigned long long)due_ns(rate.sent), (int)rate.bytes, 0);

		rate.latest_ns = MAX(rate.latest_ns, monotonic_now_ns() - due_ns(rate.sent));
		bus_publish(publisher.bus, rate.type, (enum api_class)rate.class, data,
			(size_t)length, monotonic_now_ns());
	}
	rate.cpu_ns += cpu_now_ns() - cpu;
}

static void rate_due(struct loop_watch *watch)
{
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	publish_due();
	if (rate.sent < rate.count)
		return;
	loop_remove(publisher.loop, watch);
	close(watch->fd);
	print_published();
	printf(" %llu %llu\n", (unsigned long long)rate.latest_ns,
		(unsigned long long)(rate.cpu_ns / rate.count));
	fflush(stdout);
}

/* As often as a source of messages is read: each millisecond. */
static bool begin_rate(const char *line)
{
	const struct itimerspec each = {{0, NS_PER_MS}, {0, NS_PER_MS}};
	int fd;

	memset(&rate, 0, sizeof(rate));
	if (sscanf(line, "rate %31s %u %u %u %lf", rate.type, &rate.class, &rate.count, &rate.bytes,
		    &rate.per_second) != 5 ||
		!rate.count || rate.bytes > 3000 || rate.per_second <= 0)
		return false;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	timerfd_settime(fd, 0, &each, NULL);
	rate.begin_ns = monotonic_now_ns();
	rate.watch = (struct loop_watch){.fd = fd, .ready = rate_due};
	return loop_add(publisher.loop, &rate.watch) == 0;
}

static void publish(const char *line)
{
	char type[32], *data;
	unsigned class, count, bytes;

	if (begin_rate(line))
		return;
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
	print_published();
	printf("\n");
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
