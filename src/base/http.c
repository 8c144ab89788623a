/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/curl_abi.h"
#include "base/macros.h"
#include "base/strbuf.h"

#define MOST_RETRY_AFTER_S 3600

/* Functions of libcurl; its handles and lists are theirs. */
static struct {
	void *library;
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	int (*easy_setopt)(void *handle, int option, ...);
	int (*easy_perform)(void *handle);
	int (*easy_getinfo)(void *handle, int information, ...);
	void (*easy_cleanup)(void *handle);
	const char *(*easy_strerror)(int code);
	void *(*slist_append)(void *list, const char *text);
	void (*slist_free_all)(void *list);
} curl;

static bool load_functions(void)
{
	const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"curl_global_init", &curl.global_init},
		{"curl_easy_init", &curl.easy_init},
		{"curl_easy_setopt", &curl.easy_setopt},
		{"curl_easy_perform", &curl.easy_perform},
		{"curl_easy_getinfo", &curl.easy_getinfo},
		{"curl_easy_cleanup", &curl.easy_cleanup},
		{"curl_easy_strerror", &curl.easy_strerror},
		{"curl_slist_append", &curl.slist_append},
		{"curl_slist_free_all", &curl.slist_free_all},
	};

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void *found = dlsym(curl.library, functions[i].name);

		if (!found)
			return false;
		memcpy(functions[i].function, &found, sizeof(found));
	}
	return curl.global_init(CURL_GLOBAL_EVERYTHING) == 0;
}

int http_load(struct errmsg *err)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

	for (size_t i = 0; i < ARRAY_SIZE(names) && !curl.library; i++)
		curl.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!curl.library)
		return errmsg_set(err, -ENOENT,
			"sending by HTTP needs libcurl, which is not here: install it (Debian: "
			"libcurl4), or give a file or folder in place of a URL");
	if (curl.global_init || load_functions())
		return 0;
	dlclose(TAKE_PTR(curl.library));
	return errmsg_set(err, -ENOENT,
		"the libcurl that is here lacks functions of version 7.66: install a newer one");
}

int http_check_url(const char *url, struct errmsg *err)
{
	const char *host = strstr(url, "://");

	if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
		return errmsg_set(err, -EINVAL,
			"%s is not a URL: give one that begins with http:// or https://", url);
	host += 3;
	if (!*host || *host == '/' || *host == ':')
		return errmsg_set(err, -EINVAL, "%s names no host", url);
	if (memchr(host, '@', strcspn(host, "/?#")))
		return errmsg_set(err, -EINVAL,
			"a URL with a password would be seen in lists of processes: give the token "
			"with --token-file or in $SONDE_TOKEN");
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return errmsg_set(err, -EINVAL, "a URL has no spaces: write them as %%20");
	return 0;
}

/* ---- one request ---- */

/* A request on its way. */
struct exchange {
	void *handle;
	const struct http_request *request;
	struct http_answer answer;
	uint64_t sent;
	int taken; /* what request->take returned */
};

static size_t read_body(char *room, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	const struct http_request *request = exchange->request;
	size_t length = MIN(size * count, request->length - exchange->sent);
	ssize_t got = (ssize_t)length;

	if (request->fd < 0)
		memcpy(room, (const char *)request->bytes + exchange->sent, length);
	else
		got = pread(request->fd, room, length, (off_t)exchange->sent);
	if (got < 0)
		return 0x10000000; /* CURL_READFUNC_ABORT */
	exchange->sent += (uint64_t)got;
	return (size_t)got;
}

/* A receiver may say as much as it likes. */
static void keep_text(struct http_answer *answer, const char *bytes, size_t count)
{
	size_t length = strlen(answer->text);

	for (size_t i = 0; i < count && length + 1 < sizeof(answer->text); i++)
		answer->text[length++] =
			(char)((unsigned char)bytes[i] < ' ' || bytes[i] == 0x7f ? ' ' : bytes[i]);
	answer->text[length] = '\0';
}

static size_t read_answer(const char *bytes, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	const struct http_request *request = exchange->request;
	long status = 0;

	if (request->take)
		curl.easy_getinfo(exchange->handle, CURL_INFORMATION_RESPONSE_CODE, &status);
	if (status < 200 || status > 299) {
		keep_text(&exchange->answer, bytes, size * count);
		return size * count;
	}
	exchange->taken = request->take(request->context, bytes, size * count);
	return exchange->taken < 0 ? 0 : size * count;
}

