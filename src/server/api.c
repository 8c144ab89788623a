/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

	if (parameter->is_id && ((double)length != parameter->maximum ||
					strspn(value, "0123456789abcdef") != length))
		return refuse(parameter, value, "an id as /api/captures lists it", err);
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
		if (!parameters->is_in_path && strcmp(parameters->name, name) == 0)
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
}

/* Are all there that must be? */
static int check_required(
	const struct api_route *route, const struct api_request *request, struct errmsg *err)
{
	for (const struct api_parameter *p = route->parameters; p && p->name; p++) {
		bool is_there = !p->is_required;

		for (size_t i = 0; !is_there && i < request->argument_count; i++)
			is_there = strcmp(request->arguments[i].name, p->name) == 0;
		if (!is_there)
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
	if (comes_before(request, index))
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
