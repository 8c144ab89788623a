/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/xla_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The number at the end of "/device:GPU:0"; false: it is no device that works by itself. */
static bool read_device(const char *process, int64_t *ret_number, bool *ret_tpu)
{
	const char *number = strrchr(process, ':');
	char *end;

	if (!begins_with(process, "/device:GPU:") && !begins_with(process, "/device:TPU:"))
		return false;
	errno = 0;
	*ret_number = strtoll(number + 1, &end, 10);
	*ret_tpu = begins_with(process, "/device:TPU:");
	return !errno && isdigit((unsigned char)number[1]) && *ret_number >= 0;
}

/* "Stream #13(Compute)" */
static bool read_stream(const char *thread, int64_t *ret_number)
{
	static const char beginning[] = "Stream #";

	if (!begins_with(thread, beginning) ||
		!isdigit((unsigned char)thread[sizeof(beginning) - 1]))
		return false;
	errno = 0;
	*ret_number = strtoll(thread + sizeof(beginning) - 1, NULL, 10);
	return errno == 0;
}

struct xla_track xla_track_of(const char *process, const char *thread, int64_t number)
{
	struct xla_track known = {.stream = number};
	bool is_tpu;

	if (!read_device(process, &known.device, &is_tpu))
		return known;
	if (is_tpu ? strcmp(thread, "XLA Ops") == 0 : read_stream(thread, &known.stream))
		known.kind = XLA_STREAM;
	else
		known.kind = XLA_SUM;
	return known;
}

enum trace_category xla_work_category(const char *name)
{
	if (begins_with(name, "Memcpy"))
		return TRACE_MEMCPY;
	return begins_with(name, "Memset") ? TRACE_MEMSET : TRACE_KERNEL;
}

/* Calls of the driver are recognised by their name, "cuLaunchKernel", and functions of Python by
 * "$". */
enum trace_category xla_host_category(const char *name, bool has_correlation)
{
	const char *rest = begins_with(name, "cu")    ? name + 2
			   : begins_with(name, "hip") ? name + 3
						      : "";

	if (has_correlation && isupper((unsigned char)*rest))
		return TRACE_DRIVER;
	return *name == '$' ? TRACE_PYTHON_FUNCTION : TRACE_OTHER;
}
