/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for metrics, of any client on the machine. */
#include <assert.h>

#include "push/metrics_listener.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	enum metrics_request request = metrics_request_parse((const char *)bytes, length, 9477);

	assert(request <= METRICS_REQUEST_BAD);
	return 0;
}
