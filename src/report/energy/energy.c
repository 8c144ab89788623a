/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of the machine's rails, and of classes of device work. */
#include <math.h>

#include "model/energy.h"
#include "model/format.h"
#include "report/energy/joules.h"
#include "report/sections.h"

#define UNKNOWN "\xe2\x80\x94"

#define JOULES(of, name)                                                                           \
	{                                                                                          \
		.key = (of), .title = (name), .kind = REPORT_JOULES, .unknown = UNKNOWN            \
	}
#define WATTS(of, name)                                                                            \
	{                                                                                          \
		.key = (of), .title = (name), .kind = REPORT_WATTS, .unknown = UNKNOWN             \
	}

static const struct report_column gap_columns[] = {
	{.key = "reason", .kind = REPORT_TEXT},
	{.key = "time_ns", .kind = REPORT_NS},
};
static const struct report_shape gap_shape = REPORT_SHAPE(gap_columns);

/* The terminal has the figures of an estimate in the columns of what was measured. */
static const struct report_column domain_columns[] = {
	JOULES(NULL, "Energy"),
	JOULES(NULL, "\xc2\xb1"),
	WATTS(NULL, "Average"),
	WATTS(NULL, "Peak"),
	JOULES("idle_j", "Idle"),
	JOULES("attributed_j", "Attributed"),
	JOULES("gaps_j", "Gaps"),
	JOULES("unattributed_j", "Unattributed"),
	JOULES("measured_j", NULL),
	JOULES("uncertainty_j", NULL),
	WATTS("average_w", NULL),
	WATTS("peak_w", NULL),
	JOULES("est_energy_j", NULL), /* of an estimate, in place of those above */
	JOULES("est_uncertainty_j", NULL),
	WATTS("est_average_w", NULL),
	WATTS("est_peak_w", NULL),
	{.key = "name", .title = "Rail", .kind = REPORT_TEXT, .shrinks_to = 10},
	{.key = "part", .kind = REPORT_TEXT, .help = "what it feeds"},
	{.key = "host", .kind = REPORT_TEXT},
	{.key = "device", .kind = REPORT_TEXT},
	{.key = "part_of", .kind = REPORT_TEXT, .help = "the rail that has its energy, too"},
	{.key = "source", .kind = REPORT_TEXT},
	{.key = "quality", .kind = REPORT_TEXT},
	{.title = "Source", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 24},
	{.key = "is_replayed", .kind = REPORT_FLAG, .help = "it comes from a file"},
	{.key = "is_counted", .kind = REPORT_FLAG, .help = "it is in the sums"},
	{.key = "why_not_counted", .kind = REPORT_TEXT},
	{.key = "method", .kind = REPORT_TEXT, .help = "how it was attributed"},
	{.key = "why_by_time",
		.kind = REPORT_TEXT,
		.help = "with method cpu_time: why not by counts of cycles and instructions"},
	{.key = "nj_per_cycle", .kind = REPORT_NUMBER, .help = "with method counters"},
	{.key = "nj_per_instruction", .kind = REPORT_NUMBER},
	{.key = "counters_relative_error",
		.kind = REPORT_NUMBER,
		.help = "the larger standard error of these two"},
	{.key = "conservation_error",
		.kind = REPORT_NUMBER,
		.help = "the largest relative difference of an interval from its parts"},
	{.key = "period_ns", .kind = REPORT_NS},
	{.key = "read_cost_ns", .kind = REPORT_NS},
	{.key = "relative_error", .kind = REPORT_NUMBER},
	{.key = "idle_w", .kind = REPORT_WATTS},
	{.key = "limit_w", .kind = REPORT_WATTS, .help = "what it is set to take at most"},
	{.key = "limit_share", .kind = REPORT_SHARE, .help = "average_w / limit_w"},
	{.key = "cpus", .kind = REPORT_TEXT, .help = "that it feeds; null: all, or not known"},
	{.key = "measured_ns", .kind = REPORT_NS},
	{.key = "intervals", .kind = REPORT_COUNT, .help = "readings"},
	{.key = "cut_intervals", .kind = REPORT_COUNT},
	{.key = "overlap_ns",
		.kind = REPORT_NS,
		.help = "time in which several pieces of device work shared it"},
	{.key = "not_measured", .kind = REPORT_ROWS, .shape = &gap_shape},
	{.key = "lowest_c", .kind = REPORT_NUMBER},
	{.key = "highest_c", .kind = REPORT_NUMBER},
	{.key = "lowest_mhz", .kind = REPORT_COUNT},
	{.key = "highest_mhz", .kind = REPORT_COUNT},
	{.key = "state",
		.kind = REPORT_OBJECT,
		.shape = &report_state_shape,
		.help = "the same with means, and why they are not known"},
};
static const struct report_shape domain_shape = REPORT_SHAPE(domain_columns);

