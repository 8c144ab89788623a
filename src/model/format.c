/* SPDX-License-Identifier: Apache-2.0 */
#include "model/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MINUTES_FROM_S 600

/* Three significant digits of a value below 1000, and what comes after it. */
static void add_digits(struct strbuf *out, double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	strbuf_addf(out, "%.*f %s", decimals, value, unit);
}

static void add_minutes(struct strbuf *out, uint64_t seconds)
{
	if (seconds >= 3600)
		strbuf_addf(out, "%llu h %llu min", (unsigned long long)(seconds / 3600),
			(unsigned long long)(seconds / 60 % 60));
	else
		strbuf_addf(out, "%llu min %llu s", (unsigned long long)(seconds / 60),
			(unsigned long long)(seconds % 60));
}

void format_duration(struct strbuf *out, uint64_t ns)
{
	double value = (double)ns;

	if (ns >= MINUTES_FROM_S * NS_PER_S)
		add_minutes(out, (ns + NS_PER_S / 2) / NS_PER_S);
	else if (value >= 999.5 * NS_PER_MS)
		add_digits(out, value / NS_PER_S, "s");
	else if (value >= 999.5 * NS_PER_US)
		add_digits(out, value / NS_PER_MS, "ms");
	else if (ns >= NS_PER_US)
		add_digits(out, value / NS_PER_US, "\xc2\xb5s");
	else
		strbuf_addf(out, "%llu %s", (unsigned long long)ns, ns ? "ns" : "s");
}

void format_duration_change(struct strbuf *out, double seconds)
{
	strbuf_add_char(out, seconds < 0 ? '-' : '+');
	format_duration(out, (uint64_t)(fabs(seconds) * NS_PER_S + 0.5));
}

void format_energy(struct strbuf *out, double joules)
{
	static const struct {
		double from;
		const char *name;
	} units[] = {{1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}, {1e-6, "\xc2\xb5J"}};
	double size = fabs(joules);

	if (joules < 0)
		strbuf_add_char(out, '-');
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (size >= 0.9995 * units[i].from) {
			add_digits(out, size / units[i].from, units[i].name);
			return;
		}
	}
	strbuf_add(out, size > 0 ? "under 1 \xc2\xb5J" : "0 J");
}

void format_weight(struct strbuf *out, const struct model *model, uint64_t samples)
{
	if (model->counts_energy)
		format_energy(out, (double)samples / 1e6);
	else if (model->counts_bytes)
		format_bytes(out, samples);
	else if (model_has_time(model))
		format_duration(out, samples * model_sample_weight_ns(model));
	else
		format_count(out, samples);
}

void format_count(struct strbuf *out, uint64_t count)
{
	strbuf_add_count(out, count);
}

void format_rate(struct strbuf *out, double value)
{
	if (value >= 9999.5 && value < 1e18)
		format_count(out, (uint64_t)llround(value));
	else
		strbuf_addf(out, "%.4g", value);
}

void format_plural(struct strbuf *out, uint64_t count, const char *one, const char *many)
{
	format_count(out, count);
	strbuf_addf(out, " %s", count == 1 ? one : many);
}

void format_command(struct strbuf *out, const char *command)
{
	size_t length = strcspn(command, "\r\n");

	strbuf_add_bytes(out, command, length);
	command += length;
	while (length && command[-1] == ' ' && strchr("\r\n", *command) && *command) {
		command += strspn(command, "\r\n\t ");
		length = strcspn(command, "\r\n");
		strbuf_add_bytes(out, command, length);
		command += length;
	}
	if (command[strspn(command, "\r\n\t ")])
		strbuf_add(out, " \xe2\x80\xa6");
}

void format_bytes(struct strbuf *out, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		strbuf_addf(out, "%llu B", (unsigned long long)bytes);
		return;
	}
	for (value /= 1024; value >= 999.5 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		value /= 1024;
	add_digits(out, value, units[unit]);
}

void format_collector_cpu(
	struct strbuf *out, const struct capture_stats *stats, uint64_t duration_ns)
{
	uint64_t ends_ns = stats->collector_start_cpu_ns + stats->collector_end_cpu_ns;
	uint64_t steady_ns = stats->collector_cpu_ns - MIN(ends_ns, stats->collector_cpu_ns);

	if (!stats->collector_start_cpu_ns) {
		format_duration(out, stats->collector_cpu_ns);
		strbuf_add(out, " of CPU time");
		return;
	}
	strbuf_add(out, "start-up ");
	format_duration(out, stats->collector_start_cpu_ns);
	strbuf_add(out, " of CPU time, then ");
	if (duration_ns < NS_PER_S)
		format_duration(out, steady_ns);
	else
		strbuf_addf(
			out, "%.1f %% of a core", 100.0 * (double)steady_ns / (double)duration_ns);
	strbuf_add(out, ", end ");
	format_duration(out, stats->collector_end_cpu_ns);
}
