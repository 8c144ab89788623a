/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input_file.h"
#include "load/progress.h"
#include "query/diff.h"
#include "query/export.h"
#include "query/query.h"
#include "query/timeline/timeline.h"
#include "server/isolate.h"
#include "server/question.h"

#define CHILDREN_MAX 16

/* A child that makes an answer. */
struct answering {
	pid_t pid; /* 0: the place is free */
	uint32_t id;
	int fd; /* its pipe, which has its end when the child is known to have ended */
	bool is_cancelled;
};

struct resident {
	const struct resident_setup *setup;
	struct query query;
	struct timeline *timeline; /* made at the first question about it */
	struct errmsg no_timeline; /* or why there is none */
	int signals;
	struct answering children[CHILDREN_MAX];
	bool *has_begun; /* of each, and shared with it: bytes of its answer may be in its pipe */
};

/* ---- reports ---- */

static void report(const struct resident *resident, const struct resident_report *packet)
{
	send(resident->setup->socket, packet, sizeof(*packet), MSG_NOSIGNAL);
}

static void report_progress(void *context, uint64_t done, uint64_t total)
{
	const struct resident_report packet = {
		.kind = RESIDENT_PROGRESS, .done = done, .total = total};
	const struct resident *resident = context;

	/* Where the server is behind, the next one says more. */
	send(resident->setup->socket, &packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int load(struct resident *resident)
{
	struct resident_report packet = {.kind = RESIDENT_READY};
	struct errmsg err = {0};
	int r;

	progress_observe(report_progress, resident);
	r = query_open(
		&resident->query, resident->setup->paths, resident->setup->path_count, NULL, &err);
	progress_observe(NULL, NULL);
	if (r < 0) {
		packet.kind = RESIDENT_FAILED;
		packet.error = r;
		snprintf(packet.sentence, sizeof(packet.sentence), "%s", err.text);
	}
	report(resident, &packet);
	return r;
}

/* ---- one answer, in a child ---- */

static int answer_diff(struct query *before, const char *path, struct query_options *options,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_query_ struct query after = {0};
	int r = query_open(&after, &path, 1, NULL, err);

	return r < 0 ? r : query_call_tree_diff(before, &after, options, out, err);
}

static int answer_report_diff(const char *before, const char *after,
	const struct query_options *options, struct strbuf *out, struct errmsg *err)
{
	const struct query_diff_options asked = {.selection = options->selection,
		.shown = options->shown,
		.by = options->by,
		.sort = options->sort,
		.limit = options->limit};
	_cleanup_query_diff_ struct query_diff diff = {0};
	int r = query_diff_check(&diff, before, after, &asked, err);

	if (r == 0)
		r = query_diff_make(&diff, &asked, err);
	return r < 0 ? r : query_diff_write(&diff, &asked, REPORT_FORM_JSON, NULL, out);
}

/* As `sonde export` writes it: from the file, with what only this format needs of it. */
static int answer_export(struct query *query, const struct exporter *exporter,
	const struct query_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf notes = {0};
	struct query_export asked = {.exporter = exporter,
		.selection = options->selection,
		.shown = options->shown,
		.roots = options->roots};
	const char *const *paths = query->paths;
	size_t count = query->count;

	query_close(query); /* two models may be more memory than there is */
	return query_export(paths, count, &asked, out, &notes, NULL, err);
}

static int answer(struct query *query, const struct question *question,
	struct query_options *options, struct strbuf *out, struct errmsg *err)
{
	switch (question->what) {
	case QUESTION_SECTIONS:
		return query_sections(query, out);
	case QUESTION_REPORT:
		return query_report(
			query, options, (enum report_form)question->form, NULL, out, err);
	case QUESTION_CALL_TREE:
		return query_call_tree(query, options, out, err);
	case QUESTION_CALL_TREE_DIFF:
		return answer_diff(query, question->path, options, out, err);
	case QUESTION_DIFF:
		return answer_report_diff(query->paths[0], question->path, options, out, err);
	case QUESTION_EXPORT:
		return answer_export(query, exporters[question->form], options, out, err);
	default:
		return errmsg_set(err, -EINVAL, "the question is unknown");
	}
}

/* ---- the timeline: questions use nothing up ---- */

static int parse_names(
	const char *text, uint32_t names[TIMELINE_NAMES_MAX], size_t *ret_count, struct errmsg *err)
{
	size_t count = 0;

	while (count < TIMELINE_NAMES_MAX) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);

		if (end == text || *text == '-' || *text == '+' || *text == ' ' ||
			number > UINT32_MAX)
			break;
		names[count++] = (uint32_t)number;
		*ret_count = count;
		if (!*end)
			return 0;
		text = end + (*end == ',');
	}
	return errmsg_set(err, -EINVAL, "names are numbers with commas between them, at most %d",
		TIMELINE_NAMES_MAX);
}

