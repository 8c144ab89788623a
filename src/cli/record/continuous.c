/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session hands what it records to a series of captures (capture/series/series.h), which asks
 * here for the name of each window and tells when one is complete.
 */
#include "cli/record/continuous.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "base/warn.h"
#include "capture/series/series.h"
#include "model/format.h"
#include "push/metrics_listener.h"
#include "push/otlp_metrics.h"
#include "push/prometheus.h"
#include "push/sender.h"
#include "push/window_folder.h"

#define MOST_EVERY_S    (24 * 3600)
#define METRICS_FILE_NS (5 * NS_PER_S)
/* At the end, for what is delivered then. */
#define FINISH_NS (10 * NS_PER_S)

struct continuous {
	struct capture_series *series;
	struct window_folder *folder;
	struct session_options *session;
	uint64_t every_ns;
	struct receiver receivers[SENDER_RECEIVERS];
	size_t receiver_count;
	char *token;
	struct sender *sender; /* NULL: nothing is sent */
	bool is_sender_gone;
	struct metrics_listener *listener; /* NULL: nobody asks */
	const char *metrics_file;          /* NULL: none is written */
	uint64_t metrics_ns;               /* when it was written last */
	bool is_metrics_file_failing;
	bool is_failing; /* the last window could not be written, and that was reported */
	int failure;
};

/* "60s", "5min", "1h"; seconds without a unit. */
static int parse_every(const char *text, uint64_t *ret_ns, struct errmsg *err)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = {{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}};
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name) != 0 || end == text || *text == '-' || errno ||
			!value || value > MOST_EVERY_S / units[i].seconds)
			continue;
		*ret_ns = value * units[i].seconds * NS_PER_S;
		return 0;
	}
	return errmsg_set(err, -EINVAL,
		"--every %s is not a time of 1 s to 24 h: give, for example, --every 60s or "
		"--every 5min",
		text);
}

static int name_window(
	void *context, uint64_t begin_realtime_ns, char **ret_path, struct errmsg *err)
{
	struct continuous *continuous = context;

	return window_folder_next(continuous->folder, begin_realtime_ns, ret_path, err);
}

static void say(const struct continuous *continuous, const char *sentence)
{
	const struct session_options *session = continuous->session;

	session->on_message(session->context, sentence);
}

/* Of many windows with one fault the first is reported, and the first that is right again. */
static void report_fault(struct continuous *continuous, const char *error)
{
	if (error && !continuous->is_failing)
		say(continuous, error);
	if (!error && continuous->is_failing)
		say(continuous, "windows can be written again");
	continuous->is_failing = error != NULL;
}

/* What metrics are made of, with what that refers to. */
struct figures {
	struct metric_figures all;
	struct metric_receiver receivers[SENDER_RECEIVERS];
	struct capture_series_figures series;
};

static void get_figures(const struct continuous *continuous, struct figures *figures)
{
	capture_series_figures(continuous->series, &figures->series);
	for (size_t i = 0; i < continuous->receiver_count; i++)
		figures->receivers[i] =
			(struct metric_receiver){.name = continuous->receivers[i].name,
				.counts = sender_counts(continuous->sender, i)};
	figures->all = (struct metric_figures){
		.series = &figures->series,
		.account = capture_series_account(continuous->series),
		.open_bytes = capture_series_open_bytes(continuous->series),
		.folder = window_folder_account(continuous->folder),
		.receivers = figures->receivers,
		.receiver_count = continuous->receiver_count,
	};
}

static void add_otlp_metrics(const struct continuous *continuous, struct strbuf *out)
{
	struct utsname machine = {0};
	struct timespec now;
	struct figures figures;

	uname(&machine);
	clock_gettime(CLOCK_REALTIME, &now);
	get_figures(continuous, &figures);
	otlp_metrics_write(&figures.all, (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec,
		machine.nodename, out);
}

static bool sends_metrics(const struct continuous *continuous)
{
	for (size_t i = 0; i < continuous->receiver_count; i++) {
		if (receiver_takes_metrics(&continuous->receivers[i]))
			return true;
	}
	return false;
}

static void send_window(struct continuous *continuous, const char *name)
{
	_cleanup_strbuf_ struct strbuf metrics = {0};
	const char *fault;

	if (!continuous->sender)
		return;
	if (sends_metrics(continuous))
		add_otlp_metrics(continuous, &metrics);
	sender_add(continuous->sender, name, &metrics);
	fault = sender_fault(continuous->sender);
	if (fault && !continuous->is_sender_gone)
		say(continuous, fault);
	continuous->is_sender_gone = fault;
}

static void on_closed(void *context, const struct capture_series_window *window)
{
	_cleanup_free_ char *name = NULL;
	struct continuous *continuous = context;
	struct errmsg err = {""};
	const char *error = window->error;

	if (window->path &&
		window_folder_finish(continuous->folder, window->path, &name, &err) < 0 && !error)
		error = err.text;
	report_fault(continuous, error);
	if (name)
		send_window(continuous, name);
	window_folder_trim(continuous->folder, capture_series_open_bytes(continuous->series));
}

static int renew_callstacks(struct continuous *continuous, struct session *session)
{
	if (!capture_series_is_full(continuous->series))
		return 0;
	session_renew_callstacks(session);
	return capture_series_renew_callstacks(continuous->series);
}

/* ---- metrics ---- */

static void write_metrics(void *context, struct strbuf *out)
{
	struct figures figures;

	get_figures(context, &figures);
	prometheus_write(&figures.all, out);
}

static void write_metrics_file(struct continuous *continuous)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct errmsg reason = {""}, sentence = {""};
	int r;

	write_metrics(continuous, &text);
	continuous->metrics_ns = monotonic_now_ns();
	r = output_place_write(
		continuous->metrics_file, &how, strbuf_cstr(&text), text.length, &reason);
	errmsg_set(&sentence, r, "cannot write --metrics-file %s: %s", continuous->metrics_file,
		reason.text);
	if (r < 0 && !continuous->is_metrics_file_failing)
		say(continuous, sentence.text);
	continuous->is_metrics_file_failing = r < 0;
}

