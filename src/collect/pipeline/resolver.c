/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/resolver.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/demangle.h"
#include "base/file.h"
#include "base/map.h"
#include "symbols/kernel.h"
#include "symbols/lines.h"
#include "unwind/stack.h"

/* What reading one file's debug information may take: an eighth of the machine's memory. */
#define LINES_MEMORY_SHARE     8
#define LINES_MEMORY_MAX_BYTES ((uint64_t)1 << 30)
/* What a process left behind is kept so long, for samples of it that come late. */
#define KEEP_ENDED_NS      (2 * NS_PER_S)
#define LATE_NAMES_TICK_MS 20
/* Between a stack's innermost frame and the scheduler, which the tracepoint is in. */
#define MAXIMUM_TRACEPOINT_FRAMES 16

/* A frame of a file, kept for its source lines. */
struct file_frame {
	uint32_t file;
	capture_id mapping;
	uint64_t vaddr;
	bool named;
};

struct line_files { /* as ARRAY_OF() */
	struct line_file *items;
	size_t count, capacity;
};

struct line_addresses { /* as ARRAY_OF() */
	uint64_t *items;
	size_t count, capacity;
};

struct resolver {
	struct address_spaces *spaces;
	struct file_store *files;
	struct capture_writer *writer;
	struct kernel_symbols *kernel; /* NULL: hidden, or not needed yet */
	bool kernel_is_read;
	struct errmsg kernel_note;
	struct map_u64 kernel_frames; /* address → frame */
	struct map_u64 file_frames;   /* file and vaddr → frame */
	ARRAY_OF(struct file_frame) frames_of_files;
	struct map_u64 file_mappings; /* file → capture mapping */
	struct jit_names *jit;
	uint64_t jit_seed, jit_mappings; /* tell the mappings of processes apart */
	/* By the power of two, the last one where the number is not known; 0: not written. */
	capture_id left_out_frames[33];
	struct strbuf name; /* scratch for demangling */
};

static void announce_names(void *context)
{
	struct resolver *resolver = context;

	file_store_announce(resolver->files);
}

int resolver_new(struct resolver **ret_resolver, struct address_spaces *spaces,
	struct file_store *files, struct capture_writer *writer)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int result;

	if (!resolver)
		return -ENOMEM;
	resolver->jit_seed = monotonic_now_ns();
	result = jit_names_new(&resolver->jit, announce_names, resolver);
	if (result < 0) {
		free(resolver);
		return result;
	}
	resolver->spaces = spaces;
	resolver->files = files;
	resolver->writer = writer;
	*ret_resolver = resolver;
	return 0;
}

/* ---- kernel ---- */

/* Read at the first kernel frame: a short recording may have none, and there are 100,000 names. */
static const struct kernel_symbols *kernel_symbols(struct resolver *resolver)
{
	if (!resolver->kernel_is_read && kernel_symbols_open(&resolver->kernel, "/proc/kallsyms",
						 &resolver->kernel_note) < 0)
		resolver->kernel = NULL;
	resolver->kernel_is_read = true;
	return resolver->kernel;
}

const char *resolver_kernel_note(const struct resolver *resolver)
{
	return resolver->kernel_note.text;
}

static int kernel_mapping(struct resolver *resolver, const char *module, capture_id *ret_mapping)
{
	struct capture_mapping mapping = {.path = "[kernel]"};
	char path[160];

	if (module[0]) {
		snprintf(path, sizeof(path), "[%s]", module);
		mapping.path = path;
	}
	return capture_writer_mapping(resolver->writer, &mapping, ret_mapping);
}

int resolver_kernel_frame(struct resolver *resolver, uint64_t address, capture_id *ret_frame)
{
	struct capture_frame frame = {.kind = CAPTURE_FRAME_KERNEL, .rel_pc = address};
	const char *module = "";
	uint64_t known;
	int result;

	if (map_u64_get(&resolver->kernel_frames, address, &known)) {
		*ret_frame = (capture_id)known;
		return 0;
	}
	if (kernel_symbols(resolver))
		kernel_symbols_find(resolver->kernel, address, &frame.function, &module);
	result = kernel_mapping(resolver, module, &frame.mapping);
	if (result == 0)
		result = capture_writer_frame(resolver->writer, &frame, ret_frame);
	if (result == 0)
		result = map_u64_set(&resolver->kernel_frames, address, *ret_frame);
	return result;
}

