/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/windows/spec.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Of a word of the user's, in a sentence. */
#define SHOWN_MAX 60

/* Digits only, up to the first other character; false: none, or more than the limit. */
static bool read_count(const char **text, __u64 *ret_value)
{
	const char *at = *text;
	__u64 value = 0;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (__u64)(*at - '0');
		if (value > WINDOW_MAX_STEPS)
			return false;
	}
	*text = at;
	*ret_value = value;
	return true;
}

/* ---- steps ---- */

static int bad_step(const char *what, struct errmsg *err)
{
	return errmsg_set(err, -EINVAL,
		"--window steps takes wait, warmup, active and repeat, each a whole number up to "
		"%llu, not '%.*s'; try --window steps:wait=1,warmup=1,active=3,repeat=1",
		WINDOW_MAX_STEPS, SHOWN_MAX, what);
}

static int parse_steps(struct window_spec *spec, const char *text, struct errmsg *err)
{
	struct wire_schedule *schedule = &spec->schedule;
	struct {
		const char *name;
		__u64 *value;
		bool is_given;
	} numbers[] = {
		{"wait", &schedule->wait, false},
		{"warmup", &schedule->warmup, false},
		{"active", &schedule->active, false},
		{"repeat", &schedule->repeat, false},
	};

	*schedule = (struct wire_schedule){
		.kind = WIRE_SCHEDULE_STEPS, .wait = 1, .warmup = 1, .active = 3, .repeat = 1};
	while (*text) {
		const char *begin = text;
		size_t length = strcspn(text, "="), i = 0;
		__u64 value;

		while (i < ARRAY_SIZE(numbers) &&
			(strlen(numbers[i].name) != length ||
				strncmp(text, numbers[i].name, length) != 0))
			i++;
		text += length + (text[length] == '=');
		if (i == ARRAY_SIZE(numbers) || numbers[i].is_given || !read_count(&text, &value) ||
			(*text && *text != ',') || (*text == ',' && !text[1]))
			return bad_step(begin, err);
		*numbers[i].value = value;
		numbers[i].is_given = true;
		text += *text == ',';
	}
	if (!schedule->active)
		return errmsg_set(err, -EINVAL,
			"--window steps with active=0 would record nothing; give at least "
			"active=1");
	return 0;
}

/* ---- calls ---- */

static int compare_calls(const void *left, const void *right)
{
	const struct wire_calls *a = left, *b = right;

	return a->first < b->first ? -1 : a->first > b->first;
}

static int bad_calls(const char *text, struct errmsg *err)
{
	return errmsg_set(err, -EINVAL,
		"--window calls takes ranges of calls counted from 1, up to %llu, not '%.*s'; try "
		"--window calls:500-503",
		WINDOW_MAX_STEPS, SHOWN_MAX, text);
}

static int check_calls(const struct wire_schedule *schedule, struct errmsg *err)
{
	for (uint32_t i = 1; i < schedule->interval_count; i++) {
		const struct wire_calls *before = &schedule->intervals[i - 1];
		const struct wire_calls *calls = &schedule->intervals[i];

		if (calls->first <= before->last)
			return errmsg_set(err, -EINVAL,
				"--window calls: %llu-%llu and %llu-%llu overlap; give each call "
				"once",
				(unsigned long long)before->first, (unsigned long long)before->last,
				(unsigned long long)calls->first, (unsigned long long)calls->last);
	}
	return 0;
}

static int parse_calls(struct window_spec *spec, const char *text, struct errmsg *err)
{
	struct wire_schedule *schedule = &spec->schedule;
	const char *all = text;

	schedule->kind = WIRE_SCHEDULE_CALLS;
	do {
		struct wire_calls calls;

		if (schedule->interval_count == WIRE_SCHEDULE_INTERVALS)
			return errmsg_set(err, -EINVAL,
				"--window calls takes at most %d ranges; give fewer, or record "
				"twice",
				WIRE_SCHEDULE_INTERVALS);
		if (!read_count(&text, &calls.first))
			return bad_calls(all, err);
		calls.last = calls.first;
		if (*text == '-') {
			text++;
			if (!read_count(&text, &calls.last))
				return bad_calls(all, err);
		}
		if (!calls.first || calls.last < calls.first || (*text && *text != ','))
			return bad_calls(all, err);
		schedule->intervals[schedule->interval_count++] = calls;
	} while (*text++ == ',');
	qsort(schedule->intervals, schedule->interval_count, sizeof(*schedule->intervals),
		compare_calls);
	return check_calls(schedule, err);
}

/* ---- time ---- */

