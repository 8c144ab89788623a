/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a client sends: lines for the path, Host, Origin, Sec-Fetch-Site, Cookie and
 * Authorization, then parameters. libwebsockets has cut the request into them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "server/api.h"
#include "server/guard.h"
#include "server/listen.h"
#include "server/question.h"
#include "target.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static char *next_line(char **at)
{
	char *line = *at, *end = line + strcspn(line, "\n");

	*at = end + (*end != '\0');
	*end = '\0';
	return line;
}

static void check_guard(const struct guard_request *request)
{
	static const char *const hosts[] = {"profiles.example"};
	const struct guard guard = {
		.token = TOKEN, .cookie_name = "sonde-1", .hosts = hosts, .host_count = 1};

	for (enum guard_kind kind = GUARD_PAGE; kind <= GUARD_CHANGE; kind++) {
		/* Nobody gets in whose bytes do not have the token. */
		if (guard_check(&guard, request, kind) == GUARD_ALLOWED &&
			!(request->cookie && strstr(request->cookie, TOKEN)) &&
			!(request->authorization && strstr(request->authorization, TOKEN)))
			abort();
	}
}

static void check_request(struct api_request *request, char *rest)
{
	union {
		void *alignment;
		char bytes[API_PARAMETERS_BYTES];
	} parameters;
	struct api_argument arguments[API_ARGUMENTS_MAX];
	struct api_path_values values;
	enum api_operation operation;
	struct errmsg err;

	while (*rest && request->argument_count < API_ARGUMENTS_MAX) {
		char *name = next_line(&rest), *equals = strchr(name, '=');

		if (equals)
			*equals = '\0';
		arguments[request->argument_count++] =
			(struct api_argument){name, equals ? equals + 1 : ""};
	}
	request->arguments = arguments;
	if (api_find(request, &operation, &values, &err) == 0)
		api_parse(operation, request, &values, &parameters, &err);
}

static void check_question(const char *bytes, size_t length)
{
	const char *at = bytes, *key, *value;
	struct question question;

	if (question_read(&at, bytes + length, &question) < 0)
		return;
	while (question_next(&at, bytes + length, &key, &value)) {
		if (key + strlen(key) >= bytes + length || value + strlen(value) >= bytes + length)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	char *copy = malloc(length + 1), *at = copy;
	struct api_request request = {.method = "GET"};
	struct guard_request guard = {0};
	struct listen_place place;

	if (!copy)
		return 0;
	check_question((const char *)bytes, length);
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	request.path = next_line(&at);
	guard.host = next_line(&at);
	guard.origin = *at == '\n' ? NULL : next_line(&at);
	guard.fetch_site = *at == '\n' ? NULL : next_line(&at);
	guard.cookie = next_line(&at);
	guard.authorization = next_line(&at);
	listen_parse(&place, guard.host, NULL);
	check_guard(&guard);
	check_request(&request, at);
	free(copy);
	return 0;
}
