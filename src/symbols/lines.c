/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF of large libraries is gigabytes, and few of their addresses are ever shown. So there are
 * two small indexes, of compilation units by address and, of the units asked for, of functions by
 * address; the rest is read when needed and given back when libdw has cached too much. Offsets and
 * links of DIEs are foreign: walks only go forwards, to a depth and a number of steps.
 */
#include "symbols/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "base/process_view.h"
#include "symbols/debug_file.h"
#include "symbols/elf_symbols.h"

#define CHAIN_MAX     64 /* inlined functions in one another */
#define DEPTH_MAX     96 /* nested scopes */
#define UNIT_DIES_MAX (32u << 20)
#define CACHED_ROWS_MAX                                                                            \
	(4u << 20) /* of line programs, at some 50 bytes each, before libdw starts anew */
#define CACHED_UNITS_MAX 4096
#define DEBUG_LINE       ".debug_line"

/* A range of addresses of a DIE; sorted by start they may overlap. */
struct die_range {
	uint64_t start, end;
	uint64_t end_so_far; /* the highest end up to and with this one */
	uint64_t die;        /* offset in .debug_info */
	uint32_t unit;       /* index in units, for the ranges of units */
};

struct die_ranges { /* as ARRAY_OF() */
	struct die_range *items;
	size_t count, capacity;
};

struct unit {
	uint64_t die;
	struct die_ranges functions;
	bool indexed;
	uint32_t cached_in; /* the generation of libdw that holds its line program */
};

struct line_table {
	int fd;
	Dwarf *dwarf; /* NULL: not opened, or given back */
	uint32_t generation;
	size_t cached_rows, cached_units;
	bool units_indexed, is_foreign;
	const char *failure; /* NULL: none */
	uint64_t unpacked_bytes;
	ARRAY_OF(struct unit) units;
	struct die_ranges unit_ranges;
	struct intern strings; /* what was returned, since libdw's own go with its handle */
};

/* ---- Ranges ---- */

static int compare_ranges(const void *left, const void *right)
{
	const struct die_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->die > b->die) - (a->die < b->die);
}

static void ranges_finish(struct die_ranges *ranges)
{
	uint64_t end_so_far = 0;

	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
	array_foreach (ranges, range) {
		end_so_far = MAX(end_so_far, range->end);
		range->end_so_far = end_so_far;
	}
}

/* The range that starts last among those that cover the address. */
static const struct die_range *ranges_find(const struct die_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > 0 && ranges->items[low - 1].end_so_far > address) {
		low--;
		if (ranges->items[low].end > address)
			return &ranges->items[low];
	}
	return NULL;
}

/* Appends the addresses of a DIE. Code that the linker dropped is left at address 0 or at the top.
 */
static int ranges_add(struct die_ranges *ranges, Dwarf_Die *die, uint32_t unit)
{
	struct die_range range = {.die = dwarf_dieoffset(die), .unit = unit};
	Dwarf_Addr base, start, end;
	ptrdiff_t position = 0;
	int result = 0;

	while (result == 0 && (position = dwarf_ranges(die, position, &base, &start, &end)) > 0) {
		range.start = start;
		range.end = end;
		if (start != 0 && start < end)
			result = array_append(ranges, range);
	}
	return result;
}

/* ---- Units and their functions ---- */

/* The unit's DIE that has the scopes: with split DWARF the one in the .dwo file. */
static bool open_unit(struct line_table *table, const struct unit *unit, Dwarf_Die *ret_skeleton,
	Dwarf_Die *ret_scopes)
{
	Dwarf_Die split;
	uint8_t type;

	if (!dwarf_offdie(table->dwarf, unit->die, ret_skeleton))
		return false;
	*ret_scopes = *ret_skeleton;
	if (dwarf_cu_info(ret_skeleton->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
		type == DW_UT_skeleton && split.addr)
		*ret_scopes = split;
	return true;
}

static int index_units(struct line_table *table)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int result = 0;

	while (result == 0 &&
		dwarf_get_units(table->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		struct unit unit = {.die = dwarf_dieoffset(&die)};

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		result = array_append(&table->units, unit);
		if (result == 0)
			result = ranges_add(
				&table->unit_ranges, &die, (uint32_t)table->units.count - 1);
	}
	ranges_finish(&table->unit_ranges);
	table->units_indexed = result == 0;
	return result;
}

struct walk {
	struct unit *unit;
	uint32_t steps;
	int result;
};

static bool holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* in Rust */
		return true;
	default:
		return false;
	}
}

