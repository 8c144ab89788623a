/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names of functions and kernels. */
#pragma once

#include "base/strbuf.h"

/*
 * Appends the demangled name (Itanium C++ with and without `_Z` version suffixes such as
 * @@GLIBC_2.2.5, Rust legacy and v0), or the name unchanged when it is not mangled. Parameters are
 * shown, return types are not; std::string is short; the launch stub of a CUDA or HIP kernel is
 * named as the kernel; clones end in " [clone .cold]". The text may hold any byte that `name`
 * holds. AMD's ".kd" behind a kernel is left out.
 */
void demangle_symbol(const char *name, struct strbuf *ret_text);