static const struct report_column class_columns[] = {
	{.key = "energy_j",
		.title = "Energy",
		.kind = REPORT_JOULES,
		.unknown = UNKNOWN,
		.help = "without the idle share"},
	{.key = "uncertainty_j",
		.kind = REPORT_JOULES,
		.help = "of the sensor and of the power; null: split by time"},
	WATTS("power_w", "Power"),
	{.key = "relative_standard_error",
		.title = "\xc2\xb1",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.unknown = UNKNOWN},
	{.key = "time_ns", .title = "Time", .kind = REPORT_NS},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "method", .title = "Method", .kind = REPORT_TEXT},
	{.key = "domain", .kind = REPORT_TEXT},
	{.key = "threads_log2", .kind = REPORT_INTEGER},
	{.key = "merged_with",
		.kind = REPORT_COUNT,
		.help = "other classes that it cannot be separated from"},
	{.key = "name",
		.title = "Device work",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 20},
};
static const struct report_shape class_shape = REPORT_SHAPE(class_columns);

static const struct report_column absence_columns[] = {
	{.key = "source", .kind = REPORT_TEXT},
	{.key = "reason", .kind = REPORT_TEXT},
};
static const struct report_shape absence_shape = REPORT_SHAPE(absence_columns);

static const struct report_column counted_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape counted_shape = REPORT_SHAPE(counted_columns);

