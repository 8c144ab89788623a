/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as /proc/kallsyms, then updates made of the same bytes. */
#include <string.h>

#include "symbols/kernel.h"
#include "target.h"

static void look_up(const struct kernel_symbols *symbols, uint64_t address)
{
	const char *name, *module;

	if (kernel_symbols_find(symbols, address, &name, &module) &&
		strlen(name) + strlen(module) == 0)
		abort();
}

static void update(struct kernel_symbols *symbols, const uint8_t *bytes, size_t length)
{
	for (size_t at = 0; at + 12 <= length && at < 4096; at += 12) {
		char name[] = {'b', (char)(bytes[at + 11] | 1), '\0'};
		uint64_t address;

		memcpy(&address, bytes + at, sizeof(address));
		if (bytes[at + 8] & 1)
			address &= 0xff; /* so that ranges meet */
		kernel_symbols_update(symbols, address, bytes[at + 9], name);
		look_up(symbols, address);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct kernel_symbols *symbols;

	if (kernel_symbols_parse(&symbols, (const char *)bytes, length, "input", NULL) < 0)
		return 0;
	for (uint64_t address = 1; address; address <<= 1)
		look_up(symbols, address);
	look_up(symbols, UINT64_MAX);
	update(symbols, bytes, length);
	kernel_symbols_free(symbols);
	return 0;
}
