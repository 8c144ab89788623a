/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's interface as schema/api.json describes it: which operation a request means, its
 * parameters and the members of its body, checked. schema/api.py makes the tables and structs
 * (api_table.h).
 *
 * To add an operation: its path in schema/api.json, a handler in server/handlers.c, a test in
 * tests/e2e/test_server.py; `schema/api.py typescript` renews web/src/api.ts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"

#define API_TEXTS_MAX 32

struct api_texts {
	const char *values[API_TEXTS_MAX];
	size_t count;
};

#include "api_table.h"

enum api_type {
	API_TEXT,    /* const char *, `minimum` to `maximum` bytes */
	API_CHOICE,  /* an enum: the place in `choices` */
	API_INTEGER, /* uint64_t */
	API_NUMBER,  /* double */
	API_FLAG,    /* bool */
	API_OBJECT,  /* struct json_text: an object of a body, its members not looked at */
	API_TEXTS,   /* struct api_texts: `least` to `most` of texts; once for each, or an array */
};

#define API_NO_HAS SIZE_MAX
/* Of the largest struct of parameters. */
#define API_PARAMETERS_BYTES 1024
/* Of a request: more are refused. */
#define API_ARGUMENTS_MAX 40
#define API_PATH_VALUES   4

struct api_parameter {
	const char *name; /* NULL ends a list */
	enum api_type type;
	bool is_in_path, is_in_body, is_required;
	bool is_id; /* hexadecimal digits alone */
	const char *const *choices;
	double minimum, maximum;
	size_t least, most; /* of API_TEXTS */
	double initial;     /* the default of numbers and choices */
	size_t offset,
		has_offset; /* in the operation's struct; API_NO_HAS: it always has a value */
};

struct api_route {
	const char *method, *path, *name;
	const struct api_parameter *parameters; /* NULL: none */
	/* Of its body; NULL and 0: it has none. */
	const char *body_type;
	size_t body_bytes_max;
};

extern const struct api_route api_routes[API_OPERATION_MAX];
extern const char *const api_error_codes[API_ERROR_MAX];
/* schema/api.json. */
extern const unsigned char api_document[];
extern const size_t api_document_length;

/* What becomes of messages that a client does not take in time: server/bus.h. */
enum api_class {
	API_CLASS_MUST_KEEP,
	API_CLASS_LATEST_WINS,
	API_CLASS_DROP_FIRST,
};

struct api_message_kind {
	const char *type;
	enum api_class class;
	uint8_t frame_kind; /* of its binary frames; 0: it has none */
};

extern const struct api_message_kind api_message_kinds[API_MESSAGE_MAX];

/* A request's path and query, decoded. */
struct api_argument {
	const char *name, *value;
};

struct api_request {
	const char *method, *path;
	const struct api_argument *arguments;
	size_t argument_count;
};

/* What was found in the path: pieces of it. */
struct api_path_values {
	char values[API_PATH_VALUES][64];
	size_t count;
};

/*
 * Returns 0, -ENOENT (there is no such path), or -EOPNOTSUPP (but not with this method), with a
 * sentence.
 */
int api_find(const struct api_request *request, enum api_operation *ret_operation,
	struct api_path_values *ret_values, struct errmsg *err);
/* Does it take a body that api_parse_body() reads? */
bool api_takes_json(enum api_operation operation);
/* The methods that the path can be asked for with: "GET, POST". */
void api_methods(const char *path, char *ret_methods, size_t size);
/*
 * Fills the operation's struct, in `parameters` of API_PARAMETERS_BYTES. Its texts are those of the
 * request and of `values`. Returns 0, or -EINVAL with a sentence: a parameter is unknown, comes
 * twice, or is out of its bounds.
 */
int api_parse(enum api_operation operation, const struct api_request *request,
	const struct api_path_values *values, void *parameters, struct errmsg *err);
/*
 * Adds the members of a body of type application/json to what api_parse() has filled in. Texts are
 * written into `body`, without their escapes, and end in NUL. Returns 0, -ENOMEM, or -EINVAL with a
 * sentence: the body is not one object, or a member is unknown, missing, comes twice, or is out of
 * its bounds.
 */
int api_parse_body(enum api_operation operation, char *body, size_t length, void *parameters,
	struct errmsg *err);
