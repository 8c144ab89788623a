/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word that is nearest to a misspelt one. */
#pragma once

struct suggestion {
	const char *word; /* what was typed */
	const char *best; /* the nearest word offered so far that is near enough; NULL: none */
	unsigned best_distance;
};

/* Start with `struct suggestion s = {.word = typed}` and offer every word that would have been
 * right. */
void suggestion_offer(struct suggestion *suggestion, const char *candidate);
