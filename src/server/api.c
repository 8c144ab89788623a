/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* ---- paths ---- */

static size_t length_of_part(const char *part)
{
	return strcspn(part, "/");
}

/* One part of the template, and of the path. */
static bool part_matches(const char *template, const char *path, struct api_path_values *values)
{
	size_t length = length_of_part(path);

	if (template[0] != '{')
		return length == length_of_part(template) && strncmp(template, path, length) == 0;
	if (!length || length >= sizeof(values->values[0]) || values->count == API_PATH_VALUES)
		return false;
	memcpy(values->values[values->count], path, length);
	values->values[values->count++][length] = '\0';
	return true;
}

static bool path_matches(const char *template, const char *path, struct api_path_values *values)
{
	*values = (struct api_path_values){0};
	while (*template == '/' && *path == '/') {
		template ++;
		path++;
		if (!part_matches(template, path, values))
			return false;
		template += length_of_part(template);
		path += length_of_part(path);
	}
	return !*template && !*path;
}

/* Who may GET may ask for the head alone. */
static bool method_matches(const char *wanted, const char *method)
{
	return strcmp(wanted, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

int api_find(const struct api_request *request, enum api_operation *ret_operation,
	struct api_path_values *ret_values, struct errmsg *err)
{
	bool is_known = false;

	for (int i = 0; i < API_OPERATION_MAX; i++) {
		const struct api_route *route = &api_routes[i];
		struct api_path_values values;

		if (!path_matches(route->path, request->path, &values))
			continue;
		is_known = true;
		if (!method_matches(route->method, request->method))
			continue;
		*ret_operation = (enum api_operation)i;
		*ret_values = values;
		return 0;
	}
	if (is_known)
		return errmsg_set(err, -EOPNOTSUPP, "%.100s cannot be asked for with %.10s",
			request->path, request->method);
	return errmsg_set(err, -ENOENT,
		"there is nothing at %.100s; /api/openapi.json lists what there is", request->path);
}

void api_methods(const char *path, char *ret_methods, size_t size)
{
	struct api_path_values values;
	size_t used = 0;

	*ret_methods = '\0';
	for (int i = 0; i < API_OPERATION_MAX; i++) {
		if (path_matches(api_routes[i].path, path, &values) && used < size)
			used += (size_t)snprintf(ret_methods + used, size - used, "%s%s",
				used ? ", " : "", api_routes[i].method);
	}
}

/* ---- values ---- */

static int refuse(const struct api_parameter *parameter, const char *value, const char *wanted,
	struct errmsg *err)
{
	return errmsg_set(err, -EINVAL, "%s cannot be '%.64s': it must be %s", parameter->name,
		value, wanted);
}

static int refuse_number(
	const struct api_parameter *parameter, const char *value, struct errmsg *err)
{
	return errmsg_set(err, -EINVAL, "%s cannot be '%.64s': it must be a number from %g to %g",
		parameter->name, value, parameter->minimum, parameter->maximum);
}

static int parse_text(
	const struct api_parameter *parameter, const char *value, void *place, struct errmsg *err)
{
	size_t length = strlen(value);

	if (parameter->is_id &&
		((double)length < parameter->minimum || (double)length > parameter->maximum ||
			strspn(value, "0123456789abcdef") != length))
		return errmsg_set(err, -EINVAL,
			"%s cannot be '%.64s': it must be an id of %g to %g hexadecimal digits, as "
			"the lists have them",
			parameter->name, value, parameter->minimum, parameter->maximum);
	if ((double)length < parameter->minimum || (double)length > parameter->maximum)
		return errmsg_set(err, -EINVAL, "%s must have %g to %g bytes, not %zu",
			parameter->name, parameter->minimum, parameter->maximum, length);
	*(const char **)place = value;
	return 0;
}

static int parse_choice(
	const struct api_parameter *parameter, const char *value, void *place, struct errmsg *err)
{
	char words[200];
	size_t used = 0;

	for (unsigned i = 0; parameter->choices[i]; i++) {
		if (strcmp(parameter->choices[i], value) == 0) {
			memcpy(place, &i, sizeof(i));
			return 0;
		}
		used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s",
			i ? ", " : "one of ", parameter->choices[i]);
		if (used >= sizeof(words))
			break;
	}
	return refuse(parameter, value, words, err);
}

static int parse_integer(
	const struct api_parameter *parameter, const char *value, void *place, struct errmsg *err)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end || errno ||
		(double)number < parameter->minimum || (double)number > parameter->maximum)
		return refuse_number(parameter, value, err);
	*(uint64_t *)place = number;
	return 0;
}

