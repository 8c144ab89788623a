/* SPDX-License-Identifier: Apache-2.0 */
/* The section on power and energy of `sonde doctor`: its sources open themselves, see
 * sources/energy/source.h. */
#pragma once

#include "base/errmsg.h"
#include "base/json.h"
#include "base/strbuf.h"

struct energy_sampler;

/* Opens all sources and watches them for a moment. NULL with a sentence; free it by
 * energy_sampler_free(). */
struct energy_sampler *doctor_energy_open(struct errmsg *err);
/* `column`: where details begin. */
void doctor_energy_report(
	struct strbuf *out, struct energy_sampler *sampler, unsigned column, size_t width);
/* The member "energy". */
void doctor_energy_json(struct json_writer *json, struct energy_sampler *sampler);
