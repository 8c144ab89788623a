/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static const struct toy_tracer *tracer;

static void load_tracer(void)
{
	const char *path = getenv("TOY_TRACER");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	toy_tracer_function *find =
		library ? (toy_tracer_function *)dlsym(library, "toy_tracer") : NULL;

	tracer = find ? find() : NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((visibility("default"))) void toy_run(const char *kernel, uint64_t duration_ns)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	void *launch = NULL;
	uint64_t start_ns;

	pthread_once(&once, load_tracer);
	if (tracer)
		launch = tracer->launched(kernel);
	start_ns = now_ns();
	while (now_ns() < start_ns + duration_ns)
		;
	if (launch)
		tracer->ended(launch, start_ns, start_ns + duration_ns);
}
