/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the operations of schema/api.json, which are in several files: each is called with
 * its parameters, and fills in the connection's response. The table is in handlers.c.
 */
#pragma once

#include "server/http.h"
#include "server/question.h"

union api_parameters {
	struct api_get_capture_parameters capture;
	struct api_get_live_parameters live;
	struct api_get_report_parameters report;
	struct api_get_call_tree_parameters call_tree;
	struct api_get_call_tree_diff_parameters diff;
	struct api_get_sections_parameters sections;
	struct api_get_diff_parameters difference;
	struct api_get_timeline_parameters timeline;
	struct api_get_timeline_tile_parameters tile;
	struct api_get_timeline_names_parameters names;
	struct api_get_timeline_slice_parameters slice;
	struct api_get_export_parameters export;
	struct api_get_job_parameters job;
	struct api_start_job_parameters start_job;
	struct api_set_job_window_parameters job_window;
	struct api_list_runs_parameters list_runs;
	struct api_compare_runs_parameters compare_runs;
	struct api_analyse_runs_parameters analyse_runs;
	struct api_predict_run_parameters predict_run;
	struct api_get_regressions_parameters regressions;
	struct api_retain_runs_parameters retain_runs;
	struct api_export_runs_parameters export_runs;
	struct api_get_run_parameters run;
	struct api_edit_run_parameters edit_run;
	struct api_delete_run_parameters delete_run;
	struct api_get_run_capture_parameters run_capture;
	char bytes[API_PARAMETERS_BYTES];
};

/* The text of the response is JSON, and all of it: ends it, with status 200. */
void answer_json(struct http_connection *connection);
/* Those of the response's `bytes` have a tag, so that a browser need not fetch the same again. */
void answer_set_etag(struct http_connection *connection);
struct json_writer;
/* One of /api/captures. */
void write_capture(
	struct json_writer *json, const struct server *server, const struct capture *capture);

/* NULL, and answered, when there is none of this id. */
struct capture *find_capture(struct http_connection *connection, const char *id);
/* Asks the process that has the capture open; with `after_id`, of that capture, too. */
void ask_about(struct http_connection *connection, const char *id, const char *after_id,
	struct question question, uint64_t wait_s);
/* Letters, digits and a few signs of the name: it may go into a header. */
void plain_name(char *out, size_t size, const char *name);

/* export_handlers.c */
void handle_get_export(struct http_connection *connection, const union api_parameters *parameters);

/* job_handlers.c */
void handle_list_commands(
	struct http_connection *connection, const union api_parameters *parameters);
void handle_list_jobs(struct http_connection *connection, const union api_parameters *parameters);
void handle_get_job(struct http_connection *connection, const union api_parameters *parameters);
void handle_start_job(struct http_connection *connection, const union api_parameters *parameters);
void handle_cancel_job(struct http_connection *connection, const union api_parameters *parameters);
void handle_set_job_window(
	struct http_connection *connection, const union api_parameters *parameters);

/* page_handlers.c: whatever is not below /api */
void handle_page(struct http_connection *connection);

/* runs/runs.c: /api/runs and below. */
void handle_runs(struct http_connection *connection, enum api_operation operation,
	const union api_parameters *parameters);
/* The answer of connection->child is there; or it did not come in time. */
void handle_runs_answer(struct http_connection *connection);
void handle_runs_late(struct http_connection *connection);