/* Moves to the next sibling, which in a sound file lies behind. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) != 0 || next.addr <= die->addr)
		return false;
	*die = next;
	return true;
}

static void index_functions(struct walk *walk, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth == 0 || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);

		if (++walk->steps > UNIT_DIES_MAX)
			return;
		if (tag == DW_TAG_subprogram)
			walk->result = ranges_add(&walk->unit->functions, &die, 0);
		else if (holds_functions(tag))
			index_functions(walk, &die, depth - 1);
	} while (walk->result == 0 && next_sibling(&die));
}

static void index_unit(struct unit *unit, Dwarf_Die *scopes)
{
	struct walk walk = {.unit = unit};

	if (unit->indexed)
		return;
	unit->indexed = true;
	index_functions(&walk, scopes, DEPTH_MAX);
	ranges_finish(&unit->functions);
}

/* ---- The chain of inlined functions ---- */

struct chain {
	uint64_t address;
	Dwarf_Die items[CHAIN_MAX]; /* outermost first */
	size_t count;
	uint32_t steps;
};

static bool has_no_address(Dwarf_Die *die)
{
	return !dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges);
}

/* Appends the inlined calls below `parent` that the address is in; true when it is in one of its
 * scopes. */
static bool follow_scopes(struct chain *chain, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth == 0 || chain->count == CHAIN_MAX || dwarf_child(parent, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);

		if (++chain->steps > UNIT_DIES_MAX)
			return false;
		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
			tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
			continue;
		if (dwarf_haspc(&die, chain->address) > 0) {
			if (tag == DW_TAG_inlined_subroutine)
				chain->items[chain->count++] = die;
			follow_scopes(chain, &die, depth - 1);
			return true;
		}
		/* A block without addresses of its own only groups what is in it. */
		if (tag != DW_TAG_inlined_subroutine && has_no_address(&die) &&
			follow_scopes(chain, &die, depth - 1))
			return true;
	} while (next_sibling(&die));
	return false;
}

static void find_chain(struct chain *chain, const struct unit *unit, Dwarf_Die *scopes)
{
	const struct die_range *function = ranges_find(&unit->functions, chain->address);
	Dwarf_Die first, *die = &chain->items[0];

	if (!function)
		return;
	/* Offsets of a split unit count in its own file. */
	if (!dwarf_offdie(dwarf_cu_getdwarf(scopes->cu), function->die, die))
		return;
	first = *die;
	chain->count = 1;
	follow_scopes(chain, &first, DEPTH_MAX);
}

/* ---- Results ---- */

static const char *keep_string(struct line_table *table, const char *text)
{
	uint32_t id;

	if (!text || intern_add(&table->strings, text, strlen(text), &id) < 0)
		return NULL;
	return intern_get(&table->strings, id);
}

static const char *function_name(struct line_table *table, Dwarf_Die *die)
{
	static const unsigned int linkage_names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	Dwarf_Attribute attribute;

	for (size_t i = 0; i < ARRAY_SIZE(linkage_names); i++) {
		const char *name;

		if (!dwarf_attr_integrate(die, linkage_names[i], &attribute))
			continue;
		name = dwarf_formstring(&attribute);
		if (name)
			return keep_string(table, name);
	}
	return keep_string(table, dwarf_diename(die));
}

static uint64_t number_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0)
		return 0;
	return value;
}

