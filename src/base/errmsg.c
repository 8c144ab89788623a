/* SPDX-License-Identifier: Apache-2.0 */
#include "base/errmsg.h"

#include <stdarg.h>
#include <stdio.h>

int errmsg_set(struct errmsg *err, int error, const char *format, ...)
{
	va_list arguments;

	if (!err)
		return error;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	return error;
}
