/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names come from files and programs that owe us nothing: any byte may be in them. These make them
 * safe for one place each. Running out of memory is remembered in the strbuf.
 */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"

/*
 * For one line of a terminal or a text: control characters become \xHH or \uHHHH, as do characters
 * that change the direction of text; bytes that are not UTF-8 become U+FFFD.
 */
void escape_plain(struct strbuf *out, const char *text);
void escape_plain_n(struct strbuf *out, const char *text, size_t length);
/* The same for text of several lines: line feeds stay. */
void escape_lines(struct strbuf *out, const char *text);
/*
 * A file's name as a word of a shell's command line, to be copied and pasted: plain, and quoted
 * where the shell would see more than a name.
 */
void escape_shell(struct strbuf *out, const char *name);
/* For a pattern of glob(3): what means more than itself there has a backslash before it. */
void escape_glob(struct strbuf *out, const char *path);
/* For XML text and attributes: plain, and & < > " ' as entities. */
void escape_xml(struct strbuf *out, const char *text);
/* For a frame in a folded stack: plain, and ';' as \x3b. */
void escape_folded(struct strbuf *out, const char *text);
/*
 * For a field of RFC 4180: plain, and quoted where needed. What begins as a formula does in a
 * spreadsheet (= + - @) gets ' in front of it.
 */
void escape_csv(struct strbuf *out, const char *text);
