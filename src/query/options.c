/* SPDX-License-Identifier: Apache-2.0 */
#include "query/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyses/device/communication.h"
#include "report/section.h"

const char *const yes_no_choices[] = {"yes", "no", NULL};
const char *const weight_choices[] = {
	"cpu", "wait", "wall", "gpu", "gpu-idle", "gpu-bytes", "cpu+gpu", "energy", NULL};
const char *const stack_choices[] = {"all", "user", "kernel", "modules", NULL};
const char *const sort_choices[] = {"self", "total", NULL};
const char *const roots_choices[] = {"none", "process", "thread", NULL};

/* ---- values ---- */

static void *value_of(struct query_options *options, const struct query_key *key)
{
	return (char *)options + key->offset;
}

static int set_text(struct query_options *options, const struct query_key *key, const char *value)
{
	char *copy = strdup(value);
	int r = copy ? array_append(&options->texts, copy) : -ENOMEM;

	if (r < 0) {
		free(copy);
		return r;
	}
	*(const char **)value_of(options, key) = copy;
	return 0;
}

static int set_choice(struct query_options *options, const struct query_key *key, const char *value,
	struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf words = {0};

	for (const char *const *choice = key->choices; *choice; choice++) {
		if (strcmp(*choice, value) == 0) {
			*(const char **)value_of(options, key) = *choice;
			return 0;
		}
		strbuf_addf(&words, "%s%s", words.length ? ", " : "", *choice);
	}
	return errmsg_set(err, -EINVAL, "%s cannot be '%.64s': it is one of %s", key->name, value,
		strbuf_cstr(&words));
}

static int refuse_number(const struct query_key *key, const char *value, struct errmsg *err)
{
	return errmsg_set(err, -EINVAL, "%s cannot be '%.64s': it is a number from %g to %g",
		key->name, value, key->minimum, key->maximum);
}

static int set_number(struct query_options *options, const struct query_key *key, const char *value,
	struct errmsg *err)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end || errno || (double)number < key->minimum ||
		(double)number > key->maximum)
		return refuse_number(key, value, err);
	*(uint64_t *)value_of(options, key) = number;
	return 0;
}

static int set_real(struct query_options *options, const struct query_key *key, const char *value,
	struct errmsg *err)
{
	char *end;
	double number = strtod(value, &end);

	if (value[0] < '0' || value[0] > '9' || *end || !isfinite(number) ||
		number < key->minimum || number > key->maximum)
		return refuse_number(key, value, err);
	*(double *)value_of(options, key) = number;
	return 0;
}

static int set_flag(struct query_options *options, const struct query_key *key, const char *value,
	struct errmsg *err)
{
	static const struct {
		const char *word;
		bool flag;
	} words[] = {{"", true}, {"1", true}, {"true", true}, {"yes", true}, {"0", false},
		{"false", false}, {"no", false}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(value, words[i].word) == 0) {
			*(bool *)value_of(options, key) = words[i].flag;
			return 0;
		}
	}
	return errmsg_set(
		err, -EINVAL, "%s cannot be '%.64s': it is true or false", key->name, value);
}

static int set_by(struct query_options *options, const struct query_key *key, const char *value,
	struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf words = {0};
	struct report_name names[REPORT_NAMES_MAX];
	size_t count = report_section_names(names, REPORT_NAMES_MAX);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i].by, value) == 0)
			return set_text(options, key, value);
		strbuf_addf(&words, "%s%s", i ? ", " : "", names[i].by);
	}
	return errmsg_set(err, -EINVAL, "%s cannot be '%.64s': it is one of %s", key->name, value,
		strbuf_cstr(&words));
}

static const struct query_key *key_of(const char *name)
{
	for (const struct query_key *key = query_keys; key->name; key++) {
		if (strcmp(key->name, name) == 0)
			return key;
	}
	return NULL;
}

static int refuse_key(const char *name, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf words = {0};

	for (const struct query_key *key = query_keys; key->name; key++)
		strbuf_addf(&words, "%s%s", words.length ? ", " : "", key->name);
	return errmsg_set(err, -EINVAL, "'%.64s' cannot be asked for: what can is %s", name,
		strbuf_cstr(&words));
}

static int set_value(struct query_options *options, const struct query_key *key, const char *value,
	struct errmsg *err)
{
	switch (key->type) {
	case QUERY_KEY_CHOICE:
		return set_choice(options, key, value, err);
	case QUERY_KEY_NUMBER:
		return set_number(options, key, value, err);
	case QUERY_KEY_REAL:
		return set_real(options, key, value, err);
	case QUERY_KEY_FLAG:
		return set_flag(options, key, value, err);
	default:
		return key->offset == offsetof(struct query_options, by)
			       ? set_by(options, key, value, err)
			       : set_text(options, key, value);
	}
}

int query_options_set(
	struct query_options *options, const char *key, const char *value, struct errmsg *err)
{
	const struct query_key *known = key_of(key);
	int r;

	if (!known)
		return refuse_key(key, err);
	if (strlen(value) > QUERY_VALUE_MAX)
		return errmsg_set(err, -EINVAL, "%s is longer than %d bytes: shorten it",
			known->name, QUERY_VALUE_MAX);
	r = set_value(options, known, value, err);
	return r == -ENOMEM ? errmsg_set(err, r, "memory ran out") : r;
}

