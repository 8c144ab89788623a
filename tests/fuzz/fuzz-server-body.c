/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON body of a request: every operation that takes one gets it. */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "server/api.h"
#include "target.h"

union filled {
	void *alignment;
	char bytes[API_PARAMETERS_BYTES];
};

static void check_text(const struct api_parameter *parameter, const char *text)
{
	if ((double)strlen(text) < parameter->minimum || (double)strlen(text) > parameter->maximum)
		abort();
}

static void check_array(const struct api_parameter *parameter, const struct api_texts *texts)
{
	if (texts->count > parameter->most || texts->count > API_TEXTS_MAX)
		abort();
	for (size_t i = 0; i < texts->count; i++)
		check_text(parameter, texts->values[i]);
}

/* What was accepted is within the bounds of the schema. */
static void check_texts(const struct api_parameter *parameter, const union filled *filled)
{
	for (; parameter && parameter->name; parameter++) {
		const char *text;

		if (parameter->is_in_body && parameter->type == API_TEXTS)
			check_array(parameter, (const void *)(filled->bytes + parameter->offset));
		if (!parameter->is_in_body || parameter->type != API_TEXT)
			continue;
		memcpy(&text, filled->bytes + parameter->offset, sizeof(text));
		if (text)
			check_text(parameter, text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	for (enum api_operation operation = 0; operation < API_OPERATION_MAX; operation++) {
		union filled filled = {0};
		struct errmsg err;
		char *body;

		if (!api_takes_json(operation) || length > api_routes[operation].body_bytes_max)
			continue;
		/* As long as the body, so that a byte behind it is found. */
		body = malloc(length ? length : 1);
		if (!body)
			return 0;
		memcpy(body, bytes, length);
		if (api_parse_body(operation, body, length, &filled, &err) == 0)
			check_texts(api_routes[operation].parameters, &filled);
		free(body);
	}
	return 0;
}
