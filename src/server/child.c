/* SPDX-License-Identifier: Apache-2.0 */
#include "server/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "server/isolate.h"
#include "server/resident.h"

#define PIECE (256 << 10)

struct child {
	struct loop_watch watch; /* first: of the pipe */
	struct loop *loop;
	struct child_setup setup;
	pid_t pid;           /* 0: it has ended */
	struct strbuf bytes; /* a struct resident_answer, and the answer */
	int result;
	const char *sentence;
	struct errmsg end; /* why it ended without an answer */
};

/* ---- in the process ---- */

_Noreturn static void run(const struct child_setup *setup, pid_t parent, int pipe)
{
	struct strbuf out = {0};
	struct errmsg err = {.text = "memory ran out while answering"};
	struct resident_answer head = {0};
	sigset_t none;
	int r;

	isolate_begin("sonde-answer", parent, setup->memory_bytes);
	isolate_keep(&pipe, 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	r = setup->answer(setup->context, &out, &err);
	if (r >= 0)
		r = strbuf_status(&out);
	if (r == 0 && out.length > setup->answer_bytes)
		r = errmsg_set(&err, -E2BIG,
			"the answer has %zu MB, more than the server sends: ask for fewer runs",
			out.length >> 20);
	head.error = r;
	head.length = r < 0 ? strlen(err.text) : out.length;
	if (write_all(pipe, &head, sizeof(head)) == 0)
		write_all(pipe, r < 0 ? err.text : strbuf_cstr(&out), head.length);
	_exit(0);
}

/* ---- in the server ---- */

static void stop(struct child *child)
{
	int status = 0;

	if (!child->pid)
		return;
	loop_remove(child->loop, &child->watch);
	close(child->watch.fd);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, &status, 0);
	child->pid = 0;
	isolate_explain_end(status, &child->end);
}

/* The pipe has ended: is all there that its head promises? */
static void conclude(struct child *child)
{
	struct resident_answer head = {0};
	const struct strbuf *bytes = &child->bytes;

	stop(child);
	if (bytes->data && bytes->length >= sizeof(head))
		memcpy(&head, bytes->data, sizeof(head));
	if (strbuf_status(bytes) || bytes->length < sizeof(head) ||
		bytes->length != sizeof(head) + head.length) {
		child->result = -ECHILD;
		child->sentence = child->end.text;
	} else if (head.error < 0) {
		child->result = head.error;
		child->sentence = bytes->data + sizeof(head);
	}
	child->setup.ready(child->setup.owner);
}

static void readable(struct loop_watch *watch)
{
	struct child *child = (struct child *)watch;
	size_t most = child->setup.answer_bytes + sizeof(struct resident_answer);
	char *room = strbuf_room(&child->bytes, PIECE);
	ssize_t length = room ? read(watch->fd, room, PIECE) : 0;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length > 0)
		strbuf_take(&child->bytes, (size_t)length);
	if (length <= 0 || child->bytes.length > most)
		conclude(child);
}

static int fork_child(struct child *child)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0)
		run(&child->setup, parent, ends[1]);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	child->watch = (struct loop_watch){.fd = ends[0], .ready = readable};
	if (child->pid > 0 && loop_add(child->loop, &child->watch) == 0)
		return 0;
	close(ends[0]);
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
	child->pid = 0;
	return -EAGAIN;
}

int child_start(struct child **ret_child, struct loop *loop, const struct child_setup *setup,
	struct errmsg *err)
{
	_cleanup_free_ struct child *child = calloc(1, sizeof(*child));
	int r;

	if (!child)
		return errmsg_set(err, -ENOMEM, "memory ran out in the server");
	child->loop = loop;
	child->setup = *setup;
	r = fork_child(child);
	if (r < 0)
		return errmsg_set(err, r,
			"the server cannot start a process for this answer (%s): ask again later",
			strerror(-r));
	*ret_child = TAKE_PTR(child);
	return 0;
}

struct child *child_end(struct child *child)
{
	if (child) {
		stop(child);
		strbuf_done(&child->bytes);
		free(child);
	}
	return NULL;
}

bool child_is_done(const struct child *child)
{
	return !child->pid;
}

int child_answer(const struct child *child, const char **ret_bytes, size_t *ret_length,
	const char **ret_sentence)
{
	*ret_sentence = child->sentence;
	if (child->result < 0)
		return child->result;
	*ret_bytes = child->bytes.data + sizeof(struct resident_answer);
	*ret_length = child->bytes.length - sizeof(struct resident_answer);
	return 0;
}
