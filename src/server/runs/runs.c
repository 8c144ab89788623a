/* SPDX-License-Identifier: Apache-2.0 */
/* /api/runs and below, in the server: asks a process of its own, and sends what that answers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "server/child.h"
#include "server/runs/answers.h"

/* Processes at once; the page asks two or three things at a time. */
#define CHILDREN_MAX 8
#define ANSWER_NS    (60 * NS_PER_S)

/* ---- asking ---- */

static enum api_format format_of(
	enum api_operation operation, const union api_parameters *parameters)
{
	switch (operation) {
	case API_LIST_RUNS:
		return parameters->list_runs.format;
	case API_GET_RUN:
		return parameters->run.format;
	case API_COMPARE_RUNS:
		return parameters->compare_runs.format;
	case API_ANALYSE_RUNS:
		return parameters->analyse_runs.format;
	case API_PREDICT_RUN:
		return parameters->predict_run.format;
	case API_GET_REGRESSIONS:
		return parameters->regressions.format;
	default:
		return API_FORMAT_JSON;
	}
}

static const char *type_of(enum api_operation operation, enum api_format format)
{
	if (operation == API_EXPORT_RUNS)
		return "application/x-ndjson";
	return format == API_FORMAT_CSV ? "text/csv; charset=utf-8" : "application/json";
}

static void answer_is_ready(void *owner)
{
	struct http_connection *connection = owner;

	lws.lws_callback_on_writable(connection->wsi);
}

static int start(struct http_connection *connection, enum api_operation operation,
	const union api_parameters *parameters, struct errmsg *err)
{
	struct server *server = connection->server;
	struct runs_question question = {.server = server,
		.operation = operation,
		.format = format_of(operation, parameters),
		.parameters = parameters,
		.body = connection->body.bytes.data,
		.body_length = connection->body.bytes.length};
	const struct child_setup setup = {.answer = runs_answer,
		.context = &question,
		.memory_bytes = server->options->limits.memory_bytes,
		.answer_bytes = server->options->limits.answer_bytes,
		.ready = answer_is_ready,
		.owner = connection};

	if (server->children >= CHILDREN_MAX)
		return errmsg_set(err, -EAGAIN,
			"the server asks the runs database as much as it may: ask again later");
	connection->answer_type = type_of(operation, question.format);
	return child_start(&connection->child, &server->loop, &setup, err);
}

void handle_runs(struct http_connection *connection, enum api_operation operation,
	const union api_parameters *parameters)
{
	struct server *server = connection->server;
	struct errmsg err;

	if (!server->options->store) {
		http_fail(connection, 404, API_ERROR_NO_STORE,
			"this server has no runs database: start it as sonde serve --store FILE");
		return;
	}
	captures_refresh(server->captures, server->now_ns);
	if (start(connection, operation, parameters, &err) < 0) {
		http_fail(connection, 503, API_ERROR_BUSY, err.text);
		return;
	}
	server->children++;
	connection->wait_until_ns = monotonic_now_ns() + ANSWER_NS;
	http_set_active(connection, true);
}

/* ---- the answer ---- */

static const struct {
	int error, status;
	enum api_error code;
} failures[] = {
	{-EINVAL, 400, API_ERROR_BAD_REQUEST},
	{-EEXIST, 400, API_ERROR_BAD_REQUEST},
	{-EROFS, 403, API_ERROR_READ_ONLY},
	{-ENOENT, 404, API_ERROR_NOT_FOUND},
	{-ENODATA, 404, API_ERROR_NO_DATA},
	{-EFBIG, 413, API_ERROR_TOO_LARGE},
	{-E2BIG, 422, API_ERROR_ANSWER_TOO_LARGE},
	{-ECHILD, 500, API_ERROR_WORKER_FAILED},
	{-EBADMSG, 500, API_ERROR_STORE_DAMAGED},
	{-EBUSY, 503, API_ERROR_STORE_BUSY},
	{-ENOMEM, 503, API_ERROR_OUT_OF_MEMORY},
	{-ENOSPC, 507, API_ERROR_STORE_FULL},
};

static void fail(struct http_connection *connection, int error, const char *sentence)
{
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		if (failures[i].error == error) {
			http_fail(connection, failures[i].status, failures[i].code, sentence);
			return;
		}
	}
	http_fail(connection, 500, API_ERROR_STORE_FAILED, sentence);
}

void handle_runs_answer(struct http_connection *connection)
{
	struct http_response *response = &connection->response;
	const char *bytes = NULL, *sentence;
	int r = child_answer(connection->child, &bytes, &response->length, &sentence);

	http_set_active(connection, false);
	if (r < 0) {
		fail(connection, r, sentence);
		return;
	}
	response->status = 200;
	response->type = connection->answer_type;
	response->bytes = (const unsigned char *)bytes;
	if (strcmp(connection->answer_type, "application/x-ndjson") == 0)
		snprintf(response->name, sizeof(response->name), "runs.jsonl");
	if (strcmp(connection->request.method, "GET") == 0)
		answer_set_etag(connection);
}

void handle_runs_late(struct http_connection *connection)
{
	http_set_active(connection, false);
	http_fail(connection, 504, API_ERROR_TIMED_OUT,
		"the runs database took too long to answer: ask for fewer runs, or again later");
}
