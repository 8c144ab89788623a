/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --time and --step. */
#include "analyses/selection.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Reads one end of a range, nanoseconds; an empty one leaves *ret_ns. Returns the end, or NULL. */
static const char *parse_seconds(const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds;

	if (!isdigit((unsigned char)*text))
		return text;
	/* A number's own dot must not eat the dots of the range: "1..2" is 1 and 2. */
	seconds = (double)strtoull(text, &end, 10);
	if (end[0] == '.' && isdigit((unsigned char)end[1]))
		seconds = strtod(text, &end);
	if (!isfinite(seconds) || seconds > 1e9)
		return NULL;
	*ret_ns = (uint64_t)(seconds * NS_PER_S + 0.5);
	return end;
}

int selection_parse_time(
	const char *text, uint64_t *ret_start_ns, uint64_t *ret_end_ns, struct errmsg *err)
{
	uint64_t start = 0, end = UINT64_MAX;
	const char *cursor = parse_seconds(text, &start);

	if (cursor && strncmp(cursor, "..", 2) == 0)
		cursor = parse_seconds(cursor + 2, &end);
	else if (cursor && *cursor == '-')
		cursor = parse_seconds(cursor + 1, &end);
	else
		cursor = NULL;
	if (!cursor || *cursor || start > end)
		return errmsg_set(err, -EINVAL,
			"--time '%.100s' is not a range of time: give START..END in seconds since "
			"the recording began, such as 1.5..4, 10.. or ..2",
			text);
	*ret_start_ns = start;
	*ret_end_ns = end;
	return 0;
}

static const char *parse_number(const char *text, uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return errno ? NULL : end;
}

int selection_parse_steps(const char *text, struct selection_steps *ret_steps, struct errmsg *err)
{
	struct selection_steps steps = {0};
	const char *cursor = parse_number(text, &steps.first);

	steps.last = steps.first;
	if (cursor && *cursor == '-')
		cursor = parse_number(cursor + 1, &steps.last);
	if (!cursor || *cursor || steps.first > steps.last)
		return errmsg_set(err, -EINVAL,
			"--step '%.100s' is no step: give a number, or the first and the last one, "
			"such as 7 or 7-12",
			text);
	*ret_steps = steps;
	return 0;
}

int selection_no_step(const char *text, uint64_t lowest, uint64_t highest, struct errmsg *err)
{
	if (lowest > highest)
		return errmsg_set(err, -ENODATA,
			"--step %.100s: there are no steps; sonde.step() and the step() of "
			"PyTorch's profiler make them",
			text);
	return errmsg_set(err, -ENODATA,
		"--step %.100s: there is no such step; there are %llu to %llu", text,
		(unsigned long long)lowest, (unsigned long long)highest);
}
