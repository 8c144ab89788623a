/* SPDX-License-Identifier: Apache-2.0 */
/* A value of a column in the runs database. What is not known is NULL, never 0. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum store_type {
	STORE_NULL,
	STORE_INTEGER,
	STORE_NUMBER,
	STORE_TEXT,
};

struct store_value {
	enum store_type type;
	union {
		int64_t integer;
		double number;
		const char *text; /* the giver's */
	};
};

static inline struct store_value store_null(void)
{
	return (struct store_value){.type = STORE_NULL};
}

static inline struct store_value store_integer(int64_t value)
{
	return (struct store_value){.type = STORE_INTEGER, .integer = value};
}

/* What no column can hold is not known, either. */
static inline struct store_value store_u64(uint64_t value)
{
	return value > INT64_MAX ? store_null() : store_integer((int64_t)value);
}

/* Null where it is 0, which then means that it is not known. */
static inline struct store_value store_known(uint64_t value)
{
	return value ? store_u64(value) : store_null();
}

static inline struct store_value store_number(double value)
{
	return isfinite(value) ? (struct store_value){.type = STORE_NUMBER, .number = value}
			       : store_null();
}

/* Null for NULL and "". */
static inline struct store_value store_text(const char *text)
{
	return text && *text ? (struct store_value){.type = STORE_TEXT, .text = text}
			     : store_null();
}

/* As a number; NaN: it is none. */
static inline double store_as_number(const struct store_value *value)
{
	return value->type == STORE_NUMBER    ? value->number
	       : value->type == STORE_INTEGER ? (double)value->integer
					      : NAN;
}

/* "" where it is none. */
static inline const char *store_as_text(const struct store_value *value)
{
	return value->type == STORE_TEXT ? value->text : "";
}
