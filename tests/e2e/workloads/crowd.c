/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `crowd SECONDS COUNT`: COUNT threads at once that all work in crowd_spin now and then. Prints
 * "threads COUNT lived SECONDS to SECONDS" at the end: how long they and the main thread were
 * there, all together, at least and at most.
 */
#include <pthread.h>

#include "workload.h"

SPIN_FUNCTION(crowd_spin)

static double end_s;

struct member {
	pthread_t thread;
	double made_s, lived_s;
};

static NOINLINE void *member(void *argument)
{
	struct member *member = argument;
	double begin_s = now_s();

	while (now_s() < end_s) {
		crowd_spin(1);
		usleep(200000);
	}
	KEEP_FRAME();
	member->lived_s = now_s() - begin_s;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100;
	struct member *members = calloc(count, sizeof(*members));
	double begin_s = now_s(), least_s = 0, most_s = 0;
	pthread_attr_t attributes;

	end_s = now_s() + seconds_argument(argc, argv);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (unsigned i = 0; members && i < count; i++) {
		members[i].made_s = now_s();
		errno = pthread_create(&members[i].thread, &attributes, member, &members[i]);
		if (errno)
			die("pthread_create");
	}
	ready();
	for (unsigned i = 0; members && i < count; i++) {
		pthread_join(members[i].thread, NULL);
		least_s += members[i].lived_s;
		most_s += now_s() - members[i].made_s;
	}
	free(members);
	printf("threads %u lived %.6f to %.6f\n", count, least_s + now_s() - begin_s,
		most_s + now_s() - begin_s);
	return 0;
}
