/* SPDX-License-Identifier: Apache-2.0 */
#include "model/programs.h"

#include <stdlib.h>
#include <string.h>

#include "model/classify.h"

#define MOST_ANCESTORS 64 /* a damaged file may go in circles */

/* What starts programs for a user, and is not what the user is interested in. */
static const char *const launchers[] = {"sh", "bash", "dash", "ash", "zsh", "ksh", "fish",
	"busybox", "env", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "taskset",
	"numactl", "chrt", "time", "xargs", "sudo", "su", "doas", "runuser", "setpriv", "unshare",
	"nsenter", "chroot", "strace", "ltrace", "mpirun", "mpiexec", "mpirun.openmpi",
	"mpiexec.openmpi", "orterun", "orted", "prterun", "prted", "mpiexec.hydra",
	"hydra_pmi_proxy", "srun", "slurmstepd", "tini", "dumb-init", "script"};

static bool is_launcher(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		if (strcmp(name, launchers[i]) == 0)
			return true;
	}
	return false;
}

/* "/usr/bin/ffmpeg", not "/usr/lib/libc.so.6", "ld-linux.so" or "[vdso]". */
static bool is_system_executable(const struct model_module *module)
{
	const char *suffix = strstr(module->name, ".so");

	while (suffix && suffix[3] && suffix[3] != '.')
		suffix = strstr(suffix + 1, ".so");
	return !suffix && classify_is_system_path(module->path) && !is_launcher(module->name);
}

/* Returns false when there is none. */
static bool find_executables(const struct model *model, bool *candidates)
{
	bool found = false;

	for (size_t i = 0; i < model->modules.count; i++) {
		candidates[i] = is_system_executable(&model->modules.items[i]);
		found |= candidates[i];
	}
	return found;
}

static bool is_program(const struct model *model, const struct map_u64 *by_pid,
	const struct model_process *process)
{
	uint64_t parent;

	for (unsigned i = 0; i < MOST_ANCESTORS; i++) {
		if (!process->parent_pid || !map_u64_get(by_pid, process->parent_pid, &parent))
			return true;
		process = &model->processes.items[parent];
		if (!is_launcher(process->name))
			return false;
	}
	return false;
}

/* One bool for each process. */
static int find_programs(const struct model *model, bool *ret_programs)
{
	struct map_u64 by_pid = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->processes.count; i++)
		r = map_u64_set(&by_pid, model->processes.items[i].pid, i);
	for (size_t i = 0; r == 0 && i < model->processes.count; i++)
		ret_programs[i] = is_program(model, &by_pid, &model->processes.items[i]);
	map_u64_done(&by_pid);
	return r;
}

struct marking {
	const struct model *model;
	const bool *candidates; /* of modules */
	bool *stacks_seen;
	bool *modules;
};

static void mark_stack(struct marking *marking, uint32_t index)
{
	const struct model *model = marking->model;
	const struct model_stack *stack;

	if (index == MODEL_NONE || marking->stacks_seen[index])
		return;
	marking->stacks_seen[index] = true;
	stack = &model->stacks.items[index];
	for (uint32_t i = 0; i < stack->whole_count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];
		uint32_t module =
			model->functions.items[model->frames.items[frame].function].module;

		if (module != MODEL_NONE && marking->candidates[module])
			marking->modules[module] = true;
	}
}

static int mark_modules(const struct model *model, const bool *candidates, bool *modules)
{
	_cleanup_free_ bool *programs = calloc(model->processes.count + 1, sizeof(*programs));
	_cleanup_free_ bool *seen = calloc(model->stacks.count + 1, sizeof(*seen));
	struct marking marking = {model, candidates, seen, modules};
	int r = programs && seen ? find_programs(model, programs) : -ENOMEM;

	if (r < 0)
		return r;
	array_foreach (&model->samples, sample) {
		if (programs[model->threads.items[sample->thread].process])
			mark_stack(&marking, sample->stack);
	}
	array_foreach (&model->device_works, work) {
		if (programs[work->process]) {
			mark_stack(&marking, work->stack);
			mark_stack(&marking, work->launch_stack);
		}
	}
	array_foreach (&model->device_calls, call) {
		if (programs[call->process])
			mark_stack(&marking, call->stack);
	}
	return 0;
}

/* "python3 -u -c print()", and not the "-c" that multiprocessing starts its children with. */
static bool runs_command_text(const char *command_line)
{
	const char *word = command_line;
	size_t length = strcspn(word, " ");
	const char *slash = memrchr(word, '/', length), *name = slash ? slash + 1 : word;

	if (strncmp(name, "python", strlen("python")) != 0)
		return false;
	for (;;) {
		word += length;
		word += strspn(word, " ");
		length = strcspn(word, " ");
		if (length < 2 || word[0] != '-' || word[1] == '-')
			return false;
		if (word[length - 1] == 'c' && strspn(word + 1, "bBdEhiIOPqsSuvx") == length - 2)
			break;
		if ((word[1] == 'X' || word[1] == 'W') && length == 2) {
			word += length;
			word += strspn(word, " ");
			length = strcspn(word, " ");
		}
	}
	word += length;
	word += strspn(word, " ");
	return strncmp(word, "from multiprocessing.", strlen("from multiprocessing.")) != 0;
}

static bool has_command_text(const struct model *model)
{
	if (runs_command_text(model->session.command_line))
		return true;
	array_foreach (&model->processes, process) {
		if (runs_command_text(process->command_line))
			return true;
	}
	return false;
}

int programs_init(struct programs *programs, const struct model *model)
{
	_cleanup_free_ bool *candidates = calloc(model->modules.count + 1, sizeof(*candidates));
	int r = 0;

	*programs = (struct programs){.has_command_text = has_command_text(model)};
	programs->modules = calloc(model->modules.count + 1, sizeof(*programs->modules));
	if (!candidates || !programs->modules)
		r = -ENOMEM;
	else if (!model->session.whole_machine && find_executables(model, candidates))
		r = mark_modules(model, candidates, programs->modules);
	if (r < 0)
		programs_done(programs);
	return r;
}

void programs_done(struct programs *programs)
{
	free(programs->modules);
	*programs = (struct programs){0};
}