static const struct report_column columns[] = {
	JOULES("measured_j", NULL),
	JOULES("uncertainty_j", NULL),
	JOULES("idle_j", NULL),
	JOULES("attributed_j", NULL),
	JOULES("gaps_j", NULL),
	JOULES("unattributed_j", NULL),
	{.key = "cost", .kind = REPORT_NUMBER, .help = "null without --price"},
	{.key = "co2_g", .kind = REPORT_NUMBER, .help = "null without --co2"},
	{.key = "co2_car_miles",
		.kind = REPORT_NUMBER,
		.help = "that a car goes for as much CO2, at 400 g a mile; null without --co2"},
	{.key = "counted",
		.kind = REPORT_LIST,
		.shape = &counted_shape,
		.help = "the rails in the sums"},
	{.key = "domains", .kind = REPORT_ROWS, .shape = &domain_shape},
	{.key = "classes",
		.total = "classes_total",
		.kind = REPORT_ROWS,
		.shape = &class_shape,
		.help = "of device work, most energy first"},
	{.key = "absences", .kind = REPORT_ROWS, .shape = &absence_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- figures ---- */

static void add_numbers(struct result *result, const double *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		result_number(result, numbers[i]);
}

static void add_sums(struct result *result, const struct report_view *view)
{
	const struct energy_use *use = view->energy;
	double co2_g = energy_co2_g(&view->rates, use->measured_j);
	const double sums[] = {use->measured_j, use->uncertainty_j, use->idle_j, use->attributed_j,
		use->gaps_j, use->unattributed_j, energy_cost(&view->rates, use->measured_j), co2_g,
		energy_car_miles(co2_g)};

	add_numbers(result, sums, ARRAY_SIZE(sums));
	result_open(result);
	for (uint32_t i = 0; i < use->domains.count; i++) {
		if (use->domains.items[i].is_counted)
			result_text(result, view->model->energy_domains.items[i].name);
	}
	result_close(result);
}

/* What a model that somebody gave says has names of its own: it was not measured. */
static void add_figures(
	struct result *result, const struct energy_domain_use *use, bool is_estimate)
{
	const double figures[] = {use->measured_j, use->uncertainty_j, use->average_w, use->peak_w};
	const double parts[] = {use->idle_j, use->attributed_j, use->gaps_j, use->unattributed_j};

	add_numbers(result, figures, ARRAY_SIZE(figures));
	add_numbers(result, parts, ARRAY_SIZE(parts));
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		result_number(result, is_estimate ? NAN : figures[i]);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		result_number(result, is_estimate ? figures[i] : NAN);
}

/* "perf, counter, 10.0 ms". */
static void add_source(struct result *result, const struct model_energy_domain *domain,
	const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s, %s", domain->source, model_energy_quality_name(domain->quality));
	if (use->period_ns) {
		strbuf_add(&text, ", ");
		format_duration(&text, use->period_ns);
	}
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, domain->source);
	result_text(result, model_energy_quality_name(domain->quality));
	result_text(result, strbuf_cstr(&text));
}

static void add_gaps(struct result *result, const struct energy_domain_use *use)
{
	result_open(result);
	for (unsigned gap = WIRE_ENERGY_NO_GAP + 1; gap < WIRE_ENERGY_GAP_MAX; gap++) {
		if (!use->gap_ns[gap])
			continue;
		result_text(result, model_energy_gap_name(gap));
		result_u64(result, use->gap_ns[gap]);
	}
	result_close(result);
}

/* How a processor's energy was split between samples. */
static void add_fit(struct result *result, const struct energy_domain_use *use)
{
	bool is_counted = use->method == ENERGY_METHOD_COUNTERS;

	result_text(result, use->fit.why_not);
	result_number(result, is_counted ? use->fit.j_per_cycle * 1e9 : NAN);
	result_number(result, is_counted ? use->fit.j_per_instruction * 1e9 : NAN);
	result_number(result, is_counted ? use->fit.error : NAN);
}

static void add_domain(struct result *result, const struct model *model,
	const struct model_energy_domain *domain, const struct energy_domain_use *use)
{
	bool has_temperature = use->lowest_mc != INT32_MIN;
	bool has_parent = domain->parent != MODEL_NONE;

	add_figures(result, use, domain->quality == WIRE_ENERGY_ESTIMATED);
	result_text(result, domain->name);
	result_text(result, model_energy_part_name(domain->part));
	result_text(result, domain->host);
	result_text(result, domain->device);
	result_text(result, has_parent ? model->energy_domains.items[domain->parent].name : NULL);
	add_source(result, domain, use);
	result_flag(result, domain->is_replayed);
	result_flag(result, use->is_counted);
	result_text(result, use->why_not);
	result_text(result, energy_method_name((enum energy_method)use->method));
	add_fit(result, use);
	result_number(result, use->is_counted ? use->residual : NAN);
	result_known(result, use->period_ns != 0, use->period_ns);
	result_known(result, domain->cost_ns != 0, domain->cost_ns);
	result_number(result, domain->relative_error);
	result_number(result, domain->idle_w);
	result_number(result, domain->limit_w);
	result_share(result, use->average_w, domain->limit_w);
	result_text(result, domain->cpus);
	result_u64(result, use->measured_ns);
	result_u64(result, use->interval_count);
	result_u64(result, use->cut_count);
	result_u64(result, use->overlap_ns);
	add_gaps(result, use);
	result_number(result, has_temperature ? use->lowest_mc / 1000.0 : NAN);
	result_number(result, has_temperature ? use->highest_mc / 1000.0 : NAN);
	result_known(result, use->lowest_mhz != 0, use->lowest_mhz);
	result_known(result, use->highest_mhz != 0, use->highest_mhz);
	report_add_state(result, &use->state);
}

static void add_class(
	struct result *result, const struct model *model, const struct energy_class *class)
{
	result_number(result, class->energy_j);
	result_number(result, class->uncertainty_j);
	result_number(result, class->power_w);
	result_number(result, class->standard_error);
	result_u64(result, class->time_ns);
	result_u64(result, class->count);
	result_text(result, energy_method_name((enum energy_method) class->method));
	result_text(result, model->energy_domains.items[class->domain].name);
	result_u64(result, class->size);
	result_u64(result, class->merged);
	result_text(result, class->name);
}

/* ---- sentences ---- */

void report_describe_cost(struct strbuf *out, const struct energy_rates *rates, double joules)
{
	double cost = energy_cost(rates, joules), co2_g = energy_co2_g(rates, joules);

	if (!isnan(cost))
		strbuf_addf(out, " It cost %.3g.", cost);
	if (!isnan(co2_g))
		strbuf_addf(out, " It stands for %.3g g of CO2.", co2_g);
}

static void say_sum(struct result *result, const struct report_view *view)
{
	const struct energy_use *use = view->energy;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (isnan(use->measured_j))
		return;
	strbuf_add(&text, "Together: ");
	format_energy(&text, use->measured_j);
	if (!isnan(use->uncertainty_j)) {
		strbuf_add(&text, " \xc2\xb1 ");
		format_energy(&text, use->uncertainty_j);
	}
	strbuf_add(&text, " (");
	energy_use_name_sum(use, view->model, &text);
	strbuf_add(&text, "). This is the energy of these parts, not what the machine takes from "
			  "the wall.");
	report_describe_cost(&text, &view->rates, use->measured_j);
	result_say(result, 2, &text);
}

/* What a figure is not: in the sum, or of this machine. */
static void say_cautions(struct result *result, const struct model_energy_domain *domain,
	const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (use->why_not)
		strbuf_addf(&text, "%s is not in the sum: %s.", domain->name, use->why_not);
	if (domain->is_replayed)
		strbuf_addf(&text, "%s%s is replayed from a file: this machine did not measure it.",
			text.length ? " " : "", domain->name);
	if (text.length)
		result_say(result, 2, &text);
}

static void say_gaps(struct result *result, const char *name, const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (unsigned gap = WIRE_ENERGY_NO_GAP + 1; gap < WIRE_ENERGY_GAP_MAX; gap++) {
		if (!use->gap_ns[gap])
			continue;
		if (text.length)
			strbuf_add(&text, ", ");
		else
			strbuf_addf(&text, "%s was not measured for part of the time: ", name);
		strbuf_addf(&text, "%s for ", model_energy_gap_name(gap));
		format_duration(&text, use->gap_ns[gap]);
	}
	if (text.length) {
		strbuf_add(&text, ".");
		result_say(result, 2, &text);
	}
}

static void say_state(struct result *result, const char *name, const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (use->lowest_mc != INT32_MIN)
		strbuf_addf(&text,
			" at %.0f to %.0f \xc2\xb0"
			"C",
			use->lowest_mc / 1000.0, use->highest_mc / 1000.0);
	if (use->lowest_mhz)
		strbuf_addf(&text, "%s%u to %u MHz", text.length ? ", " : " at ", use->lowest_mhz,
			use->highest_mhz);
	strbuf_inherit_status(&result->texts, &text);
	if (text.length)
		result_sentencef(result, 2, "%s was%s meanwhile.", name, strbuf_cstr(&text));
}

/* How near it comes to what it may take. */
static void say_limit(struct result *result, const struct model_energy_domain *domain,
	const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!(domain->limit_w > 0) || !use->measured_ns)
		return;
	strbuf_addf(&text, "%s took %.0f %% of its power limit of %.4g W on average", domain->name,
		100 * use->average_w / domain->limit_w, domain->limit_w);
	if (!isnan(use->peak_w))
		strbuf_addf(&text, ", %.0f %% at its peak", 100 * use->peak_w / domain->limit_w);
	strbuf_add(&text, ".");
	result_say(result, 2, &text);
}

