/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde doctor`: what can be measured here, what cannot, why, and the command that fixes it. */
#include "cli/doctor/doctor.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/doctor/energy.h"
#include "sources/energy/sampler.h"

#define CHECKS_MAX    48
#define STATUS_COLUMN 10
#define DETAIL_COLUMN 27

static bool doctor_json;

static const char *const status_names[DOCTOR_STATUS_MAX] = {
	[DOCTOR_WORKS] = "works",
	[DOCTOR_PARTLY] = "partly",
	[DOCTOR_NO] = "no",
};

static void set_result(struct doctor_result *ret_result, enum doctor_status status, const char *fix,
	const char *format, va_list arguments)
{
	ret_result->status = status;
	snprintf(ret_result->fix, sizeof(ret_result->fix), "%s", fix);
	vsnprintf(ret_result->detail, sizeof(ret_result->detail), format, arguments);
}

void doctor_works(struct doctor_result *ret_result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(ret_result, DOCTOR_WORKS, "", format, arguments);
	va_end(arguments);
}

void doctor_partly(struct doctor_result *ret_result, const char *fix, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(ret_result, DOCTOR_PARTLY, fix, format, arguments);
	va_end(arguments);
}

void doctor_no(struct doctor_result *ret_result, const char *fix, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(ret_result, DOCTOR_NO, fix, format, arguments);
	va_end(arguments);
}

static const struct doctor_result *find_result(
	const struct doctor_result *results, const char *name)
{
	for (size_t index = 0; doctor_checks[index].name; index++) {
		if (strcmp(doctor_checks[index].name, name) == 0)
			return &results[index];
	}
	assert(!"doctor_sources names an unknown check");
	return NULL;
}

/* The worst of the list; helpful checks cannot make a source worse than partly. */
static void weigh(struct doctor_result *verdict, const char *const *names,
	const struct doctor_result *results, enum doctor_status worst_allowed)
{
	for (size_t index = 0; index < DOCTOR_NEEDS_MAX && names[index]; index++) {
		const struct doctor_result *result = find_result(results, names[index]);
		enum doctor_status status = MIN(result->status, worst_allowed);

		if (status <= verdict->status)
			continue;
		*verdict = *result;
		verdict->status = status;
	}
}

/* The first of the worst checks gives the reason and the fix. */
static struct doctor_result judge(
	const struct doctor_source *source, const struct doctor_result *results)
{
	struct doctor_result verdict = {.status = DOCTOR_WORKS};

	weigh(&verdict, source->required, results, DOCTOR_NO);
	weigh(&verdict, source->helpful, results, DOCTOR_PARTLY);
	return verdict;
}

static void add_entry(struct strbuf *out, const struct doctor_result *result, size_t width)
{
	if (result->detail[0]) {
		text_pad(out, STATUS_COLUMN);
		text_wrap(out, result->detail, STATUS_COLUMN, STATUS_COLUMN, width);
	}
	/* Never broken over lines: it is there to be copied. */
	if (result->fix[0]) {
		text_pad(out, STATUS_COLUMN);
		strbuf_addf(out, "fix: %s\n", result->fix);
	}
}

static void add_sources(struct strbuf *out, const struct doctor_result *results, size_t width)
{
	strbuf_add(out, "What can be measured:\n");
	for (const struct doctor_source *source = doctor_sources; source->name; source++) {
		struct doctor_result verdict = judge(source, results);

		strbuf_addf(out, "  %-*s%s\n", STATUS_COLUMN - 2, status_names[verdict.status],
			source->title);
		add_entry(out, &verdict, width);
	}
}

static void add_checks(struct strbuf *out, const struct doctor_result *results, size_t width)
{
	strbuf_add(out, "\nWhat was tried:\n");
	for (size_t index = 0; doctor_checks[index].name; index++) {
		strbuf_addf(out, "  %-*s%-*s", STATUS_COLUMN - 2,
			status_names[results[index].status], DETAIL_COLUMN - STATUS_COLUMN,
			doctor_checks[index].name);
		text_wrap(out, results[index].detail, DETAIL_COLUMN, DETAIL_COLUMN, width);
	}
}

/* False when the kernel has no such setting. */
static bool read_setting(const struct doctor_setting *setting, struct strbuf *text)
{
	if (read_whole_file(setting->path, 4096, text) < 0)
		return false;
	while (text->length && text->data[text->length - 1] == '\n')
		text->data[--text->length] = '\0';
	return true;
}

static void memlock_limit(struct strbuf *text)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		strbuf_add(text, "unlimited");
	else
		strbuf_addf(text, "%llu KiB", (unsigned long long)limit.rlim_cur / 1024);
}

static void add_settings(struct strbuf *out, size_t width)
{
	_cleanup_strbuf_ struct strbuf list = {0};

	for (const struct doctor_setting *setting = doctor_settings; setting->name; setting++) {
		_cleanup_strbuf_ struct strbuf value = {0};

		if (read_setting(setting, &value))
			strbuf_addf(&list, "%s=%s, ", setting->name, strbuf_cstr(&value));
	}
	strbuf_add(&list, "RLIMIT_MEMLOCK=");
	memlock_limit(&list);
	strbuf_add(out, "\nSettings:\n  ");
	text_wrap(out, strbuf_cstr(&list), 2, 2, width);
}

static void add_report(struct strbuf *out, const struct doctor_result *results,
	struct energy_sampler *energy, size_t width)
{
	struct utsname name;

	uname(&name);
	strbuf_addf(out, "sonde %s on %s %s %s, as %s\n\n", SONDE_VERSION, name.sysname,
		name.release, name.machine, geteuid() == 0 ? "root" : "an ordinary user");
	add_sources(out, results, width);
	doctor_energy_report(out, energy, STATUS_COLUMN, width);
	add_checks(out, results, width);
	add_settings(out, width);
}

static void json_text_or_null(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (*text)
		json_string(json, text);
	else
		json_null(json);
}

static void json_result(struct json_writer *json, const char *name, const char *title_key,
	const char *title, const struct doctor_result *result)
{
	json_begin_object(json);
	json_key(json, "name");
	json_string(json, name);
	json_key(json, title_key);
	json_string(json, title);
	json_key(json, "status");
	json_string(json, status_names[result->status]);
	json_text_or_null(json, "detail", result->detail);
	json_text_or_null(json, "fix", result->fix);
	json_end_object(json);
}

static void json_settings(struct json_writer *json)
{
	_cleanup_strbuf_ struct strbuf memlock = {0};

	json_key(json, "settings");
	json_begin_object(json);
	for (const struct doctor_setting *setting = doctor_settings; setting->name; setting++) {
		_cleanup_strbuf_ struct strbuf value = {0};

		json_key(json, setting->name);
		if (read_setting(setting, &value))
			json_string(json, strbuf_cstr(&value));
		else
			json_null(json);
	}
	memlock_limit(&memlock);
	json_text_or_null(json, "RLIMIT_MEMLOCK", strbuf_cstr(&memlock));
	json_end_object(json);
}

static void add_json(
	struct strbuf *out, const struct doctor_result *results, struct energy_sampler *energy)
{
	struct json_writer json = {.out = out, .pretty = true};
	struct utsname name;

	uname(&name);
	json_begin_object(&json);
	json_key(&json, "version");
	json_string(&json, SONDE_VERSION);
	json_key(&json, "kernel");
	json_string(&json, name.release);
	json_key(&json, "machine");
	json_string(&json, name.machine);
	json_key(&json, "effective_uid");
	json_u64(&json, geteuid());
	json_key(&json, "sources");
	json_begin_array(&json);
	for (const struct doctor_source *source = doctor_sources; source->name; source++) {
		struct doctor_result verdict = judge(source, results);

		json_result(&json, source->name, "title", source->title, &verdict);
	}
	json_end_array(&json);
	json_key(&json, "checks");
	json_begin_array(&json);
	for (size_t index = 0; doctor_checks[index].name; index++)
		json_result(&json, doctor_checks[index].name, "enables",
			doctor_checks[index].enables, &results[index]);
	json_end_array(&json);
	doctor_energy_json(&json, energy);
	json_settings(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
}

static bool can_sample_cpu(const struct doctor_result *results)
{
	for (const struct doctor_source *source = doctor_sources; source->name; source++) {
		if (source->samples_cpu && judge(source, results).status != DOCTOR_NO)
			return true;
	}
	return false;
}

static int run_doctor(int count, char **arguments)
{
	struct doctor_result results[CHECKS_MAX] = {0};
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_energy_sampler_ struct energy_sampler *energy = NULL;
	struct errmsg err = {{0}};

	energy = doctor_energy_open(&err);
	if (!energy)
		return fail(&err);
	for (size_t index = 0; doctor_checks[index].name; index++) {
		assert(index < CHECKS_MAX);
		doctor_checks[index].probe(&results[index]);
	}
	if (doctor_json)
		add_json(&text, results, energy);
	else
		add_report(&text, results, energy, text_terminal_width(stdout));
	if (strbuf_status(&text) < 0) {
		errmsg_set(&err, 0, "out of memory");
		return fail(&err);
	}
	fputs(strbuf_cstr(&text), stdout);
	return can_sample_cpu(results) ? EXIT_OK : EXIT_ERROR;
}

static const struct option doctor_options[] = {
	{.long_name = "json", .type = OPTION_FLAG, .help = "Print JSON.", .value = &doctor_json},
	{0},
};

const struct command doctor_command = {
	.name = "doctor",
	.summary = "show what can be measured here, and how to enable the rest",
	.usage = "[--json]",
	.description = "Tests everything that a recording needs: loads a BPF program, makes its "
		       "maps, opens the events, reads the kernel's symbols. For each source it "
		       "says whether it works, works partly or does not work, why, and the command "
		       "that fixes it.\n\nThe exit status is 0 if CPU samples can be taken in some "
		       "way, otherwise 1.",
	.examples = "sonde doctor\n"
		    "    before the first recording, or when one failed\n"
		    "sonde doctor --json | jq '.sources[] | {name, status}'\n"
		    "    for scripts",
	.options = doctor_options,
	.run = run_doctor,
};
