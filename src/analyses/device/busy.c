/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/busy.h"

#include <stdlib.h>

int device_busy_add(struct device_busy *busy, const struct model_launched *work, uint32_t row,
	uint64_t *busy_ns)
{
	/* Strings are interned: equal names are equal pointers. */
	const struct {
		const char *device;
		uint64_t row;
	} key = {work->device, row};
	uint64_t *until, start_ns;
	uint32_t id;
	int r = intern_add(&busy->keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&busy->until_ns, 0);
	if (r < 0)
		return r;
	until = &busy->until_ns.items[id];
	start_ns = MAX(work->start_ns, *until);
	if (work->end_ns > start_ns)
		*busy_ns += work->end_ns - start_ns;
	*until = MAX(*until, work->end_ns);
	return 0;
}

void device_busy_done(struct device_busy *busy)
{
	intern_done(&busy->keys);
	array_done(&busy->until_ns);
}
