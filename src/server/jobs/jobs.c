/* SPDX-License-Identifier: Apache-2.0 */
#include "server/jobs/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "server/jobs/files.h"
#include "server/jobs/process.h"

#define JOBS_KEPT 100 /* that have ended */
/* Between Ctrl-C, SIGTERM and SIGKILL. */
#define PATIENCE_NS (10 * NS_PER_S)
/* How often the state of windows is asked for, which may also open and close by themselves. */
#define WINDOW_LOOK_NS (2 * NS_PER_S)
#define SECONDS_BYTES  24

enum job_state {
	JOB_RUNNING,
	JOB_ENDED,
	JOB_FAILED,
	JOB_CANCELLED,
};

static const char *const state_names[] = {"running", "ended", "failed", "cancelled"};

struct job {
	struct jobs *jobs;
	char id[17];
	char *command, *file; /* the name of its capture; NULL: none that is served */
	char capture[CAPTURE_ID_BYTES];
	enum job_state state;
	bool is_cancelled;
	pid_t pid; /* of its sonde */
	uint64_t started_unix_ms, end_by_ns, keep;
	uint64_t next_signal_ns; /* of one that is being ended */
	unsigned signals;        /* that it was sent */
	int exit_status;         /* -1: not known */
	const char *window;      /* "open", "closed"; NULL: it has none */
	uint64_t window_look_ns;
	char message[400];
	struct process recording, control;
};

struct jobs {
	struct jobs_setup setup;
	ARRAY_OF(struct job *) items; /* oldest first */
};

/* ---- what clients are sent ---- */

void job_write(const struct job *job, struct json_writer *json)
{
	const struct api_job_message message = {
		.id = job->id,
		.command = job->command,
		.state = state_names[job->state],
		.capture = job->capture,
		.started_unix_ms = job->started_unix_ms,
		.has_exit_status = job->exit_status >= 0,
		.exit_status = (uint64_t)(job->exit_status >= 0 ? job->exit_status : 0),
		.window = job->state == JOB_RUNNING ? job->window : NULL,
		.message = job->message,
	};

	api_write_job(json, &message);
}

void jobs_write(const struct jobs *jobs, struct json_writer *json)
{
	json_begin_object(json);
	json_key(json, "jobs");
	json_begin_array(json);
	for (size_t i = jobs->items.count; i-- > 0;)
		job_write(jobs->items.items[i], json);
	json_end_array(json);
	json_end_object(json);
}

static void publish(const struct job *job)
{
	const struct api_message_kind *kind = &api_message_kinds[API_MESSAGE_JOB];
	_cleanup_strbuf_ struct strbuf data = {0};
	struct json_writer json = {.out = &data};

	job_write(job, &json);
	if (strbuf_status(&data) == 0)
		bus_publish(job->jobs->setup.bus, kind->type, kind->class, strbuf_cstr(&data),
			data.length, monotonic_now_ns());
}

/* ---- one job ---- */

static struct job *job_free(struct job *job)
{
	if (job) {
		process_done(&job->control);
		process_done(&job->recording);
		free(job->command);
		free(job->file);
		free(job);
	}
	return NULL;
}

struct job *jobs_find(const struct jobs *jobs, const char *id)
{
	for (size_t i = 0; i < jobs->items.count; i++) {
		if (strcmp(jobs->items.items[i]->id, id) == 0)
			return jobs->items.items[i];
	}
	return NULL;
}

/* Those that have ended long ago are no longer listed. */
static void forget_oldest(struct jobs *jobs)
{
	for (size_t i = 0; jobs->items.count > JOBS_KEPT && i < jobs->items.count;) {
		if (jobs->items.items[i]->state == JOB_RUNNING) {
			i++;
			continue;
		}
		job_free(jobs->items.items[i]);
		memmove(jobs->items.items + i, jobs->items.items + i + 1,
			(--jobs->items.count - i) * sizeof(jobs->items.items[0]));
	}
}

