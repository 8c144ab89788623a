/* SPDX-License-Identifier: Apache-2.0 */
/* Headers are copied out of the file, after a bounds check: a foreign file aligns nothing. */
#include "elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/elf_file_state.h"
#include "elf/inflate.h"

/* Far above what linkers write; beyond it the headers are taken to be damage. */
#define SECTIONS_MAX ((uint64_t)1 << 18)
#define SEGMENTS_MAX ((uint64_t)1 << 16)

/* A segment's file bytes are cut at the file's end: separate debug files promise more than they
 * hold. */
static int add_segment(
	struct elf_file *file, const Elf64_Phdr *header, const char *name, struct errmsg *err)
{
	struct elf_segment segment = {.file_offset = header->p_offset,
		.vaddr = header->p_vaddr,
		.memory_size = header->p_memsz,
		.executable = (header->p_flags & PF_X) != 0};
	uint64_t end;

	segment.file_size =
		elf_present_bytes(file, header->p_offset, MIN(header->p_filesz, header->p_memsz));
	if (__builtin_add_overflow(header->p_vaddr, header->p_memsz, &end) ||
		__builtin_add_overflow(header->p_offset, header->p_memsz, &end))
		return errmsg_set(err, -EINVAL,
			"cannot use %s: it is damaged, its program header says that a segment goes "
			"past the end of the address space; reinstall the file",
			name);
	return array_append(&file->segments, segment);
}

static int use_program_header(
	struct elf_file *file, const Elf64_Phdr *header, const char *name, struct errmsg *err)
{
	if (header->p_type == PT_LOAD && header->p_memsz != 0)
		return add_segment(file, header, name, err);
	if (header->p_type == PT_NOTE)
		elf_find_build_id(file, header->p_offset, header->p_filesz, header->p_align);
	else if (header->p_type == PT_GNU_EH_FRAME)
		file->eh_frame_header = (struct elf_segment){
			.file_offset = header->p_offset,
			.vaddr = header->p_vaddr,
			.file_size = elf_present_bytes(file, header->p_offset, header->p_filesz),
		};
	return 0;
}

static int read_program_headers(struct elf_file *file, const char *name, struct errmsg *err)
{
	_cleanup_free_ Elf64_Phdr *headers = NULL;
	uint64_t count = file->header.e_phnum;
	int result = 0;

	/* More headers than e_phnum can say: the first section header holds the number. */
	if (count == PN_XNUM && file->section_count)
		count = file->sections[0].sh_info;
	if (count == 0)
		return 0;
	if (count <= SEGMENTS_MAX) {
		headers = malloc(count * sizeof(*headers));
		if (!headers)
			return -ENOMEM;
	}
	if (!headers || !elf_source_read(&file->source, file->header.e_phoff, headers,
				count * sizeof(*headers)))
		return errmsg_set(err, -EINVAL,
			"cannot use %s: it is truncated, its program headers lie past its end; "
			"reinstall the file",
			name);
	for (uint64_t i = 0; result == 0 && i < count; i++)
		result = use_program_header(file, &headers[i], name, err);
	return result;
}

/* Section headers are optional: what does not fit into the file is treated as absent. */
static int copy_section_headers(struct elf_file *file)
{
	uint64_t count = file->header.e_shnum;
	Elf64_Shdr first;

	if (file->header.e_shoff == 0 || file->header.e_shentsize != sizeof(Elf64_Shdr) ||
		!elf_source_read(&file->source, file->header.e_shoff, &first, sizeof(first)))
		return 0;
	/* More sections than e_shnum and e_shstrndx can say: the first section header holds them.
	 */
	if (count == 0)
		count = first.sh_size;
	count = MIN(count, (file->source.length - file->header.e_shoff) / sizeof(Elf64_Shdr));
	if (count == 0 || count > SECTIONS_MAX)
		return 0;
	file->sections = malloc(count * sizeof(*file->sections));
	if (!file->sections)
		return -ENOMEM;
	if (!elf_source_read(&file->source, file->header.e_shoff, file->sections,
		    count * sizeof(*file->sections))) {
		file->source.cut = true;
		return 0;
	}
	file->section_count = count;
	file->section_names_index =
		file->header.e_shstrndx == SHN_XINDEX ? first.sh_link : file->header.e_shstrndx;
	return 0;
}

static int check_header(const struct elf_file *file, const char *name, struct errmsg *err)
{
	const unsigned char *ident = file->header.e_ident;

	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		return errmsg_set(err, -ENOEXEC,
			"cannot use %s: it is not an ELF file; name a program or shared library",
			name);
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return errmsg_set(err, -ENOEXEC,
			"cannot use %s: it is a 32-bit or big-endian ELF file; only 64-bit "
			"little-endian ones are understood",
			name);
	if (file->header.e_phnum && file->header.e_phentsize != sizeof(Elf64_Phdr))
		return errmsg_set(err, -EINVAL,
			"cannot use %s: it is damaged, its program headers have a wrong size; "
			"reinstall the file",
			name);
	return 0;
}