static bool is_scheduler(struct resolver *resolver, uint64_t address)
{
	static const char name[] = "__schedule";
	const char *function, *module;

	/* A compiler may have put ".isra.0" and the like behind it. */
	return kernel_symbols_find(resolver->kernel, address, &function, &module) &&
	       strncmp(function, name, strlen(name)) == 0 &&
	       (function[strlen(name)] == '\0' || function[strlen(name)] == '.');
}

size_t resolver_above_scheduler(struct resolver *resolver, const uint64_t *frames, size_t count)
{
	for (size_t i = 0;
		kernel_symbols(resolver) && i < MIN(count, (size_t)MAXIMUM_TRACEPOINT_FRAMES);
		i++) {
		if (is_scheduler(resolver, frames[i]))
			return i;
	}
	return 0;
}

void resolver_kernel_symbol(struct resolver *resolver, const struct sideband_event *event)
{
	if (!resolver->kernel) /* what is there when it is read is in it */
		return;
	kernel_symbols_update(
		resolver->kernel, event->address, event->removed ? 0 : event->length, event->name);
	/* Text moved: what was looked up before may be another function now. */
	map_u64_clear(&resolver->kernel_frames);
}

/* ---- JIT ---- */

static struct jit_process_key jit_key(const struct resolver *resolver, uint32_t pid)
{
	const struct process *process = address_spaces_find(resolver->spaces, pid);
	struct jit_process_key key = {.pid = pid};

	if (process)
		key.incarnation = process->first_seen_ns + process->exec_count;
	return key;
}

static int write_jit_frame(struct resolver *resolver, const struct capture_mapping *mapping,
	struct capture_frame *frame, capture_id *ret_frame)
{
	int result = capture_writer_mapping(resolver->writer, mapping, &frame->mapping);

	return result < 0 ? result : capture_writer_frame(resolver->writer, frame, ret_frame);
}

/*
 * Code that may be named when its process ends: in a mapping of the process's own, so that the name
 * goes to no other process's code at the same address.
 */
static int late_jit_frame(struct resolver *resolver, const struct jit_process_key *process,
	uint64_t address, capture_id *ret_frame)
{
	struct capture_frame frame = {.kind = CAPTURE_FRAME_JIT, .rel_pc = address};
	struct capture_mapping mapping = {.path = "[anon]"};
	uint64_t id[2] = {resolver->jit_seed};
	int result = 0;

	if (jit_names_kept(resolver->jit, process, address, ret_frame, &frame.mapping))
		return 0;
	if (frame.mapping) {
		result = capture_writer_frame(resolver->writer, &frame, ret_frame);
	} else {
		id[1] = ++resolver->jit_mappings;
		mapping.build_id = (const uint8_t *)id;
		mapping.build_id_length = sizeof(id);
		result = write_jit_frame(resolver, &mapping, &frame, ret_frame);
	}
	return result < 0
		       ? result
		       : jit_names_keep(resolver->jit, process, address, *ret_frame, frame.mapping);
}

/* JIT code moves and is replaced: names are looked up each time, the writer keeps equal frames
 * once. */
static int jit_frame(struct resolver *resolver, uint32_t pid, uint64_t address, uint64_t time_ns,
	bool do_not_wait, capture_id *ret_frame)
{
	struct capture_frame frame = {.kind = CAPTURE_FRAME_JIT, .rel_pc = address};
	const struct capture_mapping mapping = {.path = "[anon]"};
	const struct jit_process_key process = jit_key(resolver, pid);
	enum jit_name_state state =
		jit_names_find(resolver->jit, &process, address, time_ns, &resolver->name);

	if (state == JIT_NAME_PENDING && !do_not_wait)
		return -EAGAIN;
	if (state == JIT_NAME_PENDING || state == JIT_NAME_LATER)
		return late_jit_frame(resolver, &process, address, ret_frame);
	if (state == JIT_NAME_FOUND)
		frame.function = strbuf_cstr(&resolver->name);
	return write_jit_frame(resolver, &mapping, &frame, ret_frame);
}

static int write_late_jit_name(void *context, uint32_t mapping, uint64_t address, const char *text)
{
	struct resolver *resolver = context;
	const struct capture_symbol_line line = {.function = text};

	return capture_writer_symbols(resolver->writer, mapping, address, &line, 1);
}

