/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python code objects: names from str objects as they lie in memory, lines from line tables of
 * CPython 3.8 to 3.15. Everything here is foreign bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "unwind/python_layout.h"
#include "wire/python.h"

/*
 * Appends the text of a str object as UTF-8: `bytes` holds it from its header on, and may be cut
 * off (`*ret_cut`, may be NULL, says so). ASCII, Latin-1, UCS-2 and UCS-4, compact and ready;
 * unpaired surrogates become U+FFFD. Returns 0, -EINVAL when it is no such object, or -ENOMEM.
 */
int python_text(const struct python_layout *layout, const void *bytes, size_t length,
	struct strbuf *out, bool *ret_cut);

/*
 * The line of the instruction at `offset` (in bytes from the first instruction), by a line table's
 * contents (co_lnotab up to 3.9, co_linetable of 3.10, location table of 3.11 and later). 0 when
 * it has none. -1 when the table is cut off before it.
 */
int64_t python_line(const struct python_layout *layout, const void *table, size_t length,
	uint32_t first_line, int32_t offset);

/* A code object with its names: strings are owned. */
struct python_code {
	char *file_name;
	char *name; /* qualified where the version has it: "Linear.forward" */
	uint32_t first_line;
	uint8_t *line_table;
	size_t line_table_length;
	bool cut; /* a text or the table was longer than the record holds */
};

/*
 * From a record's pieces (already checked against record.length_bytes by the caller's
 * python_code_is_whole()). Pieces that could not be read leave NULL. Returns 0 or -ENOMEM.
 */
int python_code_from_record(const struct python_layout *layout,
	const struct wire_python_code *record, struct python_code *ret_code);
bool python_code_is_whole(const struct wire_python_code *record);
/*
 * Reads the code object at `address` from a living process by process_vm_readv, whole whatever its
 * length (names up to 64 KiB, tables up to 4 MiB). With `check` nonzero, -ESTALE when the object
 * there is another one now. -EFAULT, -ESRCH, -EPERM as process_vm_readv; -ENOMEM.
 */
int python_code_read(const struct python_layout *layout, uint32_t pid, uint64_t address,
	uint32_t check, struct python_code *ret_code);
/* The line of an instruction; the first line when the table does not say it. */
uint32_t python_code_line(
	const struct python_layout *layout, const struct python_code *code, int32_t offset);
void python_code_done(struct python_code *code);
