/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../support/elf_path.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "elf/inflate.h"

static const char self[] = "/proc/self/exe";

static struct elf_file *open_self(void)
{
	struct elf_file *file;
	struct errmsg err;

	assert_int_equal(open_elf(&file, self, "this test", &err), 0);
	return file;
}

struct reference {
	int fd;
	Elf *elf;
};

static struct reference open_reference(void)
{
	struct reference reference = {.fd = open(self, O_RDONLY | O_CLOEXEC)};

	assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
	reference.elf = elf_begin(reference.fd, ELF_C_READ, NULL);
	assert_non_null(reference.elf);
	return reference;
}

static void reference_done(struct reference *reference)
{
	elf_end(reference->elf);
	close(reference->fd);
}

static void test_build_id_is_what_libdw_reads(void **state)
{
	_cleanup_(reference_done) struct reference reference = open_reference();
	_cleanup_elf_file_ struct elf_file *file = open_self();
	const struct build_id *id = elf_file_build_id(file);
	char text[2 * BUILD_ID_MAX_BYTES + 1];
	const void *expected;
	ssize_t length = dwelf_elf_gnu_build_id(reference.elf, &expected);

	if (length <= 0)
		skip(); /* a toolchain without build-ids */
	assert_int_equal(id->length, length);
	assert_memory_equal(id->bytes, expected, (size_t)length);
	assert_true(elf_file_identity(file) == build_id_identity(id));
	build_id_to_hex(&(struct build_id){.bytes = {0x0a, 0xf0}, .length = 2}, text);
	assert_string_equal(text, "0af0");
	assert_true(build_id_equal(id, id));
}

static void test_sections_are_what_libelf_reads(void **state)
{
	_cleanup_(reference_done) struct reference reference = open_reference();
	_cleanup_elf_file_ struct elf_file *file = open_self();
	Elf *elf = reference.elf;
	size_t names, compared = 0;
	Elf_Scn *section = NULL;
	struct elf_bytes bytes;
	GElf_Shdr header;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		Elf_Data *data;

		assert_non_null(gelf_getshdr(section, &header));
		name = elf_strptr(elf, names, header.sh_name);
		if (header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED))
			continue;
		data = elf_rawdata(section, NULL);
		assert_int_equal(elf_file_find_section(file, name), elf_ndxscn(section));
		assert_true(elf_file_section(file, name, &bytes));
		assert_int_equal(bytes.length, data->d_size);
		assert_int_equal(bytes.vaddr, header.sh_addr);
		assert_memory_equal(bytes.bytes, data->d_buf, data->d_size);
		compared++;
	}
	assert_true(compared > 10);
	assert_false(elf_file_section(file, ".bss", &bytes));
	assert_false(elf_file_section(file, ".no-such-section", &bytes));
	assert_false(elf_file_section(file, ".tex", &bytes));
}

static void test_loaded_bytes_are_what_runs(void **state)
{
	_cleanup_elf_file_ struct elf_file *file = open_self();
	struct elf_bytes text, loaded;
	const struct elf_segment *segment;
	uint8_t copy[50];

	assert_int_equal(elf_file_machine(file), EM_X86_64);
	assert_true(elf_file_section(file, ".text", &text));
	assert_true(elf_file_window(file, text.vaddr, text.length, &loaded));
	assert_int_equal(loaded.length, text.length);
	assert_memory_equal(loaded.bytes, text.bytes, text.length);
	assert_true(elf_file_window(file, text.vaddr + 100, 20, &loaded));
	assert_int_equal(loaded.length, 20);
	assert_memory_equal(loaded.bytes, text.bytes + 100, 20);
	assert_true(elf_file_read_loaded(file, text.vaddr + 200, copy, sizeof(copy)));
	assert_memory_equal(copy, text.bytes + 200, sizeof(copy));
	assert_true(elf_file_loaded_length(file, text.vaddr) >= text.length);
	assert_true(elf_file_loaded_rest(file, text.vaddr, &loaded));
	assert_int_equal(loaded.length, elf_file_loaded_length(file, text.vaddr));
	assert_memory_equal(loaded.bytes, text.bytes, text.length);
	assert_int_equal(elf_file_status(file), 0);
	segment = elf_file_segment_at(file, elf_file_entry(file));
	assert_non_null(segment);
	assert_true(segment->executable);
	assert_null(elf_file_segment_at(file, UINT64_MAX));
	assert_false(elf_file_window(file, UINT64_MAX, 1, &loaded));
	assert_false(elf_file_loaded_rest(file, UINT64_MAX, &loaded));
	assert_false(elf_file_read_loaded(file, UINT64_MAX, copy, 1));
}

