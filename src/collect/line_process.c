/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/line_process.h"

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

/* The longest names of C++ have some ten kilobytes. */
#define TEXT_MAX_BYTES ((uint32_t)64 << 10)
#define TICK_MS        50

enum record_kind {
	RECORD_FILE,   /* `index`: of the request's files, which is looked into from now on */
	RECORD_LINES,  /* `index`: of the addresses; `count` struct record_line with texts */
	RECORD_FAILED, /* the file cannot be used; text_length[0]: why */
};

struct record {
	uint32_t kind, index, count, length; /* of what follows */
};

struct record_line {
	uint32_t line, function_length, file_length; /* with the NUL; 0: NULL */
};

/* ---- the child ---- */

static void add_text(struct strbuf *out, const char *text, uint32_t *ret_length)
{
	size_t length = text ? strlen(text) + 1 : 0;

	*ret_length = length <= TEXT_MAX_BYTES ? (uint32_t)length : 0;
	strbuf_add_bytes(out, text, *ret_length);
}

static void send_record(int fd, struct record record, const struct strbuf *body)
{
	record.length = body ? (uint32_t)body->length : 0;
	/* Without its parent nobody needs the child. */
	if (write_all(fd, &record, sizeof(record)) < 0 ||
		(body && write_all(fd, body->data, body->length) < 0))
		_exit(1);
}

static void send_lines(int fd, size_t index, const struct source_line *lines, size_t count)
{
	struct record_line heads[LINE_PROCESS_DEPTH] = {0};
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
	send_record(fd,
		(struct record){
			.kind = RECORD_LINES, .index = (uint32_t)index, .count = (uint32_t)count},
		&body);
	strbuf_done(&texts);
	strbuf_done(&body);
}

static void send_failure(int fd, const char *why)
{
	struct strbuf body = {0};

	strbuf_add_bytes(&body, why, strlen(why) + 1);
	send_record(fd, (struct record){.kind = RECORD_FAILED}, &body);
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

/* False, and said, when the file's sections alone unpack to more memory than there is. */
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
		send_record(fd, (struct record){.kind = RECORD_FILE, .index = (uint32_t)i}, NULL);
		read_file(request, &request->files[i], fd);
	}
	_exit(0);
}

/* ---- the parent ---- */

struct reading {
	const struct line_request *request;
	struct line_account *account;
	pid_t child;
	int fd;
	struct strbuf input;
	size_t file;              /* of the request, the one that is looked into */
	size_t answered;          /* of its addresses */
	uint64_t file_end_ns;     /* when it has taken too long */
	bool given_up, timed_out; /* why the child was ended */
	bool has_failed;          /* this file, as the child said */
	char why[160];
};

