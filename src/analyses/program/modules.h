/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time by module of the model: which nn.Module launched device work, and how long threads were in
 * it. Modules are
 *   - of another tool's trace the rows "nn.Module: Linear_3" (with_stack=True), the number of which
 *     PyTorch gives to each instance of a class;
 *   - of a recording the ranges of sonde.watch(), and the functions Class.forward of Python stacks.
 * Work of the backward pass belongs to the module whose operator it is the gradient of
 * (program/forward.h). A module that runs again in the backward pass, since its activations were
 * not kept, is the same module, and its time that of the backward pass.
 *
 * Instances of one class at one place of the model are one row: "Net / Block / Linear". What no
 * module launched has a row for the outermost annotation around it, as optimizers have, or else one
 * for all of it.
 */
#pragma once

#include "analyses/device/category.h"
#include "base/map.h"

#define MODULES_NONE "[no module]"

enum module_pass { MODULE_FORWARD, MODULE_BACKWARD, MODULE_PASSES };

/* By pass. */
struct module_time {
	uint64_t works[MODULE_PASSES];
	int64_t device_ns[MODULE_PASSES];
	int64_t host_ns[MODULE_PASSES]; /* of threads */
};

struct module_row {
	const char *name; /* the class: "Linear" */
	uint32_t parent;  /* index; MODEL_NONE: the outermost */
	uint32_t depth;   /* of the outermost 0 */
	uint32_t instances;
	bool is_module; /* else an annotation, or MODULES_NONE */
	struct module_time self, total;
	int64_t by_category_ns[OP_CATEGORY_MAX]; /* of devices, self */
};

/* One of a row's. */
struct module_instance {
	const char *name; /* "Linear_3" */
	uint32_t row;
	uint32_t parent; /* index; MODEL_NONE */
	struct module_time self, total;
};

/* What a module ran by itself. */
struct module_operator {
	uint32_t row;
	const char *name; /* "aten::addmm"; "": no operator around the launch */
	enum op_category category;
	enum module_pass pass;
	uint64_t works;
	int64_t device_ns;
};

struct modules {
	/* In the order of the tree: a row before those in it, most time first. */
	ARRAY_OF(struct module_row) rows;
	ARRAY_OF(struct module_instance) instances;
	ARRAY_OF(struct module_operator) operators; /* most time first */
	bool has_modules;
	bool has_device_work; /* rows are ordered by its time; else by that of threads */
	struct module_time all;
	struct intern texts, row_keys, instance_keys, operator_keys;
};

/* Of all ranks together. Returns 0 or -ENOMEM. */
int modules_init(struct modules *modules, const struct trace_view *views, size_t count);
void modules_done(struct modules *modules);
#define _cleanup_modules_ _cleanup_(modules_done)

static inline int64_t module_device_ns(const struct module_time *time)
{
	return trace_add_ns(time->device_ns[MODULE_FORWARD], time->device_ns[MODULE_BACKWARD]);
}

static inline int64_t module_host_ns(const struct module_time *time)
{
	return trace_add_ns(time->host_ns[MODULE_FORWARD], time->host_ns[MODULE_BACKWARD]);
}

/* The name of a row of a module: "Linear_3", in place of "nn.Module: Linear_3". NULL: it is none.
 */
const char *module_of_python(const char *name);
/* How much of an instance's name is its class's: of "Linear_3" 6. */
size_t module_class_length(const char *instance);
