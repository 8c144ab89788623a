/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/python_find.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arch/code.h"
#include ARCH_HEADER(files)
#include "base/array.h"
#include "base/macros.h"
#include "elf/elf_symbol_table.h"
#include "unwind/python_tables.h"

#define PYPY_NAME         "pypy_execute_source" /* what an embedding program calls */
#define EVAL_NAME         "_PyEval_EvalFrameDefault"
#define TAIL_CALL_PREFIX  "_TAIL_CALL_"
#define MAXIMUM_COLD_FDES 64
/*
 * Interpreters are looked for when a process maps its program, between samples. The largest known
 * symbol table of one is some megabytes.
 */
#define MAXIMUM_SECTION_BYTES ((uint64_t)64 << 20)
/* More than any version's _Py_DebugOffsets. */
#define DEBUG_OFFSETS_BYTES 4096

/* ---- symbols ---- */

struct python_symbols {
	uint64_t runtime, runtime_bytes;
	uint64_t version; /* Py_Version; 0: none */
	uint64_t code_type, frame_type;
	struct python_interpreter *out;
	bool has_cold_symbols, is_pypy;
};

static void add_range(struct python_interpreter *out, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < out->eval_count; i++) {
		if (out->eval[i].start == start)
			return;
	}
	if (out->eval_count < PYTHON_MAX_EVAL_RANGES && end > start)
		out->eval[out->eval_count++] = (struct python_range){start, end};
}

/* Tail-call handlers lie side by side: one range from the first to the last. */
static void widen_range(struct python_interpreter *out, uint64_t start, uint64_t end)
{
	struct python_range *last = &out->eval[PYTHON_MAX_EVAL_RANGES - 1];

	if (out->eval_count < PYTHON_MAX_EVAL_RANGES) {
		if (out->eval_count == 0)
			return;
		out->eval_count = PYTHON_MAX_EVAL_RANGES;
		*last = (struct python_range){start, end};
	}
	last->start = MIN(last->start, start);
	last->end = MAX(last->end, end);
}

static void take_symbol(struct python_symbols *symbols, const char *name, const Elf64_Sym *symbol)
{
	uint64_t start = symbol->st_value, end = start + symbol->st_size;

	if (strcmp(name, "_PyRuntime") == 0) {
		symbols->runtime = start;
		symbols->runtime_bytes = symbol->st_size;
	} else if (strcmp(name, "Py_Version") == 0) {
		symbols->version = start;
	} else if (strcmp(name, "PyCode_Type") == 0) {
		symbols->code_type = start;
	} else if (strcmp(name, "PyFrame_Type") == 0) {
		symbols->frame_type = start;
	} else if (strcmp(name, PYPY_NAME) == 0) {
		symbols->is_pypy = true;
	} else if (strncmp(name, EVAL_NAME, strlen(EVAL_NAME)) == 0) {
		const char *rest = name + strlen(EVAL_NAME);

		if (*rest == '\0' || *rest == '.')
			add_range(symbols->out, start, end);
		symbols->has_cold_symbols |= strncmp(rest, ".cold", 5) == 0;
	}
}

/* A section that is worth reading while samples wait; NULL else. */
static const Elf64_Shdr *readable_section(const struct elf_file *file, size_t index)
{
	const Elf64_Shdr *header = index && index < elf_file_section_count(file)
					   ? elf_file_section_header(file, index)
					   : NULL;

	return header && header->sh_size <= MAXIMUM_SECTION_BYTES ? header : NULL;
}

static void read_symbols(
	struct elf_file *file, uint32_t type, struct python_symbols *symbols, bool tail_calls)
{
	size_t index = elf_file_find_section_of_type(file, type);
	const Elf64_Shdr *header = readable_section(file, index);
	struct elf_symbol_table table;

