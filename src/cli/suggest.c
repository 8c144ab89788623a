/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include <string.h>

#include "base/macros.h"

#define WORD_MAX 40

/*
 * Edits (insert, delete, replace, swap of neighbours) from one word to the other; both at most
 * WORD_MAX long. Optimal string alignment over three rows.
 */
static unsigned edit_distance(const char *left, const char *right)
{
	unsigned rows[3][WORD_MAX + 1];
	size_t width = strlen(right);
	unsigned *before = rows[0], *previous = rows[1], *current = rows[2];

	for (size_t column = 0; column <= width; column++)
		previous[column] = (unsigned)column;
	for (size_t row = 1; row <= strlen(left); row++) {
		unsigned *recycled = before;

		current[0] = (unsigned)row;
		for (size_t column = 1; column <= width; column++) {
			unsigned replace = left[row - 1] != right[column - 1];
			unsigned best = MIN(previous[column], current[column - 1]) + 1;

			best = MIN(best, previous[column - 1] + replace);
			if (row > 1 && column > 1 && left[row - 1] == right[column - 2] &&
				left[row - 2] == right[column - 1])
				best = MIN(best, before[column - 2] + 1);
			current[column] = best;
		}
		before = previous;
		previous = current;
		current = recycled;
	}
	return previous[width];
}

void suggestion_offer(struct suggestion *suggestion, const char *candidate)
{
	size_t length = strlen(suggestion->word);
	unsigned distance, limit;

	if (length == 0 || length > WORD_MAX || strlen(candidate) > WORD_MAX)
		return;
	if (length >= 3 && strncmp(candidate, suggestion->word, length) == 0) {
		distance = 1; /* an abbreviation */
	} else {
		distance = edit_distance(suggestion->word, candidate);
		limit = MAX(1U, (unsigned)length / 3);
		if (distance > limit || distance >= length)
			return;
	}
	if (suggestion->best && suggestion->best_distance <= distance)
		return;
	suggestion->best = candidate;
	suggestion->best_distance = distance;
}
