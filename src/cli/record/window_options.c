/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/window_options.h"

#include <errno.h>

#include "base/file.h"

/* The first of the options that need --window; NULL: none was given. */
static const char *without_window(const struct window_options *windows)
{
	if (windows->step_on)
		return "--step-on";
	if (windows->max_steps)
		return "--max-steps";
	return windows->max_duration_s > 0 ? "--max-duration" : NULL;
}

/* A process that is attached to may open the session itself, and then make steps. */
static int check_targets(const struct session_options *options, struct errmsg *err)
{
	const struct window_spec *spec = &options->window;

	if (!options->whole_machine || !(window_spec_is_scheduled(spec) || spec->max_steps))
		return 0;
	return errmsg_set(err, -EINVAL,
		"windows by steps need a command, or a process (-p), and not the whole machine; "
		"with -a give --window flag:PATH, time:START..END, signal:USR2 or manual");
}

int window_options_parse(
	const struct window_options *windows, struct session_options *options, struct errmsg *err)
{
	struct window_spec *spec = &options->window;
	const char *given = without_window(windows);
	int result;

	options->session_file = windows->session_file;
	if (!windows->window)
		return given ? errmsg_set(err, -EINVAL,
				       "%s needs windows; give --window, for example --window "
				       "steps:wait=1,warmup=1,active=3",
				       given)
			     : 0;
	result = window_spec_parse(spec, windows->window, err);
	if (result == 0 && windows->step_on)
		result = window_spec_check_pattern(windows->step_on, err);
	if (result < 0)
		return result;
	spec->step_on = windows->step_on;
	spec->max_steps = windows->max_steps;
	spec->max_duration_ns = (uint64_t)(windows->max_duration_s * NS_PER_S);
	return check_targets(options, err);
}