	if (!header || !readable_section(file, header->sh_link) ||
		!elf_symbol_table_read(&table, file, index))
		return;
	for (size_t i = 0; i < table.symbol_count; i++) {
		Elf64_Sym symbol = elf_symbol_table_get(&table, i);
		const char *name = elf_symbol_table_name(&table, &symbol);

		if (!name || symbol.st_shndx == SHN_UNDEF)
			continue;
		if (!tail_calls)
			take_symbol(symbols, name, &symbol);
		else if (strncmp(name, TAIL_CALL_PREFIX, strlen(TAIL_CALL_PREFIX)) == 0)
			widen_range(
				symbols->out, symbol.st_value, symbol.st_value + symbol.st_size);
	}
}

static void read_all_symbols(struct elf_file *file, struct python_symbols *symbols, bool tail_calls)
{
	read_symbols(file, SHT_DYNSYM, symbols, tail_calls);
	read_symbols(file, SHT_SYMTAB, symbols, tail_calls);
}

/* ---- version ---- */

static bool loaded_u64(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_value)
{
	return elf_file_read_loaded(file, vaddr, ret_value, sizeof(*ret_value));
}

/*
 * Versions without Py_Version (before 3.11) name the folder of their library: "python3.9". The
 * micro version is unknown: 0.
 */
static uint32_t version_from_text(struct elf_file *file)
{
	static const char folder[] = "python3.";
	size_t index = elf_file_find_section(file, ".rodata");
	struct elf_bytes constants;
	const uint8_t *at;

	if (!readable_section(file, index) || !elf_file_section_bytes(file, index, &constants))
		return 0;
	for (size_t done = 0; done < constants.length; done = (size_t)(at - constants.bytes) + 1) {
		unsigned minor = 0;
		size_t digits = 0, left;

		at = memmem(
			constants.bytes + done, constants.length - done, folder, strlen(folder));
		if (!at)
			break;
		left = constants.length - (size_t)(at - constants.bytes) - strlen(folder);
		while (digits < left && digits < 3 && isdigit(at[strlen(folder) + digits]))
			minor = minor * 10 + (unsigned)(at[strlen(folder) + digits++] - '0');
		if (digits && minor < 11)
			return 3U << 24 | minor << 16;
	}
	return 0;
}

/* PY_VERSION_HEX, 0 when it is unknown. */
static uint32_t find_version(struct elf_file *file, const struct python_symbols *symbols)
{
	uint64_t value;

	if (symbols->version && loaded_u64(file, symbols->version, &value))
		return (uint32_t)value;
	return version_from_text(file);
}

/* ---- members, by the type objects in the file ---- */

#define TYPE_MEMBERS_AT 240 /* PyTypeObject.tp_members, all of 3.8 to 3.12 */
#define MEMBER_BYTES    40  /* struct PyMemberDef: name, type, offset, flags, doc */
#define MAXIMUM_MEMBERS 64
#define TEXT_BYTES      32

/* A pointer as it will be in memory: by a relocation where there is one, else as in the file. */
struct pointers {
	struct elf_bytes relocations; /* .rela.dyn */
	struct elf_file *file;
};

static uint64_t pointer_at(const struct pointers *pointers, uint64_t vaddr)
{
	size_t count = pointers->relocations.length / sizeof(Elf64_Rela);
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++) {
		Elf64_Rela entry;

		memcpy(&entry, pointers->relocations.bytes + i * sizeof(entry), sizeof(entry));
		if (entry.r_offset == vaddr &&
			ELF64_R_TYPE(entry.r_info) == ARCH_RELOCATION_RELATIVE)
			return (uint64_t)entry.r_addend;
	}
	loaded_u64(pointers->file, vaddr, &value);
	return value;
}

struct member_expectation {
	const char *name;
	uint16_t offset;
};

/* Checks one PyMemberDef; true when there are more. */
static bool check_member(const struct pointers *pointers, uint64_t at,
	const struct member_expectation *expected, size_t expected_count, const char **ret_wrong)
{
	uint64_t text_at = pointer_at(pointers, at), offset;
	struct elf_bytes name;

	if (!text_at || !loaded_u64(pointers->file, at + 16, &offset) ||
		!elf_file_window(pointers->file, text_at, TEXT_BYTES, &name))
		return false;
	for (size_t i = 0; i < expected_count; i++) {
		size_t length = strlen(expected[i].name) + 1;

		if (name.length >= length && memcmp(name.bytes, expected[i].name, length) == 0 &&
			offset != expected[i].offset)
			*ret_wrong = expected[i].name;
	}
	return true;
}

