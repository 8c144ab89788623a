/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/warn.h"
#include "cli/command.h"
#include "cli/serve/browser.h"
#include "cli/serve/serve.h"
#include "page/page.h"
#include "server/listen.h"

struct place {
	const struct server_options *options;
	bool browser;
	char *file; /* that the browser was opened with */
};

static void print_hints(const struct server_options *options)
{
	struct listen_place place;
	struct errmsg err;

	if (page_check(&err) < 0)
		print_sentence(err.text);
	if (listen_parse(&place, options->listen, NULL) < 0 || place.is_loopback)
		return;
	if (!options->tls_key)
		warn("everyone on the way can read what is sent, token included: give --tls-cert "
		     "and --tls-key, or listen on 127.0.0.1 behind a server that has TLS, such as "
		     "nginx or caddy, and name it with --host");
}

static void listening(void *context, const char *address)
{
	struct place *place = context;

	printf("%s\n", address);
	fflush(stdout);
	print_hints(place->options);
	if (place->browser) {
		place->file = browser_open(address);
		if (!place->file)
			warn("no browser could be opened: open the address above in one");
	}
	print_plain("%s\n", place->options->is_view
				    ? "It ends when its page is closed, or with Ctrl-C."
				    : "Ctrl-C ends it.");
}

int serve_check_perfetto(const char *address, struct errmsg *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~:/[]";
	size_t scheme = strncmp(address, "https://", 8) == 0  ? 8
			: strncmp(address, "http://", 7) == 0 ? 7
							      : 0;
	bool has_host = scheme && address[scheme] && address[scheme] != '/';

	if (!*address || (has_host && strspn(address, allowed) == strlen(address)))
		return 0;
	return errmsg_set(err, -EINVAL,
		"--perfetto %s is no address of a page: give one such as https://ui.perfetto.dev, "
		"or an empty one for none",
		address);
}

int serve_run(struct server_options *options, bool browser)
{
	struct place place = {.options = options, .browser = browser};
	struct errmsg err;
	int r;

	options->listening = listening;
	options->context = &place;
	r = server_run(options, &err);
	if (place.file)
		unlink(place.file);
	free(place.file);
	return r < 0 ? fail(&err) : EXIT_OK;
}
