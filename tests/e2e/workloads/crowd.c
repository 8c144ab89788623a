/* SPDX-License-Identifier: Apache-2.0 */
/* `crowd SECONDS COUNT`: COUNT threads at once that all work in crowd_spin now and then. */
#include <pthread.h>

#include "workload.h"

SPIN_FUNCTION(crowd_spin)

static double end_s;

static NOINLINE void *member(void *argument)
{
	while (now_s() < end_s) {
		crowd_spin(1);
		usleep(200000);
	}
	KEEP_FRAME();
	return argument;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100;
	pthread_t *threads = calloc(count, sizeof(*threads));
	pthread_attr_t attributes;

	end_s = now_s() + seconds_argument(argc, argv);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (unsigned i = 0; threads && i < count; i++) {
		errno = pthread_create(&threads[i], &attributes, member, NULL);
		if (errno)
			die("pthread_create");
	}
	ready();
	for (unsigned i = 0; threads && i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	printf("threads %u\n", count);
	return 0;
}
