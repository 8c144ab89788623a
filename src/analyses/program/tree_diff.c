/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/tree_diff.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_NODE   MODEL_NONE
#define PATH_DEEP 256 /* rows further in count as the row there: paths are texts */

/* A place in the tree of both runs. */
struct node {
	uint32_t parent, name; /* a text */
	uint32_t depth;
	bool is_operator;
	double count[2], device_ns[2], host_ns[2];
	struct {
		uint32_t text; /* 0: none */
		double device_ns;
	} shape[2];
};

struct node_key {
	uint32_t parent, name;
	uint32_t kind;
};

struct shape_key {
	uint32_t node, text, side;
};

struct kernel_key {
	uint32_t node, name;
};

struct kernel {
	uint32_t node, name;
	double count[2], device_ns[2];
};

struct building {
	struct tree_diff *diff;
	struct intern node_keys, shape_keys, kernel_keys;
	ARRAY_OF(struct node) nodes;
	ARRAY_OF(double) shapes; /* time of each */
	ARRAY_OF(struct kernel) kernels;
	uint32_t *row_of_node;
};

static void building_done(struct building *building)
{
	intern_done(&building->node_keys);
	intern_done(&building->shape_keys);
	intern_done(&building->kernel_keys);
	array_done(&building->nodes);
	array_done(&building->shapes);
	array_done(&building->kernels);
	free(building->row_of_node);
}

static int keep(struct building *building, const char *text, size_t length, uint32_t *ret_text)
{
	int r = intern_add(&building->diff->texts, text, length, ret_text);

	return MIN(r, 0);
}

/* ---- the tree ---- */

/* "train.py: step" of "train.py(12): step": the line may have moved. */
static int keep_python(struct building *building, const char *name, uint32_t *ret_text)
{
	const char *end = strstr(name, "): "), *digits = end;
	_cleanup_strbuf_ struct strbuf text = {0};

	while (digits && digits > name && strchr("0123456789", digits[-1]))
		digits--;
	if (!end || digits == end || digits == name || digits[-1] != '(')
		return keep(building, name, strcspn(name, "\n"), ret_text);
	strbuf_add_bytes(&text, name, (size_t)(digits - 1 - name));
	strbuf_add(&text, end + 1);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	return keep(building, text.data, text.length, ret_text);
}

static int find_node(struct building *building, uint32_t parent, uint32_t name, uint32_t kind,
	uint32_t *ret_node)
{
	const struct node_key key = {parent, name, kind};
	struct node node = {.parent = parent, .name = name, .is_operator = kind == TRACE_CPU_OP};
	int r;

	if (parent != NO_NODE) {
		assert(building->nodes.items);
		node.depth = building->nodes.items[parent].depth + 1;
		if (node.depth > PATH_DEEP) {
			*ret_node = parent;
			return 0;
		}
	}
	r = intern_add(&building->node_keys, &key, sizeof(key), ret_node);
	return r <= 0 ? r : array_append(&building->nodes, node);
}

/* Steps are what figures are of, and calls of the runtime are the same for all. */
static bool is_node(const struct trace *trace, const struct trace_event *event)
{
	uint64_t number;

	if (event->duration_ns == TRACE_NO_DURATION)
		return false;
	if (event->category == TRACE_USER_ANNOTATION)
		return !trace_step_number(trace_text(trace, event->name), &number);
	return event->category == TRACE_CPU_OP || event->category == TRACE_PYTHON_FUNCTION;
}

struct side {
	struct building *building;
	const struct trace_view *view;
	const uint32_t *parents;
	uint32_t *nodes; /* by row; NO_NODE: in none */
	int number;      /* 0 before, 1 after */
};

static int name_row(struct side *side, const struct trace_event *event, uint32_t *ret_name)
{
	const char *name = trace_text(side->view->trace, event->name);

	if (event->category == TRACE_PYTHON_FUNCTION)
		return keep_python(side->building, name, ret_name);
	return keep(side->building, name, strlen(name), ret_name);
}

static double duration_of(const struct trace_event *event)
{
	return (double)trace_end_ns(event) - (double)event->start_ns;
}

