/* SPDX-License-Identifier: Apache-2.0 */
/* Section: operators by what they cost, and how near they come to what the device can do. */
#include "analyses/roofline/roofline.h"

#include <math.h>

#include "model/format.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

#define SHAPE_COLUMNS 44

static const struct report_column peak_columns[] = {
	{.key = "dtype", .kind = REPORT_TEXT},
	{.key = "flop_per_s", .kind = REPORT_NUMBER},
};
static const struct report_shape peak_shape = REPORT_SHAPE(peak_columns);

static const struct report_column step_columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "number",
		.title = "Step",
		.kind = REPORT_INTEGER,
		.unknown = "all",
		.join = REPORT_JOIN_KEY,
		.help = "null: there are no steps, it is all of the rank"},
	{.key = "duration_ns", .title = "Time", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.key = "flop", .kind = REPORT_COUNT, .help = "of operators that began in it"},
	{.title = "TFLOP", .kind = REPORT_NUMBER, .join = REPORT_JOIN_MEAN, .digits = 3},
	{.key = "bytes", .title = "Bytes", .kind = REPORT_BYTES, .join = REPORT_JOIN_MEAN},
	{.key = "has_bounds",
		.kind = REPORT_FLAG,
		.help = "of some of its operators FLOP or bytes are bounds"},
	{.key = "mfu",
		.title = "MFU",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true,
		.help = "the time that its products of matrices, convolutions and attention take "
			"at the peak, by the step's"},
	REPORT_RANK_SPREAD(0),
	{.key = "mbu",
		.title = "MBU",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.help = "the time that its bytes take at the memory's bandwidth, by the step's"},
};
static const struct report_shape step_shape = REPORT_SHAPE(step_columns);

static const struct report_column operator_columns[] = {
	{.key = "saves_ns",
		.title = "Could save",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "if all of its calls were as fast as the roof allows"},
	{.key = "time_ns", .title = "Time", .kind = REPORT_NS},
	{.title = "", .kind = REPORT_SHARE},
	{.key = "roof_ns", .title = "At the roof", .kind = REPORT_NS, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "count", .title = "Calls", .kind = REPORT_COUNT},
	{.key = "flop", .kind = REPORT_COUNT, .help = "of all calls, as are the bytes"},
	{.title = "TFLOP", .kind = REPORT_NUMBER, .digits = 3},
	{.key = "bytes", .title = "Bytes", .kind = REPORT_BYTES},
	{.key = "family", .title = "Family", .kind = REPORT_TEXT},
	{.key = "name", .title = "Operator", .kind = REPORT_TEXT, .shrinks_to = 16},
};
static const struct report_shape operator_shape = REPORT_SHAPE(operator_columns);

