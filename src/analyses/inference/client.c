/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/client.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Places of a sequence that are compared by tokens: a server may have had millions of requests. */
#define COMPARED_MAX 20000000ULL

struct joining {
	const struct client_request **sent; /* by start */
	const struct inference_request **arrived;
	size_t sent_count, arrived_count;
};

static int by_start(const void *left, const void *right)
{
	const struct client_request *a = *(const struct client_request *const *)left;
	const struct client_request *b = *(const struct client_request *const *)right;

	if (a->start_ns < b->start_ns || a->start_ns > b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a < b ? -1 : a > b; /* also where starts are not said */
}

static int by_arrival(const void *left, const void *right)
{
	const struct inference_request *a = *(const struct inference_request *const *)left;
	const struct inference_request *b = *(const struct inference_request *const *)right;
	uint64_t a_ns = inference_begin_ns(a), b_ns = inference_begin_ns(b);

	if (a_ns != b_ns)
		return a_ns < b_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int joining_init(struct joining *joining, const struct client_results *results,
	const struct inference *inference)
{
	joining->sent = calloc(results->requests.count + 1, sizeof(*joining->sent));
	joining->arrived = calloc(inference->requests.count + 1, sizeof(*joining->arrived));
	if (!joining->sent || !joining->arrived)
		return -ENOMEM;
	array_foreach (&results->requests, request)
		joining->sent[joining->sent_count++] = request;
	array_foreach (&inference->requests, request) {
		if (inference_begin_ns(request))
			joining->arrived[joining->arrived_count++] = request;
	}
	qsort(joining->sent, joining->sent_count, sizeof(*joining->sent), by_start);
	qsort(joining->arrived, joining->arrived_count, sizeof(*joining->arrived), by_arrival);
	return 0;
}

static void joining_done(struct joining *joining)
{
	free(joining->sent);
	free(joining->arrived);
}

static bool has_same_tokens(
	const struct client_request *sent, const struct inference_request *arrived)
{
	return !sent->failed && arrived->tokens_known &&
	       sent->output_tokens == arrived->output_tokens;
}

/* How many of the server's requests came before the first that was sent. */
static size_t find_place(const struct joining *joining)
{
	size_t sent = joining->sent_count, places, best = 0, most = 0;

	if (joining->arrived_count <= sent)
		return 0;
	places = joining->arrived_count - sent + 1;
	places = MIN(places, (size_t)(COMPARED_MAX / (sent + 1) + 1));
	for (size_t place = 0; place < places; place++) {
		size_t same = 0;

		for (size_t i = 0; i < sent; i++)
			same += has_same_tokens(joining->sent[i], joining->arrived[place + i]);
		if (same > most) {
			most = same;
			best = place;
		}
	}
	return best;
}

/* ---- figures ---- */

struct values {
	struct spread_values client_ttft, server_ttft, way_ttft, client_e2e, server_e2e, client_itl;
};

static void values_done(struct values *values)
{
	array_done(&values->client_ttft.items);
	array_done(&values->server_ttft.items);
	array_done(&values->way_ttft.items);
	array_done(&values->client_e2e.items);
	array_done(&values->server_e2e.items);
	array_done(&values->client_itl.items);
}

static int add_pair(struct client_use *use, struct values *values,
	const struct client_request *sent, const struct inference_request *arrived)
{
	uint64_t ttft_ns, e2e_ns;
	int r;

	if (sent->failed || !inference_duration(arrived, INFERENCE_TTFT, &ttft_ns))
		return 0;
	use->joined++;
	use->same_tokens += has_same_tokens(sent, arrived);
	r = array_append(&values->client_ttft.items, sent->ttft_ns);
	r = r ?: array_append(&values->server_ttft.items, (double)ttft_ns);
	r = r ?: array_append(&values->way_ttft.items, sent->ttft_ns - (double)ttft_ns);
	if (r < 0 || !inference_duration(arrived, INFERENCE_E2E, &e2e_ns))
		return r;
	r = array_append(&values->client_e2e.items, sent->e2e_ns);
	return r ?: array_append(&values->server_e2e.items, (double)e2e_ns);
}

static int add_pairs(struct client_use *use, struct values *values, const struct joining *joining)
{
	size_t place = find_place(joining);
	int r = 0;

	for (size_t i = 0; r == 0 && i < joining->sent_count && place + i < joining->arrived_count;
		i++)
		r = add_pair(use, values, joining->sent[i], joining->arrived[place + i]);
	return r;
}

int client_use_init(struct client_use *use, const struct client_results *results,
	const struct inference *inference)
{
	_cleanup_(joining_done) struct joining joining = {0};
	_cleanup_(values_done) struct values values = {0};
	int r = joining_init(&joining, results, inference);

	*use = (struct client_use){
		.requests = results->requests.count, .server_itl = inference->itl};
	array_foreach (&results->requests, request)
		use->failed += request->failed;
	for (size_t i = 0; r == 0 && i < results->gaps_ns.count; i++)
		r = array_append(&values.client_itl.items, results->gaps_ns.items[i]);
	r = r ?: add_pairs(use, &values, &joining);
	if (r < 0)
		return r;
	use->client_ttft = spread_of_times(&values.client_ttft);
	use->server_ttft = spread_of_times(&values.server_ttft);
	use->way_ttft = spread_of_times(&values.way_ttft);
	use->client_e2e = spread_of_times(&values.client_e2e);
	use->server_e2e = spread_of_times(&values.server_e2e);
	use->client_itl = spread_of_times(&values.client_itl);
	return 0;
}
