/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask: the token, and what browsers say about where a request comes from. Functions of
 * texts, without state, so that each rule can be tested (tests/unit/test-server-guard.c).
 *
 * The attacker is a page in the user's browser, whose requests go to any address and whose name
 * may be made to point here (DNS rebinding), and other users of the machine, who reach loopback.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Hexadecimal digits: 128 bits from the kernel. */
#define GUARD_TOKEN_BYTES 33
#define GUARD_TOKEN_MIN   16
#define GUARD_TOKEN_MAX   256

struct guard {
	const char *token;       /* NULL: everyone may ask */
	const char *cookie_name; /* has the port: browsers share cookies among ports */
	/* Names that the operator gave, besides addresses and localhost. */
	const char *const *hosts;
	size_t host_count;
};

/* Headers as they came; NULL: absent. */
struct guard_request {
	const char *host, *origin, *fetch_site, *cookie, *authorization;
	const char *token; /* in the address */
};

enum guard_verdict {
	GUARD_ALLOWED,
	GUARD_NO_TOKEN,
	GUARD_WRONG_HOST,
	GUARD_WRONG_ORIGIN,
};

/* What a browser sends with `is_page`: opening an address, which any page may link to. */
enum guard_kind {
	GUARD_PAGE, /* a file of the page */
	GUARD_API,  /* a question */
	/* A WebSocket, or a request that changes something: one with a cookie must also say where
	   it comes from. */
	GUARD_SOCKET,
	GUARD_CHANGE,
};

enum guard_verdict guard_check(
	const struct guard *guard, const struct guard_request *request, enum guard_kind kind);
/* A sentence for who was refused. */
const char *guard_sentence(enum guard_verdict verdict);

/* Writes a new one. Returns 0 or a negative errno. */
int guard_make_token(char ret_token[GUARD_TOKEN_BYTES]);
/* In a time that depends on the length of `given` alone. */
bool guard_is_token(const char *token, const char *given);