static int read_headers(struct elf_file *file, const char *name, struct errmsg *err)
{
	int result;

	if (!elf_source_read(&file->source, 0, &file->header, sizeof(file->header)))
		return errmsg_set(err, -ENOEXEC,
			"cannot use %s: it is shorter than an ELF header; name a program or shared "
			"library",
			name);
	result = check_header(file, name, err);
	if (result < 0)
		return result;
	result = copy_section_headers(file);
	if (result == 0)
		result = read_program_headers(file, name, err);
	if (result == 0) {
		elf_find_build_id_in_sections(file);
		result = elf_find_identity(file);
	}
	if (result == -ENOMEM)
		return errmsg_set(err, result, "cannot use %s: out of memory", name);
	return result;
}

int elf_file_open_fd(
	struct elf_file **ret_file, int fd, const char *name_for_messages, struct errmsg *err)
{
	_cleanup_elf_file_ struct elf_file *file = calloc(1, sizeof(*file));
	int result;

	if (!file)
		return errmsg_set(err, -ENOMEM, "cannot use %s: out of memory", name_for_messages);
	result = elf_source_open(&file->source, fd);
	if (result == -EISDIR)
		return errmsg_set(err, result, "cannot read %s: it is a directory; name a file",
			name_for_messages);
	if (result == -EINVAL)
		return errmsg_set(
			err, result, "cannot read %s: it is not a regular file", name_for_messages);
	if (result < 0)
		return errmsg_set(
			err, result, "cannot read %s: %s", name_for_messages, strerror(-result));
	result = read_headers(file, name_for_messages, err);
	if (result == 0)
		*ret_file = TAKE_PTR(file);
	return result;
}

int elf_file_open_memory(struct elf_file **ret_file, const void *bytes, size_t length,
	const char *name_for_messages, struct errmsg *err)
{
	_cleanup_elf_file_ struct elf_file *file = calloc(1, sizeof(*file));
	int result;

	if (!file)
		return errmsg_set(err, -ENOMEM, "cannot use %s: out of memory", name_for_messages);
	elf_source_open_memory(&file->source, bytes, length);
	result = read_headers(file, name_for_messages, err);
	if (result == 0)
		*ret_file = TAKE_PTR(file);
	return result;
}

struct elf_file *elf_file_free(struct elf_file *file)
{
	if (!file)
		return NULL;
	elf_source_done(&file->source);
	array_done(&file->segments);
	free(file->sections);
	free(file);
	return NULL;
}

void elf_file_freep(struct elf_file **file)
{
	*file = elf_file_free(*file);
}

/* ---- Limits ---- */

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void elf_file_limit(struct elf_file *file, const struct elf_limits *limits)
{
	file->limits = *limits;
	file->cpu_end_ns = limits->cpu_ns ? thread_cpu_ns() + limits->cpu_ns : 0;
}

void elf_file_limit_as(struct elf_file *file, const struct elf_file *other)
{
	file->limits = other->limits;
	file->cpu_end_ns = other->cpu_end_ns;
}

bool elf_file_given_up(const struct elf_file *file)
{
	return file->limits.given_up &&
	       atomic_load_explicit(file->limits.given_up, memory_order_relaxed);
}

int elf_file_status(const struct elf_file *file)
{
	const struct elf_source *source = &file->source;

	if (elf_file_given_up(file))
		return -ECANCELED;
	if (source->no_memory)
		return -ENOMEM;
	if (source->too_large)
		return -EFBIG;
	if (source->cut || !elf_source_unchanged(source))
		return -ESTALE;
	return file->cpu_end_ns && thread_cpu_ns() > file->cpu_end_ns ? -ETIME : 0;
}

const char *elf_file_explain(int status)
{
	switch (status) {
	case -ESTALE:
		return "it changed while it was read";
	case -EFBIG:
		return "it is larger than sonde reads, and is probably damaged";
	case -ETIME:
		return "reading it takes too long";
	case -ECANCELED:
		return "the recording ended before it was read";
	default:
		return strerror(-status);
	}
}

/* ---- What headers say ---- */

const struct build_id *elf_file_build_id(const struct elf_file *file)
{
	return &file->build_id;
}

uint64_t elf_file_identity(const struct elf_file *file)
{
	return file->identity;
}

