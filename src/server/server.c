/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/question.h"
#include "server/state.h"

#define TICK_NS (200 * NS_PER_MS)
/* A page that is loaded again is away for a moment. */
#define PAGE_AWAY_NS (15 * NS_PER_S)
/* For the last messages to clients. */
#define FAREWELL_NS (300 * NS_PER_MS)
/* For recordings to write the rest of their captures. */
#define JOBS_END_NS (25 * NS_PER_S)
/* libwebsockets makes a table of as many. */
#define DESCRIPTORS_MAX 2048

/* ---- time, signals, captures that change ---- */

static void end_view_without_page(struct server *server)
{
	if (server->options->is_view && server->had_socket && !server->sockets &&
		server->now_ns - server->socket_left_ns > PAGE_AWAY_NS)
		server->ends = true;
}

static void tick(struct loop_watch *watch)
{
	struct server *server = (struct server *)((char *)watch - offsetof(struct server, ticks));
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	server->now_ns = monotonic_now_ns();
	answers_tick(server->answers, server->now_ns);
	followers_tick(server->followers, server->now_ns, server->sockets);
	jobs_tick(server->jobs, server->now_ns);
	http_tick(server);
	end_view_without_page(server);
}

static void signalled(struct loop_watch *watch)
{
	struct server *server = (struct server *)((char *)watch - offsetof(struct server, signals));
	struct signalfd_siginfo signal;

	if (read(watch->fd, &signal, sizeof(signal)) > 0)
		server->ends = true;
}

static void capture_changed(void *context, const struct capture *capture)
{
	struct server *server = context;
	struct capture_progress progress = answers_progress(server->answers, capture);
	const struct api_capture_state_message message = {.capture = capture->id,
		.state = capture_state_names[progress.state],
		.done = progress.done,
		.total = progress.total};
	const struct api_message_kind *kind = &api_message_kinds[API_MESSAGE_CAPTURE_STATE];
	_cleanup_strbuf_ struct strbuf data = {0};
	struct json_writer json = {.out = &data};

	api_write_capture_state(&json, &message);
	if (server->bus && strbuf_status(&data) == 0)
		bus_publish(server->bus, kind->type, kind->class, strbuf_cstr(&data), data.length,
			monotonic_now_ns());
}

/* ---- libwebsockets ---- */

static int loop_callback(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
	if (reason == LWS_CALLBACK_RAW_RX_FILE)
		loop_run(&server_of(wsi)->loop, 0);
	return 0;
}

/* The last error: a sentence has it where the context could not be made. */
static char last_error[200];

static void keep_error(int level, const char *line)
{
	(void)level;
	snprintf(last_error, sizeof(last_error), "%.*s", (int)strcspn(line, "\n"), line);
}

static int create_context(
	struct server *server, const struct listen_place *place, struct errmsg *err)
{
	static struct lws_protocols protocols[] = {
		{.name = "sonde", .callback = http_callback},
		{.name = "loop", .callback = loop_callback},
		{0},
	};
	/* A client that does not answer pings is gone. */
	static const lws_retry_bo_t pings = {
		.secs_since_valid_ping = 20, .secs_since_valid_hangup = 45};
	const struct server_options *options = server->options;
	struct lws_context_creation_info info = {
		.protocols = protocols,
		.iface = place->host,
		.port = place->port,
		.server_string = "sonde",
		.options = place->is_ipv6 ? 0 : LWS_SERVER_OPTION_DISABLE_IPV6,
		.max_http_header_data2 = SERVER_HEADER_BYTES,
		.max_http_header_pool2 = SERVER_CONNECTIONS_MAX,
		.pt_serv_buf_size = SERVER_CHUNK,
		.timeout_secs = 10,
		.keepalive_timeout = 60,
		.retry_and_idle_policy = &pings,
		.alpn = "http/1.1",
		.user = server,
	};

