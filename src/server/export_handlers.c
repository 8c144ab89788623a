/* SPDX-License-Identifier: Apache-2.0 */
/* /api/captures/ID/export: a capture in another tool's format, to be saved or opened there. */
#include <stdio.h>
#include <string.h>

#include "exporters/exporter.h"
#include "server/handlers.h"

/* Its place in the table; -1: there is none that writes one file. */
static int exporter_place(const char *name)
{
	for (int i = 0; exporters[i]; i++) {
		if (strcmp(exporters[i]->name, name) == 0 && exporters[i]->export)
			return i;
	}
	return -1;
}

static const char *type_of(const struct exporter *exporter)
{
	if (exporter->is_binary)
		return "application/octet-stream";
	if (text_ends_in(exporter->extension, ".svg"))
		return "image/svg+xml";
	if (text_ends_in(exporter->extension, ".json"))
		return "application/json";
	return "text/plain; charset=utf-8";
}

/* "run.pftrace" becomes "run.svg". */
static void name_answer(struct http_connection *connection, const struct capture *capture,
	const struct exporter *exporter)
{
	char base[HTTP_NAME_BYTES - 24];
	char *dot;

	plain_name(base, sizeof(base), capture->name);
	dot = strchr(base[0] == '.' ? base + 1 : base, '.');
	if (dot)
		*dot = '\0';
	snprintf(connection->answer_name, sizeof(connection->answer_name), "%s%s", base,
		exporter->extension);
}

static void refuse(struct http_connection *connection)
{
	_cleanup_strbuf_ struct strbuf sentence = {0};

	strbuf_add(&sentence, "this is no format that is one file: choose one of");
	for (int i = 0; exporters[i]; i++) {
		if (exporters[i]->export)
			strbuf_addf(&sentence, " %s", exporters[i]->name);
	}
	http_fail(connection, 400, API_ERROR_BAD_REQUEST, strbuf_cstr(&sentence));
}

void handle_get_export(struct http_connection *connection, const union api_parameters *parameters)
{
	const struct api_get_export_parameters *export = &parameters->export;
	int place = exporter_place(export->format);
	const struct capture *capture;

	if (place < 0) {
		refuse(connection);
		return;
	}
	capture = find_capture(connection, export->capture);
	if (!capture)
		return;
	connection->answer_type = type_of(exporters[place]);
	name_answer(connection, capture, exporters[place]);
	ask_about(connection, export->capture, NULL,
		(struct question){.what = QUESTION_EXPORT, .form = place}, export->wait);
}
