/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of pprof (profile.proto), plain or gzip: of Go, of async profilers, of allocations, and
 * those that sonde exports. The value whose unit is a count of samples is taken, else the first.
 */
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "capture/protobuf.h"
#include "importers/importers.h"
#include "importers/samples/samples.h"

static const char what[] = "there is no sample in it, which a profile of pprof has";

struct location {
	uint64_t mapping, address;
	struct pb_bytes message; /* its lines are read when a stack has it */
};

struct function {
	uint64_t name, file;
};

struct profile {
	struct samples samples;
	struct pb_bytes message;
	ARRAY_OF(struct pb_bytes) strings;
	ARRAY_OF(struct location) locations;
	ARRAY_OF(struct function) functions;
	ARRAY_OF(uint64_t) mappings;                         /* strings */
	struct map_u64 location_of, function_of, mapping_of; /* id → index */
	ARRAY_OF(struct pb_bytes) types;                     /* of values */
	uint64_t period, duration_ns, begin_unix_ns;
	size_t value;      /* which of a sample's values counts */
	uint64_t value_ns; /* of one of it; 0: it is no time */
	struct pb_bytes period_type;
};

static struct pb_bytes text_of(const struct profile *profile, uint64_t string)
{
	return string < profile->strings.count ? profile->strings.items[string]
					       : (struct pb_bytes){0};
}

static bool is_text(struct pb_bytes text, const char *word)
{
	return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

/* ---- tables ---- */

struct number {
	uint32_t tag;
	uint64_t *value;
};

/* Sets the numbers of a message whose fields are asked for. Returns 0 or a negative errno. */
static int read_numbers(struct pb_bytes message, const struct number *numbers, size_t count)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		for (size_t i = 0; i < count; i++) {
			if (field.tag == numbers[i].tag)
				*numbers[i].value = field.value;
		}
	}
	return r;
}

static int add_location(struct profile *profile, struct pb_bytes message)
{
	struct location location = {.message = message};
	uint64_t id = 0;
	const struct number numbers[] = {{PB_VARINT(1), &id}, {PB_VARINT(2), &location.mapping},
		{PB_VARINT(3), &location.address}};
	int r = read_numbers(message, numbers, ARRAY_SIZE(numbers));

	if (r == 0)
		r = map_u64_set(&profile->location_of, id, profile->locations.count);
	return r < 0 ? r : array_append(&profile->locations, location);
}

static int add_function(struct profile *profile, struct pb_bytes message)
{
	struct function function = {0};
	uint64_t id = 0;
	const struct number numbers[] = {{PB_VARINT(1), &id}, {PB_VARINT(2), &function.name},
		{PB_VARINT(4), &function.file}};
	int r = read_numbers(message, numbers, ARRAY_SIZE(numbers));

	if (r == 0)
		r = map_u64_set(&profile->function_of, id, profile->functions.count);
	return r < 0 ? r : array_append(&profile->functions, function);
}

static int add_mapping(struct profile *profile, struct pb_bytes message)
{
	uint64_t id = 0, name = 0;
	const struct number numbers[] = {{PB_VARINT(1), &id}, {PB_VARINT(5), &name}};
	int r = read_numbers(message, numbers, ARRAY_SIZE(numbers));

	if (r == 0)
		r = map_u64_set(&profile->mapping_of, id, profile->mappings.count);
	return r < 0 ? r : array_append(&profile->mappings, name);
}

static int take_field(struct profile *profile, const struct pb_field *field)
{
	switch (field->tag) {
	case PB_BYTES(1):
		return array_append(&profile->types, field->bytes);
	case PB_BYTES(3):
		return add_mapping(profile, field->bytes);
	case PB_BYTES(4):
		return add_location(profile, field->bytes);
	case PB_BYTES(5):
		return add_function(profile, field->bytes);
	case PB_BYTES(6):
		return array_append(&profile->strings, field->bytes);
	case PB_VARINT(9):
		profile->begin_unix_ns = (int64_t)field->value > 0 ? field->value : 0;
		return 0;
	case PB_BYTES(11):
		profile->period_type = field->bytes;
		return 0;
	case PB_VARINT(12):
		profile->period = (int64_t)field->value > 0 ? field->value : 0;
		return 0;
	default:
		return 0;
	}
}

