/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sampler that only takes tables, and only while its gate is open: tests hold the file store's
 * thread there for as long as they like. Also a cache folder of the test's own.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sources/unwinder.h"

#define GATED_SAMPLER_FILES 512

struct gated_sampler {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	unsigned calls, waiting;              /* now in add_tables */
	unsigned tables[GATED_SAMPLER_FILES]; /* handed over, by file index */
};

static inline void gated_sampler_init(struct gated_sampler *gate, bool open)
{
	*gate = (struct gated_sampler){.open = open};
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->changed, NULL);
}

static inline void gated_sampler_done(struct gated_sampler *gate)
{
	pthread_cond_destroy(&gate->changed);
	pthread_mutex_destroy(&gate->lock);
}

static inline void gated_sampler_open(struct gated_sampler *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

/* Returns when the file store's thread stands at the gate. */
static inline void gated_sampler_await(struct gated_sampler *gate)
{
	pthread_mutex_lock(&gate->lock);
	while (!gate->waiting)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static int gated_sampler_add_tables(
	void *sampler, const struct unwinder_table *tables, size_t count)
{
	struct gated_sampler *gate = sampler;

	pthread_mutex_lock(&gate->lock);
	gate->calls++;
	gate->waiting++;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->lock);
	gate->waiting--;
	for (size_t i = 0; i < count; i++)
		gate->tables[tables[i].file_index % GATED_SAMPLER_FILES]++;
	pthread_mutex_unlock(&gate->lock);
	return 0;
}

static inline struct source_unwinder gated_sampler_unwinder(struct gated_sampler *gate)
{
	return (struct source_unwinder){.state = gate, .add_tables = gated_sampler_add_tables};
}

/* For group set-up and tear-down. */
static char own_cache[64];

static inline int make_own_cache(void **state)
{
	snprintf(own_cache, sizeof(own_cache), "/tmp/sonde-test-cache-XXXXXX");
	return mkdtemp(own_cache) ? setenv("XDG_CACHE_HOME", own_cache, 1) : -1;
}

static inline int remove_own_cache(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", own_cache);
	return system(command);
}