static void tell_metrics(struct continuous *continuous)
{
	if (continuous->listener)
		metrics_listener_run(continuous->listener, write_metrics, continuous);
	if (continuous->metrics_file &&
		monotonic_now_ns() - continuous->metrics_ns >= METRICS_FILE_NS)
		write_metrics_file(continuous);
}

static bool on_tick(void *context, struct session *session)
{
	struct continuous *continuous = context;
	int r = capture_series_advance(
		continuous->series, monotonic_now_ns(), session_settled_ns(session));

	if (r == 0)
		r = renew_callstacks(continuous, session);
	window_folder_trim(continuous->folder, capture_series_open_bytes(continuous->series));
	tell_metrics(continuous);
	continuous->failure = r;
	return r == 0;
}

static int check(const struct session_options *session, struct errmsg *err)
{
	const char *other = session->split                                    ? "--split"
			    : session->window.trigger != CAPTURE_TRIGGER_NONE ? "--window"
									      : NULL;

	return other ? errmsg_set(err, -EINVAL,
			       "--continuous and %s exclude each other: a continuous recording "
			       "has windows of time, whose length --every says",
			       other)
		     : 0;
}

static int open_series(struct continuous *continuous, struct session_options *session)
{
	const struct capture_series_options options = {
		.size = sizeof(options),
		.every_ns = continuous->every_ns,
		.writer = {.size = sizeof(options.writer),
			.uncompressed = session->uncompressed,
			.stack_sample = session->stack_sample,
			.device_slices = session->device_slices,
			.how = session->how},
		.name = name_window,
		.closed = on_closed,
		.context = continuous,
	};
	int r = capture_series_new(&continuous->series, &options);

	if (r < 0)
		return r;
	continuous->session = session;
	session->live.visitor = &capture_series_visitor;
	session->live.visitor_context = continuous->series;
	session->live.tick = on_tick;
	session->live.tick_context = continuous;
	session->live.input_fd = -1;
	session->live.is_kept = true;
	return 0;
}

typedef int parse_receiver(struct receiver *ret_receiver, const char *text, struct errmsg *err);

/* Each has one queue, and one set of metrics. */
static bool is_known(const struct continuous *continuous, const char *name)
{
	for (size_t i = 0; i < continuous->receiver_count; i++)
		if (strcmp(continuous->receivers[i].name, name) == 0)
			return true;
	return false;
}

static int add_receivers(struct continuous *continuous, const struct option_strings *texts,
	parse_receiver *parse, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < texts->count; i++) {
		struct receiver *receiver = &continuous->receivers[continuous->receiver_count];

		if (continuous->receiver_count == SENDER_RECEIVERS)
			return errmsg_set(err, -EINVAL,
				"there can be %d of --upload and --push at most", SENDER_RECEIVERS);
		if (is_known(continuous, texts->values[i]))
			return errmsg_set(
				err, -EINVAL, "%s is given twice: leave one out", texts->values[i]);
		r = parse(receiver, texts->values[i], err);
		receiver->token = continuous->token;
		continuous->receiver_count++;
	}
	return r;
}

static int add_all_receivers(
	struct continuous *continuous, const struct continuous_options *options, struct errmsg *err)
{
	int r = receiver_token(options->token_file, &continuous->token, err);

	if (r == 0)
		r = add_receivers(continuous, &options->uploads, receiver_parse_upload, err);
	if (r == 0)
		r = add_receivers(continuous, &options->pushes, receiver_parse_push, err);
	return r;
}