static int parse_number(
	const struct api_parameter *parameter, const char *value, void *place, struct errmsg *err)
{
	double number;
	char *end;

	/* strtod() also takes "inf", "nan", hexadecimal and leading space. */
	if (strspn(value, "0123456789.eE+-") != strlen(value) || !*value)
		return refuse_number(parameter, value, err);
	number = strtod(value, &end);
	if (*end || !(number >= parameter->minimum && number <= parameter->maximum))
		return refuse_number(parameter, value, err);
	*(double *)place = number;
	return 0;
}

static int parse_flag(
	const struct api_parameter *parameter, const char *value, void *place, struct errmsg *err)
{
	bool is_true = strcmp(value, "true") == 0;

	if (!is_true && strcmp(value, "false") != 0)
		return refuse(parameter, value, "true or false", err);
	*(bool *)place = is_true;
	return 0;
}

static int parse_texts(
	const struct api_parameter *parameter, const char *value, void *place, struct errmsg *err)
{
	struct api_texts *texts = place;

	if (texts->count == parameter->most || texts->count == API_TEXTS_MAX)
		return errmsg_set(err, -EINVAL, "%s can be given %zu times at most",
			parameter->name, parameter->most);
	return parse_text(parameter, value, &texts->values[texts->count++], err);
}

static int parse_value(const struct api_parameter *parameter, const char *value, char *parameters,
	struct errmsg *err)
{
	static int (*const parsers[])(
		const struct api_parameter *, const char *, void *, struct errmsg *) = {
		[API_TEXT] = parse_text,
		[API_CHOICE] = parse_choice,
		[API_INTEGER] = parse_integer,
		[API_NUMBER] = parse_number,
		[API_FLAG] = parse_flag,
		[API_TEXTS] = parse_texts,
	};
	int r = parsers[parameter->type](parameter, value, parameters + parameter->offset, err);

	if (r == 0 && parameter->has_offset != API_NO_HAS)
		*(bool *)(parameters + parameter->has_offset) = true;
	return r;
}

/* ---- parameters ---- */

static const struct api_parameter *find_parameter(
	const struct api_parameter *parameters, const char *name)
{
	for (; parameters && parameters->name; parameters++) {
		if (!parameters->is_in_path && !parameters->is_in_body &&
			strcmp(parameters->name, name) == 0)
			return parameters;
	}
	return NULL;
}

static void set_initial(const struct api_parameter *parameter, char *parameters)
{
	unsigned choice = (unsigned)parameter->initial;
	uint64_t number = (uint64_t)parameter->initial;

	if (parameter->type == API_CHOICE)
		memcpy(parameters + parameter->offset, &choice, sizeof(choice));
	else if (parameter->type == API_INTEGER)
		memcpy(parameters + parameter->offset, &number, sizeof(number));
	else if (parameter->type == API_NUMBER)
		memcpy(parameters + parameter->offset, &parameter->initial,
			sizeof(parameter->initial));
	else if (parameter->type == API_FLAG)
		*(bool *)(parameters + parameter->offset) = parameter->initial != 0;
}

/* Are all there that must be, and as often? */
static int check_required(
	const struct api_route *route, const struct api_request *request, struct errmsg *err)
{
	for (const struct api_parameter *p = route->parameters; p && p->name; p++) {
		size_t least = p->type == API_TEXTS ? p->least : p->is_required,
		       count = p->is_in_body ? least : 0;

		for (size_t i = 0; i < request->argument_count; i++)
			count += strcmp(request->arguments[i].name, p->name) == 0;
		if (count < least && least > 1)
			return errmsg_set(err, -EINVAL, "%s needs the parameter %s %zu times",
				route->path, p->name, least);
		if (count < least)
			return errmsg_set(
				err, -EINVAL, "%s needs the parameter %s", route->path, p->name);
	}
	return 0;
}

