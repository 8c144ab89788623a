/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde._core: what Python programs say to a recording. Arguments are checked whether something is
 * recorded or not, so that a recording brings no exception that was not there.
 */
#include "_core.h"

#include <stdlib.h>
#include <string.h>

#include "api/load.h"

#define MAX_ARGUMENTS 4

PyMODINIT_FUNC PyInit__core(void);

const struct wire_api *core_calls;
static uint64_t steps_alone;     /* without a session */
static PyObject *joined_session; /* the folder of open_session(), bytes; NULL: $SONDE_SESSION's */

/* ---- arguments ---- */

struct signature {
	const char *function;
	const char *names[MAX_ARGUMENTS];
	Py_ssize_t required, count;
};

static bool take_keyword(const struct signature *signature, PyObject *keyword, PyObject *value,
	PyObject **ret_values)
{
	for (Py_ssize_t i = 0; i < signature->count; i++) {
		if (PyUnicode_CompareWithASCIIString(keyword, signature->names[i]) != 0)
			continue;
		if (ret_values[i]) {
			PyErr_Format(
				PyExc_TypeError, "%s() got %R twice", signature->function, keyword);
			return false;
		}
		ret_values[i] = value;
		return true;
	}
	PyErr_Format(PyExc_TypeError, "%s() has no argument %R", signature->function, keyword);
	return false;
}

/* Those that are not given stay NULL. */
static bool take_arguments(const struct signature *signature, PyObject *const *arguments,
	Py_ssize_t count, PyObject *keywords, PyObject **ret_values)
{
	Py_ssize_t keyword_count = keywords ? PyTuple_Size(keywords) : 0;

	for (Py_ssize_t i = 0; i < signature->count; i++)
		ret_values[i] = i < count ? arguments[i] : NULL;
	if (count > signature->count) {
		PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments, not %zd",
			signature->function, signature->count, count);
		return false;
	}
	for (Py_ssize_t i = 0; i < keyword_count; i++) {
		if (!take_keyword(signature, PyTuple_GetItem(keywords, i), arguments[count + i],
			    ret_values))
			return false;
	}
	for (Py_ssize_t i = 0; i < signature->required; i++) {
		if (ret_values[i])
			continue;
		PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", signature->function,
			signature->names[i]);
		return false;
	}
	return true;
}

static bool check_name(PyObject **name)
{
	if (*name == Py_None) {
		PyErr_SetString(PyExc_TypeError, "name must be a str, not None");
		return false;
	}
	return core_check_text("name", name);
}

/* The arguments of ranges and marks. */
static bool take_event(const char *function, PyObject *const *arguments, Py_ssize_t count,
	PyObject *keywords, PyObject **ret_values)
{
	const struct signature signature = {
		.function = function,
		.names = {"name", "domain", "fields"},
		.required = 1,
		.count = 3,
	};

	return take_arguments(&signature, arguments, count, keywords, ret_values) &&
	       check_name(&ret_values[0]) && core_check_text("domain", &ret_values[1]) &&
	       core_check_fields(&ret_values[2]);
}

/* ---- ranges and marks ---- */

