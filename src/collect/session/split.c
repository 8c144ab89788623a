/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a recording whose windows are to be files of their own. */
#include <unistd.h>

#include "capture/split/split.h"
#include "collect/session/internal.h"

int session_split(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	const struct capture_writer_options writer_options = {
		.size = sizeof(writer_options),
		.uncompressed = options->uncompressed,
		.stack_sample = options->stack_sample,
		.device_slices = options->device_slices,
		.how = {.access = options->how.access, .group = options->how.group},
	};
	struct errmsg cause = {""};
	const char *output = session_output(options, session->result);
	int result = capture_split(output, &writer_options, &session->result->part_count, &cause);

	if (result < 0)
		return errmsg_set(err, result, "%s; the windows are all in %s", cause.text, output);
	if (session->result->part_count)
		unlink(output);
	return 0;
}