static const char *check_members(const struct pointers *pointers, uint64_t type,
	const struct member_expectation *expected, size_t expected_count)
{
	uint64_t members = pointer_at(pointers, type + TYPE_MEMBERS_AT);
	const char *wrong = NULL;

	for (size_t i = 0; members && i < MAXIMUM_MEMBERS; i++) {
		if (!check_member(
			    pointers, members + i * MEMBER_BYTES, expected, expected_count, &wrong))
			break;
	}
	return wrong;
}

/* The first member of code and frame objects that lies elsewhere than the layout says; NULL: none.
 */
static const char *wrong_member(struct elf_file *file, const struct python_symbols *symbols,
	const struct python_layout *layout)
{
	const struct member_expectation code[] = {
		{"co_firstlineno", layout->code_first_line},
		{"co_filename", layout->code_file_name},
		{"co_name", layout->code_name},
		{layout->version < 0x030a ? "co_lnotab" : "co_linetable", layout->code_line_table},
	};
	const struct member_expectation frame[] = {
		{"f_back", layout->frame_previous},
		{"f_code", layout->frame_code},
		{"f_lasti", layout->frame_instruction},
	};
	size_t relocations = elf_file_find_section(file, ".rela.dyn");
	struct pointers pointers = {.file = file};
	const char *wrong = NULL;

	if (readable_section(file, relocations))
		elf_file_section_bytes(file, relocations, &pointers.relocations);
	if (symbols->code_type)
		wrong = check_members(&pointers, symbols->code_type, code, ARRAY_SIZE(code));
	if (!wrong && symbols->frame_type && layout->frame_style == PYTHON_FRAME_OBJECTS)
		wrong = check_members(&pointers, symbols->frame_type, frame, ARRAY_SIZE(frame));
	return wrong;
}

/* ---- the evaluation function's cold parts, without symbols ---- */

struct cold_part {
	uint64_t start, end;
	uint64_t target; /* the first jump into it */
	bool several;    /* jumped to at several places: not a function that is called */
};

static void take_jump(const struct elf_file *file, const struct python_range *function,
	uint64_t target, struct cold_part *parts, size_t *part_count)
{
	uint64_t start, end;

	if ((target >= function->start && target < function->end) ||
		!elf_file_function_range(file, target, &start, &end) || end == UINT64_MAX)
		return;
	for (size_t i = 0; i < *part_count; i++) {
		if (parts[i].start == start) {
			parts[i].several |= parts[i].target != target;
			return;
		}
	}
	if (*part_count < MAXIMUM_COLD_FDES)
		parts[(*part_count)++] =
			(struct cold_part){.start = start, .end = end, .target = target};
}

/*
 * The compiler moves unlikely code of a function elsewhere: jumps, not calls, lead there, to many
 * places of one entry of .eh_frame.
 */
static void find_cold_parts(struct elf_file *file, struct python_interpreter *out)
{
	struct cold_part parts[MAXIMUM_COLD_FDES];
	const struct python_range function = out->eval[0];
	struct arch_instruction instruction;
	size_t part_count = 0;
	struct elf_bytes code;

	if (!elf_file_window(file, function.start, function.end - function.start, &code))
		return;
	for (size_t at = 0; at < code.length; at += instruction.length) {
		if (!arch_decode(
			    code.bytes + at, code.length - at, function.start + at, &instruction)) {
			instruction.length = 1;
			continue;
		}
		if (instruction.effect == ARCH_JUMP || instruction.effect == ARCH_JUMP_IF)
			take_jump(file, &function, (uint64_t)instruction.value, parts, &part_count);
	}
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].several)
			add_range(out, parts[i].start, parts[i].end);
	}
}

