/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's text symbols in 12 bytes each: sorted addresses, and beside them offsets of names.
 * What comes and goes while recording (BPF programs, trampolines) is few and kept in a list of its
 * own.
 */
#include "symbols/kernel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "base/strbuf.h"

#define KALLSYMS_MAX_BYTES ((size_t)1 << 30)
#define NAME_LENGTH_MAX    1024 /* the kernel's own limit is 512 */
#define MODULES_MAX        UINT16_MAX
#define REMOVED            UINT32_MAX

struct late_symbol {
	uint64_t start, end;
	uint32_t name; /* in late_names */
};

struct kernel_symbols {
	uint64_t *starts;       /* sorted, distinct */
	uint32_t *name_offsets; /* in names; REMOVED for a symbol that was unloaded */
	size_t count;
	struct strbuf names; /* of each symbol: u16 module id, name, NUL; offsets are of the name */
	struct intern modules;
	ARRAY_OF(struct late_symbol) late; /* sorted by start, disjoint */
	struct intern late_names;
};

/* ---- Reading kallsyms ---- */

struct text_symbol {
	uint64_t start;
	uint32_t name_offset;
	uint32_t rank; /* among the names of one address the lowest is kept */
};

struct reading {
	struct kernel_symbols *symbols;
	struct text_symbol *items; /* as ARRAY_OF() */
	size_t count, capacity;
	size_t hidden; /* text symbols at address 0 */
	uint32_t module_id;
	const char *module; /* of the line before, to look a name up once a run */
	size_t module_length;
};

/* "ADDRESS TYPE NAME[\t[MODULE]]" */
struct kallsyms_line {
	uint64_t address;
	char type;
	const char *name, *module;
	size_t name_length, module_length;
};

static int hex_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static bool parse_line(const char *at, const char *end, struct kallsyms_line *ret_line)
{
	struct kallsyms_line line = {0};
	const char *begin = at;

	for (; at < end && hex_digit(*at) >= 0; at++)
		line.address = line.address << 4 | (uint64_t)hex_digit(*at);
	if (at == begin || at - begin > 16 || end - at < 4 || at[0] != ' ' || at[2] != ' ')
		return false;
	line.type = at[1];
	line.name = at += 3;
	while (at < end && *at != '\t' && *at != ' ')
		at++;
	line.name_length = (size_t)(at - line.name);
	while (at < end && (*at == '\t' || *at == ' '))
		at++;
	if (end - at > 2 && at[0] == '[' && end[-1] == ']') {
		line.module = at + 1;
		line.module_length = (size_t)(end - at) - 2;
	}
	*ret_line = line;
	return line.name_length > 0 && line.name_length <= NAME_LENGTH_MAX &&
	       !memchr(line.name, '\0', line.name_length);
}

/*
 * One address has many names: section starts, aliases, position-independent twins (__pi_). Global
 * ones before local before weak, and those that begin with an underscore last.
 */
static uint32_t name_rank(const struct kallsyms_line *line)
{
	uint32_t rank = line->type == 'T' ? 0 : line->type == 't' ? 1 : 2;

	if (line->name_length >= 5 && memcmp(line->name, "__pi_", 5) == 0)
		rank += 8;
	return rank + (line->name[0] == '_' ? 4 : 0);
}

static int find_module_id(struct reading *reading, const struct kallsyms_line *line)
{
	if (line->module_length == reading->module_length &&
		(line->module_length == 0 ||
			memcmp(line->module, reading->module, line->module_length) == 0))
		return 0;
	if (intern_add(&reading->symbols->modules, line->module ? line->module : "",
		    line->module_length, &reading->module_id) < 0)
		return -ENOMEM;
	reading->module = line->module;
	reading->module_length = line->module_length;
	return 0;
}

static int add_text_symbol(struct reading *reading, const struct kallsyms_line *line)
{
	struct strbuf *names = &reading->symbols->names;
	struct text_symbol symbol = {.start = line->address, .rank = name_rank(line)};
	uint16_t module_id;

	if (find_module_id(reading, line) < 0)
		return -ENOMEM;
	module_id = (uint16_t)MIN(reading->module_id, (uint32_t)MODULES_MAX);
	strbuf_add_bytes(names, &module_id, sizeof(module_id));
	symbol.name_offset = (uint32_t)names->length;
	strbuf_add_bytes(names, line->name, line->name_length);
	strbuf_add_char(names, '\0');
	if (strbuf_status(names) < 0)
		return -ENOMEM;
	return array_append(reading, symbol);
}

