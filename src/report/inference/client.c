/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as a load generator saw them beside the server's own times: --load-results. */
#include "analyses/inference/client.h"

#include "report/inference/figures.h"
#include "report/sections.h"

static const struct report_column row_columns[] = {
	{.key = "what", .title = "Time", .kind = REPORT_TEXT},
	{.key = "seen_by",
		.title = "Seen by",
		.kind = REPORT_TEXT,
		.help = "client, server, or way: of each request the client's time less the server's"},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "mean_ns", .title = "Mean", .kind = REPORT_NS},
	{.key = "p50_ns", .title = "Median", .kind = REPORT_NS},
	{.key = "p90_ns", .title = "90 %", .kind = REPORT_NS},
	{.key = "p99_ns", .title = "99 %", .kind = REPORT_NS},
	{.key = "maximum_ns", .title = "Max", .kind = REPORT_NS},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "requests", .kind = REPORT_COUNT, .help = "that were sent"},
	{.key = "failed", .kind = REPORT_COUNT},
	{.key = "joined", .kind = REPORT_COUNT, .help = "with requests of the server"},
	{.key = "same_tokens",
		.kind = REPORT_COUNT,
		.help = "of the joined ones, with as many output tokens on both sides"},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_row(
	struct result *result, const char *what, const char *seen_by, const struct spread *spread)
{
	if (!spread->count)
		return;
	result_text(result, what);
	result_text(result, seen_by);
	result_u64(result, spread->count);
	result_number(result, spread->mean);
	result_number(result, spread->p50);
	result_number(result, spread->p90);
	result_number(result, spread->p99);
	result_number(result, spread->maximum);
}

static uint32_t add_rows(struct result *result, const struct client_use *use)
{
	uint32_t table = result_open(result);

	add_row(result, "TTFT", "client", &use->client_ttft);
	add_row(result, "TTFT", "server", &use->server_ttft);
	add_row(result, "TTFT", "way", &use->way_ttft);
	add_row(result, "E2E", "client", &use->client_e2e);
	add_row(result, "E2E", "server", &use->server_e2e);
	add_row(result, "ITL", "client", &use->client_itl);
	add_row(result, "ITL", "server", &use->server_itl);
	result_close(result);
	return table;
}

static void say(struct result *result, const struct client_use *use)
{
	result_sentencef(result, 0,
		"%llu of %llu requests that were sent are joined with the server's, in the order in "
		"which they began; %llu of them have as many output tokens on both sides. %llu "
		"failed. The way is what lies between the client and the engine: network, HTTP, "
		"text made tokens, and tokens made text.",
		(unsigned long long)use->joined, (unsigned long long)use->requests,
		(unsigned long long)use->same_tokens, (unsigned long long)use->failed);
	if (use->same_tokens * 2 < use->joined)
		result_sentence(result, 0,
			"Most of them differ in their tokens: the result may be of another run.");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	struct client_use use;
	uint32_t table;
	int r;

	if (!view->client)
		return report_nothing(result, input,
			"No result of a load generator was given: --load-results FILE.");
	r = client_use_init(&use, view->client, view->inference);
	if (r < 0)
		return r;
	result_open(result);
	result_u64(result, use.requests);
	result_u64(result, use.failed);
	result_u64(result, use.joined);
	result_u64(result, use.same_tokens);
	table = add_rows(result, &use);
	result_close(result);
	result_heading(result, "Requests as the client saw them");
	result_show(result, table, &(struct result_show){0});
	say(result, &use);
	return 0;
}

const struct report_section client_section = {
	.value = {.key = "client", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "client",
	.summary = "requests as a load generator saw them, beside the server's times",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