static struct job *add_job(
	struct jobs *jobs, const char *command, const char *file, bool has_windows)
{
	struct job *job = calloc(1, sizeof(*job));
	struct timespec now;
	uint64_t number;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!job)
		return NULL;
	job->jobs = jobs;
	job->command = strdup(command);
	job->file = file ? strdup(file) : NULL;
	job->started_unix_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	job->end_by_ns = UINT64_MAX;
	job->exit_status = -1;
	job->window = has_windows ? "closed" : NULL;
	job->window_look_ns = monotonic_now_ns() + WINDOW_LOOK_NS;
	if (!job->command || (file && !job->file) ||
		getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number) ||
		array_append(&jobs->items, job) < 0)
		return job_free(job);
	snprintf(job->id, sizeof(job->id), "%016llx", (unsigned long long)number);
	forget_oldest(jobs);
	return job;
}

/* Its capture is listed once it has been seen in the folder. True: it is new. */
static bool look_for_capture(struct job *job)
{
	const struct capture *capture;

	if (*job->capture || !job->file)
		return false;
	capture = captures_find_name(job->jobs->setup.captures, job->file);
	if (capture)
		snprintf(job->capture, sizeof(job->capture), "%s", capture->id);
	return capture != NULL;
}

/* ---- its end ---- */

static void set_end(struct job *job, int exit_status)
{
	job->exit_status = exit_status;
	job->state = job->is_cancelled ? JOB_CANCELLED : exit_status ? JOB_FAILED : JOB_ENDED;
	captures_refresh_now(job->jobs->setup.captures);
	look_for_capture(job);
	if (job->keep && job->file)
		job_files_trim(job->jobs->setup.folder, job->command, job->keep);
	publish(job);
}

static void recording_ended(struct process *process)
{
	struct job *job = (struct job *)((char *)process - offsetof(struct job, recording));
	int status = process->status;
	int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	if (exit_status && !job->is_cancelled)
		snprintf(job->message, sizeof(job->message), "%.*s", (int)sizeof(job->message) - 1,
			process_last_line(process));
	set_end(job, exit_status);
}

static void send_next_signal(struct job *job, uint64_t now_ns)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
	int signal = signals[MIN(job->signals, 2u)];

	process_signal(&job->recording, signal);
	job->signals++;
	job->next_signal_ns = now_ns + PATIENCE_NS;
}

static void end(struct job *job, uint64_t now_ns)
{
	if (job->is_cancelled)
		return;
	job->is_cancelled = true;
	/* What the command leaves behind, too. */
	job->recording.ends_all = true;
	send_next_signal(job, now_ns);
}

int job_cancel(struct jobs *jobs, struct job *job, struct errmsg *err)
{
	(void)jobs;
	if (job->state != JOB_RUNNING)
		return errmsg_set(err, -EALREADY, "this job has ended already");
	end(job, monotonic_now_ns());
	return 0;
}

/* ---- windows ---- */

/* The sentence of {"ok":false,"error":"…"}, or what it printed. */
static void take_error(struct job *job)
{
	const char *line = process_last_line(&job->control);
	struct json_reader reader = {.at = line, .end = line + strlen(line), .is_last = true};
	struct json_text name, value;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (json_reader_enter(&reader, '{') == JSON_OK) {
		while (json_reader_member(&reader, &name) == JSON_OK &&
			json_reader_value(&reader, &value) == JSON_OK) {
			struct json_text inside = json_text_inside(&value);

			if (json_text_equals(&name, "error"))
				json_text_unescape(&text, &inside);
		}
	}
	snprintf(job->message, sizeof(job->message), "%s", text.length ? text.data : line);
}