static int add_row(struct side *side, uint32_t row)
{
	const struct trace_event *event = &side->view->trace->events.items[row];
	uint32_t parent = side->parents[row], outer, name;
	struct node *nodes;
	int r;

	outer = parent == MODEL_NONE ? NO_NODE : side->nodes[parent];
	side->nodes[row] = outer;
	if (!is_node(side->view->trace, event) ||
		(!trace_view_has(side->view, event) && !event->is_capture))
		return 0;
	r = name_row(side, event, &name);
	if (r == 0)
		r = find_node(side->building, outer, name, event->category, &side->nodes[row]);
	if (r < 0)
		return r;
	nodes = side->building->nodes.items;
	assert(nodes);
	if (event->is_capture)
		return 0;
	nodes[side->nodes[row]].count[side->number]++;
	nodes[side->nodes[row]].host_ns[side->number] += duration_of(event);
	if (outer != NO_NODE)
		nodes[outer].host_ns[side->number] -= duration_of(event);
	return 0;
}

/* ---- device work ---- */

/* The input dimensions of the operator that a launch is in. */
static uint32_t find_shape(const struct side *side, uint32_t row)
{
	const struct trace *trace = side->view->trace;

	for (; row != MODEL_NONE; row = side->parents[row]) {
		const struct trace_event *event = &trace->events.items[row];
		const struct trace_op *op = trace_op(trace, event);

		if (event->category == TRACE_CPU_OP)
			return op ? op->input_dims : 0;
	}
	return 0;
}

static int add_shape(struct side *side, uint32_t node, uint32_t launch, double device_ns)
{
	struct building *building = side->building;
	struct shape_key key = {.node = node, .side = (uint32_t)side->number};
	uint32_t shape = find_shape(side, launch), index;
	const char *text = trace_text(side->view->trace, shape);
	struct node *of = &building->nodes.items[node];
	double *sum;
	int r;

	if (!shape)
		return 0;
	r = keep(building, text, strlen(text), &key.text);
	if (r == 0)
		r = intern_add(&building->shape_keys, &key, sizeof(key), &index);
	if (r > 0)
		r = array_append(&building->shapes, 0);
	if (r < 0)
		return r;
	sum = &building->shapes.items[index];
	*sum += device_ns;
	if (*sum > of->shape[side->number].device_ns) {
		of->shape[side->number].device_ns = *sum;
		of->shape[side->number].text = key.text + 1;
	}
	return 0;
}

static int add_kernel(struct side *side, uint32_t node, const char *name, double device_ns)
{
	struct building *building = side->building;
	struct kernel_key key = {.node = node};
	uint32_t index;
	int r = keep(building, name, strlen(name), &key.name);

	if (r == 0)
		r = intern_add(&building->kernel_keys, &key, sizeof(key), &index);
	if (r > 0)
		r = array_append(
			&building->kernels, (struct kernel){.node = node, .name = key.name});
	if (r < 0)
		return r;
	building->kernels.items[index].count[side->number]++;
	building->kernels.items[index].device_ns[side->number] += device_ns;
	return 0;
}

static int add_work(struct side *side, const struct trace_view_work *work)
{
	const struct trace *trace = side->view->trace;
	double device_ns = (double)trace_view_work_ns(work);
	uint32_t node = work->origin == MODEL_NONE ? NO_NODE : side->nodes[work->origin], name;
	int r = 0;

	if (node == NO_NODE) {
		r = keep(side->building, "", 0, &name);
		if (r == 0)
			r = find_node(side->building, NO_NODE, name, TRACE_OTHER, &node);
	}
	if (r < 0)
		return r;
	assert(side->building->nodes.items);
	side->building->nodes.items[node].device_ns[side->number] += device_ns;
	r = add_shape(side, node, work->origin, device_ns);
	if (r < 0)
		return r;
	return add_kernel(
		side, node, trace_text(trace, trace->events.items[work->row].name), device_ns);
}

/* While any work of the view runs; works are by start. */
static double busy_of(const struct trace_view *view)
{
	int64_t until_ns = INT64_MIN;
	double busy_ns = 0;

	array_foreach (&view->works, work) {
		int64_t start_ns = MAX(work->start_ns, until_ns);

		if (work->is_wait || work->end_ns <= start_ns)
			continue;
		busy_ns += (double)work->end_ns - (double)start_ns;
		until_ns = work->end_ns;
	}
	return busy_ns;
}

static void add_steps(struct tree_diff_side *sum, const struct trace_view *view)
{
	uint64_t number;

	array_foreach (&view->trace->events, event) {
		if (event->category != TRACE_USER_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event) ||
			!trace_step_number(trace_text(view->trace, event->name), &number))
			continue;
		sum->steps++;
		sum->step_ns += duration_of(event);
	}
}

