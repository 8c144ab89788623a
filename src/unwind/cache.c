/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on disk, by the very file that they were made of: see elf_file_cache_name(). */
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "unwind/build.h"
#include "unwind/table_writer.h"

static int cache_path(struct strbuf *path, const char *cache_directory, const struct elf_file *file)
{
	strbuf_addf(path, "%s/", cache_directory);
	elf_file_cache_name(file, path);
	strbuf_addf(path, ".unwind");
	return strbuf_status(path);
}

/*
 * The checksum covers every word: a torn write after a crash leaves pages of zeros, which would
 * read as good rows.
 */
static bool is_intact(const uint64_t *words, uint64_t word_count, uint64_t identity)
{
	struct unwind_table_header header;

	if (!unwind_table_is_valid(words, word_count))
		return false;
	memcpy(&header, words, sizeof(header));
	return header.identity == identity &&
	       header.checksum == unwind_table_checksum(words, word_count);
}

int unwind_table_open_cached(
	struct unwind_table *ret_table, const struct elf_file *file, const char *cache_directory)
{
	_cleanup_strbuf_ struct strbuf path = {0};
	struct file_mapping mapping;
	uint64_t word_count;
	int result;

	if (cache_path(&path, cache_directory, file) < 0)
		return -ENOMEM;
	result = file_mapping_open(&mapping, path.data, NULL);
	if (result < 0)
		return result == -ENOMEM ? result : -ENOENT;
	word_count = mapping.length / sizeof(uint64_t);
	if (mapping.length % sizeof(uint64_t) ||
		!is_intact((const uint64_t *)mapping.bytes, word_count, elf_file_identity(file))) {
		file_mapping_done(&mapping);
		return -ENOENT;
	}
	*ret_table = (struct unwind_table){.words = (const uint64_t *)mapping.bytes,
		.word_count = word_count,
		.mapping = (void *)mapping.bytes,
		.mapping_length = mapping.length};
	return 0;
}

/* What a table from the cache can still tell of its making. */
static struct unwind_build_stats cached_stats(const struct unwind_table *table)
{
	struct unwind_table_header header;

	memcpy(&header, table->words, sizeof(header));
	return (struct unwind_build_stats){
		.row_count = header.row_count, .rule_count = header.rule_count, .from_cache = true};
}

/* A cache that cannot be written costs time at the next start, nothing else. */
static void store(
	const struct unwind_table *table, const struct elf_file *file, const char *cache_directory)
{
	_cleanup_strbuf_ struct strbuf path = {0};

	if (cache_path(&path, cache_directory, file) == 0)
		write_file_atomically(
			path.data, table->words, table->word_count * sizeof(*table->words));
}

int unwind_table_open(struct unwind_table *ret_table, struct elf_file *file,
	const char *cache_directory, struct unwind_build_stats *ret_stats, struct errmsg *err)
{
	int result;

	if (cache_directory && unwind_table_open_cached(ret_table, file, cache_directory) == 0) {
		if (ret_stats)
			*ret_stats = cached_stats(ret_table);
		return 0;
	}
	result = unwind_table_build(ret_table, file, ret_stats, err);
	if (result == 0 && cache_directory)
		store(ret_table, file, cache_directory);
	return result;
}
