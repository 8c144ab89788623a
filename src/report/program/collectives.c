/* SPDX-License-Identifier: Apache-2.0 */
#include "report/program/collectives.h"

#include <inttypes.h>
#include <string.h>

#include "model/format.h"
#include "report/columns.h"

static const struct report_column rank_columns[] = {
	{.key = "rank", .title = "Rank", .kind = REPORT_INTEGER},
	{.key = "caused_ns",
		.title = "Others waited",
		.kind = REPORT_NS,
		.help = "for this rank, all of them added; what a rank that began last had itself "
			"waited for this one counts, too"},
	{.key = "alone_ns",
		.title = "For it alone",
		.kind = REPORT_NS,
		.help = "after all others had begun: what collectives would begin earlier if only "
			"this rank were as early as the one before it"},
	{.key = "last", .title = "Last in", .kind = REPORT_COUNT},
	{.key = "collectives", .title = "Of", .kind = REPORT_COUNT},
	{.key = "suffered_ns",
		.title = "Waited itself",
		.kind = REPORT_NS,
		.help = "for the rank that began last"},
	{.key = "transfer_ns",
		.title = "Transferred",
		.kind = REPORT_NS,
		.help = "the time of its collectives without waiting"},
	{.key = "clock_error_ns",
		.title = "Clock error",
		.kind = REPORT_NS,
		.is_change = true,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "against the first rank's clock, by the ends of collectives; null: no "
			"collective leads there"},
};
static const struct report_shape rank_shape = REPORT_SHAPE(rank_columns);

static const struct report_column kind_columns[] = {
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "mean_skew_ns",
		.title = "Begins apart",
		.kind = REPORT_NS,
		.help = "from the first rank's begin to the last one's, on average"},
	{.key = "mean_transfer_ns", .title = "Transfer", .kind = REPORT_NS},
	{.key = "last_rank",
		.title = "Most often last",
		.kind = REPORT_INTEGER,
		.help = "null: no rank noticeably"},
	{.key = "last_rank_last", .title = "In", .kind = REPORT_COUNT},
	{.key = "ranks", .title = "Ranks", .kind = REPORT_COUNT},
	{.key = "elements",
		.title = "Elements",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "of a rank's input; null: not known, or not the same in all"},
	{.key = "bytes",
		.title = "Size",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "of the larger buffer of a rank, as NCCL's tests count it; null: not known"},
	{.key = "algorithm_bandwidth",
		.title = "Algorithm GB/s",
		.kind = REPORT_NUMBER,
		.decimals = 2,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "size / transfer, in 10^9 bytes a second"},
	{.key = "bus_bandwidth",
		.title = "Bus GB/s",
		.kind = REPORT_NUMBER,
		.decimals = 2,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "times 2 (n - 1) / n of an all-reduce of n ranks, (n - 1) / n of all-gather, "
			"reduce-scatter and all-to-all: to compare with the hardware's"},
	{.key = "least_transfer_ns", .kind = REPORT_NS},
	{.key = "most_transfer_ns", .kind = REPORT_NS},
	{.key = "exposed_ns",
		.title = "Exposed",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "of a rank's part, waiting included, without a compute kernel of the rank "
			"beside it: the mean; null: a call of the host"},
	{.key = "exposed_share",
		.title = "of it",
		.kind = REPORT_SHARE,
		.decimals = 0,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "hidden_by",
		.kind = REPORT_TEXT,
		.help = "the compute kernel that ran longest beside collectives of this name"},
	{.key = "algorithm",
		.title = "Algorithm",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of NCCL, where its kernel's name has it: RING, TREE"},
	{.key = "protocol",
		.title = "Protocol",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "LL, LL128, SIMPLE"},
	{.key = "group",
		.title = "Group",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.shrinks_to = 8},
	{.key = "name", .title = "Name", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 12},
	{.key = "kernel",
		.title = "Kernel",
		.kind = REPORT_TEXT,
		.is_name = true,
		.hide = REPORT_HIDE_EMPTY,
		.shrinks_to = 12,
		.help = "null where the process group is known"},
};
static const struct report_shape kind_shape = REPORT_SHAPE(kind_columns);

static const struct report_column left_out_columns[] = {
	{.key = "parts", .title = "Parts", .kind = REPORT_COUNT},
	{.key = "time_ns",
		.title = "Time",
		.kind = REPORT_NS,
		.help = "of all ranks, what they waited for others included"},
	{.key = "mean_ns", .title = "Mean", .kind = REPORT_NS},
	{.key = "bytes",
		.title = "Size",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "of each, of the larger buffer; null: not known"},
	{.key = "group",
		.title = "Group",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.shrinks_to = 8},
	{.key = "name", .title = "Name", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 12},
};
static const struct report_shape left_out_shape = REPORT_SHAPE(left_out_columns);

