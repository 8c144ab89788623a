/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a name. */
#include <string.h>

#include "base/demangle.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_strbuf_ struct strbuf name = {0}, text = {0};

	strbuf_add_bytes(&name, bytes, length);
	if (strbuf_status(&name) == 0)
		demangle_symbol(strbuf_cstr(&name), &text);
	if (name.length && name.data[0] && text.length == 0)
		abort();
	return 0;
}
