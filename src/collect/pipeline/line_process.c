/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/line_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "collect/pipeline/line_answer.h"

#define TICK_MS 50

/* ---- the child ---- */

static void add_text(struct strbuf *out, const char *text, uint32_t *ret_length)
{
	size_t length = text ? strlen(text) + 1 : 0;

	*ret_length = length <= LINE_TEXT_MAX_BYTES ? (uint32_t)length : 0;
	strbuf_add_bytes(out, text, *ret_length);
}

static void send_answer(int fd, struct line_answer answer, const struct strbuf *body)
{
	answer.length = body ? (uint32_t)body->length : 0;
	/* Without its parent nobody needs the child. */
	if (write_all(fd, &answer, sizeof(answer)) < 0 ||
		(body && write_all(fd, body->data, body->length) < 0))
		_exit(1);
}

static void send_lines(int fd, size_t index, const struct source_line *lines, size_t count)
{
	struct line_answer_line heads[LINE_PROCESS_DEPTH] = {0};
	struct strbuf texts = {0}, body = {0};

	for (size_t i = 0; i < count; i++) {
		heads[i].line = lines[i].line;
		add_text(&texts, lines[i].function, &heads[i].function_length);
		add_text(&texts, lines[i].file, &heads[i].file_length);
	}
	strbuf_add_bytes(&body, heads, count * sizeof(heads[0]));
	strbuf_add_bytes(&body, texts.data, texts.length);
	if (strbuf_status(&texts) < 0 || strbuf_status(&body) < 0)
		_exit(1);
	send_answer(fd,
		(struct line_answer){.kind = LINE_ANSWER_LINES,
			.index = (uint32_t)index,
			.count = (uint32_t)count},
		&body);
	strbuf_done(&texts);
	strbuf_done(&body);
}

static void send_failure(int fd, const char *why)
{
	struct strbuf body = {0};

	strbuf_add_bytes(&body, why, strlen(why) + 1);
	send_answer(fd, (struct line_answer){.kind = LINE_ANSWER_FAILED}, &body);
	strbuf_done(&body);
}

/*
 * Debug information names further files by their paths: split units, and what dwz put together. A
 * file that another user wrote must not make us open any.
 */
static void limit_opening(const struct line_table *table)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(1);
	limit.rlim_cur = table && !line_table_is_trusted(table) ? 0 : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(1);
}

/* False, and reported, when the file's sections alone unpack to more memory than there is. */
static bool fits(const struct line_request *request, const struct line_table *table, int fd)
{
	uint64_t unpacked = line_table_unpacked_bytes(table);
	char why[160];

	if (unpacked <= request->memory_bytes)
		return true;
	snprintf(why, sizeof(why),
		"its compressed debug information unpacks to %llu MB, more than the %llu MB that "
		"sonde reads",
		(unsigned long long)(unpacked >> 20),
		(unsigned long long)(request->memory_bytes >> 20));
	send_failure(fd, why);
	return false;
}

static void read_file(const struct line_request *request, const struct line_file *file, int fd)
{
	struct line_table *table = request->open(request->context, file->file);
	struct source_line lines[LINE_PROCESS_DEPTH];

	if (table && !fits(request, table, fd)) {
		line_table_free(table);
		return;
	}
	limit_opening(table);
	for (size_t i = 0; i < file->count; i++) {
		size_t index = file->first + i, count = 0;

		if (table)
			count = line_table_find(
				table, request->addresses[index], lines, LINE_PROCESS_DEPTH);
		if (table && line_table_failure(table)) {
			send_failure(fd, line_table_failure(table));
			break;
		}
		send_lines(fd, index, lines, count);
	}
	line_table_free(table);
	limit_opening(NULL);
}

