/* SPDX-License-Identifier: Apache-2.0 */
/* Python's strings as texts of the session, and dicts as fields. */
#include "_core.h"

#define CACHE_SLOTS 512 /* a power of two */

/* By address: names are mostly constants of the program. */
static struct core_text cache[CACHE_SLOTS];

static struct core_text *slot_of(PyObject *object)
{
	uintptr_t address = (uintptr_t)object;

	return &cache[(address >> 4 ^ address >> 13) % CACHE_SLOTS];
}

static bool fill(struct core_text *slot, PyObject *object)
{
	/* Lone surrogates become "?". */
	PyObject *bytes = PyUnicode_AsEncodedString(object, "utf-8", "replace");
	struct core_text old = *slot;

	if (!bytes)
		return false;
	Py_INCREF(object);
	*slot = (struct core_text){.object = object, .bytes = bytes};
	/* Last: they may run code of the program, which comes here. */
	Py_XDECREF(old.object);
	Py_XDECREF(old.bytes);
	return slot->object == object;
}

static struct core_text *find(PyObject *object)
{
	struct core_text *slot = slot_of(object);

	if (slot->object != object && !fill(slot, object))
		return NULL;
	if (!slot->text && core_calls)
		slot->text = core_calls->text(
			PyBytes_AsString(slot->bytes), (size_t)PyBytes_Size(slot->bytes));
	return slot;
}

const struct core_text *core_text_of(PyObject *object)
{
	return find(object);
}

bool core_domain_of(PyObject *object, void **ret_domain)
{
	struct core_text *slot;

	*ret_domain = NULL;
	if (!object)
		return true;
	slot = find(object);
	if (!slot)
		return false;
	if (!slot->domain)
		slot->domain = core_calls->domain(slot->text);
	*ret_domain = slot->domain;
	return true;
}

bool core_check_text(const char *what, PyObject **object)
{
	if (*object == Py_None)
		*object = NULL;
	if (!*object || PyUnicode_Check(*object))
		return true;
	PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", what, Py_TYPE(*object));
	return false;
}

/* Nothing whose value would have to be computed, as that of a tensor on a device. */
static bool check_value(PyObject *name, PyObject *value)
{
	if (!PyUnicode_Check(name)) {
		PyErr_Format(PyExc_TypeError, "names of fields must be str, not %R", Py_TYPE(name));
		return false;
	}
	if (PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value))
		return true;
	PyErr_Format(PyExc_TypeError, "field %R must be an int, float, str or bool, not %R", name,
		Py_TYPE(value));
	return false;
}

bool core_check_fields(PyObject **fields)
{
	PyObject *name, *value;
	Py_ssize_t position = 0;

	if (*fields == Py_None)
		*fields = NULL;
	if (!*fields)
		return true;
	if (!PyDict_Check(*fields)) {
		PyErr_Format(PyExc_TypeError, "fields must be a dict, not %R", Py_TYPE(*fields));
		return false;
	}
	if (PyDict_Size(*fields) > WIRE_RANGE_MAX_FIELDS) {
		PyErr_Format(PyExc_ValueError, "there can be %d fields, not %zd",
			WIRE_RANGE_MAX_FIELDS, PyDict_Size(*fields));
		return false;
	}
	while (PyDict_Next(*fields, &position, &name, &value)) {
		if (!check_value(name, value))
			return false;
	}
	return true;
}

/* What has more than 64 bits as a double, and what is too large for that as infinity. */
static void take_large(PyObject *value, bool is_negative, struct wire_api_field *field)
{
	if (!is_negative) {
		field->type = WIRE_RANGE_U64;
		field->unsigned_value = PyLong_AsUnsignedLongLong(value);
		if (!PyErr_Occurred())
			return;
		PyErr_Clear();
	}
	field->type = WIRE_RANGE_DOUBLE;
	field->real = PyLong_AsDouble(value);
	if (PyErr_Occurred()) {
		PyErr_Clear();
		field->real = is_negative ? -Py_HUGE_VAL : Py_HUGE_VAL;
	}
}

static void take_integer(PyObject *value, struct wire_api_field *field)
{
	int overflow;

	field->type = WIRE_RANGE_I64;
	field->signed_value = PyLong_AsLongLongAndOverflow(value, &overflow);
	if (overflow)
		take_large(value, overflow < 0, field);
}

static bool take_value(PyObject *value, struct wire_api_field *field)
{
	const struct core_text *text;

	if (PyLong_Check(value)) {
		take_integer(value, field);
	} else if (PyFloat_Check(value)) {
		field->type = WIRE_RANGE_DOUBLE;
		field->real = PyFloat_AsDouble(value);
	} else {
		field->type = WIRE_RANGE_TEXT;
		text = core_text_of(value);
		field->text = text ? text->text : NULL;
		return text;
	}
	return true;
}

int core_fields_of(PyObject *fields, struct wire_api_field *ret_fields)
{
	PyObject *name, *value;
	Py_ssize_t position = 0;
	int count = 0;

	while (fields && count < WIRE_RANGE_MAX_FIELDS &&
		PyDict_Next(fields, &position, &name, &value)) {
		const struct core_text *text = core_text_of(name);

		if (!text)
			return -1;
		ret_fields[count].name = text->text;
		if (!take_value(value, &ret_fields[count++]))
			return -1;
	}
	return count;
}
