/* SPDX-License-Identifier: Apache-2.0 */
/* What joules cost, and the carbon dioxide that they stand for. */
#pragma once

#include "base/errmsg.h"

#define JOULES_PER_KWH 3.6e6
/* EPA-420-F-23-014, Tailpipe Greenhouse Gas Emissions from a Typical Passenger Vehicle, June 2023.
 */
#define CAR_G_PER_MILE 400.0

/* NaN: not given. */
struct energy_rates {
	double price_per_kwh, co2_g_per_kwh;
};

#define ENERGY_RATES_NONE                                                                          \
	{                                                                                          \
		__builtin_nan(""), __builtin_nan("")                                               \
	}

/* "0.25/kWh" or "250/MWh". Returns 0, or -EINVAL with a sentence. */
int energy_rates_parse_price(struct energy_rates *rates, const char *text, struct errmsg *err);
/* "400g/kWh", "0.4kg/kWh", "400kg/MWh". */
int energy_rates_parse_co2(struct energy_rates *rates, const char *text, struct errmsg *err);

double energy_kwh(double joules);
/* NaN where the rate, or the energy, is not known. */
double energy_cost(const struct energy_rates *rates, double joules);
double energy_co2_g(const struct energy_rates *rates, double joules);
/* What an average passenger car of the USA goes for as much carbon dioxide from its tailpipe. */
double energy_car_miles(double co2_g);
