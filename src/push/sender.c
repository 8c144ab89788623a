/* SPDX-License-Identifier: Apache-2.0 */
#include "push/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/warn.h"
#include "push/queue.h"

#define FIRST_WAIT_NS (1 * NS_PER_S)
#define MOST_WAIT_NS  (300 * NS_PER_S)
/* Looks at the queues without being woken, as when a byte in the pipe was lost. */
#define IDLE_MS 60000
#define NICE    10

/* As the sender's process sees a receiver. */
struct line {
	const struct receiver *receiver;
	struct push_queue queue;
	struct sender_counts *counts;
	uint64_t wait_ns; /* after the last failure; 0: there was none */
	uint64_t next_ns; /* not before */
	bool is_dropping; /* windows were removed before they were delivered, and that was reported
			   */
};

struct sender {
	struct sender_options options;
	struct line lines[SENDER_RECEIVERS];
	struct sender_counts *counts; /* shared by both processes */
	pid_t pid;                    /* 0: it was reaped */
	int pipe;                     /* a byte for each window; its end is the recording's */
	struct errmsg fault;
};

/* ---- the process ---- */

static void _printf_(2, 3) say(const struct sender *sender, const char *format, ...)
{
	struct errmsg sentence = {""};
	va_list arguments;

	if (sender->options.is_quiet)
		return;
	va_start(arguments, format);
	vsnprintf(sentence.text, sizeof(sentence.text), format, arguments);
	va_end(arguments);
	warn("%s", sentence.text);
}

static uint64_t earlier_by_chance(uint64_t wait_ns)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = monotonic_now_ns();
	return wait_ns - random % (wait_ns / 2);
}

static void put_off(
	struct sender *sender, struct line *line, uint64_t asked_s, const struct errmsg *err)
{
	uint64_t wait_ns = line->wait_ns ? MIN(2 * line->wait_ns, MOST_WAIT_NS) : FIRST_WAIT_NS;

	if (!line->wait_ns)
		say(sender, "%s; windows wait in %s/queue, and are sent again", err->text,
			sender->options.folder);
	line->wait_ns = wait_ns;
	line->counts->failures++;
	line->next_ns = monotonic_now_ns() + MAX(earlier_by_chance(wait_ns), asked_s * NS_PER_S);
}

static void succeed(struct sender *sender, struct line *line, int fd)
{
	struct stat status = {0};

	fstat(fd, &status);
	if (line->wait_ns)
		say(sender, "%s takes windows again", line->receiver->address);
	line->wait_ns = line->next_ns = 0;
	line->is_dropping = false;
	line->counts->delivered++;
	line->counts->delivered_bytes += (uint64_t)status.st_size;
}

/* Returns whether the window is out of the queue. */
static bool deliver(struct sender *sender, struct line *line, const char *window)
{
	_cleanup_close_ int fd = push_queue_open_window(&line->queue, window);
	struct errmsg err = {""};
	uint64_t asked_s;

	if (fd == -ENOENT) {
		line->counts->dropped++;
		if (!line->is_dropping)
			say(sender,
				"%s was removed before %s took it: windows are dropped; keep more "
				"(--keep)",
				window, line->receiver->address);
		line->is_dropping = true;
		return true;
	}
	if (fd >= 0 && receiver_takes_metrics(line->receiver)) {
		close(fd);
		fd = push_queue_open_bytes(&line->queue, window);
	}
	if (fd < 0)
		return false;
	switch (receiver_deliver(line->receiver, window, fd, &asked_s, &err)) {
	case DELIVERY_DONE:
		succeed(sender, line, fd);
		return true;
	case DELIVERY_LATER:
		put_off(sender, line, asked_s, &err);
		return false;
	case DELIVERY_REJECTED:
		line->counts->rejected++;
		say(sender, "%s: %s is dropped", err.text, window);
		return true;
	}
	return false;
}

/* One window of a receiver, when it is time. Returns whether there may be more at once. */
static bool deliver_one(struct sender *sender, struct line *line)
{
	_cleanup_free_ char *window = NULL;
	uint64_t waiting;
	bool is_done;

	if (monotonic_now_ns() < line->next_ns)
		return false;
	if (push_queue_first(&line->queue, &window, &waiting) <= 0) {
		line->counts->waiting = waiting;
		return false;
	}
	line->counts->waiting = waiting;
	is_done = deliver(sender, line, window);
	if (is_done) {
		push_queue_remove(&line->queue, window);
		line->counts->waiting = waiting - 1;
	}
	return is_done;
}

static int timeout_ms(const struct sender *sender)
{
	uint64_t now_ns = monotonic_now_ns(), next_ns = now_ns + IDLE_MS * NS_PER_MS;

	for (size_t i = 0; i < sender->options.receiver_count; i++) {
		const struct line *line = &sender->lines[i];

		if (line->next_ns > now_ns)
			next_ns = MIN(next_ns, line->next_ns);
	}
	return (int)((next_ns - now_ns) / NS_PER_MS) + 1;
}

