/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_image.h"

#include <elf.h>
#include <string.h>

static const char section_names[] = "\0.shstrtab\0.eh_frame\0.debug_frame\0.gopclntab";
enum { NAME_SHSTRTAB = 1, NAME_EH_FRAME = 11, NAME_DEBUG_FRAME = 21, NAME_GO = 34 };

struct head {
	Elf64_Ehdr header;
	Elf64_Phdr code;
	Elf64_Shdr none, names, cfi, go;
	char name_bytes[sizeof(section_names)];
};

static Elf64_Ehdr file_header(const struct frame_image *image)
{
	return (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = image->entry,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phoff = offsetof(struct head, code),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = offsetof(struct head, none),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = image->is_go ? 4 : 3,
		.e_shstrndx = 1};
}

int frame_image_write(const struct frame_image *image, struct strbuf *ret_bytes)
{
	struct head head = {.header = file_header(image),
		.code = {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = sizeof(head),
			.p_vaddr = FRAME_IMAGE_CODE_VADDR,
			.p_filesz = image->code_length,
			.p_memsz = FRAME_IMAGE_CODE_BYTES},
		.names = {.sh_name = NAME_SHSTRTAB,
			.sh_type = SHT_STRTAB,
			.sh_offset = offsetof(struct head, name_bytes),
			.sh_size = sizeof(section_names)},
		.cfi = {.sh_name = image->is_debug_frame ? NAME_DEBUG_FRAME : NAME_EH_FRAME,
			.sh_type = SHT_PROGBITS,
			.sh_addr = image->is_debug_frame ? 0 : FRAME_IMAGE_CFI_VADDR,
			.sh_offset = sizeof(head) + image->code_length,
			.sh_size = image->cfi_length},
		.go = {.sh_name = NAME_GO,
			.sh_type = SHT_PROGBITS,
			.sh_offset = offsetof(struct head, name_bytes),
			.sh_size = sizeof(section_names)}};

	memcpy(head.name_bytes, section_names, sizeof(section_names));
	strbuf_add_bytes(ret_bytes, &head, sizeof(head));
	strbuf_add_bytes(ret_bytes, image->code, image->code_length);
	strbuf_add_bytes(ret_bytes, image->cfi, image->cfi_length);
	return strbuf_status(ret_bytes);
}
