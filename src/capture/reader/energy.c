/* SPDX-License-Identifier: Apache-2.0 */
/* Reading energy. A domain's id is of its sequence: here it becomes one of the whole read. */
#include "capture/energy_messages.h"
#include "capture/fields.h"
#include "capture/reader/state.h"

/* No machine has as many rails; a hostile file's would cost memory. */
#define MAX_DOMAINS 4096

static int read_text(struct reader *reader, struct pb_bytes bytes, const char **ret_text)
{
	*ret_text = "";
	return bytes.at ? reader_text(reader, bytes, ret_text) : 0;
}

static int domain_id(
	struct reader *reader, struct sequence *sequence, uint32_t id, uint32_t *ret_id)
{
	int r;

	*ret_id = iid_table_get(&sequence->energy_domains, id);
	if (*ret_id)
		return 0;
	if (reader->energy_domain_count == MAX_DOMAINS)
		return reader_corrupt(reader, "it has more than 4096 domains of energy");
	r = iid_table_set(&sequence->energy_domains, id, reader->energy_domain_count + 1);
	if (r < 0)
		return r;
	*ret_id = ++reader->energy_domain_count;
	return 0;
}

int reader_energy_domain(struct reader *reader, struct sequence *sequence, struct pb_bytes message)
{
	struct wire_energy_domain domain;
	struct energy_texts texts;
	int r = take_energy_domain(message, &domain, &texts);

	if (r == 0 && !domain.id)
		return reader_corrupt(reader, "a domain of energy has no id");
	/* A parent that was not recorded is none; and so is the domain itself. */
	domain.parent = domain.parent != domain.id
				? iid_table_get(&sequence->energy_domains, domain.parent)
				: WIRE_ENERGY_NO_DOMAIN;
	if (r == 0)
		r = domain_id(reader, sequence, domain.id, &domain.id);
	if (r == 0)
		r = read_text(reader, texts.name, &domain.name);
	if (r == 0)
		r = read_text(reader, texts.source, &domain.source);
	if (r == 0)
		r = read_text(reader, texts.device, &domain.device);
	if (r == 0)
		r = read_text(reader, texts.cpus, &domain.cpus);
	if (domain.parent >= domain.id) /* written again, with one that came later */
		domain.parent = WIRE_ENERGY_NO_DOMAIN;
	return r < 0 ? r : reader_visit(reader, energy_domain, &domain);
}

int reader_energy_interval(struct reader *reader, const struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message)
{
	struct wire_energy_interval interval = {.start_ns = time_ns};
	int r = take_energy_interval(message, &interval);

	interval.domain = iid_table_get(&sequence->energy_domains, interval.domain);
	if (r < 0 || !interval.domain || interval.end_ns == interval.start_ns)
		return r;
	return reader_visit(reader, energy_interval, &interval);
}

int reader_energy_state(struct reader *reader, const struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message)
{
	struct wire_energy_state state = {.time_ns = time_ns};
	int r = take_energy_state(message, &state);

	state.domain = iid_table_get(&sequence->energy_domains, state.domain);
	return r < 0 || !state.domain ? r : reader_visit(reader, energy_state, &state);
}

int reader_energy_absence(struct reader *reader, struct pb_bytes message)
{
	struct wire_energy_absence absence;
	struct energy_texts texts;
	int r = take_energy_absence(message, &texts);

	if (r == 0)
		r = read_text(reader, texts.source, &absence.source);
	if (r == 0)
		r = read_text(reader, texts.reason, &absence.reason);
	return r < 0 ? r : reader_visit(reader, energy_absence, &absence);
}
