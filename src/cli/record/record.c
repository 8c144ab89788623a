/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde record`: records a command, processes or the machine into a capture. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/warn.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record/account_json.h"
#include "cli/record/continuous.h"
#include "cli/record/device_options.h"
#include "cli/record/live_server.h"
#include "cli/record/output_name.h"
#include "cli/record/sudo_command.h"
#include "cli/record/summary.h"
#include "cli/record/window_options.h"
#include "cli/serve/serve.h"
#include "cli/target_options.h"
#include "collect/hooks/python_hooks.h"
#include "collect/session/session.h"
#include "page/page.h"

#define DEFAULT_OUTPUT DEFAULT_CAPTURE
#define DEFAULT_HZ     99
/* Of windows by steps, which are short; between them no sample is taken. */
#define STEPS_HZ 999

static const char *record_output, *record_group, *record_json;
static uint64_t record_frequency_hz; /* 0: not given */
static double record_duration_s;
static struct target_options record_target;
static struct window_options record_windows;
static struct continuous_options record_continuous = CONTINUOUS_DEFAULTS;
static struct live_server_options record_serve;
static bool record_split, record_view, record_quiet, record_uncompressed, record_stack_sample,
	record_device_slices;
static const char *record_mode = "auto";
static struct device_options record_device = DEVICE_DEFAULTS;
static const char *record_energy = "auto", *record_energy_model, *record_require_energy;
static double record_energy_baseline_s;
static const char *record_hooks; /* NULL: auto, with a command */
static const char *record_wait;  /* NULL: with a command */
static uint64_t record_wait_min_us = 100;

static void on_finishing(void *context _unused_, const char *what, uint64_t left)
{
	static bool is_reported;

	if (is_reported || record_quiet)
		return;
	is_reported = true;
	fprintf(stderr, "sonde: waiting for %s of the last %llu sample%s …\n", what,
		(unsigned long long)left, left == 1 ? "" : "s");
}

static void on_message(void *context _unused_, const char *sentence)
{
	if (!record_quiet)
		warn("%s", sentence);
}

static void on_other_output(void *context _unused_, const char *sentence)
{
	warn("%s", sentence);
}

/* ---- command line ---- */

static enum session_mode parse_mode(void)
{
	if (strcmp(record_mode, "bpf") == 0)
		return SESSION_MODE_BPF;
	return strcmp(record_mode, "user") == 0 ? SESSION_MODE_USER : SESSION_MODE_AUTO;
}

static enum session_wait parse_wait(bool with_command)
{
	if (!record_wait)
		return with_command ? SESSION_WAIT_SAMPLE : SESSION_WAIT_OFF;
	if (strcmp(record_wait, "exact") == 0)
		return SESSION_WAIT_EXACT;
	return strcmp(record_wait, "sample") == 0 ? SESSION_WAIT_SAMPLE : SESSION_WAIT_OFF;
}

/* What is loaded into programs is loaded into commands only, and not with --cpu-only. */
static int check_hooks(bool with_command, struct errmsg *err)
{
	if (!record_hooks || strcmp(record_hooks, PYTHON_HOOKS_NONE) == 0)
		return 0;
	if (!with_command || record_device.cpu_only)
		return errmsg_set(err, -EINVAL,
			"--hooks is for a command, and not with --cpu-only, which loads nothing "
			"into it: %s",
			with_command ? "leave one of the two out" : "give one after --");
	return python_hooks_check(record_hooks, err);
}

static int check_split(const struct session_options *options, struct errmsg *err)
{
	if (!options->split || options->window.trigger != CAPTURE_TRIGGER_NONE)
		return 0;
	return errmsg_set(err, -EINVAL,
		"--split needs windows to split by; give --window, for example --window "
		"steps:wait=1,warmup=1,active=3");
}

/* What a machine that runs other programs takes is not what it takes at rest. */
static int check_energy(bool with_command, struct errmsg *err)
{
	if (record_energy_baseline_s > 0 && !with_command)
		return errmsg_set(err, -EINVAL,
			"--energy-baseline measures the machine before a command starts: give one "
			"after --");
	return 0;
}

static uint64_t frequency_hz(const struct window_spec *window)
{
	if (record_frequency_hz)
		return record_frequency_hz;
	return window_spec_is_scheduled(window) ? STEPS_HZ : DEFAULT_HZ;
}

/* A name, or a number. */
static int parse_group(struct session_options *options, struct errmsg *err)
{
	const struct group *group;
	unsigned long number;
	char *end;

	if (!record_group)
		return 0;
	options->how.access = OUTPUT_GROUP;
	group = getgrnam(record_group);
	number = strtoul(record_group, &end, 10);
	if (!group && (end == record_group || *end || number >= (gid_t)-1))
		return errmsg_set(err, -EINVAL,
			"there is no group %s: give one of `getent group`, or its number",
			record_group);
	options->how.group = group ? group->gr_gid : (gid_t)number;
	return 0;
}

static int record(struct session_options *options, struct session_result *result,
	struct continuous **ret_continuous, struct errmsg *err)
{
	int r;

	if (!record_continuous.is_continuous) {
		options->how.keeps_others = true;
		/* The default name is used again and again. */
		options->how.keep_previous = !record_output;
		return session_run(options, result, err);
	}
	record_continuous.is_quiet = record_quiet;
	r = continuous_open(ret_continuous, &record_continuous, options, err);
	if (r < 0)
		return r;
	r = session_run(options, result, err);
	return continuous_finish(*ret_continuous, r, err);
}

/* What --json asks for. Returns `error`, or that of writing it, with a sentence. */
static int write_account(const struct session_result *result, const struct session_options *options,
	int error, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	int r;

	if (!record_json)
		return error;
	r = record_account_json(result, options, error < 0 ? err->text : NULL, &out);
	if (r < 0)
		return error < 0 ? error
				 : errmsg_set(err, r, "memory ran out while writing --json");
	if (error < 0) {
		struct errmsg ignored;

		output_write(record_json, strbuf_cstr(&out), out.length, &ignored);
		return error;
	}
	return output_write(record_json, strbuf_cstr(&out), out.length, err);
}

/* The recording in the browser, until its page is closed. Its end is not the command's. */
static void view_recording(const char *path)
{
	struct server_options view = {
		.path = path,
		.is_view = true,
		.listen = VIEW_LISTEN,
		.read_only = true,
		.limits = ANSWERS_LIMITS_DEFAULT,
	};

	serve_run(&view, true);
}

static int check_view(const struct session_options *options, struct errmsg *err)
{
	if (!record_view)
		return 0;
	if (!options->split && !record_continuous.is_continuous)
		return page_check(err);
	return errmsg_set(err, -EINVAL,
		"--view shows one capture, and --split and --continuous write several: leave it "
		"out, and look at them with sonde serve");
}

static const char *default_output(void)
{
	if (record_continuous.is_continuous)
		return output_name_is_of_ranks() ? CONTINUOUS_OUTPUT_OF_RANKS : CONTINUOUS_OUTPUT;
	return output_name_is_of_ranks() ? OUTPUT_NAME_OF_RANKS : DEFAULT_OUTPUT;
}

/* A name with marks: see output_name.h. */
static int make_output(struct strbuf *name, struct session_options *options, struct errmsg *err)
{
	options->output = record_output ? record_output : default_output();
	if (output_name_has_marks(options->output)) {
		int r = output_name_make(name, options->output, err);

		if (r < 0)
			return r;
		options->output = strbuf_cstr(name);
	}
	record_continuous.output = options->output;
	return 0;
}

/* What goes into the options, and what does not go together. */
static int parse_options(
	struct session_options *options, int count, uint32_t *pids, struct errmsg *err)
{
	bool with_command = count > 0;
	int r = target_options_parse(&record_target, count, pids, options, err);

	if (r == 0)
		r = device_options_parse(&record_device, with_command, options, err);
	if (r == 0)
		r = check_hooks(with_command, err);
	if (r == 0)
		r = check_energy(with_command, err);
	if (r == 0)
		r = window_options_parse(&record_windows, options, err);
	if (r == 0)
		r = check_split(options, err);
	if (r == 0)
		r = check_view(options, err);
	if (r == 0)
		r = live_server_check(&record_serve, options,
			options->split || record_continuous.is_continuous, record_view, err);
	return r < 0 ? r : parse_group(options, err);
}

/* Before the command says anything itself. */
static void print_command(const struct session_options *options)
{
	struct errmsg sentence;

	if (options->command && !record_quiet &&
		sudo_command_differs(options->command[0], &sentence))
		warn("%s", sentence.text);
}

static int run_record(int count, char **arguments)
{
	uint32_t pids[TARGET_MAXIMUM_PIDS];
	struct session_result *result = calloc(1, sizeof(*result));
	struct session_options options = {
		.duration_ns = (uint64_t)(record_duration_s * NS_PER_S),
		.command = count ? arguments : NULL,
		.pids = pids,
		.mode = parse_mode(),
		.wait = parse_wait(count > 0),
		.wait_min_ns = record_wait_min_us * NS_PER_US,
		.hooks = record_hooks ?: PYTHON_HOOKS_AUTO,
		.energy = record_energy,
		.energy_model = record_energy_model,
		.require_energy = record_require_energy,
		.energy_baseline_ns = (uint64_t)(record_energy_baseline_s * NS_PER_S),
		.uncompressed = record_uncompressed,
		.stack_sample = record_stack_sample,
		.device_slices = record_device_slices,
		.split = record_split,
		.on_finishing = on_finishing,
		.on_message = on_message,
		.on_other_output = on_other_output,
	};
	struct continuous *continuous = NULL;
	struct live_server *server = NULL;
	_cleanup_strbuf_ struct strbuf name = {0};
	struct errmsg err = {{0}};
	int error = 0, status;

	if (!result)
		return EXIT_ERROR;
	if (make_output(&name, &options, &err) < 0 ||
		parse_options(&options, count, pids, &err) < 0) {
		free(result);
		return fail_usage(&err);
	}
	options.period_ns = NS_PER_S / frequency_hz(&options.window);
	print_command(&options);
	if (record_serve.is_wanted)
		error = live_server_start(&server, &record_serve, &options, &err);
	if (error == 0)
		error = record(&options, result, &continuous, &err);
	if (error < 0 && !err.text[0])
		errmsg_set(&err, error, "recording failed: %s", strerror(-error));
	error = write_account(result, &options, error, &err);
	if (error < 0)
		fail(&err);
	if (!record_quiet)
		record_print_end(result, &options, error, continuous,
			!record_output && output_name_is_of_ranks());
	status = target_exit_status(result, error);
	live_server_finish(server, error < 0);
	if (record_view && error >= 0)
		view_recording(session_output(&options, result));
	continuous_free(continuous);
	session_result_done(result);
	free(result);
	return status;
}

static const char *const record_modes[] = {"auto", "bpf", "user", NULL};
static const char *const record_waits[] = {"sample", "exact", "off", NULL};

static const struct option record_options[] = {
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the capture here. %h is the host, %r the rank of a distributed job, "
			"%p sonde's process id, %t the time; the folder is then made. Default: " DEFAULT_OUTPUT
			", for one rank of several " OUTPUT_NAME_OF_RANKS
			"; the previous one is kept as FILE.old. A file that appears meanwhile is "
			"not replaced.",
		.value = &record_output},
	{.short_name = 'F',
		.long_name = "frequency",
		.type = OPTION_U64,
		.argument = "HZ",
		.help = "Samples per second and CPU. Default: 99; 999 in windows of steps and "
			"calls, which are short.",
		.value = &record_frequency_hz,
		.minimum = 1,
		.maximum = 20000},
	{.long_name = "wait",
		.type = OPTION_CHOICE,
		.argument = "HOW",
		.help = "Also record threads that wait. sample: sample each of them 10 times a "
			"second; exact: measure every wait, which costs more the more often "
			"threads wait; off. Default: sample with a command, otherwise off.",
		.value = (void *)&record_wait,
		.choices = record_waits},
	{.long_name = "wait-min",
		.type = OPTION_U64,
		.argument = "MICROSECONDS",
		.help = "With --wait exact: waits shorter than this are counted and added up, "
			"without their stacks. Default: 100.",
		.value = &record_wait_min_us,
		.minimum = 0,
		.maximum = 1000000},
	DEVICE_OPTIONS(record_device),
	{.long_name = "hooks",
		.type = OPTION_STRING,
		.argument = "LIST",
		.help = "Record what Python programs do in these packages, without changing them: "
			"torch, transformers, vllm, separated by commas; auto: those that they "
			"import; none. transformers:LEVEL also records what models do on which "
			"generate() is called: LEVEL is step, layer, component or stats; with "
			":every=N in one forward pass in N. torch:gradients also records the norm of "
			"gradients at each step of an optimizer, and how many are not finite. "
			"Default: auto.",
		.value = &record_hooks,
		.group = "Python"},
	{.long_name = "energy",
		.type = OPTION_STRING,
		.argument = "SOURCES",
		.help = "Sources of power and energy. auto: every available one; off; or some of "
			"perf, powercap, nvml, hwmon, battery, separated by commas, and "
			"replay:FILE, a recording of energy, as the last one. `sonde doctor` shows "
			"which are available. Default: auto.",
		.value = (void *)&record_energy,
		.group = "Energy"},
	{.long_name = "energy-model",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Estimate energy with a model that was calibrated for this machine: see "
			"docs/energy.md. Estimates have their own fields (est_energy_j), and are "
			"never added to measured energy.",
		.value = &record_energy_model,
		.group = "Energy"},
	{.long_name = "require-energy",
		.type = OPTION_STRING,
		.argument = "PARTS",
		.help = "Start only if the energy of these can be measured: cpu, gpu, dram, "
			"platform, separated by commas.",
		.value = &record_require_energy,
		.group = "Energy"},
	{.long_name = "energy-baseline",
		.type = OPTION_DOUBLE,
		.argument = "SECONDS",
		.help = "Measure the idle machine for this time before the command starts: the "
			"idle share of the energy is then reported separately.",
		.value = &record_energy_baseline_s,
		.minimum = 0,
		.maximum = 3600,
		.group = "Energy"},
	{.short_name = 'd',
		.long_name = "duration",
		.type = OPTION_DOUBLE,
		.argument = "SECONDS",
		.help = "Stop recording after this time. A command keeps running, and sonde waits "
			"for it.",
		.value = &record_duration_s,
		.minimum = 0,
		.maximum = 1e6},
	TARGET_OPTIONS(record_target),
	WINDOW_OPTIONS(record_windows),
	CONTINUOUS_OPTIONS(record_continuous),
	{.long_name = "mode",
		.type = OPTION_CHOICE,
		.argument = "MODE",
		.help = "Where stacks are unwound. bpf: in the kernel; user: in sonde, from "
			"copies, which needs no privileges; auto: bpf where it can run.",
		.value = &record_mode,
		.choices = record_modes},
	{.long_name = "split",
		.type = OPTION_FLAG,
		.help = "Write each window to its own capture, FILE.w1.pftrace and so on, instead "
			"of one capture of all of them.",
		.value = &record_split},
	{.long_name = "group",
		.type = OPTION_STRING,
		.argument = "GROUP",
		.help = "Let this group read the capture, by its name or number. Default: only you "
			"can read it.",
		.value = &record_group},
	{.long_name = "uncompressed",
		.type = OPTION_FLAG,
		.help = "Write the capture's packets uncompressed, for tools that cannot inflate "
			"them.",
		.value = &record_uncompressed},
	{.long_name = "stack-sample",
		.type = OPTION_FLAG,
		.help = "Write StackSample packets (Perfetto 58 and later) instead of PerfSample.",
		.value = &record_stack_sample},
	{.long_name = "device-slices",
		.type = OPTION_FLAG,
		.help = "Write device work and launches also as slices with arrows between them, "
			"for ui.perfetto.dev.",
		.value = &record_device_slices},
	{.long_name = "view",
		.type = OPTION_FLAG,
		.help = "Afterwards open the recording in the browser, as sonde view does.",
		.value = &record_view},
	LIVE_SERVER_OPTIONS(record_serve),
	{.long_name = "json",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the account at the end as one JSON object, too. - is standard "
			"output, which is the command's as well.",
		.value = &record_json},
	{.short_name = 'q',
		.long_name = "quiet",
		.type = OPTION_FLAG,
		.help = "Do not print the account at the end.",
		.value = &record_quiet},
	{0},
};

const struct command record_command = {
	.name = "record",
	.summary = "sample a command, a process or the whole machine into a capture",
	.usage = "[options] [-- COMMAND [ARGUMENT…]]",
	.description =
		"Samples every thread of a process and of its children, also after they execute "
		"other programs, with user and kernel stacks. Programs need no frame pointers and "
		"no change. Threads that wait are sampled, too (--wait). At the end it prints an "
		"account: samples, losses, and what recording cost. The capture is a Perfetto "
		"trace: `sonde report` reads it, and it opens in the Perfetto UI.\n\nThe exit "
		"status is the command's own. Ctrl-C still goes to the command; the capture is "
		"finished when the command ends. A second Ctrl-C finishes the capture at once. "
		"With -p and -a, Ctrl-C ends the recording and the processes keep running.",
	.examples =
		"sonde record -- python3 train.py\n    Record a training run.\n"
		"sonde record -F 999 -d 10 -p 4711\n    Ten seconds of a running process, in "
		"detail.\n"
		"sonde record --window steps:wait=2,warmup=1,active=5 -- python3 train.py\n    "
		"Five steps of a training run.\n"
		"srun sonde record -o run/%h-%r.pftrace -- python3 train.py\n    Each rank of a "
		"job; sonde report run is about all of them.\n"
		"sudo sonde record -a -d 5 -o machine.pftrace\n    Five seconds of everything.\n"
		"sudo sonde record -a --continuous --keep 20G -o /var/lib/sonde\n    Everything, "
		"always, a capture for each minute.\n"
		"sonde record --serve -- python3 serve.py\n    The page with live figures while "
		"it runs.",
	.options = record_options,
	.maximum_arguments = -1,
	.stops_at_first_argument = true,
	.run = run_record,
};
