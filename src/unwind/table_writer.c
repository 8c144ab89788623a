/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/table_writer.h"

#include <string.h>
#include <sys/mman.h>

#include "base/map.h"

static void write_pages(
	uint64_t *pages, const struct unwind_table_header *header, const struct unwind_rows *rows)
{
	size_t row = 0;

	for (uint32_t page = 0; page < header->page_count; page++) {
		uint64_t end = (uint64_t)(header->page_base + page + 1) << UNWIND_PAGE_SHIFT;
		size_t first = row;

		while (row < rows->packed.count && unwind_row_vaddr(rows->packed.items[row]) < end)
			row++;
		pages[page] = (uint64_t)(row - first) << 32 | first;
	}
}

static void write_rows(uint64_t *words, const struct unwind_rows *rows)
{
	for (size_t i = 0; i < rows->packed.count; i++) {
		uint64_t packed = rows->packed.items[i];
		uint64_t row = (uint64_t)unwind_row_rule(packed) << 16 |
			       (uint16_t)unwind_row_vaddr(packed);

		words[i / 2] |= row << (i % 2 * 32);
	}
}

static struct unwind_table_header lay_out(
	const struct unwind_rows *rows, uint64_t begin, uint64_t end, uint64_t identity)
{
	struct unwind_table_header header = {.magic = UNWIND_TABLE_MAGIC,
		.version = UNWIND_TABLE_VERSION,
		.page_base = (uint32_t)(begin >> UNWIND_PAGE_SHIFT),
		.row_count = (uint32_t)rows->packed.count,
		.rule_count = (uint32_t)rows->rules.count,
		.identity = identity};

	if (end > begin)
		header.page_count =
			(uint32_t)(((end - 1) >> UNWIND_PAGE_SHIFT) - header.page_base + 1);
	header.pages_at = UNWIND_HEADER_WORDS;
	header.rules_at = header.pages_at + header.page_count;
	header.rows_at = header.rules_at + header.rule_count * UNWIND_RULE_WORDS;
	header.word_count = header.rows_at + (header.row_count + 1) / 2;
	return header;
}

uint64_t unwind_table_checksum(const uint64_t *words, uint64_t word_count)
{
	struct unwind_table_header header;

	memcpy(&header, words, sizeof(header));
	header.checksum = 0;
	return hash_bytes(words + UNWIND_HEADER_WORDS,
		(word_count - UNWIND_HEADER_WORDS) * sizeof(*words),
		hash_bytes(&header, sizeof(header), 0));
}

int unwind_table_write(struct unwind_table *ret_table, const struct unwind_rows *rows,
	uint64_t begin, uint64_t end, uint64_t identity)
{
	struct unwind_table_header header = lay_out(rows, begin, end, identity);
	uint64_t *words;

	if (rows->packed.count > UINT32_MAX - 1)
		return -EFBIG;
	words = calloc(header.word_count, sizeof(*words));
	if (!words)
		return -ENOMEM;
	write_pages(words + header.pages_at, &header, rows);
	memcpy(words + header.rules_at, rows->rules.items,
		rows->rules.count * sizeof(*rows->rules.items));
	write_rows(words + header.rows_at, rows);
	memcpy(words, &header, sizeof(header));
	header.checksum = unwind_table_checksum(words, header.word_count);
	memcpy(words, &header, sizeof(header));
	*ret_table = (struct unwind_table){.words = words, .word_count = header.word_count};
	return 0;
}

bool unwind_table_is_valid(const uint64_t *words, uint64_t word_count)
{
	struct unwind_table_header header;
	uint64_t rules_end, rows_end;

	if (word_count < UNWIND_HEADER_WORDS)
		return false;
	memcpy(&header, words, sizeof(header));
	rules_end = header.rules_at + (uint64_t)header.rule_count * UNWIND_RULE_WORDS;
	rows_end = header.rows_at + ((uint64_t)header.row_count + 1) / 2;
	return header.magic == UNWIND_TABLE_MAGIC && header.version == UNWIND_TABLE_VERSION &&
	       header.word_count == word_count && header.rule_count >= UNWIND_FIXED_RULES &&
	       header.rule_count <= UNWIND_ROWS_MAX_RULES &&
	       header.pages_at >= UNWIND_HEADER_WORDS &&
	       header.rules_at >= (uint64_t)header.pages_at + header.page_count &&
	       header.rows_at >= rules_end && rows_end <= word_count;
}

void unwind_table_done(struct unwind_table *table)
{
	if (table->mapping)
		munmap(table->mapping, table->mapping_length);
	else
		free((void *)table->words);
	*table = (struct unwind_table){0};
}
