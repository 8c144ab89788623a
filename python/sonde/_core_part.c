/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type `part`: a range that hooks of a watched module begin and end with each of its calls.
 * Its name and fields are made ready once, and which parts a thread has open is kept here: between
 * two hooks the model has filled the caches, so that each line of Python in a hook takes a
 * microsecond.
 */
#include "_core.h"

#include <stdlib.h>
#include <string.h>

struct part {
	PyObject ob_base;
	PyObject *owner, *name, *domain, *fields; /* the last one may be NULL */
	bool is_ready;
	void *domain_handle, *text;
	int count;
	struct wire_api_field values[WIRE_RANGE_MAX_FIELDS];
};

struct open_part {
	struct part *part;
	bool lets_inside; /* parts of its owner may begin in it */
	bool is_recorded; /* the gate was open when it began */
};

/* Those that this thread has open, the innermost last. More than a model's usual depth is
 * allocated until all have ended: a thread that ends has no way to give it back. */
#define USUAL_DEPTH 32
static _Thread_local struct {
	struct open_part usual[USUAL_DEPTH], *more;
	size_t count, capacity;
} opened;

static struct open_part *items(void)
{
	return opened.more ? opened.more : opened.usual;
}

static bool append(struct open_part one)
{
	size_t capacity = opened.more ? opened.capacity : USUAL_DEPTH;
	struct open_part *grown;

	if (opened.count == capacity) {
		grown = realloc(opened.more, 2 * capacity * sizeof(*grown));
		if (!grown)
			return false;
		if (!opened.more)
			memcpy(grown, opened.usual, sizeof(opened.usual));
		opened.more = grown;
		opened.capacity = 2 * capacity;
	}
	Py_INCREF((PyObject *)one.part);
	items()[opened.count++] = one;
	return true;
}

/* Ends the innermost one. */
static void end_one(void)
{
	struct open_part one = items()[--opened.count];

	if (!opened.count) {
		free(opened.more);
		opened.more = NULL;
	}
	if (core_is_open() && one.is_recorded)
		core_calls->pop(one.part->domain_handle);
	Py_DECREF((PyObject *)one.part);
}

static bool make_ready(struct part *part)
{
	const struct core_text *text;
	int count = part->fields ? core_fields_of(part->fields, part->values) : 0;

	if (count < 0 || !core_domain_of(part->domain, &part->domain_handle))
		return false;
	text = core_text_of(part->name);
	if (!text)
		return false;
	part->text = text->text;
	part->count = count;
	part->is_ready = true;
	return true;
}

/* Without memory there is no range: hooks raise nothing into the model. */
static void begin(struct part *part, bool lets_inside)
{
	bool is_open = core_is_open();

	if (is_open && !part->is_ready && !make_ready(part)) {
		PyErr_Clear();
		return;
	}
	if (append((struct open_part){part, lets_inside, is_open}) && is_open)
		core_calls->push(
			part->domain_handle, part->text, part->values, (uint32_t)part->count);
}

static PyObject *part_begin(PyObject *self, PyObject *unused)
{
	struct part *part = (struct part *)self;

	for (size_t i = opened.count; i > 0; i--) {
		const struct open_part *outer = &items()[i - 1];

		if (outer->lets_inside && outer->part->owner == part->owner) {
			begin(part, false);
			break;
		}
	}
	Py_RETURN_NONE;
}

static PyObject *part_begin_outermost(PyObject *self, PyObject *lets_inside)
{
	int is_true = PyObject_IsTrue(lets_inside);

	if (is_true < 0)
		return NULL;
	begin((struct part *)self, is_true);
	Py_RETURN_NONE;
}

/* Where a BaseException ran no hooks, what is inside is still open. */
static PyObject *part_end(PyObject *self, PyObject *unused)
{
	size_t place = opened.count;

	while (place > 0 && (PyObject *)items()[place - 1].part != self)
		place--;
	while (place > 0 && opened.count >= place)
		end_one();
	Py_RETURN_NONE;
}

PyObject *core_parts_open(PyObject *self, PyObject *unused)
{
	PyObject *owners = PyList_New(0);

	for (size_t i = 0; owners && i < opened.count; i++) {
		if (PyList_Append(owners, items()[i].part->owner) < 0) {
			Py_DECREF(owners);
			return NULL;
		}
	}
	return owners;
}

PyObject *core_parts_end(PyObject *self, PyObject *count)
{
	size_t left = PyLong_AsSize_t(count);

	if (PyErr_Occurred())
		return NULL;
	while (opened.count > left)
		end_one();
	Py_RETURN_NONE;
}

static PyObject *part_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	PyObject *owner, *name, *domain, *fields = NULL;
	struct part *part;

	if (keywords ||
		!PyArg_ParseTuple(arguments, "OUU|O:part", &owner, &name, &domain, &fields) ||
		!core_check_fields(&fields))
		return NULL;
	part = (struct part *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!part)
		return NULL;
	Py_INCREF(owner);
	Py_INCREF(name);
	Py_INCREF(domain);
	Py_XINCREF(fields);
	part->owner = owner;
	part->name = name;
	part->domain = domain;
	part->fields = fields;
	return (PyObject *)part;
}

static void part_dealloc(PyObject *self)
{
	struct part *part = (struct part *)self;
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF(part->owner);
	Py_XDECREF(part->name);
	Py_XDECREF(part->domain);
	Py_XDECREF(part->fields);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyMethodDef part_methods[] = {
	{"begin", part_begin, METH_NOARGS,
		"Begins the range on this thread, inside of one of the same owner that lets it."},
	{"begin_outermost", part_begin_outermost, METH_O,
		"Begins the range on this thread; do parts of its owner begin in it?"},
	{"end", part_end, METH_NOARGS,
		"Ends the range, and what is still open in it. Does nothing where it is not open."},
	{NULL, NULL, 0, NULL},
};

PyObject *core_part_type(void)
{
	static const char doc[] = "part(owner, name, domain, fields=None)\n--\n\n"
				  "A range of a watched module. The fields are read once.";
	static PyType_Slot slots[] = {
		{Py_tp_new, (void *)part_new},
		{Py_tp_dealloc, (void *)part_dealloc},
		{Py_tp_methods, part_methods},
		{Py_tp_doc, (void *)doc},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "sonde._core.part",
		.basicsize = sizeof(struct part),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = slots,
	};

	return PyType_FromSpec(&spec);
}