static bool is_header_text(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	}
	return true;
}

static void *make_headers(const struct http_request *request)
{
	_cleanup_strbuf_ struct strbuf type = {0}, token = {0}, line = {0};
	void *headers = curl.slist_append(NULL, "Expect:");

	strbuf_addf(&type, "Content-Type: %s", request->content_type);
	headers = curl.slist_append(headers, strbuf_cstr(&type));
	for (size_t i = 0; i < request->header_count; i++) {
		if (!is_header_text(request->headers[i].value))
			continue;
		strbuf_clear(&line);
		strbuf_addf(&line, "%s: %s", request->headers[i].name, request->headers[i].value);
		headers = curl.slist_append(headers, strbuf_cstr(&line));
	}
	if (!request->token)
		return headers;
	strbuf_addf(&token, "Authorization: Bearer %s", request->token);
	return curl.slist_append(headers, strbuf_cstr(&token));
}

static void set_options(struct exchange *exchange, void *headers)
{
	const struct http_request *request = exchange->request;
	void *handle = exchange->handle;
	long seconds = (long)((request->timeout_ms + 999) / 1000);

	curl.easy_setopt(handle, CURL_OPTION_URL, request->url);
	curl.easy_setopt(handle, CURL_OPTION_PROTOCOLS, (long)CURL_PROTOCOLS_HTTP);
	curl.easy_setopt(handle, CURL_OPTION_CUSTOMREQUEST, request->method);
	curl.easy_setopt(handle, CURL_OPTION_UPLOAD, 1L);
	curl.easy_setopt(handle, CURL_OPTION_HTTPHEADER, headers);
	curl.easy_setopt(handle, CURL_OPTION_USERAGENT, "sonde/" SONDE_VERSION);
	curl.easy_setopt(handle, CURL_OPTION_READFUNCTION, read_body);
	curl.easy_setopt(handle, CURL_OPTION_READDATA, exchange);
	curl.easy_setopt(handle, CURL_OPTION_INFILESIZE_LARGE, (int64_t)request->length);
	curl.easy_setopt(handle, CURL_OPTION_WRITEFUNCTION, read_answer);
	curl.easy_setopt(handle, CURL_OPTION_WRITEDATA, exchange);
	curl.easy_setopt(handle, CURL_OPTION_NOSIGNAL, 1L);
	curl.easy_setopt(handle, CURL_OPTION_CONNECTTIMEOUT_MS, (long)request->timeout_ms);
	/* However large the body is: as long as it goes on. */
	curl.easy_setopt(handle, CURL_OPTION_LOW_SPEED_LIMIT, 1L);
	curl.easy_setopt(handle, CURL_OPTION_LOW_SPEED_TIME, seconds);
}

/* libcurl's codes, as errno. */
static int errno_of(int code)
{
	enum { RESOLVE_PROXY = 5, RESOLVE_HOST = 6, CONNECT = 7, TIMED_OUT = 28 };

	switch (code) {
	case RESOLVE_PROXY:
	case RESOLVE_HOST:
	case CONNECT:
		return -ECONNREFUSED;
	case TIMED_OUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

int http_send(
	const struct http_request *request, struct http_answer *ret_answer, struct errmsg *err)
{
	struct exchange exchange = {.request = request};
	int64_t retry_after = 0;
	void *headers;
	int code, r = http_load(err);

	if (r < 0)
		return r;
	exchange.handle = curl.easy_init();
	if (!exchange.handle)
		return errmsg_set(err, -ENOMEM, "out of memory");
	headers = make_headers(request);
	set_options(&exchange, headers);
	code = curl.easy_perform(exchange.handle);
	if (exchange.taken < 0) {
		r = exchange.taken;
	} else if (code == 0) {
		curl.easy_getinfo(
			exchange.handle, CURL_INFORMATION_RESPONSE_CODE, &exchange.answer.status);
		curl.easy_getinfo(exchange.handle, CURL_INFORMATION_RETRY_AFTER, &retry_after);
		exchange.answer.retry_after_s =
			(uint64_t)MAX((int64_t)0, MIN(retry_after, MOST_RETRY_AFTER_S));
		*ret_answer = exchange.answer;
	} else {
		r = errmsg_set(err, errno_of(code), "%s", curl.easy_strerror(code));
	}
	curl.slist_free_all(headers);
	curl.easy_cleanup(exchange.handle);
	return r;
}
