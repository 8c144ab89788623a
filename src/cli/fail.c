/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/warn.h"
#include "cli/command.h"

int fail(const struct errmsg *err)
{
	/* What was printed so far belongs before the sentence, also when both go to one file. */
	fflush(stdout);
	print_sentence(err->text);
	return EXIT_ERROR;
}

int fail_usage(const struct errmsg *err)
{
	fail(err);
	return EXIT_USAGE;
}
