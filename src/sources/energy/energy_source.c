/* SPDX-License-Identifier: Apache-2.0 */
/* Power and energy: the sampler, and what a recording asks of it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sources/source.h"

/* A recording waits for sources to be open: those that take longer are measured later. */
#define OPEN_NS          (300 * NS_PER_MS)
#define OPEN_ASKED_NS    (2 * NS_PER_S)
#define OPEN_REQUIRED_NS (10 * NS_PER_S)
/* Two looks while the machine is at rest: the queues hold ten seconds. */
#define BASELINE_LOOK_MS 100

struct energy_state {
	struct energy_sampler *sampler;
	bool is_finished;
};

static bool is_off(const struct source_settings *settings)
{
	return !settings->energy || strcmp(settings->energy, "off") == 0;
}

static int energy_probe(const struct source_settings *settings, struct errmsg *reason)
{
	if (!is_off(settings))
		return 0;
	if (settings->require_energy || settings->energy_baseline_ns)
		return errmsg_set(reason, -EINVAL,
			"--require-energy and --energy-baseline need --energy: leave --energy off "
			"out");
	return !settings->energy_model;
}

/* ---- what must be there ---- */

static int find_part(const char *name, size_t length)
{
	for (unsigned part = 1; part < WIRE_ENERGY_PART_MAX; part++) {
		const char *known = wire_energy_part_name(part);

		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return (int)part;
	}
	return -EINVAL;
}

static bool has_part(const struct energy_sampler *sampler, int part)
{
	for (unsigned i = 0; i < energy_sampler_count(sampler); i++) {
		const struct wire_energy_domain *domain = &energy_sampler_at(sampler, i)->domain;

		if (domain->part == (unsigned)part && domain->quality != WIRE_ENERGY_ESTIMATED)
			return true;
	}
	return false;
}

/* Sources that could give the part but were not asked. */
static void name_others(const struct energy_sampler *sampler, int part, struct strbuf *out)
{
	for (const struct energy_source *const *source = energy_sources; *source; source++) {
		const struct energy_source *asked;
		bool was_asked = false;

		for (unsigned i = 0; energy_sampler_absence(sampler, i, &asked); i++)
			was_asked |= asked == *source;
		if (!was_asked && (*source)->parts & ENERGY_PART(part))
			strbuf_addf(out, "%s%s", out->length ? ", " : "", (*source)->name);
	}
}

/* Says of the sources that could give the part why they do not. */
static int refuse(const struct energy_sampler *sampler, int part, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf tried = {0}, others = {0};
	const struct energy_source *source;
	const char *absence;

	for (unsigned i = 0; (absence = energy_sampler_absence(sampler, i, &source)); i++) {
		if (source->parts & ENERGY_PART(part))
			strbuf_addf(&tried, "\n  %s: %s", source->name,
				*absence ? absence : "it has no such rail here");
	}
	name_others(sampler, part, &others);
	if (others.length)
		strbuf_addf(&tried, "\n  not tried, as --energy does not name them: %s",
			strbuf_cstr(&others));
	return errmsg_set(err, -ENODATA,
		"the energy of %s cannot be measured, which --require-energy asks for; nothing was "
		"started. What was tried:%s",
		wire_energy_part_name((enum wire_energy_part)part),
		tried.length ? strbuf_cstr(&tried) : " nothing: no source measures it");
}

static int check_required(
	const struct energy_sampler *sampler, const char *required, struct errmsg *err)
{
	while (required) {
		size_t length = strcspn(required, ",");
		int part = find_part(required, length);

		if (part < 0)
			return errmsg_set(err, -EINVAL,
				"--require-energy does not know %.*s: give cpu, gpu, dram or "
				"platform, separated by commas",
				(int)MIN(length, (size_t)64), required);
		if (!has_part(sampler, part))
			return refuse(sampler, part, err);
		required = required[length] ? required + length + 1 : NULL;
	}
	return 0;
}

/* ---- the machine at rest ---- */

/* A signal ends it. */
static int measure_baseline(
	struct energy_sampler *sampler, const struct source_settings *settings, struct errmsg *err)
{
	uint64_t end_ns = monotonic_now_ns() + settings->energy_baseline_ns;
	struct pollfd signals = {.fd = settings->interrupt_fd, .events = POLLIN};
	int r = 0;

