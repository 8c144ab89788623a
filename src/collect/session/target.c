/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* In the child: waits for the word, becomes the command, or reports why it cannot. */
static void __attribute__((noreturn)) run_child(int go_fd, int error_fd, char *const *command,
	const struct target_surroundings *surroundings)
{
	char word;
	int error;

	/* End of file without a word: the collector gave up or died. */
	if (read(go_fd, &word, 1) != 1)
		_exit(EXIT_FAILURE);
	setrlimit(RLIMIT_NOFILE, &surroundings->descriptors);
	sigaction(SIGCHLD, &surroundings->on_child_signal, NULL);
	sigprocmask(SIG_SETMASK, &surroundings->signal_mask, NULL);
	for (char *const *variable = surroundings->environment; variable && *variable; variable++)
		putenv(*variable);
	execvp(command[0], command);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(EXIT_FAILURE);
	_exit(error == ENOENT ? 127 : 126);
}

int target_start(struct target *ret_target, char *const *command,
	const struct target_surroundings *surroundings, struct errmsg *err)
{
	struct target target = {.go_fd = -1, .error_fd = -1, .pid_fd = -1};
	int go[2] = {-1, -1}, error[2] = {-1, -1}, result = 0;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		result = -errno;
	else
		target.pid = fork();
	if (target.pid == 0 && result == 0) {
		close(go[1]);
		run_child(go[0], error[1], command, surroundings);
	}
	if (target.pid < 0)
		result = -errno;
	closep(&go[0]);
	closep(&error[1]);
	if (result < 0) {
		closep(&go[1]);
		closep(&error[0]);
		return errmsg_set(err, result, "cannot start %s: %s", command[0],
			result == -EMFILE ? "out of file descriptors; raise `ulimit -n`"
					  : strerror(-result));
	}
	target.go_fd = go[1];
	target.error_fd = error[0];
	target.pid_fd = (int)syscall(SYS_pidfd_open, target.pid, 0);
	*ret_target = target;
	return 0;
}

static int explain_refusal(const char *name, int error, struct errmsg *err)
{
	if (error == ENOENT && strchr(name, '/') && access(name, F_OK) == 0)
		return errmsg_set(err, -ENOENT,
			"cannot run %s: the interpreter that it names does not exist; look at its "
			"first line, or at `readelf -l %s`",
			name, name);
	if (error == ENOENT)
		return errmsg_set(err, -ENOENT,
			"cannot run %s: command not found; give its path or check PATH", name);
	return errmsg_set(err, -error, "cannot run %s: %s%s", name, strerror(error),
		error == EACCES ? "; is it an executable file (chmod +x)?" : "");
}

int target_release(struct target *target, const char *name, struct errmsg *err)
{
	int error = 0;
	ssize_t got;

	if (write(target->go_fd, "g", 1) != 1)
		return errmsg_set(err, -errno, "cannot start %s: %s", name, strerror(errno));
	closep(&target->go_fd);
	/* Closed by a successful exec: end of file. */
	do {
		got = read(target->error_fd, &error, sizeof(error));
	} while (got < 0 && errno == EINTR);
	closep(&target->error_fd);
	if (got != sizeof(error))
		return 0;
	target_reap(target, true);
	return explain_refusal(name, error, err);
}

bool target_reap(struct target *target, bool block)
{
	struct rusage usage;
	int status;
	pid_t reaped;

	if (target->ended || target->pid <= 0)
		return target->ended;
	do {
		reaped = wait4(target->pid, &status, block ? 0 : WNOHANG, &usage);
	} while (reaped < 0 && errno == EINTR);
	if (reaped != target->pid)
		return false;
	target->ended = true;
	target->cpu_ns = rusage_cpu_ns(&usage);
	target->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}

void target_done(struct target *target)
{
	bool held = target->go_fd >= 0;

	closep(&target->go_fd);
	closep(&target->error_fd);
	closep(&target->pid_fd);
	if (held)
		target_reap(target, true);
}
