/* SPDX-License-Identifier: Apache-2.0 */
#include "server/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

/* ---- the token ---- */

int guard_make_token(char ret_token[GUARD_TOKEN_BYTES])
{
	unsigned char bytes[(GUARD_TOKEN_BYTES - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

bool guard_is_token(const char *token, const char *given)
{
	size_t length = strlen(token), given_length = strlen(given);
	volatile unsigned char difference = length != given_length;

	for (size_t i = 0; i < given_length; i++)
		difference |= (unsigned char)(given[i] ^ token[length ? i % length : 0]);
	return !difference;
}

/* "a=1; name=VALUE; b=2": is one of the cookies of this name the token? */
static bool cookie_is_token(const struct guard *guard, const char *cookies)
{
	size_t name_length = strlen(guard->cookie_name);

	while (*cookies) {
		size_t length = strcspn(cookies, ";");
		char value[GUARD_TOKEN_MAX + 1];

		if (length > name_length && cookies[name_length] == '=' &&
			strncmp(cookies, guard->cookie_name, name_length) == 0 &&
			length - name_length - 1 < sizeof(value)) {
			size_t value_length = length - name_length - 1;

			memcpy(value, cookies + name_length + 1, value_length);
			value[value_length] = '\0';
			if (guard_is_token(guard->token, value))
				return true;
		}
		cookies += length;
		cookies += strspn(cookies, "; ");
	}
	return false;
}

/* By something that only a program sends, and no browser adds by itself. */
static bool has_own_token(const struct guard *guard, const struct guard_request *request)
{
	const char *authorization = request->authorization;

	if (request->token && guard_is_token(guard->token, request->token))
		return true;
	return authorization && strncasecmp(authorization, "Bearer ", 7) == 0 &&
	       guard_is_token(guard->token, authorization + 7);
}

/* ---- where it comes from ---- */

/* The length of the name or address, without the port; 0: it is none. */
static size_t host_length(const char *host)
{
	size_t length, port;

	if (host[0] == '[') {
		length = strspn(host + 1, "0123456789abcdefABCDEF:.") + 1;
		if (host[length] != ']')
			return 0;
		length++;
	} else {
		length = strcspn(host, ":");
	}
	if (!host[length])
		return length;
	port = strspn(host + length + 1, "0123456789");
	return host[length] == ':' && port && port <= 5 && !host[length + 1 + port] ? length : 0;
}

/* Four numbers. An address cannot be made to point elsewhere, as a name can. */
static bool is_address(const char *host, size_t length)
{
	size_t digits = 0, dots = 0;

	if (host[0] == '[')
		return length > 3;
	for (size_t i = 0; i < length; i++) {
		if (host[i] == '.') {
			if (!digits || ++dots > 3)
				return false;
			digits = 0;
		} else if (host[i] < '0' || host[i] > '9' || ++digits > 3) {
			return false;
		}
	}
	return dots == 3 && digits;
}

static bool is_host(const char *host, size_t length, const char *name)
{
	return length == strlen(name) && strncasecmp(host, name, length) == 0;
}

static bool host_is_ours(const struct guard *guard, const char *host)
{
	size_t length = host ? host_length(host) : 0;

	if (!length)
		return false;
	if (is_host(host, length, "localhost") || is_address(host, length))
		return true;
	for (size_t i = 0; i < guard->host_count; i++) {
		if (is_host(host, length, guard->hosts[i]))
			return true;
	}
	return false;
}

/* The page that asks came from the address that it asks. TLS may be in front of us. */
static bool origin_is_host(const char *origin, const char *host)
{
	size_t scheme = strncmp(origin, "https://", 8) == 0  ? 8
			: strncmp(origin, "http://", 7) == 0 ? 7
							     : 0;

	return scheme && strcasecmp(origin + scheme, host) == 0;
}

/* Only pages of this very address; "none" is what a person typed. */
static bool site_is_ours(const char *fetch_site)
{
	return !fetch_site || strcmp(fetch_site, "same-origin") == 0 ||
	       strcmp(fetch_site, "none") == 0;
}

enum guard_verdict guard_check(
	const struct guard *guard, const struct guard_request *request, enum guard_kind kind)
{
	bool has_token = !guard->token || has_own_token(guard, request);

	if (!host_is_ours(guard, request->host))
		return GUARD_WRONG_HOST;
	if (request->origin && !origin_is_host(request->origin, request->host))
		return GUARD_WRONG_ORIGIN;
	if (kind != GUARD_PAGE && !site_is_ours(request->fetch_site))
		return GUARD_WRONG_ORIGIN;
	if (has_token)
		return GUARD_ALLOWED;
	if (!request->cookie || !cookie_is_token(guard, request->cookie))
		return GUARD_NO_TOKEN;
	if ((kind == GUARD_SOCKET || kind == GUARD_CHANGE) && !request->origin)
		return GUARD_WRONG_ORIGIN;
	return GUARD_ALLOWED;
}

const char *guard_sentence(enum guard_verdict verdict)
{
	static const char *const sentences[] = {
		[GUARD_ALLOWED] = "",
		[GUARD_NO_TOKEN] = "This needs the token: open the address that sonde printed, or "
				   "send the header 'Authorization: Bearer TOKEN'.",
		[GUARD_WRONG_HOST] = "sonde does not answer to this name: use an address, "
				     "localhost, or a name given with --host.",
		[GUARD_WRONG_ORIGIN] = "Only the page of this server may ask it.",
	};

	return sentences[verdict];
}
