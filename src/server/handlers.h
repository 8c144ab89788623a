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
	char bytes[API_PARAMETERS_BYTES];
};

/* The text of the response is JSON, and all of it: ends it, with status 200. */
void answer_json(struct http_connection *connection);

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