	protocols[0].per_session_data_size = http_connection_size;
	protocols[0].tx_packet_size = SERVER_CHUNK;
	protocols[0].rx_buffer_size = 4096;
	if (options->tls_key) {
		info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
		info.ssl_cert_filepath = options->tls_certificate;
		info.ssl_private_key_filepath = options->tls_key;
	}
	info.options |=
		LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
	lws.lws_set_log_level(LLL_ERR, keep_error);
	server->context = lws.lws_create_context(&info);
	if (server->context)
		server->vhost = lws.lws_create_vhost(server->context, &info);
	if (!server->vhost)
		return errmsg_set(err, -EIO, "cannot serve on %s port %d%s%s: %s", place->host,
			place->port, options->tls_key ? " with the certificate and key of " : "",
			options->tls_key ? options->tls_key : "",
			last_error[0] ? last_error : "libwebsockets could not begin");
	server->port = lws.lws_get_vhost_listen_port(server->vhost);
	return 0;
}

static int watch_loop(struct server *server, struct errmsg *err)
{
	/* libwebsockets closes its own. */
	lws_sock_file_fd_type fd = {.filefd = dup(server->loop.epoll_fd)};

	if (lws.lws_adopt_descriptor_vhost(
		    server->vhost, LWS_ADOPT_RAW_FILE_DESC, fd, "loop", NULL))
		return 0;
	return errmsg_set(err, -EIO, "libwebsockets does not wait for descriptors");
}

/* ---- beginning ---- */

static int watch_time(struct server *server)
{
	const struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL) < 0)
		return -errno;
	server->ticks = (struct loop_watch){.fd = fd, .ready = tick};
	return loop_add(&server->loop, &server->ticks);
}

static int watch_signals(struct server *server)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	server->signals = (struct loop_watch){
		.fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), .ready = signalled};
	return server->signals.fd < 0 ? -errno : loop_add(&server->loop, &server->signals);
}

