/* SPDX-License-Identifier: Apache-2.0 */
/* Kineto's names of kinds of activity ("cat"), those of its first years and other devices too. */
#include "importers/kineto/parser.h"

static const struct {
	const char *name;
	enum trace_category category;
} categories[] = {
	{"cpu_op", TRACE_CPU_OP},
	{"Operator", TRACE_CPU_OP},
	{"user_annotation", TRACE_USER_ANNOTATION},
	{"python_function", TRACE_PYTHON_FUNCTION},
	{"cuda_runtime", TRACE_RUNTIME},
	{"Runtime", TRACE_RUNTIME},
	{"hip_runtime", TRACE_RUNTIME},
	{"xpu_runtime", TRACE_RUNTIME},
	{"mtia_runtime", TRACE_RUNTIME},
	{"glow_runtime", TRACE_RUNTIME},
	{"privateuse1_runtime", TRACE_RUNTIME},
	{"cuda_driver", TRACE_DRIVER},
	{"xpu_driver", TRACE_DRIVER},
	{"privateuse1_driver", TRACE_DRIVER},
	{"kernel", TRACE_KERNEL},
	{"Kernel", TRACE_KERNEL},
	{"mtia_ccp_events", TRACE_KERNEL},
	{"hpu_op", TRACE_KERNEL},
	{"gpu_memcpy", TRACE_MEMCPY},
	{"Memcpy", TRACE_MEMCPY},
	{"gpu_memset", TRACE_MEMSET},
	{"Memset", TRACE_MEMSET},
	{"gpu_user_annotation", TRACE_GPU_ANNOTATION},
	{"cuda_sync", TRACE_SYNC},
	{"xpu_sync", TRACE_SYNC},
	{"overhead", TRACE_OVERHEAD},
	{"cpu_instant_event", TRACE_CPU_INSTANT},
};

int kineto_add_categories(struct kineto_parser *parser)
{
	parser->first_category = (uint32_t)parser->trace->strings.entries.count;
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		const char *name = categories[i].name;
		uint32_t string;
		int r = intern_add(&parser->trace->strings, name, strlen(name), &string);

		if (r < 0)
			return r;
	}
	return 0;
}

int kineto_add_category(
	struct kineto_parser *parser, const struct json_text *value, uint32_t *ret_string)
{
	int r;

	if (kineto_is_last(&parser->last_category_text, value)) {
		*ret_string = parser->last_category;
		return 0;
	}
	r = kineto_add_string(parser, value, ret_string);
	if (r < 0)
		return r;
	kineto_set_last(&parser->last_category_text, value);
	parser->last_category = *ret_string;
	return 0;
}

enum trace_category kineto_category(const struct kineto_parser *parser, uint32_t name)
{
	uint32_t index = name - parser->first_category;

	return index < ARRAY_SIZE(categories) ? categories[index].category : TRACE_OTHER;
}
