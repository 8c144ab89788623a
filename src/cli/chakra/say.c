/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/chakra/say.h"

#include <stdio.h>
#include <strings.h>

#include "base/escape.h"
#include "base/output_place.h"

static struct {
	enum chakra_level level;
	FILE *log;
	const char *path;
} speech = {.level = CHAKRA_INFO};

static const char *const level_names[CHAKRA_LEVEL_MAX] = {
	[CHAKRA_DEBUG] = "DEBUG",
	[CHAKRA_INFO] = "INFO",
	[CHAKRA_WARNING] = "WARNING",
	[CHAKRA_ERROR] = "ERROR",
	[CHAKRA_CRITICAL] = "CRITICAL",
};

enum chakra_level chakra_level_from_string(const char *name)
{
	for (int level = 0; level < CHAKRA_LEVEL_MAX; level++) {
		if (strcasecmp(name, level_names[level]) == 0)
			return (enum chakra_level)level;
	}
	return CHAKRA_LEVEL_INVALID;
}

void chakra_set_level(enum chakra_level level)
{
	speech.level = level;
}

int chakra_log_open(const char *path, struct errmsg *err)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK};
	_cleanup_output_place_ struct output_place place = OUTPUT_PLACE_NONE;
	struct errmsg reason = {""};
	int r = output_place_open(&place, path, &how, &reason);

	r = r ?: output_place_name(&place);
	speech.path = path;
	speech.log = r < 0 ? NULL : fdopen(place.fd, "w");
	if (!speech.log)
		return errmsg_set(err, r ?: -errno, "cannot write the log %s: %s", path,
			r < 0 ? reason.text : strerror(errno));
	place.fd = -1;
	return 0;
}

int chakra_log_close(int status)
{
	FILE *log = speech.log;
	struct errmsg err;
	bool is_whole;

	if (!log)
		return status;
	speech.log = NULL;
	is_whole = !ferror(log);
	if (fclose(log) == 0 && is_whole)
		return status;
	errmsg_set(&err, -EIO, "the log %s is incomplete: %s", speech.path, strerror(errno));
	return fail(&err);
}

static void say(enum chakra_level level, const char *prefix, const char *format, va_list values)
	__attribute__((format(printf, 3, 0)));

static void say(enum chakra_level level, const char *prefix, const char *format, va_list values)
{
	_cleanup_strbuf_ struct strbuf text = {0}, line = {0};

	strbuf_vaddf(&text, format, values);
	strbuf_add(&line, prefix);
	escape_plain(&line, strbuf_cstr(&text));
	strbuf_add_char(&line, '\n');
	if (level >= speech.level)
		fputs(strbuf_cstr(&line), stderr);
	if (speech.log)
		fputs(strbuf_cstr(&line), speech.log);
}

void chakra_say(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(CHAKRA_INFO, "sonde: ", format, values);
	va_end(values);
}

void chakra_say_more(const char *label, const char *format, ...)
{
	char prefix[32];
	va_list values;

	snprintf(prefix, sizeof(prefix), "  %-7s ", label);
	va_start(values, format);
	say(CHAKRA_INFO, prefix, format, values);
	va_end(values);
}

void chakra_note(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(CHAKRA_WARNING, "  note    ", format, values);
	va_end(values);
}

int chakra_fail(const struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	escape_plain(&text, err->text);
	if (speech.log)
		fprintf(speech.log, "sonde: %s\n", strbuf_cstr(&text));
	return fail(err);
}
