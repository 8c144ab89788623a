/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "server/question.h"
#include "server/resident.h"

struct worker {
	struct loop_watch watch; /* first: loop.h gives this */
	struct loop *loop;
	struct worker_setup setup;
	pid_t pid;
	enum worker_state state;
	uint64_t done, total;
	char sentence[1024];
};

/* ---- reports ---- */

/* Waits for the process, which has closed its socket and so is ending. */
static void note_end(struct worker *worker)
{
	int status = 0;
	const char *name = strrchr(worker->setup.paths[0], '/');

	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, &status, 0);
	worker->pid = 0;
	if (worker->state == WORKER_FAILED)
		return;
	worker->state = WORKER_GONE;
	snprintf(worker->sentence, sizeof(worker->sentence),
		"the process that had %.200s open has ended (signal %d): it crashed, or memory ran "
		"out; ask again, or with a smaller capture",
		name ? name + 1 : worker->setup.paths[0],
		WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void take_report(struct worker *worker, const struct resident_report *report)
{
	worker->done = report->done;
	/* A file that grows has more than its size was. */
	worker->total = MAX(report->total, report->done);
	if (report->kind == RESIDENT_READY)
		worker->state = WORKER_READY;
	if (report->kind != RESIDENT_FAILED)
		return;
	worker->state = WORKER_FAILED;
	snprintf(worker->sentence, sizeof(worker->sentence), "%.*s",
		(int)sizeof(report->sentence) - 1, report->sentence);
}

static void readable(struct loop_watch *watch)
{
	struct worker *worker = (struct worker *)watch;
	struct resident_report report;
	ssize_t length = recv(watch->fd, &report, sizeof(report), MSG_DONTWAIT);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length == (ssize_t)sizeof(report)) {
		take_report(worker, &report);
	} else {
		loop_remove(worker->loop, watch);
		note_end(worker);
	}
	worker->setup.changed(worker->setup.context, worker);
}

/* ---- beginning and end ---- */

int worker_start(struct worker **ret_worker, struct loop *loop, const struct worker_setup *setup)
{
	_cleanup_free_ struct worker *worker = calloc(1, sizeof(*worker));
	struct resident_setup resident = {.paths = setup->paths,
		.path_count = setup->path_count,
		.is_listed = setup->is_listed,
		.parent = getpid(),
		.memory_bytes = setup->memory_bytes,
		.answer_bytes = setup->answer_bytes,
		.version = setup->version};
	int sockets[2];

	if (!worker)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	worker->pid = fork();
	if (worker->pid == 0) {
		resident.socket = sockets[1];
		resident_run(&resident);
	}
	close(sockets[1]);
	worker->watch = (struct loop_watch){.fd = sockets[0], .ready = readable};
	worker->loop = loop;
	worker->setup = *setup;
	if (worker->pid < 0 || loop_add(loop, &worker->watch) < 0) {
		close(sockets[0]);
		return -EAGAIN;
	}
	*ret_worker = TAKE_PTR(worker);
	return 0;
}

struct worker *worker_end(struct worker *worker)
{
	if (worker) {
		if (worker->pid > 0) {
			loop_remove(worker->loop, &worker->watch);
			kill(worker->pid, SIGKILL);
			waitpid(worker->pid, NULL, 0);
		}
		close(worker->watch.fd);
		free(worker);
	}
	return NULL;
}

enum worker_state worker_state(const struct worker *worker)
{
	return worker->state;
}

void worker_progress(const struct worker *worker, uint64_t *ret_done, uint64_t *ret_total)
{
	*ret_done = worker->done;
	*ret_total = worker->total;
}

const char *worker_sentence(const struct worker *worker)
{
	return worker->sentence;
}

/* ---- questions ---- */

static int send_request(struct worker *worker, const struct resident_request *request,
	const char *question, size_t length, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {0};
	struct iovec parts[] = {{(void *)request, sizeof(*request)}, {(void *)question, length}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = length ? 2 : 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return sendmsg(worker->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int worker_ask(struct worker *worker, uint32_t id, const char *question, size_t length, int *ret_fd)
{
	const struct resident_request request = {.kind = RESIDENT_ASK, .id = id};
	int ends[2], r;

	if (length > QUESTION_BYTES_MAX)
		return -E2BIG;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	r = send_request(worker, &request, question, length, ends[1]);
	close(ends[1]);
	if (r < 0) {
		close(ends[0]);
		return r;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*ret_fd = ends[0];
	return 0;
}

void worker_cancel(struct worker *worker, uint32_t id)
{
	const struct resident_request request = {.kind = RESIDENT_CANCEL, .id = id};

	send_request(worker, &request, NULL, 0, -1);
}