/* sonde ctl has printed the session's answer. */
static void control_ended(struct process *process)
{
	struct job *job = (struct job *)((char *)process - offsetof(struct job, control));
	const char *before = job->window;
	bool is_ok = strncmp(process->text, "{\"ok\":true", 10) == 0;

	if (job->state != JOB_RUNNING)
		return;
	if (strstr(process->text, "\"state\":\"open\""))
		job->window = "open";
	else if (strstr(process->text, "\"state\":"))
		job->window = "closed";
	else if (is_ok)
		job->window = strstr(process->text, "\"end_ns\":") ? "closed" : "open";
	/* Looks have no message: a recording that begins or ends does not answer. */
	if (!is_ok && job->window_look_ns == UINT64_MAX)
		take_error(job);
	if (job->window != before || job->window_look_ns == UINT64_MAX)
		publish(job);
	job->window_look_ns = monotonic_now_ns() + WINDOW_LOOK_NS;
}

static int ask_session(struct job *job, char *verb)
{
	char pid[SECONDS_BYTES];
	char *argv[] = {(char[]){"sonde"}, (char[]){"ctl"}, (char[]){"--json"},
		(char[]){"--session"}, pid, verb, NULL};
	const struct process_setup setup = {
		.argv = argv, .descriptors = job->jobs->setup.descriptors};

	snprintf(pid, sizeof(pid), "%d", (int)job->pid);
	job->control.ended = control_ended;
	return process_start(&job->control, job->jobs->setup.loop, &setup);
}

int job_set_window(struct jobs *jobs, struct job *job, bool is_open, struct errmsg *err)
{
	int r;

	(void)jobs;
	if (job->state != JOB_RUNNING)
		return errmsg_set(err, -EALREADY, "this job has ended already");
	if (!job->window)
		return errmsg_set(err, -EALREADY,
			"this job has no windows: its command needs \"record\": [\"--window\", "
			"\"manual\"]");
	/* A look may be given up; another request may not. */
	if (process_runs(&job->control) && job->window_look_ns == UINT64_MAX)
		return errmsg_set(err, -EALREADY, "the window is being opened or closed now");
	process_done(&job->control);
	*job->message = '\0';
	r = ask_session(job, is_open ? (char[]){"start"} : (char[]){"stop"});
	if (r < 0)
		return errmsg_set(err, r, "cannot ask the recording: %s", strerror(-r));
	/* No look meanwhile. */
	job->window_look_ns = UINT64_MAX;
	return 0;
}

/* ---- beginning ---- */

static int add_words(struct command_words *words, const char *const *texts, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = command_words_add(words, strdup(texts[i]));
	return r;
}

/* sonde record -q -o FILE OPTIONS… -- COMMAND…, NULL-ended. Takes the words of the command. */
static int make_line(struct command_words *line, const struct job_command *command,
	struct command_words *words, const char *path)
{
	const char *const begin[] = {"sonde", "record", "-q", "-o", path};
	const char *const dashes[] = {"--"};
	int r = add_words(line, begin, ARRAY_SIZE(begin));

	if (r == 0)
		r = add_words(line, (const char *const *)command->record.list.items,
			command->record.list.count);
	if (r == 0)
		r = add_words(line, dashes, 1);
	if (r == 0)
		r = add_words(line, (const char *const *)words->list.items, words->list.count);
	return r == 0 ? array_append(&line->list, NULL) : r;
}

static int start_recording(
	struct job *job, const struct job_command *command, struct command_words *words)
{
	struct command_words line = {{0}};
	struct command_words environment = {{0}};
	struct process_setup setup = {
		.cwd = command->cwd, .descriptors = job->jobs->setup.descriptors};
	_cleanup_free_ char *path = NULL;
	int r = 0;

