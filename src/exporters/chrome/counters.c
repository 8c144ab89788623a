/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chrome/counters.h"

#include <math.h>

#include "base/json.h"
#include "exporters/chrome/ranges.h"

void chrome_add_counters(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers)
{
	array_foreach (&model->counters, counter) {
		struct json_writer json = {.out = out};

		if (!isfinite(counter->value))
			continue;
		strbuf_add_bytes(out, ",\n", 2);
		json_begin_object(&json);
		json_member_text(&json, "ph", "C");
		json_member_text(&json, "name", counter->name);
		json_member_u64(&json, "pid", process_numbers[counter->process]);
		json_key(&json, "args");
		json_begin_object(&json);
		json_member_double(&json, "value", counter->value);
		json_end_object(&json);
		chrome_add_time(out, clock, counter->time_ns);
		strbuf_add_char(out, '}');
	}
}
