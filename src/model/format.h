/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as people read them. Each appends to `out`. */
#pragma once

#include <stdint.h>

#include "base/strbuf.h"
#include "model/model.h"

/* Three digits and a unit: "1.23 s", "45.6 ms", "780 µs", "12 ns"; minutes and hours from 600 s on:
 * "12 min 3 s". */
void format_duration(struct strbuf *out, uint64_t ns);
/* The same with its sign: "+1.23 s", "-45.6 ms"; seconds in. */
void format_duration_change(struct strbuf *out, double seconds);
/* "12.3 J", "45.6 mJ", "780 µJ", "1.20 kJ". */
void format_energy(struct strbuf *out, double joules);
/* What samples stand for: their energy, their time, or where neither is known their count. */
void format_weight(struct strbuf *out, const struct model *model, uint64_t samples);
/* Thousands apart: "1,234,567". */
void format_count(struct strbuf *out, uint64_t count);
/* Four digits, never an exponent: "0.613", "59.12", "14,790". */
void format_rate(struct strbuf *out, double value);
/* "1 sample", "1,234 samples". */
void format_plural(struct strbuf *out, uint64_t count, const char *one, const char *many);
/* A command as part of a sentence or a row: its first line, and "…" where there are more. A line
 * that ends in a space, as `python -c ` and a text that begins on the next line, is no first line.
 */
void format_command(struct strbuf *out, const char *command);
/*
 * What sonde itself took: "start-up 540 ms of CPU time, then 0.4 % of a core, end 30 ms". Of
 * recordings of less than a second the second one is a time, too; of captures that do not say the
 * parts: "590 ms of CPU time".
 */
void format_collector_cpu(
	struct strbuf *out, const struct capture_stats *stats, uint64_t duration_ns);
/* Binary units: "12.3 MiB". */
void format_bytes(struct strbuf *out, uint64_t bytes);
