/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <pthread.h>

#include "base/macros.h"
#include "base/processors.h"

#define MAX_THREADS 64U

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
	size_t most = MIN(usable_processors(), MAX_THREADS), wanted = MIN(count, most), started = 0;
	pthread_t threads[MAX_THREADS];

	/* Where no thread can be made, the others do its work. */
	while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, &round) == 0)
		started++;
	work(&round);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

unsigned parallel_share(size_t count)
{
	return count ? (unsigned)(usable_processors() / count) ?: 1 : 1;
}
