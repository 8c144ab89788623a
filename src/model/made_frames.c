/* SPDX-License-Identifier: Apache-2.0 */
#include "model/made_frames.h"

#include <string.h>

int model_make_frame(struct model *model, const char *name, uint32_t module,
	enum capture_frame_kind kind, enum model_class class, uint32_t *ret_frame)
{
	struct model_function function = {
		.module = module, .source_file = "", .kind = kind, .class = class};
	struct model_frame frame = {
		.function = (uint32_t)model->functions.count, .source_file = ""};
	uint32_t id, made = (uint32_t)model->frames.count;
	int r = intern_add(&model->strings, name, strlen(name), &id);

	if (r < 0)
		return r;
	function.name = intern_get(&model->strings, id);
	r = array_append(&model->functions, function);
	if (r < 0)
		return r;
	r = array_append(&model->frames, frame);
	if (r < 0)
		return r;
	*ret_frame = made;
	return 0;
}

int model_make_module(struct model *model, const char *name, uint32_t *ret_module)
{
	*ret_module = (uint32_t)model->modules.count;
	return array_append(&model->modules, (struct model_module){.path = name, .name = name});
}