int resolver_process_ended(struct resolver *resolver, uint32_t pid)
{
	jit_names_end_process(resolver->jit, pid);
	return jit_names_take_late(
		resolver->jit, monotonic_now_ns() - KEEP_ENDED_NS, write_late_jit_name, resolver);
}

int resolver_write_late_names(struct resolver *resolver, uint64_t deadline_ns, bool *ret_all_read)
{
	jit_names_end_all(resolver->jit);
	while (!jit_names_idle(resolver->jit) && monotonic_now_ns() < deadline_ns) {
		struct pollfd ready = {
			.fd = file_store_descriptor(resolver->files), .events = POLLIN};

		poll(&ready, 1, LATE_NAMES_TICK_MS);
		file_store_acknowledge(resolver->files);
	}
	*ret_all_read = jit_names_idle(resolver->jit);
	return jit_names_take_late(resolver->jit, UINT64_MAX, write_late_jit_name, resolver);
}

void resolver_jit_account(const struct resolver *resolver, struct jit_names_account *ret_account)
{
	jit_names_account(resolver->jit, ret_account);
}

/* ---- files ---- */

static int mapping_of_file(struct resolver *resolver, uint32_t file, capture_id *ret_mapping)
{
	const struct build_id *build_id = file_store_build_id(resolver->files, file);
	struct capture_mapping mapping = {
		.path = address_spaces_file(resolver->spaces, file)->path,
		.build_id = build_id->bytes,
		.build_id_length = build_id->length,
	};
	uint64_t known;
	int result;

	if (map_u64_get(&resolver->file_mappings, file, &known)) {
		*ret_mapping = (capture_id)known;
		return 0;
	}
	result = capture_writer_mapping(resolver->writer, &mapping, ret_mapping);
	return result < 0 ? result : map_u64_set(&resolver->file_mappings, file, *ret_mapping);
}

/*
 * Where a stripped file gives no size, the symbol may be that of a function before: the C library
 * of Alpine has exported functions and others behind them in one piece of assembly.
 */
static bool find_symbol(const struct resolver *resolver, const struct symbol_table *symbols,
	uint32_t file, uint64_t vaddr, struct symbol *ret_symbol)
{
	uint64_t start;

	if (!symbols || !symbol_table_find(symbols, vaddr, ret_symbol))
		return false;
	return !ret_symbol->end_is_guess ||
	       !file_store_function_start(resolver->files, file, vaddr, &start) ||
	       start <= ret_symbol->vaddr;
}

static const char *symbol_name(struct resolver *resolver, const struct symbol_table *symbols,
	uint32_t file, uint64_t vaddr)
{
	struct symbol symbol;

	if (!find_symbol(resolver, symbols, file, vaddr, &symbol))
		return NULL;
	strbuf_clear(&resolver->name);
	demangle_symbol(symbol.name, &resolver->name);
	return strbuf_status(&resolver->name) < 0 ? NULL : strbuf_cstr(&resolver->name);
}

/* A function of a stripped file is known by where it begins: its addresses stay together. */
static const char *start_name(struct resolver *resolver, uint32_t file, uint64_t vaddr)
{
	const char *path = address_spaces_file(resolver->spaces, file)->path;
	const char *slash = strrchr(path, '/');
	uint64_t start;

	if (!file_store_function_start(resolver->files, file, vaddr, &start))
		return NULL;
	strbuf_clear(&resolver->name);
	strbuf_addf(&resolver->name, CAPTURE_UNNAMED_PREFIX "%s+0x%llx", slash ? slash + 1 : path,
		(unsigned long long)start);
	return strbuf_status(&resolver->name) < 0 ? NULL : strbuf_cstr(&resolver->name);
}

/*
 * libc's symbol for where signal handlers return to is stripped as a rule, and begins behind the
 * address to look up: what unwinds it knows its code.
 */
static bool is_signal_return(const struct resolver *resolver, uint32_t file, uint64_t vaddr)
{
	const uint64_t *table;
	uint64_t word_count;

	return file_store_table(resolver->files, file, &table, &word_count) == FILE_READY &&
	       unwind_is_signal_return(table, word_count, vaddr);
}

