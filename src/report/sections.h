/* SPDX-License-Identifier: Apache-2.0 */
/* All sections, with the file of each: the table in section_table.c has their order. */
#pragma once

#include "report/section.h"

extern const struct report_section about_section;       /* about.c */
extern const struct report_section avoidable_section;   /* cpu/avoidable.c */
extern const struct report_section own_code_section;    /* cpu/own_code.c */
extern const struct report_section tables_section;      /* cpu/tables.c */
extern const struct report_section inference_section;   /* inference/inference.c */
extern const struct report_section ranks_section;       /* program/ranks.c */
extern const struct report_section ranges_section;      /* program/ranges.c */
extern const struct report_section recordings_section;  /* program/recordings.c */
extern const struct report_section counters_section;    /* program/counters.c */
extern const struct report_section energy_section;      /* energy/energy.c */
extern const struct report_section device_work_section; /* device/work.c */
extern const struct report_section waiting_section;     /* cpu/waiting.c */
extern const struct report_section programs_section;    /* cpu/tables.c */
extern const struct report_section left_out_section;    /* about.c */
extern const struct report_section account_section;     /* account.c */

/* Where --by names them. */
extern const struct report_section steps_section;   /* program/steps.c */
extern const struct report_section windows_section; /* program/windows.c */
extern const struct report_section graphs_section;  /* device/graphs.c */
extern const struct report_section client_section;  /* inference/client.c */
extern const struct report_section phases_section;  /* inference/phases.c */
extern const struct report_section layers_section;  /* inference/layers.c */
extern const struct report_section experts_section; /* inference/experts.c */

/* Of rows. */
extern const struct report_section traces_section;        /* traces.c */
extern const struct report_section cpu_summary_section;   /* program/cpu_summary.c */
extern const struct report_section answer_section;        /* device/answer.c */
extern const struct report_section temporal_section;      /* device/temporal.c */
extern const struct report_section idle_section;          /* device/idle.c */
extern const struct report_section syncs_section;         /* device/syncs.c */
extern const struct report_section host_section;          /* device/idle.c */
extern const struct report_section kernel_section;        /* device/kernels.c */
extern const struct report_section categories_section;    /* device/categories.c */
extern const struct report_section queue_section;         /* device/launches.c */
extern const struct report_section bandwidth_section;     /* device/copies.c */
extern const struct report_section launches_section;      /* device/launches.c */
extern const struct report_section calls_section;         /* device/calls.c */
extern const struct report_section stalls_section;        /* device/stalls.c */
extern const struct report_section annotations_section;   /* device/kernels.c */
extern const struct report_section modules_section;       /* program/modules.c */
extern const struct report_section operators_section;     /* program/operators.c */
extern const struct report_section roofline_section;      /* program/roofline.c */
extern const struct report_section path_section;          /* path/critical_path.c */
extern const struct report_section sequences_section;     /* program/sequences.c */
extern const struct report_section memory_section;        /* memory/memory.c */
extern const struct report_section unified_section;       /* memory/unified.c */
extern const struct report_section cpu_operators_section; /* program/cpu_operators.c */

/* device/kernel_counters.c */
extern const struct report_section kernel_counters_section;
