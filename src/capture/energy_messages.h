/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of energy, written and read. */
#pragma once

#include "base/strbuf.h"
#include "capture/protobuf.h"
#include "wire/energy.h"

void put_energy_domain(struct strbuf *packet, const struct wire_energy_domain *domain);
/* Its start is the packet's timestamp, as is the time of a state. */
void put_energy_interval(struct strbuf *packet, const struct wire_energy_interval *interval);
void put_energy_state(struct strbuf *packet, const struct wire_energy_state *state);
void put_energy_absence(struct strbuf *packet, const struct wire_energy_absence *absence);

/* Texts of what was read, inside the packet; empty: not there. */
struct energy_texts {
	struct pb_bytes name, source, device, cpus, reason;
};

/*
 * Read all but the texts, and the times that are the packet's. Ids are the file's. Return 0, or
 * -EBADMSG where the fields do not decode.
 */
int take_energy_domain(struct pb_bytes message, struct wire_energy_domain *ret_domain,
	struct energy_texts *ret_texts);
int take_energy_interval(struct pb_bytes message, struct wire_energy_interval *interval);
int take_energy_state(struct pb_bytes message, struct wire_energy_state *state);
int take_energy_absence(struct pb_bytes message, struct energy_texts *ret_texts);
