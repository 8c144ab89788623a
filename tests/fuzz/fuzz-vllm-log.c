/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a vLLM log, imported into a capture that nobody keeps. */
#include <stdlib.h>

#include "importers/importer.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct import_input input = {.path = "log",
		.bytes = (const char *)bytes,
		.length = length,
		.modified_s = 1795267493};
	struct capture_writer_options options = {.size = sizeof(options), .uncompressed = true};
	struct import_result *result = malloc(sizeof(*result));
	struct capture_writer *writer = NULL;

	if (!result || capture_writer_open(&writer, "/dev/null", &options, NULL) < 0) {
		free(result);
		return 0;
	}
	if (importer_find("vllm-log")->import(&input, writer, result, NULL) == 0 &&
		(result->ranges + result->marks == 0 || result->begin_ns > result->end_ns))
		abort();
	capture_writer_free(writer);
	free(result);
	return 0;
}
