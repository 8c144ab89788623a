/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/vllm_bench/vllm_bench.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "importers/json_parts.h"

enum list {
	STARTS,
	TTFTS,
	ITLS,
	OUTPUTS,
	ERRORS,
	LIST_MAX,
};
static const char *const names[] = {"start_times", "ttfts", "itls", "output_lens", "errors", NULL};

/* NaN: no number, or one that no time is. */
static double ns_of(const struct json_text *seconds)
{
	char text[64], *end;
	double value;

	if (!seconds->length || seconds->length >= sizeof(text))
		return NAN;
	memcpy(text, seconds->bytes, seconds->length);
	text[seconds->length] = '\0';
	value = strtod(text, &end);
	return *end || !(value >= 0 && value < 1e10) ? NAN : value * 1e9;
}

/* Adds the gaps between a request's tokens; the sum of them is in *sum_ns. */
static int add_gaps(struct client_results *results, const struct json_text *list, double *sum_ns)
{
	struct json_reader items = json_part_begin(list);
	struct json_text item;
	int r = 0;

	while (r == 0 && json_part_next(&items, &item)) {
		double gap_ns = ns_of(&item);

		if (isnan(gap_ns))
			continue;
		*sum_ns += gap_ns;
		r = array_append(&results->gaps_ns, gap_ns);
	}
	return r;
}

/* Next items of all lists; of one that is shorter, or not there, nothing. */
static bool next_items(struct json_reader lists[LIST_MAX], struct json_text items[LIST_MAX])
{
	for (int i = 0; i < LIST_MAX; i++) {
		items[i] = (struct json_text){0};
		if (!json_part_next(&lists[i], &items[i]))
			items[i] = (struct json_text){0};
	}
	return items[TTFTS].bytes;
}

static int add_request(struct client_results *results, const struct json_text items[LIST_MAX])
{
	struct json_text error = json_text_inside(&items[ERRORS]);
	struct client_request request = {
		.start_ns = ns_of(&items[STARTS]),
		.ttft_ns = ns_of(&items[TTFTS]),
		.output_tokens = json_part_u64(&items[OUTPUTS], 0),
	};
	double gaps_ns = 0;
	int r = add_gaps(results, &items[ITLS], &gaps_ns);

	request.e2e_ns = request.ttft_ns + gaps_ns;
	request.failed = error.length || isnan(request.ttft_ns) || !request.output_tokens;
	return r < 0 ? r : array_append(&results->requests, request);
}

int vllm_bench_parse(struct client_results *ret_results, const char *path, const char *bytes,
	size_t length, struct errmsg *err)
{
	const struct json_text document = {.bytes = bytes, .length = length};
	_cleanup_client_results_ struct client_results results = {0};
	struct json_text values[LIST_MAX], items[LIST_MAX];
	struct json_reader lists[LIST_MAX];
	int r = 0;

	json_part_members(&document, names, values);
	for (int i = 0; i < LIST_MAX; i++)
		lists[i] = json_part_begin(&values[i]);
	while (r == 0 && next_items(lists, items))
		r = add_request(&results, items);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while reading %s", path);
	if (!results.requests.count)
		return errmsg_set(err, -ENODATA,
			"%s has no times of requests (ttfts): have `vllm bench serve` write them "
			"with --save-result --save-detailed",
			path);
	*ret_results = results;
	results = (struct client_results){0};
	return 0;
}
