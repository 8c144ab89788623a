/* SPDX-License-Identifier: Apache-2.0 */
/* What each operation of schema/api.json does; those of jobs are in job_handlers.c, those of
 * runs in runs/, exports in export_handlers.c, the page in page_handlers.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "page/page.h"
#include "report/render.h"
#include "server/handlers.h"
#include "server/question.h"

/* ---- answers that are made here ---- */

void answer_json(struct http_connection *connection)
{
	struct http_response *response = &connection->response;

	strbuf_add_char(&response->text, '\n');
	if (strbuf_status(&response->text)) {
		http_fail(connection, 503, API_ERROR_OUT_OF_MEMORY, "memory ran out in the server");
		return;
	}
	response->status = 200;
	response->type = "application/json";
}

static void get_openapi(struct http_connection *connection, const union api_parameters *parameters)
{
	struct http_response *response = &connection->response;

	(void)parameters;
	response->status = 200;
	response->type = "application/json";
	response->bytes = api_document;
	response->length = api_document_length;
}

/* NULL: the page offers none. */
static const char *perfetto_of(const struct server_options *options)
{
	if (!options->perfetto)
		return SERVER_PERFETTO;
	return *options->perfetto ? options->perfetto : NULL;
}

static void get_status(struct http_connection *connection, const union api_parameters *parameters)
{
	const struct server *server = connection->server;
	struct json_writer json = {.out = &connection->response.text};

	(void)parameters;
	captures_refresh(server->captures, server->now_ns);
	json_begin_object(&json);
	json_member_text(&json, "name", "sonde");
	json_member_text(&json, "version", SONDE_VERSION);
	json_member_text(&json, "mode", server->options->is_view ? "view" : "serve");
	json_key(&json, "read_only");
	json_bool(&json, server->options->read_only);
	json_key(&json, "has_page");
	json_bool(&json, page_check(NULL) == 0);
	json_key(&json, "has_runs");
	json_bool(&json, server->options->store != NULL);
	json_member_u64(&json, "uptime_ms", (monotonic_now_ns() - server->started_ns) / NS_PER_MS);
	json_member_u64(&json, "captures", captures_count(server->captures));
	json_member_u64(&json, "open_captures", answers_open_captures(server->answers));
	json_member_u64(&json, "clients", server->sockets);
	json_member_text(&json, "perfetto", perfetto_of(server->options));
	json_end_object(&json);
	answer_json(connection);
}

void write_capture(
	struct json_writer *json, const struct server *server, const struct capture *capture)
{
	struct capture_progress progress = answers_progress(server->answers, capture);

	json_begin_object(json);
	json_member_text(json, "id", capture->id);
	json_member_text(json, "name", capture->name);
	json_member_text(json, "kind", capture->is_folder ? "folder" : "file");
	json_member_u64(json, "size", capture->identity.size);
	json_member_u64(json, "modified_ms", (uint64_t)capture->identity.modified_ns / NS_PER_MS);
	json_member_text(json, "state", capture_state_names[progress.state]);
	json_member_text(json, "message", progress.sentence);
	json_end_object(json);
}

static void list_captures(
	struct http_connection *connection, const union api_parameters *parameters)
{
	const struct server *server = connection->server;
	struct json_writer json = {.out = &connection->response.text};

	(void)parameters;
	captures_refresh(server->captures, server->now_ns);
	json_begin_object(&json);
	json_key(&json, "captures");
	json_begin_array(&json);
	for (size_t i = 0; i < captures_count(server->captures); i++) {
		const struct capture *capture = captures_get(server->captures, i);

		if (!capture->is_gone)
			write_capture(&json, server, capture);
	}
	json_end_array(&json);
	json_end_object(&json);
	answer_json(connection);
}

struct capture *find_capture(struct http_connection *connection, const char *id)
{
	struct capture *capture;

	captures_refresh(connection->server->captures, connection->server->now_ns);
	capture = captures_find(connection->server->captures, id);
	if (!capture)
		http_fail(connection, 404, API_ERROR_NOT_FOUND,
			"there is no capture of this id; /api/captures lists them");
	return capture;
}

static void get_capture(struct http_connection *connection, const union api_parameters *parameters)
{
	const struct capture *capture = find_capture(connection, parameters->capture.capture);
	struct json_writer json = {.out = &connection->response.text};

	if (!capture)
		return;
	write_capture(&json, connection->server, capture);
	answer_json(connection);
}

static void get_live(struct http_connection *connection, const union api_parameters *parameters)
{
	const struct capture *capture = find_capture(connection, parameters->live.capture);

	if (!capture)
		return;
	bus_write_history(connection->server->bus, capture->id, &connection->response.text,
		monotonic_now_ns());
	answer_json(connection);
}

