/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type `range`: what it is of is all that an object knows, so that one serves many threads, and
 * itself inside of itself. The session's library keeps which ranges a thread has open.
 */
#include "_core.h"

struct range {
	PyObject ob_base;
	PyObject *name, *domain, *fields; /* the last two may be NULL */
};

bool core_push(PyObject *name, PyObject *domain, PyObject *fields)
{
	struct wire_api_field values[WIRE_RANGE_MAX_FIELDS];
	const struct core_text *text;
	void *domain_handle;
	int count = fields ? core_fields_of(fields, values) : 0;

	if (count < 0 || !core_domain_of(domain, &domain_handle))
		return false;
	text = core_text_of(name);
	if (!text)
		return false;
	core_calls->push(domain_handle, text->text, values, (uint32_t)count);
	return true;
}

bool core_pop(PyObject *domain)
{
	void *handle;

	if (!core_domain_of(domain, &handle))
		return false;
	core_calls->pop(handle);
	return true;
}

static PyObject *range_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"name", "domain", "fields", NULL};
	static allocfunc alloc;
	PyObject *name = NULL, *domain = NULL, *fields = NULL;
	struct range *range;

	if (!keywords && PyTuple_Size(arguments) == 1)
		name = PyTuple_GetItem(arguments, 0);
	else if (!PyArg_ParseTupleAndKeywords(
			 arguments, keywords, "O|OO:range", names, &name, &domain, &fields))
		return NULL;
	if (name == Py_None) {
		PyErr_SetString(PyExc_TypeError, "name must be a str, not None");
		return NULL;
	}
	if (!core_check_text("name", &name) || !core_check_text("domain", &domain) ||
		!core_check_fields(&fields))
		return NULL;
	if (!alloc)
		alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	range = (struct range *)alloc(type, 0);
	if (!range)
		return NULL;
	Py_INCREF(name);
	Py_XINCREF(domain);
	Py_XINCREF(fields);
	range->name = name;
	range->domain = domain;
	range->fields = fields;
	return (PyObject *)range;
}

static void range_dealloc(PyObject *self)
{
	struct range *range = (struct range *)self;
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF(range->name);
	Py_XDECREF(range->domain);
	Py_XDECREF(range->fields);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyObject *range_enter(PyObject *self, PyObject *unused)
{
	struct range *range = (struct range *)self;

	if (core_is_open() && !core_push(range->name, range->domain, range->fields))
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *range_exit(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	struct range *range = (struct range *)self;

	if (core_is_open() && !core_pop(range->domain))
		return NULL;
	Py_RETURN_NONE;
}

/* Functions are wrapped in Python, where functools and inspect are. */
static PyObject *range_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct range *range = (struct range *)self;
	PyObject *module, *wrapped, *function;

	if (keywords || PyTuple_Size(arguments) != 1) {
		PyErr_SetString(PyExc_TypeError,
			"a range is called with the function that it decorates, and nothing else");
		return NULL;
	}
	function = PyTuple_GetItem(arguments, 0);
	module = PyImport_ImportModule("sonde._decorate");
	if (!module)
		return NULL;
	wrapped = PyObject_CallMethod(module, "decorate", "OOOOO", self, function, range->name,
		range->domain ? range->domain : Py_None, range->fields ? range->fields : Py_None);
	Py_DECREF(module);
	return wrapped;
}

static PyObject *range_repr(PyObject *self)
{
	struct range *range = (struct range *)self;

	if (range->domain)
		return PyUnicode_FromFormat(
			"sonde.range(%R, domain=%R)", range->name, range->domain);
	return PyUnicode_FromFormat("sonde.range(%R)", range->name);
}

static PyMethodDef range_methods[] = {
	{"__enter__", range_enter, METH_NOARGS, "Begins the range on this thread."},
	{"__exit__", (PyCFunction)(void (*)(void))range_exit, METH_FASTCALL,
		"Ends the range; exceptions pass."},
	{NULL, NULL, 0, NULL},
};

PyObject *core_range_type(void)
{
	static const char doc[] =
		"range(name, domain=None, fields=None)\n--\n\n"
		"A range of the program's work, as a context manager or a decorator.\n\n"
		"name: what the report calls it; give what differs in each call as a field.\n"
		"domain: whose ranges these are; None: sonde's.\n"
		"fields: a dict of at most 16 str to int, float, str or bool.\n\n"
		"Nothing happens outside of a recording and while its window is closed. One "
		"object\n"
		"may be used again, by several threads at once, and inside of itself. A decorated\n"
		"coroutine function has a range of the process, from its call to its end.";
	static PyType_Slot slots[] = {
		{Py_tp_new, (void *)range_new},
		{Py_tp_dealloc, (void *)range_dealloc},
		{Py_tp_call, (void *)range_call},
		{Py_tp_repr, (void *)range_repr},
		{Py_tp_methods, range_methods},
		{Py_tp_doc, (void *)doc},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "sonde._core.range",
		.basicsize = sizeof(struct range),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
		.slots = slots,
	};

	return PyType_FromSpec(&spec);
}
