/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the calls of libsonde-inject.so, for libsonde and the Python extension. */
#pragma once

#include "wire/api.h"

/*
 * The calls of the session that `sonde record` named in the environment; NULL: none. Looks once;
 * any thread. Keeps errno.
 */
const struct wire_api *api_calls(void);
/*
 * The calls of the session in this folder, which may have begun after the program: the library is
 * $SONDE_LIBRARY, or the one that the folder names. NULL: there is no session of this user there,
 * or another one is open. Keeps errno.
 */
const struct wire_api *api_open_session(const char *path);
