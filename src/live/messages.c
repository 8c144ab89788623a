/* SPDX-License-Identifier: Apache-2.0 */
/* The data of messages: what they share, the session, the summary, and when each is due. */
#include <math.h>
#include <stdlib.h>

#include "live/state.h"

/* Names are cut after so many bytes: they are shown, and found again in the report. */
#define NAME_BYTES   ((size_t)300)
#define COMMAND_MOST 200

const char *const live_message_types[LIVE_MESSAGE_MAX] = {
	[LIVE_SESSION] = "live_session",
	[LIVE_SUMMARY] = "live_summary",
	[LIVE_POWER] = "live_power",
	[LIVE_TOKENS] = "live_tokens",
	[LIVE_PHASES] = "live_phases",
	[LIVE_CURRENT] = "live_current",
	[LIVE_FUNCTIONS] = "live_functions",
	[LIVE_KERNELS] = "live_kernels",
	[LIVE_LAYERS] = "live_layers",
	[LIVE_ENDED] = "live_ended",
};

/* ---- parts of messages ---- */

double live_t_ms(const struct live_figures *figures, uint64_t time_ns)
{
	if (time_ns < figures->start_ns)
		return -(double)(figures->start_ns - time_ns) / (double)NS_PER_MS;
	return (double)(time_ns - figures->start_ns) / (double)NS_PER_MS;
}

void live_begin_message(const struct live_figures *figures, struct json_writer *json)
{
	json_begin_object(json);
	json_member_text(json, "capture", figures->capture);
}

void live_member_t_ms(const struct live_figures *figures, struct json_writer *json, const char *key,
	uint64_t time_ns)
{
	json_key(json, key);
	json_double(json, live_t_ms(figures, time_ns), 12);
}

void live_member_ms(struct json_writer *json, const char *key, double ns)
{
	json_key(json, key);
	json_double(json, round(ns / 1000) / 1000, 15);
}