	while (r == 0 && monotonic_now_ns() < end_ns) {
		if (poll(&signals, 1, BASELINE_LOOK_MS) > 0)
			return errmsg_set(err, -EINTR,
				"interrupted while the idle machine was measured "
				"(--energy-baseline); the command was not started");
		r = energy_sampler_drain(sampler, NULL);
	}
	energy_sampler_take_baseline(sampler);
	return r;
}

/* ---- the recording ---- */

static int open_sampler(
	struct energy_state *state, const struct source_settings *settings, struct errmsg *err)
{
	bool is_auto = settings->energy && strcmp(settings->energy, "auto") == 0;
	struct energy_sampler_options options = {
		.sources = is_off(settings) ? NULL : settings->energy,
		.model = settings->energy_model,
		.wait_ns = settings->require_energy ? OPEN_REQUIRED_NS
			   : is_auto                ? OPEN_NS
						    : OPEN_ASKED_NS,
	};
	int r = energy_sampler_open(&state->sampler, &options, err);

	if (r == 0)
		r = check_required(state->sampler, settings->require_energy, err);
	if (r == 0 && settings->energy_baseline_ns)
		r = measure_baseline(state->sampler, settings, err);
	return r;
}

static void energy_close(void *pointer)
{
	struct energy_state *state = pointer;

	energy_sampler_free(state->sampler);
	free(state);
}

static int energy_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct energy_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	r = open_sampler(state, settings, err);
	if (r < 0) {
		energy_close(state);
		return r;
	}
	*ret_state = state;
	return 0;
}

static void energy_capabilities(void *pointer, struct source_capabilities *offered)
{
	const struct energy_state *state = pointer;

	offered->processor_energy = has_part(state->sampler, WIRE_ENERGY_CPU) ||
				    has_part(state->sampler, WIRE_ENERGY_CORES);
}

static int energy_start(void *pointer, struct errmsg *err)
{
	struct energy_state *state = pointer;

	energy_sampler_start(state->sampler, monotonic_now_ns());
	return 0;
}

static int energy_drain(void *pointer, const struct source_sink *sink)
{
	struct energy_state *state = pointer;

	return state->is_finished ? 0 : energy_sampler_drain(state->sampler, sink->energy);
}

static int energy_finish(void *pointer, uint64_t end_ns, const struct source_sink *sink)
{
	struct energy_state *state = pointer;

	state->is_finished = true;
	return energy_sampler_finish(state->sampler, end_ns, sink->energy);
}

/* "package-0 45.2 J (21.5 W), gpu0 1.2 kJ (410 W)", of each rail that is in no other. */
static void energy_account(void *pointer, struct source_account *account)
{
	const struct energy_state *state = pointer;
	_cleanup_strbuf_ struct strbuf text = {0};

	for (unsigned i = 0; state->is_finished && i < energy_sampler_count(state->sampler); i++) {
		const struct energy_sampled *sampled = energy_sampler_at(state->sampler, i);
		double joules = (double)sampled->energy_nj / 1e9;

		if (!sampled->measured_ns)
			continue;
		strbuf_addf(&text, "%s%s %.4g J (%.4g W%s)", text.length ? ", " : "",
			sampled->domain.name, joules,
			(double)sampled->energy_nj / (double)sampled->measured_ns,
			sampled->domain.is_replayed                        ? ", replayed"
			: sampled->domain.quality == WIRE_ENERGY_ESTIMATED ? ", estimated"
									   : "");
	}
	errmsg_set(&account->energy, 0, "%s", strbuf_cstr(&text));
}

static void energy_notes(void *pointer, source_note_function *add, void *context)
{
	const struct energy_state *state = pointer;

	energy_sampler_notes(state->sampler, add, context);
}

const struct source energy_source = {
	.name = "energy",
	.moment = SOURCE_BEFORE_COMMAND,
	.probe = energy_probe,
	.open = energy_open,
	.capabilities = energy_capabilities,
	.start = energy_start,
	.drain = energy_drain,
	.finish = energy_finish,
	.account = energy_account,
	.notes = energy_notes,
	.close = energy_close,
};