static bool is_text_type(char type)
{
	return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

static int read_lines(struct reading *reading, const char *text, size_t length)
{
	const char *end = text + length;
	int result = 0;

	while (text < end && result == 0) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		struct kallsyms_line line;

		if (parse_line(text, line_end, &line) && is_text_type(line.type)) {
			if (line.address == 0)
				reading->hidden++;
			else
				result = add_text_symbol(reading, &line);
		}
		text = line_end + 1;
	}
	return result;
}

static int compare_text_symbols(const void *left, const void *right)
{
	const struct text_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->name_offset > b->name_offset) - (a->name_offset < b->name_offset);
}

/* Copies only the names that are kept, so that aliases cost nothing. */
static int keep_best_names(struct reading *reading)
{
	struct kernel_symbols *symbols = reading->symbols;
	struct strbuf kept = {0};

	symbols->starts = malloc(MAX(reading->count, (size_t)1) * sizeof(*symbols->starts));
	symbols->name_offsets =
		malloc(MAX(reading->count, (size_t)1) * sizeof(*symbols->name_offsets));
	if (!symbols->starts || !symbols->name_offsets)
		return -ENOMEM;
	qsort(reading->items, reading->count, sizeof(*reading->items), compare_text_symbols);
	array_foreach (reading, symbol) {
		const char *name = symbols->names.data + symbol->name_offset;

		if (symbols->count && symbols->starts[symbols->count - 1] == symbol->start)
			continue;
		strbuf_add_bytes(&kept, name - sizeof(uint16_t), sizeof(uint16_t));
		symbols->starts[symbols->count] = symbol->start;
		symbols->name_offsets[symbols->count++] = (uint32_t)kept.length;
		strbuf_add_bytes(&kept, name, strlen(name) + 1);
	}
	strbuf_done(&symbols->names);
	symbols->names = kept;
	return strbuf_status(&kept);
}

/* Gives back what the arrays do not need; failing to is no error. */
static void trim(struct kernel_symbols *symbols)
{
	void *moved;

	if (symbols->count == 0)
		return;
	moved = realloc(symbols->starts, symbols->count * sizeof(*symbols->starts));
	if (moved)
		symbols->starts = moved;
	moved = realloc(symbols->name_offsets, symbols->count * sizeof(*symbols->name_offsets));
	if (moved)
		symbols->name_offsets = moved;
	moved = realloc(symbols->names.data, symbols->names.length + 1);
	if (moved) {
		symbols->names.data = moved;
		symbols->names.capacity = symbols->names.length + 1;
	}
}

static int explain_empty(const struct reading *reading, const char *name, struct errmsg *err)
{
	if (reading->hidden)
		return errmsg_set(err, -EACCES,
			"kernel functions have no names: every address in %s is 0; %sallow it: "
			"sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
			name, geteuid() == 0 ? "" : "run as root or with CAP_SYSLOG, or ");
	return errmsg_set(err, -ENODATA,
		"kernel functions have no names: %s lists no text symbol; the kernel may be built "
		"without CONFIG_KALLSYMS",
		name);
}

static int build(struct kernel_symbols *symbols, const char *text, size_t length, const char *name,
	struct errmsg *err)
{
	struct reading reading = {.symbols = symbols};
	uint32_t kernel_module;
	int result = intern_add(&symbols->modules, "", 0, &kernel_module);

	if (result >= 0)
		result = read_lines(&reading, text, length);
	if (result == 0 && reading.count == 0)
		result = explain_empty(&reading, name, err);
	else if (result == 0)
		result = keep_best_names(&reading);
	array_done(&reading);
	if (result == -ENOMEM)
		return errmsg_set(err, result, "cannot read %s: out of memory", name);
	return result;
}

