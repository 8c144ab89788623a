/* SPDX-License-Identifier: Apache-2.0 */
/* sonde serve: captures and folders of them, for a page and for programs. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/serve/serve.h"
#include "server/guard.h"
#include "server/jobs/commands.h"
#include "store/store.h"

static struct {
	const char *listen, *store, *token_file, *commands_file, *tls_certificate, *tls_key,
		*perfetto;
	struct option_strings hosts;
	uint64_t memory_mb;
	bool no_token, read_only;
} arguments = {.listen = SERVE_LISTEN, .perfetto = SERVER_PERFETTO};

/* In a file of this user that no other can read, so that others cannot choose or learn it. */
static int read_token(const char *path, struct strbuf *ret_token, struct errmsg *err)
{
	struct stat status;
	int r;

	if (stat(path, &status) < 0)
		return errmsg_set(
			err, -errno, "cannot read the token of %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode) || (status.st_mode & 077) ||
		(status.st_uid != geteuid() && status.st_uid != 0))
		return errmsg_set(err, -EPERM,
			"others can read or change the token in %s: make it a file of yours with "
			"chmod 600",
			path);
	r = read_whole_file(path, 4096, ret_token);
	if (r < 0)
		return errmsg_set(err, r, "cannot read the token of %s: %s", path, strerror(-r));
	while (ret_token->length && strchr("\r\n", ret_token->data[ret_token->length - 1]))
		ret_token->data[--ret_token->length] = '\0';
	if (ret_token->length < GUARD_TOKEN_MIN || ret_token->length > GUARD_TOKEN_MAX ||
		strspn(ret_token->data, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
					"WXYZ-_") != ret_token->length)
		return errmsg_set(err, -EINVAL,
			"the token in %s must have %d to %d letters, digits, '-' and '_': write a "
			"new one with openssl rand -hex 16",
			path, GUARD_TOKEN_MIN, GUARD_TOKEN_MAX);
	return 0;
}

static int check(struct errmsg *err)
{
	const char *files[] = {arguments.tls_certificate, arguments.tls_key};

	if (!arguments.tls_certificate != !arguments.tls_key)
		return errmsg_set(
			err, -EINVAL, "--tls-cert and --tls-key belong together: give both");
	if (arguments.no_token && arguments.token_file)
		return errmsg_set(
			err, -EINVAL, "--no-token and --token-file exclude each other: give one");
	if (arguments.commands_file && (arguments.no_token || arguments.read_only))
		return errmsg_set(err, -EINVAL, "--commands and %s exclude each other: %s",
			arguments.no_token ? "--no-token" : "--read-only",
			arguments.no_token ? "every user of this machine could start the commands"
					   : "nothing can be started through such a server");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (files[i] && access(files[i], R_OK) < 0)
			return errmsg_set(
				err, -errno, "cannot read %s: %s", files[i], strerror(errno));
	}
	return serve_check_perfetto(arguments.perfetto, err);
}

/* Can it be opened? One that another program has locked can be, later. */
static int check_store(const struct server_options *options, struct errmsg *err)
{
	_cleanup_store_ struct store *store = NULL;
	int r = store_open(
		&store, options->store, options->read_only ? STORE_READ : STORE_WRITE, err);

	return r == -EBUSY ? 0 : r;
}

/* Captures are written into the folder. */
static int read_commands(const struct server_options *options, struct job_commands **ret_commands,
	struct errmsg *err)
{
	if (!options->lists_folder)
		return errmsg_set(err, -ENOTDIR,
			"--commands needs a folder, which captures are written to, not %s",
			options->path);
	if (access(options->path, W_OK) < 0)
		return errmsg_set(err, -errno, "cannot write captures to %s: %s", options->path,
			strerror(errno));
	return commands_read(ret_commands, arguments.commands_file, err);
}