static int start_sender(struct continuous *continuous, const struct continuous_options *options,
	const char *folder, struct errmsg *err)
{
	const struct sender_options sender = {
		.size = sizeof(sender),
		.folder = folder,
		.receivers = continuous->receivers,
		.receiver_count = continuous->receiver_count,
		.is_quiet = options->is_quiet,
	};

	return continuous->receiver_count ? sender_start(&continuous->sender, &sender, err) : 0;
}

int continuous_open(struct continuous **ret_continuous, const struct continuous_options *options,
	struct session_options *session, struct errmsg *err)
{
	struct window_folder_options folder = {.size = sizeof(folder), .path = options->output};
	struct continuous *continuous = calloc(1, sizeof(*continuous));
	int r = continuous ? check(session, err) : -ENOMEM;

	if (r == 0)
		r = parse_every(options->every, &continuous->every_ns, err);
	if (r == 0)
		r = window_keep_parse(options->keep, &folder.keep_bytes, &folder.keep_windows, err);
	if (r == 0)
		r = add_all_receivers(continuous, options, err);
	if (r == 0)
		r = window_folder_open(&continuous->folder, &folder, err);
	if (r == 0)
		r = start_sender(continuous, options, folder.path, err);
	if (r == 0 && options->metrics)
		r = metrics_listener_open(&continuous->listener, options->metrics, err);
	if (r == 0)
		continuous->metrics_file = options->metrics_file;
	if (r == 0)
		r = open_series(continuous, session);
	session->output = folder.path;
	if (r == 0)
		*ret_continuous = continuous;
	else
		continuous_free(continuous);
	return r;
}

int continuous_finish(struct continuous *continuous, int result, struct errmsg *err)
{
	int r = capture_series_finish(continuous->series);

	if (continuous->sender)
		sender_finish(continuous->sender, FINISH_NS);
	if (continuous->metrics_file)
		write_metrics_file(continuous);
	if (result == 0)
		result = continuous->failure ?: r;
	if (result < 0 && err && !err->text[0])
		errmsg_set(err, result, "the recording ended early: %s", strerror(-result));
	return result;
}

static void add_losses(const struct capture_series_account *series, struct strbuf *text)
{
	if (series->failed_windows)
		strbuf_addf(text, "; %llu could not be written whole, and lack %llu events",
			(unsigned long long)series->failed_windows,
			(unsigned long long)series->dropped);
	if (series->late)
		strbuf_addf(text, "; %llu events came after their window was closed",
			(unsigned long long)series->late);
}

static void print_sent(const struct continuous *continuous)
{
	for (size_t i = 0; i < continuous->receiver_count; i++) {
		const struct sender_counts *counts = sender_counts(continuous->sender, i);
		_cleanup_strbuf_ struct strbuf text = {0};

		strbuf_addf(&text, "%llu windows delivered to %s, ",
			(unsigned long long)counts->delivered, continuous->receivers[i].name);
		format_bytes(&text, counts->delivered_bytes);
		if (counts->failures)
			strbuf_addf(&text, "; %llu attempts failed",
				(unsigned long long)counts->failures);
		if (counts->waiting)
			strbuf_addf(&text, "; %llu wait for the next recording in this folder",
				(unsigned long long)counts->waiting);
		if (counts->dropped)
			strbuf_addf(&text, "; %llu were removed before (--keep)",
				(unsigned long long)counts->dropped);
		if (counts->rejected)
			strbuf_addf(&text, "; %llu were rejected",
				(unsigned long long)counts->rejected);
		print_plain("sonde: %s\n", strbuf_cstr(&text));
	}
}

void continuous_print(const struct continuous *continuous)
{
	const struct capture_series_account *series = capture_series_account(continuous->series);
	const struct window_folder_account *folder = window_folder_account(continuous->folder);
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%llu window%s of ", (unsigned long long)series->windows,
		series->windows == 1 ? "" : "s");
	format_duration(&text, continuous->every_ns);
	strbuf_add(&text, ", ");
	format_bytes(&text, series->bytes);
	add_losses(series, &text);
	strbuf_addf(&text, "; %s has %llu, ", window_folder_path(continuous->folder),
		(unsigned long long)folder->windows);
	format_bytes(&text, folder->bytes);
	if (folder->removed)
		strbuf_addf(&text, "; %llu old ones were removed (--keep)",
			(unsigned long long)folder->removed);
	if (folder->recovered)
		strbuf_addf(&text, "; %llu of a recorder that was killed were finished",
			(unsigned long long)folder->recovered);
	print_plain("sonde: %s\n", strbuf_cstr(&text));
	if (continuous->sender)
		print_sent(continuous);
}

struct continuous *continuous_free(struct continuous *continuous)
{
	if (!continuous)
		return NULL;
	metrics_listener_free(continuous->listener);
	sender_free(continuous->sender);
	capture_series_free(continuous->series);
	free(continuous->token);
	window_folder_free(continuous->folder);
	free(continuous);
	return NULL;
}
