/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/browser.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

static char *make_file(const char *address)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	_cleanup_strbuf_ struct strbuf text = {0};
	char *path;
	int fd;

	if (asprintf(&path, "%s/sonde-view-XXXXXX.html", folder && *folder ? folder : "/tmp") < 0)
		return NULL;
	/* Of this user alone. The address is made of an address, a port and digits. */
	fd = mkostemps(path, 5, O_CLOEXEC);
	strbuf_addf(&text,
		"<!doctype html>\n<meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
		"content=\"0; url=%s\"><title>sonde</title>\n",
		address);
	if (fd >= 0 && write_all(fd, strbuf_cstr(&text), text.length) == 0) {
		close(fd);
		return path;
	}
	closep(&fd);
	free(path);
	return NULL;
}

/* What it prints is about other programs. It may stay as long as the browser does. */
static bool start(const char *path)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		/* Its parent ends at once, so that nobody has to wait for it. */
		pid = fork();
		if (pid != 0)
			_exit(pid < 0);
		setsid();
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool has_xdg_open(void)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");
		char file[512];

		snprintf(file, sizeof(file), "%.*s/xdg-open", (int)length, path);
		if (access(file, X_OK) == 0)
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

char *browser_open(const char *address)
{
	char *path;

	if ((!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) || !has_xdg_open())
		return NULL;
	path = make_file(address);
	if (path && !start(path)) {
		unlink(path);
		free(path);
		path = NULL;
	}
	return path;
}