static int serve_run_command(int count, char **positional)
{
	struct job_commands *allowed = NULL;
	int result;
	_cleanup_strbuf_ struct strbuf token = {0};
	struct server_options options = {
		.path = count ? positional[0] : ".",
		.listen = arguments.listen,
		.store = arguments.store,
		.without_token = arguments.no_token,
		.hosts = arguments.hosts.values,
		.host_count = arguments.hosts.count,
		.tls_certificate = arguments.tls_certificate,
		.tls_key = arguments.tls_key,
		.read_only = arguments.read_only,
		.perfetto = arguments.perfetto,
		.limits = ANSWERS_LIMITS_DEFAULT,
	};
	struct stat status;
	struct errmsg err;

	if (check(&err) < 0)
		return fail_usage(&err);
	if (arguments.token_file && read_token(arguments.token_file, &token, &err) < 0)
		return fail(&err);
	if (arguments.token_file)
		options.token = strbuf_cstr(&token);
	if (arguments.store && check_store(&options, &err) < 0)
		return fail(&err);
	options.lists_folder = stat(options.path, &status) == 0 && S_ISDIR(status.st_mode);
	options.limits.memory_bytes = arguments.memory_mb << 20;
	if (arguments.commands_file && read_commands(&options, &allowed, &err) < 0)
		return fail(&err);
	options.commands = allowed;
	result = serve_run(&options, false);
	commands_free(allowed);
	return result;
}

static const struct option serve_options[] = {
	{.long_name = "listen",
		.type = OPTION_STRING,
		.argument = "ADDRESS:PORT",
		.help = "Listen here; port 0 is a free one.",
		.value = (void *)&arguments.listen},
	{.long_name = "memory",
		.type = OPTION_U64,
		.argument = "MB",
		.help = "The most memory of each process that has a capture open. Default: no "
			"limit.",
		.value = &arguments.memory_mb,
		.minimum = 64,
		.maximum = 1e7},
	PERFETTO_OPTION(arguments.perfetto),
	{.long_name = "store",
		.type = OPTION_STRING,
		.argument = "FILE|URL",
		.help = "Serve this runs database, too: the history of 'sonde runs', on the page "
			"and at /api/runs. Made where it is missing.",
		.value = (void *)&arguments.store},
	{.long_name = "commands",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Let clients record the commands of this file, and no others: see "
			"docs/serve.md. Captures are written to FOLDER.",
		.value = (void *)&arguments.commands_file},
	{.long_name = "token-file",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Take the token from this file, which only you can read. Default: a new "
			"one each time.",
		.value = (void *)&arguments.token_file,
		.group = "Security"},
	{.long_name = "no-token",
		.type = OPTION_FLAG,
		.help = "Ask for no token: every user of this machine can open the captures. On "
			"loopback only.",
		.value = &arguments.no_token,
		.group = "Security"},
	{.long_name = "read-only",
		.type = OPTION_FLAG,
		.help = "Only show what there is: nothing can be changed or started.",
		.value = &arguments.read_only,
		.group = "Security"},
	{.long_name = "host",
		.type = OPTION_STRINGS,
		.argument = "NAME",
		.help = "Answer to this name, too, besides localhost and addresses. May be given "
			"several times.",
		.value = &arguments.hosts,
		.group = "Security"},
	{.long_name = "tls-cert",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Serve HTTPS with this certificate (PEM); needs --tls-key.",
		.value = (void *)&arguments.tls_certificate,
		.group = "Security"},
	{.long_name = "tls-key",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "The key of the certificate (PEM).",
		.value = (void *)&arguments.tls_key,
		.group = "Security"},
	{0},
};

const struct command serve_command = {
	.name = "serve",
	.summary = "serve captures to browsers and programs",
	.usage = "[options] [CAPTURE | FOLDER]",
	.description =
		"Serves the captures and traces of a folder, or one capture: the same page as "
		"sonde view, an HTTP API for programs, described at /api/openapi.json, and live "
		"messages at /ws. Without an argument it serves the folder that it is started "
		"in.\n\nIt listens on this machine only, and asks for the token in the address "
		"that it prints. Programs send it as 'Authorization: Bearer TOKEN'.",
	.examples = "sonde serve captures/\n    All captures of a folder, on 127.0.0.1:7077.\n"
		    "sonde serve --listen 0.0.0.0:7077 --tls-cert cert.pem --tls-key key.pem "
		    "captures/\n    For other machines, too.\n"
		    "sonde serve --commands commands.json captures/\n    With a form that records "
		    "what commands.json allows.\n"
		    "curl -H \"Authorization: Bearer $TOKEN\" "
		    "http://127.0.0.1:7077/api/captures\n    The same for programs.",
	.options = serve_options,
	.maximum_arguments = 1,
	.run = serve_run_command,
};
