/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/cost.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KWH_PER_MWH 1000.0

struct unit {
	const char *text;
	double factor;
};

/* A number and one of the units, ended by one without text; false: it is not. */
static bool parse(const char *text, const struct unit *units, double *ret_value)
{
	char *end;
	double value;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	value = strtod(text, &end);
	for (const struct unit *unit = units; unit->text; unit++) {
		if (strcmp(end, unit->text) != 0)
			continue;
		*ret_value = value * unit->factor;
		return value < 1e12;
	}
	return false;
}

int energy_rates_parse_price(struct energy_rates *rates, const char *text, struct errmsg *err)
{
	static const struct unit units[] = {{"/kWh", 1}, {"/MWh", 1 / KWH_PER_MWH}, {0}};

	if (parse(text, units, &rates->price_per_kwh))
		return 0;
	return errmsg_set(err, -EINVAL,
		"--price '%.64s' is not a price of energy: give a number and /kWh or /MWh, such as "
		"0.25/kWh",
		text);
}

int energy_rates_parse_co2(struct energy_rates *rates, const char *text, struct errmsg *err)
{
	static const struct unit units[] = {{"g/kWh", 1}, {"kg/kWh", 1000},
		{"kg/MWh", 1000 / KWH_PER_MWH}, {"g/MWh", 1 / KWH_PER_MWH}, {0}};

	if (parse(text, units, &rates->co2_g_per_kwh))
		return 0;
	return errmsg_set(err, -EINVAL,
		"--co2 '%.64s' is not a carbon intensity: give a number and g/kWh, kg/kWh or "
		"kg/MWh, such as 400g/kWh",
		text);
}

double energy_kwh(double joules)
{
	return joules / JOULES_PER_KWH;
}

double energy_cost(const struct energy_rates *rates, double joules)
{
	return energy_kwh(joules) * rates->price_per_kwh;
}

double energy_co2_g(const struct energy_rates *rates, double joules)
{
	return energy_kwh(joules) * rates->co2_g_per_kwh;
}

double energy_car_miles(double co2_g)
{
	return co2_g / CAR_G_PER_MILE;
}
