/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cli/output.h"
#include "cli/runs/runs.h"
#include "store/choice.h"

int runs_choose(struct runs_choice *choice, struct errmsg *err)
{
	int r = store_time_parse("--since", choice->since, &choice->filter.since_ns, err);

	choice->filter.tags = choice->tags.values;
	choice->filter.tag_count = choice->tags.count;
	return r < 0 ? r
		     : store_time_parse("--until", choice->until, &choice->filter.until_ns, err);
}

int runs_check_form(const struct runs_form *form, struct errmsg *err)
{
	if (form->json && form->csv)
		return errmsg_set(err, -EINVAL, "--csv and --json exclude each other: give one");
	return 0;
}

int runs_print(const struct result *result, const struct runs_form *form)
{
	struct errmsg err;
	int r = output_result(result, form->json  ? REPORT_FORM_JSON
				      : form->csv ? REPORT_FORM_CSV
						  : REPORT_FORM_TERMINAL);

	if (r == 0)
		return EXIT_OK;
	errmsg_set(&err, r, "memory ran out while writing");
	return fail(&err);
}