static int read_tables(struct profile *profile)
{
	struct pb_cursor cursor = pb_cursor(profile->message);
	struct pb_field field;
	int r;

	while ((r = pb_next(&cursor, &field)) > 0) {
		r = take_field(profile, &field);
		if (r < 0)
			break;
	}
	return r;
}

/* ---- what is counted ---- */

static struct pb_bytes unit_of(const struct profile *profile, struct pb_bytes type)
{
	struct pb_cursor cursor = pb_cursor(type);
	struct pb_field field;
	uint64_t unit = 0;

	while (pb_next(&cursor, &field) > 0) {
		if (field.tag == PB_VARINT(2))
			unit = field.value;
	}
	return text_of(profile, unit);
}

/* A count of samples, each worth a period, is what a capture has, too. */
static void choose_value(struct profile *profile)
{
	bool has_period = is_text(unit_of(profile, profile->period_type), "nanoseconds");

	for (size_t i = 0; i < profile->types.count; i++) {
		struct pb_bytes unit = unit_of(profile, profile->types.items[i]);

		if (is_text(unit, "count") && has_period && profile->period) {
			profile->value = i;
			profile->value_ns = profile->period;
			return;
		}
	}
	if (profile->types.count &&
		is_text(unit_of(profile, profile->types.items[0]), "nanoseconds"))
		profile->value_ns = 1;
}

static void note_value(struct profile *profile, uint64_t unit)
{
	struct pb_bytes name = {0};

	if (profile->types.count)
		name = unit_of(profile, profile->types.items[profile->value]);
	if (!profile->value_ns && !is_text(name, "count"))
		import_note(profile->samples.result,
			"samples here are values in %.*s, %llu each: no time is known of them",
			(int)MIN(name.length, (size_t)64), name.at ? (const char *)name.at : "",
			(unsigned long long)unit);
}

/* ---- samples ---- */

struct stack {
	uint64_t locations[SAMPLES_FRAMES];
	size_t count, value_at;
	uint64_t value;
};

static void add_number(struct stack *stack, uint32_t number, uint64_t value, size_t wanted)
{
	if (number == 1 && stack->count < SAMPLES_FRAMES)
		stack->locations[stack->count++] = value;
	else if (number == 2 && stack->value_at++ == wanted)
		stack->value = (int64_t)value > 0 ? value : 0;
}

/* Numbers come one by one or packed. */
static int read_stack(const struct profile *profile, struct pb_bytes message, struct stack *stack)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int r;

	stack->count = stack->value_at = 0;
	stack->value = 0;
	while ((r = pb_next(&cursor, &field)) > 0) {
		struct pb_cursor packed = pb_cursor(field.bytes);
		uint32_t number = field.tag >> 3;
		uint64_t value;

		if (field.tag == PB_VARINT(1) || field.tag == PB_VARINT(2))
			add_number(stack, number, field.value, profile->value);
		if (field.tag != PB_BYTES(1) && field.tag != PB_BYTES(2))
			continue;
		while (packed.at < packed.end && pb_read_varint(&packed, &value) > 0)
			add_number(stack, number, value, profile->value);
	}
	return r;
}

static int add_line(struct profile *profile, const struct location *location, struct pb_bytes line)
{
	struct samples_frame frame = {.address = location->address};
	struct pb_cursor cursor = pb_cursor(line);
	struct pb_bytes name = {0}, file = {0}, module = {0};
	struct pb_field field;
	uint64_t index;

	while (pb_next(&cursor, &field) > 0) {
		if (field.tag == PB_VARINT(1) &&
			map_u64_get(&profile->function_of, field.value, &index)) {
			name = text_of(profile, profile->functions.items[index].name);
			file = text_of(profile, profile->functions.items[index].file);
		} else if (field.tag == PB_VARINT(2)) {
			frame.line = (uint32_t)field.value;
		}
	}
	if (map_u64_get(&profile->mapping_of, location->mapping, &index))
		module = text_of(profile, profile->mappings.items[index]);
	frame.name = (const char *)name.at;
	frame.name_length = name.length;
	frame.file = (const char *)file.at;
	frame.file_length = file.length;
	frame.module = (const char *)module.at;
	frame.module_length = module.length;
	return samples_add_frame(&profile->samples, &frame);
}

