/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Chakra execution trace, plain or compressed: printed as JSON, and checked. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "chakra/et/check.h"
#include "chakra/et/json.h"
#include "target.h"

static void print_all(const uint8_t *bytes, size_t length)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	_cleanup_strbuf_ struct strbuf out = {0};
	const et_node *node;

	if (et_reader_open_bytes(&reader, bytes, length, "trace", NULL) < 0)
		return;
	et_json_add(&out, &et_reader_metadata(reader)->base, true);
	while (et_reader_next(reader, &node, NULL) == 1) {
		strbuf_clear(&out);
		et_json_add(&out, &node->base, false);
		if (strbuf_status(&out) == 0 && out.data[out.length - 1] != '}')
			abort();
	}
}

/* Twice the same trace: it agrees with itself on its groups. */
static void check_all(const char *path)
{
	struct et_check *checks[2] = {0};
	uint64_t before;

	if (et_check(&checks[0], path, NULL) == 0 && et_check(&checks[1], path, NULL) == 0) {
		before = checks[1]->counts[ET_FAULT_GROUP];
		if (et_check_groups(checks, 1, NULL) < 0 || et_check_groups(checks, 2, NULL) < 0)
			abort();
		if (before > checks[1]->counts[ET_FAULT_GROUP])
			abort();
	}
	et_check_free(checks[0]);
	et_check_free(checks[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
	char path[64];

	print_all(bytes, length);
	if (fd < 0 || write_all(fd, bytes, length) < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_all(path);
	return 0;
}
