/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask a server: tokens, names that are made to point here, pages of other sites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/macros.h"
#include "server/guard.h"
#include "server/listen.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const char *const hosts[] = {"profiles.example"};
static const struct guard guard = {
	.token = TOKEN, .cookie_name = "sonde-7077", .hosts = hosts, .host_count = 1};

static enum guard_verdict check(struct guard_request request, enum guard_kind kind)
{
	if (!request.host)
		request.host = "127.0.0.1:7077";
	return guard_check(&guard, &request, kind);
}

static void test_tokens(void **state)
{
	char token[GUARD_TOKEN_BYTES], other[GUARD_TOKEN_BYTES];

	assert_int_equal(guard_make_token(token), 0);
	assert_int_equal(guard_make_token(other), 0);
	assert_int_equal(strlen(token), 32);
	assert_string_not_equal(token, other);
	assert_true(guard_is_token(TOKEN, TOKEN));
	assert_false(guard_is_token(TOKEN, ""));
	assert_false(guard_is_token(TOKEN, TOKEN "0"));
	assert_false(guard_is_token(TOKEN, TOKEN TOKEN));
	assert_false(guard_is_token(TOKEN, "0123456789abcdef0123456789abcdeg"));
}

static void test_who_has_the_token(void **state)
{
	assert_int_equal(check((struct guard_request){0}, GUARD_API), GUARD_NO_TOKEN);
	assert_int_equal(check((struct guard_request){.token = TOKEN}, GUARD_API), GUARD_ALLOWED);
	assert_int_equal(check((struct guard_request){.authorization = "Bearer " TOKEN}, GUARD_API),
		GUARD_ALLOWED);
	assert_int_equal(check((struct guard_request){.authorization = "Basic " TOKEN}, GUARD_API),
		GUARD_NO_TOKEN);
	assert_int_equal(
		check((struct guard_request){.cookie = "a=b; sonde-7077=" TOKEN}, GUARD_API),
		GUARD_ALLOWED);
	assert_int_equal(check((struct guard_request){.cookie = "sonde-8080=" TOKEN}, GUARD_API),
		GUARD_NO_TOKEN);
	assert_int_equal(
		check((struct guard_request){.cookie = "sonde-7077="}, GUARD_API), GUARD_NO_TOKEN);
	assert_int_equal(check((struct guard_request){.cookie = ";;=; sonde-7077"}, GUARD_API),
		GUARD_NO_TOKEN);
}

static void test_hosts(void **state)
{
	static const char *const good[] = {"localhost", "localhost:8000", "127.0.0.1", "[::1]:7077",
		"10.0.0.7:7077", "LOCALHOST:1", "profiles.example", "profiles.example:443"};
	static const char *const bad[] = {"evil.example", "evil.example:7077",
		"localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1:7077:1", "1.2.3",
		"1.2.3.4.5", "256256.0.0.1", "", ":7077", "[::1", "[]:7077",
		"localhost:", "localhost:123456", "a@localhost"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(
			check((struct guard_request){.host = good[i], .token = TOKEN}, GUARD_API),
			GUARD_ALLOWED);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(
			check((struct guard_request){.host = bad[i], .token = TOKEN}, GUARD_API),
			GUARD_WRONG_HOST);
	assert_int_equal(guard_check(&guard, &(struct guard_request){.token = TOKEN}, GUARD_API),
		GUARD_WRONG_HOST);
}

static enum guard_verdict from(const char *origin, const char *site, enum guard_kind kind)
{
	return check(
		(struct guard_request){
			.cookie = "sonde-7077=" TOKEN, .origin = origin, .fetch_site = site},
		kind);
}

static void test_pages_of_others(void **state)
{
	static const char *const others[] = {"http://evil.example", "null", "http://127.0.0.1:8080",
		"http://127.0.0.1", "ftp://127.0.0.1:7077", "http://127.0.0.1:7077.evil.example"};

	assert_int_equal(from("http://127.0.0.1:7077", "same-origin", GUARD_SOCKET), GUARD_ALLOWED);
	assert_int_equal(from("https://127.0.0.1:7077", NULL, GUARD_SOCKET), GUARD_ALLOWED);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(from(others[i], NULL, GUARD_SOCKET), GUARD_WRONG_ORIGIN);
		assert_int_equal(from(others[i], NULL, GUARD_API), GUARD_WRONG_ORIGIN);
	}
	/* A browser that has the cookie always says where a WebSocket comes from. */
	assert_int_equal(from(NULL, NULL, GUARD_SOCKET), GUARD_WRONG_ORIGIN);
	assert_int_equal(from(NULL, NULL, GUARD_CHANGE), GUARD_WRONG_ORIGIN);
	assert_int_equal(from("http://127.0.0.1:7077", NULL, GUARD_CHANGE), GUARD_ALLOWED);
	assert_int_equal(from(NULL, "cross-site", GUARD_API), GUARD_WRONG_ORIGIN);
	assert_int_equal(from(NULL, "same-site", GUARD_API), GUARD_WRONG_ORIGIN);
	assert_int_equal(from(NULL, "none", GUARD_API), GUARD_ALLOWED);
	/* Links to the page may be followed. */
	assert_int_equal(from(NULL, "cross-site", GUARD_PAGE), GUARD_ALLOWED);
}

static void test_listen(void **state)
{
	static const char *const bad[] = {"", "7077", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
		"127.0.0.1:70770", "::1:7077", "[127.0.0.1]:1", "[::1]", "evil.example:1", ":1",
		"127.0.0.1:-1", "[::1:1"};
	struct listen_place place;
	struct errmsg err;

	assert_int_equal(listen_parse(&place, "127.0.0.1:7077", &err), 0);
	assert_true(place.is_loopback && !place.is_ipv6 && place.port == 7077);
	assert_int_equal(listen_parse(&place, "localhost:0", &err), 0);
	assert_string_equal(place.host, "127.0.0.1");
	assert_int_equal(listen_parse(&place, "[::1]:80", &err), 0);
	assert_true(place.is_loopback && place.is_ipv6);
	assert_int_equal(listen_parse(&place, "0.0.0.0:80", &err), 0);
	assert_false(place.is_loopback);
	assert_int_equal(listen_parse(&place, "[::]:80", &err), 0);
	assert_false(place.is_loopback);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(listen_parse(&place, bad[i], &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_who_has_the_token),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_pages_of_others),
		cmocka_unit_test(test_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