	if (asprintf(&path, "%s/%s", job->jobs->setup.folder, job->file) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = make_line(&line, command, words, path);
	if (r == 0)
		r = add_words(&environment, (const char *const *)command->environment.list.items,
			command->environment.list.count);
	if (r == 0)
		r = array_append(&environment.list, NULL);
	if (r == 0) {
		setup.argv = line.list.items;
		setup.environment = environment.list.items;
		job->recording.ended = recording_ended;
		r = process_start(&job->recording, job->jobs->setup.loop, &setup);
		job->pid = job->recording.pid;
	}
	command_words_done(&line);
	command_words_done(&environment);
	return r;
}

static size_t count_running(const struct jobs *jobs)
{
	size_t count = 0;

	for (size_t i = 0; i < jobs->items.count; i++)
		count += jobs->items.items[i]->state == JOB_RUNNING;
	return count;
}

/* Without a job that never ran. */
static int give_up(struct jobs *jobs, struct job *job, int error, struct errmsg *err)
{
	if (job) {
		jobs->items.count--;
		job_free(job);
	}
	return errmsg_set(err, error, "the command cannot be started: %s", strerror(-error));
}

int jobs_start(struct jobs *jobs, const struct job_command *command, const struct json_text *values,
	const struct job **ret_job, struct errmsg *err)
{
	struct command_words words = {{0}};
	char file[JOB_FILE_BYTES];
	struct job *job = NULL;
	int r = command_line(command, values, &words, err);

	if (r < 0)
		return r;
	if (count_running(jobs) >= jobs->setup.commands->jobs) {
		command_words_done(&words);
		return errmsg_set(err, -EBUSY,
			"%llu recording%s at once may run here: wait for the end of one, or cancel "
			"it",
			(unsigned long long)jobs->setup.commands->jobs,
			jobs->setup.commands->jobs == 1 ? "" : "s");
	}
	r = job_file_name(jobs->setup.folder, command->name, (int64_t)time(NULL), file);
	if (r == 0) {
		job = add_job(jobs, command->name, file, command->has_windows);
		r = job ? start_recording(job, command, &words) : -ENOMEM;
	}
	command_words_done(&words);
	if (r < 0 || !job)
		return give_up(jobs, job, r, err);
	job->keep = command->keep;
	job->end_by_ns = monotonic_now_ns() + command->seconds * NS_PER_S;
	publish(job);
	*ret_job = job;
	return 0;
}

/* ---- all ---- */

static void tick_job(struct job *job, uint64_t now_ns)
{
	if (now_ns >= job->end_by_ns && !job->is_cancelled) {
		snprintf(job->message, sizeof(job->message),
			"it ran as long as its command may, and was ended");
		end(job, now_ns);
	}
	if (job->is_cancelled && now_ns >= job->next_signal_ns)
		send_next_signal(job, now_ns);
	if (look_for_capture(job))
		publish(job);
	if (job->window && now_ns >= job->window_look_ns && !process_runs(&job->control)) {
		job->window_look_ns = now_ns + WINDOW_LOOK_NS;
		ask_session(job, (char[]){"status"});
	}
}

void jobs_tick(struct jobs *jobs, uint64_t now_ns)
{
	bool looks = false;

	for (size_t i = 0; i < jobs->items.count; i++) {
		const struct job *job = jobs->items.items[i];

		looks = looks || (job->state == JOB_RUNNING && job->file && !*job->capture);
	}
	if (looks)
		captures_refresh(jobs->setup.captures, now_ns);
	for (size_t i = 0; i < jobs->items.count; i++) {
		if (jobs->items.items[i]->state == JOB_RUNNING)
			tick_job(jobs->items.items[i], now_ns);
	}
}

void jobs_cancel_all(struct jobs *jobs, uint64_t now_ns)
{
	for (size_t i = 0; i < jobs->items.count; i++) {
		struct job *job = jobs->items.items[i];

		if (job->state == JOB_RUNNING)
			end(job, now_ns);
	}
}

bool jobs_run(const struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->items.count; i++) {
		if (process_runs(&jobs->items.items[i]->recording))
			return true;
	}
	return false;
}

int jobs_open(struct jobs **ret_jobs, const struct jobs_setup *setup)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	jobs->setup = *setup;
	*ret_jobs = jobs;
	return 0;
}

struct jobs *jobs_close(struct jobs *jobs)
{
	if (jobs) {
		for (size_t i = 0; i < jobs->items.count; i++)
			job_free(jobs->items.items[i]);
		array_done(&jobs->items);
		free(jobs);
	}
	return NULL;
}
