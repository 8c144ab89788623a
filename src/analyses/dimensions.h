/* SPDX-License-Identifier: Apache-2.0 */
/* What each dimension of a breakdown counts by: for breakdown.c alone. */
#pragma once

#include "analyses/cpu/breakdown.h"

/*
 * The key of each frame (function, module, line) or of each sample (the others), and how many keys
 * there are. MODEL_NONE as key of a sample: without a stack. Returns 0 or -ENOMEM; free *ret_keys.
 */
struct dimension {
	const char *name;
	bool by_frame; /* keys of frames: self and total differ */
	int (*keys)(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
		size_t *ret_key_count);
	/* What rows with equal samples are ordered by; NULL: by key. */
	const char *(*name_of)(
		const struct breakdown *breakdown, const struct model *model, uint32_t key);
};

extern const struct dimension dimensions[BREAKDOWN_MAX];
