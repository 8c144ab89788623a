/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Keeps the regular files of a cache folder below `max_bytes`: where they have more together, those
 * that were not used for the longest go, until a quarter of it is free. Whoever reads one of them
 * meanwhile keeps it. Folders and links are left as they are. Returns 0 or a negative errno.
 */
int cache_limit(const char *path, uint64_t max_bytes);
