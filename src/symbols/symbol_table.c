/* SPDX-License-Identifier: Apache-2.0 */
/* One file's symbols: gathered from all that describe the file, or mapped from the cache. */
#include <errno.h>
#include <lzma.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "symbols/debug_file.h"
#include "symbols/elf_symbols.h"
#include "symbols/symbol_image.h"
#include "symbols/symbols.h"

#define MINI_DEBUG_MAX_BYTES ((size_t)256 << 20)
#define XZ_MEMORY_MAX_BYTES  ((uint64_t)256 << 20)

struct symbol_table {
	struct symbol_image image;
	struct file_mapping mapping; /* of the cache file, or */
	void *built;                 /* the image itself */
	size_t built_length;
	char *cache_path; /* NULL: no cache */
};

/* Where the candidates' names live until the image is made. */
struct gathering {
	struct elf_file *file;
	struct debug_file_search search;
	struct symbol_candidates candidates;
	struct elf_file *debug_file, *mini_file;
	struct strbuf mini_image;
	char *plt_names;
};

/* ---- Gathering ---- */

/* Appends the unpacked xz stream; -EBADMSG when it is damaged or larger than any symbol table. */
static int unpack_xz(const struct elf_bytes *packed, struct strbuf *ret_bytes)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret status = lzma_stream_decoder(&stream, XZ_MEMORY_MAX_BYTES, 0);
	uint8_t chunk[16384];

	stream.next_in = packed->bytes;
	stream.avail_in = packed->length;
	while (status == LZMA_OK && ret_bytes->length <= MINI_DEBUG_MAX_BYTES) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		status = lzma_code(&stream, LZMA_FINISH);
		strbuf_add_bytes(ret_bytes, chunk, sizeof(chunk) - stream.avail_out);
	}
	lzma_end(&stream);
	if (status == LZMA_MEM_ERROR || strbuf_status(ret_bytes) < 0)
		return -ENOMEM;
	return status == LZMA_STREAM_END ? 0 : -EBADMSG;
}

/* .gnu_debugdata: an ELF file with the symbols that .dynsym lacks, xz-compressed. */
static int gather_mini_debug_data(struct gathering *all)
{
	struct elf_bytes packed;
	int result;

	if (!elf_file_section(all->file, ".gnu_debugdata", &packed))
		return 0;
	result = unpack_xz(&packed, &all->mini_image);
	if (result == -ENOMEM)
		return result;
	if (result < 0 || elf_file_open_memory(&all->mini_file, all->mini_image.data,
				  all->mini_image.length, ".gnu_debugdata", NULL) < 0)
		return 0;
	return elf_symbols_collect(&all->candidates, all->file, all->mini_file, SHT_SYMTAB);
}

/* What stands in for a stripped .symtab: that of the debug file, else the reduced one in the file
 * itself. */
static int gather_stripped(struct gathering *all)
{
	int result = debug_file_open(&all->debug_file, NULL, &all->search, ".symtab");

	if (result == 0)
		return elf_symbols_collect(
			&all->candidates, all->file, all->debug_file, SHT_SYMTAB);
	return result == -ENOENT ? gather_mini_debug_data(all) : result;
}

static int gather(struct gathering *all)
{
	int result;

	if (elf_section_present(all->file, ".symtab")) {
		result = elf_symbols_collect(&all->candidates, all->file, all->file, SHT_SYMTAB);
	} else {
		result = gather_stripped(all);
		if (result == 0)
			result = elf_symbols_collect(
				&all->candidates, all->file, all->file, SHT_DYNSYM);
	}
	if (result < 0)
		return result;
	symbol_candidates_sort(&all->candidates);
	return plt_symbols_collect(&all->candidates, all->file, &all->plt_names);
}

static void gathering_done(struct gathering *all)
{
	array_done(&all->candidates);
	elf_file_free(all->debug_file);
	elf_file_free(all->mini_file);
	strbuf_done(&all->mini_image);
	free(all->plt_names);
}

static int build_image(const struct debug_file_search *search, const struct symbol_image_key *key,
	void **ret_bytes, size_t *ret_length)
{
	struct gathering all = {
		.file = search->file, .search = *search, .candidates.file = search->file};
	int result = gather(&all);

	if (result == 0)
		result = symbol_image_build(ret_bytes, ret_length, &all.candidates, key);
	/* What was made of a file that changed meanwhile is neither used nor kept. */
	if (result == 0)
		result = elf_file_status(search->file);
	if (result == 0 && all.debug_file)
		result = elf_file_status(all.debug_file);
	gathering_done(&all);
	return result;
}

