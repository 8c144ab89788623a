/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/energy_messages.h"

#include <math.h>
#include <string.h>

#include "base/macros.h"
#include "capture/fields.h"
#include "capture/row_state.h"

/* ---- writing ---- */

static void put_nonzero(struct strbuf *out, uint32_t number, uint64_t value)
{
	if (value)
		pb_put_u64(out, number, value);
}

/* Absent: not known. */
static void put_known(struct strbuf *out, uint32_t number, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (!isnan(value))
		pb_put_fixed64(out, number, bits);
}

static void put_some_text(struct strbuf *out, uint32_t number, const char *text)
{
	if (text && *text)
		pb_put_text(out, number, text);
}

void put_energy_domain(struct strbuf *packet, const struct wire_energy_domain *domain)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_ENERGY_DOMAIN);

	pb_put_u64(packet, ENERGY_DOMAIN_ID, domain->id);
	put_nonzero(packet, ENERGY_DOMAIN_PARENT, domain->parent);
	put_nonzero(packet, ENERGY_DOMAIN_PART, domain->part);
	put_nonzero(packet, ENERGY_DOMAIN_QUALITY, domain->quality);
	put_nonzero(packet, ENERGY_DOMAIN_IS_REPLAYED, domain->is_replayed);
	put_some_text(packet, ENERGY_DOMAIN_NAME, domain->name);
	put_some_text(packet, ENERGY_DOMAIN_SOURCE, domain->source);
	put_some_text(packet, ENERGY_DOMAIN_DEVICE, domain->device);
	put_nonzero(packet, ENERGY_DOMAIN_PERIOD, domain->period_ns);
	put_nonzero(packet, ENERGY_DOMAIN_COST, domain->cost_ns);
	put_known(packet, ENERGY_DOMAIN_ERROR, domain->relative_error);
	put_known(packet, ENERGY_DOMAIN_IDLE, domain->idle_w);
	put_known(packet, ENERGY_DOMAIN_LIMIT, domain->limit_w > 0 ? domain->limit_w : NAN);
	put_some_text(packet, ENERGY_DOMAIN_CPUS, domain->cpus);
	pb_end(packet, begin);
}

void put_energy_interval(struct strbuf *packet, const struct wire_energy_interval *interval)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_ENERGY_INTERVAL);

	pb_put_u64(packet, ENERGY_INTERVAL_DOMAIN, interval->domain);
	pb_put_u64(packet, ENERGY_INTERVAL_DURATION, interval->end_ns - interval->start_ns);
	if (interval->gap)
		pb_put_u64(packet, ENERGY_INTERVAL_GAP, interval->gap);
	else
		pb_put_u64(packet, ENERGY_INTERVAL_ENERGY, interval->energy_nj);
	if (interval->busy_ns != UINT64_MAX)
		pb_put_u64(packet, ENERGY_INTERVAL_BUSY, interval->busy_ns);
	pb_end(packet, begin);
}

void put_energy_state(struct strbuf *packet, const struct wire_energy_state *state)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_ENERGY_STATE);

	pb_put_u64(packet, ENERGY_STATE_DOMAIN, state->domain);
	if (state->temperature_mc != INT32_MIN)
		pb_put_u64(packet, ENERGY_STATE_TEMPERATURE,
			zigzag((uint64_t)(int64_t)state->temperature_mc));
	put_nonzero(packet, ENERGY_STATE_CLOCK, state->clock_mhz);
	pb_end(packet, begin);
}

void put_energy_absence(struct strbuf *packet, const struct wire_energy_absence *absence)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_ENERGY_ABSENCE);

	put_some_text(packet, ENERGY_ABSENCE_SOURCE, absence->source);
	put_some_text(packet, ENERGY_ABSENCE_REASON, absence->reason);
	pb_end(packet, begin);
}

/* ---- reading ---- */

static double double_of(struct pb_bytes bytes)
{
	uint64_t bits = 0;
	double value;

	for (unsigned i = 0; i < 8 && i < bytes.length; i++)
		bits |= (uint64_t)bytes.at[i] << 8 * i;
	memcpy(&value, &bits, sizeof(value));
	return isfinite(value) && value >= 0 ? value : NAN;
}