/* ---- all of it ---- */

static int unknown_python(
	struct errmsg *err, const char *path, const char *version, const char *why)
{
	return errmsg_set(err, -ENOTSUP,
		"Python %s in %s is not known to this sonde (%s), so its stacks are shown without "
		"Python frames; a newer sonde may know it",
		version, path, why);
}

static int apply_debug_offsets(struct elf_file *file, const struct python_symbols *symbols,
	struct python_interpreter *out, uint32_t version, const char *path, struct errmsg *err)
{
	struct elf_bytes bytes;
	const char *wrong;
	char why[96];

	if (!elf_file_window(file, symbols->runtime, DEBUG_OFFSETS_BYTES, &bytes))
		return unknown_python(err, path, out->version, "_PyRuntime has no contents");
	wrong = python_debug_offsets(&out->layout, version, bytes.bytes, bytes.length);
	if (!wrong)
		return 0;
	snprintf(why, sizeof(why), "_Py_DebugOffsets: %s", wrong);
	return unknown_python(err, path, out->version, why);
}

static void spell_version(uint32_t version, char *out, size_t size)
{
	if (!version)
		snprintf(out, size, "of unknown version");
	else if (!(version & 0xffff))
		snprintf(out, size, "%u.%u", version >> 24, version >> 16 & 255);
	else
		snprintf(out, size, "%u.%u.%u", version >> 24, version >> 16 & 255,
			version >> 8 & 255);
}

int python_find(struct python_interpreter *ret_interpreter, struct elf_file *file,
	const char *path_for_messages, struct errmsg *err)
{
	struct python_interpreter *out = ret_interpreter;
	struct python_symbols symbols = {.out = out};
	const struct python_layout *table;
	const char *wrong;
	uint32_t version;
	char why[96];
	int result;

	*out = (struct python_interpreter){0};
	if (elf_file_machine(file) != ARCH_ELF_MACHINE)
		return 0;
	read_all_symbols(file, &symbols, false);
	if (symbols.is_pypy)
		return errmsg_set(err, -ENOTSUP,
			"%s is PyPy, whose Python functions sonde does not read; run the program "
			"with CPython to see them",
			path_for_messages);
	if (!symbols.runtime)
		return 0;
	out->runtime = symbols.runtime;
	version = find_version(file, &symbols);
	spell_version(version, out->version, sizeof(out->version));
	table = python_table(version >> 16);
	if (!table)
		return unknown_python(err, path_for_messages, out->version, "3.8 to 3.15 are");
	if (!out->eval_count)
		return unknown_python(err, path_for_messages, out->version, "it has no " EVAL_NAME);
	out->layout = *table;
	if (table->version >= 0x030d) {
		result = apply_debug_offsets(file, &symbols, out, version, path_for_messages, err);
		if (result < 0)
			return result;
	} else {
		wrong = wrong_member(file, &symbols, &out->layout);
		if (wrong) {
			snprintf(why, sizeof(why),
				"%s is at another offset than in this version's releases", wrong);
			return unknown_python(err, path_for_messages, out->version, why);
		}
	}
	if (!symbols.has_cold_symbols)
		find_cold_parts(file, out);
	read_all_symbols(file, &symbols, true);
	return 1;
}

/* ---- living interpreters ---- */

#define MAXIMUM_INTERPRETERS 64
#define MAXIMUM_THREADS      4096
#define MAXIMUM_FRAMES       16

struct living {
	const struct python_layout *layout;
	uint64_t runtime;
	python_read_function *read;
	void *context;
};

static bool read_u64(const struct living *living, uint64_t address, uint64_t *ret_value)
{
	return living->read(living->context, address, ret_value, sizeof(*ret_value)) == 0;
}

static bool is_thread_of(pid_t pid, uint64_t tid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%llu", pid, (unsigned long long)tid);
	return tid <= INT32_MAX && stat(path, &status) == 0;
}

