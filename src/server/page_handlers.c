/* SPDX-License-Identifier: Apache-2.0 */
/* The page's files, and the token that its first address brings. */
#include <stdio.h>
#include <string.h>

#include "page/page.h"
#include "server/handlers.h"

/*
 * The address with the token was opened: keeps the token as a cookie, and goes to the page without
 * it. By a page of ours, since a browser that followed a link of another site here would not send a
 * cookie with SameSite=Strict after a redirect.
 */
static void keep_token(struct http_connection *connection)
{
	static const char text[] = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
				   "<meta http-equiv=\"refresh\" content=\"0; url=/\">"
				   "<title>sonde</title><a href=\"/\">sonde</a>\n";
	struct http_response *response = &connection->response;
	const struct server *server = connection->server;

	response->status = 200;
	response->type = "text/html; charset=utf-8";
	response->bytes = (const unsigned char *)text;
	response->length = sizeof(text) - 1;
	snprintf(response->cookie, sizeof(response->cookie),
		"%s=%s; Path=/; HttpOnly; SameSite=Strict%s", server->guard.cookie_name,
		server->guard.token, server->options->tls_key ? "; Secure" : "");
}

/* speedscope writes its styles into the page; profiles come from this server alone. */
static const char speedscope_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' "
	"data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
	"frame-ancestors 'none'";

static void send_page(struct http_connection *connection)
{
	const struct page_asset *asset = page_asset_find(connection->request.path);
	struct http_response *response = &connection->response;
	struct errmsg err;

	if (page_check(&err) < 0) {
		http_fail(connection, 404, API_ERROR_NO_PAGE, err.text);
		return;
	}
	if (!asset) {
		http_fail(connection, 404, API_ERROR_NOT_FOUND, "there is no such file");
		return;
	}
	response->status = 200;
	response->type = asset->type;
	response->bytes = asset->gzip;
	response->length = asset->gzip_size;
	response->is_gzip = true;
	if (strncmp(asset->path, PAGE_SPEEDSCOPE, strlen(PAGE_SPEEDSCOPE)) == 0)
		response->policy = speedscope_policy;
	response->may_be_kept = true;
	snprintf(response->etag, sizeof(response->etag), "%s", asset->etag);
	if (connection->if_none_match && strstr(connection->if_none_match, asset->etag))
		response->status = 304;
}

void handle_page(struct http_connection *connection)
{
	const char *method = connection->request.method;

	if (!http_is_reading(method)) {
		http_fail(connection, 405, API_ERROR_METHOD_NOT_ALLOWED,
			"the page can only be fetched");
		snprintf(connection->response.allow, sizeof(connection->response.allow), "GET");
	} else if (connection->server->guard.token && connection->guard.token) {
		keep_token(connection);
	} else {
		send_page(connection);
	}
}