/* How the rail was split, where counts say more than time. */
static void say_fit(struct result *result, const char *name, const struct energy_domain_use *use)
{
	if (use->method == ENERGY_METHOD_COUNTERS)
		result_sentencef(result, 2,
			"%s is split by counters: %.3g nJ a cycle and %.3g nJ an instruction "
			"(standard error %.0f %%) explain its readings better than time does.",
			name, use->fit.j_per_cycle * 1e9, use->fit.j_per_instruction * 1e9,
			100 * use->fit.error);
}

/* Memory, and rails whose users are not known. */
static void say_uncharged(struct result *result, const struct report_view *view)
{
	_cleanup_strbuf_ struct strbuf names = {0};
	unsigned count = 0;

	for (uint32_t i = 0; i < view->energy->domains.count; i++) {
		const struct energy_domain_use *use = &view->energy->domains.items[i];

		if (use->is_counted && use->method == ENERGY_METHOD_NONE)
			strbuf_addf(&names, "%s%s", count++ ? ", " : "",
				view->model->energy_domains.items[i].name);
	}
	strbuf_inherit_status(&result->texts, &names);
	if (count)
		result_sentencef(result, 2,
			"In the sum, but charged to nobody: %s. Nothing tells how much of it each "
			"program used.",
			strbuf_cstr(&names));
}