/* False: the recording has ended. */
static bool read_pipe(int fd)
{
	char bytes[64];
	ssize_t got;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		;
	return got < 0;
}

static void run(struct sender *sender, int fd)
{
	bool goes_on = true;

	while (goes_on) {
		struct pollfd more = {.fd = fd, .events = POLLIN};
		bool is_busy = false;

		for (size_t i = 0; i < sender->options.receiver_count; i++)
			is_busy |= deliver_one(sender, &sender->lines[i]);
		if (poll(&more, 1, is_busy ? 0 : timeout_ms(sender)) > 0)
			goes_on = read_pipe(fd);
	}
	/* What is there is tried once more. */
	for (size_t i = 0; i < sender->options.receiver_count; i++) {
		sender->lines[i].next_ns = 0;
		while (deliver_one(sender, &sender->lines[i]))
			;
	}
}

/* The recorder's end is ours; the signals that end it are not. */
static void become_sender(pid_t recorder)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "sonde-sender");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != recorder)
		_exit(1);
	setpriority(PRIO_PROCESS, 0, NICE);
}

static int start_process(struct sender *sender, struct errmsg *err)
{
	pid_t recorder = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return errmsg_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	sender->pid = fork();
	if (sender->pid < 0) {
		close(ends[0]);
		close(ends[1]);
		sender->pid = 0;
		return errmsg_set(err, -errno, "cannot start a process: %s", strerror(errno));
	}
	if (sender->pid == 0) {
		close(ends[1]);
		become_sender(recorder);
		run(sender, ends[0]);
		_exit(0);
	}
	close(ends[0]);
	sender->pipe = ends[1];
	return 0;
}

/* ---- the recorder's side ---- */

int sender_start(
	struct sender **ret_sender, const struct sender_options *options, struct errmsg *err)
{
	struct sender *sender = calloc(1, sizeof(*sender));
	size_t bytes = sizeof(*sender->counts) * SENDER_RECEIVERS;
	int r = 0;

	if (!sender)
		return -ENOMEM;
	sender->options = *options;
	sender->pipe = -1;
	sender->counts =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sender->counts == MAP_FAILED) {
		sender->counts = NULL;
		r = -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < options->receiver_count; i++) {
		const struct receiver *receiver = &options->receivers[i];

		sender->lines[i] =
			(struct line){.receiver = receiver, .counts = &sender->counts[i]};
		r = push_queue_open(&sender->lines[i].queue, options->folder,
			receiver_kind_name(receiver->kind), receiver->address, err);
	}
	if (r == 0)
		r = start_process(sender, err);
	if (r == 0)
		*ret_sender = sender;
	else
		sender_free(sender);
	return r;
}

int sender_add(struct sender *sender, const char *window, const struct strbuf *metrics)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sender->options.receiver_count; i++)
		r = push_queue_add(&sender->lines[i].queue, window,
			receiver_takes_metrics(sender->lines[i].receiver) ? metrics : NULL);
	/* A full pipe has enough in it to be looked at. */
	if (r == 0 && write(sender->pipe, "w", 1) < 0 && errno != EAGAIN)
		r = -errno;
	return r;
}

const struct sender_counts *sender_counts(const struct sender *sender, size_t receiver)
{
	return &sender->counts[receiver];
}

static bool reap(struct sender *sender, int flags)
{
	int status;

	if (!sender->pid || waitpid(sender->pid, &status, flags) != sender->pid)
		return !sender->pid;
	sender->pid = 0;
	if (WIFSIGNALED(status))
		errmsg_set(&sender->fault, 0,
			"the process that sends windows was ended by signal %d: they wait in "
			"%s/queue for the next recording",
			WTERMSIG(status), sender->options.folder);
	return true;
}

const char *sender_fault(struct sender *sender)
{
	reap(sender, WNOHANG);
	return sender->fault.text[0] ? sender->fault.text : NULL;
}

void sender_finish(struct sender *sender, uint64_t timeout_ns)
{
	static const struct timespec tick = {.tv_nsec = 20 * NS_PER_MS};
	uint64_t deadline_ns = monotonic_now_ns() + timeout_ns;

	closep(&sender->pipe);
	sender->pipe = -1;
	while (!reap(sender, WNOHANG) && monotonic_now_ns() < deadline_ns)
		nanosleep(&tick, NULL);
	if (!sender->pid)
		return;
	kill(sender->pid, SIGKILL);
	while (waitpid(sender->pid, NULL, 0) < 0 && errno == EINTR)
		;
	sender->pid = 0;
}

struct sender *sender_free(struct sender *sender)
{
	if (!sender)
		return NULL;
	sender_finish(sender, 0);
	for (size_t i = 0; i < sender->options.receiver_count; i++)
		push_queue_done(&sender->lines[i].queue);
	if (sender->counts)
		munmap(sender->counts, sizeof(*sender->counts) * SENDER_RECEIVERS);
	free(sender);
	return NULL;
}
