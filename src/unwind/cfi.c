/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of call frame information: lengths, CIEs, augmentations, encoded pointers. Programs:
 * cfi_program.c. */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>

#include "arch/arch.h"
#include "base/macros.h"

#define LENGTH_64_BIT        0xffffffffU
#define DEBUG_FRAME_CIE_ID   0xffffffffU
#define DEBUG_FRAME_CIE_ID64 UINT64_MAX

#define FORMAT_MASK 0x0f
#define BASE_MASK   0x70

static uint64_t cursor_vaddr(const struct cursor *cursor, const struct cfi_section *section)
{
	return section->vaddr + (uint64_t)(cursor->at - section->bytes);
}

static int read_pointer_format(struct cursor *cursor, uint8_t encoding, uint64_t *ret_value)
{
	switch (encoding & FORMAT_MASK) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
	case DW_EH_PE_signed:
		*ret_value = cursor_unsigned(cursor, 8);
		return 0;
	case DW_EH_PE_udata4:
		*ret_value = cursor_unsigned(cursor, 4);
		return 0;
	case DW_EH_PE_sdata4:
		*ret_value = (uint64_t)cursor_signed(cursor, 4);
		return 0;
	case DW_EH_PE_udata2:
		*ret_value = cursor_unsigned(cursor, 2);
		return 0;
	case DW_EH_PE_sdata2:
		*ret_value = (uint64_t)cursor_signed(cursor, 2);
		return 0;
	case DW_EH_PE_uleb128:
		*ret_value = cursor_uleb(cursor);
		return 0;
	case DW_EH_PE_sleb128:
		*ret_value = (uint64_t)cursor_sleb(cursor);
		return 0;
	default:
		return -EINVAL;
	}
}

int cfi_read_pointer(struct cursor *cursor, const struct cfi_section *section, uint8_t encoding,
	uint64_t *ret_value)
{
	uint64_t base = 0;
	int result;

	if (encoding & DW_EH_PE_indirect)
		return -EINVAL;
	switch (encoding & BASE_MASK) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		base = cursor_vaddr(cursor, section);
		break;
	case DW_EH_PE_aligned:
		cursor_skip(cursor, -cursor_vaddr(cursor, section) & 7);
		break;
	default:
		return -EINVAL;
	}
	result = read_pointer_format(cursor, encoding, ret_value);
	if (result == 0)
		*ret_value += base;
	return result;
}

/* Steps over a pointer whatever it is relative to. */
static int skip_pointer(struct cursor *cursor, const struct cfi_section *section, uint8_t encoding)
{
	uint64_t ignored;

	if (encoding == DW_EH_PE_omit)
		return 0;
	if ((encoding & BASE_MASK) == DW_EH_PE_aligned)
		cursor_skip(cursor, -cursor_vaddr(cursor, section) & 7);
	return read_pointer_format(cursor, encoding, &ignored);
}

/*
 * Reads the data that the augmentation string's letters announce. A letter that we do not know ends
 * the reading when 'z' gave the data's length, and makes the CIE unreadable otherwise.
 */
static int read_augmentation(struct cfi_cie *cie, const char *letters, struct cursor *data,
	const struct cfi_section *section)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = cursor_u8(data);
			break;
		case 'P':
			if (skip_pointer(data, section, cursor_u8(data)) < 0)
				return -EINVAL;
			break;
		case 'L':
			cursor_u8(data);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B': /* aarch64 pointer authentication: no data */
			break;
		default:
			return cie->has_data && !data->failed ? 0 : -EINVAL;
		}
	}
	return data->failed ? -EINVAL : 0;
}

/* The string up to its NUL; NULL when there is none. */
static const char *read_string(struct cursor *cursor)
{
	const char *string = (const char *)cursor->at;
	const uint8_t *nul = memchr(cursor->at, 0, cursor_left(cursor));

	if (!nul)
		return NULL;
	cursor->at = nul + 1;
	return string;
}

/* `cursor` stands behind the CIE's id field. */
static int parse_cie(struct cfi_cie *cie, struct cursor cursor, const struct cfi_section *section)
{
	uint8_t version = cursor_u8(&cursor);
	const char *letters = read_string(&cursor);
	uint64_t return_address, address_size = 8, segment_size = 0;
	int result;

	if (!letters || (version != 1 && version != 3 && version != 4))
		return -EINVAL;
	if (strcmp(letters, "eh") == 0) { /* gcc 2: a pointer to exception tables */
		cursor_skip(&cursor, 8);
		letters += 2;
	}
	if (version == 4) {
		address_size = cursor_u8(&cursor);
		segment_size = cursor_u8(&cursor);
	}
	if (address_size != 8 || segment_size != 0)
		return -EINVAL;
	cie->code_alignment = cursor_uleb(&cursor);
	cie->data_alignment = cursor_sleb(&cursor);
	return_address = version == 1 ? cursor_u8(&cursor) : cursor_uleb(&cursor);
	if (return_address != ARCH_DWARF_RETURN_ADDRESS &&
		!(ARCH_HAS_LINK_REGISTER && return_address < ARCH_REGISTERS))
		return -EINVAL;
	if (*letters == 'z') {
		struct cursor data = cursor_split(&cursor, cursor_uleb(&cursor));

		cie->has_data = true;
		result = read_augmentation(cie, letters + 1, &data, section);
	} else {
		result = read_augmentation(cie, letters, &cursor, section);
	}
	if (result < 0 || cursor.failed)
		return -EINVAL;
	result = cfi_run_initial(cie, cursor, section, &cie->initial);
	/* A function whose callers leave the return address in another register. */
	if (return_address != ARCH_DWARF_RETURN_ADDRESS)
		cie->initial.ra = (struct cfi_saved){
			.kind = CFI_SAVED_IN_REGISTER, .reg = (uint32_t)return_address};
	return result;
}

