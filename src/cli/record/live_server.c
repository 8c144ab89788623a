/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/live_server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/warn.h"
#include "cli/serve/serve.h"
#include "page/page.h"
#include "server/listen.h"

/* What is seen live is at most so old when it is written. */
#define FLUSH_NS (250 * NS_PER_MS)

struct live_server {
	pid_t pid;
	int started_fd; /* the capture's path goes in when it is there */
};

int live_server_check(const struct live_server_options *options,
	const struct session_options *session, bool writes_several, bool views, struct errmsg *err)
{
	struct listen_place place;
	int r;

	if (options->listen && !options->is_wanted)
		return errmsg_set(err, -EINVAL, "--listen belongs to --serve: give both, or none");
	if (!options->is_wanted)
		return 0;
	if (views)
		return errmsg_set(err, -EINVAL,
			"--serve and --view exclude each other: with --serve the page is there from "
			"the beginning");
	if (writes_several)
		return errmsg_set(err, -EINVAL,
			"--serve serves one capture, and --split and --continuous write several: "
			"leave it out, and serve their folder with sonde serve");
	if (strcmp(session->output, "-") == 0)
		return errmsg_set(
			err, -EINVAL, "--serve needs a capture that is a file: name one with -o");
	r = page_check(err);
	if (r == 0)
		r = listen_parse(&place, options->listen ? options->listen : VIEW_LISTEN, err);
	return r == 0 ? listen_check(&place, err) : r;
}

/* ---- the server's process ---- */

static void listening(void *context, const char *address)
{
	(void)context;
	print_plain("sonde: live at %s\n", address);
}

/* It comes with its path. */
static bool wait_for_capture(int fd, char *path, size_t size)
{
	size_t length = 0;

	while (length < size) {
		ssize_t got = read(fd, path + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		length += (size_t)got;
		if (!path[length - 1])
			return true;
	}
	return false;
}

_Noreturn static void serve(const struct live_server_options *options, int started_fd, pid_t parent)
{
	char path[PATH_MAX];
	const struct server_options server = {
		.path = path,
		.is_recorded = true,
		.listen = options->listen ? options->listen : VIEW_LISTEN,
		.read_only = true,
		.limits = ANSWERS_LIMITS_DEFAULT,
		.listening = listening,
	};
	struct errmsg err;

	/* Ctrl-C is for the recorder, which ends the server. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || !wait_for_capture(started_fd, path, sizeof(path)))
		_exit(EXIT_OK);
	close(started_fd);
	if (server_run(&server, &err) < 0) {
		print_sentence(err.text);
		_exit(EXIT_ERROR);
	}
	_exit(EXIT_OK);
}

/* ---- the recorder's end ---- */

static void capture_is_there(void *context, const char *output)
{
	const struct live_server *server = context;

	/* It may be gone: no signal then. */
	send(server->started_fd, output, strlen(output) + 1, MSG_NOSIGNAL);
}

int live_server_start(struct live_server **ret_server, const struct live_server_options *options,
	struct session_options *session, struct errmsg *err)
{
	struct live_server *server = calloc(1, sizeof(*server));
	pid_t parent = getpid();
	int ends[2];

	if (!server || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(server);
		return errmsg_set(err, -ENOMEM, "cannot serve the recording: %s", strerror(errno));
	}
	server->pid = fork();
	if (server->pid == 0) {
		close(ends[1]);
		serve(options, ends[0], parent);
	}
	close(ends[0]);
	server->started_fd = ends[1];
	if (server->pid < 0) {
		close(server->started_fd);
		free(server);
		return errmsg_set(err, -errno, "cannot serve the recording: %s", strerror(errno));
	}
	session->flush_ns = FLUSH_NS;
	session->on_started = capture_is_there;
	session->context = server;
	*ret_server = server;
	return 0;
}

/* It was ended, or a signal for us came. */
static void wait_for_end(const struct live_server *server)
{
	sigset_t signals, before;
	siginfo_t info;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	/* One that has ended before the signals were blocked has no more to come. */
	do {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
			info.si_pid)
			break;
	} while (sigwaitinfo(&signals, &info) < 0 || info.si_signo == SIGCHLD);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void live_server_finish(struct live_server *server, bool failed)
{
	if (!server)
		return;
	/* Where the recording never began, this ends it. */
	close(server->started_fd);
	if (!failed) {
		print_plain("The recording is served on; Ctrl-C ends it.\n");
		wait_for_end(server);
	}
	kill(server->pid, SIGTERM);
	waitpid(server->pid, NULL, 0);
	free(server);
}