static const struct report_column shape_columns[] = {
	{.key = "time_ns", .title = "Time", .kind = REPORT_NS, .help = "of all ranks"},
	{.key = "least_rank_ns", .kind = REPORT_NS, .help = "of the ranks that have it"},
	{.key = "most_rank_ns", .kind = REPORT_NS},
	{.key = "ranks", .kind = REPORT_COUNT},
	{.key = "count", .title = "Calls", .kind = REPORT_COUNT},
	{.key = "kernels", .kind = REPORT_COUNT, .help = "and copies and fills"},
	{.key = "flop", .kind = REPORT_COUNT, .help = "of one call; null: not known"},
	{.key = "bytes",
		.kind = REPORT_COUNT,
		.help = "that one call must move at least; null: not known"},
	{.key = "flop_is",
		.kind = REPORT_TEXT,
		.help = "exact, at_least, at_most: what the inputs do not say, such as the lengths "
			"of sequences in a paged cache, leaves bounds; rates and roofs are such, too"},
	{.key = "bytes_is", .kind = REPORT_TEXT, .help = "the same of the bytes"},
	{.key = "flop_per_s", .kind = REPORT_NUMBER},
	{.title = "TFLOP/s", .kind = REPORT_NUMBER, .digits = 3},
	{.key = "bytes_per_s", .kind = REPORT_NUMBER},
	{.title = "TB/s", .kind = REPORT_NUMBER, .digits = 3},
	{.key = "intensity",
		.title = "FLOP/B",
		.kind = REPORT_NUMBER,
		.digits = 3,
		.help = "operations for each byte"},
	{.key = "bound",
		.title = "Bound by",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "compute, memory or latency; null: peaks or costs are not known"},
	{.key = "roof_share",
		.title = "Of roof",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "the time at the roof by the time"},
	{.key = "is_above_roof",
		.kind = REPORT_FLAG,
		.help = "faster than the roof: its data were in a cache, or sizes or peaks are "
			"wrong"},
	{.title = "", .kind = REPORT_TEXT, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "saves_ns", .kind = REPORT_NS},
	{.key = "dtype",
		.kind = REPORT_TEXT,
		.help = "that it computes with: tf32 where a kernel's name says so"},
	{.key = "family", .kind = REPORT_TEXT},
	{.key = "name", .title = "Operator", .kind = REPORT_TEXT, .shrinks_to = 16},
	{.title = "Inputs",
		.kind = REPORT_TEXT,
		.is_dim = true,
		.shrinks_to = 12,
		.largest = SHAPE_COLUMNS},
	{.key = "dims", .kind = REPORT_TEXT, .help = "of its inputs: JSON, as in the trace"},
	{.key = "types", .kind = REPORT_TEXT},
};
static const struct report_shape shape_shape = REPORT_SHAPE(shape_columns);

