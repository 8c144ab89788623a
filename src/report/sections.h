/* SPDX-License-Identifier: Apache-2.0 */
/* All sections: the table in section_table.c has their order. */
#pragma once

#include "report/section.h"

extern const struct report_section about_section, own_code_section, tables_section,
	inference_section, ranks_section, ranges_section, counters_section, energy_section,
	device_work_section, waiting_section, programs_section, left_out_section, account_section;

/* Where --by names them. */
extern const struct report_section steps_section, windows_section, graphs_section, phases_section,
	layers_section, experts_section;

/* Of traces. */
extern const struct report_section traces_section, cpu_summary_section, answer_section,
	temporal_section, idle_section, host_section, kernel_section, queue_section,
	bandwidth_section, launches_section, annotations_section, operators_section, path_section,
	sequences_section, memory_section, cpu_operators_section;