static int file_frame(struct resolver *resolver, const struct mapping *mapping, uint64_t address,
	bool do_not_wait, capture_id *ret_frame)
{
	struct capture_frame frame = {.kind = CAPTURE_FRAME_NATIVE};
	const struct symbol_table *symbols = NULL;
	struct file_frame remembered = {.file = mapping->file};
	uint64_t bias, key, known;
	enum file_readiness readiness;
	int result;

	if (!file_store_bias(resolver->files, mapping, &bias))
		bias = mapping->start - mapping->file_offset;
	frame.rel_pc = remembered.vaddr = address - bias;
	/* Files stay far below 2^40 bytes, and there are fewer than 2^24 of them. */
	key = (uint64_t)mapping->file << 40 ^ frame.rel_pc;
	if (map_u64_get(&resolver->file_frames, key, &known)) {
		*ret_frame = (capture_id)known;
		return 0;
	}
	readiness = file_store_symbols(resolver->files, mapping->file, &symbols);
	if (readiness == FILE_PENDING && !do_not_wait)
		return -EAGAIN;
	frame.function = is_signal_return(resolver, mapping->file, frame.rel_pc)
				 ? "__restore_rt"
				 : symbol_name(resolver, symbols, mapping->file, frame.rel_pc);
	remembered.named = frame.function != NULL;
	if (!frame.function && readiness != FILE_PENDING)
		frame.function = start_name(resolver, mapping->file, frame.rel_pc);
	result = mapping_of_file(resolver, mapping->file, &frame.mapping);
	remembered.mapping = frame.mapping;
	if (result == 0)
		result = capture_writer_frame(resolver->writer, &frame, ret_frame);
	if (result < 0)
		return result;
	result = array_append(&resolver->frames_of_files, remembered);
	return result < 0 ? result : map_u64_set(&resolver->file_frames, key, *ret_frame);
}

static int unknown_frame(struct resolver *resolver, uint64_t address, capture_id *ret_frame)
{
	struct capture_frame frame = {.kind = CAPTURE_FRAME_NATIVE, .rel_pc = address};
	struct capture_mapping mapping = {.path = "[unmapped]"};
	int result = capture_writer_mapping(resolver->writer, &mapping, &frame.mapping);

	return result < 0 ? result : capture_writer_frame(resolver->writer, &frame, ret_frame);
}

int resolver_user_frame(struct resolver *resolver, uint32_t pid, const struct mapping *mapping,
	uint64_t address, uint64_t time_ns, bool do_not_wait, capture_id *ret_frame)
{
	if (!mapping)
		return unknown_frame(resolver, address, ret_frame);
	if (mapping->kind == MAPPING_FILE || mapping->kind == MAPPING_VDSO)
		return file_frame(resolver, mapping, address, do_not_wait, ret_frame);
	return jit_frame(resolver, pid, address, time_ns, do_not_wait, ret_frame);
}

int resolver_left_out_frame(struct resolver *resolver, uint32_t count, capture_id *ret_frame)
{
	unsigned bits = count ? 31 - (unsigned)__builtin_clz(count) : 32;
	struct capture_frame frame = {.kind = CAPTURE_FRAME_NATIVE, .rel_pc = bits};
	struct capture_mapping mapping = {.path = "[left out]"};
	char name[64];
	int result;

	if (resolver->left_out_frames[bits]) {
		*ret_frame = resolver->left_out_frames[bits];
		return 0;
	}
	if (bits == 32)
		snprintf(name, sizeof(name), "[… native frames missing …]");
	else
		snprintf(name, sizeof(name), "[… %" PRIu64 " to %" PRIu64 " frames left out …]",
			UINT64_C(1) << bits, (UINT64_C(2) << bits) - 1);
	frame.function = bits ? name : "[… 1 frame left out …]";
	result = capture_writer_mapping(resolver->writer, &mapping, &frame.mapping);
	if (result == 0)
		result = capture_writer_frame(
			resolver->writer, &frame, &resolver->left_out_frames[bits]);
	*ret_frame = resolver->left_out_frames[bits];
	return result;
}

/* ---- lines ---- */

