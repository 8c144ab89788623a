/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the extension share. All of it with the GIL held. */
#pragma once

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "wire/api.h"
#include "wire/range.h"

/* In the limited API from 3.10 on, and what they are since 3.7. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
typedef PyObject *(*_PyCFunctionFast)(PyObject *self, PyObject *const *args, Py_ssize_t count);
#endif

/* NULL: there is no session. */
extern const struct wire_api *core_calls;

static inline bool core_is_open(void)
{
	const _Atomic uint32_t *state;

	if (!core_calls)
		return false;
	state = atomic_load_explicit(core_calls->state, memory_order_relaxed);
	return atomic_load_explicit(state, memory_order_relaxed) == WIRE_API_OPEN;
}

/* ---- texts and fields: _core_text.c ---- */

/* What was made of a str: it is kept, so that its address stays its own. */
struct core_text {
	PyObject *object, *bytes;
	void *text;   /* with a session */
	void *domain; /* once it was used as one */
};

/* NULL, and an exception, when there is no memory. Good until the next call. */
const struct core_text *core_text_of(PyObject *object);
/* The domain's handle; that of NULL is sonde's own, which is NULL. False: an exception is set. */
bool core_domain_of(PyObject *object, void **ret_domain);
/* None is taken for NULL. False: an exception is set; `what` is the argument. */
bool core_check_text(const char *what, PyObject **object);
bool core_check_fields(PyObject **fields);
/* How many of a dict that was checked; -1: an exception is set. */
int core_fields_of(PyObject *fields, struct wire_api_field *ret_fields);

/* ---- ranges: _core_range.c ---- */

/* With an open gate and checked arguments. False: an exception is set. */
bool core_push(PyObject *name, PyObject *domain, PyObject *fields);
bool core_pop(PyObject *domain);
/* The type `range`; NULL: an exception is set. */
PyObject *core_range_type(void);

/* ---- parts of watched models: _core_part.c ---- */

/* The type `part`; NULL: an exception is set. */
PyObject *core_part_type(void);
/* The owners of the parts that this thread has open, the innermost last. */
PyObject *core_parts_open(PyObject *self, PyObject *unused);
/* Ends those beyond the first `count`. */
PyObject *core_parts_end(PyObject *self, PyObject *count);