/* The first frames lead to readable code objects, each with a first line. */
static const char *check_frames(const struct living *living, uint64_t thread)
{
	const struct python_layout *layout = living->layout;
	uint64_t at, code, first_line;

	if (!read_u64(living, thread + layout->thread_frame, &at))
		return "a thread's frames";
	if (layout->cframe_frame != PYTHON_ABSENT && at &&
		!read_u64(living, at + layout->cframe_frame, &at))
		return "a thread's frames";
	for (int i = 0; at && i < MAXIMUM_FRAMES; i++) {
		if (!read_u64(living, at + layout->frame_code, &code))
			return NULL; /* it goes on meanwhile: frames come and go */
		if (layout->code_is_tagged)
			code &= ~7ULL;
		if (code && !read_u64(living,
				    code + layout->object_shift_bytes + layout->code_first_line,
				    &first_line))
			return NULL;
		if (!read_u64(living, at + layout->frame_previous, &at))
			return NULL;
	}
	return NULL;
}

static const char *check_threads(const struct living *living, pid_t pid, uint64_t interpreter,
	uint64_t first_thread, bool *ret_seen)
{
	const struct python_layout *layout = living->layout;
	uint64_t thread = first_thread, owner, native;

	for (int i = 0; thread && i < MAXIMUM_THREADS; i++) {
		if (!read_u64(living, thread + layout->thread_interpreter, &owner))
			return NULL;
		if (owner != interpreter)
			return i == 0 ? "a thread's interpreter" : NULL;
		if (i == 0 && layout->thread_native_id != PYTHON_ABSENT) {
			if (!read_u64(living, thread + layout->thread_native_id, &native))
				return NULL;
			if (!native)
				return NULL; /* being made */
			*ret_seen |= is_thread_of(pid, native);
		} else {
			*ret_seen = true;
		}
		if (check_frames(living, thread))
			return "a thread's frames";
		if (!read_u64(living, thread + layout->thread_next, &thread))
			return NULL;
	}
	return NULL;
}

int python_validate(const struct python_layout *layout, uint64_t runtime, pid_t pid,
	python_read_function *read, void *context, struct errmsg *err)
{
	const struct living living = {layout, runtime, read, context};
	uint64_t interpreter, thread;
	bool seen = false;

	if (!read_u64(&living, runtime + layout->runtime_interpreters_head, &interpreter) ||
		!interpreter)
		return 0;
	for (int i = 0; interpreter && i < MAXIMUM_INTERPRETERS; i++) {
		const char *wrong = NULL;

		if (!read_u64(&living, interpreter + layout->interpreter_threads_head, &thread))
			return 0;
		if (thread)
			wrong = check_threads(&living, pid, interpreter, thread, &seen);
		if (wrong)
			return errmsg_set(err, -EINVAL,
				"the Python of process %d keeps its state in another place than "
				"its version says (%s), so its stacks are shown without Python "
				"frames",
				pid, wrong);
		if (!read_u64(&living, interpreter + layout->interpreter_next, &interpreter))
			return 0;
	}
	return seen;
}

#define FIRST_KEYS 32 /* those that glibc keeps in struct pthread itself */

uint32_t python_find_key(const struct python_layout *layout, uint64_t runtime,
	python_read_function *read, void *context)
{
	const struct living living = {layout, runtime, read, context};
	uint64_t interpreter = 0, thread = 0, pointer = 0, values[2 * FIRST_KEYS];

	if (!read_u64(&living, runtime + layout->runtime_interpreters_head, &interpreter) ||
		!interpreter ||
		!read_u64(&living, interpreter + layout->interpreter_threads_head, &thread) ||
		!thread || !read_u64(&living, thread + layout->thread_ident, &pointer) ||
		!pointer ||
		read(context, pointer + ARCH_PTHREAD_FIRST_KEYS, values, sizeof(values)) != 0)
		return 0;
	for (uint32_t key = 0; key < FIRST_KEYS; key++) {
		if (values[2 * key + 1] == thread)
			return key + 1;
	}
	return 0;
}
