/* SPDX-License-Identifier: Apache-2.0 */
#include "report/section.h"

#include <string.h>

/* Appends a name that is not there yet; one that is there gets the summary that it lacks. */
static size_t add_name(
	struct report_name *names, size_t count, size_t size, const struct report_name *name)
{
	for (size_t i = 0; name->by && i < count; i++) {
		if (strcmp(names[i].by, name->by) != 0)
			continue;
		if (!names[i].summary)
			names[i].summary = name->summary;
		return count;
	}
	if (!name->by || count == size)
		return count;
	names[count] = *name;
	return count + 1;
}

size_t report_section_names(struct report_name *names, size_t size)
{
	size_t count = 0;

	for (const struct report_section *const *section = report_sections; *section; section++) {
		const struct report_name first = {(*section)->by, (*section)->summary};

		count = add_name(names, count, size, &first);
		for (const struct report_name *name = (*section)->also; name && name->by; name++)
			count = add_name(names, count, size, name);
	}
	return count;
}

size_t report_section_names_of(unsigned kinds, struct report_name *names, size_t size)
{
	size_t all = report_section_names(names, size), count = 0;

	for (size_t i = 0; i < all; i++) {
		if (report_section_find(names[i].by, kinds))
			names[count++] = names[i];
	}
	return count;
}