void plain_name(char *out, size_t size, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._- ";
	size_t length = 0;

	for (; *name && length + 1 < size; name++)
		out[length++] = strchr(plain, *name) ? *name : '_';
	out[length] = '\0';
}

static void get_capture_file(
	struct http_connection *connection, const union api_parameters *parameters)
{
	const struct capture *capture = find_capture(connection, parameters->capture.capture);
	struct http_response *response = &connection->response;
	struct stat status;

	if (!capture)
		return;
	if (capture->is_folder) {
		http_fail(connection, 404, API_ERROR_NO_DATA,
			"these are several files, which cannot be fetched as one");
		return;
	}
	response->fd = capture_open_file(capture);
	if (response->fd < 0 || fstat(response->fd, &status) < 0) {
		http_fail(connection, 404, API_ERROR_CAPTURE_UNREADABLE,
			"the file of this capture cannot be opened any more");
		return;
	}
	response->status = 200;
	response->type = "application/octet-stream";
	response->file_length = (uint64_t)status.st_size;
	plain_name(response->name, sizeof(response->name), capture->name);
}

/* ---- answers of other processes ---- */

static void answer_is_ready(struct answer_waiter *waiter)
{
	struct http_connection *connection =
		(struct http_connection *)((char *)waiter -
					   offsetof(struct http_connection, waiter));

	lws.lws_callback_on_writable(connection->wsi);
}

static int status_of(enum api_error code)
{
	switch (code) {
	case API_ERROR_BAD_REQUEST:
		return 400;
	case API_ERROR_NO_DATA:
		return 404;
	case API_ERROR_CONFLICT:
		return 409;
	case API_ERROR_ANSWER_TOO_LARGE:
	case API_ERROR_CAPTURE_UNREADABLE:
		return 422;
	case API_ERROR_TIMED_OUT:
		return 504;
	case API_ERROR_BUSY:
	case API_ERROR_OUT_OF_MEMORY:
		return 503;
	default:
		return 500;
	}
}

static void answer_pending(struct http_connection *connection)
{
	struct http_response *response = &connection->response;
	struct json_writer json = {.out = &response->text};
	struct capture_progress progress =
		answers_progress(connection->server->answers, connection->capture);

	json_begin_object(&json);
	json_member_text(&json, "state", progress.state == CAPTURE_OPEN ? "asking" : "loading");
	json_member_u64(&json, "done", progress.done);
	json_member_u64(&json, "total", progress.total);
	json_end_object(&json);
	answer_json(connection);
	if (response->status == 200)
		response->status = 202;
	answers_leave(connection->server->answers, &connection->waiter, true);
}

void answer_set_etag(struct http_connection *connection)
{
	struct http_response *response = &connection->response;
	const char *match = connection->if_none_match;

	snprintf(response->etag, sizeof(response->etag), "%016llx",
		(unsigned long long)hash_bytes(response->bytes, response->length, 1));
	response->may_be_kept = true;
	if (match && strstr(match, response->etag))
		response->status = 304;
}

void handle_answer(struct http_connection *connection)
{
	const struct answer *answer = connection->waiter.answer;
	struct http_response *response = &connection->response;
	const char *bytes, *sentence;

	http_set_active(connection, false);
	if (!answer_is_done(answer)) {
		answer_pending(connection);
		return;
	}
	if (!answer_bytes(answer, &bytes, &response->length)) {
		enum api_error code = answer_error(answer, &sentence);

		http_fail(connection, status_of(code), code, sentence);
		return;
	}
	response->status = 200;
	response->bytes = (const unsigned char *)bytes;
	response->type = connection->answer_type;
	memcpy(response->name, connection->answer_name, sizeof(response->name));
	answer_set_etag(connection);
}

static void ask(struct http_connection *connection, const struct strbuf *text,
	struct answers_question *asked, uint64_t wait_s)
{
	struct server *server = connection->server;
	struct errmsg err;
	int r = strbuf_status(text);

	asked->text = strbuf_cstr(text);
	asked->length = text->length;
	if (r == 0 && asked->length > QUESTION_BYTES_MAX)
		r = errmsg_set(&err, -E2BIG, "the question is too long");
	connection->waiter.ready = answer_is_ready;
	connection->capture = asked->capture;
	if (r == 0)
		r = answers_ask(server->answers, asked, &connection->waiter, &err);
	if (r == -EBUSY)
		http_fail(connection, 503, API_ERROR_BUSY, err.text);
	else if (r == -E2BIG)
		http_fail(connection, 400, API_ERROR_BAD_REQUEST, err.text);
	else if (r == -ENOMEM)
		http_fail(connection, 503, API_ERROR_OUT_OF_MEMORY, "memory ran out in the server");
	else if (r == -ESTALE)
		http_fail(connection, 409, API_ERROR_CONFLICT, err.text);
	else if (r < 0)
		http_fail(connection, 422, API_ERROR_CAPTURE_UNREADABLE, err.text);
	if (r < 0)
		return;
	connection->wait_until_ns = monotonic_now_ns() + wait_s * NS_PER_S;
	if (answer_is_done(connection->waiter.answer) || !wait_s)
		handle_answer(connection);
	else
		http_set_active(connection, true);
}

