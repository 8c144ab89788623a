/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/forward.h"
#include "analyses/program/module_names.h"

/* What a row of a thread is part of. */
struct place {
	uint32_t instance; /* MODEL_NONE: no module's */
	uint32_t entry;    /* the row that began it: a module's, or one of the backward pass */
	uint8_t pass;
	bool is_pending; /* what it belongs to may be placed later */
};

struct counting {
	struct modules *modules;
	const struct trace_view *view;
	const struct trace *trace;
	struct module_names names;
	const uint32_t *parents; /* by row, as the next */
	uint32_t *forwards;
	struct place *places; /* by row */
	uint8_t *categories;  /* by work */
};

static const struct place no_place = {
	.instance = MODEL_NONE, .entry = MODEL_NONE, .pass = MODULE_FORWARD};

static void counting_done(struct counting *counting)
{
	module_names_done(&counting->names);
	free(counting->forwards);
	free(counting->places);
	free(counting->categories);
}

static void add_ns(int64_t *sum_ns, int64_t ns)
{
	*sum_ns = trace_add_ns(*sum_ns, ns);
}

static int keep(struct modules *modules, const char *text, size_t length, const char **ret_text)
{
	uint32_t id;
	int r = intern_add(&modules->texts, text, length, &id);

	if (r < 0)
		return r;
	*ret_text = intern_get(&modules->texts, id);
	return 0;
}

/* ---- rows and instances ---- */

struct name_key {
	uint32_t parent, is_module;
	const char *name; /* interned */
};

static int find_row(struct modules *modules, uint32_t parent, const char *name, size_t length,
	bool is_module, uint32_t *ret_row)
{
	struct name_key key = {.parent = parent, .is_module = is_module};
	struct module_row row = {.parent = parent, .is_module = is_module};
	int r = keep(modules, name, length, &key.name);

	if (r == 0)
		r = intern_add(&modules->row_keys, &key, sizeof(key), ret_row);
	if (r <= 0)
		return r;
	row.name = key.name;
	if (parent != MODEL_NONE)
		row.depth = modules->rows.items[parent].depth + 1;
	return array_append(&modules->rows, row);
}

/* `parent`: an instance, or MODEL_NONE. */
static int find_instance(struct modules *modules, uint32_t parent, const char *name, bool is_module,
	uint32_t *ret_instance)
{
	size_t length = is_module ? module_class_length(name) : strlen(name);
	uint32_t of_parent =
		parent == MODEL_NONE ? MODEL_NONE : modules->instances.items[parent].row;
	struct name_key key = {.parent = parent, .is_module = is_module};
	struct module_instance instance = {.parent = parent};
	int r = keep(modules, name, strlen(name), &key.name);

	if (r == 0)
		r = intern_add(&modules->instance_keys, &key, sizeof(key), ret_instance);
	if (r <= 0)
		return r;
	r = find_row(modules, of_parent, name, length, is_module, &instance.row);
	if (r < 0)
		return r;
	instance.name = key.name;
	modules->rows.items[instance.row].instances++;
	modules->has_modules |= is_module;
	return array_append(&modules->instances, instance);
}

/* A module that runs again in the backward pass: it lies in what it is. MODEL_NONE: it is new. */
static uint32_t find_outer(const struct modules *modules, uint32_t instance, const char *name)
{
	while (instance != MODEL_NONE && strcmp(modules->instances.items[instance].name, name) != 0)
		instance = modules->instances.items[instance].parent;
	return instance;
}

/* ---- places ---- */

static int place_module(struct counting *counting, uint32_t row, const char *name)
{
	struct place *place = &counting->places[row];
	uint32_t outer = MODEL_NONE;

	place->entry = row;
	if (place->pass == MODULE_BACKWARD)
		outer = find_outer(counting->modules, place->instance, name);
	if (outer != MODEL_NONE) {
		place->instance = outer;
		return 0;
	}
	return find_instance(counting->modules, place->instance, name, true, &place->instance);
}

