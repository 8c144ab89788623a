/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as perf script's text, as folded stacks and as a profile of pprof. */
#include <stdlib.h>

#include "importers/importers.h"
#include "target.h"

static void import(const struct importer *importer, const char *bytes, size_t length)
{
	const struct capture_writer_options options = {
		.size = sizeof(options), .uncompressed = true};
	const struct import_input input = {.path = "file", .bytes = bytes, .length = length};
	struct import_result *result = calloc(1, sizeof(*result));
	struct capture_writer *writer = NULL;
	struct errmsg err = {{0}};
	int r;

	importer->knows(bytes, MIN(length, (size_t)IMPORT_HEAD_BYTES));
	if (result && capture_writer_open(&writer, "/dev/null", &options, NULL) == 0) {
		r = importer->import(&input, writer, result, &err);
		if (r < 0 && !err.text[0])
			abort();
	}
	capture_writer_free(writer);
	free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	char *text = malloc(length + 1);

	if (!text)
		return 0;
	memcpy(text, bytes, length);
	text[length] = 0; /* as load/log.c has it */
	import(&perf_script_importer, text, length);
	import(&folded_importer, text, length);
	import(&pprof_importer, text, length);
	free(text);
	return 0;
}
