/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/trace_kernel_ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* Names and kinds of all ranks → rows. */
static int find_row(struct trace_kernel_ranks *ranks, struct intern *names, const char *name,
	enum trace_kind kind, struct trace_kernel_ranks_row **ret_row)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t index = 0;
	int r;

	strbuf_add_char(&key, (char)('0' + kind));
	strbuf_add(&key, name);
	r = strbuf_status(&key);
	r = r ?: intern_add(names, key.data, key.length, &index);
	if (r > 0)
		r = array_append(&ranks->rows, (struct trace_kernel_ranks_row){
						       .name = name,
						       .kind = kind,
						       .least_ns = INT64_MAX,
						       .most_ns = INT64_MIN,
						       .least_total_ns = INT64_MAX,
						       .most_total_ns = INT64_MIN,
					       });
	if (r == 0)
		*ret_row = &ranks->rows.items[index];
	return r;
}

/* Two samples' means and deviations become one's (Chan, Golub, LeVeque 1979). */
static void join_samples(struct trace_kernel_ranks_row *row, const struct trace_kernel *kernel)
{
	double before = (double)row->count, added = (double)kernel->count, all = before + added;
	double apart = kernel->mean_ns - row->mean_ns;
	double squares = row->deviation_ns * row->deviation_ns * fmax(before - 1, 0) +
			 kernel->deviation_ns * kernel->deviation_ns * (added - 1) +
			 apart * apart * before * added / all;

	row->count += kernel->count;
	row->mean_ns += apart * added / all;
	row->deviation_ns = row->count > 1 ? sqrt(squares / (all - 1)) : 0;
}

static void add_kernel(
	struct trace_kernel_ranks_row *row, const struct trace_kernel *kernel, uint32_t rank)
{
	join_samples(row, kernel);
	if (!row->ranks++)
		row->evidence = kernel->evidence;
	row->total_ns += kernel->total_ns;
	row->least_ns = MIN(row->least_ns, kernel->least_ns);
	row->most_ns = MAX(row->most_ns, kernel->most_ns);
	if (kernel->total_ns < row->least_total_ns) {
		row->least_total_ns = kernel->total_ns;
		row->least_rank = rank;
	}
	if (kernel->total_ns > row->most_total_ns) {
		row->most_total_ns = kernel->total_ns;
		row->most_rank = rank;
	}
}

/* What is collected of all ranks. */
struct gathering {
	struct intern names;      /* and kinds → rows */
	struct medians durations; /* by row */
};

static int add_rank(struct trace_kernel_ranks *ranks, struct gathering *gathering,
	const struct trace_view *view, bool annotations)
{
	_cleanup_free_ uint32_t *rows = NULL; /* by number of the kernel */
	_cleanup_trace_kernels_ struct trace_kernels kernels = {0};
	int r = annotations ? trace_annotations_init(&kernels, view, true)
			    : trace_kernels_init(&kernels, view);

	rows = calloc(kernels.rows.count + 1, sizeof(*rows));
	if (r == 0 && !rows)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < kernels.rows.count; i++) {
		const struct trace_kernel *kernel = &kernels.rows.items[i];
		struct trace_kernel_ranks_row *row = NULL;

		r = find_row(ranks, &gathering->names, trace_text(view->trace, kernel->name),
			kernel->kind, &row);
		if (!row)
			break;
		add_kernel(row, kernel, view->rank);
		ranks->total_ns += kernel->total_ns;
		rows[kernel->number] = (uint32_t)(row - ranks->rows.items);
	}
	for (size_t i = 0; r == 0 && i < kernels.durations.values.count; i++) {
		const struct medians_value *value = &kernels.durations.values.items[i];

		r = medians_add(&gathering->durations, rows[value->row], value->value);
	}
	return r;
}

static int compare_rows(const void *left, const void *right)
{
	const struct trace_kernel_ranks_row *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

int trace_kernel_ranks_init(struct trace_kernel_ranks *ranks, const struct trace_view *views,
	size_t count, bool annotations)
{
	struct gathering gathering = {0};
	int r = 0;

	*ranks = (struct trace_kernel_ranks){0};
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_rank(ranks, &gathering, &views[i], annotations);
	medians_finish(&gathering.durations);
	for (uint32_t i = 0; r == 0 && i < ranks->rows.count; i++)
		ranks->rows.items[i].median_ns = medians_of(&gathering.durations, i);
	intern_done(&gathering.names);
	medians_done(&gathering.durations);
	if (r < 0) {
		trace_kernel_ranks_done(ranks);
		return r;
	}
	array_foreach (&ranks->rows, row) {
		if (row->ranks < count)
			row->least_total_ns = 0;
	}
	if (ranks->rows.count)
		qsort(ranks->rows.items, ranks->rows.count, sizeof(*ranks->rows.items),
			compare_rows);
	return 0;
}

void trace_kernel_ranks_done(struct trace_kernel_ranks *ranks)
{
	array_done(&ranks->rows);
}