/* A location has a line for each function that was inlined there, the innermost first. */
static int add_location_frames(struct profile *profile, uint64_t id)
{
	const struct location *location;
	struct pb_cursor cursor;
	struct pb_field field;
	bool has_line = false;
	uint64_t index;
	int r = 0;

	if (!map_u64_get(&profile->location_of, id, &index))
		return 0;
	location = &profile->locations.items[index];
	cursor = pb_cursor(location->message);
	while (r == 0 && pb_next(&cursor, &field) > 0) {
		if (field.tag != PB_BYTES(4))
			continue;
		has_line = true;
		r = add_line(profile, location, field.bytes);
	}
	return r < 0 || has_line ? r : add_line(profile, location, (struct pb_bytes){0});
}

static int add_sample(struct profile *profile, const struct stack *stack, uint64_t unit)
{
	int r = 0;

	if (!stack->value)
		return 0;
	for (size_t i = 0; r == 0 && i < stack->count; i++)
		r = add_location_frames(profile, stack->locations[i]);
	if (r == 0)
		r = samples_end_stack(&profile->samples);
	return r < 0 ? r
		     : samples_add(&profile->samples, (struct capture_sample){.pid = 1, .tid = 1},
			       stack->value / unit + (stack->value % unit >= unit - unit / 2));
}

/* With `unit` 0 values are added up, and nothing else. */
static int read_samples(struct profile *profile, uint64_t unit, uint64_t *ret_total)
{
	struct pb_cursor cursor = pb_cursor(profile->message);
	struct pb_field field;
	struct stack stack;
	int r;

	*ret_total = 0;
	while ((r = pb_next(&cursor, &field)) > 0) {
		if (field.tag != PB_BYTES(2))
			continue;
		r = read_stack(profile, field.bytes, &stack);
		if (r < 0)
			break;
		if (__builtin_add_overflow(*ret_total, stack.value, ret_total))
			*ret_total = UINT64_MAX;
		if (unit)
			r = add_sample(profile, &stack, unit);
		if (r < 0)
			break;
	}
	return r;
}

static int read_all(struct profile *profile)
{
	uint64_t total, unit, unit_ns;
	int r = read_tables(profile);

	if (r < 0)
		return r;
	choose_value(profile);
	r = read_samples(profile, 0, &total);
	if (r < 0)
		return r;
	unit = samples_unit(&profile->samples, total);
	note_value(profile, unit);
	if (__builtin_mul_overflow(profile->value_ns, unit, &unit_ns))
		unit_ns = 0;
	r = samples_begin(&profile->samples, unit_ns, profile->begin_unix_ns);
	if (r == 0)
		r = samples_add_task(
			&profile->samples, 1, 1, path_base_name(profile->samples.input->path));
	return r < 0 ? r : read_samples(profile, unit, &total);
}

static void profile_done(struct profile *profile)
{
	array_done(&profile->strings);
	array_done(&profile->locations);
	array_done(&profile->functions);
	array_done(&profile->mappings);
	array_done(&profile->types);
	map_u64_done(&profile->location_of);
	map_u64_done(&profile->function_of);
	map_u64_done(&profile->mapping_of);
}

static int pprof_import(const struct import_input *input, struct capture_writer *writer,
	struct import_result *ret_result, struct errmsg *err)
{
	_cleanup_(profile_done) struct profile profile = {
		.samples = {.input = input, .writer = writer, .result = ret_result},
		.message = {(const uint8_t *)input->bytes, input->length},
	};
	int r;

	*ret_result = (struct import_result){0};
	r = read_all(&profile);
	if (r == -EBADMSG)
		return errmsg_set(err, r,
			"cannot read %s: the profile of pprof is damaged or cut off", input->path);
	return samples_end(&profile.samples, r, what, err);
}

/* It begins with the types of its values: messages of two small numbers. No packet of a Perfetto
 * trace is like that. */
static bool pprof_knows(const char *head, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)head;

	if (length < 7 || bytes[0] != 0x0a || (bytes[1] != 4 && bytes[1] != 2))
		return false;
	if (bytes[1] == 2)
		return (bytes[2] == 0x10 || bytes[2] == 0x08) && bytes[3] < 0x80 &&
		       (bytes[4] == 0x0a || bytes[4] == 0x12);
	return bytes[2] == 0x08 && bytes[3] < 0x80 && bytes[4] == 0x10 && bytes[5] < 0x80 &&
	       (bytes[6] == 0x0a || bytes[6] == 0x12);
}

const struct importer pprof_importer = {
	.name = "pprof",
	.description = "profiles of pprof, plain or gzip",
	.knows = pprof_knows,
	.import = pprof_import,
};
