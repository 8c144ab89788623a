/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of the machine's rails, and of classes of device work, as the report shows it. */
#include <math.h>

#include "model/energy.h"
#include "model/format.h"
#include "report/view.h"

#define UNKNOWN "\xe2\x80\x94"

static void add_joules(struct table *table, double joules)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (isnan(joules))
		strbuf_add(&text, UNKNOWN);
	else
		format_energy(&text, joules);
	table_cell(table, strbuf_cstr(&text));
}

static void add_watts(struct table *table, double watts)
{
	if (isnan(watts))
		table_cell(table, UNKNOWN);
	else
		table_cellf(table,
			watts < 9.95   ? "%.2f W"
			: watts < 99.5 ? "%.1f W"
				       : "%.0f W",
			watts);
}

/* "perf, counter, 10.0 ms". */
static void add_source(struct table *table, const struct model_energy_domain *domain,
	const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s, %s", domain->source, model_energy_quality_name(domain->quality));
	if (use->period_ns) {
		strbuf_add(&text, ", ");
		format_duration(&text, use->period_ns);
	}
	table_cell(table, strbuf_cstr(&text));
}

static int add_domains(const struct report_view *view)
{
	static const struct table_column columns[] = {
		{.title = "Energy", .right = true},
		{.title = "\xc2\xb1", .right = true},
		{.title = "Average", .right = true},
		{.title = "Peak", .right = true},
		{.title = "Idle", .right = true},
		{.title = "Attributed", .right = true},
		{.title = "Gaps", .right = true},
		{.title = "Unattributed", .right = true},
		{.title = "Rail", .is_text = true, .shrinks_to = 10},
		{.title = "Source", .is_text = true, .dim = true, .shrinks_to = 24},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	for (uint32_t i = 0; i < view->energy->domains.count; i++) {
		const struct model_energy_domain *domain = &view->model->energy_domains.items[i];
		const struct energy_domain_use *use = &view->energy->domains.items[i];

		add_joules(&table, use->measured_j);
		add_joules(&table, use->uncertainty_j);
		add_watts(&table, use->average_w);
		add_watts(&table, use->peak_w);
		add_joules(&table, use->idle_j);
		add_joules(&table, use->attributed_j);
		add_joules(&table, use->gaps_j);
		add_joules(&table, use->unattributed_j);
		table_cell(&table, domain->name);
		add_source(&table, domain, use);
	}
	return table_print(&table, &view->terminal, view->out);
}

void report_add_cost(struct strbuf *out, const struct energy_rates *rates, double joules)
{
	double cost = energy_cost(rates, joules), co2_g = energy_co2_g(rates, joules);

	if (!isnan(cost))
		strbuf_addf(out, " It cost %.3g.", cost);
	if (!isnan(co2_g))
		strbuf_addf(out, " It stands for %.3g g of CO2.", co2_g);
}

static void add_sum(const struct report_view *view)
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
	report_add_cost(&text, &view->rates, use->measured_j);
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* What a figure is not: in the sum, or of this machine. */
static void add_cautions(const struct report_view *view, const struct model_energy_domain *domain,
	const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (use->why_not)
		strbuf_addf(&text, "%s is not in the sum: %s.", domain->name, use->why_not);
	if (domain->is_replayed)
		strbuf_addf(&text, "%s%s is replayed from a file: this machine did not measure it.",
			text.length ? " " : "", domain->name);
	if (text.length)
		report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_gaps(
	const struct report_view *view, const char *name, const struct energy_domain_use *use)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (unsigned gap = WIRE_ENERGY_NO_GAP + 1; gap < WIRE_ENERGY_GAP_MAX; gap++) {
		if (!use->gap_ns[gap])
			continue;
		if (text.length)
			strbuf_add(&text, ", ");
		else
			strbuf_addf(&text, "%s was not measured all the time: ", name);
		strbuf_addf(&text, "%s for ", model_energy_gap_name(gap));
		format_duration(&text, use->gap_ns[gap]);
	}
	if (text.length) {
		strbuf_add(&text, ".");
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
}

static void add_state(
	const struct report_view *view, const char *name, const struct energy_domain_use *use)
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
	if (text.length) {
		_cleanup_strbuf_ struct strbuf line = {0};

		strbuf_addf(&line, "%s was%s meanwhile.", name, strbuf_cstr(&text));
		report_paragraph(view, strbuf_cstr(&line), 2);
	}
}

static void add_notes(const struct report_view *view)
{
	bool no_idle = false, by_time = false;

	for (uint32_t i = 0; i < view->energy->domains.count; i++) {
		const struct model_energy_domain *domain = &view->model->energy_domains.items[i];
		const struct energy_domain_use *use = &view->energy->domains.items[i];

		add_cautions(view, domain, use);
		add_gaps(view, domain->name, use);
		add_state(view, domain->name, use);
		no_idle |= use->is_counted && isnan(domain->idle_w);
		by_time |= use->is_counted && use->method == ENERGY_METHOD_TIME_SHARE;
	}
	if (no_idle)
		report_paragraph(view,
			"The idle share is not known of every rail: there all energy is charged to "
			"what ran. --energy-baseline SECONDS measures it.",
			2);
	if (by_time)
		report_paragraph(view,
			"Kernels are charged by their time (time_share): the sensor cannot tell "
			"their powers apart. Those that use little of the device get too much, "
			"those that use all of it too little; docs/energy.md says how far.",
			2);
}

static int add_classes(const struct report_view *view, size_t limit)
{
	static const struct table_column columns[] = {
		{.title = "Energy", .right = true},
		{.title = "Power", .right = true},
		{.title = "\xc2\xb1", .right = true},
		{.title = "Time", .right = true},
		{.title = "Count", .right = true},
		{.title = "Method"},
		{.title = "Device work", .shrinks_to = 20},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t shown =
		limit ? MIN(limit, view->energy->classes.count) : view->energy->classes.count;

	for (size_t i = 0; i < shown; i++) {
		const struct energy_class *class = &view->energy->classes.items[i];

		add_joules(&table, class->energy_j);
		add_watts(&table, class->power_w);
		if (isnan(class->power_w))
			table_cell(&table, UNKNOWN);
		else
			table_cellf(&table, "%.1f %%", 100 * class->standard_error);
		table_duration(&table, class->time_ns);
		table_count(&table, class->count);
		table_cell(&table, energy_method_name((enum energy_method) class->method));
		table_cell(&table, class->name);
	}
	if (!shown)
		return 0;
	report_heading(view, "Energy of device work (without the idle share)");
	return table_print(&table, &view->terminal, view->out);
}

static void add_absences(const struct report_view *view)
{
	array_foreach (&view->model->energy_absences, absence) {
		_cleanup_strbuf_ struct strbuf text = {0};

		strbuf_addf(&text, "%s: " UNKNOWN " %s", absence->source, absence->reason);
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
}

int report_energy(const struct report_view *view, size_t limit)
{
	const struct energy_use *use = view->energy;
	int r = 0;

	if (!use || (!use->domains.count && !view->model->energy_absences.count) ||
		selection_left_out(view->model, SELECTION_ENERGY))
		return 0;
	report_heading(view, use->domains.count ? "Energy" : "Energy was not measured");
	if (use->domains.count) {
		r = add_domains(view);
		add_sum(view);
		add_notes(view);
	}
	add_absences(view);
	return r ?: add_classes(view, limit);
}
