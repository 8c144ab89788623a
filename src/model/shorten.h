/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting function names into a given width. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/*
 * Appends `name`, which is plain UTF-8 (escape_plain()), in at most `columns` characters. What
 * tells least goes first: template arguments become <…>, then parameters (…), then leading
 * namespaces …::, at last the middle.
 */
void shorten_name(struct strbuf *out, const char *name, size_t columns);
/*
 * The same of a kernel, whose name may be mangled: of a demangled template its return type,
 * namespaces and parameters go first, which its arguments repeat, then its end.
 */
void shorten_kernel(struct strbuf *out, const char *name, size_t columns);
/* Appends text that is no function name in at most `columns` characters: the middle goes. */
void shorten_text(struct strbuf *out, const char *text, size_t columns);
/* Appends a path in at most `columns` characters: its end stays, from a '/' on where that is near.
 */
void shorten_path(struct strbuf *out, const char *path, size_t columns);
/* Appends text in at most `columns` characters: its end goes. */
void shorten_end(struct strbuf *out, const char *text, size_t columns);
/*
 * Shortens `count` texts of one column so that different ones stay different, where the columns
 * allow it: what alike ones have in common goes first. Functions are shortened as by
 * shorten_name(), others as by shorten_text(). ret_texts[] are the caller's, to free(), also when
 * memory ran out. Returns 0 or -ENOMEM.
 */
int shorten_all(
	char **ret_texts, const char *const *all, size_t count, size_t columns, bool is_function);
/* Characters of UTF-8 text. */
size_t shorten_columns(const char *text);