static int add_view(struct building *building, int number, const struct trace_view *view)
{
	const struct trace *trace = view->trace;
	const uint32_t *parents = trace_parents(trace, true);
	_cleanup_free_ uint32_t *nodes = malloc((trace->events.count + 1) * sizeof(*nodes));
	struct side side = {building, view, parents, nodes, number};
	struct tree_diff_side *sum = &building->diff->sides[number];
	int r = parents && nodes ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < trace->rows.count; i++)
		r = add_row(&side, trace->rows.items[i]);
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];

		if (work->is_wait)
			continue;
		sum->works++;
		sum->device_ns += (double)trace_view_work_ns(work);
		r = add_work(&side, work);
	}
	sum->ranks++;
	sum->busy_ns += busy_of(view);
	add_steps(sum, view);
	return r;
}

/* ---- what moved ---- */

static bool is_only_of(const struct node *node, int side)
{
	return node->count[side] > 0 && node->count[!side] <= 0;
}

/*
 * Of operators of one name, in the order in which they came: the next one that only the second run
 * has takes the figures of one that only the first has.
 */
static int join_moved(struct building *building, bool *moved)
{
	struct map_u64 next = {0}; /* name → the node after the last one that was looked at */
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < building->nodes.count; i++) {
		struct node *from = &building->nodes.items[i];
		uint64_t at = 0;

		if (!from->is_operator || !is_only_of(from, 0))
			continue;
		map_u64_get(&next, from->name, &at);
		while (at < building->nodes.count) {
			struct node *to = &building->nodes.items[at++];

			if (to->name != from->name || !to->is_operator || !is_only_of(to, 1))
				continue;
			to->count[0] = from->count[0];
			to->device_ns[0] = from->device_ns[0];
			to->host_ns[0] = from->host_ns[0];
			to->shape[0] = from->shape[0];
			from->count[0] = from->device_ns[0] = from->host_ns[0] = 0;
			moved[at - 1] = true;
			building->row_of_node[i] = (uint32_t)at - 1;
			break;
		}
		r = map_u64_set(&next, from->name, at);
	}
	map_u64_done(&next);
	return r;
}

/* Kernels of nodes that moved are those of the node that they moved to. */
static int move_kernels(struct building *building)
{
	size_t count = building->kernels.count;

	for (size_t i = 0; i < count; i++) {
		struct kernel from = building->kernels.items[i];
		struct kernel_key key = {
			.node = building->row_of_node[from.node], .name = from.name};
		struct kernel *to;
		uint32_t index;
		int r;

		if (key.node == NO_NODE)
			continue;
		r = intern_add(&building->kernel_keys, &key, sizeof(key), &index);
		if (r > 0)
			r = array_append(&building->kernels,
				(struct kernel){.node = key.node, .name = key.name});
		if (r < 0)
			return r;
		to = &building->kernels.items[index];
		to->count[0] += from.count[0];
		to->device_ns[0] += from.device_ns[0];
		building->kernels.items[i].count[0] = building->kernels.items[i].device_ns[0] = 0;
	}
	return 0;
}

/* ---- rows ---- */

static const char *text_of(const struct building *building, uint32_t text)
{
	return intern_get(&building->diff->texts, text);
}

static int make_path(struct building *building, uint32_t node, const char **ret_path)
{
	uint32_t chain[PATH_DEEP + 1], depth = 0, text = 0;
	_cleanup_strbuf_ struct strbuf path = {0};
	int r;

	for (node = building->nodes.items[node].parent; node != NO_NODE;
		node = building->nodes.items[node].parent)
		chain[depth++] = node;
	while (depth--)
		strbuf_addf(&path, "%s%s",
			text_of(building, building->nodes.items[chain[depth]].name),
			depth ? " / " : "");
	r = strbuf_status(&path);
	if (r == 0)
		r = keep(building, strbuf_cstr(&path), path.length, &text);
	if (r < 0)
		return r;
	*ret_path = text_of(building, text);
	return 0;
}

/* Per step and rank. */
static double scale_of(const struct tree_diff *diff, int side)
{
	const struct tree_diff_side *of = &diff->sides[side];
	double by = diff->per_step ? of->steps : (double)of->ranks;

	return by > 0 ? 1 / by : 0;
}

