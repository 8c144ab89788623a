/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/replay.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu_list.h"
#include "base/file.h"
#include "base/json_reader.h"

#define FORMAT     1
#define NAME_MAX_  64     /* bytes of a domain's name or device */
#define POWER_MAX  1e9    /* watts; a cluster, and less than a slip of the units */
#define ENERGY_MAX 9.2e9  /* joules: 2^63 nanojoules */
#define TIME_MAX   3.2e12 /* milliseconds: a hundred years */

enum reading_kind {
	READING_NONE,
	READING_ENERGY,
	READING_POWER,
};

/* What a domain's readings were so far. */
struct progress {
	enum reading_kind kind;
	bool has_last, is_gap;
	uint64_t last_ns, start_ns;
	double last; /* joules or watts */
};

struct parser {
	const char *name;
	unsigned line;
	bool is_last_line, is_model;
	struct errmsg *err;
	struct energy_replay *replay;
	struct progress progress[REPLAY_DOMAINS_MAX];
};

struct line {
	bool has_time, is_null; /* null: the reading failed when it was recorded */
	double time_ms, value, celsius, mhz;
	enum reading_kind kind;
	int domain; /* index; -1 */
};

static int _printf_(2, 3) refuse(struct parser *parser, const char *format, ...)
{
	struct errmsg reason;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason.text, sizeof(reason.text), format, arguments);
	va_end(arguments);
	errmsg_set(
		parser->err, -EINVAL, "%s, line %u: %s", parser->name, parser->line, reason.text);
	return -EINVAL;
}

/* ---- values ---- */

static bool is_null(const struct json_text *text)
{
	return json_text_equals(text, "null");
}

/* A number between both; text is not taken for one. */
static int take_number(struct parser *parser, const char *key, const struct json_text *text,
	double least, double most, double *ret_value)
{
	char copy[64], *end;
	int shown = (int)MIN(text->length, (size_t)40);

	if (text->length >= sizeof(copy) || json_text_is_string(text))
		return refuse(parser, "%s is %.*s, not a number", key, shown, text->bytes);
	memcpy(copy, text->bytes, text->length);
	copy[text->length] = '\0';
	*ret_value = strtod(copy, &end);
	if (end == copy || *end || !isfinite(*ret_value) || strpbrk(copy, "xXnN"))
		return refuse(parser, "%s is %.*s, not a number", key, shown, text->bytes);
	if (*ret_value < least || *ret_value > most)
		return refuse(
			parser, "%s is %s; it must be between %g and %g", key, copy, least, most);
	return 0;
}

/* A short text as a C string of the replay's, without control characters. */
static int take_text(struct parser *parser, const char *key, const struct json_text *value,
	const char **ret_text)
{
	struct json_text inside = json_text_inside(value);
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_free_ char *copy = NULL;
	int r;

	if (!json_text_is_string(value))
		return refuse(parser, "%s is not text", key);
	if (inside.length > (size_t)6 * NAME_MAX_)
		return refuse(parser, "%s is longer than %d bytes", key, NAME_MAX_);
	json_text_unescape(&text, &inside);
	if (text.length > NAME_MAX_)
		return refuse(parser, "%s is longer than %d bytes", key, NAME_MAX_);
	for (size_t i = 0; i < text.length; i++) {
		if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
			return refuse(parser, "%s has control characters", key);
	}
	copy = strdup(strbuf_cstr(&text));
	if (!copy || strbuf_status(&text) < 0)
		return -ENOMEM;
	r = array_append(&parser->replay->texts, copy);
	if (r == 0)
		*ret_text = TAKE_PTR(copy);
	return r;
}

