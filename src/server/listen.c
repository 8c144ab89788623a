/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t make_address(const struct listen_place *place, union address *ret_address)
{
	*ret_address = (union address){0};
	if (inet_pton(AF_INET, place->host, &ret_address->v4.sin_addr) == 1) {
		ret_address->v4.sin_family = AF_INET;
		ret_address->v4.sin_port = htons((uint16_t)place->port);
		return sizeof(ret_address->v4);
	}
	if (inet_pton(AF_INET6, place->host, &ret_address->v6.sin6_addr) != 1)
		return 0;
	ret_address->v6.sin6_family = AF_INET6;
	ret_address->v6.sin6_port = htons((uint16_t)place->port);
	return sizeof(ret_address->v6);
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static int refuse(const char *text, struct errmsg *err)
{
	return errmsg_set(err, -EINVAL,
		"'%.80s' is no address to listen on: write ADDRESS:PORT, such as 127.0.0.1:7077, "
		"0.0.0.0:7077 or [::1]:7077",
		text);
}

int listen_parse(struct listen_place *ret_place, const char *text, struct errmsg *err)
{
	struct listen_place place = {0};
	const char *colon = strrchr(text, ':');
	bool has_brackets = text[0] == '[' && colon && colon > text && colon[-1] == ']';
	const char *begin = text + has_brackets;
	union address address;
	size_t length;
	char *end;
	long port;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return refuse(text, err);
	port = strtol(colon + 1, &end, 10);
	length = (size_t)(colon - begin) - has_brackets;
	if (*end || port > 65535 || !length || length >= sizeof(place.host))
		return refuse(text, err);
	memcpy(place.host, begin, length);
	if (strcmp(place.host, "localhost") == 0)
		snprintf(place.host, sizeof(place.host), "127.0.0.1");
	place.port = (int)port;
	if (!make_address(&place, &address) || has_brackets != (address.any.sa_family == AF_INET6))
		return refuse(text, err);
	place.is_ipv6 = has_brackets;
	place.is_loopback = is_loopback(&address);
	*ret_place = place;
	return 0;
}

int listen_check(const struct listen_place *place, struct errmsg *err)
{
	union address address;
	socklen_t length = make_address(place, &address);
	_cleanup_close_ int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int yes = 1, error;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		bind(fd, &address.any, length) == 0 && listen(fd, 1) == 0)
		return 0;
	error = errno;
	return errmsg_set(err, -error, "cannot listen on %s port %d: %s; %s", place->host,
		place->port, strerror(error),
		error == EADDRINUSE ? "give another one with --listen, or port 0 for a free one"
		: error == EACCES   ? "ports below 1024 need root"
				    : "give an address of this machine with --listen");
}