void elf_file_cache_name(const struct elf_file *file, struct strbuf *ret_name)
{
	const struct stat *status = &file->source.opened;
	/* Zeros for an image in memory, which no file on disk has. */
	const uint64_t facts[] = {
		status->st_dev,
		status->st_ino,
		file->source.length,
		(uint64_t)status->st_mtim.tv_sec * NS_PER_S + (uint64_t)status->st_mtim.tv_nsec,
		(uint64_t)status->st_ctim.tv_sec * NS_PER_S + (uint64_t)status->st_ctim.tv_nsec,
		status->st_uid,
	};

	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		strbuf_addf(ret_name, "%" PRIx64 "-", facts[i]);
	strbuf_addf(ret_name, "%016" PRIx64, file->identity);
}

void elf_file_owner(const struct elf_file *file, uid_t *ret_user, gid_t *ret_group)
{
	bool is_file = file->source.fd >= 0;

	*ret_user = is_file ? file->source.opened.st_uid : geteuid();
	*ret_group = is_file ? file->source.opened.st_gid : getegid();
}

unsigned elf_file_machine(const struct elf_file *file)
{
	return file->header.e_machine;
}

uint64_t elf_file_entry(const struct elf_file *file)
{
	return file->header.e_entry;
}

size_t elf_file_segment_count(const struct elf_file *file)
{
	return file->segments.count;
}

const struct elf_segment *elf_file_segment(const struct elf_file *file, size_t index)
{
	return &file->segments.items[index];
}

const struct elf_segment *elf_file_segment_at(const struct elf_file *file, uint64_t vaddr)
{
	array_foreach (&file->segments, segment)
		if (vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->memory_size)
			return segment;
	return NULL;
}

/* Where the bytes loaded at `vaddr` lie in the file, and how many follow in the segment. */
static bool find_loaded(
	const struct elf_file *file, uint64_t vaddr, uint64_t *ret_offset, uint64_t *ret_length)
{
	array_foreach (&file->segments, segment) {
		uint64_t offset = vaddr - segment->vaddr;

		if (vaddr < segment->vaddr || offset >= segment->file_size)
			continue;
		*ret_offset = segment->file_offset + offset;
		*ret_length = segment->file_size - offset;
		return true;
	}
	return false;
}

uint64_t elf_file_length(const struct elf_file *file)
{
	return file->source.length;
}

uint64_t elf_file_loaded_length(const struct elf_file *file, uint64_t vaddr)
{
	uint64_t offset, length;

	return find_loaded(file, vaddr, &offset, &length) ? length : 0;
}

bool elf_file_read(const struct elf_file *file, uint64_t offset, void *ret_bytes, size_t length)
{
	return elf_source_read(&file->source, offset, ret_bytes, length);
}

bool elf_file_read_loaded(
	const struct elf_file *file, uint64_t vaddr, void *ret_bytes, size_t length)
{
	uint64_t offset, present;

	return find_loaded(file, vaddr, &offset, &present) && length <= present &&
	       elf_source_read(&file->source, offset, ret_bytes, length);
}

bool elf_file_window(
	struct elf_file *file, uint64_t vaddr, uint64_t length, struct elf_bytes *ret_bytes)
{
	uint64_t offset, present, got;
	const uint8_t *bytes;

	if (!find_loaded(file, vaddr, &offset, &present))
		return false;
	length = MIN(length, present);
	length = MIN(length, ELF_WINDOW_MAX_BYTES);
	bytes = elf_source_window(&file->source, offset, length, &got);
	if (!bytes)
		return false;
	*ret_bytes = (struct elf_bytes){.bytes = bytes, .length = got, .vaddr = vaddr};
	return true;
}

bool elf_file_loaded_rest(struct elf_file *file, uint64_t vaddr, struct elf_bytes *ret_bytes)
{
	uint64_t offset, present;
	const uint8_t *bytes;

	if (!find_loaded(file, vaddr, &offset, &present))
		return false;
	bytes = elf_source_keep(&file->source, offset, present);
	if (!bytes)
		return false;
	*ret_bytes = (struct elf_bytes){.bytes = bytes, .length = present, .vaddr = vaddr};
	return true;
}

/* A section's range, when it is code inside an executable segment. */
static bool code_section(const struct elf_file *file, const Elf64_Shdr *section)
{
	const struct elf_segment *segment;

	if (!(section->sh_flags & SHF_ALLOC) || !(section->sh_flags & SHF_EXECINSTR) ||
		section->sh_size == 0)
		return false;
	segment = elf_file_segment_at(file, section->sh_addr);
	return segment && segment->executable &&
	       section->sh_size <= segment->memory_size - (section->sh_addr - segment->vaddr);
}

