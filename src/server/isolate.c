/* SPDX-License-Identifier: Apache-2.0 */
#include "server/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/warn.h"

#define FIRST_KEPT 3

/* Sanitizers reserve more memory than there is. */
static void limit_memory(uint64_t bytes)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	const struct rlimit limit = {bytes, bytes}, none = {0, 0};

	if (bytes)
		setrlimit(RLIMIT_AS, &limit);
	setrlimit(RLIMIT_CORE, &none);
#endif
}

/* Where memory runs out, the kernel ends such a process and not the server. */
static void offer_to_oom_killer(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		write_all(fd, "600", 3);
}

void isolate_end_with_parent(int parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

void isolate_begin(const char *name, int parent, uint64_t memory_bytes)
{
	isolate_end_with_parent(parent);
	prctl(PR_SET_NAME, name);
	setenv("TERM", "dumb", 1); /* no bar on the server's terminal */
	warn_no_more();            /* each time that a capture which grows is read again */
	signal(SIGINT, SIG_IGN);   /* of a terminal: the server ends its workers */
	signal(SIGTERM, SIG_DFL);
	limit_memory(memory_bytes);
	offer_to_oom_killer();
}

void isolate_explain_end(int status, struct errmsg *ret_sentence)
{
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (signal == SIGKILL)
		errmsg_set(ret_sentence, -ECHILD,
			"the process that answered was killed before its answer, as the system "
			"does when memory runs out: ask for less, such as some seconds with time, "
			"or end other programs");
	else if (signal)
		errmsg_set(ret_sentence, -ECHILD,
			"the process that answered crashed with signal %d before its answer: this "
			"is a fault of sonde; please report the question",
			signal);
	else
		errmsg_set(ret_sentence, -ECHILD,
			"the process that answered ended with status %d before its answer: ask "
			"again",
			WEXITSTATUS(status));
}

void isolate_keep(int *descriptors, size_t count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	/* Out of the way of each other's places. */
	for (size_t i = 0; i < count; i++)
		descriptors[i] = fcntl(descriptors[i], F_DUPFD, FIRST_KEPT + (int)count);
	for (size_t i = 0; i < count; i++)
		descriptors[i] = dup3(descriptors[i], FIRST_KEPT + (int)i, O_CLOEXEC);
	closefrom(FIRST_KEPT + (int)count);
}