static void take_domain_number(const struct pb_field *field, struct wire_energy_domain *domain)
{
	switch (field->tag) {
	case PB_VARINT(ENERGY_DOMAIN_ID):
		domain->id = (uint32_t)MIN(field->value, (uint64_t)UINT32_MAX);
		break;
	case PB_VARINT(ENERGY_DOMAIN_PARENT):
		domain->parent = (uint32_t)MIN(field->value, (uint64_t)UINT32_MAX);
		break;
	case PB_VARINT(ENERGY_DOMAIN_PART):
		domain->part = field->value && field->value < WIRE_ENERGY_PART_MAX
				       ? (uint32_t)field->value
				       : WIRE_ENERGY_OTHER;
		break;
	case PB_VARINT(ENERGY_DOMAIN_QUALITY):
		domain->quality = field->value && field->value < WIRE_ENERGY_QUALITY_MAX
					  ? (uint32_t)field->value
					  : WIRE_ENERGY_ESTIMATED;
		break;
	case PB_VARINT(ENERGY_DOMAIN_IS_REPLAYED):
		domain->is_replayed = field->value;
		break;
	case PB_VARINT(ENERGY_DOMAIN_PERIOD):
		domain->period_ns = field->value;
		break;
	case PB_VARINT(ENERGY_DOMAIN_COST):
		domain->cost_ns = field->value;
		break;
	case PB_FIXED64(ENERGY_DOMAIN_ERROR):
		domain->relative_error = double_of(field->bytes);
		break;
	case PB_FIXED64(ENERGY_DOMAIN_IDLE):
		domain->idle_w = double_of(field->bytes);
		break;
	case PB_FIXED64(ENERGY_DOMAIN_LIMIT):
		domain->limit_w = double_of(field->bytes);
		break;
	}
}

int take_energy_domain(struct pb_bytes message, struct wire_energy_domain *ret_domain,
	struct energy_texts *ret_texts)
{
	struct wire_energy_domain domain = {
		.part = WIRE_ENERGY_OTHER,
		.quality = WIRE_ENERGY_ESTIMATED,
		.relative_error = NAN,
		.idle_w = NAN,
	};
	struct pb_cursor cursor = pb_cursor(message);
	struct energy_texts texts = {0};
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_BYTES(ENERGY_DOMAIN_NAME))
			texts.name = field.bytes;
		else if (field.tag == PB_BYTES(ENERGY_DOMAIN_SOURCE))
			texts.source = field.bytes;
		else if (field.tag == PB_BYTES(ENERGY_DOMAIN_DEVICE))
			texts.device = field.bytes;
		else if (field.tag == PB_BYTES(ENERGY_DOMAIN_CPUS))
			texts.cpus = field.bytes;
		else
			take_domain_number(&field, &domain);
	}
	*ret_domain = domain;
	*ret_texts = texts;
	return more;
}

int take_energy_interval(struct pb_bytes message, struct wire_energy_interval *interval)
{
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t duration_ns = 0;
	struct pb_field field;
	int more;

	interval->busy_ns = UINT64_MAX;
	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(ENERGY_INTERVAL_DOMAIN))
			interval->domain = (uint32_t)MIN(field.value, (uint64_t)UINT32_MAX);
		else if (field.tag == PB_VARINT(ENERGY_INTERVAL_DURATION))
			duration_ns = field.value;
		else if (field.tag == PB_VARINT(ENERGY_INTERVAL_ENERGY))
			interval->energy_nj = field.value;
		else if (field.tag == PB_VARINT(ENERGY_INTERVAL_GAP))
			interval->gap = field.value < WIRE_ENERGY_GAP_MAX ? (uint32_t)field.value
									  : WIRE_ENERGY_READ_FAILED;
		else if (field.tag == PB_VARINT(ENERGY_INTERVAL_BUSY))
			interval->busy_ns = field.value;
	}
	if (interval->gap)
		interval->energy_nj = 0;
	interval->end_ns = interval->start_ns + MIN(duration_ns, UINT64_MAX - interval->start_ns);
	return more;
}

int take_energy_state(struct pb_bytes message, struct wire_energy_state *state)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	state->temperature_mc = INT32_MIN;
	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(ENERGY_STATE_DOMAIN))
			state->domain = (uint32_t)MIN(field.value, (uint64_t)UINT32_MAX);
		else if (field.tag == PB_VARINT(ENERGY_STATE_TEMPERATURE))
			state->temperature_mc = (int32_t)unzigzag(field.value);
		else if (field.tag == PB_VARINT(ENERGY_STATE_CLOCK))
			state->clock_mhz = (uint32_t)MIN(field.value, (uint64_t)UINT32_MAX);
	}
	return more;
}

int take_energy_absence(struct pb_bytes message, struct energy_texts *ret_texts)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct energy_texts texts = {0};
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_BYTES(ENERGY_ABSENCE_SOURCE))
			texts.source = field.bytes;
		else if (field.tag == PB_BYTES(ENERGY_ABSENCE_REASON))
			texts.reason = field.bytes;
	}
	*ret_texts = texts;
	return more;
}