/* Of a row the parent of which is placed. `is_first`: rows of the forward pass may come later. */
static int place_row(struct counting *counting, uint32_t row, bool is_first)
{
	uint32_t parent = counting->parents[row], forward = counting->forwards[row];
	const char *name = module_names_get(&counting->names, row);
	struct place *place = &counting->places[row];

	*place = parent == MODEL_NONE ? no_place : counting->places[parent];
	place->is_pending |= is_first && forward != MODEL_NONE;
	if (place->is_pending)
		return 0;
	if (name)
		return place_module(counting, row, name);
	if (forward == MODEL_NONE || place->pass == MODULE_BACKWARD)
		return 0;
	/* In a module already: a gradient that the forward pass itself takes. */
	if (place->instance == MODEL_NONE)
		place->instance = counting->places[forward].instance;
	place->pass = MODULE_BACKWARD;
	place->entry = row;
	return 0;
}

/* Rows of a track come after those around them; the backward pass may be on a track before. */
static int place_rows(struct counting *counting)
{
	const struct trace *trace = counting->trace;
	int r = 0;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; r == 0 && i < trace->rows.count; i++)
			r = place_row(counting, trace->rows.items[i], round == 0);
	}
	return r;
}

/* ---- time ---- */

/* What lies in no module: the outermost annotation around it. */
static int find_annotation(struct counting *counting, uint32_t row, uint32_t *ret_instance)
{
	const struct trace *trace = counting->trace;
	const char *name = MODULES_NONE;
	uint64_t number;

	for (; row != MODEL_NONE; row = counting->parents[row]) {
		const struct trace_event *event = &trace->events.items[row];
		const char *text = trace_text(trace, event->name);

		if (event->category == TRACE_USER_ANNOTATION && !trace_step_number(text, &number))
			name = text;
	}
	return find_instance(counting->modules, MODEL_NONE, name, false, ret_instance);
}

static const char *operator_around(const struct counting *counting, uint32_t row)
{
	for (; row != MODEL_NONE; row = counting->parents[row]) {
		const struct trace_event *event = &counting->trace->events.items[row];

		if (event->category == TRACE_CPU_OP)
			return trace_text(counting->trace, event->name);
	}
	return "";
}

static int add_operator(struct modules *modules, const struct module_operator *one)
{
	struct {
		const char *name;
		uint32_t row;
		uint16_t category, pass;
	} key = {NULL, one->row, (uint16_t)one->category, (uint16_t)one->pass};
	struct module_operator added = *one;
	uint32_t index;
	int r = keep(modules, one->name, strlen(one->name), &key.name);

	if (r == 0)
		r = intern_add(&modules->operator_keys, &key, sizeof(key), &index);
	if (r < 0)
		return r;
	added.name = key.name;
	if (r > 0)
		return array_append(&modules->operators, added);
	modules->operators.items[index].works += one->works;
	add_ns(&modules->operators.items[index].device_ns, one->device_ns);
	return 0;
}

/* The module of a recorded launch by its stack, where its ranges say none. */
static int place_recorded(
	struct counting *counting, const struct trace_view_work *work, uint32_t *ret_instance)
{
	const char *const *names;
	size_t count;
	int r = module_names_of_stack(&counting->names, work->row, &names, &count);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = find_instance(counting->modules, *ret_instance, names[i], true, ret_instance);
	return r;
}

static int add_work(struct counting *counting, const struct trace_view_work *work, size_t index)
{
	struct modules *modules = counting->modules;
	struct place place = no_place;
	struct module_operator op = {
		.works = 1,
		.device_ns = trace_view_work_ns(work),
		.category = (enum op_category)counting->categories[index],
	};
	struct module_instance *instance;
	int r = 0;

	if (work->origin != MODEL_NONE)
		place = counting->places[work->origin];
	if (place.instance == MODEL_NONE && work->origin != work->launch)
		place = counting->places[work->launch];
	if (place.instance == MODEL_NONE)
		r = place_recorded(counting, work, &place.instance);
	if (r == 0 && place.instance == MODEL_NONE)
		r = find_annotation(counting, work->launch, &place.instance);
	if (r < 0)
		return r;
	instance = &modules->instances.items[place.instance];
	instance->self.works[place.pass]++;
	add_ns(&instance->self.device_ns[place.pass], op.device_ns);
	add_ns(&modules->rows.items[instance->row].by_category_ns[op.category], op.device_ns);
	op.row = instance->row;
	op.pass = (enum module_pass)place.pass;
	op.name = operator_around(counting, work->origin);
	return add_operator(modules, &op);
}