int query_options_parse(struct query_options *options, struct errmsg *err)
{
	int r = 0;

	if (options->comm_kernels)
		r = communication_add_names(options->comm_kernels, err);
	if (r == 0 && options->slo_text)
		r = inference_slo_parse(&options->slo, options->slo_text, err);
	if (r == 0 && options->peak_text)
		r = peaks_parse(&options->peaks, options->peak_text, err);
	if (r == 0 && options->price)
		r = energy_rates_parse_price(&options->rates, options->price, err);
	if (r == 0 && options->co2)
		r = energy_rates_parse_co2(&options->rates, options->co2, err);
	return r;
}

void query_options_done(struct query_options *options)
{
	array_foreach (&options->texts, text)
		free(*text);
	array_done(&options->texts);
}

/* ---- the table ---- */

#define OPTION_AT(field) .offset = offsetof(struct query_options, field)

const struct query_key query_keys[] = {
	{"by", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(by),
		.help = "The section of the report, such as function, line, idle, step."},
	{"sort", QUERY_KEY_CHOICE, QUERY_KEY_REPORT, OPTION_AT(sort), .choices = sort_choices,
		.help = "Order of tables of samples: by time in the function itself, or in total."},
	{"limit", QUERY_KEY_NUMBER, QUERY_KEY_LIMIT, OPTION_AT(limit), 1, 1e9,
		.help = "How many rows at most."},
	{"slo", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(slo_text),
		.help = "Limits of requests, such as ttft=200ms,tpot=50ms."},
	{"price", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(price),
		.help = "The price of energy, such as 0.25/kWh."},
	{"co2", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(co2),
		.help = "The carbon intensity of energy, such as 400g/kWh."},
	{"comm-kernels", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(comm_kernels),
		.help = "Kernels with this pattern in their names also count as communication."},
	{"peak", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(peak_text),
		.help = "What the device can do at most, such as tflops=312,tbps=2.0."},
	{"rank", QUERY_KEY_NUMBER, QUERY_KEY_REPORT, OPTION_AT(rank), 0, 1e9,
		.help = "Only the trace of this rank."},
	{"hta-compatible", QUERY_KEY_FLAG, QUERY_KEY_REPORT, OPTION_AT(hta_compatible),
		.help = "The figures of Holistic Trace Analysis."},
	{"include-last-step", QUERY_KEY_FLAG, QUERY_KEY_REPORT, OPTION_AT(keep_last_step),
		.help = "With hta-compatible: keep the last profiler step."},
	{"drop-last-step", QUERY_KEY_FLAG, QUERY_KEY_REPORT, OPTION_AT(drop_last_step),
		.help = "Leave out the last profiler step and its work."},
	{"annotation", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(choice.annotation),
		.help = "With by critical-path: the windows are annotations whose names begin so."},
	{"instance", QUERY_KEY_NUMBER, QUERY_KEY_REPORT, OPTION_AT(choice.instance), 0, 1e9,
		.help = "With by critical-path: only the annotation of this number."},
	{"operator", QUERY_KEY_TEXT, QUERY_KEY_REPORT, OPTION_AT(choice.op),
		.help = "With by sequences: operators whose names contain this."},
	{"weight", QUERY_KEY_CHOICE, QUERY_KEY_STACKS, OPTION_AT(shown.weight),
		.choices = weight_choices, .help = "What stacks are weighed by."},
	{"stacks", QUERY_KEY_CHOICE, QUERY_KEY_STACKS, OPTION_AT(shown.stacks),
		.choices = stack_choices,
		.help = "Which frames: all, of programs, of the kernel, or modules of the model "
			"with operators and kernels."},
	{"fold-libraries", QUERY_KEY_CHOICE, QUERY_KEY_STACKS, OPTION_AT(shown.fold_libraries),
		.choices = yes_no_choices,
		.help = "Charge what libraries do to the line of the user's code that called them."},
	{"show-interpreter", QUERY_KEY_FLAG, QUERY_KEY_STACKS, OPTION_AT(shown.interpreter),
		.help = "Show the own functions of the Python interpreter and of sonde."},
	{"process", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.process),
		.help = "Only processes with this pid, or this pattern in their names."},
	{"thread", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.thread),
		.help = "Only threads with this tid, or this pattern in their names."},
	{"time", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.time),
		.help = "Only this time, START..END in seconds since the recording began."},
	{"step", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.step),
		.help = "Only the step of this number, or N-M."},
	{"window", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.window),
		.help = "Only these windows of the recording, such as 1,3-5."},
	{"range", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.range),
		.help = "Only work in NVTX ranges with this pattern in their names."},
	{"symbol", QUERY_KEY_TEXT, QUERY_KEY_FILTERS, OPTION_AT(selection.symbol),
		.help = "Only samples with this pattern in a function of their stack."},
	{"roots", QUERY_KEY_CHOICE, QUERY_KEY_CALL_TREE, OPTION_AT(roots), .choices = roots_choices,
		.help = "What stacks begin with: nothing, the process, or process and thread."},
	{"min-share", QUERY_KEY_REAL, QUERY_KEY_CALL_TREE, OPTION_AT(minimum_share_percent), 0, 100,
		.help = "Leave out nodes with less than this percentage of the total."},
	{NULL},
};