static const struct report_column columns[] = {
	{.key = "device", .kind = REPORT_TEXT, .help = "null: not known, or there are several"},
	{.key = "peak_source", .kind = REPORT_TEXT, .help = "null: no peaks are known"},
	{.key = "peak_flop_per_s", .kind = REPORT_MAP, .shape = &peak_shape},
	{.key = "peak_bytes_per_s", .kind = REPORT_NUMBER},
	{.key = "of_threads",
		.kind = REPORT_FLAG,
		.help = "there is no device work: times are those of threads"},
	{.key = "work_ns",
		.kind = REPORT_NS,
		.help = "of all device work but communication, or of the operators of threads"},
	{.key = "in_operators_ns", .kind = REPORT_NS, .help = "of which operators have"},
	{.key = "known_ns", .kind = REPORT_NS, .help = "of operators whose costs are known"},
	{.key = "saves_ns", .kind = REPORT_NS, .help = "if all were as fast as the roof allows"},
	{.key = "shapes",
		.kind = REPORT_ROWS,
		.shape = &shape_shape,
		.total = "shapes_total",
		.help = "operators by the sizes and types of their inputs, most time first"},
	{.key = "operators",
		.kind = REPORT_ROWS,
		.shape = &operator_shape,
		.total = "operators_total",
		.help = "most to save first"},
	{.key = "steps",
		.kind = REPORT_ROWS,
		.shape = &step_shape,
		.total = "steps_total",
		.help = "by rank and time"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- figures ---- */

#define MOST_AMOUNT 1.8e19 /* that 64 bits hold */

/* Null where it is not known. */
static void add_amount(struct result *result, double amount)
{
	bool is_known = amount >= 0 && amount < MOST_AMOUNT;

	result_known(result, is_known, is_known ? (uint64_t)(amount + 0.5) : 0);
}

static void add_step(
	struct result *result, const struct trace_report *report, const struct roofline_step *step)
{
	result_u64(result, report->views[step->view].rank);
	result_known(result, step->number != ROOFLINE_NO_STEP, step->number);
	result_known(result, step->end_ns > step->start_ns,
		(uint64_t)step->end_ns - (uint64_t)step->start_ns);
	add_amount(result, step->flop);
	result_number(result, step->flop / 1e12);
	add_amount(result, step->bytes);
	result_flag(result, step->has_bounds);
	result_number(result, step->mfu);
	report_add_rank_spread(result);
	result_number(result, step->mbu);
}

static void add_operator(
	struct result *result, const struct roofline *roofline, const struct roofline_operator *op)
{
	add_amount(result, op->saves_ns);
	result_i64(result, op->time_ns);
	result_share(result, (double)op->time_ns, (double)roofline->work_ns);
	add_amount(result, op->roof_ns);
	result_u64(result, op->count);
	add_amount(result, op->flop);
	result_number(result, op->flop / 1e12);
	add_amount(result, op->bytes);
	result_text(result, op_family_name(op->family));
	result_text(result, intern_get(&roofline->strings, op->name));
}

/* "8944×1024 bf16, 1024×2816". */
static void add_inputs(
	struct result *result, const struct roofline *roofline, const struct roofline_row *row)
{
	const struct intern_entry *entries = roofline->strings.entries.items;
	const struct intern_entry *dims = &entries[row->dims], *types = &entries[row->types];
	const struct op_texts texts = {
		.dims = {.bytes = dims->bytes, .length = dims->length},
		.types = {.bytes = types->bytes, .length = types->length},
	};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct op_inputs inputs;

	if (op_inputs_read(&inputs, &texts))
		op_inputs_describe(&text, &inputs);
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, strbuf_cstr(&text));
}

/* Which of both are bounds, of those that are known; NULL: none is. */
static const char *bounds_text(const struct roofline_row *row)
{
	static const char *const texts[OP_BOUND_MAX][OP_BOUND_MAX] = {
		[OP_EXACT] = {NULL, "bytes at least", "bytes at most"},
		[OP_AT_LEAST] = {"FLOP at least", "at least", "FLOP at least, bytes at most"},
		[OP_AT_MOST] = {"FLOP at most", "FLOP at most, bytes at least", "at most"},
	};

	return texts[isnan(row->flop) ? OP_EXACT : row->flop_is]
		    [isnan(row->bytes) ? OP_EXACT : row->bytes_is];
}

static void add_shape(
	struct result *result, const struct roofline *roofline, const struct roofline_row *row)
{
	double calls_per_s =
		row->time_ns > 0 ? (double)row->count / (double)row->time_ns * 1e9 : (double)NAN;
	bool has_roof = !isnan(row->roof_ns) && row->time_ns > 0;

	result_i64(result, row->time_ns);
	result_i64(result, row->least_ns);
	result_i64(result, row->most_ns);
	result_u64(result, row->ranks);
	result_u64(result, row->count);
	result_u64(result, row->works);
	add_amount(result, row->flop);
	add_amount(result, row->bytes);
	result_text(result, isnan(row->flop) ? NULL : op_bound_name(row->flop_is));
	result_text(result, isnan(row->bytes) ? NULL : op_bound_name(row->bytes_is));
	result_number(result, row->flop * calls_per_s);
	result_number(result, row->flop * calls_per_s / 1e12);
	result_number(result, row->bytes * calls_per_s);
	result_number(result, row->bytes * calls_per_s / 1e12);
	result_number(result, row->bytes > 0 ? row->flop / row->bytes : (double)NAN);
	result_text(result, roofline_bound_name(row->bound));
	result_number(result, has_roof ? row->roof_ns / (double)row->time_ns : (double)NAN);
	result_flag(result, row->is_above);
	result_text(result, row->is_above ? "above" : bounds_text(row));
	add_amount(result, row->saves_ns);
	result_text(result, op_dtype_name(row->dtype));
	result_text(result, op_family_name(row->family));
	result_text(result, intern_get(&roofline->strings, row->name));
	add_inputs(result, roofline, row);
	result_text(result, intern_get(&roofline->strings, row->dims));
	result_text(result, intern_get(&roofline->strings, row->types));
}

static void add_peaks(struct result *result, const struct roofline *roofline)
{
	const struct peaks *peaks = &roofline->peaks;

	result_text(result, roofline->device);
	result_text(result, roofline->has_peaks ? peaks->source : NULL);
	result_open(result);
	for (int i = OP_DTYPE_UNKNOWN + 1; i < OP_DTYPE_MAX; i++) {
		if (peaks->flops[i] <= 0)
			continue;
		result_text(result, op_dtype_name((enum op_dtype)i));
		result_number(result, peaks->flops[i]);
	}
	result_close(result);
	result_number(result, peaks->bytes_per_s > 0 ? peaks->bytes_per_s : (double)NAN);
}

struct tables {
	uint32_t steps, operators, shapes;
};

static struct tables add_tables(
	struct result *result, const struct report_input *input, const struct roofline *roofline)
{
	struct tables tables;
	size_t wanted;

	tables.shapes = result_open(result);
	wanted = report_rows_filled(result, input, roofline->rows.count, 30);
	for (size_t i = 0; i < wanted; i++)
		add_shape(result, roofline, &roofline->rows.items[i]);
	result_close(result);
	tables.operators = result_open(result);
	wanted = report_rows_filled(result, input, roofline->operators.count, 20);
	for (size_t i = 0; i < wanted; i++)
		add_operator(result, roofline, &roofline->operators.items[i]);
	result_close(result);
	tables.steps = result_open(result);
	wanted = report_rows_filled(result, input, roofline->steps.count, 20);
	for (size_t i = 0; i < wanted; i++)
		add_step(result, input->trace, &roofline->steps.items[i]);
	result_close(result);
	return tables;
}

/* ---- sentences ---- */

#define HOW_TO_GIVE "--peak tflops=…,tbps=… gives them"

static void say_peaks(struct result *result, const struct roofline *roofline)
{
	const struct peaks *peaks = &roofline->peaks;

	if (roofline->has_peaks && peaks->device)
		result_sentencef(result, 2, "Peaks: %s (%s).", peaks->device, peaks->source);
	else if (roofline->has_peaks)
		result_sentencef(result, 2, "Peaks: those of --peak.");
	else if (roofline->is_cpu)
		result_sentence(result, 2,
			"There is no device work: times are those of threads. What the processor "
			"can do at most is not known: " HOW_TO_GIVE ".");
	else if (!roofline->device)
		result_sentence(result, 2,
			"The trace has devices of several kinds: " HOW_TO_GIVE ", or --rank "
			"chooses one.");
	else if (!*roofline->device)
		result_sentence(result, 2,
			"The trace does not name the device, so its peaks are not "
			"known: " HOW_TO_GIVE ".");
	else
		result_sentencef(result, 2,
			"The peaks of '%s' are not in the table: " HOW_TO_GIVE ".",
			roofline->device);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void say_coverage(struct result *result, const struct roofline *roofline)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	double work_ns = (double)roofline->work_ns;

	strbuf_add(&text, "Of ");
	format_duration(&text, (uint64_t)MAX(roofline->work_ns, (int64_t)0));
	strbuf_addf(&text,
		" of %s, %.1f %% belong to operators, %.1f %% to those whose cost is known.",
		roofline->is_cpu ? "operators" : "device work without communication",
		percent((double)roofline->in_operators_ns, work_ns),
		percent((double)roofline->known_ns, work_ns));
	result_say(result, 2, &text);
}

static void say_above(struct result *result, const struct roofline *roofline)
{
	uint64_t above = 0;

	array_foreach (&roofline->rows, row)
		above += row->is_above;
	if (above)
		result_sentencef(result, 2,
			"%llu of these are faster than the roof (marked above): their data were in "
			"a cache, or the sizes or peaks are wrong.",
			(unsigned long long)above);
}

static void say_bounds(struct result *result, const struct roofline *roofline)
{
	uint64_t bounds = 0;

	array_foreach (&roofline->rows, row)
		bounds += bounds_text(row) != NULL;
	if (bounds)
		result_sentencef(result, 2,
			"Of %llu of these the trace does not have all that costs depend on, such as "
			"lengths of sequences in a cache: FLOP or bytes, and what follows from "
			"them, are bounds (marked at least, at most).",
			(unsigned long long)bounds);
}

/* ---- advice ---- */

#define WORTH_A_SHARE 0.1 /* of the device's time */

static void add_advice(struct result *result, const struct roofline *roofline)
{
	const struct roofline_operator *first = roofline->operators.items;
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct result_advice known = {
		.id = "below_roof",
		.docs = "docs/roofline.md",
		.saves_ns = (uint64_t)(roofline->saves_ns + 0.5),
		.evidence = {{"work_ns", (double)roofline->work_ns},
			{"known_ns", (double)roofline->known_ns},
			{"first_time_ns", first ? (double)first->time_ns : 0},
			{"first_saves_ns", first ? first->saves_ns : 0}},
	};

	if (!first || isnan(first->saves_ns) || roofline->saves_ns <= 0 ||
		roofline->saves_ns < WORTH_A_SHARE * (double)roofline->work_ns)
		return;
	strbuf_addf(&text, "Operators are slower than the %s allows. Change %s first: it took ",
		roofline->is_cpu ? "processor" : "device",
		intern_get(&roofline->strings, first->name));
	format_duration(&text, (uint64_t)first->time_ns);
	strbuf_add(&text, ", and needs ");
	format_duration(&text, (uint64_t)((double)first->time_ns - first->saves_ns));
	strbuf_add(&text, " at the roof. All operators together could save up to ");
	format_duration(&text, (uint64_t)roofline->saves_ns);
	strbuf_addf(&text, ", %.1f %% of their time (--by roofline).",
		percent(roofline->saves_ns, (double)roofline->work_ns));
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result, &known, strbuf_cstr(&text));
}

