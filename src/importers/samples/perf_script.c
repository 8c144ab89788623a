/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that `perf script` prints: for each sample a line with command, pid and tid, CPU, time
 * and event, and below it a line for each frame from the innermost on, with address, symbol and
 * file.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "importers/importers.h"
#include "importers/samples/samples.h"

static const char what[] =
	"there is no sample in it: give the text of `perf script` of a recording with `perf "
	"record -g`";

struct line {
	const char *at;
	size_t length;
};

struct sample_line {
	struct line name, event;
	uint32_t pid, tid, cpu;
	uint64_t time_ns, period;
};

struct script {
	struct samples samples;
	struct map_u64 tasks; /* tids that were named */
	struct sample_line sample;
	bool is_open, has_period; /* a sample's frames follow; what each is worth is the same */
	uint64_t period, first_ns;
};

/* ---- a sample's line ---- */

static bool read_number(const char **at, const char *end, uint64_t *ret_number)
{
	const char *begin = *at;

	*ret_number = 0;
	while (*at < end && *at - begin < 19 && isdigit((unsigned char)**at))
		*ret_number = *ret_number * 10 + (uint64_t)(*(*at)++ - '0');
	return *at > begin;
}

static void skip_spaces(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
}

/* "12.345678:" or with nine decimals. */
static bool read_time(const char **at, const char *end, uint64_t *ret_time_ns)
{
	uint64_t seconds, fraction;
	const char *begin;
	long digits;

	if (!read_number(at, end, &seconds) || *at == end || **at != '.' || seconds > 1ULL << 33)
		return false;
	begin = ++*at;
	if (!read_number(at, end, &fraction) || *at == end || **at != ':' || *at - begin > 9)
		return false;
	for (digits = *at - begin; digits < 9; digits++)
		fraction *= 10;
	++*at;
	*ret_time_ns = seconds * NS_PER_S + fraction;
	return true;
}

/* "pid/tid" or "tid", then "[cpu]" where there is one, then the time. */
static bool read_task(const char **at, const char *end, struct sample_line *sample)
{
	uint64_t pid, tid, cpu = 0;

	if (!read_number(at, end, &pid))
		return false;
	tid = pid;
	if (*at < end && **at == '/') {
		++*at;
		if (!read_number(at, end, &tid))
			return false;
	}
	skip_spaces(at, end);
	if (*at < end && **at == '[') {
		++*at;
		if (!read_number(at, end, &cpu) || *at == end || **at != ']')
			return false;
		++*at;
		skip_spaces(at, end);
	}
	sample->pid = (uint32_t)pid;
	sample->tid = (uint32_t)tid;
	sample->cpu = (uint32_t)cpu;
	return read_time(at, end, &sample->time_ns);
}

/* The command may have spaces and numbers: it ends where the rest can be read. */
static bool read_sample(const struct line *line, struct sample_line *sample)
{
	const char *end = line->at + line->length, *at = line->at, *rest = NULL;

	*sample = (struct sample_line){0};
	skip_spaces(&at, end);
	sample->name.at = at;
	for (const char *space = memchr(at, ' ', (size_t)(end - at)); space && !rest;
		space = memchr(space + 1, ' ', (size_t)(end - space - 1))) {
		const char *task = space;

		skip_spaces(&task, end);
		if (!read_task(&task, end, sample))
			continue;
		sample->name.length = (size_t)(space - at);
		rest = task;
	}
	if (!rest)
		return false;
	skip_spaces(&rest, end);
	read_number(&rest, end, &sample->period);
	skip_spaces(&rest, end);
	sample->event = (struct line){rest, (size_t)(end - rest)};
	while (sample->event.length && (end[-1] == ' ' || end[-1] == ':' || end[-1] == '\r')) {
		sample->event.length--;
		end--;
	}
	return sample->event.length > 0;
}

/* ---- frames ---- */

/* "  7f01 name+0x12 (/lib/file.so)" */
static int add_frame(struct script *script, const struct line *line)
{
	const char *at = line->at, *end = line->at + line->length, *name_end, *plus;
	struct samples_frame frame = {0};
	char *address_end;

	while (end > at && (end[-1] == ' ' || end[-1] == '\r'))
		end--;
	skip_spaces(&at, end);
	frame.address = strtoull(at, &address_end, 16); /* the text ends in a NUL */
	if (address_end == at || address_end >= end || *address_end != ' ') {
		script->samples.lines_left_out++;
		return 0;
	}
	at = address_end + 1;
	name_end = end;
	if (end[-1] == ')') {
		const char *open = memrchr(at, '(', (size_t)(end - at));

		if (open && open > at && open[-1] == ' ') {
			frame.module = open + 1;
			frame.module_length = (size_t)(end - 2 - open);
			name_end = open - 1;
			if (frame.module_length == 9 && memcmp(open + 1, "[unknown]", 9) == 0)
				frame.module_length = 0;
		}
	}
	plus = memrchr(at, '+', (size_t)(name_end - at));
	if (plus && plus + 2 < name_end && plus[1] == '0' && plus[2] == 'x')
		name_end = plus;
	frame.name = at;
	frame.name_length = (size_t)(name_end - at);
	if (frame.name_length == 9 && memcmp(at, "[unknown]", 9) == 0)
		frame.name_length = 0;
	return samples_add_frame(&script->samples, &frame);
}

