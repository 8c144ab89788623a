/* SPDX-License-Identifier: Apache-2.0 */
/* A session that nobody records: a folder with a closed gate, for what a closed window costs. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "wire/ring.h"

/* In the session's folder; false: it cannot be made there. */
static inline bool make_closed_gate(const char *folder)
{
	const struct wire_gate gate = {.magic = WIRE_GATE_MAGIC,
		.version = WIRE_RING_VERSION,
		.next_edge = WIRE_STEP_NEVER};
	int directory = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int fd = openat(directory, WIRE_GATE_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool made = fd >= 0 && write(fd, &gate, sizeof(gate)) == sizeof(gate);

	if (fd >= 0)
		close(fd);
	if (directory >= 0)
		close(directory);
	return made;
}