static int start_child(struct reading *reading)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	reading->child = fork();
	if (reading->child < 0) {
		int result = -errno;

		close(ends[0]);
		close(ends[1]);
		return result;
	}
	if (reading->child == 0) {
		close(ends[0]);
		run_child(reading->request, reading->file, ends[1], parent);
	}
	close(ends[1]);
	reading->fd = ends[0];
	strbuf_clear(&reading->input);
	return fcntl(reading->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Each file may take half of the time that is left, the last one all of it. */
static void begin_file(struct reading *reading, size_t file)
{
	const struct line_request *request = reading->request;
	uint64_t now_ns = monotonic_now_ns(), left_ns = 0;

	if (request->deadline_ns > now_ns)
		left_ns = request->deadline_ns - now_ns;
	reading->file = file;
	reading->answered = 0;
	reading->has_failed = false;
	reading->file_end_ns = now_ns + (file + 1 < request->file_count ? left_ns / 2 : left_ns);
}

static const char *take_text(const char **texts, const char *end, uint32_t length)
{
	const char *text = *texts;

	if (length == 0 || length > (size_t)(end - text) || text[length - 1] != '\0')
		return NULL;
	*texts += length;
	return text;
}

static void take_lines(struct reading *reading, const struct record *record, const char *body)
{
	const struct line_file *file = &reading->request->files[reading->file];
	const char *texts = body + record->count * sizeof(struct record_line);
	struct source_line lines[LINE_PROCESS_DEPTH];

	if (record->index < file->first || record->index - file->first >= file->count)
		return;
	for (uint32_t i = 0; i < record->count; i++) {
		struct record_line head;

		memcpy(&head, body + i * sizeof(head), sizeof(head));
		lines[i].line = head.line;
		lines[i].function = take_text(&texts, body + record->length, head.function_length);
		lines[i].file = take_text(&texts, body + record->length, head.file_length);
	}
	reading->answered++;
	if (record->count)
		reading->request->found(
			reading->request->context, record->index, lines, record->count);
}

/* False for what no sound child sends. */
static bool take_record(struct reading *reading, const struct record *record, const char *body)
{
	switch (record->kind) {
	case RECORD_FILE:
		if (record->index >= reading->request->file_count || record->length)
			return false;
		begin_file(reading, record->index);
		return true;
	case RECORD_LINES:
		if (record->count > LINE_PROCESS_DEPTH ||
			record->length < record->count * sizeof(struct record_line))
			return false;
		take_lines(reading, record, body);
		return true;
	case RECORD_FAILED:
		if (record->length == 0 || body[record->length - 1] != '\0')
			return false;
		reading->has_failed = true;
		snprintf(reading->why, sizeof(reading->why), "%s", body);
		return true;
	default:
		return false;
	}
}

/* What became of the file at hand: its remaining addresses, and why. */
static void leave_out(struct reading *reading, const char *why)
{
	const struct line_request *request = reading->request;
	const struct line_file *file = &request->files[reading->file];
	struct line_account *account = reading->account;

	account->addresses_left_out += file->count - MIN(reading->answered, file->count);
	if (account->files_left_out++ == 0)
		errmsg_set(&account->example, 0, "source lines of %s were left out: %s",
			request->name(request->context, file->file), why);
}

static bool take_records(struct reading *reading)
{
	const char *at = reading->input.data, *end = at + reading->input.length;
	struct record record;

	while ((size_t)(end - at) >= sizeof(record)) {
		memcpy(&record, at, sizeof(record));
		if (record.length > 2 * LINE_PROCESS_DEPTH * (TEXT_MAX_BYTES + sizeof(record)))
			return false;
		if ((size_t)(end - at) - sizeof(record) < record.length)
			break;
		if (!take_record(reading, &record, at + sizeof(record)))
			return false;
		if (record.kind == RECORD_FAILED)
			leave_out(reading, reading->why);
		at += sizeof(record) + record.length;
	}
	memmove(reading->input.data, at, (size_t)(end - at));
	reading->input.length = (size_t)(end - at);
	return true;
}

/* Reads what is there. False at the end of the child's records. */
static bool read_records(struct reading *reading)
{
	char chunk[16384];
	ssize_t got = read(reading->fd, chunk, sizeof(chunk));

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	strbuf_add_bytes(&reading->input, chunk, (size_t)got);
	return got > 0 && strbuf_status(&reading->input) == 0 && take_records(reading);
}

/* Until the child has ended, or has to be ended. */
static void follow_child(struct reading *reading)
{
	const struct line_request *request = reading->request;
	struct pollfd ready = {.fd = reading->fd, .events = POLLIN};

	for (;;) {
		if (poll(&ready, 1, TICK_MS) > 0 && !read_records(reading))
			return;
		reading->given_up =
			request->given_up && request->given_up(request->given_up_context);
		reading->timed_out = monotonic_now_ns() > reading->file_end_ns;
		if (reading->given_up || reading->timed_out)
			return;
	}
}

/* Ends the child if need be; its status. */
static int end_child(struct reading *reading)
{
	int status = 0;

	closep(&reading->fd);
	/* A child that is at its end keeps its own status. */
	kill(reading->child, SIGKILL);
	while (waitpid(reading->child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void explain_end(const struct reading *reading, int status, char *ret_why, size_t size)
{
	uint64_t megabytes = reading->request->memory_bytes >> 20;

	if (reading->timed_out)
		snprintf(ret_why, size, "reading its debug information takes too long");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		snprintf(ret_why, size, "the file was cut while it was read");
	else
		snprintf(ret_why, size,
			"reading its debug information failed, or took more than %llu MB of memory",
			(unsigned long long)megabytes);
}

static void leave_out_rest(struct reading *reading)
{
	for (size_t i = reading->file; i < reading->request->file_count; i++) {
		reading->account->addresses_left_out +=
			reading->request->files[i].count - reading->answered;
		reading->answered = 0;
	}
}

static bool time_is_over(const struct reading *reading)
{
	return reading->given_up || monotonic_now_ns() > reading->request->deadline_ns;
}

int line_process_run(const struct line_request *request, struct line_account *ret_account)
{
	struct reading reading = {.request = request, .account = ret_account, .fd = -1};
	int result = 0;

	*ret_account = (struct line_account){0};
	while (result == 0 && reading.file < request->file_count) {
		char why[160];
		int status;

		begin_file(&reading, reading.file);
		if (time_is_over(&reading)) {
			leave_out_rest(&reading);
			break;
		}
		result = start_child(&reading);
		if (result < 0)
			break;
		follow_child(&reading);
		status = end_child(&reading);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			break;
		if (reading.given_up)
			continue;
		if (!reading.has_failed) {
			explain_end(&reading, status, why, sizeof(why));
			leave_out(&reading, why);
		}
		reading.file++;
	}
	strbuf_done(&reading.input);
	return result;
}
