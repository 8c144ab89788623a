/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/runtimes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text.h"

struct runtime {
	const char *program; /* the name of its process begins like this */
	const char *library; /* that its programs map whatever they are called; NULL: none */
	struct runtime_advice advice;
};

/* From the runtimes' own documentation of their perf maps and frame pointers. */
static const struct runtime runtimes[] = {
	{"java", "libjvm.so",
		{"it is Java's, start it with -XX:+UnlockDiagnosticVMOptions "
		 "-XX:+DumpPerfMapAtExit (JDK 17 or later)",
			"generated code without frame pointers: start Java with "
			"-XX:+PreserveFramePointer"}},
	{"node", "libnode.so",
		{"it is V8's, start node with --perf-basic-prof",
			"generated code without frame pointers: V8's own keeps them, look for an "
			"add-on that generates code"}},
	{"dotnet", "libcoreclr.so",
		{"it is .NET's, set DOTNET_PerfMapEnabled=1 for it",
			"generated code without frame pointers: .NET's own keeps them, look for a "
			"library that generates code"}},
	{"luajit", "libluajit-5.1.so",
		{"it is LuaJIT's, which writes /tmp/perf-PID.map only if it is built with "
		 "-DLUAJIT_USE_PERFTOOLS",
			"LuaJIT's code keeps no frame pointers: -joff runs its interpreter, which "
			"has unwind tables"}},
	{"python", NULL,
		{"it is Python's, start it with -X perf (3.12 or later)",
			"generated code without frame pointers: a library of the program made it "
			"(numba, PyPy)"}},
	{"ruby", "libruby.so",
		{"it is YJIT's, start ruby with --yjit-perf",
			"generated code without frame pointers: start ruby with --yjit-perf, which "
			"keeps them"}},
	{"php", NULL,
		{"it is PHP's, set opcache.jit_debug=0x10",
			"generated code without frame pointers: PHP's JIT keeps none"}},
};

static const struct runtime_advice unknown = {
	"have its runtime write /tmp/perf-PID.map (node: --perf-basic-prof)",
	"generated code without frame pointers: turn them on in its runtime",
};

static bool has_library(const struct model *model, const char *library)
{
	array_foreach (&model->modules, module) {
		if (library && begins_with(module->name, library))
			return true;
	}
	return false;
}

/* By the name of the process, else by what programs of the recording have mapped. */
static const struct runtime_advice *advice_for(
	const struct model *model, const struct model_process *process)
{
	for (size_t i = 0; process && i < ARRAY_SIZE(runtimes); i++) {
		if (begins_with(process->name, runtimes[i].program))
			return &runtimes[i].advice;
	}
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		if (has_library(model, runtimes[i].library))
			return &runtimes[i].advice;
	}
	return &unknown;
}

static bool lies_in_generated_code(const struct model *model, uint32_t stack)
{
	uint32_t leaf = model_stack_leaf(model, stack);
	const struct model_function *function;

	if (leaf == MODEL_NONE)
		return false;
	function = &model->functions.items[model->frames.items[leaf].function];
	return function->unnamed &&
	       strcmp(model_module_name(model, function->module), "[anon]") == 0;
}

static bool is_cut_in_generated_code(const struct model *model, uint32_t stack)
{
	unsigned stop = model->stacks.items[stack].stop;

	return stop == WIRE_STOP_FRAME_POINTER || stop == WIRE_STOP_NO_MAPPING;
}

/* The process that most samples with such stacks are of; NULL: none has any. */
static const struct model_process *worst_process(const struct model *model,
	const struct selected *selected, uint64_t *by_process,
	bool (*counts)(const struct model *model, uint32_t stack))
{
	const struct model_process *worst = NULL;
	uint64_t most = 0;

	memset(by_process, 0, model->processes.count * sizeof(*by_process));
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		if (selected->samples[i] && sample->stack != MODEL_NONE &&
			counts(model, sample->stack))
			by_process[model->threads.items[sample->thread].process] += sample->count;
	}
	for (size_t i = 0; i < model->processes.count; i++) {
		if (by_process[i] <= most)
			continue;
		most = by_process[i];
		worst = &model->processes.items[i];
	}
	return worst;
}

int runtime_advice_init(
	struct runtime_advice *advice, const struct model *model, const struct selected *selected)
{
	_cleanup_free_ uint64_t *by_process =
		calloc(model->processes.count + 1, sizeof(*by_process));

	if (!by_process)
		return -ENOMEM;
	advice->names = advice_for(
		model, worst_process(model, selected, by_process, lies_in_generated_code))
				->names;
	advice->frames = advice_for(
		model, worst_process(model, selected, by_process, is_cut_in_generated_code))
				 ->frames;
	return 0;
}
