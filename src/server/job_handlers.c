/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of commands and jobs do. */
#include <errno.h>

#include "base/json.h"
#include "server/handlers.h"

void handle_list_commands(
	struct http_connection *connection, const union api_parameters *parameters)
{
	struct json_writer json = {.out = &connection->response.text};

	(void)parameters;
	commands_write(connection->server->options->commands, &json);
	answer_json(connection);
}

void handle_list_jobs(struct http_connection *connection, const union api_parameters *parameters)
{
	struct json_writer json = {.out = &connection->response.text};

	(void)parameters;
	jobs_write(connection->server->jobs, &json);
	answer_json(connection);
}

static void answer_job(struct http_connection *connection, const struct job *job, int status)
{
	struct json_writer json = {.out = &connection->response.text};

	job_write(job, &json);
	answer_json(connection);
	if (connection->response.status == 200)
		connection->response.status = status;
}

/* NULL, and answered, when there is none of this id. */
static struct job *find_job(struct http_connection *connection, const char *id)
{
	struct job *job = jobs_find(connection->server->jobs, id);

	if (!job)
		http_fail(connection, 404, API_ERROR_NOT_FOUND,
			"there is no job of this id; /api/jobs lists them");
	return job;
}

void handle_get_job(struct http_connection *connection, const union api_parameters *parameters)
{
	const struct job *job = find_job(connection, parameters->job.job);

	if (job)
		answer_job(connection, job, 200);
}

static void refuse_job(struct http_connection *connection, int error, const char *sentence)
{
	if (error == -EINVAL)
		http_fail(connection, 400, API_ERROR_BAD_REQUEST, sentence);
	else if (error == -EBUSY)
		http_fail(connection, 429, API_ERROR_TOO_MANY_JOBS, sentence);
	else if (error == -EALREADY)
		http_fail(connection, 409, API_ERROR_CONFLICT, sentence);
	else if (error == -ENOMEM)
		http_fail(connection, 503, API_ERROR_OUT_OF_MEMORY, "memory ran out in the server");
	else
		http_fail(connection, 500, API_ERROR_WORKER_FAILED, sentence);
}

void handle_start_job(struct http_connection *connection, const union api_parameters *parameters)
{
	const struct api_start_job_parameters *wanted = &parameters->start_job;
	struct server *server = connection->server;
	const struct job_command *command =
		commands_find(server->options->commands, wanted->command);
	const struct job *job;
	struct errmsg err = {""};
	int r;

	if (!command) {
		http_fail(connection, 404, API_ERROR_NOT_FOUND,
			"no command of this name may be started here; /api/commands lists those "
			"that may");
		return;
	}
	r = jobs_start(server->jobs, command, wanted->has_parameters ? &wanted->parameters : NULL,
		&job, &err);
	if (r < 0)
		refuse_job(connection, r, err.text);
	else
		answer_job(connection, job, 201);
}

void handle_cancel_job(struct http_connection *connection, const union api_parameters *parameters)
{
	struct job *job = find_job(connection, parameters->job.job);
	struct errmsg err;
	int r = job ? job_cancel(connection->server->jobs, job, &err) : 0;

	if (r < 0)
		refuse_job(connection, r, err.text);
	else if (job)
		answer_job(connection, job, 202);
}

void handle_set_job_window(
	struct http_connection *connection, const union api_parameters *parameters)
{
	struct job *job = find_job(connection, parameters->job_window.job);
	bool is_open = parameters->job_window.action == API_ACTION_OPEN;
	struct errmsg err;
	int r = job ? job_set_window(connection->server->jobs, job, is_open, &err) : 0;

	if (r < 0)
		refuse_job(connection, r, err.text);
	else if (job)
		answer_job(connection, job, 202);
}