static const struct report_column unsized_columns[] = {
	{.key = "parts", .title = "Parts", .kind = REPORT_COUNT},
	{.key = "reason", .title = "Reason", .kind = REPORT_TEXT, .help = "a sentence"},
};
static const struct report_shape unsized_shape = REPORT_SHAPE(unsized_columns);

static const struct report_column columns[] = {
	{.key = "matched",
		.kind = REPORT_COUNT,
		.help = "collectives of two ranks or more that all figures are of"},
	{.key = "by_sequence",
		.kind = REPORT_COUNT,
		.help = "of them by process group and sequence number, the others by order and "
			"size"},
	{.key = "absent",
		.kind = REPORT_COUNT,
		.help = "of them that have or may have ranks that are not here"},
	{.key = "unmatched", .kind = REPORT_COUNT, .help = "of one rank only; left out"},
	{.key = "apart",
		.kind = REPORT_COUNT,
		.help = "matches whose ends lie too far apart; left out"},
	{.key = "one_sided",
		.kind = REPORT_COUNT,
		.help = "broadcasts, sends and others that do not end together; left out"},
	{.key = "end_error_ns",
		.kind = REPORT_NS,
		.help = "how far the ends of a collective lie apart with clocks corrected: the "
			"median"},
	{.key = "waited_ns", .kind = REPORT_NS, .help = "of all ranks"},
	{.key = "transfer_ns", .kind = REPORT_NS, .help = "likewise"},
	{.key = "ranks",
		.kind = REPORT_ROWS,
		.shape = &rank_shape,
		.help = "those that others waited for most first"},
	{.key = "kinds",
		.kind = REPORT_ROWS,
		.shape = &kind_shape,
		.help = "by name, process group and size; most waiting first"},
	{.key = "left_out",
		.kind = REPORT_ROWS,
		.shape = &left_out_shape,
		.help = "the parts that one_sided counts, by name, process group and size; most "
			"time first"},
	{.key = "sizes_by_ranks_here",
		.kind = REPORT_COUNT,
		.help = "collectives whose size counts the ranks that are here: NCCL said one "
			"rank's share alone"},
	{.key = "without_size",
		.kind = REPORT_ROWS,
		.shape = &unsized_shape,
		.help = "parts of recordings in NCCL's collectives whose size is not known, by "
			"reason"},
};
const struct report_shape report_collectives_shape = REPORT_SHAPE(columns);

/* ---- values ---- */

static uint32_t add_ranks(struct result *result, const struct collectives *collectives)
{
	uint32_t table = result_open(result);

	array_foreach (&collectives->ranks, rank) {
		result_u64(result, rank->rank);
		result_u64(result, rank->caused_ns);
		result_u64(result, rank->alone_ns);
		result_u64(result, rank->last);
		result_u64(result, rank->collectives);
		result_u64(result, rank->suffered_ns);
		result_u64(result, rank->transfer_ns);
		if (rank->has_clock)
			result_i64(result, rank->clock_error_ns);
		else
			result_null(result);
	}
	result_close(result);
	return table;
}

static void add_speed(struct result *result, const struct collective_kind *kind)
{
	columns_add_number(result, kind->bytes);
	result_number(result, collective_algorithm_bandwidth(kind) / 1e9);
	result_number(result, collective_bus_bandwidth(kind) / 1e9);
	result_u64(result, kind->least_transfer_ns);
	result_u64(result, kind->most_transfer_ns);
	result_known(result, !kind->is_call, kind->exposed_ns / MAX(kind->parts, (uint64_t)1));
	if (kind->is_call)
		result_null(result);
	else
		result_share(result, (double)kind->exposed_ns, (double)kind->parts_ns);
	result_text(result, kind->hidden_by);
	result_text(result, kind->algorithm);
	result_text(result, kind->protocol);
}

static uint32_t add_kinds(struct result *result, const struct collectives *collectives)
{
	uint32_t table = result_open(result);

	array_foreach (&collectives->kinds, kind) {
		result_u64(result, kind->count);
		result_u64(result, kind->waited_ns / kind->count);
		result_u64(result, kind->transfer_ns / kind->count);
		result_known(result, kind->last_rank_last != 0, kind->last_rank);
		result_u64(result, kind->last_rank_last);
		result_u64(result, kind->ranks);
		columns_add_number(result, kind->elements);
		add_speed(result, kind);
		result_text(result, kind->group);
		result_text(result, kind->name);
		result_text(result, strcmp(kind->kernel, kind->name) == 0 ? "" : kind->kernel);
	}
	result_close(result);
	return table;
}