/* What is asked about a timeline, by the keys of schema/api.json. */
struct timeline_question {
	struct timeline_request tile;
	struct timeline_slice_request slice;
	const char *names;
};

/* The server has checked the bounds of values. */
static void take_timeline_key(struct timeline_question *asked, const char *key, const char *value)
{
	struct timeline_request *tile = &asked->tile;

	if (strcmp(key, "track") == 0)
		tile->track = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(key, "from") == 0)
		tile->from_ns = strtoll(value, NULL, 10);
	else if (strcmp(key, "to") == 0)
		tile->to_ns = strtoll(value, NULL, 10);
	else if (strcmp(key, "columns") == 0)
		tile->columns = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(key, "lane") == 0)
		asked->slice.lane = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(key, "at") == 0)
		asked->slice.at_ns = strtoll(value, NULL, 10);
	else if (strcmp(key, "names") == 0)
		asked->names = value;
	asked->slice.track = tile->track;
}

static int answer_timeline(const struct resident *resident, const struct question *question,
	const char *at, const char *end, struct strbuf *out, struct errmsg *err)
{
	static uint32_t names[TIMELINE_NAMES_MAX];
	struct timeline_question asked = {.names = ""};
	const char *key, *value;
	size_t count = 0;
	int r;

	if (!resident->timeline)
		return errmsg_set(err, -ENODATA, "%s", resident->no_timeline.text);
	while (question_next(&at, end, &key, &value))
		take_timeline_key(&asked, key, value);
	switch (question->what) {
	case QUESTION_TRACKS:
		return timeline_tracks(resident->timeline, resident->setup->version, out);
	case QUESTION_NAMES:
		r = parse_names(asked.names, names, &count, err);
		return r < 0 ? r : timeline_names(resident->timeline, names, count, out, err);
	case QUESTION_SLICE:
		return timeline_slice(resident->timeline, &asked.slice, out, err);
	default:
		break;
	}
	if (asked.tile.from_ns >= asked.tile.to_ns)
		return errmsg_set(
			err, -EINVAL, "a tile must end after it begins: give a larger to");
	return timeline_tile(resident->timeline, &asked.tile, out, err);
}

static bool is_about_timeline(const char *text, size_t length)
{
	struct question question;

	return question_read(&text, text + length, &question) == 0 &&
	       question.what >= QUESTION_TRACKS;
}

/* Once, before the first child is asked for a part of it. */
static void make_timeline(struct resident *resident)
{
	if (!resident->timeline && !*resident->no_timeline.text)
		timeline_new(&resident->timeline, &resident->query, &resident->no_timeline);
}

/* ---- any ---- */

static int answer_text(struct resident *resident, const char *text, size_t length,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_query_options_ struct query_options options = QUERY_OPTIONS_DEFAULT;
	const char *at = text, *end = text + length, *key, *value;
	struct question question;
	int r = question_read(&at, end, &question);

	if (r < 0)
		return errmsg_set(err, r, "the question is damaged");
	if (question.what >= QUESTION_TRACKS)
		return answer_timeline(resident, &question, at, end, out, err);
	while (r == 0 && question_next(&at, end, &key, &value))
		r = query_options_set(&options, key, value, err);
	if (r == 0)
		r = query_options_parse(&options, err);
	return r < 0 ? r : answer(&resident->query, &question, &options, out, err);
}

static void write_answer(int fd, int error, const char *bytes, size_t length)
{
	const struct resident_answer head = {.error = error, .length = length};

	if (write_all(fd, &head, sizeof(head)) == 0)
		write_all(fd, bytes, length);
}

_Noreturn static void answer_and_exit(
	struct resident *resident, const struct answering *child, const char *text, size_t length)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err = {.text = "memory ran out while answering"};
	int r = answer_text(resident, text, length, &out, &err);

	if (r == 0)
		r = strbuf_status(&out);
	if (r == 0 && out.length > resident->setup->answer_bytes)
		r = errmsg_set(&err, -E2BIG,
			"the answer has %zu MB, more than the server sends: ask for fewer rows "
			"with limit, or for one section with by",
			out.length >> 20);
	resident->has_begun[child - resident->children] = true;
	if (r < 0)
		write_answer(child->fd, r, err.text, strlen(err.text));
	else
		write_answer(child->fd, 0, strbuf_cstr(&out), out.length);
	_exit(0);
}

/* A child has ended: one that has nothing to show for it is explained. */
static void conclude(struct resident *resident, struct answering *child, int status)
{
	struct errmsg why;

	if (!child->is_cancelled && !resident->has_begun[child - resident->children]) {
		isolate_explain_end(status, &why);
		write_answer(child->fd, -ECHILD, why.text, strlen(why.text));
	}
	close(child->fd);
	child->pid = 0;
}