static int find_domain(const struct parser *parser, const char *name)
{
	for (unsigned i = 0; i < parser->replay->domain_count; i++) {
		if (strcmp(parser->replay->domains[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

/* ---- the first line ---- */

static int take_word(struct parser *parser, const char *key, const struct json_text *value,
	const char *(*name_of)(unsigned), unsigned max, uint32_t *ret_value)
{
	struct json_text inside = json_text_inside(value);

	for (unsigned i = 1; i < max; i++) {
		if (json_text_equals(&inside, name_of(i))) {
			*ret_value = i;
			return 0;
		}
	}
	return refuse(parser, "there is no %s %.*s", key, (int)MIN(value->length, (size_t)40),
		value->bytes);
}

static int take_parent(
	struct parser *parser, struct wire_energy_domain *domain, const struct json_text *value)
{
	const char *name = "";
	int parent, r;

	if (is_null(value))
		return 0;
	r = take_text(parser, "parent", value, &name);
	if (r < 0)
		return r;
	parent = find_domain(parser, name);
	if (parent < 0)
		return refuse(
			parser, "there is no domain %s before the one whose parent it is", name);
	domain->parent = (uint32_t)parent + 1;
	return 0;
}

static int take_domain_member(struct parser *parser, struct wire_energy_domain *domain,
	const struct json_text *key, const struct json_text *value)
{
	double number;
	int r;

	if (json_text_equals(key, "name"))
		return take_text(parser, "name", value, &domain->name);
	if (json_text_equals(key, "device"))
		return is_null(value) ? 0 : take_text(parser, "device", value, &domain->device);
	if (!parser->is_model && json_text_equals(key, "cpus"))
		return is_null(value) ? 0 : take_text(parser, "cpus", value, &domain->cpus);
	if (json_text_equals(key, "part"))
		return take_word(parser, "part", value, wire_energy_part_name, WIRE_ENERGY_PART_MAX,
			&domain->part);
	if (!parser->is_model && json_text_equals(key, "quality"))
		return take_word(parser, "quality", value, wire_energy_quality_name,
			WIRE_ENERGY_QUALITY_MAX, &domain->quality);
	if (json_text_equals(key, "parent"))
		return take_parent(parser, domain, value);
	if (is_null(value))
		return 0;
	if (json_text_equals(key, "idle_w"))
		return take_number(parser, "idle_w", value, 0, POWER_MAX, &domain->idle_w);
	if (json_text_equals(key, "limit_w"))
		return take_number(parser, "limit_w", value, 0, POWER_MAX, &domain->limit_w);
	if (json_text_equals(key, "relative_error"))
		return take_number(parser, "relative_error", value, 0, 10, &domain->relative_error);
	if (parser->is_model && json_text_equals(key, "busy_w"))
		return take_number(parser, "busy_w", value, 0, POWER_MAX,
			&parser->replay->busy_w[domain->id - 1]);
	if (!json_text_equals(key, "period_ms"))
		return 0;
	r = take_number(parser, "period_ms", value, 0, 1e9, &number);
	if (r == 0)
		domain->period_ns = (uint64_t)(number * 1e6);
	return r;
}

static int malformed(struct parser *parser)
{
	return refuse(parser, "this is not a JSON object");
}

static int check_domain(struct parser *parser, const struct wire_energy_domain *domain)
{
	if (!domain->name || !domain->name[0] || !domain->part || !domain->quality)
		return refuse(parser, "a domain needs a name, a part and a quality");
	if (domain->cpus && !cpu_list_is_valid(domain->cpus))
		return refuse(parser, "cpus of %s is no list such as 0-7,16-23", domain->name);
	if (find_domain(parser, domain->name) >= 0)
		return refuse(parser, "there are two domains %s", domain->name);
	if (parser->is_model && (isnan(domain->idle_w) || isnan(domain->relative_error) ||
					isnan(parser->replay->busy_w[domain->id - 1])))
		return refuse(parser,
			"%s needs idle_w, busy_w and relative_error: the model's error when it was "
			"calibrated",
			domain->name);
	return 0;
}

static int take_domain(struct parser *parser, struct json_reader *reader)
{
	struct energy_replay *replay = parser->replay;
	struct wire_energy_domain *domain = &replay->domains[replay->domain_count];
	struct json_text key, value;
	enum json_status status;
	int r;

	if (replay->domain_count == REPLAY_DOMAINS_MAX)
		return refuse(parser, "there are more than %d domains", REPLAY_DOMAINS_MAX);
	*domain = (struct wire_energy_domain){
		.id = replay->domain_count + 1,
		.quality = parser->is_model ? WIRE_ENERGY_ESTIMATED : 0,
		.is_replayed = !parser->is_model,
		.source = parser->is_model ? "model" : "replay",
		.device = "",
		.relative_error = NAN,
		.idle_w = NAN,
	};
	replay->busy_w[replay->domain_count] = NAN;
	status = json_reader_enter(reader, '{');
	while (status == JSON_OK && (status = json_reader_member(reader, &key)) == JSON_OK) {
		status = json_reader_value(reader, &value);
		r = status == JSON_OK ? take_domain_member(parser, domain, &key, &value) : 0;
		if (r < 0)
			return r;
	}
	if (status != JSON_DONE)
		return malformed(parser);
	r = check_domain(parser, domain);
	replay->domain_count += r == 0;
	return r;
}

static int take_domains(struct parser *parser, struct json_reader *reader)
{
	enum json_status status = json_reader_enter(reader, '[');

	while (status == JSON_OK && (status = json_reader_item(reader)) == JSON_OK) {
		int r = take_domain(parser, reader);

		if (r < 0)
			return r;
	}
	return status == JSON_DONE ? 0 : malformed(parser);
}

static int take_header(struct parser *parser, struct json_reader *reader)
{
	const char *what = parser->is_model ? "sonde_energy_model" : "sonde_energy";
	struct json_text key, value;
	enum json_status status = json_reader_enter(reader, '{');
	double format = 0;
	int r = 0;

	while (status == JSON_OK && (status = json_reader_member(reader, &key)) == JSON_OK) {
		if (json_text_equals(&key, "domains") && json_reader_peek(reader) == '[') {
			r = take_domains(parser, reader);
		} else {
			status = json_reader_value(reader, &value);
			if (status == JSON_OK && json_text_equals(&key, what))
				r = take_number(parser, what, &value, 1, 1e6, &format);
		}
		if (r < 0)
			return r;
	}
	if (format > FORMAT)
		return refuse(parser,
			"the file has format %g, and this sonde reads format %d: use a newer sonde",
			format, FORMAT);
	if (status != JSON_DONE || format != FORMAT)
		return refuse(parser,
			"this is not a %s of energy, which begins with {\"%s\":%d,\"domains\":[…]}",
			parser->is_model ? "model" : "recording", what, FORMAT);
	return parser->replay->domain_count ? 0 : refuse(parser, "there are no domains");
}

/* ---- readings ---- */

static int take_reading_member(struct parser *parser, struct line *line,
	const struct json_text *key, const struct json_text *value)
{
	bool is_energy = json_text_equals(key, "energy_j");
	const char *name = "";
	int r;

	if (json_text_equals(key, "t_ms")) {
		line->has_time = true;
		return take_number(parser, "t_ms", value, 0, TIME_MAX, &line->time_ms);
	}
	if (json_text_equals(key, "domain")) {
		r = take_text(parser, "domain", value, &name);
		if (r < 0)
			return r;
		line->domain = find_domain(parser, name);
		if (line->domain < 0)
			r = refuse(parser, "the first line has no domain %s", name);
		free((void *)name);
		parser->replay->texts.count--;
		return r;
	}
	if (json_text_equals(key, "temperature_c") && !is_null(value))
		return take_number(parser, "temperature_c", value, -300, 10000, &line->celsius);
	if (json_text_equals(key, "clock_mhz") && !is_null(value))
		return take_number(parser, "clock_mhz", value, 0, 1e6, &line->mhz);
	if (!is_energy && !json_text_equals(key, "power_w"))
		return 0;
	if (line->kind != READING_NONE)
		return refuse(parser, "a line has energy_j or power_w, and not both");
	line->kind = is_energy ? READING_ENERGY : READING_POWER;
	line->is_null = is_null(value);
	if (line->is_null)
		return 0;
	return take_number(parser, is_energy ? "energy_j" : "power_w", value, 0,
		is_energy ? ENERGY_MAX : POWER_MAX, &line->value);
}

static int add_interval(struct parser *parser, unsigned index, uint64_t end_ns, double energy_j,
	enum wire_energy_gap gap)
{
	struct progress *progress = &parser->progress[index];
	struct wire_energy_interval interval = {
		.start_ns = progress->start_ns,
		.end_ns = end_ns,
		.domain = index + 1,
		.gap = gap,
		.energy_nj = gap ? 0 : (uint64_t)llround(energy_j * 1e9),
		.busy_ns = UINT64_MAX,
	};

	progress->start_ns = end_ns;
	return array_append(&parser->replay->intervals, interval);
}

/* Joules between the reading before and this one; or why there are none. */
static enum wire_energy_gap energy_since(
	struct parser *parser, const struct line *line, uint64_t time_ns, double *ret_joules)
{
	const struct progress *progress = &parser->progress[line->domain];
	double seconds = (double)(time_ns - progress->last_ns) / 1e9;

	*ret_joules = 0;
	if (line->is_null || progress->is_gap)
		return WIRE_ENERGY_READ_FAILED;
	if (line->kind == READING_POWER) {
		*ret_joules = (line->value + progress->last) / 2 * seconds;
		return *ret_joules <= ENERGY_MAX ? WIRE_ENERGY_NO_GAP : WIRE_ENERGY_IMPLAUSIBLE;
	}
	*ret_joules = line->value - progress->last;
	if (*ret_joules >= 0)
		return WIRE_ENERGY_NO_GAP;
	parser->replay->went_back++;
	return WIRE_ENERGY_WENT_BACK;
}

static int add_reading(struct parser *parser, const struct line *line)
{
	struct progress *progress = &parser->progress[line->domain];
	uint64_t time_ns = (uint64_t)llround(line->time_ms * 1e6);
	enum wire_energy_gap gap;
	double joules;
	int r = 0;

	if (progress->kind != READING_NONE && progress->kind != line->kind)
		return refuse(parser, "%s has energy_j in some lines and power_w in others",
			parser->replay->domains[line->domain].name);
	if (progress->has_last && time_ns <= progress->last_ns)
		return refuse(parser,
			"t_ms of %s is %.6g after %.6g: sort the lines by t_ms, one for each "
			"moment",
			parser->replay->domains[line->domain].name, line->time_ms,
			(double)progress->last_ns / 1e6);
	if (progress->has_last) {
		gap = energy_since(parser, line, time_ns, &joules);
		r = add_interval(parser, (unsigned)line->domain, time_ns, joules, gap);
	} else {
		progress->start_ns = time_ns;
	}
	progress->kind = line->kind;
	progress->has_last = true;
	progress->is_gap = line->is_null;
	progress->last_ns = time_ns;
	progress->last = line->value;
	return r;
}

static int add_state(struct parser *parser, const struct line *line)
{
	struct wire_energy_state state = {
		.time_ns = (uint64_t)llround(line->time_ms * 1e6),
		.domain = (uint32_t)line->domain + 1,
		.temperature_mc =
			isnan(line->celsius) ? INT32_MIN : (int32_t)lround(line->celsius * 1000),
		.clock_mhz = (uint32_t)line->mhz,
	};

	if (state.temperature_mc == INT32_MIN && !state.clock_mhz)
		return 0;
	return array_append(&parser->replay->states, state);
}

static int take_reading(struct parser *parser, struct json_reader *reader)
{
	struct line line = {.domain = -1, .celsius = NAN};
	enum json_status status = json_reader_enter(reader, '{');
	struct json_text key, value;
	int r = 0;

	while (status == JSON_OK && (status = json_reader_member(reader, &key)) == JSON_OK) {
		status = json_reader_value(reader, &value);
		if (status == JSON_OK)
			r = take_reading_member(parser, &line, &key, &value);
		if (r < 0)
			return r;
	}
	if (status != JSON_DONE && parser->is_last_line) {
		errmsg_set(&parser->replay->note, 0,
			"%s is cut off: its last line, %u, is incomplete and is left out",
			parser->name, parser->line);
		return 0;
	}
	if (status != JSON_DONE)
		return malformed(parser);
	if (!line.has_time || line.domain < 0)
		return refuse(parser, "a reading needs t_ms and domain");
	if (parser->replay->intervals.count >= REPLAY_READINGS_MAX)
		return refuse(parser, "there are more than %d readings", REPLAY_READINGS_MAX);
	if (line.kind != READING_NONE)
		r = add_reading(parser, &line);
	return r < 0 ? r : add_state(parser, &line);
}

/* ---- the file ---- */

static int take_line(struct parser *parser, const char *bytes, size_t length)
{
	struct json_reader reader = {.at = bytes, .end = bytes + length, .is_last = true};

	if (parser->line == 1)
		return take_header(parser, &reader);
	if (strspn(bytes, " \t\r") >= length)
		return 0;
	if (parser->is_model)
		return refuse(parser, "a model is one line");
	return take_reading(parser, &reader);
}

static int compare_intervals(const void *a, const void *b)
{
	const struct wire_energy_interval *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->domain > y->domain) - (x->domain < y->domain);
}

static int parse_lines(struct parser *parser, const char *bytes, size_t length)
{
	const char *end = bytes + length;
	int r = 0;

	do {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		_cleanup_free_ char *line =
			strndup(bytes, (size_t)((newline ? newline : end) - bytes));

		if (!line)
			return -ENOMEM;
		parser->line++;
		parser->is_last_line = !newline;
		r = take_line(parser, line, strlen(line));
		bytes = newline ? newline + 1 : end;
	} while (r == 0 && bytes < end);
	return r;
}

/* Sorts a recording, and notes what is amiss and no reason to refuse it. */
static void finish(struct energy_replay *replay, const char *name)
{
	if (replay->intervals.count)
		qsort(replay->intervals.items, replay->intervals.count,
			sizeof(*replay->intervals.items), compare_intervals);
	else if (!replay->note.text[0])
		errmsg_set(&replay->note, 0,
			"%s has no two readings of a domain, so no energy is known", name);
	if (replay->went_back && !replay->note.text[0])
		errmsg_set(&replay->note, 0,
			"%s has %llu readings of energy_j that are less than the previous one: "
			"there is no figure for these times",
			name, (unsigned long long)replay->went_back);
}

static int parse(struct energy_replay **ret_replay, bool is_model, const char *bytes, size_t length,
	const char *name, struct errmsg *err)
{
	_cleanup_energy_replay_ struct energy_replay *replay = calloc(1, sizeof(*replay));
	struct parser *parser = calloc(1, sizeof(*parser));
	int r = -ENOMEM;

	if (replay && parser) {
		*parser = (struct parser){
			.name = name, .is_model = is_model, .err = err, .replay = replay};
		r = parse_lines(parser, bytes, length);
	}
	free(parser);
	if (r == -ENOMEM)
		return errmsg_set(err, r, "cannot read %s: out of memory", name);
	if (r < 0)
		return r;
	if (!is_model)
		finish(replay, name);
	*ret_replay = TAKE_PTR(replay);
	return 0;
}

int energy_replay_parse(struct energy_replay **ret_replay, const char *bytes, size_t length,
	const char *name, struct errmsg *err)
{
	return parse(ret_replay, false, bytes, length, name, err);
}

int energy_model_parse(struct energy_replay **ret_model, const char *bytes, size_t length,
	const char *name, struct errmsg *err)
{
	return parse(ret_model, true, bytes, length, name, err);
}

static int open_file(
	struct energy_replay **ret_replay, bool is_model, const char *path, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct stat status;
	int r;

	if (stat(path, &status) == 0 && status.st_size > (off_t)REPLAY_BYTES_MAX)
		return errmsg_set(err, -EFBIG, "%s has more than %zu MB: give a shorter recording",
			path, REPLAY_BYTES_MAX >> 20);
	r = read_regular_file(path, &text, err);
	return r < 0 ? r : parse(ret_replay, is_model, strbuf_cstr(&text), text.length, path, err);
}

int energy_replay_open(struct energy_replay **ret_replay, const char *path, struct errmsg *err)
{
	return open_file(ret_replay, false, path, err);
}

int energy_model_open(struct energy_replay **ret_model, const char *path, struct errmsg *err)
{
	return open_file(ret_model, true, path, err);
}

struct energy_replay *energy_replay_free(struct energy_replay *replay)
{
	if (!replay)
		return NULL;
	array_done(&replay->intervals);
	array_done(&replay->states);
	array_foreach (&replay->texts, text)
		free(*text);
	array_done(&replay->texts);
	free(replay);
	return NULL;
}

void energy_replay_freep(struct energy_replay **replay)
{
	energy_replay_free(*replay);
}