static void limit_descriptors(struct server *server)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	server->descriptors = limit.rlim_cur;
	if (limit.rlim_cur > DESCRIPTORS_MAX) {
		limit.rlim_cur = DESCRIPTORS_MAX;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int open_parts(struct server *server, struct errmsg *err)
{
	const struct server_options *options = server->options;
	int r = captures_open(&server->captures, options->path, options->lists_folder, err);

	if (r == 0 && options->more_count)
		r = captures_join(server->captures, options->more, options->more_count, err);
	if (r < 0)
		return r;
	r = loop_open(&server->loop);
	if (r == 0)
		r = watch_time(server);
	if (r == 0)
		r = watch_signals(server);
	if (r == 0)
		r = sockets_open(server);
	if (r == 0)
		r = bus_open(&server->bus, &server->bus_limits, NULL, server->started_ns);
	if (r == 0)
		r = answers_open(
			&server->answers, &server->loop, &options->limits, capture_changed, server);
	if (r == 0)
		r = followers_open(
			&server->followers, &(struct followers_setup){.loop = &server->loop,
						    .bus = server->bus,
						    .captures = server->captures,
						    .memory_bytes = options->limits.memory_bytes,
						    .follows_at_once = options->is_recorded});
	if (r == 0)
		r = jobs_open(&server->jobs,
			&(struct jobs_setup){.loop = &server->loop,
				.bus = server->bus,
				.captures = server->captures,
				.folder = options->lists_folder ? options->path : NULL,
				.commands = options->commands,
				.descriptors = server->descriptors});
	if (r == 0 && options->source)
		r = options->source->start(options->source->context, &server->loop, server->bus);
	if (r < 0)
		return errmsg_set(err, r, "the server cannot begin: %s", strerror(-r));
	return 0;
}

static int make_guard(struct server *server, const struct listen_place *place, struct errmsg *err)
{
	const struct server_options *options = server->options;

	if (options->without_token && !place->is_loopback)
		return errmsg_set(err, -EINVAL,
			"--no-token is for loopback alone: on %s everyone who reaches it could "
			"read the captures",
			place->host);
	server->guard.hosts = options->hosts;
	server->guard.host_count = options->host_count;
	server->guard.cookie_name = server->cookie_name;
	if (options->without_token)
		return 0;
	if (!options->token && guard_make_token(server->token) < 0)
		return errmsg_set(err, -EIO, "the kernel gave no random bytes for the token");
	server->guard.token = options->token ? options->token : server->token;
	return 0;
}

/* What a person opens: an address that listens on all is reached by this machine's own. */
static void make_address(struct server *server, const struct listen_place *place)
{
	const char *host = place->host;
	bool is_any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;

	snprintf(server->cookie_name, sizeof(server->cookie_name), "sonde-%d", server->port);
	if (is_any)
		host = server->options->host_count ? server->options->hosts[0] : "localhost";
	snprintf(server->address, sizeof(server->address), "%s://%s%s%s:%d/%s%s",
		server->options->tls_key ? "https" : "http", place->is_ipv6 && !is_any ? "[" : "",
		host, place->is_ipv6 && !is_any ? "]" : "", server->port,
		server->guard.token ? "?token=" : "",
		server->guard.token ? server->guard.token : "");
}

/* ---- serving ---- */

static void nothing(struct answer_waiter *waiter)
{
	(void)waiter;
}

/* The only capture is loaded before its page is opened. */
static void load_ahead(struct server *server)
{
	static const struct question question = {.what = QUESTION_SECTIONS, .path = ""};
	static struct answer_waiter waiter = {.ready = nothing};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct answers_question asked = {0};

	question_write(&text, &question);
	if (!server->options->is_view || captures_count(server->captures) != 1)
		return;
	asked.capture = captures_get(server->captures, 0);
	asked.text = strbuf_cstr(&text);
	asked.length = text.length;
	answers_ask(server->answers, &asked, &waiter, NULL);
}

/* Recordings end as they do with Ctrl-C, while clients look on; another Ctrl-C kills them. */
static void end_jobs(struct server *server)
{
	uint64_t end_ns = monotonic_now_ns() + JOBS_END_NS;

	jobs_cancel_all(server->jobs, monotonic_now_ns());
	server->ends = false;
	while (jobs_run(server->jobs) && !server->ends && monotonic_now_ns() < end_ns &&
		lws.lws_service(server->context, 0) >= 0)
		;
}

static void serve(struct server *server)
{
	uint64_t end_ns;

	load_ahead(server);
	server->options->listening(server->options->context, server->address);
	while (!server->ends && lws.lws_service(server->context, 0) >= 0)
		;
	end_jobs(server);
	end_ns = monotonic_now_ns() + FAREWELL_NS;
	bus_say_bye(server->bus, monotonic_now_ns());
	while (server->connections && monotonic_now_ns() < end_ns)
		lws.lws_service(server->context, 0);
}

static int prepare(struct server *server, struct errmsg *err)
{
	struct listen_place place;
	int r = listen_parse(&place, server->options->listen, err);

	limit_descriptors(server);
	if (r == 0)
		r = make_guard(server, &place, err);
	if (r == 0)
		r = open_parts(server, err);
	if (r == 0)
		r = listen_check(&place, err);
	if (r == 0)
		r = lws_load(err);
	if (r == 0)
		r = create_context(server, &place, err);
	if (r == 0)
		r = watch_loop(server, err);
	if (r == 0)
		make_address(server, &place);
	return r;
}

static void finish(struct server *server)
{
	if (server->context)
		lws.lws_context_destroy(server->context);
	answers_close(server->answers);
	followers_close(server->followers);
	jobs_close(server->jobs);
	bus_close(server->bus);
	captures_close(server->captures);
	closep(&server->ticks.fd);
	closep(&server->signals.fd);
	closep(&server->hold.fd);
	loop_close(&server->loop);
	strbuf_done(&server->frame);
	free(server);
}

int server_run(const struct server_options *options, struct errmsg *err)
{
	struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return errmsg_set(err, -ENOMEM, "memory ran out while the server began");
	server->options = options;
	server->loop.epoll_fd = server->ticks.fd = server->signals.fd = server->hold.fd = -1;
	server->bus_limits = (struct bus_limits)BUS_LIMITS_DEFAULT;
	server->started_ns = server->now_ns = monotonic_now_ns();
	server->started_unix_ms = (uint64_t)time(NULL) * 1000;
	r = prepare(server, err);
	if (r == 0)
		serve(server);
	finish(server);
	return r < 0 ? r : 0;
}