static uint32_t add_left_out_parts(struct result *result, const struct collectives *collectives)
{
	uint32_t table = result_open(result);

	array_foreach (&collectives->left_out, left_out) {
		result_u64(result, left_out->parts);
		result_u64(result, left_out->time_ns);
		result_u64(result, left_out->time_ns / left_out->parts);
		columns_add_number(result, left_out->bytes);
		result_text(result, left_out->group);
		result_text(result, left_out->name);
	}
	result_close(result);
	return table;
}

/* ---- sizes ---- */

static const char *unsized_reason(size_t reason)
{
	static const char *const reasons[MODEL_SIZE_MAX] = {
		[MODEL_SIZE_NO_RANGES] =
			"the process reported no calls of NCCL by NVTX: NCCL_NVTX_DISABLE is set, "
			"another tool has NVTX, or it is RCCL",
		[MODEL_SIZE_OUTSIDE] =
			"they were launched outside of NCCL's calls, as those of communicators "
			"that do not block are",
		[MODEL_SIZE_NO_LAUNCH] = "the call that launched or captured them was not recorded",
		[MODEL_SIZE_NO_PAYLOAD] =
			"NCCL's ranges do not say what they move: NCCL does from 2.16 on",
		[MODEL_SIZE_NO_RANKS] =
			"the call that made their communicator was not recorded: how many ranks it "
			"has is not known",
		[MODEL_SIZE_SEVERAL] =
			"several kernels ran the calls of one group (ncclGroupEnd): which ran which "
			"is not known",
	};

	return reasons[reason];
}

static void add_unsized(struct result *result, const struct collectives *collectives)
{
	result_open(result);
	for (size_t i = MODEL_SIZE_KNOWN + 1; i < MODEL_SIZE_MAX; i++) {
		if (!collectives->unsized[i])
			continue;
		result_u64(result, collectives->unsized[i]);
		result_text(result, unsized_reason(i));
	}
	result_close(result);
}

static void say_what_is_unsized(struct result *result, const struct collectives *collectives)
{
	for (size_t i = MODEL_SIZE_KNOWN + 1; i < MODEL_SIZE_MAX; i++) {
		if (collectives->unsized[i])
			result_sentencef(result, 2,
				"The size of %" PRIu64 " kernels of NCCL is not known: %s.",
				collectives->unsized[i], unsized_reason(i));
	}
	if (collectives->shared)
		result_sentencef(result, 2,
			"Of %" PRIu64 " collectives NCCL says one rank's share and not how many "
			"ranks there are: their size counts the ranks that are here.",
			collectives->shared);
}

/* ---- sentences ---- */

/* Of all time in collectives, below which ranks begin together. */
#define LEAST_WAITING 0.01

static void say_who(struct result *result, const struct collectives *collectives)
{
	const struct collective_rank *first = collectives->ranks.items;
	uint64_t waited_ns = collectives_waited_ns(collectives);
	uint64_t all_ns = waited_ns + collectives_transfer_ns(collectives);
	_cleanup_strbuf_ struct strbuf text = {0};

	if ((double)waited_ns < (double)all_ns * LEAST_WAITING || !first->last) {
		result_sentencef(result, 2,
			"The ranks begin their %" PRIu64
			" collectives together: %.1f %% of the time in them is waiting.",
			collectives->matched,
			all_ns ? 100.0 * (double)waited_ns / (double)all_ns : 0.0);
		return;
	}
	strbuf_addf(&text, "The others waited most for rank %u: ", first->rank);
	format_duration(&text, first->caused_ns);
	strbuf_add(&text, " of ");
	format_duration(&text, waited_ns);
	strbuf_addf(&text,
		" that all ranks waited, added. It was the last to begin %" PRIu64 " of %" PRIu64
		" collectives. Waiting is %.1f %% of the time in collectives, the transfer the "
		"rest.",
		first->last, first->collectives, 100.0 * (double)waited_ns / (double)all_ns);
	result_say(result, 2, &text);
}

/* One rank has to be most of it, and late more often than chance has it. */
#define MIN_STRAGGLER_SHARE 0.5
#define MIN_STRAGGLER_WAIT  0.2

