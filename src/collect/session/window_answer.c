/* SPDX-License-Identifier: Apache-2.0 */
/* What a session answers on its control socket: JSON for programs, sentences for `sonde ctl`. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "collect/session/internal.h"
#include "collect/session/window.h"

#define MAX_NAMES 16

/* A client that wants sentences says so before its line. */
#define TEXT_PREFIX "text "

struct answer {
	struct session *session;
	struct strbuf *out;
	bool is_text;
};

static const char *state_name(const struct session_windows *windows)
{
	if (windows->list.is_whole)
		return "whole";
	if (windows->list.is_open)
		return "open";
	return windows->phase == WIRE_PHASE_WARMUP ? "warmup" : "closed";
}

static void begin_json(struct answer *answer, struct json_writer *json, bool ok)
{
	*json = (struct json_writer){.out = answer->out};
	json_begin_object(json);
	json_key(json, "ok");
	json_bool(json, ok);
}

static void add_u64(struct json_writer *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

static void add_string(struct json_writer *json, const char *key, const char *value)
{
	json_key(json, key);
	if (value)
		json_string(json, value);
	else
		json_null(json);
}

static void answer_error(struct answer *answer, const struct errmsg *err)
{
	struct json_writer json;

	if (answer->is_text) {
		strbuf_addf(answer->out, "error %s", err->text);
		return;
	}
	begin_json(answer, &json, false);
	add_string(&json, "error", err->text);
	json_end_object(&json);
}

/* ---- start, stop, step ---- */

static void answer_window(struct answer *answer)
{
	struct session_windows *windows = &answer->session->windows;
	const struct capture_window *window = windows_last(&windows->list);
	struct json_writer json;

	if (answer->is_text) {
		strbuf_addf(answer->out, "ok window %u is %s", window->number,
			window->end_ns ? "closed" : "open");
		if (window->end_ns)
			strbuf_addf(answer->out, ", after %.3f s",
				(double)(window->end_ns - window->begin_ns) / 1e9);
		return;
	}
	begin_json(answer, &json, true);
	add_u64(&json, "window", window->number);
	add_u64(&json, "begin_ns", window->begin_ns);
	if (window->end_ns)
		add_u64(&json, "end_ns", window->end_ns);
	json_end_object(&json);
}

static void answer_start(struct answer *answer, const char *label)
{
	struct errmsg err = {{0}};

	if (session_windows_begin_now(answer->session, label, &err) < 0)
		answer_error(answer, &err);
	else
		answer_window(answer);
}

static void answer_stop(struct answer *answer, const char *rest _unused_)
{
	struct errmsg err = {{0}};

	if (session_windows_end_now(answer->session, CAPTURE_REASON_TRIGGER, &err) < 0)
		answer_error(answer, &err);
	else
		answer_window(answer);
}

static void answer_step(struct answer *answer, const char *name)
{
	struct errmsg err = {{0}};
	struct json_writer json;

	if (session_windows_own_step(answer->session, name, &err) < 0) {
		answer_error(answer, &err);
	} else if (answer->is_text) {
		strbuf_addf(answer->out, "ok step %llu, the recording is %s",
			(unsigned long long)answer->session->windows.own_steps,
			state_name(&answer->session->windows));
	} else {
		begin_json(answer, &json, true);
		add_u64(&json, "step", answer->session->windows.own_steps);
		add_string(&json, "state", state_name(&answer->session->windows));
		json_end_object(&json);
	}
}

/* ---- status ---- */

static size_t get_steps(struct session *session, struct target_steps steps[MAX_NAMES])
{
	size_t count;

	target_rings_lock(session->device.rings);
	count = target_rings_steps(session->device.rings, steps, MAX_NAMES);
	target_rings_unlock(session->device.rings);
	return MIN(count, (size_t)MAX_NAMES);
}

static void add_steps(struct session *session, struct json_writer *json)
{
	struct target_steps steps[MAX_NAMES];
	size_t count = get_steps(session, steps);

	json_key(json, "steps");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		add_string(json, "name", steps[i].name);
		add_u64(json, "count", steps[i].count);
		add_u64(json, "most_of_one_process", steps[i].most);
		add_u64(json, "processes", steps[i].processes);
		json_key(json, "chosen");
		json_bool(json, steps[i].is_chosen);
		json_end_object(json);
	}
	json_end_array(json);
}