static int compare_by_file(const void *left, const void *right)
{
	const struct file_frame *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

static void write_lines(void *context, size_t index, const struct source_line *lines, size_t count)
{
	struct resolver *resolver = context;
	const struct file_frame *frame = &resolver->frames_of_files.items[index];
	struct capture_symbol_line out[LINE_PROCESS_DEPTH];
	struct strbuf names[LINE_PROCESS_DEPTH] = {0};
	const struct symbol_table *symbols = NULL;
	struct symbol symbol;

	file_store_symbols(resolver->files, frame->file, &symbols);
	for (size_t i = 0; i < count; i++) {
		const char *function = lines[i].function;

		/* The outermost function is the symbol: DWARF may lack its linkage name. */
		if ((i == count - 1 || !function) &&
			find_symbol(resolver, symbols, frame->file, frame->vaddr, &symbol))
			function = symbol.name;
		if (function)
			demangle_symbol(function, &names[i]);
		out[i] = (struct capture_symbol_line){
			.function = function ? strbuf_cstr(&names[i]) : NULL,
			.file = lines[i].file,
			.line = lines[i].line,
		};
	}
	capture_writer_symbols(resolver->writer, frame->mapping, frame->vaddr, out, count);
	for (size_t i = 0; i < count; i++)
		strbuf_done(&names[i]);
}

/* A frame written before its file's symbols were there. */
static void write_late_name(struct resolver *resolver, const struct file_frame *frame)
{
	const struct symbol_table *symbols = NULL;
	struct capture_symbol_line line = {0};

	if (frame->named ||
		file_store_symbols(resolver->files, frame->file, &symbols) != FILE_READY)
		return;
	line.function = symbol_name(resolver, symbols, frame->file, frame->vaddr);
	if (line.function)
		capture_writer_symbols(resolver->writer, frame->mapping, frame->vaddr, &line, 1);
}

/* NULL when the file has no lines. */
static struct line_table *open_lines(void *context, uint32_t file)
{
	struct resolver *resolver = context;
	struct line_table *table = NULL;
	const char *root, *path = file_store_path(resolver->files, file, &root);

	if (!path || line_table_open(&table, path, root, NULL) < 0)
		return NULL;
	return table;
}

static const char *file_name(void *context, uint32_t file)
{
	struct resolver *resolver = context;

	return address_spaces_file(resolver->spaces, file)->path;
}

/* Groups the frames, sorted by file, and takes their addresses along. */
static int make_line_request(
	struct resolver *resolver, struct line_files *files, struct line_addresses *addresses)
{
	array_foreach (&resolver->frames_of_files, frame) {
		struct line_file *last = files->count ? &files->items[files->count - 1] : NULL;
		struct line_file group = {.file = frame->file, .first = addresses->count};

		if ((!last || last->file != frame->file) && array_append(files, group) < 0)
			return -ENOMEM;
		files->items[files->count - 1].count++;
		if (array_append(addresses, frame->vaddr) < 0)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t lines_memory(void)
{
	uint64_t pages = (uint64_t)MAX(sysconf(_SC_PHYS_PAGES), 0L);
	uint64_t share = pages * (uint64_t)sysconf(_SC_PAGESIZE) / LINES_MEMORY_SHARE;

	return MIN(share, LINES_MEMORY_MAX_BYTES);
}

void resolver_write_lines(struct resolver *resolver, uint64_t deadline_ns,
	bool (*given_up)(void *context), void *context, struct line_account *ret_account)
{
	struct file_frame *frames = resolver->frames_of_files.items;
	size_t count = resolver->frames_of_files.count;
	struct line_addresses addresses = {0};
	struct line_files files = {0};
	struct line_request request = {
		.open = open_lines,
		.found = write_lines,
		.name = file_name,
		.context = resolver,
		.memory_bytes = lines_memory(),
		.deadline_ns = deadline_ns,
		.given_up = given_up,
		.given_up_context = context,
	};

	*ret_account = (struct line_account){0};
	if (count)
		qsort(frames, count, sizeof(*frames), compare_by_file);
	array_foreach (&resolver->frames_of_files, frame)
		write_late_name(resolver, frame);
	if (count == 0)
		return;
	if (make_line_request(resolver, &files, &addresses) == 0) {
		request.files = files.items;
		request.file_count = files.count;
		request.addresses = addresses.items;
	}
	if (!files.count || line_process_run(&request, ret_account) < 0)
		ret_account->addresses_left_out = count;
	array_done(&files);
	array_done(&addresses);
}

struct resolver *resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return NULL;
	jit_names_free(resolver->jit);
	map_u64_done(&resolver->kernel_frames);
	map_u64_done(&resolver->file_frames);
	map_u64_done(&resolver->file_mappings);
	array_done(&resolver->frames_of_files);
	kernel_symbols_free(resolver->kernel);
	strbuf_done(&resolver->name);
	free(resolver);
	return NULL;
}