static int add_tree_row(struct building *building, uint32_t index, bool is_moved)
{
	struct tree_diff *diff = building->diff;
	const struct node *node = &building->nodes.items[index];
	struct tree_diff_row row = {
		.name = text_of(building, node->name),
		.is_operator = node->is_operator,
		.is_moved = is_moved,
	};
	int r = make_path(building, index, &row.path);

	for (int side = 0; side < 2; side++) {
		uint32_t shape = node->shape[side].text;

		row.count[side] = node->count[side] * scale_of(diff, side);
		row.device_ns[side] = node->device_ns[side] * scale_of(diff, side);
		row.host_ns[side] = node->host_ns[side] * scale_of(diff, side);
		row.shapes[side] = shape ? text_of(building, shape - 1) : "";
	}
	row.first_kernel = index; /* until rows are in order */
	return r < 0 ? r : array_append(&diff->rows, row);
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct tree_diff *diff = context;
	const struct tree_diff_row *a = left, *b = right;
	double of_a = fabs(tree_diff_change(diff, a)), of_b = fabs(tree_diff_change(diff, b));
	int order;

	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	order = strcmp(a->path, b->path);
	return order ? order : strcmp(a->name, b->name);
}

static int compare_kernels(const void *left, const void *right)
{
	const struct tree_diff_kernel *a = left, *b = right;
	double of_a = fabs(a->device_ns[1] - a->device_ns[0]);
	double of_b = fabs(b->device_ns[1] - b->device_ns[0]);

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int add_kernels(struct building *building)
{
	struct tree_diff *diff = building->diff;
	int r = 0;

	for (uint32_t i = 0; i < diff->rows.count; i++)
		building->row_of_node[diff->rows.items[i].first_kernel] = i;
	array_foreach (&diff->rows, row)
		row->first_kernel = 0;
	array_foreach (&building->kernels, kernel) {
		struct tree_diff_kernel one = {.name = text_of(building, kernel->name),
			.row = building->row_of_node[kernel->node]};

		for (int side = 0; side < 2; side++) {
			one.count[side] = kernel->count[side] * scale_of(diff, side);
			one.device_ns[side] = kernel->device_ns[side] * scale_of(diff, side);
		}
		if (r == 0 && (kernel->count[0] > 0 || kernel->count[1] > 0))
			r = array_append(&diff->kernels, one);
	}
	if (r == 0 && diff->kernels.count)
		qsort(diff->kernels.items, diff->kernels.count, sizeof(*diff->kernels.items),
			compare_kernels);
	for (uint32_t i = 0; r == 0 && i < diff->kernels.count; i++) {
		struct tree_diff_row *row = &diff->rows.items[diff->kernels.items[i].row];

		if (!row->kernel_count++)
			row->first_kernel = i;
	}
	return r;
}

static int make_rows(struct building *building)
{
	struct tree_diff *diff = building->diff;
	size_t count = building->nodes.count;
	_cleanup_free_ bool *moved = calloc(count + 1, sizeof(*moved));
	int r;

	building->row_of_node = malloc((count + 1) * sizeof(*building->row_of_node));
	if (!moved || !building->row_of_node)
		return -ENOMEM;
	memset(building->row_of_node, 0xff, (count + 1) * sizeof(*building->row_of_node));
	r = join_moved(building, moved);
	if (r == 0)
		r = move_kernels(building);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		const struct node *node = &building->nodes.items[i];

		if (node->count[0] > 0 || node->count[1] > 0 || node->device_ns[0] > 0 ||
			node->device_ns[1] > 0)
			r = add_tree_row(building, i, moved[i]);
	}
	if (r < 0)
		return r;
	if (diff->rows.count)
		qsort_r(diff->rows.items, diff->rows.count, sizeof(*diff->rows.items), compare_rows,
			diff);
	return add_kernels(building);
}

static void scale_sides(struct tree_diff *diff)
{
	for (int side = 0; side < 2; side++) {
		struct tree_diff_side *of = &diff->sides[side];
		double scale = scale_of(diff, side);

		of->device_ns *= scale;
		of->busy_ns *= scale;
		of->works *= scale;
		of->step_ns = of->steps > 0 ? of->step_ns / of->steps : NAN;
	}
}

int tree_diff_init(struct tree_diff *diff, const struct tree_diff_input inputs[2])
{
	_cleanup_(building_done) struct building building = {.diff = diff};
	int r = 0;

	*diff = (struct tree_diff){0};
	for (int side = 0; side < 2; side++) {
		for (size_t i = 0; r == 0 && i < inputs[side].count; i++)
			r = add_view(&building, side, &inputs[side].views[i]);
	}
	diff->per_step = diff->sides[0].steps > 0 && diff->sides[1].steps > 0;
	diff->has_device_work = diff->sides[0].works > 0 || diff->sides[1].works > 0;
	if (r == 0)
		r = make_rows(&building);
	scale_sides(diff);
	if (r < 0)
		tree_diff_done(diff);
	return r;
}

void tree_diff_done(struct tree_diff *diff)
{
	array_done(&diff->rows);
	array_done(&diff->kernels);
	intern_done(&diff->texts);
}
