/* SPDX-License-Identifier: Apache-2.0 */
#include "push/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyses/selection.h"
#include "base/file.h"
#include "exporters/exporter.h"
#include "load/capture.h"
#include "model/model.h"

/* A window of a minute takes a second or two. */
#define MOST_MS (120 * 1000)

/* What the process hands back: in shared memory. */
struct answer {
	struct converted converted;
	struct errmsg err;
	int result;
};

static int export_to(int capture, int out, const char *format, struct answer *answer)
{
	static const struct shown_options shown = {.weight = "cpu"};
	const struct exporter *exporter = exporter_find(format);
	_cleanup_strbuf_ struct strbuf bytes = {0};
	_cleanup_energy_use_ struct energy_use energy = {0};
	struct selection selection = {0};
	struct model *model = NULL;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", capture);
	r = load_capture(path, &shown, &selection, &model, &answer->err);
	if (r == 0)
		r = select_and_weigh(model, &shown, &selection, &energy, &answer->err);
	if (r < 0)
		return r;
	selection.weight = MODEL_WEIGHT_CPU;
	r = exporter->export(model, &selection, NULL, &bytes, &answer->err);
	if (r == 0)
		r = write_all(out, strbuf_cstr(&bytes), bytes.length);
	if (r < 0)
		return r;
	answer->converted.length = bytes.length;
	answer->converted.begin_realtime_ns = model->session.start_realtime_ns;
	answer->converted.duration_ns = model_duration_ns(model);
	snprintf(answer->converted.host, sizeof(answer->converted.host), "%s",
		model->session.host ? model->session.host : "");
	return 0; /* the process ends, and gives everything back */
}

/* Nothing of it is for the terminal. */
static void run(int capture, int out, const char *format, struct answer *answer)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	answer->result = export_to(capture, out, format, answer);
	_exit(0);
}

static bool has_ended(pid_t pid)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int count = end.fd < 0 ? -1 : poll(&end, 1, MOST_MS);

	closep(&end.fd);
	return count != 0;
}

static int wait_for(pid_t pid, const struct answer *answer, struct errmsg *err)
{
	bool is_late = !has_ended(pid);
	int status = 0;

	if (is_late)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (is_late)
		return errmsg_set(err, -ETIMEDOUT, "it took more than %d s", MOST_MS / 1000);
	if (WIFSIGNALED(status))
		return errmsg_set(
			err, -EIO, "converting it was ended by signal %d", WTERMSIG(status));
	if (answer->result < 0)
		return errmsg_set(err, answer->result, "%s",
			answer->err.text[0] ? answer->err.text : strerror(-answer->result));
	return 0;
}

int convert_capture(
	int capture, const char *format, struct converted *ret_converted, struct errmsg *err)
{
	_cleanup_close_ int out = memfd_create("converted", MFD_CLOEXEC);
	struct answer *answer = mmap(
		NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int r;

	if (out < 0 || answer == MAP_FAILED) {
		if (answer != MAP_FAILED)
			munmap(answer, sizeof(*answer));
		return errmsg_set(err, -ENOMEM, "out of memory");
	}
	answer->result = -EIO;
	pid = fork();
	if (pid == 0)
		run(capture, out, format, answer);
	r = pid < 0 ? errmsg_set(err, -errno, "cannot start a process: %s", strerror(errno))
		    : wait_for(pid, answer, err);
	if (r == 0) {
		*ret_converted = answer->converted;
		ret_converted->fd = TAKE_FD(out);
	}
	munmap(answer, sizeof(*answer));
	return r;
}

void converted_done(struct converted *converted)
{
	closep(&converted->fd);
	converted->fd = -1;
}
