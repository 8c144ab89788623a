/* SPDX-License-Identifier: Apache-2.0 */
/* Which options fit each other, and which fit a recording or another tool's trace. */
#include <errno.h>
#include <string.h>

#include "query/options.h"
#include "report/section.h"

#define BY_PATH     "critical-path"
#define BY_SEQUENCE "sequences"

/* The first option that was given and is of recordings alone; NULL: none. */
static const char *option_of_recordings(const struct query_options *options)
{
	const struct {
		const char *value, *name;
	} given[] = {{options->slo_text, "--slo"}, {options->load_results, "--load-results"},
		{options->price, "--price"}, {options->co2, "--co2"},
		{options->selection.window, "--window"}};

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		if (given[i].value)
			return given[i].name;
	}
	return NULL;
}

/* The first option that was given and is about samples; NULL: none. */
static const char *option_of_samples(const struct query_options *options)
{
	const struct shown_options *shown = &options->shown;
	const char *filter = selection_refused(&options->selection, SELECTION_FOREIGN_ROWS);

	if (filter)
		return filter;
	if (shown->stacks)
		return "--stacks";
	if (shown->fold_libraries || shown->interpreter)
		return shown->interpreter ? "--show-interpreter" : "--fold-libraries";
	if (options->sort[0] != 's' || shown_weight(shown) != MODEL_WEIGHT_CPU)
		return options->sort[0] != 's' ? "--sort" : "--weight";
	return NULL;
}

static int check_choice(const struct query_options *options, struct errmsg *err)
{
	const struct trace_choice *choice = &options->choice;

	if (options->keep_last_step && options->drop_last_step)
		return errmsg_set(err, -EINVAL,
			"--include-last-step and --drop-last-step are opposites: give one");
	if ((choice->annotation || choice->instance != UINT64_MAX) &&
		!(options->by && strcmp(options->by, BY_PATH) == 0))
		return errmsg_set(err, -EINVAL,
			"--annotation and --instance choose windows of the critical path: give "
			"--by " BY_PATH ", too");
	if (choice->op && !(options->by && strcmp(options->by, BY_SEQUENCE) == 0))
		return errmsg_set(err, -EINVAL,
			"--operator chooses sequences of kernels: give --by " BY_SEQUENCE ", too");
	return 0;
}

static int check_foreign(const struct query_options *options, const char *path, struct errmsg *err)
{
	const char *by = options->by;
	const struct report_section *wanted =
		by ? report_section_find(by, REPORT_OF_FOREIGN) : NULL;
	_cleanup_strbuf_ struct strbuf sections = {0};

	if (option_of_recordings(options))
		return errmsg_set(err, -EINVAL,
			"%s is for recordings, not for traces such as %s: leave it out",
			option_of_recordings(options), path);
	if (option_of_samples(options) && !(wanted && wanted->is_weighed))
		return errmsg_set(err, -EINVAL,
			"%s is for tables of samples, which of traces such as %s are made for --by "
			"function, line, module, class, stack, thread and process: give one, or "
			"leave it out",
			option_of_samples(options), path);
	if (!by || wanted)
		return 0;
	for (const struct report_section *const *section = report_sections; *section; section++) {
		if ((*section)->by && ((*section)->needs & REPORT_OF_FOREIGN))
			strbuf_addf(&sections, "%s%s", sections.length ? ", " : "", (*section)->by);
	}
	return errmsg_set(err, -EINVAL,
		"--by %s is for recordings, and %s is a trace, which has: %s", by, path,
		strbuf_cstr(&sections));
}

static int check_recording(const struct query_options *options, struct errmsg *err)
{
	const struct report_section *section =
		options->by ? report_section_find(options->by, REPORT_OF_RECORDING) : NULL;

	return section ? selection_check(&options->selection, section->shows, err) : 0;
}

int query_options_check(
	const struct query_options *options, const char *path, bool is_foreign, struct errmsg *err)
{
	int r = is_foreign ? check_foreign(options, path, err) : check_recording(options, err);

	return r == 0 ? check_choice(options, err) : r;
}