/* Seconds, or with a unit; up to the first other character. */
static bool read_time(const char **text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
	size_t length = strspn(*text, "0123456789"), unit;
	double value;
	locale_t c_locale;
	char *end;

	if ((*text)[length] == '.' && (*text)[length + 1] != '.')
		length += 1 + strspn(*text + length + 1, "0123456789");
	if (!length || **text == '.')
		return false;
	c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (!c_locale)
		return false;
	value = strtod_l(*text, &end, c_locale);
	freelocale(c_locale);
	/* "10..": strtod takes the first point, too. */
	*text += length;
	length = strspn(*text, "abcdefghijklmnopqrstuvwxyz");
	for (unit = 0; length && unit < ARRAY_SIZE(units); unit++) {
		if (strlen(units[unit].name) == length &&
			strncmp(*text, units[unit].name, length) == 0)
			break;
	}
	if (unit == ARRAY_SIZE(units))
		return false;
	value *= length ? units[unit].seconds : 1;
	if (!(value <= WINDOW_MAX_S))
		return false;
	*text += length;
	*ret_ns = (uint64_t)llround(value * 1e9);
	return true;
}

static int parse_time(struct window_spec *spec, const char *text, struct errmsg *err)
{
	const char *all = text;
	bool is_good = strncmp(text, "..", 2) == 0 || read_time(&text, &spec->begin_ns);

	is_good = is_good && strncmp(text, "..", 2) == 0;
	text += is_good ? 2 : 0;
	if (is_good && *text)
		is_good = read_time(&text, &spec->end_ns) && !*text && spec->end_ns;
	if (is_good && (!spec->end_ns || spec->begin_ns < spec->end_ns))
		return 0;
	return errmsg_set(err, -EINVAL,
		"--window time takes seconds since the start, up to %g, the first before the last, "
		"not '%.*s'; try --window time:10..20, or time:10s.. until the end",
		WINDOW_MAX_S, SHOWN_MAX, all);
}

/* ---- the others ---- */

static int parse_flag(struct window_spec *spec, const char *text, struct errmsg *err)
{
	size_t length = strlen(text);

	if (!length || length >= PATH_MAX - 1 || text[length - 1] == '/')
		return errmsg_set(err, -EINVAL,
			"--window flag takes the path of a file that need not exist yet, not "
			"'%.*s'; try --window flag:/tmp/profile-now",
			SHOWN_MAX, text);
	spec->path = text;
	return 0;
}

static int parse_signal(struct window_spec *spec, const char *text, struct errmsg *err)
{
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;

	if (strcmp(name, "USR1") == 0)
		spec->signal = SIGUSR1;
	else if (strcmp(name, "USR2") == 0)
		spec->signal = SIGUSR2;
	else
		return errmsg_set(err, -EINVAL,
			"--window signal takes USR1 or USR2, not '%.*s'; try --window signal:USR2",
			SHOWN_MAX, text);
	return 0;
}

static int parse_manual(struct window_spec *spec _unused_, const char *text, struct errmsg *err)
{
	if (!*text)
		return 0;
	return errmsg_set(err, -EINVAL,
		"--window manual takes no argument, not '%.*s'; write --window manual", SHOWN_MAX,
		text);
}

int window_spec_parse(struct window_spec *spec, const char *text, struct errmsg *err)
{
	static const struct {
		const char *name;
		enum capture_window_trigger trigger;
		int (*parse)(struct window_spec *spec, const char *text, struct errmsg *err);
	} kinds[] = {
		{"flag", CAPTURE_TRIGGER_FLAG, parse_flag},
		{"steps", CAPTURE_TRIGGER_STEPS, parse_steps},
		{"calls", CAPTURE_TRIGGER_CALLS, parse_calls},
		{"time", CAPTURE_TRIGGER_TIME, parse_time},
		{"signal", CAPTURE_TRIGGER_SIGNAL, parse_signal},
		{"manual", CAPTURE_TRIGGER_MANUAL, parse_manual},
	};
	size_t length = strcspn(text, ":");
	const char *rest = text + length + (text[length] == ':');

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strlen(kinds[i].name) != length || strncmp(text, kinds[i].name, length) != 0)
			continue;
		*spec = (struct window_spec){.trigger = kinds[i].trigger, .text = text};
		return kinds[i].parse(spec, rest, err);
	}
	return errmsg_set(err, -EINVAL,
		"--window takes flag:PATH, steps:…, calls:A-B, time:START..END, signal:USR2 or "
		"manual, not '%.*s'; try --window steps:wait=1,warmup=1,active=3",
		SHOWN_MAX, text);
}

int window_spec_check_pattern(const char *pattern, struct errmsg *err)
{
	regex_t compiled;
	char reason[128];
	int error;

	if (!*pattern || strlen(pattern) >= WIRE_STEP_PATTERN_BYTES)
		return errmsg_set(err, -EINVAL,
			"--step-on takes a pattern of 1 to %d characters, not '%.*s'; try "
			"--step-on '^train'",
			WIRE_STEP_PATTERN_BYTES - 1, SHOWN_MAX, pattern);
	error = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB);
	if (error) {
		regerror(error, &compiled, reason, sizeof(reason));
		return errmsg_set(err, -EINVAL,
			"--step-on '%.*s' is not an extended regular expression: %s; try --step-on "
			"'^train'",
			SHOWN_MAX, pattern, reason);
	}
	regfree(&compiled);
	return 0;
}
