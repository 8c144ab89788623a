/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that sonde's C does not use, made compile errors (but not in tests and benchmarks,
 * which define SONDE_TEST). The build includes this header first in every C file; the headers that
 * declare the functions must come before they are poisoned. What to use instead:
 *
 * - strcpy, strcat, sprintf: strbuf_add(), strbuf_addf(), snprintf()
 * - strncpy, strncat: the same; they leave no terminator, or write more than one thinks
 * - strtok: strcspn(), strsep()
 * - atoi, atol, atof: strtol(), strtod() with a look at where they stopped
 * - gets, tmpnam, tempnam, mktemp: fgets(), mkostemp()
 * - strdupa, strndupa: strdup() with _cleanup_free_ (-Walloca finds alloca)
 * - popen: fork() and execve()
 * - asctime, ctime, localtime, gmtime: localtime_r(), gmtime_r(), strftime()
 */
#pragma once

#ifndef SONDE_TEST

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Some C libraries have macros of these names. */
#undef sprintf
#undef vsprintf
#undef strdupa
#undef strndupa

#pragma GCC poison strcpy strcat sprintf vsprintf gets
#pragma GCC poison strncpy strncat
#pragma GCC poison strtok
#pragma GCC poison atoi atol atoll atof
#pragma GCC poison tmpnam tempnam mktemp
#pragma GCC poison strdupa strndupa
#pragma GCC poison popen
#pragma GCC poison asctime asctime_r ctime ctime_r localtime gmtime

#endif
