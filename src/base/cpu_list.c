/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu_list.h"

#include <string.h>

#include "base/macros.h"

/* At most CPU_NUMBERS, which is no processor. */
static bool take_number(const char **at, unsigned *ret_number)
{
	unsigned number = 0;

	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; ++*at)
		number = MIN(number * 10 + (unsigned)(**at - '0'), (unsigned)CPU_NUMBERS);
	*ret_number = number;
	return true;
}

bool cpu_list_next(const char **at, unsigned *ret_first, unsigned *ret_last)
{
	if (!take_number(at, ret_first))
		return false;
	*ret_last = *ret_first;
	if (**at == '-') {
		++*at;
		if (!take_number(at, ret_last))
			return false;
	}
	if (**at == ',')
		++*at;
	return *ret_first <= *ret_last && *ret_last < CPU_NUMBERS;
}

bool cpu_list_is_valid(const char *text)
{
	unsigned first, last, after = 0;

	while (cpu_list_next(&text, &first, &last)) {
		if (first < after)
			return false;
		after = last + 1;
	}
	return after && !*text && text[-1] != ',';
}

void cpu_set_parse(struct cpu_set *ret_set, const char *text)
{
	unsigned first, last, after = 0;

	memset(ret_set, 0, sizeof(*ret_set));
	/* In order, so that no text takes more than one look at each processor. */
	while (cpu_list_next(&text, &first, &last) && first >= after) {
		for (after = first; after <= last; after++)
			cpu_set_add(ret_set, after);
	}
}

void cpu_set_add(struct cpu_set *set, unsigned cpu)
{
	if (cpu < CPU_NUMBERS)
		set->words[cpu / 64] |= 1ULL << cpu % 64;
}

bool cpu_set_has(const struct cpu_set *set, unsigned cpu)
{
	return cpu < CPU_NUMBERS && set->words[cpu / 64] >> cpu % 64 & 1;
}

void cpu_set_format(const struct cpu_set *set, struct strbuf *out)
{
	bool is_first = true;

	for (unsigned cpu = 0; cpu < CPU_NUMBERS; cpu++) {
		unsigned last = cpu;

		if (!cpu_set_has(set, cpu))
			continue;
		while (cpu_set_has(set, last + 1))
			last++;
		strbuf_addf(out, "%s%u", is_first ? "" : ",", cpu);
		if (last > cpu)
			strbuf_addf(out, "-%u", last);
		is_first = false;
		cpu = last;
	}
}
