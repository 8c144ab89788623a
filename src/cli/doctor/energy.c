/* SPDX-License-Identifier: Apache-2.0 */
/* Which sources of power and energy there are, what they read, and at what cost. */
#include "cli/doctor/energy.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/text.h"
#include "model/format.h"
#include "sources/energy/sampler.h"

/* For sources to be open, and for counters to step. */
#define OPEN_NS  (3 * NS_PER_S)
#define WATCH_NS (400 * NS_PER_MS)

struct energy_sampler *doctor_energy_open(struct errmsg *err)
{
	const struct energy_sampler_options options = {.sources = "auto", .wait_ns = OPEN_NS};
	const struct timespec watch = {.tv_nsec = WATCH_NS};
	struct energy_sampler *sampler = NULL;

	if (energy_sampler_open(&sampler, &options, err) < 0)
		return NULL;
	if (energy_sampler_count(sampler))
		nanosleep(&watch, NULL);
	return sampler;
}

/* The first domain of the source from `index` on; NULL: there is no further one. */
static const struct energy_sampled *domain_of(
	const struct energy_sampler *sampler, const struct energy_source *source, unsigned *index)
{
	while (*index < energy_sampler_count(sampler)) {
		const struct energy_sampled *sampled = energy_sampler_at(sampler, (*index)++);

		if (strcmp(sampled->domain.source, source->name) == 0)
			return sampled;
	}
	return NULL;
}

static const char *status_of(const struct energy_sampler *sampler,
	const struct energy_source *source, const char *absence)
{
	unsigned index = 0;

	if (!*absence)
		return "works";
	return domain_of(sampler, source, &index) ? "partly" : "no";
}

static const char *parent_name(
	const struct energy_sampler *sampler, const struct wire_energy_domain *domain)
{
	return domain->parent ? energy_sampler_at(sampler, domain->parent - 1)->domain.name : NULL;
}

static void add_domain(struct strbuf *out, const struct energy_sampler *sampler,
	const struct energy_sampled *sampled)
{
	const struct wire_energy_domain *domain = &sampled->domain;
	const char *parent = parent_name(sampler, domain);

	strbuf_addf(out, "%s (%s, %s", domain->name, wire_energy_part_name(domain->part),
		wire_energy_quality_name(domain->quality));
	if (*domain->device)
		strbuf_addf(out, ", %s", domain->device);
	if (parent)
		strbuf_addf(out, ", in %s", parent);
	strbuf_add(out, "): read every ");
	format_duration(out, sampled->tick_ns);
	strbuf_add(out, ", which takes ");
	format_duration(out, domain->cost_ns);
	if (domain->period_ns) {
		strbuf_add(out, "; updated every ");
		format_duration(out, domain->period_ns);
	}
}

void doctor_energy_report(
	struct strbuf *out, struct energy_sampler *sampler, unsigned column, size_t width)
{
	const struct energy_source *source;
	const char *absence;

	strbuf_add(out, "\nPower and energy:\n");
	energy_sampler_drain(sampler, NULL);
	for (unsigned i = 0; (absence = energy_sampler_absence(sampler, i, &source)); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};
		const struct energy_sampled *sampled;
		unsigned index = 0;

		strbuf_addf(out, "  %-*s%s\n", (int)column - 2, status_of(sampler, source, absence),
			source->title);
		while ((sampled = domain_of(sampler, source, &index))) {
			strbuf_add(&text, text.length ? "; " : "");
			add_domain(&text, sampler, sampled);
		}
		if (*absence)
			strbuf_addf(&text, "%s%s", text.length ? ". " : "", absence);
		else if (!text.length)
			strbuf_add(&text, "reads what another source reads already");
		text_pad(out, column);
		text_wrap(out, strbuf_cstr(&text), column, column, width);
	}
}

static void json_domain(struct json_writer *json, const struct energy_sampler *sampler,
	const struct energy_sampled *sampled)
{
	const struct wire_energy_domain *domain = &sampled->domain;
	const char *parent = parent_name(sampler, domain);

	json_begin_object(json);
	json_key(json, "name");
	json_string(json, domain->name);
	json_key(json, "part");
	json_string(json, wire_energy_part_name(domain->part));
	json_key(json, "quality");
	json_string(json, wire_energy_quality_name(domain->quality));
	json_key(json, "device");
	json_string(json, domain->device);
	json_key(json, "parent");
	if (parent)
		json_string(json, parent);
	else
		json_null(json);
	json_key(json, "tick_ns");
	json_u64(json, sampled->tick_ns);
	json_key(json, "cost_ns");
	json_u64(json, domain->cost_ns);
	json_key(json, "period_ns");
	if (domain->period_ns)
		json_u64(json, domain->period_ns);
	else
		json_null(json);
	json_key(json, "relative_error");
	json_double(json, domain->relative_error, 3);
	json_end_object(json);
}

void doctor_energy_json(struct json_writer *json, struct energy_sampler *sampler)
{
	const struct energy_source *source;
	const char *absence;

	energy_sampler_drain(sampler, NULL);
	json_key(json, "energy");
	json_begin_array(json);
	for (unsigned i = 0; (absence = energy_sampler_absence(sampler, i, &source)); i++) {
		const struct energy_sampled *sampled;
		unsigned index = 0;

		json_begin_object(json);
		json_key(json, "name");
		json_string(json, source->name);
		json_key(json, "title");
		json_string(json, source->title);
		json_key(json, "status");
		json_string(json, status_of(sampler, source, absence));
		json_key(json, "detail");
		if (*absence)
			json_string(json, absence);
		else
			json_null(json);
		json_key(json, "domains");
		json_begin_array(json);
		while ((sampled = domain_of(sampler, source, &index)))
			json_domain(json, sampler, sampled);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}
