/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sources of energy, and what they share. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include ARCH_HEADER(cpu)
#include "sources/energy/source.h"

const struct energy_source *const energy_sources[] = {
	&perf_energy,
	&powercap_energy,
	&hwmon_energy,
	&battery_energy,
	&nvml_energy,
	NULL,
};

struct energy_place energy_place_machine(void)
{
	struct arch_machine machine = arch_machine();

	return (struct energy_place){.root = "",
		.nvml = "libnvidia-ml.so.1",
		.is_amd = machine.is_amd,
		.is_guest = machine.is_guest};
}

struct energy_rail *energy_found_add(struct energy_found *found, enum wire_energy_part part,
	const char *device, const char *name_format, ...)
{
	struct energy_rail *rail = &found->rails[found->count];
	va_list arguments;

	if (found->count == ENERGY_MAX_RAILS)
		return NULL;
	found->count++;
	*rail = (struct energy_rail){
		.part = part,
		.quality = WIRE_ENERGY_COUNTER,
		.parent = -1,
		.relative_error = NAN,
	};
	snprintf(rail->device, sizeof(rail->device), "%s", device);
	va_start(arguments, name_format);
	vsnprintf(rail->name, sizeof(rail->name), name_format, arguments);
	va_end(arguments);
	return rail;
}

void energy_found_tried(struct energy_found *found, const char *path, int error)
{
	size_t length = strlen(found->absence.text);

	snprintf(found->absence.text + length, sizeof(found->absence.text) - length, "%s%s: %s",
		length ? ", " : "", path, strerror(-error));
}
