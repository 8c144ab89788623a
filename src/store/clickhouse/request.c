/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/http.h"
#include "store/clickhouse/internal.h"

#define TIMEOUT_MS    60000 /* without an answer, or without progress */
#define FIRST_WAIT_MS 100
#define MOST_WAIT_MS  2000
#define PATIENCE_MS   10000 /* with a server that is not there */

/* ---- faults ---- */

/* "Code: 60, e.displayText() = DB::Exception: …"; 0: the answer is not ClickHouse's. */
static int code_of(const char *text)
{
	return strncmp(text, "Code: ", 6) == 0 ? (int)strtol(text + 6, NULL, 10) : 0;
}

/* By the server's ErrorCodes. */
static int errno_of(const struct http_answer *answer)
{
	switch (code_of(answer->text)) {
	case 60: /* UNKNOWN_TABLE */
	case 81: /* UNKNOWN_DATABASE */
		return -ENOENT;
	case 48: /* NOT_IMPLEMENTED */
		return -ENOSYS;
	case 164: /* READONLY */
		return -EROFS;
	case 192: /* UNKNOWN_USER */
	case 193: /* WRONG_PASSWORD */
	case 194: /* REQUIRED_PASSWORD */
	case 497: /* ACCESS_DENIED */
	case 516: /* AUTHENTICATION_FAILED */
		return -EACCES;
	case 202: /* TOO_MANY_SIMULTANEOUS_QUERIES */
	case 252: /* TOO_MANY_PARTS */
		return -EBUSY;
	case 241: /* MEMORY_LIMIT_EXCEEDED */
		return -ENOBUFS;
	case 243: /* NOT_ENOUGH_SPACE */
		return -ENOSPC;
	}
	if (answer->status == 401 || answer->status == 403)
		return -EACCES;
	return answer->status == 503 || answer->status == 502 || answer->status == 429 ? -EBUSY
										       : -EREMOTEIO;
}

static const char *remedy_of(int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case ETIMEDOUT:
	case ECONNRESET:
	case EIO:
		return "check that the server runs and can be reached, and try again: what was not "
		       "added as a whole is not there at all";
	case EACCES:
		return "give a user and a password that may, in $SONDE_STORE_USER and "
		       "$SONDE_STORE_PASSWORD, or a file in $SONDE_STORE_PASSWORD_FILE";
	case EROFS:
		return "this user may only read";
	case EBUSY:
		return "the server has too much to do; try again later";
	case ENOSPC:
		return "the server has no space left";
	case EPROTO:
		return "check that the address is that of ClickHouse's HTTP port (8123, or 8443 "
		       "for https)";
	default:
		return "see the server's log";
	}
}

static int failed(
	struct clickhouse_store *clickhouse, int error, const char *reason, struct errmsg *err)
{
	return errmsg_set(err, error, "the runs database %s cannot be used (%.400s): %s",
		clickhouse->store.address, reason, remedy_of(error));
}

/* ---- one request ---- */

struct request {
	const char *parameters; /* of the URL, behind the database */
	const void *body;
	size_t length;
	struct clickhouse_answer *answer; /* NULL: no rows */
	bool is_outside;                  /* of the database */
	bool may_repeat;                  /* sent twice, it does the same */
};

static int take_body(void *context, const char *bytes, size_t length)
{
	return clickhouse_answer_read(context, bytes, length);
}

static int ignore_body(void *context, const char *bytes, size_t length)
{
	return 0;
}

/* wait_end_of_query: a fault in the middle of the rows is in the status, not among the rows. */
static void add_url(struct strbuf *out, const struct clickhouse_store *clickhouse,
	const struct request *request)
{
	strbuf_addf(out, "%s?wait_end_of_query=1", clickhouse->url);
	if (!request->is_outside)
		strbuf_addf(out, "&database=%s", clickhouse->database);
	/* Servers of today do both by themselves. */
	if (clickhouse->is_old)
		strbuf_add(out, "&enable_optimize_predicate_expression=1"
				"&join_default_strictness=ALL");
	strbuf_add(out, request->parameters);
}

static int send_request(struct clickhouse_store *clickhouse, const struct request *request,
	struct http_answer *ret_answer, struct errmsg *reason)
{
	_cleanup_strbuf_ struct strbuf url = {0};
	struct http_header headers[2];
	struct http_request http = {
		.method = "POST",
		.content_type = "application/octet-stream",
		.fd = -1,
		.bytes = request->body,
		.length = request->length,
		.timeout_ms = TIMEOUT_MS,
		.headers = headers,
		.take = request->answer ? take_body : ignore_body,
		.context = request->answer,
	};