/* A row that begins a place takes its time from the place around it. */
static void add_host_time(struct counting *counting, uint32_t row)
{
	const struct trace_event *event = &counting->trace->events.items[row];
	const struct place *place = &counting->places[row], *outer;
	int64_t duration_ns = trace_difference_ns(trace_end_ns(event), event->start_ns);
	struct module_instance *instances = counting->modules->instances.items;
	uint32_t parent = counting->parents[row];

	if (event->is_capture || place->entry != row || place->instance == MODEL_NONE ||
		duration_ns < 0)
		return;
	add_ns(&instances[place->instance].self.host_ns[place->pass], duration_ns);
	outer = parent == MODEL_NONE ? NULL : &counting->places[parent];
	if (outer && outer->entry != MODEL_NONE && outer->instance != MODEL_NONE)
		add_ns(&instances[outer->instance].self.host_ns[outer->pass],
			(int64_t)(0 - (uint64_t)duration_ns));
}

static int count_view(struct counting *counting)
{
	const struct trace *trace = counting->trace;
	int r;

	counting->parents = trace_parents(trace, true);
	counting->forwards = trace_forward_rows(trace);
	counting->places = calloc(trace->events.count + 1, sizeof(*counting->places));
	if (!counting->parents || !counting->forwards || !counting->places)
		return -ENOMEM;
	r = op_categories_of_works(counting->view, counting->parents, &counting->categories);
	if (r == 0)
		r = module_names_init(&counting->names, trace);
	if (r == 0)
		r = place_rows(counting);
	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++)
		add_host_time(counting, row);
	for (size_t i = 0; r == 0 && i < counting->view->works.count; i++) {
		if (!counting->view->works.items[i].is_wait)
			r = add_work(counting, &counting->view->works.items[i], i);
	}
	return r;
}

/* ---- totals and order ---- */

static void add_time(struct module_time *sum, const struct module_time *time)
{
	for (int pass = 0; pass < MODULE_PASSES; pass++) {
		sum->works[pass] += time->works[pass];
		add_ns(&sum->device_ns[pass], time->device_ns[pass]);
		add_ns(&sum->host_ns[pass], time->host_ns[pass]);
	}
}

/* What is in others comes after them, so that sums are complete when they are passed on. */
static void add_up(struct modules *modules)
{
	for (size_t i = modules->instances.count; i-- > 0;) {
		struct module_instance *one = &modules->instances.items[i];

		add_time(&one->total, &one->self);
		add_time(&modules->rows.items[one->row].self, &one->self);
		if (one->parent != MODEL_NONE)
			add_time(&modules->instances.items[one->parent].total, &one->total);
	}
	for (size_t i = modules->rows.count; i-- > 0;) {
		struct module_row *row = &modules->rows.items[i];

		add_time(&row->total, &row->self);
		if (row->parent != MODEL_NONE)
			add_time(&modules->rows.items[row->parent].total, &row->total);
		else
			add_time(&modules->all, &row->total);
	}
}

static int64_t weight_of(const struct modules *modules, const struct module_time *time)
{
	return modules->has_device_work ? module_device_ns(time) : module_host_ns(time);
}

/* A row while they are put in order. */
struct ordered {
	int64_t weight_ns;
	const char *name;
	uint32_t row, parent;
};

static int compare_ordered(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->weight_ns != b->weight_ns)
		return a->weight_ns > b->weight_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* A branch of the tree while it is walked. */
struct branch {
	uint32_t owner; /* a row; MODEL_NONE: the outermost */
	uint32_t next;  /* in `ordered`, where siblings lie together; MODEL_NONE: there is none */
};

/* Rows get the places of a walk, each before those in it. */
static void find_places(size_t count, const struct ordered *ordered, const uint32_t *first,
	struct branch *branches, uint32_t *places)
{
	uint32_t place = 0;
	size_t depth = 0;