static PyObject *range_push(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	PyObject *values[MAX_ARGUMENTS];

	if (!take_event("range_push", arguments, count, keywords, values) ||
		(core_is_open() && !core_push(values[0], values[1], values[2])))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *range_pop(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	static const struct signature signature = {
		.function = "range_pop", .names = {"domain"}, .count = 1};
	PyObject *domain[MAX_ARGUMENTS];

	if (!take_arguments(&signature, arguments, count, keywords, domain) ||
		!core_check_text("domain", &domain[0]) || (core_is_open() && !core_pop(domain[0])))
		return NULL;
	Py_RETURN_NONE;
}

static bool write_mark(
	PyObject *name, PyObject *domain, const struct wire_api_field *fields, int count)
{
	const struct core_text *text;
	void *domain_handle;

	if (count < 0 || !core_domain_of(domain, &domain_handle))
		return false;
	text = core_text_of(name);
	if (text)
		core_calls->mark(domain_handle, text->text, fields, (uint32_t)count);
	return text;
}

static PyObject *mark(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	struct wire_api_field fields[WIRE_RANGE_MAX_FIELDS];
	PyObject *values[MAX_ARGUMENTS];

	if (!take_event("mark", arguments, count, keywords, values) ||
		(core_is_open() && !write_mark(values[0], values[1], fields,
					   core_fields_of(values[2], fields))))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *range_start(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	struct wire_api_field fields[WIRE_RANGE_MAX_FIELDS];
	const struct core_text *text;
	PyObject *values[MAX_ARGUMENTS];
	uint64_t number = 0;
	void *domain;
	int field_count;

	if (!take_event("range_start", arguments, count, keywords, values))
		return NULL;
	if (core_is_open()) {
		field_count = core_fields_of(values[2], fields);
		if (field_count < 0 || !core_domain_of(values[1], &domain))
			return NULL;
		text = core_text_of(values[0]);
		if (!text)
			return NULL;
		number = core_calls->start(domain, text->text, fields, (uint32_t)field_count);
	}
	return PyLong_FromUnsignedLongLong(number);
}

static PyObject *range_end(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	static const struct signature signature = {
		.function = "range_end", .names = {"number", "domain"}, .required = 1, .count = 2};
	PyObject *values[MAX_ARGUMENTS];
	unsigned long long number;
	void *domain;

	if (!take_arguments(&signature, arguments, count, keywords, values) ||
		!core_check_text("domain", &values[1]))
		return NULL;
	number = PyLong_AsUnsignedLongLong(values[0]);
	if (PyErr_Occurred())
		return NULL;
	if (core_is_open()) {
		if (!core_domain_of(values[1], &domain))
			return NULL;
		core_calls->end(domain, number);
	}
	Py_RETURN_NONE;
}

/* ---- counters, tokens, steps ---- */

static PyObject *counter(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	static const struct signature signature = {
		.function = "counter", .names = {"name", "value"}, .required = 2, .count = 2};
	const struct core_text *text;
	PyObject *values[MAX_ARGUMENTS];
	double value;

	if (!take_arguments(&signature, arguments, count, keywords, values) ||
		!check_name(&values[0]))
		return NULL;
	if (!PyFloat_Check(values[1]) && !PyLong_Check(values[1]))
		return PyErr_Format(PyExc_TypeError, "value must be an int or float, not %R",
			Py_TYPE(values[1]));
	if (core_is_open()) {
		value = PyFloat_AsDouble(values[1]);
		text = PyErr_Occurred() ? NULL : core_text_of(values[0]);
		if (!text)
			return NULL;
		core_calls->counter(text->text, value);
	}
	Py_RETURN_NONE;
}

static int token_field(const char *name, PyObject *value, struct wire_api_field *fields, int count)
{
	PyObject *dict;
	int result;

	if (!value)
		return count;
	dict = PyDict_New();
	if (!dict)
		return -1;
	result = PyDict_SetItemString(dict, name, value) < 0 ? -1
							     : core_fields_of(dict, &fields[count]);
	Py_DECREF(dict);
	return result < 0 ? -1 : count + result;
}

static bool write_token(PyObject *const *values)
{
	static const char *const names[] = {"index", "request", "text", "phase"};
	static PyObject *mark_name, *domain;
	struct wire_api_field fields[WIRE_RANGE_MAX_FIELDS];
	int count = 0;

	if (!mark_name)
		mark_name = PyUnicode_InternFromString("token");
	if (!domain)
		domain = PyUnicode_InternFromString("sonde.token");
	for (int i = 0; count >= 0 && i < MAX_ARGUMENTS; i++)
		count = token_field(names[i], values[i], fields, count);
	return mark_name && domain && write_mark(mark_name, domain, fields, count);
}

static PyObject *token(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	static const struct signature signature = {.function = "token",
		.names = {"index", "request", "text", "phase"},
		.required = 1,
		.count = 4};
	PyObject *values[MAX_ARGUMENTS];

	if (!take_arguments(&signature, arguments, count, keywords, values))
		return NULL;
	if (!PyLong_Check(values[0]))
		return PyErr_Format(
			PyExc_TypeError, "index must be an int, not %R", Py_TYPE(values[0]));
	if ((!values[1] || !PyLong_Check(values[1])) && !core_check_text("request", &values[1]))
		return NULL;
	if (!core_check_text("text", &values[2]) || !core_check_text("phase", &values[3]) ||
		(core_is_open() && !write_token(values)))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *step(
	PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
	static const struct signature signature = {
		.function = "step", .names = {"name"}, .count = 1};
	PyObject *name[MAX_ARGUMENTS];
	const struct core_text *text;
	uint64_t made;

	if (!take_arguments(&signature, arguments, count, keywords, name) ||
		(name[0] && !check_name(&name[0])))
		return NULL;
	if (!core_calls) {
		made = ++steps_alone;
	} else if (!name[0]) {
		made = core_calls->step("step");
	} else {
		text = core_text_of(name[0]);
		if (!text)
			return NULL;
		made = core_calls->step(PyBytes_AsString(text->bytes));
	}
	return PyLong_FromUnsignedLongLong(made);
}

/* ---- the session ---- */

static PyObject *is_open(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(core_is_open());
}

static PyObject *window(PyObject *self, PyObject *unused)
{
	return PyLong_FromUnsignedLong(core_is_open() ? core_calls->window() : 0);
}

static PyObject *open_session(PyObject *self, PyObject *path)
{
	const struct wire_api *calls;
	PyObject *bytes;

	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	calls = api_open_session(PyBytes_AsString(bytes));
	if (calls) {
		core_calls = calls;
		Py_XDECREF(joined_session);
		joined_session = bytes;
	} else {
		Py_DECREF(bytes);
	}
	return PyBool_FromLong(calls != NULL);
}

/* Called by os.fork(), in the child: it goes on as a process of its own. */
static PyObject *open_in_child(PyObject *self, PyObject *unused)
{
	const char *path =
		joined_session ? PyBytes_AsString(joined_session) : secure_getenv("SONDE_SESSION");

	if (core_calls && path)
		core_calls->open_session(path);
	Py_RETURN_NONE;
}

static bool watch_forks(PyObject *module)
{
	PyObject *posix = PyImport_ImportModule("posix");
	PyObject *watch = posix ? PyObject_GetAttrString(posix, "register_at_fork") : NULL;
	PyObject *function = PyObject_GetAttrString(module, "_open_in_child");
	PyObject *keywords = PyDict_New(), *arguments = PyTuple_New(0), *done = NULL;

	if (watch && function && keywords && arguments &&
		PyDict_SetItemString(keywords, "after_in_child", function) == 0)
		done = PyObject_Call(watch, arguments, keywords);
	Py_XDECREF(posix);
	Py_XDECREF(watch);
	Py_XDECREF(function);
	Py_XDECREF(keywords);
	Py_XDECREF(arguments);
	Py_XDECREF(done);
	return done;
}

/* ---- the module ---- */

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef functions[] = {
	{"range_push", FAST(range_push),
		"range_push(name, domain=None, fields=None)\n--\n\n"
		"Begins a range on this thread. See sonde.range."},
	{"range_pop", FAST(range_pop),
		"range_pop(domain=None)\n--\n\nEnds the range of the domain that this thread began "
		"last."},
	{"range_start", FAST(range_start),
		"range_start(name, domain=None, fields=None)\n--\n\n"
		"Begins a range of the process, which may end on another thread. Returns its "
		"number; 0: nothing is recorded."},
	{"range_end", FAST(range_end),
		"range_end(number, domain=None)\n--\n\nEnds a range of the process."},
	{"mark", FAST(mark),
		"mark(name, domain=None, fields=None)\n--\n\nMarks this moment. See sonde.range."},
	{"counter", FAST(counter),
		"counter(name, value)\n--\n\nSays what a counter is from this moment on."},
	{"token", FAST(token),
		"token(index, request=None, text=None, phase=None)\n--\n\n"
		"Marks that the token with this index of the request, a str or an int, is "
		"there.\n\n"
		"With the phase 'queued' it is none: the request arrives, from which the time to "
		"its first token counts; nor with 'prefill': the work on it begins, from which it "
		"counts where no arrival is marked; nor with 'done': the request ended. Where "
		"several tokens come at once, the index is that of the last one."},
	{"step", FAST(step),
		"step(name='step')\n--\n\n"
		"Ends a step of the program, and begins the next. Returns how many there were."},
	{"is_open", is_open, METH_NOARGS, "is_open()\n--\n\nIs anything recorded at this moment?"},
	{"window", window, METH_NOARGS,
		"window()\n--\n\nThe number of the window that is open, from 1; 0: none is."},
	{"open_session", open_session, METH_O,
		"open_session(path)\n--\n\n"
		"Joins the recording whose session folder this is, when it began after the "
		"program. False: there is none of this user, or the program is in another one."},
	{"parts_open", core_parts_open, METH_NOARGS,
		"parts_open()\n--\n\nThe owners of the parts that this thread has open, the "
		"innermost last."},
	{"parts_end", core_parts_end, METH_O,
		"parts_end(count)\n--\n\nEnds the parts of this thread beyond the first ones."},
	{"_open_in_child", open_in_child, METH_NOARGS,
		"_open_in_child()\n--\n\nHas a forked child write into the session, too."},
	{NULL, NULL, 0, NULL},
};

PyMODINIT_FUNC PyInit__core(void)
{
	static struct PyModuleDef definition = {
		PyModuleDef_HEAD_INIT,
		.m_name = "sonde._core",
		.m_doc = "What a program says to sonde. Without a recording nothing is done.",
		.m_size = -1,
		.m_methods = functions,
	};
	PyObject *module = PyModule_Create(&definition), *type, *part;

	if (!module)
		return NULL;
	core_calls = api_calls();
	type = core_range_type();
	part = core_part_type();
	if (!type || !part ||
		PyModule_AddStringConstant(module, "__version__", SONDE_VERSION) < 0 ||
		PyModule_AddObject(module, "range", type) < 0 ||
		PyModule_AddObject(module, "part", part) < 0 || !watch_forks(module)) {
		Py_XDECREF(type);
		Py_XDECREF(part);
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
