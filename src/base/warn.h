/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where sonde speaks on standard error. */
#pragma once

/* "sonde: SENTENCE", but for what no terminal should get. */
void print_sentence(const char *text);
/* A sentence that is no failure. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* No more of those, from this process on: its answers say the same. */
void warn_no_more(void);
/* Text on standard error as it is, but for what no terminal should get. */
void print_plain(const char *format, ...) __attribute__((format(printf, 1, 2)));