/* A file of our own making. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	Elf64_Shdr sections[3];
	char names[32];
	uint8_t contents[512];
};

static struct image make_image(void)
{
	return (struct image){.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						 ELFDATA2LSB, EV_CURRENT},
				      .e_type = ET_DYN,
				      .e_machine = EM_X86_64,
				      .e_version = EV_CURRENT,
				      .e_ehsize = sizeof(Elf64_Ehdr),
				      .e_phoff = offsetof(struct image, segments),
				      .e_phentsize = sizeof(Elf64_Phdr),
				      .e_phnum = 3,
				      .e_shoff = offsetof(struct image, sections),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = 3,
				      .e_shstrndx = 1},
		/* As lld lays out: segments share a page of the file, each at its own address. */
		.segments = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 256, .p_memsz = 256},
			{.p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = 256,
				.p_vaddr = 0x1100,
				.p_filesz = 256,
				.p_memsz = 256},
			{.p_type = PT_LOAD,
				.p_flags = PF_R | PF_W,
				.p_offset = 512,
				.p_vaddr = 0x2200,
				.p_filesz = 16,
				.p_memsz = 4096}},
		.sections = {{0},
			{.sh_name = 1,
				.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof(((struct image *)0)->names)},
			{.sh_name = 7,
				.sh_type = SHT_PROGBITS,
				.sh_offset = offsetof(struct image, contents),
				.sh_size = 512}},
		.names = "\0names\0contents"};
}

static struct elf_file *open_image(const struct image *image)
{
	struct elf_file *file;
	struct errmsg err;

	assert_int_equal(elf_file_open_memory(&file, image, sizeof(*image), "image", &err), 0);
	return file;
}

static void test_segments(void **state)
{
	struct image image = make_image();
	_cleanup_elf_file_ struct elf_file *file = open_image(&image);

	assert_int_equal(elf_file_segment_count(file), 3);
	assert_int_equal(elf_file_segment(file, 2)->memory_size, 4096);
}

enum { INFLATED_BYTES = 4000 };

static void fill(uint8_t text[INFLATED_BYTES])
{
	for (size_t i = 0; i < INFLATED_BYTES; i++)
		text[i] = (uint8_t)(i % 50);
}

static struct image make_compressed_image(void)
{
	struct image image = make_image();
	Elf64_Chdr header = {
		.ch_type = ELFCOMPRESS_ZLIB, .ch_size = INFLATED_BYTES, .ch_addralign = 1};
	uLongf length = sizeof(image.contents) - sizeof(header);
	uint8_t text[INFLATED_BYTES];

	fill(text);
	assert_int_equal(
		compress(image.contents + sizeof(header), &length, text, sizeof(text)), Z_OK);
	memcpy(image.contents, &header, sizeof(header));
	image.sections[2].sh_flags = SHF_COMPRESSED;
	image.sections[2].sh_size = sizeof(header) + length;
	return image;
}

static void test_compressed_section(void **state)
{
	struct image image = make_compressed_image();
	_cleanup_elf_file_ struct elf_file *file = open_image(&image), *damaged = NULL;
	struct elf_bytes bytes, again;
	uint8_t text[INFLATED_BYTES];

	fill(text);
	assert_true(elf_file_section(file, "contents", &bytes));
	assert_int_equal(bytes.length, sizeof(text));
	assert_memory_equal(bytes.bytes, text, sizeof(text));
	assert_true(elf_file_section(file, "contents", &again));
	assert_ptr_equal(again.bytes, bytes.bytes);

	image.contents[sizeof(Elf64_Chdr) + 5] ^= 0xff;
	damaged = open_image(&image);
	assert_false(elf_file_section(damaged, "contents", &bytes));
	/* No stream of 100 bytes holds 4 GB: not worth asking for the memory. */
	assert_null(inflate_bytes(text, 100, (size_t)4 << 30));
}

static void test_identity_without_build_id(void **state)
{
	struct image image = make_image();
	_cleanup_elf_file_ struct elf_file *one = open_image(&image), *same = open_image(&image),
					   *other = NULL;

	assert_int_equal(elf_file_build_id(one)->length, 0);
	assert_true(elf_file_identity(one) != 0);
	assert_true(elf_file_identity(one) == elf_file_identity(same));
	image.contents[300]++;
	other = open_image(&image);
	assert_true(elf_file_identity(one) != elf_file_identity(other));
}