static void say_notes(struct result *result, const struct report_view *view)
{
	bool no_idle = false, by_time = false;

	for (uint32_t i = 0; i < view->energy->domains.count; i++) {
		const struct model_energy_domain *domain = &view->model->energy_domains.items[i];
		const struct energy_domain_use *use = &view->energy->domains.items[i];

		say_cautions(result, domain, use);
		say_gaps(result, domain->name, use);
		say_state(result, domain->name, use);
		say_limit(result, domain, use);
		say_fit(result, domain->name, use);
		no_idle |= use->is_counted && isnan(domain->idle_w);
		by_time |= use->is_counted && use->method == ENERGY_METHOD_TIME_SHARE;
	}
	say_uncharged(result, view);
	if (no_idle)
		result_advise(result,
			&(struct result_advice){
				.id = "idle_power_unknown", .saves_ns = REPORT_SAVES_UNKNOWN},
			"The idle power of some rails is not known: all of their energy is charged "
			"to what ran. sonde record --energy-baseline SECONDS measures it.");
	if (by_time)
		result_sentence(result, 2,
			"Kernels are charged by their time (time_share): the sensor cannot "
			"separate their powers. Kernels that use little of the device get too "
			"much, kernels that use all of it too little; docs/energy.md says how "
			"much.");
}

/* Which sources are not there. All of them only where energy was asked for: most machines lack
 * most. */
static void say_absences(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;

	if (input->is_alone) {
		array_foreach (&view->model->energy_absences, absence)
			result_sentencef(
				result, 2, "%s: " UNKNOWN " %s", absence->source, absence->reason);
		return;
	}
	if (!view->energy->domains.count)
		result_sentence(result, 2,
			"sonde could read no sensor of power. --by energy lists the sources that it "
			"tried, and why each failed.");
}

/* ---- the section ---- */

static void show(
	struct result *result, const struct report_input *input, uint32_t domains, uint32_t classes)
{
	const struct report_view *view = input->view;
	bool has_any = view->energy->domains.count;

	result_heading(result, has_any ? "Energy" : "Energy was not measured");
	if (has_any) {
		result_show(result, domains, &(struct result_show){0});
		say_sum(result, view);
		say_notes(result, view);
	}
	say_absences(result, input);
	if (!view->energy->classes.count)
		return;
	result_heading(result, "Energy of device work (without the idle share)");
	result_show(result, classes,
		&(struct result_show){.limit = report_rows_shown(input, 20, 8), .noun = "classes"});
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct model *model = view->model;
	const struct energy_use *use = view->energy;
	uint32_t domains, classes;
	size_t count;

	if (!use || (!use->domains.count && !model->energy_absences.count))
		return report_nothing(
			result, input, "Energy was not recorded: record without --energy off.");
	if (selection_left_out(model, SELECTION_ENERGY))
		return report_nothing(
			result, input, "The filters leave out the energy of the whole machine.");
	result_open(result);
	add_sums(result, view);
	domains = result_open(result);
	for (uint32_t i = 0; i < use->domains.count; i++)
		add_domain(result, model, &model->energy_domains.items[i], &use->domains.items[i]);
	result_close(result);
	classes = result_open(result);
	count = report_rows_wanted(result, input, use->classes.count);
	for (size_t i = 0; i < count; i++)
		add_class(result, model, &use->classes.items[i]);
	result_close(result);
	result_open(result);
	array_foreach (&model->energy_absences, absence) {
		result_text(result, absence->source);
		result_text(result, absence->reason);
	}
	result_close(result);
	result_close(result);
	show(result, input, domains, classes);
	return 0;
}

const struct report_section energy_section = {
	.value = {.key = "energy", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "energy",
	.summary = "joules of each power rail, and the sensors that are not there",
	.needs = REPORT_NEEDS_RECORDING,
	.make = make,
};