static void advise(struct result *result, const struct collectives *collectives)
{
	const struct collective_rank *first = collectives->ranks.items;
	uint64_t waited_ns = collectives_waited_ns(collectives);
	uint64_t all_ns = waited_ns + collectives_transfer_ns(collectives);
	_cleanup_strbuf_ struct strbuf text = {0};

	if ((double)waited_ns < (double)all_ns * MIN_STRAGGLER_WAIT ||
		(double)first->caused_ns < (double)waited_ns * MIN_STRAGGLER_SHARE ||
		first->last < first->collectives / 2 || !first->alone_ns)
		return;
	strbuf_addf(&text,
		"Rank %u comes late to collectives, and the others wait for it: compare what it does "
		"between them with another rank (sonde report --rank %u), its share of the data, "
		"and its host and device (clocks, heat, other programs). Were it as early as the "
		"rank before it, collectives would begin ",
		first->rank, first->rank);
	format_duration(&text, first->alone_ns);
	strbuf_add(&text, " earlier, added.");
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result,
		&(struct result_advice){.id = "straggling_rank",
			.saves_ns = first->alone_ns,
			.docs = "docs/trace-report.md",
			.evidence = {{"rank", (double)first->rank},
				{"caused_ns", (double)first->caused_ns},
				{"waited_ns", (double)waited_ns},
				{"last_in", (double)first->last}}},
		strbuf_cstr(&text));
}

static void add_left_out(struct strbuf *text, uint64_t count, const char *what)
{
	if (count)
		strbuf_addf(
			text, "%s%" PRIu64 " %s", text->length ? "; " : "Left out: ", count, what);
}

static void say_what_is_left_out(struct result *result, const struct collectives *collectives)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	add_left_out(&text, collectives->one_sided,
		"broadcasts, sends and others that do not end together");
	add_left_out(&text, collectives->unmatched, "that only one rank has");
	add_left_out(&text, collectives->apart, "whose ends lie too far apart");
	if (text.length)
		strbuf_add(&text, ".");
	if (text.length)
		result_say(result, 2, &text);
	if (collectives->absent)
		result_sentencef(result, 2,
			"%" PRIu64
			" of them may have ranks that are not here: where such a rank began "
			"last, waiting for it counts as transfer.",
			collectives->absent);
}

static void say_how(struct result *result, const struct collectives *collectives)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int64_t least_ns = 0, most_ns = 0;

	array_foreach (&collectives->ranks, rank) {
		if (!rank->has_clock)
			continue;
		least_ns = MIN(least_ns, rank->clock_error_ns);
		most_ns = MAX(most_ns, rank->clock_error_ns);
	}
	strbuf_add(&text, "A collective ends on all ranks at the same time. By these ends the "
			  "ranks' clocks differ by up to ");
	format_duration(&text, (uint64_t)most_ns - (uint64_t)least_ns);
	strbuf_add(&text, "; corrected, the ends lie ");
	format_duration(&text, collectives->end_error_ns);
	strbuf_addf(&text,
		" apart (median). Matched by process group and sequence number: %" PRIu64
		", by order and size: %" PRIu64 ".",
		collectives->by_sequence, collectives->matched - collectives->by_sequence);
	result_say(result, 2, &text);
	say_what_is_left_out(result, collectives);
}

void report_add_collectives(struct result *result, const struct report_input *input,
	const struct collectives *collectives)
{
	uint32_t ranks, kinds, left_out;

	if (!collectives->matched) {
		result_null(result);
		return;
	}
	result_open(result);
	result_u64(result, collectives->matched);
	result_u64(result, collectives->by_sequence);
	result_u64(result, collectives->absent);
	result_u64(result, collectives->unmatched);
	result_u64(result, collectives->apart);
	result_u64(result, collectives->one_sided);
	result_u64(result, collectives->end_error_ns);
	result_u64(result, collectives_waited_ns(collectives));
	result_u64(result, collectives_transfer_ns(collectives));
	ranks = add_ranks(result, collectives);
	kinds = add_kinds(result, collectives);
	left_out = add_left_out_parts(result, collectives);
	result_u64(result, collectives->shared);
	add_unsized(result, collectives);
	result_close(result);
	result_heading(result, "Stragglers: whom the others waited for");
	say_who(result, collectives);
	advise(result, collectives);
	result_show(result, ranks,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "ranks"});
	say_how(result, collectives);
	result_heading(result, "Collectives: waiting and transfer");
	result_show(result, kinds,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 6), .noun = "kinds of collectives"});
	say_what_is_unsized(result, collectives);
	if (!collectives->left_out.count)
		return;
	result_heading(result, "Broadcasts, sends and others that do not end together");
	result_show(result, left_out,
		&(struct result_show){.limit = report_rows_shown(input, 20, 6), .noun = "kinds"});
}