	if (clickhouse->user)
		headers[http.header_count++] =
			(struct http_header){"X-ClickHouse-User", clickhouse->user};
	if (clickhouse->password)
		headers[http.header_count++] =
			(struct http_header){"X-ClickHouse-Key", clickhouse->password};
	add_url(&url, clickhouse, request);
	if (strbuf_status(&url) < 0)
		return errmsg_set(reason, -ENOMEM, "memory ran out");
	http.url = strbuf_cstr(&url);
	return http_send(&http, ret_answer, reason);
}

/* Once. The sentence says the reason only. */
static int try_request(
	struct clickhouse_store *clickhouse, const struct request *request, struct errmsg *reason)
{
	struct http_answer answer = {0};
	int r = send_request(clickhouse, request, &answer, reason);

	if (r == -EPROTO)
		return errmsg_set(reason, r, "its answer is not one of ClickHouse");
	if (r < 0)
		return r;
	if (answer.status < 200 || answer.status > 299)
		return errmsg_set(
			reason, errno_of(&answer), "status %ld: %s", answer.status, answer.text);
	if (request->answer && clickhouse_answer_end(request->answer) < 0)
		return errmsg_set(reason, -EPROTO, "its answer is not one of ClickHouse");
	return 0;
}

/* ---- again ---- */

static bool is_worth_another(const struct request *request, int error)
{
	/* A row was used already. */
	if (request->answer && request->answer->rows)
		return false;
	return error == -ECONNREFUSED || error == -EBUSY ||
	       (request->may_repeat && (error == -EIO || error == -ETIMEDOUT));
}

static void reset_answer(struct clickhouse_answer *answer)
{
	strbuf_clear(&answer->line);
	answer->heads = 0;
}

static int do_request(
	struct clickhouse_store *clickhouse, const struct request *request, struct errmsg *err)
{
	uint64_t end_ns = monotonic_now_ns() + PATIENCE_MS * (uint64_t)1000000;
	struct errmsg reason = {{0}};
	long wait_ms = FIRST_WAIT_MS;
	int r;

	for (;;) {
		r = try_request(clickhouse, request, &reason);
		if (!is_worth_another(request, r) || monotonic_now_ns() >= end_ns)
			break;
		nanosleep(&(struct timespec){wait_ms / 1000, wait_ms % 1000 * 1000000}, NULL);
		wait_ms = MIN(2 * wait_ms, (long)MOST_WAIT_MS);
		if (request->answer)
			reset_answer(request->answer);
	}
	/* What `take` wanted: its own sentence stands already. */
	if (r == 0 || r == -ECANCELED)
		return r;
	return failed(clickhouse, r, reason.text, err);
}

int clickhouse_ask(struct clickhouse_store *clickhouse, const char *sql,
	const struct store_value *parameters, size_t count, store_row_function *take, void *context,
	struct errmsg *err)
{
	_cleanup_clickhouse_answer_ struct clickhouse_answer answer = {
		.take = take, .context = context};
	_cleanup_strbuf_ struct strbuf text = {0}, url = {0};
	struct request request = {.answer = &answer, .may_repeat = true};
	int r = clickhouse_translate(sql, parameters, count, clickhouse->is_old, &text, &url);

	strbuf_add(&text, " FORMAT TabSeparatedWithNamesAndTypes");
	if (r < 0 || strbuf_status(&text) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while asking the database");
	request.parameters = strbuf_cstr(&url);
	request.body = strbuf_cstr(&text);
	request.length = text.length;
	r = do_request(clickhouse, &request, err);
	return r == -ECANCELED ? answer.taken : r;
}

int clickhouse_do(struct clickhouse_store *clickhouse, const char *sql, struct errmsg *err)
{
	return do_request(clickhouse,
		&(struct request){
			.parameters = "", .body = sql, .length = strlen(sql), .may_repeat = true},
		err);
}

int clickhouse_do_outside(struct clickhouse_store *clickhouse, const char *sql, struct errmsg *err)
{
	return do_request(clickhouse,
		&(struct request){.parameters = "",
			.body = sql,
			.length = strlen(sql),
			.is_outside = true,
			.may_repeat = true},
		err);
}

int clickhouse_send(struct clickhouse_store *clickhouse, const char *insert,
	const struct strbuf *rows, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf url = {0};
	struct request request = {.body = rows->data, .length = rows->length};
	int r;

	strbuf_add(&url, "&query=");
	clickhouse_add_quoted(&url, insert);
	r = strbuf_status(&url) < 0 ? strbuf_status(&url) : strbuf_status(rows);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while writing to the database");
	request.parameters = strbuf_cstr(&url);
	r = do_request(clickhouse, &request, err);
	/* The connection broke, or the server did: whether the rows are there is not known. */
	return r == -EIO || r == -ETIMEDOUT || r == -ECONNREFUSED ? -ECONNRESET : r;
}