static void add_targets(struct session *session, struct json_writer *json)
{
	json_key(json, "targets");
	json_begin_array(json);
	if (session->target.pid)
		json_u64(json, (uint64_t)session->target.pid);
	for (uint32_t i = 0; i < session->options->pid_count; i++)
		json_u64(json, session->options->pids[i]);
	json_end_array(json);
}

static void write_status(struct answer *answer)
{
	struct session *session = answer->session;
	struct session_windows *windows = &session->windows;
	const struct capture_window *window = windows_last(&windows->list);
	struct json_writer json;

	begin_json(answer, &json, true);
	add_string(&json, "session", target_rings_folder(session->device.rings));
	add_u64(&json, "pid", (uint64_t)getpid());
	add_targets(session, &json);
	add_string(&json, "capture", session_output(session->options, session->result));
	add_u64(&json, "elapsed_ns", monotonic_now_ns() - session->start_ns);
	add_string(&json, "trigger", session->options->window.text);
	add_string(&json, "state", state_name(windows));
	add_u64(&json, "windows", windows->list.items.count);
	if (windows->list.is_open) {
		add_u64(&json, "window", window->number);
		add_u64(&json, "begin_ns", window->begin_ns);
	}
	add_steps(session, &json);
	json_end_object(&json);
}

static void say_status(struct answer *answer)
{
	struct session *session = answer->session;
	struct session_windows *windows = &session->windows;
	struct target_steps steps[MAX_NAMES];
	size_t count = get_steps(session, steps);

	strbuf_addf(answer->out, "ok sonde %d records into %s for %.1f s", (int)getpid(),
		session_output(session->options, session->result),
		(double)(monotonic_now_ns() - session->start_ns) / 1e9);
	if (windows->list.is_whole) {
		strbuf_add(answer->out, ", all the time");
	} else {
		strbuf_addf(answer->out, ", --window %s: %s, %zu window%s so far",
			session->options->window.text, state_name(windows),
			windows->list.items.count, windows->list.items.count == 1 ? "" : "s");
	}
	for (size_t i = 0; i < count; i++)
		strbuf_addf(answer->out, "%s%llu steps '%s'%s", i ? ", " : "; ",
			(unsigned long long)steps[i].most, steps[i].name,
			steps[i].is_chosen ? "" : " (not counted)");
}

static void answer_status(struct answer *answer, const char *rest _unused_)
{
	if (answer->is_text)
		say_status(answer);
	else
		write_status(answer);
}

/* ---- a line ---- */

void session_windows_answer(void *context, char *line, struct strbuf *out)
{
	static const struct {
		const char *verb;
		void (*run)(struct answer *answer, const char *rest);
	} verbs[] = {
		{"start", answer_start},
		{"stop", answer_stop},
		{"step", answer_step},
		{"status", answer_status},
	};
	struct answer answer = {.session = context, .out = out};
	struct errmsg err;
	size_t length;

	if (strncmp(line, TEXT_PREFIX, strlen(TEXT_PREFIX)) == 0) {
		answer.is_text = true;
		line += strlen(TEXT_PREFIX);
	}
	length = strcspn(line, " \r");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strlen(verbs[i].verb) != length || strncmp(line, verbs[i].verb, length) != 0)
			continue;
		line += length;
		line += strspn(line, " ");
		line[strcspn(line, "\r")] = '\0';
		verbs[i].run(&answer, line);
		return;
	}
	errmsg_set(&err, 0, "a session takes start, stop, step or status, not '%.60s'", line);
	answer_error(&answer, &err);
}