static bool has_code_section(const struct elf_file *file)
{
	for (uint64_t i = 0; i < file->section_count; i++)
		if (code_section(file, &file->sections[i]))
			return true;
	return false;
}

static bool next_code_section(
	const struct elf_file *file, size_t *position, uint64_t *ret_vaddr, uint64_t *ret_length)
{
	for (; *position < file->section_count; ++*position) {
		const Elf64_Shdr *section = &file->sections[*position];

		if (!code_section(file, section))
			continue;
		*ret_vaddr = section->sh_addr;
		*ret_length = section->sh_size;
		++*position;
		return true;
	}
	return false;
}

bool elf_file_next_code(
	const struct elf_file *file, size_t *position, uint64_t *ret_vaddr, uint64_t *ret_length)
{
	if (has_code_section(file))
		return next_code_section(file, position, ret_vaddr, ret_length);
	for (; *position < file->segments.count; ++*position) {
		const struct elf_segment *segment = &file->segments.items[*position];

		if (!segment->executable)
			continue;
		*ret_vaddr = segment->vaddr;
		*ret_length = segment->memory_size;
		++*position;
		return true;
	}
	return false;
}

bool elf_file_eh_frame_header(const struct elf_file *file, struct elf_segment *ret_segment)
{
	if (file->eh_frame_header.file_size == 0)
		return false;
	*ret_segment = file->eh_frame_header;
	return true;
}

/* ---- Sections ---- */

size_t elf_file_section_count(const struct elf_file *file)
{
	return file->section_count;
}

const Elf64_Shdr *elf_file_section_header(const struct elf_file *file, size_t index)
{
	return &file->sections[index];
}

static bool section_has_name(const struct elf_bytes *names, uint64_t offset, const char *name)
{
	size_t length = strlen(name) + 1;

	return offset < names->length && names->length - offset >= length &&
	       memcmp(names->bytes + offset, name, length) == 0;
}

size_t elf_file_find_section(struct elf_file *file, const char *name)
{
	const Elf64_Shdr *section;
	struct elf_bytes names;

	if (file->section_names_index >= file->section_count)
		return 0;
	section = &file->sections[file->section_names_index];
	if (section->sh_type != SHT_STRTAB)
		return 0;
	names.length = elf_present_bytes(file, section->sh_offset, section->sh_size);
	names.bytes = elf_source_keep(&file->source, section->sh_offset, names.length);
	for (size_t i = 1; names.bytes && i < file->section_count; i++)
		if (section_has_name(&names, file->sections[i].sh_name, name))
			return i;
	return 0;
}

size_t elf_file_find_section_of_type(const struct elf_file *file, uint32_t type)
{
	for (size_t i = 1; i < file->section_count; i++)
		if (file->sections[i].sh_type == type)
			return i;
	return 0;
}

/* Unpacks a section once and keeps what it holds. */
static bool inflate_section(struct elf_file *file, uint64_t offset, struct elf_bytes *bytes)
{
	const struct elf_kept *known = elf_source_find_inflated(&file->source, offset);
	Elf64_Chdr header;
	uint8_t *inflated;

	if (known) {
		bytes->bytes = known->bytes;
		bytes->length = known->length;
		return true;
	}
	if (bytes->length < sizeof(header))
		return false;
	memcpy(&header, bytes->bytes, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB ||
		!elf_source_has_room(&file->source, header.ch_size))
		return false;
	inflated = inflate_bytes(
		bytes->bytes + sizeof(header), bytes->length - sizeof(header), header.ch_size);
	if (!inflated || !elf_source_keep_inflated(&file->source, offset, inflated, header.ch_size))
		return false;
	bytes->bytes = inflated;
	bytes->length = header.ch_size;
	return true;
}

bool elf_file_section_bytes(struct elf_file *file, size_t index, struct elf_bytes *ret_bytes)
{
	const Elf64_Shdr *section;
	struct elf_bytes bytes;

	if (index == 0 || index >= file->section_count)
		return false;
	section = &file->sections[index];
	if (section->sh_type == SHT_NOBITS)
		return false;
	bytes = (struct elf_bytes){
		.bytes = elf_source_keep(&file->source, section->sh_offset, section->sh_size),
		.length = section->sh_size,
		.vaddr = section->sh_addr,
	};
	if (!bytes.bytes || ((section->sh_flags & SHF_COMPRESSED) &&
				    !inflate_section(file, section->sh_offset, &bytes)))
		return false;
	*ret_bytes = bytes;
	return true;
}

bool elf_file_section(struct elf_file *file, const char *section_name, struct elf_bytes *ret_bytes)
{
	return elf_file_section_bytes(file, elf_file_find_section(file, section_name), ret_bytes);
}
