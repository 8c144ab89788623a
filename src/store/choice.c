/* SPDX-License-Identifier: Apache-2.0 */
#include "store/choice.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* ---- orders ---- */

/* X(name, column, whether the least comes first) */
#define ORDERS(X)                                                                                  \
	X("time", "time_ns", false)                                                                \
	X("added", "added_ns", false)                                                              \
	X("duration", "duration_ns", true)                                                         \
	X("energy", "energy_j", true)                                                              \
	X("joules-per-token", "joules_per_token", true)                                            \
	X("tokens-per-s", "tokens_per_s", false)                                                   \
	X("ttft", "ttft_p50_ns", true)                                                             \
	X("tpot", "tpot_p50_ns", true)                                                             \
	X("step", "step_p50_ns", true)                                                             \
	X("gpu-busy", "gpu_busy_share", false)                                                     \
	X("batch-size", "batch_size", true)                                                        \
	X("model", "model", true)                                                                  \
	X("experiment", "experiment", true)

static const struct {
	const char *name, *column;
	bool rising;
} orders[] = {
#define ORDER(name, column, rising) {name, column, rising},
	ORDERS(ORDER)
#undef ORDER
};

const char *const store_order_names[] = {
#define NAME(name, column, rising) name,
	ORDERS(NAME)
#undef NAME
		NULL};

int store_order_choose(struct store_order *order, const char *name, bool is_reversed)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (strcmp(orders[i].name, name ? name : "time") == 0) {
			order->column = orders[i].column;
			order->rising = orders[i].rising != is_reversed;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- times ---- */

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

int store_time_parse(const char *what, const char *text, int64_t *ret_ns, struct errmsg *err)
{
	if (!text || !*text || parse_date(text, ret_ns) == 0)
		return 0;
	return errmsg_set(err, -EINVAL,
		"%s '%.60s' is no date: write 2026-11-23, 2026-11-23T14:30, or 7d for seven days "
		"ago",
		what, text);
}

/* ---- rates ---- */

int store_rates_parse(
	const char *price, const char *co2, struct energy_rates *ret_rates, struct errmsg *err)
{
	struct energy_rates rates = ENERGY_RATES_NONE;
	int r = 0;

	if (price && *price)
		r = energy_rates_parse_price(&rates, price, err);
	if (r == 0 && co2 && *co2)
		r = energy_rates_parse_co2(&rates, co2, err);
	if (r == 0)
		*ret_rates = rates;
	return r;
}