/* The common start of CIE and FDE. */
struct entry_head {
	struct cursor body; /* behind the id field */
	uint64_t id;
	size_t id_at;
	bool is_64_bit;
};

/* Returns 1, 0 for a terminator, or -EINVAL when the entry does not fit. */
static int read_head(const struct cfi_section *section, size_t offset, struct entry_head *ret_head)
{
	struct cursor cursor = {
		.at = section->bytes + offset, .end = section->bytes + section->length};
	uint64_t length = cursor_unsigned(&cursor, 4);
	struct entry_head head = {.is_64_bit = length == LENGTH_64_BIT};

	if (head.is_64_bit)
		length = cursor_unsigned(&cursor, 8);
	if (cursor.failed || length > cursor_left(&cursor))
		return -EINVAL;
	head.body = cursor_split(&cursor, length);
	if (length == 0) {
		*ret_head = head;
		return 0;
	}
	head.id_at = (size_t)(head.body.at - section->bytes);
	head.id = cursor_unsigned(&head.body, head.is_64_bit ? 8 : 4);
	if (head.body.failed)
		return -EINVAL;
	*ret_head = head;
	return 1;
}

static bool is_cie_id(const struct cfi_section *section, const struct entry_head *head)
{
	if (!section->is_debug_frame)
		return head->id == 0;
	return head->id == (head->is_64_bit ? DEBUG_FRAME_CIE_ID64 : DEBUG_FRAME_CIE_ID);
}

/* The CIE that an FDE names; NULL when there is no good one. */
static const struct cfi_cie *find_cie(struct cfi *cfi, const struct entry_head *fde)
{
	bool is_debug_frame = cfi->section.is_debug_frame;
	uint64_t offset = is_debug_frame ? fde->id : fde->id_at - fde->id;
	struct cfi_cie *cie = &cfi->cies[(offset >> 2) % CFI_CIE_CACHE];
	struct entry_head head;

	if (offset >= cfi->section.length)
		return NULL;
	if (cie->parsed && cie->offset == offset)
		return cie->valid ? cie : NULL;
	*cie = (struct cfi_cie){.offset = offset, .parsed = true};
	cie->valid = read_head(&cfi->section, offset, &head) > 0 &&
		     is_cie_id(&cfi->section, &head) &&
		     parse_cie(cie, head.body, &cfi->section) == 0;
	return cie->valid ? cie : NULL;
}

static int parse_fde(struct cfi *cfi, const struct entry_head *head, struct cfi_entry *entry)
{
	struct cursor cursor = head->body;
	uint64_t length;
	uint8_t encoding;

	entry->cie = find_cie(cfi, head);
	if (!entry->cie)
		return -EINVAL;
	encoding = entry->cie->pointer_encoding;
	if (cfi_read_pointer(&cursor, &cfi->section, encoding, &entry->begin) < 0 ||
		read_pointer_format(&cursor, encoding, &length) < 0 ||
		__builtin_add_overflow(entry->begin, length, &entry->end))
		return -EINVAL;
	if (entry->cie->has_data)
		cursor_skip(&cursor, cursor_uleb(&cursor));
	entry->program = cursor;
	return cursor.failed ? -EINVAL : 0;
}

/*
 * A terminator before the section's end is stepped over: some linkers leave the one of each input
 * file's end.
 */
int cfi_read_entry(struct cfi *cfi, size_t offset, struct cfi_entry *ret_entry)
{
	struct cfi_entry entry = {.offset = offset};
	struct entry_head head;
	int result;

	if (offset >= cfi->section.length)
		return 0;
	result = read_head(&cfi->section, offset, &head);
	if (result < 0 || (result == 0 && cfi->section.ends_at_terminator))
		return result;
	entry.next = (size_t)(head.body.end - cfi->section.bytes);
	if (result > 0 && !is_cie_id(&cfi->section, &head)) {
		entry.is_fde = true;
		entry.corrupt = parse_fde(cfi, &head, &entry) < 0;
	}
	*ret_entry = entry;
	return 1;
}