/* Those of query/options.h: all but the server's own. */
static void add_parameters(struct strbuf *question, const struct http_connection *connection)
{
	for (size_t i = 0; i < connection->request.argument_count; i++) {
		const struct api_argument *argument = &connection->request.arguments[i];

		if (strcmp(argument->name, "wait") != 0 && strcmp(argument->name, "format") != 0)
			question_add(question, argument->name, argument->value);
	}
}

/* That a timeline's question is about; 0: it names none. */
static uint64_t version_of(const struct http_connection *connection)
{
	for (size_t i = 0; i < connection->request.argument_count; i++) {
		const struct api_argument *argument = &connection->request.arguments[i];

		if (strcmp(argument->name, "version") == 0)
			return strtoull(argument->value, NULL, 16);
	}
	return 0;
}

void ask_about(struct http_connection *connection, const char *id, const char *after_id,
	struct question question, uint64_t wait_s)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture *capture = find_capture(connection, id), *after = NULL;

	if (capture && after_id)
		after = find_capture(connection, after_id);
	if (!capture || (after_id && !after))
		return;
	question.path = after ? after->path : "";
	question_write(&text, &question);
	add_parameters(&text, connection);
	connection->answer_type =
		connection->answer_type ? connection->answer_type : "application/json";
	ask(connection, &text,
		&(struct answers_question){
			.capture = capture, .other = after, .version = version_of(connection)},
		wait_s);
}

static void get_sections(struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->sections.capture, NULL,
		(struct question){.what = QUESTION_SECTIONS}, parameters->sections.wait);
}

static void get_report(struct http_connection *connection, const union api_parameters *parameters)
{
	static const enum report_form forms[] = {
		[API_FORMAT_JSON] = REPORT_FORM_JSON,
		[API_FORMAT_PAGE] = REPORT_FORM_PAGE,
		[API_FORMAT_CSV] = REPORT_FORM_CSV,
	};
	const struct api_get_report_parameters *report = &parameters->report;

	if (report->format == API_FORMAT_CSV && !report->has_by) {
		http_fail(connection, 400, API_ERROR_BAD_REQUEST,
			"csv is the rows of one section: name it with by");
		return;
	}
	if (report->format == API_FORMAT_CSV)
		connection->answer_type = "text/csv; charset=utf-8";
	ask_about(connection, report->capture, NULL,
		(struct question){.what = QUESTION_REPORT, .form = forms[report->format]},
		report->wait);
}

static void get_call_tree(
	struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->call_tree.capture, NULL,
		(struct question){.what = QUESTION_CALL_TREE}, parameters->call_tree.wait);
}

static void get_call_tree_diff(
	struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->diff.capture, parameters->diff.after,
		(struct question){.what = QUESTION_CALL_TREE_DIFF}, parameters->diff.wait);
}

static void get_diff(struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->difference.capture, parameters->difference.after,
		(struct question){.what = QUESTION_DIFF}, parameters->difference.wait);
}

static void get_timeline(struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->timeline.capture, NULL,
		(struct question){.what = QUESTION_TRACKS}, parameters->timeline.wait);
}

static void get_timeline_tile(
	struct http_connection *connection, const union api_parameters *parameters)
{
	connection->answer_type = "application/octet-stream";
	ask_about(connection, parameters->tile.capture, NULL,
		(struct question){.what = QUESTION_TILE}, parameters->tile.wait);
}

static void get_timeline_names(
	struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->names.capture, NULL,
		(struct question){.what = QUESTION_NAMES}, parameters->names.wait);
}

static void get_timeline_slice(
	struct http_connection *connection, const union api_parameters *parameters)
{
	ask_about(connection, parameters->slice.capture, NULL,
		(struct question){.what = QUESTION_SLICE}, parameters->slice.wait);
}

/* The handshake; without Upgrade there is nothing to answer with. */
static void open_socket(struct http_connection *connection, const union api_parameters *parameters)
{
	(void)parameters;
	if (!connection->is_upgrade)
		http_fail(connection, 400, API_ERROR_BAD_REQUEST,
			"/ws is a WebSocket: connect with one");
	else if (connection->server->sockets >= SERVER_SOCKETS_MAX)
		http_fail(connection, 503, API_ERROR_BUSY,
			"the server has as many live clients as it takes: try again later");
}

