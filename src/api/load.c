/* SPDX-License-Identifier: Apache-2.0 */
#include "api/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct wire_api *environment_calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Never unloaded: threads may be in it. */
static const struct wire_api *load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	wire_api_function *get = NULL;
	const struct wire_api *calls;

	if (handle)
		*(void **)&get = dlsym(handle, WIRE_API_SYMBOL);
	calls = get ? get(WIRE_API_VERSION) : NULL;
	return calls && calls->bytes >= sizeof(*calls) ? calls : NULL;
}

static void load_once(void)
{
	const char *library = secure_getenv("SONDE_LIBRARY");
	const struct wire_api *calls = NULL;
	int saved_errno = errno;

	if (library && secure_getenv("SONDE_SESSION"))
		calls = load(library);
	if (calls && calls->open_session(NULL))
		environment_calls = calls;
	errno = saved_errno;
}

const struct wire_api *api_calls(void)
{
	pthread_once(&once, load_once);
	return environment_calls;
}

/* What it names is loaded into this process. */
static bool is_trusted(const char *folder)
{
	struct stat status;

	return stat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
	       (status.st_uid == geteuid() || status.st_uid == 0) && !(status.st_mode & 022);
}

const struct wire_api *api_open_session(const char *path)
{
	const char *library = secure_getenv("SONDE_LIBRARY");
	const struct wire_api *calls = NULL;
	int saved_errno = errno;
	char link[PATH_MAX];
	int length = snprintf(link, sizeof(link), "%s/" WIRE_API_LIBRARY, path);

	if (length > 0 && (size_t)length < sizeof(link) && is_trusted(path))
		calls = load(library ? library : link);
	if (calls && !calls->open_session(path))
		calls = NULL;
	errno = saved_errno;
	return calls;
}
