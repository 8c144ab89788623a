/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/thread_names.h"

#include <string.h>

static bool has_python(const struct model *model, uint32_t index)
{
	const struct model_stack *stack = &model->stacks.items[index];

	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];

		if (model->functions.items[model->frames.items[frame].function].kind ==
			CAPTURE_FRAME_INTERPRETED)
			return true;
	}
	return false;
}

/* A thread that runs Python, and is called as its process is. */
static bool has_nameless_python_thread(const struct model *model)
{
	array_foreach (&model->samples, sample) {
		const struct model_thread *thread = &model->threads.items[sample->thread];
		const struct model_process *process = &model->processes.items[thread->process];

		if (thread->tid != process->pid && sample->stack != MODEL_NONE &&
			strcmp(thread->name, process->name) == 0 &&
			has_python(model, sample->stack))
			return true;
	}
	return false;
}

/* What is seen of a program that sonde did not start. */
const char *thread_names_missing(const struct model *model)
{
	const struct model_session *session = &model->session;

	if (!session->present || !session->cpu_count || *session->command_line ||
		!has_nameless_python_thread(model))
		return NULL;
	return "Python threads have the name of their process, because sonde attached to it: "
	       "before 3.14 CPython does not pass thread names to the system. sonde record -- "
	       "COMMAND has them from the start.";
}