/* Where the inlined function was called. */
static void set_call_site(
	struct line_table *table, Dwarf_Die *scopes, Dwarf_Die *inlined, struct source_line *line)
{
	uint64_t file = number_attribute(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t count;

	line->line = (uint32_t)number_attribute(inlined, DW_AT_call_line);
	if (dwarf_getsrcfiles(scopes, &files, &count) == 0 && file < count)
		line->file = keep_string(table, dwarf_filesrc(files, file, NULL, NULL));
}

static void set_line_row(
	struct line_table *table, Dwarf_Die *skeleton, uint64_t address, struct source_line *line)
{
	Dwarf_Line *row = dwarf_getsrc_die(skeleton, address);
	int number = 0;

	if (!row)
		return;
	line->file = keep_string(table, dwarf_linesrc(row, NULL, NULL));
	if (dwarf_lineno(row, &number) == 0 && number > 0)
		line->line = (uint32_t)number;
}

static size_t fill_lines(struct line_table *table, Dwarf_Die *skeleton, Dwarf_Die *scopes,
	struct chain *chain, struct source_line *ret_lines, size_t capacity)
{
	size_t count = MIN(MAX(chain->count, (size_t)1), capacity);

	memset(ret_lines, 0, count * sizeof(*ret_lines));
	set_line_row(table, skeleton, chain->address, &ret_lines[0]);
	if (chain->count == 0)
		return ret_lines[0].file ? 1 : 0;
	for (size_t i = 0; i < count; i++) {
		size_t level = chain->count - 1 - i;

		ret_lines[i].function = function_name(table, &chain->items[level]);
		if (i > 0)
			set_call_site(table, scopes, &chain->items[level + 1], &ret_lines[i]);
	}
	return count;
}

/* ---- The libdw handle ---- */

static void close_dwarf(struct line_table *table)
{
	if (table->dwarf)
		dwarf_end(table->dwarf);
	table->dwarf = NULL;
	table->cached_rows = table->cached_units = 0;
}

/* Opens libdw when needed, and anew when it holds too much. */
static bool prepare_dwarf(struct line_table *table)
{
	if (table->cached_rows > CACHED_ROWS_MAX || table->cached_units > CACHED_UNITS_MAX)
		close_dwarf(table);
	if (!table->dwarf && !table->failure) {
		table->dwarf = dwarf_begin(table->fd, DWARF_C_READ);
		if (!table->dwarf)
			table->failure = dwarf_errmsg(-1);
		table->generation++;
	}
	if (table->dwarf && !table->units_indexed && index_units(table) < 0)
		table->failure = "out of memory";
	return table->dwarf && !table->failure;
}

/* libdw decodes a unit's whole line program at the first question and keeps it. */
static void count_cached(struct line_table *table, struct unit *unit, Dwarf_Die *skeleton)
{
	Dwarf_Lines *rows;
	size_t count;

	if (unit->cached_in == table->generation)
		return;
	unit->cached_in = table->generation;
	table->cached_units++;
	if (dwarf_getsrclines(skeleton, &rows, &count) == 0)
		table->cached_rows += count;
}

size_t line_table_find(
	struct line_table *table, uint64_t vaddr, struct source_line *ret_lines, size_t capacity)
{
	struct chain chain = {.address = vaddr};
	const struct die_range *range;
	Dwarf_Die skeleton, scopes;
	struct unit *unit;

	if (capacity == 0 || !prepare_dwarf(table))
		return 0;
	range = ranges_find(&table->unit_ranges, vaddr);
	if (!range)
		return 0;
	unit = &table->units.items[range->unit];
	if (!open_unit(table, unit, &skeleton, &scopes))
		return 0;
	index_unit(unit, &scopes);
	count_cached(table, unit, &skeleton);
	find_chain(&chain, unit, &scopes);
	return fill_lines(table, &skeleton, &scopes, &chain, ret_lines, capacity);
}

/* ---- Opening ---- */

/* The part of the path inside root: debug files are looked for there. */
static const char *path_inside(const char *path, const char *root)
{
	size_t length = strlen(root);

	while (length && root[length - 1] == '/')
		length--;
	if (strncmp(path, root, length) == 0 && path[length] == '/')
		return path + length;
	return path;
}

/* What a section unpacks to; 0 for one that is not compressed. */
static uint64_t unpacked_bytes(const struct elf_file *file, const Elf64_Shdr *section)
{
	struct {
		char magic[4];
		uint8_t length[8];
	} old_form; /* .zdebug_*: the length is big-endian */
	Elf64_Chdr header;
	uint64_t length = 0;

	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_ALLOC))
		return 0;
	if (section->sh_flags & SHF_COMPRESSED)
		return elf_file_read(file, section->sh_offset, &header, sizeof(header))
			       ? header.ch_size
			       : 0;
	if (!elf_file_read(file, section->sh_offset, &old_form, sizeof(old_form)) ||
		memcmp(old_form.magic, "ZLIB", sizeof(old_form.magic)) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(old_form.length); i++)
		length = length << 8 | old_form.length[i];
	return length;
}

