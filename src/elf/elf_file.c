/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers are read by copying them out of the image, after a bounds check: a foreign file aligns
 * nothing. libelf comes in only for callers that ask for its handle.
 */
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "elf/inflate.h"

#define PAGE_BYTES 4096ULL
/* A file without build-id is hashed whole up to this size, else in this many blocks of a page. */
#define IDENTITY_WHOLE_BYTES ((size_t)4 << 20)
#define IDENTITY_BLOCKS      256

struct inflated_section {
	size_t index;
	uint8_t *bytes;
	size_t length;
};

struct elf_file {
	struct file_mapping mapping; /* empty when opened from memory */
	const uint8_t *image;
	size_t length;
	Elf64_Ehdr header;
	Elf64_Shdr *sections; /* a copy: libelf changes the image's when it decompresses */
	uint64_t section_count, section_names_index;
	ARRAY_OF(struct elf_segment) segments;
	struct elf_bytes eh_frame_header;
	struct build_id build_id;
	uint64_t identity;
	ARRAY_OF(struct inflated_section) inflated;
	struct Elf *libelf;
	uint8_t *libelf_image; /* libelf's own copy of an image in memory */
};

void build_id_to_hex(const struct build_id *id, char ret_text[2 * BUILD_ID_MAX_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";
	char *out = ret_text;

	for (size_t i = 0; i < id->length; i++) {
		*out++ = digits[id->bytes[i] >> 4];
		*out++ = digits[id->bytes[i] & 15];
	}
	*out = '\0';
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static uint64_t never_zero(uint64_t hash)
{
	return hash ? hash : 1;
}

uint64_t build_id_identity(const struct build_id *id)
{
	return never_zero(hash_bytes(id->bytes, id->length, id->length));
}

/* Copies `length` bytes at `offset` of the image; false when they are not all there. */
static bool read_at(const struct elf_file *file, uint64_t offset, void *ret_bytes, size_t length)
{
	if (offset > file->length || file->length - offset < length)
		return false;
	memcpy(ret_bytes, file->image + offset, length);
	return true;
}

static bool read_table_entry(const struct elf_file *file, uint64_t table_offset, uint64_t index,
	size_t entry_size, void *ret_entry)
{
	uint64_t offset;

	if (__builtin_mul_overflow(index, (uint64_t)entry_size, &offset) ||
		__builtin_add_overflow(offset, table_offset, &offset))
		return false;
	return read_at(file, offset, ret_entry, entry_size);
}

/* Bytes of the image, cut at its end; `ret_bytes` is empty when nothing of them is there. */
static void image_bytes(const struct elf_file *file, uint64_t offset, uint64_t length,
	uint64_t vaddr, struct elf_bytes *ret_bytes)
{
	*ret_bytes = (struct elf_bytes){.bytes = file->image, .vaddr = vaddr};
	if (offset >= file->length)
		return;
	ret_bytes->bytes = file->image + offset;
	ret_bytes->length = MIN(length, file->length - offset);
}

static uint64_t note_align(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

/* Looks for the build-id among the notes. Sizes are 32-bit, so 64-bit sums of them cannot overflow.
 */
static void find_build_id(
	struct elf_file *file, uint64_t offset, uint64_t length, uint64_t alignment)
{
	struct elf_bytes notes;
	uint64_t at = 0;

	image_bytes(file, offset, length, 0, &notes);
	alignment = alignment == 8 ? 8 : 4;
	while (file->build_id.length == 0 && at < notes.length &&
		notes.length - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name_at = at + sizeof(note), value_at;

		memcpy(&note, notes.bytes + at, sizeof(note));
		value_at = note_align(name_at + note.n_namesz, alignment);
		at = note_align(value_at + note.n_descsz, alignment);
		if (value_at + note.n_descsz > notes.length)
			return;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
			memcmp(notes.bytes + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) != 0)
			continue;
		if (note.n_descsz == 0 || note.n_descsz > BUILD_ID_MAX_BYTES)
			continue;
		memcpy(file->build_id.bytes, notes.bytes + value_at, note.n_descsz);
		file->build_id.length = (uint8_t)note.n_descsz;
	}
}

static void find_build_id_in_sections(struct elf_file *file)
{
	for (uint64_t i = 0; file->build_id.length == 0 && i < file->section_count; i++) {
		const Elf64_Shdr *section = &file->sections[i];

		if (section->sh_type == SHT_NOTE)
			find_build_id(
				file, section->sh_offset, section->sh_size, section->sh_addralign);
	}
}

static uint64_t hash_contents(const struct elf_file *file)
{
	uint64_t hash = file->length;
	size_t stride;

	if (file->length <= IDENTITY_WHOLE_BYTES)
		return hash_bytes(file->image, file->length, hash);
	stride = (file->length - PAGE_BYTES) / (IDENTITY_BLOCKS - 1);
	for (size_t i = 0; i < IDENTITY_BLOCKS - 1; i++)
		hash = hash_bytes(file->image + i * stride, PAGE_BYTES, hash);
	return hash_bytes(file->image + file->length - PAGE_BYTES, PAGE_BYTES, hash);
}

/* A segment's file bytes are cut at the file's end: separate debug files promise more than they
 * hold. */
static int add_segment(
	struct elf_file *file, const Elf64_Phdr *header, const char *name, struct errmsg *err)
{
	struct elf_segment segment = {.file_offset = header->p_offset,
		.vaddr = header->p_vaddr,
		.memory_size = header->p_memsz,
		.executable = (header->p_flags & PF_X) != 0};
	struct elf_bytes present;
	uint64_t end;

	image_bytes(file, header->p_offset, MIN(header->p_filesz, header->p_memsz), 0, &present);
	segment.file_size = present.length;
	if (__builtin_add_overflow(header->p_vaddr, header->p_memsz, &end) ||
		__builtin_add_overflow(header->p_offset, header->p_memsz, &end))
		return errmsg_set(err, -EINVAL,
			"cannot use %s: it is damaged, its program header says that a segment goes "
			"past the end of the address space; reinstall the file",
			name);
	return array_append(&file->segments, segment);
}

static int read_program_headers(struct elf_file *file, const char *name, struct errmsg *err)
{
	uint64_t count = file->header.e_phnum;
	Elf64_Phdr header;
	int result = 0;

	/* More headers than e_phnum can say: the first section header holds the number. */
	if (count == PN_XNUM && file->section_count)
		count = file->sections[0].sh_info;
	for (uint64_t i = 0; result == 0 && i < count; i++) {
		if (!read_table_entry(file, file->header.e_phoff, i, sizeof(header), &header))
			return errmsg_set(err, -EINVAL,
				"cannot use %s: it is cut short, its program headers lie past its "
				"end; reinstall the file",
				name);
		if (header.p_type == PT_LOAD && header.p_memsz != 0)
			result = add_segment(file, &header, name, err);
		else if (header.p_type == PT_NOTE)
			find_build_id(file, header.p_offset, header.p_filesz, header.p_align);
		else if (header.p_type == PT_GNU_EH_FRAME)
			image_bytes(file, header.p_offset, header.p_filesz, header.p_vaddr,
				&file->eh_frame_header);
	}
	return result;
}

/* Section headers are optional: what does not fit into the file is treated as absent. */
static int copy_section_headers(struct elf_file *file)
{
	uint64_t count = file->header.e_shnum;
	Elf64_Shdr first;

	if (file->header.e_shoff == 0 || file->header.e_shentsize != sizeof(Elf64_Shdr) ||
		!read_at(file, file->header.e_shoff, &first, sizeof(first)))
		return 0;
	/* More sections than e_shnum and e_shstrndx can say: the first section header holds them.
	 */
	if (count == 0)
		count = first.sh_size;
	count = MIN(count, (file->length - file->header.e_shoff) / sizeof(Elf64_Shdr));
	if (count == 0)
		return 0;
	file->sections = malloc(count * sizeof(*file->sections));
	if (!file->sections)
		return -ENOMEM;
	memcpy(file->sections, file->image + file->header.e_shoff, count * sizeof(*file->sections));
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

static int parse_image(struct elf_file *file, const char *name, struct errmsg *err)
{
	int result;

	if (!read_at(file, 0, &file->header, sizeof(file->header)))
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
	if (result == -ENOMEM)
		return errmsg_set(err, result, "cannot use %s: out of memory", name);
	if (result < 0)
		return result;
	find_build_id_in_sections(file);
	file->identity = file->build_id.length ? build_id_identity(&file->build_id)
					       : never_zero(hash_contents(file));
	return 0;
}

/* Takes the mapping; an image in memory comes with an empty one. */
static int open_image(struct elf_file **ret_file, struct file_mapping take_mapping,
	const void *bytes, size_t length, const char *name, struct errmsg *err)
{
	_cleanup_elf_file_ struct elf_file *file = calloc(1, sizeof(*file));
	int result;

	if (!file) {
		file_mapping_done(&take_mapping);
		return errmsg_set(err, -ENOMEM, "cannot use %s: out of memory", name);
	}
	file->mapping = take_mapping;
	file->image = bytes;
	file->length = length;
	result = parse_image(file, name, err);
	if (result == 0)
		*ret_file = TAKE_PTR(file);
	return result;
}

int elf_file_open(struct elf_file **ret_file, const char *path, const char *name_for_messages,
	struct errmsg *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct file_mapping mapping;
	int result;

	if (fd < 0)
		return errmsg_set(
			err, -errno, "cannot open %s: %s", name_for_messages, strerror(errno));
	result = file_mapping_open_fd(&mapping, fd, name_for_messages, err);
	if (result < 0)
		return result;
	return open_image(ret_file, mapping, mapping.bytes, mapping.length, name_for_messages, err);
}

int elf_file_open_memory(struct elf_file **ret_file, const void *bytes, size_t length,
	const char *name_for_messages, struct errmsg *err)
{
	return open_image(
		ret_file, (struct file_mapping){0}, bytes, length, name_for_messages, err);
}

struct elf_file *elf_file_free(struct elf_file *file)
{
	if (!file)
		return NULL;
	if (file->libelf)
		elf_end(file->libelf);
	free(file->libelf_image);
	array_foreach (&file->inflated, section)
		free(section->bytes);
	array_done(&file->inflated);
	array_done(&file->segments);
	free(file->sections);
	file_mapping_done(&file->mapping);
	free(file);
	return NULL;
}

void elf_file_freep(struct elf_file **file)
{
	*file = elf_file_free(*file);
}

const struct build_id *elf_file_build_id(const struct elf_file *file)
{
	return &file->build_id;
}

uint64_t elf_file_identity(const struct elf_file *file)
{
	return file->identity;
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

/* True when a page of the segment's file bytes holds the offset. */
static bool segment_maps_offset(const struct elf_segment *segment, uint64_t file_offset)
{
	uint64_t first = segment->file_offset & ~(PAGE_BYTES - 1);
	uint64_t end = segment->file_offset + segment->file_size;

	return segment->file_size && file_offset >= first &&
	       (file_offset < end || file_offset - end < (-end & (PAGE_BYTES - 1)));
}

bool elf_file_offset_to_vaddr(
	const struct elf_file *file, uint64_t file_offset, uint64_t *ret_vaddr)
{
	const struct elf_segment *found = NULL;

	array_foreach (&file->segments, segment) {
		if (!segment_maps_offset(segment, file_offset))
			continue;
		if (!found || (segment->executable && !found->executable))
			found = segment;
	}
	if (found)
		*ret_vaddr = file_offset - found->file_offset + found->vaddr;
	return found != NULL;
}

bool elf_file_loaded_bytes(const struct elf_file *file, uint64_t vaddr, struct elf_bytes *ret_bytes)
{
	array_foreach (&file->segments, segment) {
		uint64_t offset = vaddr - segment->vaddr;

		if (vaddr < segment->vaddr || offset >= segment->file_size)
			continue;
		image_bytes(file, segment->file_offset + offset, segment->file_size - offset, vaddr,
			ret_bytes);
		return true;
	}
	return false;
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

bool elf_file_eh_frame_header(const struct elf_file *file, struct elf_bytes *ret_bytes)
{
	if (file->eh_frame_header.length == 0)
		return false;
	*ret_bytes = file->eh_frame_header;
	return true;
}

static bool section_has_name(const struct elf_bytes *names, uint64_t offset, const char *name)
{
	size_t length = strlen(name) + 1;

	return offset < names->length && names->length - offset >= length &&
	       memcmp(names->bytes + offset, name, length) == 0;
}

static const Elf64_Shdr *find_section(const struct elf_file *file, const char *name)
{
	const Elf64_Shdr *section;
	struct elf_bytes names;

	if (file->section_names_index >= file->section_count)
		return NULL;
	section = &file->sections[file->section_names_index];
	if (section->sh_type != SHT_STRTAB)
		return NULL;
	image_bytes(file, section->sh_offset, section->sh_size, 0, &names);
	for (size_t i = 1; i < file->section_count; i++)
		if (section_has_name(&names, file->sections[i].sh_name, name))
			return &file->sections[i];
	return NULL;
}

/* Decompresses a section once and keeps it for the file's life. */
static bool inflate_section(struct elf_file *file, size_t index, struct elf_bytes *bytes)
{
	struct inflated_section made = {.index = index};
	Elf64_Chdr header;

	array_foreach (&file->inflated, known) {
		if (known->index != index)
			continue;
		bytes->bytes = known->bytes;
		bytes->length = known->length;
		return true;
	}
	if (bytes->length < sizeof(header))
		return false;
	memcpy(&header, bytes->bytes, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB || array_reserve(&file->inflated, 1) < 0)
		return false;
	made.length = header.ch_size;
	made.bytes = inflate_bytes(
		bytes->bytes + sizeof(header), bytes->length - sizeof(header), made.length);
	if (!made.bytes)
		return false;
	file->inflated.items[file->inflated.count++] = made;
	bytes->bytes = made.bytes;
	bytes->length = made.length;
	return true;
}

bool elf_file_section(struct elf_file *file, const char *section_name, struct elf_bytes *ret_bytes)
{
	const Elf64_Shdr *section = find_section(file, section_name);
	struct elf_bytes bytes;

	if (!section || section->sh_type == SHT_NOBITS)
		return false;
	if (section->sh_offset > file->length ||
		file->length - section->sh_offset < section->sh_size)
		return false;
	image_bytes(file, section->sh_offset, section->sh_size, section->sh_addr, &bytes);
	if ((section->sh_flags & SHF_COMPRESSED) &&
		!inflate_section(file, (size_t)(section - file->sections), &bytes))
		return false;
	*ret_bytes = bytes;
	return true;
}

/*
 * libelf writes into the image when it decompresses or converts, so it gets one that it may write
 * to: the private mapping made writable, or a copy of foreign memory.
 */
static char *writable_image(struct elf_file *file)
{
	if (file->mapping.bytes) {
		if (mprotect((void *)file->mapping.bytes, file->mapping.length,
			    PROT_READ | PROT_WRITE) < 0)
			return NULL;
		return (char *)file->mapping.bytes;
	}
	file->libelf_image = malloc(file->length);
	if (file->libelf_image)
		memcpy(file->libelf_image, file->image, file->length);
	return (char *)file->libelf_image;
}

struct Elf *elf_file_libelf(struct elf_file *file)
{
	char *image;

	if (file->libelf || file->libelf_image)
		return file->libelf;
	image = elf_version(EV_CURRENT) == EV_NONE ? NULL : writable_image(file);
	if (image)
		file->libelf = elf_memory(image, file->length);
	return file->libelf;
}