size_t live_cut(const char *text)
{
	size_t length = strlen(text);

	if (length <= NAME_BYTES)
		return length;
	/* Not inside of a character. */
	length = NAME_BYTES;
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

void live_member_string(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string_n(json, text, live_cut(text));
}

void live_member_name(struct json_writer *json, const char *key, const char *text)
{
	if (*text) {
		live_member_string(json, key, text);
	} else {
		json_key(json, key);
		json_null(json);
	}
}

void live_member_text(const struct live_figures *figures, struct json_writer *json, const char *key,
	uint32_t text)
{
	live_member_name(json, key, live_text(figures, text));
}

/* Text + 1; 0: none. */
static void member_optional(const struct live_figures *figures, struct json_writer *json,
	const char *key, uint32_t text)
{
	live_member_name(json, key, text ? live_text(figures, text - 1) : "");
}

static void member_if(struct json_writer *json, const char *key, bool known, double value)
{
	json_key(json, key);
	json_double(json, known ? value : NAN, 6);
}

/* ---- session and summary ---- */

static void write_absences(const struct live_figures *figures, struct json_writer *json)
{
	json_key(json, "absences");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(figures->absences.count, (size_t)64); i++) {
		const struct live_absence *absence = &figures->absences.items[i];

		json_begin_object(json);
		live_member_text(figures, json, "source", absence->source);
		live_member_text(figures, json, "reason", absence->reason);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_session(const struct live_figures *figures, struct json_writer *json)
{
	const struct live_session *session = &figures->session;

	live_begin_message(figures, json);
	json_member_u64(json, "generation", figures->generation);
	live_member_string(json, "name", figures->name);
	json_key(json, "command");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(session->command.count, (size_t)COMMAND_MOST); i++) {
		const char *word = live_text(figures, session->command.items[i]);

		json_string_n(json, word, live_cut(word));
	}
	json_end_array(json);
	member_optional(figures, json, "host", session->host);
	json_member_known(json, "started_unix_ms", session->start_realtime_ns,
		session->start_realtime_ns / NS_PER_MS);
	json_member_known(json, "period_ns", session->period_ns, session->period_ns);
	json_key(json, "whole_machine");
	json_bool(json, session->whole_machine);
	member_optional(figures, json, "wait_mode", session->wait_mode);
	member_optional(figures, json, "launch_stacks", session->launch_stacks);
	live_write_rails(figures, json);
	write_absences(figures, json);
	json_end_object(json);
}

static bool records_waits(const struct live_figures *figures)
{
	uint32_t mode = figures->session.wait_mode;

	return figures->waited_ns.total ||
	       (mode && strcmp(live_text(figures, mode - 1), "off") != 0);
}

static void write_losses(const struct live_figures *figures, struct json_writer *json)
{
	json_key(json, "losses");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(figures->losses.count, (size_t)64); i++) {
		json_begin_object(json);
		live_member_string(
			json, "where", live_text(figures, figures->losses.items[i].where));
		json_member_u64(json, "count", figures->losses.items[i].count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_summary(struct live_figures *figures, struct json_writer *json)
{
	double recent_s = live_recent_s(figures), ns_per_s = (double)NS_PER_S;
	double samples = (double)live_recent_sum(figures, &figures->samples);
	double waited_ns = (double)live_recent_sum(figures, &figures->waited_ns);
	double tokens = (double)live_recent_sum(figures, &figures->tokens.recent);
	double busy_s = samples * (double)figures->session.period_ns / ns_per_s;
	bool known = recent_s > 0;

	live_begin_message(figures, json);
	live_member_t_ms(figures, json, "t_ms", figures->newest_ns);
	json_member_u64(json, "samples", figures->samples.total);
	member_if(json, "samples_per_s", known, samples / recent_s);
	member_if(json, "cpu_busy", known && figures->session.period_ns, busy_s / recent_s);
	member_if(
		json, "waiting", known && records_waits(figures), waited_ns / ns_per_s / recent_s);
	json_member_u64(json, "samples_lost", figures->samples_lost);
	write_losses(figures, json);
	json_member_u64(json, "processes", figures->pids.count);
	json_member_u64(json, "threads", figures->thread_names.count);
	json_member_u64(json, "tokens", live_token_count(figures));
	member_if(json, "tokens_per_s", known && figures->tokens.requests.count, tokens / recent_s);
	json_member_u64(json, "requests_running", figures->tokens.running);
	json_member_u64(json, "requests_done", figures->tokens.done);
	live_write_joules(figures, json);
	json_member_u64(json, "kernels", figures->devices.kernel_count);
	live_write_busy(figures, json);
	json_member_u64(json, "capture_bytes", figures->bytes);
	json_end_object(json);
}

void live_write_ended(const struct live_figures *figures, const char *reason, const char *sentence,
	struct strbuf *out)
{
	struct json_writer json = {.out = out};
	bool has_status = figures->has_ended && figures->exit_status >= 0;

	live_begin_message(figures, &json);
	live_member_t_ms(figures, &json, "t_ms", figures->newest_ns);
	json_member_text(&json, "reason", reason);
	json_member_text(&json, "message", sentence);
	json_member_known(&json, "exit_status", has_status, (uint64_t)figures->exit_status);
	json_end_object(&json);
}

/* ---- what is due ---- */

struct emitter {
	struct live_figures *figures;
	int (*emit)(void *context, enum live_message message, const struct live_data *data);
	void *context;
	struct strbuf text, columns;
};

static int send_text(struct emitter *emitter, enum live_message message)
{
	const struct live_data data = {strbuf_cstr(&emitter->text), emitter->text.length,
		emitter->columns.data, emitter->columns.length};
	int r = strbuf_status(&emitter->text) ?: strbuf_status(&emitter->columns);

	/* Bounded by what each message takes; a hostile capture's longest texts all at once. */
	if (r == 0 && data.length <= LIVE_MESSAGE_BYTES)
		r = emitter->emit(emitter->context, message, &data);
	strbuf_clear(&emitter->text);
	strbuf_clear(&emitter->columns);
	return r;
}

static int emit_batches(struct emitter *emitter)
{
	struct live_figures *figures = emitter->figures;
	size_t rail = 0;
	int r = 0;

	while (r == 0 && rail < figures->rails.count && live_has_power(figures)) {
		struct json_writer json = {.out = &emitter->text};

		r = live_write_power(figures, rail, &rail, &json, &emitter->columns);
		if (r == 0)
			r = send_text(emitter, LIVE_POWER);
	}
	while (r == 0 && live_has_tokens(figures)) {
		struct json_writer json = {.out = &emitter->text};

		r = live_write_tokens(figures, &json, &emitter->columns);
		if (r == 0)
			r = send_text(emitter, LIVE_TOKENS);
	}
	while (r == 0 && live_has_phases(figures)) {
		struct json_writer json = {.out = &emitter->text};

		live_write_phases(figures, &json);
		r = send_text(emitter, LIVE_PHASES);
	}
	return r;
}

static int emit_often(struct emitter *emitter)
{
	struct live_figures *figures = emitter->figures;
	struct json_writer json = {.out = &emitter->text}, current = json;
	int r;

	write_summary(figures, &json);
	r = send_text(emitter, LIVE_SUMMARY);
	if (r == 0)
		r = emit_batches(emitter);
	if (r == 0 && figures->tracks.count) {
		live_write_current(figures, &current);
		r = send_text(emitter, LIVE_CURRENT);
	}
	return r;
}

static int emit_table(struct emitter *emitter, enum live_message message, size_t rows,
	int (*write)(struct live_figures *figures, struct json_writer *json))
{
	struct json_writer json = {.out = &emitter->text};
	int r = rows ? write(emitter->figures, &json) : 0;

	return r < 0 || !rows ? r : send_text(emitter, message);
}

static int emit_seldom(struct emitter *emitter)
{
	const struct live_figures *figures = emitter->figures;
	int r = emit_table(
		emitter, LIVE_FUNCTIONS, figures->functions.costs.count, live_write_functions);

	if (r == 0)
		r = emit_table(
			emitter, LIVE_KERNELS, figures->devices.kernels.count, live_write_kernels);
	if (r == 0)
		r = emit_table(emitter, LIVE_LAYERS, figures->layers.count, live_write_layers);
	return r;
}

int live_emit(struct live_figures *figures, unsigned paces,
	int (*emit)(void *context, enum live_message message, const struct live_data *data),
	void *context)
{
	struct emitter emitter = {.figures = figures, .emit = emit, .context = context};
	struct json_writer json = {.out = &emitter.text};
	int r = 0;

	/* Times are since the start, which is not known yet. */
	if (!figures->has_start)
		return 0;
	if (figures->session_changed) {
		write_session(figures, &json);
		figures->session_changed = false;
		r = send_text(&emitter, LIVE_SESSION);
	}
	if (r == 0 && (paces & LIVE_OFTEN))
		r = emit_often(&emitter);
	if (r == 0 && (paces & LIVE_SELDOM))
		r = emit_seldom(&emitter);
	strbuf_done(&emitter.text);
	strbuf_done(&emitter.columns);
	return r;
}
