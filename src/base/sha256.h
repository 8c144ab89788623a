/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): the identity of a file's content. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

struct sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes so far */
	unsigned char block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_finish(struct sha256 *hash, unsigned char ret_digest[SHA256_BYTES]);
