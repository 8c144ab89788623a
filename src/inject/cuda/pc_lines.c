/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From instructions to source lines: CUPTI reads them from the line information in the code, which
 * nvcc -lineinfo puts there. Code is the program's only while it is loaded: what has lines is
 * copied, and nothing is read of it here.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/cuda/pc.h"
#include "inject/intern.h"

#define KEPT_BYTES  (256 << 20) /* of all code of a process */
#define LOOKUPS     4096        /* in one go */
#define LOOKUPS_NS  (200 * WORKER_MS)
#define PATH_BYTES  1024
#define LINE_MARKER "debug_line" /* .debug_line, .nv_debug_line_sass: names of sections */

struct module {
	struct module *next;
	const void *cubin;
	size_t bytes, mapped_bytes;
	uint64_t crc;
	bool has_crc;
};

static _Atomic(struct module *) modules;
static _Atomic size_t kept_bytes;
static struct interner files;

static bool reserve(size_t bytes)
{
	size_t before = atomic_fetch_add(&kept_bytes, bytes);

	if (before <= KEPT_BYTES && bytes <= KEPT_BYTES - before)
		return true;
	atomic_fetch_sub(&kept_bytes, bytes);
	return false;
}

/* The entry of the list and the code in one mapping: no lock of the program's is taken. */
void cuda_pc_keep_module(const struct cupti_module_data *data)
{
	size_t bytes = sizeof(struct module) + data->cubin_bytes;
	static _Atomic bool is_reported;
	struct module *module;

	if (!data->cubin || data->cubin_bytes > KEPT_BYTES ||
		!memmem(data->cubin, data->cubin_bytes, LINE_MARKER, sizeof(LINE_MARKER) - 1))
		return;
	module = reserve(bytes) ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
				: MAP_FAILED;
	if (module == MAP_FAILED) {
		if (!atomic_exchange(&is_reported, true))
			inject_note(WIRE_NOTE_PC_SAMPLING,
				"The program loaded more than %d MiB of device code with line "
				"information: instructions of what came later have no lines.",
				KEPT_BYTES >> 20);
		return;
	}
	module->mapped_bytes = bytes;
	module->bytes = data->cubin_bytes;
	module->cubin = memcpy(module + 1, data->cubin, data->cubin_bytes);
	module->next = atomic_load_explicit(&modules, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
		&modules, &module->next, module, memory_order_release, memory_order_relaxed))
		;
}

/* A module that was loaded for several contexts is there once for each: the newest serves. */
static const struct module *module_of(uint64_t crc)
{
	struct cupti_cubin_crc_params params = {.bytes = sizeof(params)};

	for (struct module *module = atomic_load_explicit(&modules, memory_order_acquire); module;
		module = module->next) {
		if (!module->has_crc) {
			params.cubin = module->cubin;
			params.cubin_bytes = module->bytes;
			params.crc = 0;
			module->has_crc = true;
			if (cuda.cupti.call.cubin_crc(&params) == CUPTI_OK)
				module->crc = params.crc;
		}
		if (module->crc == crc)
			return module;
	}
	return NULL;
}

/* The path that stays; NULL: no memory, or it is too long. */
static const char *keep_path(const char *folder, const char *file)
{
	char path[PATH_BYTES];
	bool is_whole = *file == '/' || !folder || !*folder;
	int length = snprintf(
		path, sizeof(path), "%s%s%s", is_whole ? "" : folder, is_whole ? "" : "/", file);
	struct interned *place;

	if (length < 0 || (size_t)length >= sizeof(path))
		return NULL;
	place = intern_text(&files, path);
	return place ? place->text : NULL;
}

static void find_line(struct pc_entry *entry)
{
	const struct module *module = entry->function ? module_of(entry->cubin) : NULL;
	struct cupti_pc_line_params params = {
		.bytes = sizeof(params),
		.function = entry->function,
		.pc_offset = entry->pc_offset,
	};

	if (!module)
		return;
	params.cubin = module->cubin;
	params.cubin_bytes = module->bytes;
	if (cuda.cupti.call.pc_line(&params) == CUPTI_OK && params.line && params.file)
		entry->file = keep_path(params.folder, params.file);
	if (entry->file)
		entry->line = params.line;
	free(params.file);
	free(params.folder);
}

void cuda_pc_find_lines(struct pc_entry *const *entries, size_t count)
{
	uint64_t until_ns = inject_now_ns() + LOOKUPS_NS;

	if (!cuda.cupti.call.pc_line || !cuda.cupti.call.cubin_crc)
		return;
	for (size_t i = 0; i < count && i < LOOKUPS && inject_now_ns() < until_ns; i++)
		find_line(entries[i]);
}
