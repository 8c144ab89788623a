/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping one process's mappings sorted and free of overlaps while telling the listener what
 * changed. */
#pragma once

#include "sources/process/address_space.h"

/*
 * Maps over whatever was there: older mappings are removed, or cut where they only overlap. Mapping
 * the same again changes nothing and tells nothing. Returns 0 or -ENOMEM.
 */
int mapping_list_map(struct process *process, const struct mapping *mapping,
	const struct address_space_listener *listener);
/* Applies the differences to `mappings`, which are sorted and do not overlap. */
int mapping_list_replace(struct process *process, const struct mapping *mappings, size_t count,
	const struct address_space_listener *listener);
/* The child, which has none, gets the parent's mappings. */
int mapping_list_fork(struct process *child, const struct process *parent,
	const struct address_space_listener *listener);
/* Removes all and tells process_cleared. */
void mapping_list_clear(struct process *process, const struct address_space_listener *listener);