/* ---- samples ---- */

static int name_task(struct script *script, const struct sample_line *sample)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	int r = 0;

	if (map_u64_get(&script->tasks, sample->tid, NULL))
		return 0;
	strbuf_add_bytes(&name, sample->name.at, MIN(sample->name.length, (size_t)256));
	if (strbuf_status(&name) < 0)
		return -ENOMEM;
	if (!map_u64_get(&script->tasks, sample->pid, NULL) && sample->pid != sample->tid)
		r = samples_add_task(
			&script->samples, sample->pid, sample->pid, strbuf_cstr(&name));
	if (r == 0)
		r = samples_add_task(
			&script->samples, sample->pid, sample->tid, strbuf_cstr(&name));
	if (r == 0)
		r = map_u64_set(&script->tasks, sample->pid, 1);
	return r < 0 ? r : map_u64_set(&script->tasks, sample->tid, 1);
}

static int end_sample(struct script *script)
{
	const struct sample_line *sample = &script->sample;
	struct capture_sample out = {
		.time_ns = 1 + sample->time_ns - MIN(sample->time_ns, script->first_ns),
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
	};
	int r;

	if (!script->is_open)
		return 0;
	script->is_open = false;
	r = name_task(script, sample);
	if (r == 0)
		r = samples_end_stack(&script->samples);
	return r < 0 ? r : samples_add(&script->samples, out, 1);
}

static int take_line(struct script *script, const struct line *line)
{
	bool is_frame = line->length && (line->at[0] == ' ' || line->at[0] == '\t');
	struct sample_line sample;
	int r;

	if (!line->length || line->at[0] == '#')
		return end_sample(script);
	if (!is_frame || !script->is_open) {
		if (!read_sample(line, &sample)) {
			script->samples.lines_left_out++;
			return 0;
		}
		r = end_sample(script);
		script->sample = sample;
		script->is_open = true;
		return r;
	}
	return add_frame(script, line);
}

/* The first sample says when all begins, and what a sample is worth where its event is a clock. */
static void find_first(struct script *script)
{
	const char *at = script->samples.input->bytes, *end = at + script->samples.input->length;
	struct sample_line sample;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const struct line line = {at, (size_t)((newline ? newline : end) - at)};

		if (line.length && *at != '#' && read_sample(&line, &sample)) {
			script->first_ns = sample.time_ns;
			if (memmem(sample.event.at, sample.event.length, "-clock", 6))
				script->period = sample.period;
			return;
		}
		at = newline ? newline + 1 : end;
	}
}

static int read_all(struct script *script)
{
	const char *at = script->samples.input->bytes, *end = at + script->samples.input->length;
	int r = samples_begin(&script->samples, script->period, 0);

	while (r == 0 && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct line line = {at, (size_t)((newline ? newline : end) - at)};

		if (line.length && line.at[line.length - 1] == '\r')
			line.length--;
		r = take_line(script, &line);
		at = newline ? newline + 1 : end;
	}
	return r < 0 ? r : end_sample(script);
}

static int perf_script_import(const struct import_input *input, struct capture_writer *writer,
	struct import_result *ret_result, struct errmsg *err)
{
	struct script script = {
		.samples = {.input = input, .writer = writer, .result = ret_result}};
	int r;

	*ret_result = (struct import_result){0};
	find_first(&script);
	r = read_all(&script);
	map_u64_done(&script.tasks);
	r = samples_end(&script.samples, r, what, err);
	if (r == 0 && !script.period)
		import_note(ret_result, "samples of this event have no time: they are counted");
	return r;
}

/* The first line that is no comment is a sample's. */
static bool perf_script_knows(const char *head, size_t length)
{
	const char *end = head + length, *newline;
	struct sample_line sample;

	if (memchr(head, '\0', length))
		return false;
	for (; (newline = memchr(head, '\n', (size_t)(end - head))); head = newline + 1) {
		const struct line line = {head, (size_t)(newline - head)};

		if (line.length && *head != '#')
			return read_sample(&line, &sample) && newline + 1 < end &&
			       (newline[1] == ' ' || newline[1] == '\t' || newline[1] == '\n');
	}
	return false;
}

const struct importer perf_script_importer = {
	.name = "perf-script",
	.description = "samples as perf script prints them",
	.knows = perf_script_knows,
	.import = perf_script_import,
};