static void assert_rejected(const void *bytes, size_t length, int error, const char *reason)
{
	struct elf_file *file = NULL;
	struct errmsg err = {{0}};

	assert_int_equal(elf_file_open_memory(&file, bytes, length, "the file", &err), error);
	assert_null(file);
	assert_non_null(strstr(err.text, "the file"));
	assert_non_null(strstr(err.text, reason));
}

static void test_foreign_files_are_rejected(void **state)
{
	struct image image = make_image();
	struct elf_file *file = NULL;
	struct errmsg err;

	assert_rejected("text, far longer than the header of an ELF file: sixty-four bytes", 65,
		-ENOEXEC, "not an ELF file");
	assert_rejected(&image, 10, -ENOEXEC, "shorter than an ELF header");
	assert_rejected(&image, sizeof(image.header) + 10, -EINVAL, "truncated");
	image.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_rejected(&image, sizeof(image), -ENOEXEC, "32-bit");
	image = make_image();
	image.segments[1].p_vaddr = UINT64_MAX - 4;
	assert_rejected(&image, sizeof(image), -EINVAL, "past the end of the address space");
	assert_int_equal(open_elf(&file, "/", "the root", &err), -EISDIR);
	assert_non_null(strstr(err.text, "the root"));
	assert_int_equal(open_elf(&file, "/dev/null", "null", &err), -EINVAL);
}

/* Every damaged header byte and every length: an error or a file, and only bytes that are there. */
static void test_damage_never_crashes(void **state)
{
	struct image image = make_image();

	for (size_t i = 0; i < offsetof(struct image, contents); i++) {
		struct image damaged = image;
		struct elf_file *file = NULL;
		struct elf_bytes bytes;

		((uint8_t *)&damaged)[i] ^= 0xff;
		if (elf_file_open_memory(&file, &damaged, sizeof(damaged), "damaged", NULL) == 0 &&
			elf_file_section(file, "contents", &bytes))
			assert_true(bytes.bytes >= (uint8_t *)&damaged &&
				    bytes.bytes + bytes.length <= (uint8_t *)(&damaged + 1));
		elf_file_free(file);
		file = NULL;
		if (elf_file_open_memory(&file, &image, i, "short", NULL) == 0)
			elf_file_section(file, "contents", &bytes);
		elf_file_free(file);
	}
}

/* ---- Files that change while they are open ---- */

/* A copy of this test in a file without a name. */
static int copy_self(void)
{
	_cleanup_close_ int from = open(self, O_RDONLY | O_CLOEXEC);
	int to = memfd_create("copy", MFD_CLOEXEC);
	struct stat status;
	off_t at = 0;

	assert_true(from >= 0 && to >= 0);
	assert_int_equal(fstat(from, &status), 0);
	while (at < status.st_size)
		assert_true(sendfile(to, from, &at, (size_t)(status.st_size - at)) > 0);
	return to;
}

/* Everything elf_file.h offers, on a file that may have been cut. */
static void use_all(struct elf_file *file)
{
	uint64_t vaddr, length, start, entry = elf_file_entry(file);
	struct elf_bytes bytes;
	size_t position = 0;

	for (size_t i = 0; i < elf_file_section_count(file); i++)
		elf_file_section_bytes(file, i, &bytes);
	elf_file_section(file, ".symtab", &bytes);
	elf_file_window(file, entry, 4096, &bytes);
	elf_file_loaded_rest(file, entry, &bytes);
	elf_file_function_start(file, entry, &start);
	while (elf_file_next_code(file, &position, &vaddr, &length))
		elf_file_window(file, vaddr, length, &bytes);
}

