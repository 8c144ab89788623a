/* SPDX-License-Identifier: Apache-2.0 */
/* The executable mappings of a living process, read from /proc/PID/maps by ioctl or by text. */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/strbuf.h"
#include "elf/elf_file.h"

struct proc_mapping {
	uint64_t start, end, file_offset;
	uint64_t device, inode;   /* as of stat(2); 0: no file */
	struct build_id build_id; /* length 0: unknown */
	size_t name_offset;       /* in proc_maps.names: path, "[vdso]", "" … */
};

/* Zero-initialise; sorted by start. */
struct proc_maps {
	ARRAY_OF(struct proc_mapping) mappings;
	struct strbuf names;
};

/*
 * Replaces `maps` by what the process has now. `tid` is one of its threads (a leader that ended has
 * no maps). By ioctl where the kernel has PROCMAP_QUERY (6.11), else by text. Returns 0, also for
 * kernel threads, which have none, or a negative errno: -ESRCH when the process is gone.
 */
int proc_maps_read(struct proc_maps *maps, uint32_t tid);
/* One way only; -ENOTTY when the kernel has no such ioctl. */
int proc_maps_read_by_query(struct proc_maps *maps, uint32_t tid);
int proc_maps_read_by_text(struct proc_maps *maps, uint32_t tid);
/* The executable ones of such a text, which is overwritten; NULL is none. 0, -EBADMSG, -ENOMEM. */
int proc_maps_add_text(struct proc_maps *maps, char *text);
void proc_maps_done(struct proc_maps *maps);

static inline const char *proc_mapping_name(
	const struct proc_maps *maps, const struct proc_mapping *mapping)
{
	return maps->names.data + mapping->name_offset;
}