/* ---- the section ---- */

static void show(struct result *result, const struct report_input *input,
	const struct roofline *roofline, const struct tables *tables)
{
	result_heading(result, "Operators and the roof of the device");
	say_peaks(result, roofline);
	say_coverage(result, roofline);
	result_show(result, report_join_ranks(result, input, tables->steps),
		&(struct result_show){.limit = report_rows_shown(input, 20, 4), .noun = "steps"});
	if (roofline->has_peaks)
		result_heading(result, "What to change first (time above the roof)");
	else
		result_heading(result, "Operators by time");
	result_show(result, tables->operators,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 5), .noun = "operators"});
	result_heading(result, "Operators by the sizes of their inputs");
	result_show(result, tables->shapes,
		&(struct result_show){.limit = report_rows_shown(input, 30, 8), .noun = "shapes"});
	say_above(result, roofline);
	say_bounds(result, roofline);
}

static int make(struct result *result, const struct report_input *input)
{
	_cleanup_roofline_ struct roofline roofline = {0};
	struct tables tables;
	int r;

	if (!trace_report_is_own(input->trace) && !input->is_alone)
		return 0;
	r = roofline_init(&roofline, input->trace->views, input->trace->count, input->view->peaks);
	if (r < 0)
		return r;
	if (!roofline.has_shapes)
		return report_nothing(result, input,
			"The trace has no sizes of operators' inputs: record it with "
			"torch.profiler.profile(record_shapes=True).");
	if (!roofline.rows.count)
		return report_nothing(
			result, input, "No operator of the trace launched device work.");
	result_open(result);
	add_peaks(result, &roofline);
	result_flag(result, roofline.is_cpu);
	result_i64(result, roofline.work_ns);
	result_i64(result, roofline.in_operators_ns);
	result_i64(result, roofline.known_ns);
	add_amount(result, roofline.has_peaks ? roofline.saves_ns : (double)NAN);
	tables = add_tables(result, input, &roofline);
	result_close(result);
	/* Without peaks the tables of operators say the rest. */
	if (!input->is_alone && !input->is_json && !roofline.has_peaks)
		return 0;
	show(result, input, &roofline, &tables);
	if (roofline.has_peaks)
		add_advice(result, &roofline);
	return 0;
}

const struct report_section roofline_section = {
	.value = {.key = "roofline",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "what operators cost in operations and bytes, and how near they come to "
			"the device's peaks"},
	.by = "roofline",
	.summary = "operators by operations and bytes, against the device's peaks",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra_of_recordings = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