/* A mapping would end the process here. */
static void test_file_is_cut_while_open(void **state)
{
	_cleanup_close_ int fd = copy_self();
	_cleanup_elf_file_ struct elf_file *file = NULL, *whole = NULL, *again = NULL;
	struct elf_bytes text, bytes;
	struct errmsg err;

	assert_int_equal(elf_file_open_fd(&file, fd, "a copy", &err), 0);
	assert_int_equal(elf_file_open_fd(&whole, fd, "a copy", &err), 0);
	assert_true(elf_file_section(file, ".text", &text));
	use_all(whole);
	assert_int_equal(elf_file_status(file), 0);
	for (off_t length = lseek(fd, 0, SEEK_END); length > 0; length = length * 2 / 3) {
		_cleanup_elf_file_ struct elf_file *cut = NULL;

		assert_int_equal(ftruncate(fd, length), 0);
		/* Cut before it was opened, and after. */
		if (elf_file_open_fd(&cut, fd, "a cut copy", NULL) == 0) {
			assert_int_equal(ftruncate(fd, length - length / 10), 0);
			use_all(cut);
			assert_int_equal(elf_file_status(cut), -ESTALE);
		}
		use_all(file);
		use_all(whole);
	}
	assert_int_equal(elf_file_status(file), -ESTALE);
	assert_int_equal(elf_file_status(whole), -ESTALE);
	/* What was read before stays; what was not, is not there. */
	assert_true(elf_file_section(file, ".text", &bytes));
	assert_ptr_equal(bytes.bytes, text.bytes);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(elf_file_open_fd(&again, fd, "an empty file", &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "shorter than an ELF header"));
}

/* cp over a library in use: other contents in the same file. */
static void test_file_is_written_while_open(void **state)
{
	_cleanup_close_ int fd = copy_self();
	_cleanup_elf_file_ struct elf_file *file = NULL;
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct errmsg err;

	assert_int_equal(elf_file_open_fd(&file, fd, "a copy", &err), 0);
	assert_int_equal(elf_file_status(file), 0);
	assert_int_equal(futimens(fd, times), 0); /* as a write does, later on */
	assert_int_equal(elf_file_status(file), -ESTALE);
}

/* A sparse file promises any number of bytes at no cost. */
static void test_too_many_bytes_are_not_read(void **state)
{
	struct image image = make_image();
	_cleanup_close_ int fd = memfd_create("sparse", MFD_CLOEXEC);
	_cleanup_elf_file_ struct elf_file *file = NULL;
	struct elf_bytes bytes;
	struct errmsg err;

	image.sections[2].sh_size = (uint64_t)64 << 30;
	image.segments[1].p_filesz = image.segments[1].p_memsz = (uint64_t)64 << 30;
	assert_int_equal(write_all(fd, &image, sizeof(image)), 0);
	assert_int_equal(ftruncate(fd, (off_t)65 << 30), 0);
	assert_int_equal(elf_file_open_fd(&file, fd, "a sparse file", &err), 0);
	assert_true(elf_file_window(file, 0x1100, UINT64_MAX, &bytes));
	assert_true(bytes.length <= ELF_WINDOW_MAX_BYTES);
	assert_int_equal(elf_file_status(file), 0);
	assert_false(elf_file_section(file, "contents", &bytes));
	assert_false(elf_file_loaded_rest(file, 0x1100, &bytes));
	assert_int_equal(elf_file_status(file), -EFBIG);
}

static void test_limits(void **state)
{
	_cleanup_elf_file_ struct elf_file *file = open_self(), *other = open_self();
	atomic_bool given_up = false;
	volatile unsigned spin = 0;

	elf_file_limit(
		file, &(struct elf_limits){.given_up = &given_up, .cpu_ns = 3600 * NS_PER_S});
	elf_file_limit_as(other, file);
	assert_int_equal(elf_file_status(file), 0);
	given_up = true;
	assert_true(elf_file_given_up(file));
	assert_int_equal(elf_file_status(file), -ECANCELED);
	assert_int_equal(elf_file_status(other), -ECANCELED);
	elf_file_limit(file, &(struct elf_limits){.cpu_ns = 1000});
	for (unsigned i = 0; i < 1000000; i++)
		spin += i;
	assert_int_equal(elf_file_status(file), -ETIME);
	assert_string_equal(elf_file_explain(-ETIME), "reading it takes too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_id_is_what_libdw_reads),
		cmocka_unit_test(test_sections_are_what_libelf_reads),
		cmocka_unit_test(test_loaded_bytes_are_what_runs),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_compressed_section),
		cmocka_unit_test(test_identity_without_build_id),
		cmocka_unit_test(test_foreign_files_are_rejected),
		cmocka_unit_test(test_damage_never_crashes),
		cmocka_unit_test(test_file_is_cut_while_open),
		cmocka_unit_test(test_file_is_written_while_open),
		cmocka_unit_test(test_too_many_bytes_are_not_read),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