/* ---- The cache ---- */

/* What strip takes away; the build-id, and with it the identity, stays. */
static uint64_t own_fingerprint(struct elf_file *file)
{
	static const char *const names[] = {".symtab", ".gnu_debugdata"};
	uint64_t fingerprint = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t index = elf_file_find_section(file, names[i]);
		const Elf64_Shdr *header = index ? elf_file_section_header(file, index) : NULL;

		if (header && header->sh_type != SHT_NOBITS)
			fingerprint = hash_u64(fingerprint + header->sh_size + i) | 1;
	}
	return fingerprint;
}

static struct symbol_image_key make_key(const struct debug_file_search *search)
{
	return (struct symbol_image_key){
		.identity = elf_file_identity(search->file),
		.own_fingerprint = own_fingerprint(search->file),
		.debug_fingerprint = debug_file_fingerprint(search),
	};
}

/* NULL: no cache. */
static char *cache_path(const char *cache_directory, const struct elf_file *file)
{
	struct strbuf path = {0};

	if (!cache_directory)
		return NULL;
	strbuf_addf(&path, "%s/", cache_directory);
	elf_file_cache_name(file, &path);
	strbuf_addf(&path, ".symbols");
	if (strbuf_status(&path) < 0)
		strbuf_done(&path);
	return path.data;
}

/* Maps the cache file; false when it is absent, damaged, or made of less than there is now. */
static bool map_cached(struct symbol_table *table, const struct symbol_image_key *key)
{
	if (!table->cache_path || file_mapping_open(&table->mapping, table->cache_path, NULL) < 0)
		return false;
	if (symbol_image_view(&table->image, table->mapping.bytes, table->mapping.length) == 0 &&
		symbol_image_serves(&table->image, key)) {
		/* Checking read the tables; lookups touch little. The page cache keeps the rest. */
		madvise((void *)table->mapping.bytes, table->mapping.length, MADV_DONTNEED);
		madvise((void *)table->mapping.bytes, table->mapping.length, MADV_RANDOM);
		return true;
	}
	file_mapping_done(&table->mapping);
	return false;
}

/* Keeps the image in the cache and uses that copy, whose memory the kernel can take back; else in
 * memory. */
static int keep_image(
	struct symbol_table *table, const struct symbol_image_key *key, void *bytes, size_t length)
{
	if (table->cache_path && write_file_atomically(table->cache_path, bytes, length) == 0 &&
		map_cached(table, key)) {
		free(bytes);
		return 0;
	}
	table->built = bytes;
	table->built_length = length;
	return symbol_image_view(&table->image, bytes, length);
}

static int open_table(struct symbol_table *table, const struct debug_file_search *search,
	const char *cache_directory)
{
	struct symbol_image_key key = make_key(search);
	void *bytes = NULL;
	size_t length = 0;
	int result;

	table->cache_path = cache_path(cache_directory, search->file);
	if (map_cached(table, &key))
		return 0;
	result = build_image(search, &key, &bytes, &length);
	return result < 0 ? result : keep_image(table, &key, bytes, length);
}

/* ---- Tables ---- */

int symbol_table_open(struct symbol_table **ret_table, struct elf_file *file, const char *path,
	const char *root, const char *cache_directory, struct errmsg *err)
{
	struct debug_file_search search = {.file = file, .path = path, .root = root ? root : ""};
	_cleanup_symbol_table_ struct symbol_table *table = calloc(1, sizeof(*table));
	int result = table ? open_table(table, &search, cache_directory) : -ENOMEM;

	if (result < 0)
		return errmsg_set(err, result, "cannot name the functions of %s: %s",
			path ? path : "a mapped file", elf_file_explain(result));
	*ret_table = TAKE_PTR(table);
	return 0;
}

struct symbol_table *symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return NULL;
	file_mapping_done(&table->mapping);
	free(table->built);
	free(table->cache_path);
	free(table);
	return NULL;
}

void symbol_table_freep(struct symbol_table **table)
{
	symbol_table_free(*table);
}

bool symbol_table_find(const struct symbol_table *table, uint64_t vaddr, struct symbol *ret_symbol)
{
	int result = symbol_image_find(&table->image, vaddr, ret_symbol);

	/* This table lacks the name; the next one is built anew. */
	if (result < 0 && table->cache_path)
		unlink(table->cache_path);
	return result > 0;
}

uint64_t symbol_table_memory(const struct symbol_table *table)
{
	return table->built_length;
}