static bool comes_before(const struct api_request *request, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (strcmp(request->arguments[i].name, request->arguments[index].name) == 0)
			return true;
	}
	return false;
}

static int parse_argument(const struct api_route *route, const struct api_request *request,
	size_t index, char *parameters, struct errmsg *err)
{
	const struct api_argument *argument = &request->arguments[index];
	const struct api_parameter *parameter = find_parameter(route->parameters, argument->name);

	if (!parameter)
		return errmsg_set(err, -EINVAL,
			"%s has no parameter '%.64s'; /api/openapi.json lists those it has",
			route->path, argument->name);
	if (parameter->type != API_TEXTS && comes_before(request, index))
		return errmsg_set(err, -EINVAL, "%s comes twice: give it once", parameter->name);
	return parse_value(parameter, argument->value, parameters, err);
}

int api_parse(enum api_operation operation, const struct api_request *request,
	const struct api_path_values *values, void *parameters, struct errmsg *err)
{
	const struct api_route *route = &api_routes[operation];
	size_t value = 0;
	int r = 0;

	memset(parameters, 0, API_PARAMETERS_BYTES);
	if (request->argument_count > API_ARGUMENTS_MAX)
		return errmsg_set(
			err, -EINVAL, "a request has at most %d parameters", API_ARGUMENTS_MAX);
	for (const struct api_parameter *p = route->parameters; p && p->name; p++) {
		set_initial(p, parameters);
		if (p->is_in_path && value < values->count)
			r = parse_value(p, values->values[value++], parameters, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < request->argument_count; i++) {
		r = parse_argument(route, request, i, parameters, err);
		if (r < 0)
			return r;
	}
	return check_required(route, request, err);
}

/* ---- bodies ---- */

bool api_takes_json(enum api_operation operation)
{
	const char *type = api_routes[operation].body_type;

	return type && strcmp(type, "application/json") == 0;
}

/* Is it one object, with nothing behind it, and nothing to mend? */
static bool is_one_object(const char *body, size_t length)
{
	struct json_reader reader = {.at = body, .end = body + length, .is_last = true};
	enum json_status status = json_reader_enter(&reader, '{');
	struct json_text name, value;

	while (status == JSON_OK && (status = json_reader_member(&reader, &name)) == JSON_OK)
		status = json_reader_value(&reader, &value);
	return status == JSON_DONE && !reader.mended && json_reader_peek(&reader) == '\0' &&
	       reader.at == reader.end;
}

static bool is_text(const char *bytes, size_t length)
{
	for (size_t at = 0, count; at < length; at += count) {
		count = utf8_sequence_length(bytes + at, length - at);
		if (!count || !bytes[at])
			return false;
	}
	return true;
}

/* Without its escapes a string is never longer, and there is room for the NUL at its last quote. */
static int unescape_in_place(const struct api_parameter *parameter, char *string, size_t length,
	bool is_escaped, struct errmsg *err)
{
	const struct json_text text = {string, length, is_escaped};
	_cleanup_strbuf_ struct strbuf plain = {0};

	json_text_unescape(&plain, &text);
	if (strbuf_status(&plain) < 0)
		return -ENOMEM;
	if (plain.length > length || !is_text(strbuf_cstr(&plain), plain.length))
		return errmsg_set(err, -EINVAL, "%s is no text in UTF-8", parameter->name);
	memcpy(string, strbuf_cstr(&plain), plain.length + 1);
	return 0;
}

static int refuse_type(const struct api_parameter *parameter, struct errmsg *err)
{
	static const char *const types[] = {
		[API_TEXT] = "a string",
		[API_CHOICE] = "a string",
		[API_INTEGER] = "a whole number",
		[API_NUMBER] = "a number",
		[API_FLAG] = "true or false",
		[API_OBJECT] = "an object",
		[API_TEXTS] = "an array of strings",
	};

	return errmsg_set(err, -EINVAL, "%s must be %s", parameter->name, types[parameter->type]);
}

static int parse_string(const struct api_parameter *parameter, char *body,
	const struct json_text *value, char *parameters, struct errmsg *err)
{
	char *at = body + (value->bytes - body) + 1;
	int r = unescape_in_place(parameter, at, value->length - 2, value->escaped, err);

	return r < 0 ? r : parse_value(parameter, at, parameters, err);
}

static int parse_array(const struct api_parameter *parameter, char *body,
	const struct json_text *value, char *parameters, struct errmsg *err)
{
	struct json_reader reader = {
		.at = value->bytes, .end = value->bytes + value->length, .is_last = true};
	struct json_text item;
	enum json_status status = json_reader_enter(&reader, '[');
	int r = 0;

	while (r == 0 && status == JSON_OK && (status = json_reader_item(&reader)) == JSON_OK &&
		(status = json_reader_value(&reader, &item)) == JSON_OK)
		r = item.bytes[0] == '"' ? parse_string(parameter, body, &item, parameters, err)
					 : refuse_type(parameter, err);
	if (r == 0 && (status != JSON_DONE || reader.mended || reader.at != reader.end))
		return refuse_type(parameter, err);
	if (r == 0 && parameter->has_offset != API_NO_HAS)
		*(bool *)(parameters + parameter->has_offset) = true;
	return r;
}

/* `value` is a piece of `body`. */
static int parse_member(const struct api_parameter *parameter, char *body,
	const struct json_text *value, char *parameters, struct errmsg *err)
{
	bool is_string = parameter->type == API_TEXT || parameter->type == API_CHOICE;
	char number[64];

	if ((value->bytes[0] == '"') != is_string ||
		(value->bytes[0] == '{') != (parameter->type == API_OBJECT) ||
		(value->bytes[0] == '[') != (parameter->type == API_TEXTS))
		return refuse_type(parameter, err);
	if (parameter->type == API_TEXTS)
		return parse_array(parameter, body, value, parameters, err);
	if (parameter->type == API_OBJECT) {
		memcpy(parameters + parameter->offset, value, sizeof(*value));
		if (parameter->has_offset != API_NO_HAS)
			*(bool *)(parameters + parameter->has_offset) = true;
		return 0;
	}
	if (is_string)
		return parse_string(parameter, body, value, parameters, err);
	if (value->length >= sizeof(number))
		return refuse_type(parameter, err);
	memcpy(number, value->bytes, value->length);
	number[value->length] = '\0';
	return parse_value(parameter, number, parameters, err);
}

/* Its place among the route's parameters; -1: the body has no such member. */
static int find_member(const struct api_route *route, const struct json_text *name)
{
	for (int i = 0; route->parameters && route->parameters[i].name; i++) {
		if (route->parameters[i].is_in_body &&
			json_text_equals(name, route->parameters[i].name))
			return i;
	}
	return -1;
}

int api_parse_body(enum api_operation operation, char *body, size_t length, void *parameters,
	struct errmsg *err)
{
	const struct api_route *route = &api_routes[operation];
	struct json_reader reader = {.at = body, .end = body + length, .is_last = true};
	struct json_text name, value;
	uint64_t seen = 0;

	if (!is_one_object(body, length))
		return errmsg_set(err, -EINVAL, "the body must be one JSON object");
	json_reader_enter(&reader, '{');
	while (json_reader_member(&reader, &name) == JSON_OK &&
		json_reader_value(&reader, &value) == JSON_OK) {
		int place = find_member(route, &name), r;

		if (place < 0 || (seen & 1ULL << place))
			return errmsg_set(err, -EINVAL, "the member '%.*s' %s",
				(int)MIN(name.length, 64u), name.bytes,
				place < 0 ? "is unknown" : "comes twice");
		seen |= 1ULL << place;
		r = parse_member(&route->parameters[place], body, &value, parameters, err);
		if (r < 0)
			return r;
	}
	for (int i = 0; route->parameters && route->parameters[i].name; i++) {
		const struct api_parameter *p = &route->parameters[i];

		if (p->is_in_body && p->is_required && !(seen & 1ULL << i))
			return errmsg_set(err, -EINVAL, "the body needs the member %s", p->name);
	}
	return 0;
}
