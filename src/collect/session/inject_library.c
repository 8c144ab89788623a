/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session/inject_library.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"

int inject_library_find(char **ret_path)
{
	static const char *const places[] = {"", "src/inject/", "../" SONDE_LIBDIR "/"};
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash;

	if (length < 0)
		return -errno;
	program[length] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return -ENOENT;
	slash[1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_strbuf_ struct strbuf path = {0};
		char *found;

		strbuf_addf(&path, "%s%s" INJECT_LIBRARY, program, places[i]);
		if (strbuf_status(&path) < 0)
			return -ENOMEM;
		found = access(strbuf_cstr(&path), R_OK) == 0 ? realpath(strbuf_cstr(&path), NULL)
							      : NULL;
		if (!found)
			continue;
		*ret_path = found;
		return 0;
	}
	return -ENOENT;
}