/* Anonymous memory and copied pages; what is mapped of files does not count. */
static uint64_t data_bytes(void)
{
	unsigned long long data = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (!statm || fscanf(statm, "%*s %*s %*s %*s %*s %llu", &data) != 1)
		data = 0;
	if (statm)
		fclose(statm);
	return data * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What ends the child ends it at once: no handler of the parent's is for it. */
static void reset_signals(void)
{
	static const int signals[] = {SIGBUS, SIGSEGV, SIGABRT, SIGILL, SIGFPE};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
}

static void limit_child(const struct line_request *request, pid_t parent)
{
	uint64_t data = data_bytes(), most = data + request->memory_bytes;
	struct rlimit memory = {.rlim_cur = most, .rlim_max = most}, no_core = {0};
	int silence;

	reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* An image of our memory is nobody's business, and takes time. */
	setrlimit(RLIMIT_CORE, &no_core);
	if (!data || setrlimit(RLIMIT_DATA, &memory) < 0)
		_exit(1);
	/* Where libraries complain that they find no memory. */
	silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (silence >= 0)
		dup2(silence, STDERR_FILENO);
}

static _Noreturn void run_child(
	const struct line_request *request, size_t first_file, int fd, pid_t parent)
{
	limit_child(request, parent);
	for (size_t i = first_file; i < request->file_count; i++) {
		send_answer(fd,
			(struct line_answer){.kind = LINE_ANSWER_FILE, .index = (uint32_t)i}, NULL);
		read_file(request, &request->files[i], fd);
	}
	_exit(0);
}

/* ---- the parent ---- */

struct child {
	struct line_reading reading;
	pid_t pid;
	int fd;
	bool given_up, timed_out; /* why it was ended */
};

static int start_child(struct child *child)
{
	const struct line_reading *reading = &child->reading;
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid < 0) {
		int result = -errno;

		close(ends[0]);
		close(ends[1]);
		return result;
	}
	if (child->pid == 0) {
		close(ends[0]);
		run_child(reading->request, reading->file, ends[1], parent);
	}
	close(ends[1]);
	child->fd = ends[0];
	strbuf_clear(&child->reading.input);
	return fcntl(child->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Reads what is there. False at the end of the child's answers. */
static bool read_answers(struct child *child)
{
	char chunk[16384];
	ssize_t got = read(child->fd, chunk, sizeof(chunk));

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	return got > 0 && line_reading_add(&child->reading, chunk, (size_t)got);
}

/* Until the child has ended, or has to be ended. */
static void follow_child(struct child *child)
{
	const struct line_request *request = child->reading.request;
	struct pollfd ready = {.fd = child->fd, .events = POLLIN};

	for (;;) {
		if (poll(&ready, 1, TICK_MS) > 0 && !read_answers(child))
			return;
		child->given_up = request->given_up && request->given_up(request->given_up_context);
		child->timed_out = monotonic_now_ns() > child->reading.file_end_ns;
		if (child->given_up || child->timed_out)
			return;
	}
}

/* Ends the child if need be; its status. */
static int end_child(struct child *child)
{
	int status = 0;

	closep(&child->fd);
	/* A child that is at its end keeps its own status. */
	kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void explain_end(const struct child *child, int status, char *ret_why, size_t size)
{
	uint64_t megabytes = child->reading.request->memory_bytes >> 20;

	if (child->timed_out)
		snprintf(ret_why, size, "reading its debug information takes too long");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		snprintf(ret_why, size, "the file was truncated while it was read");
	else
		snprintf(ret_why, size,
			"reading its debug information failed, or took more than %llu MB of memory",
			(unsigned long long)megabytes);
}

static bool time_is_over(const struct child *child)
{
	return child->given_up || monotonic_now_ns() > child->reading.request->deadline_ns;
}

int line_process_run(const struct line_request *request, struct line_account *ret_account)
{
	struct child child = {
		.reading = {.request = request, .account = ret_account},
		.fd = -1,
	};
	struct line_reading *reading = &child.reading;
	int result = 0;

	*ret_account = (struct line_account){0};
	while (result == 0 && reading->file < request->file_count) {
		char why[160];
		int status;

		line_reading_begin_file(reading, reading->file);
		if (time_is_over(&child)) {
			line_reading_leave_out_rest(reading);
			break;
		}
		result = start_child(&child);
		if (result < 0)
			break;
		follow_child(&child);
		status = end_child(&child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
			line_reading_is_complete(reading))
			break;
		if (child.given_up)
			continue;
		if (!reading->has_failed) {
			explain_end(&child, status, why, sizeof(why));
			line_reading_leave_out(reading, why);
		}
		reading->file++;
	}
	line_reading_done(reading);
	return result;
}
