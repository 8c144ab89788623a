/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session/energy.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "collect/session/internal.h"
#include "sources/energy/sampler.h"

/* A recording waits for sources to be open: those that take longer are measured later. */
#define OPEN_NS          (300 * NS_PER_MS)
#define OPEN_ASKED_NS    (2 * NS_PER_S)
#define OPEN_REQUIRED_NS (10 * NS_PER_S)
/* Two looks while the machine is at rest: the queues hold ten seconds. */
#define BASELINE_LOOK_MS 100

static int write_domain(void *context, const struct wire_energy_domain *domain)
{
	return capture_writer_energy_domain(context, domain);
}

static int write_interval(void *context, const struct wire_energy_interval *interval)
{
	return capture_writer_energy_interval(context, interval);
}

static int write_state(void *context, const struct wire_energy_state *state)
{
	return capture_writer_energy_state(context, state);
}

static int write_absence(void *context, const struct wire_energy_absence *absence)
{
	return capture_writer_energy_absence(context, absence);
}

static struct energy_sink sink_of(const struct session *session)
{
	return (struct energy_sink){
		.context = session->writer,
		.domain = write_domain,
		.interval = write_interval,
		.state = write_state,
		.absence = write_absence,
	};
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
		"the energy of %s cannot be measured, which --require-energy asks for; nothing "
		"was started. What was tried:%s",
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
				"--require-energy knows no %.*s: give cpu, gpu, dram or platform, "
				"several with commas between them",
				(int)MIN(length, (size_t)64), required);
		if (!has_part(sampler, part))
			return refuse(sampler, part, err);
		required = required[length] ? required + length + 1 : NULL;
	}
	return 0;
}

/* ---- the machine at rest ---- */

/* Signals are blocked, and end it. */
static int measure_baseline(struct session *session, struct errmsg *err)
{
	uint64_t end_ns = monotonic_now_ns() + session->options->energy_baseline_ns;
	struct pollfd signals = {.fd = session->signal_fd, .events = POLLIN};
	int r = 0;

	while (r == 0 && monotonic_now_ns() < end_ns) {
		if (poll(&signals, 1, BASELINE_LOOK_MS) > 0)
			return errmsg_set(err, -EINTR,
				"interrupted while the machine at rest was measured "
				"(--energy-baseline); the command was not started");
		r = energy_sampler_drain(session->energy, NULL);
	}
	energy_sampler_take_baseline(session->energy);
	return r;
}

/* ---- the recording ---- */

int session_open_energy(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	bool is_auto = options->energy && strcmp(options->energy, "auto") == 0;
	bool is_off = !options->energy || strcmp(options->energy, "off") == 0;
	struct energy_sampler_options sampling = {
		.sources = is_off ? NULL : options->energy,
		.model = options->energy_model,
		.wait_ns = options->require_energy ? OPEN_REQUIRED_NS
			   : is_auto               ? OPEN_NS
						   : OPEN_ASKED_NS,
	};
	int r;

	if (is_off && (options->require_energy || options->energy_baseline_ns))
		return errmsg_set(err, -EINVAL,
			"--require-energy and --energy-baseline need --energy: leave --energy off "
			"out");
	if (is_off && !options->energy_model)
		return 0;
	r = energy_sampler_open(&session->energy, &sampling, err);
	if (r == 0)
		r = check_required(session->energy, options->require_energy, err);
	if (r == 0 && options->energy_baseline_ns)
		r = measure_baseline(session, err);
	return r;
}

void session_start_energy(struct session *session)
{
	if (session->energy)
		energy_sampler_start(session->energy, session->start_ns);
}

int session_collect_energy(struct session *session)
{
	struct energy_sink sink = sink_of(session);

	/* The rest is cut at the recording's end. */
	if (!session->energy || session->sampling_ended)
		return 0;
	return energy_sampler_drain(session->energy, &sink);
}

/* "package-0 45.2 J (21.5 W), gpu0 1.2 kJ (410 W)", of each rail that is in no other. */
static void summarise(struct session *session)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (unsigned i = 0; i < energy_sampler_count(session->energy); i++) {
		const struct energy_sampled *sampled = energy_sampler_at(session->energy, i);
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
	errmsg_set(&session->result->energy, 0, "%s", strbuf_cstr(&text));
}

int session_finish_energy(struct session *session)
{
	struct energy_sink sink = sink_of(session);
	int r;

	if (!session->energy)
		return 0;
	r = energy_sampler_finish(session->energy, session->end_ns, &sink);
	summarise(session);
	return r;
}

void session_add_energy_notes(
	struct session *session, void (*add)(void *context, const char *sentence))
{
	if (session->energy)
		energy_sampler_notes(session->energy, add, session);
}

void session_close_energy(struct session *session)
{
	session->energy = energy_sampler_free(session->energy);
}