	branches[0] = (struct branch){MODEL_NONE, first[count]};
	for (;;) {
		struct branch *branch = &branches[depth];
		uint32_t row;

		if (branch->next >= count || ordered[branch->next].parent != branch->owner) {
			if (!depth--)
				return;
			continue;
		}
		row = ordered[branch->next++].row;
		places[row] = place++;
		branches[++depth] = (struct branch){row, first[row]};
	}
}

static void move_rows(struct modules *modules, struct module_row *moved, const uint32_t *places)
{
	size_t count = modules->rows.count;

	for (size_t i = 0; i < count; i++) {
		struct module_row *row = &modules->rows.items[i];

		if (row->parent != MODEL_NONE)
			row->parent = places[row->parent];
		moved[places[i]] = *row;
	}
	if (count)
		memcpy(modules->rows.items, moved, count * sizeof(*moved));
	array_foreach (&modules->instances, instance)
		instance->row = places[instance->row];
	array_foreach (&modules->operators, op)
		op->row = places[op->row];
}

static int order_rows(struct modules *modules)
{
	size_t count = modules->rows.count;
	_cleanup_free_ struct ordered *ordered = calloc(count + 1, sizeof(*ordered));
	_cleanup_free_ struct module_row *moved = calloc(count + 1, sizeof(*moved));
	/* Where the rows in each begin in `ordered`; the last: the outermost. */
	_cleanup_free_ uint32_t *first = malloc((count + 1) * sizeof(*first));
	_cleanup_free_ struct branch *branches = calloc(count + 2, sizeof(*branches));
	_cleanup_free_ uint32_t *places = calloc(count + 1, sizeof(*places));

	if (!ordered || !moved || !first || !branches || !places)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct module_row *row = &modules->rows.items[i];

		ordered[i] = (struct ordered){
			weight_of(modules, &row->total), row->name, (uint32_t)i, row->parent};
	}
	if (count)
		qsort(ordered, count, sizeof(*ordered), compare_ordered);
	memset(first, 0xff, (count + 1) * sizeof(*first));
	for (size_t i = count; i-- > 0;)
		first[MIN(ordered[i].parent, (uint32_t)count)] = (uint32_t)i;
	find_places(count, ordered, first, branches, places);
	move_rows(modules, moved, places);
	return 0;
}

static int compare_operators(const void *left, const void *right)
{
	const struct module_operator *a = left, *b = right;

	if (a->device_ns != b->device_ns)
		return a->device_ns > b->device_ns ? -1 : 1;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->pass != b->pass)
		return a->pass < b->pass ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Most traces have none, and need no look at each row. A recording may have some in its stacks. */
static bool may_have_modules(const struct trace *trace)
{
	array_foreach (&trace->strings.entries, entry) {
		if (module_of_python(entry->bytes))
			return true;
	}
	return trace->recorded != NULL;
}

int modules_init(struct modules *modules, const struct trace_view *views, size_t count)
{
	bool has_any = false;
	int r = 0;

	*modules = (struct modules){0};
	for (size_t i = 0; i < count; i++)
		has_any |= may_have_modules(views[i].trace);
	for (size_t i = 0; r == 0 && has_any && i < count; i++) {
		_cleanup_(counting_done) struct counting counting = {
			.modules = modules, .view = &views[i], .trace = views[i].trace};

		modules->has_device_work |= views[i].works.count != 0;
		r = count_view(&counting);
	}
	if (r == 0) {
		add_up(modules);
		r = order_rows(modules);
	}
	if (r < 0) {
		modules_done(modules);
		return r;
	}
	if (modules->operators.count)
		qsort(modules->operators.items, modules->operators.count,
			sizeof(*modules->operators.items), compare_operators);
	return 0;
}

void modules_done(struct modules *modules)
{
	array_done(&modules->rows);
	array_done(&modules->instances);
	array_done(&modules->operators);
	intern_done(&modules->texts);
	intern_done(&modules->row_keys);
	intern_done(&modules->instance_keys);
	intern_done(&modules->operator_keys);
}