static uint64_t all_unpacked_bytes(const struct elf_file *file)
{
	uint64_t total = 0;

	for (size_t i = 1; i < elf_file_section_count(file); i++)
		if (__builtin_add_overflow(
			    total, unpacked_bytes(file, elf_file_section_header(file, i)), &total))
			return UINT64_MAX;
	return total;
}

/* Opens the file that has .debug_line: this one, or its debug file. */
static int open_line_file(
	const char *path, const char *root, uint64_t *ret_unpacked_bytes, struct errmsg *err)
{
	_cleanup_elf_file_ struct elf_file *file = NULL, *debug_file = NULL;
	_cleanup_close_ int fd = -1, debug_fd = -1;
	struct debug_file_search search = {.root = root, .path = path_inside(path, root)};
	struct stat status;
	int result;

	fd = open_regular_file(path, &status);
	if (fd < 0)
		return errmsg_set(err, fd, "cannot open %s: %s", path, strerror(-fd));
	result = elf_file_open_fd(&file, fd, path, err);
	if (result < 0)
		return result;
	if (!elf_section_present(file, DEBUG_LINE)) {
		search.file = file;
		result = debug_file_open(&debug_file, &debug_fd, &search, DEBUG_LINE);
		if (result == -ENOENT)
			return errmsg_set(err, -ENOENT,
				"no source lines for %s: neither it nor a separate debug file has "
				"any; compile it with -g, or install its debug symbols (a -dbgsym "
				"or -debuginfo package)",
				path);
		if (result < 0)
			return errmsg_set(
				err, result, "no source lines for %s: %s", path, strerror(-result));
	}
	*ret_unpacked_bytes = all_unpacked_bytes(debug_file ? debug_file : file);
	return debug_fd >= 0 ? TAKE_FD(debug_fd) : TAKE_FD(fd);
}

int line_table_open(
	struct line_table **ret_table, const char *path, const char *root, struct errmsg *err)
{
	struct line_table *table;
	uint64_t unpacked = 0;
	struct stat status;
	int fd = open_line_file(path, root ? root : "", &unpacked, err);

	if (fd < 0)
		return fd;
	table = calloc(1, sizeof(*table));
	if (!table) {
		close(fd);
		return errmsg_set(err, -ENOMEM, "no source lines for %s: out of memory", path);
	}
	table->fd = fd;
	table->unpacked_bytes = unpacked;
	table->is_foreign = fstat(fd, &status) < 0 || (root && root[0]) ||
			    (status.st_uid != 0 && status.st_uid != geteuid());
	*ret_table = table;
	return 0;
}

const char *line_table_failure(const struct line_table *table)
{
	return table->failure;
}

uint64_t line_table_unpacked_bytes(const struct line_table *table)
{
	return table->unpacked_bytes;
}

bool line_table_is_trusted(const struct line_table *table)
{
	return !table->is_foreign;
}

struct line_table *line_table_free(struct line_table *table)
{
	if (!table)
		return NULL;
	close_dwarf(table);
	closep(&table->fd);
	array_foreach (&table->units, unit)
		array_done(&unit->functions);
	array_done(&table->units);
	array_done(&table->unit_ranges);
	intern_done(&table->strings);
	free(table);
	return NULL;
}
