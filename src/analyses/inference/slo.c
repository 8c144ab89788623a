/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/slo.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"

#define MLPERF "mlperf:"

/* Of MLPerf Inference's rules, for the server scenario and the interactive one: 99 % of the
 * requests must keep these. */
static const struct {
	const char *name;
	uint32_t ttft_ms, tpot_ms;
} presets[] = {
	{"llama2-70b", 2000, 200},
	{"llama2-70b-interactive", 450, 40},
	{"llama3.1-8b", 2000, 100},
	{"llama3.1-8b-interactive", 500, 30},
	{"llama3.1-405b", 6000, 175},
	{"llama3.1-405b-interactive", 4500, 80},
	{"deepseek-r1", 2000, 80},
	{"deepseek-r1-interactive", 1500, 15},
	{"gpt-oss-120b", 3000, 80},
	{"gpt-oss-120b-interactive", 2000, 20},
};

static int parse_preset(struct inference_slo *slo, const char *name, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf names = {0};

	for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
		if (strcmp(presets[i].name, name) == 0) {
			slo->limits_ns[INFERENCE_TTFT] = presets[i].ttft_ms * NS_PER_MS;
			slo->limits_ns[INFERENCE_TPOT] = presets[i].tpot_ms * NS_PER_MS;
			return 0;
		}
		strbuf_addf(&names, "%s%s", i ? ", " : "", presets[i].name);
	}
	return errmsg_set(err, -EINVAL, "--slo " MLPERF "%.64s is not known; there are %s", name,
		strbuf_cstr(&names));
}

/* The end of "50ms" at `text`; NULL: it is no duration. */
static const char *parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
	char *end;
	double value;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return NULL;
	value = strtod(text, &end);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t length = strlen(units[i].unit);

		if (strncmp(end, units[i].unit, length) != 0 || (end[length] && end[length] != ','))
			continue;
		value *= units[i].ns;
		if (!(value >= 1 && value < 1e18))
			return NULL;
		*ret_ns = (uint64_t)(value + 0.5);
		return end + length;
	}
	return NULL;
}

/* One "ttft=200ms"; moves past it. */
static int parse_limit(struct inference_slo *slo, const char **text, struct errmsg *err)
{
	const char *equals = strchr(*text, '='), *end;
	size_t length = equals ? (size_t)(equals - *text) : strcspn(*text, ",");
	enum inference_metric metric = inference_metric_from_string(*text, length);
	uint64_t limit_ns = 0;

	if (!equals || metric < 0)
		return errmsg_set(err, -EINVAL,
			"--slo '%.64s' names no limit: give ttft, ttst, tpot (or itl), e2e, queue, "
			"prefill or decode with a duration, such as ttft=200ms,tpot=50ms, or a "
			"limit of MLPerf's, such as " MLPERF "llama2-70b",
			*text);
	end = parse_duration(equals + 1, &limit_ns);
	if (!end)
		return errmsg_set(err, -EINVAL,
			"--slo '%.64s' has no duration: give a number and ns, us, ms or s, such as "
			"%s=200ms",
			*text, inference_metric_to_string(metric));
	if (slo->limits_ns[metric])
		return errmsg_set(err, -EINVAL, "--slo gives %s twice: leave one out",
			inference_metric_to_string(metric));
	slo->limits_ns[metric] = limit_ns;
	*text = end;
	return 0;
}

int inference_slo_parse(struct inference_slo *ret_slo, const char *text, struct errmsg *err)
{
	struct inference_slo slo = {0};
	int r;

	if (strncmp(text, MLPERF, strlen(MLPERF)) == 0) {
		r = parse_preset(&slo, text + strlen(MLPERF), err);
		text = "";
	} else {
		r = parse_limit(&slo, &text, err);
	}
	while (r == 0 && *text == ',') {
		text++;
		r = parse_limit(&slo, &text, err);
	}
	if (r == 0)
		*ret_slo = slo;
	return r;
}

static bool has_two_tokens_only(enum inference_metric metric)
{
	return metric == INFERENCE_TPOT || metric == INFERENCE_TTST;
}

int inference_slo_met(const struct inference_request *request, const struct inference_slo *slo)
{
	uint64_t time_ns;
	int met = 1;

	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		enum inference_metric metric = (enum inference_metric)i;

		if (!slo->limits_ns[i])
			continue;
		if (has_two_tokens_only(metric) && request->tokens_known && request->tokens == 1)
			continue;
		if (!inference_duration(request, metric, &time_ns))
			met = -ENODATA;
		else if (time_ns > slo->limits_ns[i])
			return 0;
	}
	return met;
}

struct inference_goodput inference_goodput_of(
	const struct inference *inference, const struct inference_slo *slo)
{
	struct inference_goodput goodput = {.requests_per_s = NAN, .share = NAN};

	array_foreach (&inference->requests, request) {
		int met = inference_slo_met(request, slo);

		goodput.judged += met >= 0;
		goodput.met += met > 0;
		goodput.unjudged += met < 0;
	}
	if (goodput.judged)
		goodput.share = (double)goodput.met / (double)goodput.judged;
	if (goodput.judged && inference->span_ns)
		goodput.requests_per_s =
			(double)goodput.met * NS_PER_S / (double)inference->span_ns;
	return goodput;
}
