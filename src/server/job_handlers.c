/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of commands and jobs do. */
#include "base/json.h"
#include "server/handlers.h"

static void answer_empty_list(struct http_connection *connection, const char *name)
{
	struct json_writer json = {.out = &connection->response.text};

	json_begin_object(&json);
	json_key(&json, name);
	json_begin_array(&json);
	json_end_array(&json);
	json_end_object(&json);
	answer_json(connection);
}

void handle_list_commands(
	struct http_connection *connection, const union api_parameters *parameters)
{
	(void)parameters;
	answer_empty_list(connection, "commands");
}

void handle_list_jobs(struct http_connection *connection, const union api_parameters *parameters)
{
	(void)parameters;
	answer_empty_list(connection, "jobs");
}

void handle_get_job(struct http_connection *connection, const union api_parameters *parameters)
{
	(void)parameters;
	http_fail(connection, 404, API_ERROR_NOT_FOUND,
		"there is no job of this id; /api/jobs lists them");
}

void handle_start_job(struct http_connection *connection, const union api_parameters *parameters)
{
	(void)parameters;
	http_fail(connection, 404, API_ERROR_NOT_FOUND,
		"no command of this name may be started here; /api/commands lists those that may");
}

void handle_cancel_job(struct http_connection *connection, const union api_parameters *parameters)
{
	handle_get_job(connection, parameters);
}

void handle_set_job_window(
	struct http_connection *connection, const union api_parameters *parameters)
{
	handle_get_job(connection, parameters);
}