/* Only this process waits for its children, so that their pids are theirs until then. */
static bool reap_one(struct resident *resident, int options)
{
	int status;
	pid_t pid = waitpid(-1, &status, options);

	for (size_t i = 0; pid > 0 && i < CHILDREN_MAX; i++) {
		if (resident->children[i].pid == pid)
			conclude(resident, &resident->children[i], status);
	}
	return pid > 0;
}

/*
 * The server has fewer questions at once than there are places: where all are taken, most of the
 * children have answered or were cancelled, and are about to end. NULL: none does.
 */
static struct answering *free_place(struct resident *resident)
{
	do {
		for (size_t i = 0; i < CHILDREN_MAX; i++) {
			if (!resident->children[i].pid)
				return &resident->children[i];
		}
	} while (reap_one(resident, 0));
	return NULL;
}

/* The pipes of others would have no end while this child lives. */
static void leave_others(struct resident *resident, const struct answering *child)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++) {
		if (resident->children[i].pid && &resident->children[i] != child)
			close(resident->children[i].fd);
	}
	close(resident->setup->socket);
	close(resident->signals);
}

static void start_answer(
	struct resident *resident, const struct resident_request *request, size_t length, int fd)
{
	pid_t parent = getpid(), pid;
	struct answering *child = free_place(resident);
	struct errmsg err;

	if (is_about_timeline(request->question, length))
		make_timeline(resident);
	if (child) {
		*child = (struct answering){.id = request->id, .fd = fd};
		resident->has_begun[child - resident->children] = false;
	}
	pid = child ? fork() : -1;
	if (pid == 0) {
		isolate_end_with_parent(parent);
		leave_others(resident, child);
		signal(SIGPIPE, SIG_DFL);
		answer_and_exit(resident, child, request->question, length);
	}
	if (pid > 0) {
		child->pid = pid;
		return;
	}
	errmsg_set(&err, -EAGAIN,
		"no process could be started for this answer: %s; ask again, when the machine has "
		"more memory or fewer processes",
		strerror(errno));
	write_answer(fd, -EAGAIN, err.text, strlen(err.text));
	close(fd);
}

/* ---- requests ---- */

static void cancel(struct resident *resident, uint32_t id)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++) {
		struct answering *child = &resident->children[i];

		if (!child->pid || child->id != id)
			continue;
		child->is_cancelled = true;
		kill(child->pid, SIGKILL);
	}
}

static void reap(struct resident *resident)
{
	struct signalfd_siginfo signal;

	while (read(resident->signals, &signal, sizeof(signal)) > 0)
		;
	while (reap_one(resident, WNOHANG))
		;
}

static int passed_descriptor(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static bool take_request(struct resident *resident)
{
	static union {
		struct resident_request request;
		char bytes[sizeof(struct resident_request) + QUESTION_BYTES_MAX];
	} packet;
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {&packet, sizeof(packet)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(resident->setup->socket, &message, MSG_CMSG_CLOEXEC);
	int fd = length > 0 ? passed_descriptor(&message) : -1;

	if (length < (ssize_t)sizeof(packet.request)) {
		closep(&fd);
		return length < 0 && errno == EINTR;
	}
	if (packet.request.kind == RESIDENT_ASK && fd >= 0)
		start_answer(resident, &packet.request,
			(size_t)length - sizeof(struct resident_request), fd);
	else
		cancel(resident, packet.request.id);
	return true;
}

static void serve(struct resident *resident)
{
	struct pollfd fds[] = {{.fd = resident->setup->socket, .events = POLLIN},
		{.fd = resident->signals, .events = POLLIN}};
	bool goes_on = true;

	while (goes_on) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			reap(resident);
		if (fds[0].revents)
			goes_on = take_request(resident);
	}
}

void resident_run(const struct resident_setup *setup)
{
	struct resident_setup own = *setup;
	struct resident resident = {.setup = &own};
	sigset_t children;
	void *begun = mmap(NULL, CHILDREN_MAX * sizeof(bool), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	isolate_begin("sonde-worker", setup->parent, setup->memory_bytes);
	own.socket = setup->socket;
	isolate_keep(&own.socket, 1);
	if (setup->is_listed)
		input_refuse_links();
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	if (begun == MAP_FAILED || load(&resident) < 0)
		_exit(1);
	resident.has_begun = begun;
	signal(SIGPIPE, SIG_IGN); /* of a question that nobody waits for any more */
	sigprocmask(SIG_SETMASK, &children, NULL);
	resident.signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (resident.signals >= 0)
		serve(&resident);
	_exit(0);
}
