/* SPDX-License-Identifier: Apache-2.0 */
#include "query/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* What comes before the answer. */
struct head {
	int result;
	struct errmsg err; /* where it is negative */
};

static _Noreturn void answer(int fd, query_ask ask, void *context)
{
	struct strbuf out = {0};
	struct head head = {0};
	int r;

	head.result = ask(context, &out, &head.err);
	if (head.result >= 0 && strbuf_status(&out) < 0)
		head.result = errmsg_set(&head.err, -ENOMEM, "memory ran out while answering");
	r = write_all(fd, &head, sizeof(head));
	if (r == 0 && head.result >= 0)
		r = write_all(fd, out.data, out.length);
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Returns 0 or a negative errno. */
static int wait_for(pid_t child, int *ret_status)
{
	while (waitpid(child, ret_status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int read_answer(
	int fd, size_t max_bytes, struct strbuf *answered, const struct head **ret_head)
{
	int r = read_whole_fd(fd, max_bytes + sizeof(struct head), answered);

	if (r == 0)
		*ret_head = answered->length >= sizeof(struct head)
				    ? (const struct head *)answered->data
				    : NULL;
	return r;
}

/* What became of the child, and of its output. */
static int conclude(int r, int status, const struct head *head, const struct strbuf *answered,
	struct strbuf *out, struct errmsg *err)
{
	if (r == -EFBIG)
		return errmsg_set(err, r,
			"the answer is too large: ask for one section, or narrow it with filters");
	if (r < 0)
		return errmsg_set(err, r, "the answer could not be read: %s", strerror(-r));
	if (WIFSIGNALED(status))
		return errmsg_set(err, -EIO,
			"what makes the answer was ended by signal %d (%s): the file may be "
			"damaged, or memory short",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (!head)
		return errmsg_set(err, -EIO, "what makes the answer ended without one");
	if (head->result < 0)
		return errmsg_set(err, head->result, "%s", head->err.text);
	strbuf_add_bytes(out, (const char *)(head + 1), answered->length - sizeof(*head));
	return strbuf_status(out) < 0 ? errmsg_set(err, -ENOMEM, "memory ran out while answering")
				      : head->result;
}

int query_in_child(
	query_ask ask, void *context, size_t max_bytes, struct strbuf *out, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf answered = {0};
	const struct head *head = NULL;
	int ends[2], r, status = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errmsg_set(err, -errno, "no pipe for an answer: %s", strerror(errno));
	child = fork();
	if (child == 0)
		answer(ends[1], ask, context);
	r = child < 0 ? -errno : 0;
	close(ends[1]);
	if (r == 0)
		r = read_answer(ends[0], max_bytes, &answered, &head);
	close(ends[0]);
	if (child > 0) {
		int waited;

		if (r < 0)
			kill(child, SIGKILL);
		waited = wait_for(child, &status);
		r = r < 0 ? r : waited;
	}
	return conclude(r, status, head, &answered, out, err);
}
