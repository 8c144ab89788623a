/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parallel.h"

#include <pthread.h>
#include <unistd.h>

#include "base/macros.h"

#define MAX_THREADS 64

struct round {
	size_t count;
	_Atomic size_t next;
	void (*run)(size_t index, void *context);
	void *context;
};

static void *work(void *argument)
{
	struct round *round = argument;

	for (size_t i = round->next++; i < round->count; i = round->next++)
		round->run(i, round->context);
	return NULL;
}

void parallel_each(size_t count, void (*run)(size_t index, void *context), void *context)
{
	struct round round = {.count = count, .run = run, .context = context};
	size_t processors = (size_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), started = 0;
	pthread_t threads[MAX_THREADS];
	size_t most = MIN(processors, ARRAY_SIZE(threads)), wanted = MIN(count, most);

	/* Where no thread can be made, the others do its work. */
	while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, &round) == 0)
		started++;
	work(&round);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}
