/* SPDX-License-Identifier: Apache-2.0 */
#include "server/jobs/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

/* ---- what it prints ---- */

/* Of more than there is room for, the end stays. Returns false at the end, or when it would wait.
 */
static bool read_output(struct process *process)
{
	char bytes[PROCESS_OUTPUT_BYTES / 2];
	ssize_t got = read(process->output.fd, bytes, sizeof(bytes));
	size_t extra;

	if (got <= 0)
		return false;
	extra = process->length + (size_t)got;
	extra = extra > sizeof(process->text) - 1 ? extra - (sizeof(process->text) - 1) : 0;
	memmove(process->text, process->text + extra, process->length - extra);
	process->length -= extra;
	memcpy(process->text + process->length, bytes, (size_t)got);
	process->length += (size_t)got;
	process->text[process->length] = '\0';
	return true;
}

static void close_output(struct process *process)
{
	if (process->output.fd < 0)
		return;
	loop_remove(process->loop, &process->output);
	closep(&process->output.fd);
}

static void output_readable(struct loop_watch *watch)
{
	struct process *process =
		(struct process *)((char *)watch - offsetof(struct process, output));

	errno = 0;
	if (!read_output(process) && errno != EAGAIN && errno != EINTR)
		close_output(process);
}

const char *process_last_line(struct process *process)
{
	char *line;

	while (process->length && strchr("\r\n ", process->text[process->length - 1]))
		process->text[--process->length] = '\0';
	line = strrchr(process->text, '\n');
	return line ? line + 1 : process->text;
}

/* ---- its end ---- */

static void forget(struct process *process)
{
	/* The last that it printed, without waiting for those who have its output, too. */
	for (int i = 0; process->output.fd >= 0 && i < 64 && read_output(process); i++)
		;
	close_output(process);
	loop_remove(process->loop, &process->exit);
	closep(&process->exit.fd);
	process->pid = 0;
}

static void exited(struct loop_watch *watch)
{
	struct process *process =
		(struct process *)((char *)watch - offsetof(struct process, exit));

	/* Before it is waited for, so that its number is not another's yet. */
	if (process->ends_all)
		kill(-process->pid, SIGKILL);
	if (waitpid(process->pid, &process->status, WNOHANG) != process->pid)
		return;
	forget(process);
	process->ended(process);
}

bool process_runs(const struct process *process)
{
	return process->pid > 0;
}

void process_signal(const struct process *process, int signal)
{
	if (process->pid > 0)
		kill(-process->pid, signal);
}

void process_done(struct process *process)
{
	if (process->pid <= 0)
		return;
	kill(-process->pid, SIGKILL);
	waitpid(process->pid, &process->status, 0);
	forget(process);
}

/* ---- its beginning ---- */

static void close_all(int first, uint64_t limit)
{
	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
		return;
	for (int fd = first; (uint64_t)fd < limit; fd++)
		close(fd);
}

/* Nothing of the server's: signals, descriptors, its limit of them. */
_Noreturn static void run(const struct process_setup *setup, int output, pid_t parent)
{
	int null = open("/dev/null", O_RDWR);
	struct rlimit limit;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	/* Where the server is killed, the recording ends as with kill. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		close_all(STDERR_FILENO + 1, limit.rlim_cur);
		limit.rlim_cur = setup->descriptors;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (char *const *one = setup->environment; one && *one; one++)
		putenv(*one);
	if (setup->cwd && chdir(setup->cwd) < 0) {
		dprintf(STDERR_FILENO, "cannot go to %s: %s\n", setup->cwd, strerror(errno));
		_exit(127);
	}
	execv("/proc/self/exe", setup->argv);
	_exit(127);
}

static int watch(struct process *process, int output)
{
	int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0), r;

	process->exit = (struct loop_watch){.fd = pidfd, .ready = exited};
	process->output = (struct loop_watch){.fd = output, .ready = output_readable};
	if (pidfd < 0)
		return -errno;
	r = loop_add(process->loop, &process->exit);
	return r < 0 ? r : loop_add(process->loop, &process->output);
}

int process_start(struct process *process, struct loop *loop, const struct process_setup *setup)
{
	pid_t parent = getpid();
	int ends[2], r;

	process->loop = loop;
	process->length = 0;
	process->text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	process->pid = fork();
	if (process->pid == 0)
		run(setup, ends[1], parent);
	close(ends[1]);
	if (process->pid < 0) {
		process->pid = 0;
		close(ends[0]);
		return -EAGAIN;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	r = watch(process, ends[0]);
	if (r < 0)
		process_done(process);
	return r;
}
