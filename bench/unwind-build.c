/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind-build FILE...: what an unwind table costs. Per file: the table's contents, the time to
 * build it (the best and the worst of some runs), to build and store it, and to open it from the
 * cache.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../tests/support/elf_path.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "unwind/build.h"

#define RUNS 5

struct cost {
	double wall_ms, cpu_ms;
};

static double cpu_now_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static struct cost cost_now(void)
{
	return (struct cost){(double)monotonic_now_ns() / NS_PER_MS, cpu_now_ms()};
}

/* Opens the file and its table as a session does, and says what that cost. */
static int open_once(const char *path, const char *cache, struct unwind_build_stats *ret_stats,
	uint64_t *ret_bytes, struct cost *ret_cost, struct errmsg *err)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	struct cost start = cost_now(), end;
	struct unwind_table table;
	int result = open_elf(&file, path, path, err);

	if (result == 0)
		result = unwind_table_open(&table, file, cache, ret_stats, err);
	if (result < 0)
		return result;
	end = cost_now();
	*ret_cost = (struct cost){end.wall_ms - start.wall_ms, end.cpu_ms - start.cpu_ms};
	*ret_bytes = table.word_count * sizeof(*table.words);
	unwind_table_done(&table);
	return 0;
}

static int measure(
	const char *what, const char *path, const char *cache, int runs, struct errmsg *err)
{
	struct cost best = {0}, worst = {0}, cost;
	struct unwind_build_stats stats;
	uint64_t bytes;

	for (int i = 0; i < runs; i++) {
		int result = open_once(path, cache, &stats, &bytes, &cost, err);

		if (result < 0)
			return result;
		if (i == 0 || cost.wall_ms < best.wall_ms)
			best = cost;
		if (i == 0 || cost.wall_ms > worst.wall_ms)
			worst = cost;
	}
	printf("  %-16s wall %8.2f to %8.2f ms, CPU %8.2f to %8.2f ms (%d runs)\n", what,
		best.wall_ms, worst.wall_ms, best.cpu_ms, worst.cpu_ms, runs);
	return 0;
}

static int describe(const char *path, struct errmsg *err)
{
	struct unwind_build_stats stats;
	struct cost cost;
	uint64_t bytes;
	int result = open_once(path, NULL, &stats, &bytes, &cost, err);

	if (result < 0)
		return result;
	printf("%s: %" PRIu64 " FDEs, %" PRIu64 " rows, %" PRIu64 " rules, %" PRIu64
	       " bytes, %" PRIu64 " unsupported rows, %" PRIu64 " corrupt FDEs\n",
		path, stats.fde_count, stats.row_count, stats.rule_count, bytes,
		stats.unsupported_rows, stats.corrupt_fdes);
	return 0;
}

static void remove_cached(const char *path, const char *cache)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	_cleanup_strbuf_ struct strbuf cached = {0};

	if (open_elf(&file, path, path, NULL) < 0)
		return;
	strbuf_addf(&cached, "%s/", cache);
	elf_file_cache_name(file, &cached);
	strbuf_addf(&cached, ".unwind");
	if (strbuf_status(&cached) == 0)
		unlink(cached.data);
}

static int run(const char *path, const char *cache, struct errmsg *err)
{
	int result = describe(path, err);

	if (result == 0)
		result = measure("build", path, NULL, RUNS, err);
	if (result == 0)
		result = measure("build and store", path, cache, 1, err);
	if (result == 0)
		result = measure("from the cache", path, cache, RUNS, err);
	remove_cached(path, cache);
	return result;
}

int main(int argc, char **argv)
{
	char cache[] = "/tmp/sonde-unwind-build-XXXXXX";
	struct errmsg err;
	int failures = 0;

	if (argc < 2 || !mkdtemp(cache)) {
		fprintf(stderr, "usage: unwind-build FILE...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		if (run(argv[i], cache, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			failures++;
		}
	}
	rmdir(cache);
	return failures ? 1 : 0;
}