/* The others are of runs. */
static void (*const handlers[API_OPERATION_MAX])(
	struct http_connection *connection, const union api_parameters *parameters) = {
	[API_GET_OPENAPI] = get_openapi,
	[API_GET_STATUS] = get_status,
	[API_LIST_CAPTURES] = list_captures,
	[API_GET_CAPTURE] = get_capture,
	[API_GET_CAPTURE_FILE] = get_capture_file,
	[API_GET_LIVE] = get_live,
	[API_GET_SECTIONS] = get_sections,
	[API_GET_REPORT] = get_report,
	[API_GET_CALL_TREE] = get_call_tree,
	[API_GET_CALL_TREE_DIFF] = get_call_tree_diff,
	[API_GET_DIFF] = get_diff,
	[API_GET_TIMELINE] = get_timeline,
	[API_GET_TIMELINE_TILE] = get_timeline_tile,
	[API_GET_TIMELINE_NAMES] = get_timeline_names,
	[API_LIST_COMMANDS] = handle_list_commands,
	[API_LIST_JOBS] = handle_list_jobs,
	[API_GET_JOB] = handle_get_job,
	[API_START_JOB] = handle_start_job,
	[API_CANCEL_JOB] = handle_cancel_job,
	[API_SET_JOB_WINDOW] = handle_set_job_window,
	[API_GET_TIMELINE_SLICE] = get_timeline_slice,
	[API_GET_EXPORT] = handle_get_export,
	[API_OPEN_SOCKET] = open_socket,
};

/* ---- all ---- */

static void refuse_path(struct http_connection *connection, int error, const char *sentence)
{
	struct http_response *response = &connection->response;

	if (error == -EOPNOTSUPP) {
		http_fail(connection, 405, API_ERROR_METHOD_NOT_ALLOWED, sentence);
		api_methods(connection->request.path, response->allow, sizeof(response->allow));
	} else {
		http_fail(connection, 404, API_ERROR_NOT_FOUND, sentence);
	}
}

static void run_handler(struct http_connection *connection, enum api_operation operation,
	const struct api_path_values *values)
{
	struct strbuf *body = &connection->body.bytes;
	union api_parameters parameters;
	struct errmsg err;
	int r = api_parse(operation, &connection->request, values, &parameters, &err);

	if (r == 0 && api_takes_json(operation))
		r = api_parse_body(operation, body->data, body->length, &parameters, &err);
	if (r == -ENOMEM)
		http_fail(connection, 503, API_ERROR_OUT_OF_MEMORY, "memory ran out in the server");
	else if (r < 0)
		http_fail(connection, 400, API_ERROR_BAD_REQUEST, err.text);
	else if (handlers[operation])
		handlers[operation](connection, &parameters);
	else
		handle_runs(connection, operation, &parameters);
}

static void handle_api(struct http_connection *connection)
{
	struct api_path_values values;
	enum api_operation operation;
	struct errmsg err;
	int r = api_find(&connection->request, &operation, &values, &err);

	if (r < 0)
		refuse_path(connection, r, err.text);
	else if (connection->server->options->read_only &&
		 !http_is_reading(api_routes[operation].method))
		http_fail(connection, 403, API_ERROR_READ_ONLY,
			"this server only shows what there is: nothing can be changed or started "
			"through it");
	else if (http_body_is_there(connection, &api_routes[operation]))
		run_handler(connection, operation, &values);
}

void handle_request(struct http_connection *connection)
{
	const char *path = connection->request.path;
	bool is_socket = strcmp(path, "/ws") == 0;
	bool is_api = is_socket || strcmp(path, "/api") == 0 || strncmp(path, "/api/", 5) == 0;
	enum guard_verdict verdict = guard_check(&connection->server->guard, &connection->guard,
		is_socket                                     ? GUARD_SOCKET
		: !is_api                                     ? GUARD_PAGE
		: http_is_reading(connection->request.method) ? GUARD_API
							      : GUARD_CHANGE);

	connection->server->now_ns = monotonic_now_ns();
	if (verdict != GUARD_ALLOWED)
		http_fail(connection, verdict == GUARD_NO_TOKEN ? 401 : 403,
			verdict == GUARD_NO_TOKEN ? API_ERROR_UNAUTHORISED : API_ERROR_FORBIDDEN,
			guard_sentence(verdict));
	else if (connection->is_upgrade && !is_socket)
		http_fail(connection, 404, API_ERROR_NOT_FOUND, "the WebSocket is at /ws");
	else if (is_api)
		handle_api(connection);
	else
		handle_page(connection);
}