int kernel_symbols_parse(struct kernel_symbols **ret_symbols, const char *text, size_t length,
	const char *name_for_messages, struct errmsg *err)
{
	struct kernel_symbols *symbols = calloc(1, sizeof(*symbols));
	int result;

	if (!symbols)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", name_for_messages);
	result = build(symbols, text, length, name_for_messages, err);
	if (result < 0) {
		kernel_symbols_free(symbols);
		return result;
	}
	trim(symbols);
	*ret_symbols = symbols;
	return 0;
}

int kernel_symbols_open(struct kernel_symbols **ret_symbols, const char *path, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int result = read_whole_file(path, KALLSYMS_MAX_BYTES, &text);

	if (result < 0)
		return errmsg_set(err, result,
			"kernel functions have no names: cannot read %s: %s; it needs a mounted "
			"/proc and a kernel with CONFIG_KALLSYMS",
			path, strerror(-result));
	return kernel_symbols_parse(ret_symbols, strbuf_cstr(&text), text.length, path, err);
}

struct kernel_symbols *kernel_symbols_free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return NULL;
	free(symbols->starts);
	free(symbols->name_offsets);
	strbuf_done(&symbols->names);
	intern_done(&symbols->modules);
	array_done(&symbols->late);
	intern_done(&symbols->late_names);
	free(symbols);
	return NULL;
}

/* ---- Lookups and updates ---- */

/* Number of symbols that start at or below the address. */
static size_t count_up_to(const struct kernel_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->starts[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Index of the first late symbol that ends above the address. */
static size_t late_position(const struct kernel_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->late.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->late.items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void remove_late(struct kernel_symbols *symbols, size_t from, size_t to)
{
	struct late_symbol *items = symbols->late.items;

	if (from == to)
		return;
	memmove(items + from, items + to, (symbols->late.count - to) * sizeof(*items));
	symbols->late.count -= to - from;
}

static void remove_symbol(struct kernel_symbols *symbols, uint64_t address)
{
	size_t late = late_position(symbols, address), below = count_up_to(symbols, address);

	if (late < symbols->late.count && symbols->late.items[late].start == address)
		remove_late(symbols, late, late + 1);
	if (below && symbols->starts[below - 1] == address)
		symbols->name_offsets[below - 1] = REMOVED;
}

int kernel_symbols_update(
	struct kernel_symbols *symbols, uint64_t address, uint64_t size, const char *name)
{
	struct late_symbol symbol = {.start = address};
	size_t from, to;

	if (size == 0) {
		remove_symbol(symbols, address);
		return 0;
	}
	if (__builtin_add_overflow(address, size, &symbol.end))
		symbol.end = UINT64_MAX;
	if (intern_add(&symbols->late_names, name, strnlen(name, NAME_LENGTH_MAX), &symbol.name) <
		0)
		return -ENOMEM;
	from = to = late_position(symbols, address);
	while (to < symbols->late.count && symbols->late.items[to].start < symbol.end)
		to++;
	if (array_reserve(&symbols->late, 1) < 0)
		return -ENOMEM;
	remove_late(symbols, from, to);
	memmove(symbols->late.items + from + 1, symbols->late.items + from,
		(symbols->late.count - from) * sizeof(symbol));
	symbols->late.items[from] = symbol;
	symbols->late.count++;
	return 0;
}

static bool find_late(const struct kernel_symbols *symbols, uint64_t address, const char **ret_name,
	const char **ret_module)
{
	size_t at = late_position(symbols, address);
	const char *name;

	if (at == symbols->late.count || symbols->late.items[at].start > address)
		return false;
	name = intern_get(&symbols->late_names, symbols->late.items[at].name);
	*ret_name = name;
	*ret_module = strncmp(name, "bpf_", 4) == 0 ? "bpf" : "";
	return true;
}

bool kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address,
	const char **ret_name, const char **ret_module)
{
	size_t below = count_up_to(symbols, address);
	uint16_t module_id;
	const char *name;

	if (find_late(symbols, address, ret_name, ret_module))
		return true;
	if (below == 0 || symbols->name_offsets[below - 1] == REMOVED)
		return false;
	name = symbols->names.data + symbols->name_offsets[below - 1];
	memcpy(&module_id, name - sizeof(module_id), sizeof(module_id));
	*ret_name = name;
	*ret_module = intern_get(&symbols->modules, module_id);
	return true;
}
