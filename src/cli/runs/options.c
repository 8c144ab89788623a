/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/output.h"
#include "cli/runs/runs.h"

static int parse_days(const char *text, int64_t *ret_ns)
{
	char *end;
	long days = strtol(text, &end, 10);

	if (end == text || strcmp(end, "d") != 0 || days < 0 || days > 100000)
		return -EINVAL;
	*ret_ns = ((int64_t)time(NULL) - (int64_t)days * 24 * 3600) * (int64_t)NS_PER_S;
	return 0;
}

static int parse_date(const char *text, int64_t *ret_ns)
{
	struct tm parts = {.tm_isdst = -1};
	const char *end = strptime(text, "%Y-%m-%d", &parts);
	time_t seconds;

	if (end && (*end == 'T' || *end == ' ')) {
		const char *minutes = strptime(end + 1, "%H:%M", &parts);

		end = minutes && *minutes == ':' ? strptime(minutes + 1, "%S", &parts) : minutes;
	}
	if (!end || *end)
		return parse_days(text, ret_ns);
	seconds = mktime(&parts);
	if (seconds <= 0 || seconds > INT64_MAX / (int64_t)NS_PER_S)
		return -EINVAL;
	*ret_ns = (int64_t)seconds * (int64_t)NS_PER_S;
	return 0;
}

static int parse_time(const char *option, const char *text, int64_t *ret_ns, struct errmsg *err)
{
	if (!text || parse_date(text, ret_ns) == 0)
		return 0;
	return errmsg_set(err, -EINVAL,
		"--%s '%.60s' is no date: write 2026-11-23, 2026-11-23T14:30, or 7d for seven days "
		"ago",
		option, text);
}

int runs_choose(struct runs_choice *choice, struct errmsg *err)
{
	int r = parse_time("since", choice->since, &choice->filter.since_ns, err);

	choice->filter.tags = choice->tags.values;
	choice->filter.tag_count = choice->tags.count;
	return r < 0 ? r : parse_time("until", choice->until, &choice->filter.until_ns, err);
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
