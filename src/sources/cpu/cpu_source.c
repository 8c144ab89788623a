/* SPDX-License-Identifier: Apache-2.0 */
/* CPU samples: by the BPF sampler where it can run, else by the perf sampler. */
#include <errno.h>
#include <stdlib.h>

#include "sources/cpu/sampler.h"
#include "sources/source.h"

struct cpu_state {
	const struct cpu_sampler *sampler;
	void *sampler_state;
	bool samples;
	struct errmsg reason; /* why it is not the BPF sampler; "" */
	struct bpf_sampler_parts parts;
};

static int choose_sampler(const struct source_settings *settings,
	const struct cpu_sampler **ret_sampler, struct errmsg *ret_reason, struct errmsg *err)
{
	*ret_sampler = &bpf_sampler;
	ret_reason->text[0] = '\0';
	if (!settings->may_use_bpf)
		errmsg_set(ret_reason, 0, "asked for with --mode user");
	else if (bpf_sampler.probe(ret_reason) == 0)
		return 0;
	else if (settings->must_use_bpf)
		return errmsg_set(err, -EPERM, "stacks cannot be unwound in the kernel: %s",
			ret_reason->text);
	if (settings->whole_machine)
		return errmsg_set(err, -EPERM,
			"cannot record the whole machine without the BPF mode (%s); name a command "
			"or a process",
			ret_reason->text);
	*ret_sampler = &perf_sampler;
	return perf_sampler.probe(err);
}

static int cpu_probe(const struct source_settings *settings, struct errmsg *err)
{
	const struct cpu_sampler *sampler;
	struct errmsg reason;

	return choose_sampler(settings, &sampler, &reason, err);
}

static int cpu_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	const struct cpu_sampler_options options = {
		.period_ns = settings->period_ns,
		.whole_machine = settings->whole_machine,
		.counts_work = offered->processor_energy,
	};
	struct cpu_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	state->samples = settings->samples;
	r = choose_sampler(settings, &state->sampler, &state->reason, err);
	if (r == 0)
		r = state->sampler->open(&state->sampler_state, &options, err);
	if (r < 0) {
		free(state);
		return r;
	}
	*ret_state = state;
	return 0;
}

static void cpu_capabilities(void *pointer, struct source_capabilities *offered)
{
	struct cpu_state *state = pointer;

	offered->unwind_mode = state->sampler->name;
	offered->unwind_mode_reason = state->reason.text;
	if (state->sampler->unwinder)
		state->sampler->unwinder(state->sampler_state, &offered->unwinder);
	if (state->sampler != &bpf_sampler)
		return;
	bpf_sampler_parts(state->sampler_state, &state->parts);
	offered->bpf = &state->parts;
}

static int cpu_follow(void *pointer, uint32_t pid, struct errmsg *err)
{
	struct cpu_state *state = pointer;

	return state->sampler->follow(state->sampler_state, pid, err);
}

/* Without samples it is there for the stacks of launches alone. */
static int cpu_start(void *pointer, struct errmsg *err)
{
	struct cpu_state *state = pointer;

	return state->samples ? state->sampler->start(state->sampler_state, err) : 0;
}

static int cpu_set_active(void *pointer, bool active)
{
	struct cpu_state *state = pointer;

	return state->samples ? state->sampler->set_active(state->sampler_state, active) : 0;
}

static size_t cpu_descriptors(void *pointer, int *ret_fds, size_t capacity)
{
	struct cpu_state *state = pointer;

	return state->sampler->descriptors(state->sampler_state, ret_fds, capacity);
}

static int cpu_drain(void *pointer, const struct source_sink *sink)
{
	struct cpu_state *state = pointer;

	return state->sampler->drain(state->sampler_state, sink->record, sink->context);
}

static void cpu_stop(void *pointer)
{
	struct cpu_state *state = pointer;

	state->sampler->stop(state->sampler_state);
}

static void cpu_account(void *pointer, struct source_account *account)
{
	struct cpu_state *state = pointer;
	struct cpu_sampler_account *figures = calloc(1, sizeof(*figures));

	if (!figures)
		return;
	state->sampler->account(state->sampler_state, figures);
	account->sampling.count += figures->run_count;
	account->sampling.time_ns += figures->run_time_ns;
	for (uint32_t cpu = 0; cpu < figures->cpu_count; cpu++) {
		source_account_lost(account, "sample_ring", cpu, figures->lost_per_cpu[cpu]);
		account->samples_lost += figures->lost_per_cpu[cpu];
	}
	free(figures);
}

static void cpu_notes(void *pointer, source_note_function *add, void *context)
{
	struct cpu_state *state = pointer;
	struct cpu_sampler_account *figures = calloc(1, sizeof(*figures));
	char *rest, *sentence;

	if (!figures)
		return;
	state->sampler->account(state->sampler_state, figures);
	for (rest = figures->notes; (sentence = strsep(&rest, "\n"));) {
		if (*sentence)
			add(context, sentence);
	}
	free(figures);
}

static void cpu_close(void *pointer)
{
	struct cpu_state *state = pointer;

	state->sampler->close(state->sampler_state);
	free(state);
}

const struct source cpu_source = {
	.name = "cpu",
	.moment = SOURCE_WITH_COMMAND,
	.probe = cpu_probe,
	.open = cpu_open,
	.capabilities = cpu_capabilities,
	.follow = cpu_follow,
	.start = cpu_start,
	.set_active = cpu_set_active,
	.descriptors = cpu_descriptors,
	.drain = cpu_drain,
	.stop = cpu_stop,
	.account = cpu_account,
	.notes = cpu_notes,
	.close = cpu_close,
};
