/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `sonde doctor` tries and what follows from it. Every check does the thing itself (loads a
 * program, opens an event, reads the file) instead of trusting a version or a configuration file.
 *
 * To add a source (checks.c): its checks with their probe functions as lines of
 * doctor_checks[], and one line of doctor_sources[] that names the checks it requires and those
 * that make it better.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum doctor_status {
	DOCTOR_WORKS,
	DOCTOR_PARTLY,
	DOCTOR_NO,
	DOCTOR_STATUS_MAX,
};

struct doctor_result {
	enum doctor_status status;
	char detail[320]; /* what was found, for a person */
	char fix[400];    /* the command that gets it; "" when it works or nothing can be done */
};

struct doctor_check {
	const char *name;    /* stable, for scripts */
	const char *enables; /* what it is needed for */
	void (*probe)(struct doctor_result *ret_result);
};

#define DOCTOR_NEEDS_MAX 12

struct doctor_source {
	const char *name;  /* stable, for scripts */
	const char *title; /* what a user gets from it */
	/* Names of checks. Without a required one the source does not work; one that works partly
	 * makes it partly. */
	const char *required[DOCTOR_NEEDS_MAX];
	/* Without one of these the source works partly. */
	const char *helpful[DOCTOR_NEEDS_MAX];
	bool samples_cpu; /* one of these must work for an exit status of 0 */
};

/* A kernel setting that is shown as it is. */
struct doctor_setting {
	const char *name, *path;
};

/* All end with an all-zero entry. */
extern const struct doctor_check doctor_checks[];
extern const struct doctor_source doctor_sources[];
extern const struct doctor_setting doctor_settings[];

void doctor_works(struct doctor_result *ret_result, const char *format, ...) _printf_(2, 3);
void doctor_partly(struct doctor_result *ret_result, const char *fix, const char *format, ...)
	_printf_(3, 4);
void doctor_no(struct doctor_result *ret_result, const char *fix, const char *format, ...)
	_printf_(3, 4);

/* The command that gives this program the capabilities it uses; right for a container too. */
const char *doctor_privilege_fix(void);
/* The value of /proc/sys/kernel/NAME, -1 when it cannot be read. */
long doctor_sysctl(const char *name);
/*
 * Names of those capabilities in the mask `wanted` that this process lacks, "" when it has them
 * all. Valid until the next call.
 */
const char *doctor_missing_capabilities(uint64_t wanted);
#define DOCTOR_CAPABILITY(number) (1ULL << (number))

/* Probes of bpf.c */
void doctor_probe_bpf_program(struct doctor_result *ret_result);
void doctor_probe_bpf_loop(struct doctor_result *ret_result);
void doctor_probe_task_iterator(struct doctor_result *ret_result);
void doctor_probe_bpf_maps(struct doctor_result *ret_result);
void doctor_probe_bpf_attach(struct doctor_result *ret_result);
void doctor_probe_wait_end(struct doctor_result *ret_result);
/* Probes of perf.c */
void doctor_probe_perf_own(struct doctor_result *ret_result);
void doctor_probe_perf_buffer(struct doctor_result *ret_result);
void doctor_probe_counters(struct doctor_result *ret_result);
void doctor_probe_sideband(struct doctor_result *ret_result);
void doctor_probe_sideband_own(struct doctor_result *ret_result);
/* The sampling event of one CPU for the whole machine. Returns a descriptor or a negative errno. */
int doctor_open_machine_clock(void);
/* Probes of device.c */
void doctor_probe_inject_library(struct doctor_result *ret_result);
void doctor_probe_opencl_driver(struct doctor_result *ret_result);
void doctor_probe_nvidia_driver(struct doctor_result *ret_result);
void doctor_probe_cupti(struct doctor_result *ret_result);
void doctor_probe_cuda_variable(struct doctor_result *ret_result);
void doctor_probe_amd_driver(struct doctor_result *ret_result);
void doctor_probe_rocprofiler(struct doctor_result *ret_result);
void doctor_probe_python_hooks(struct doctor_result *ret_result);
/* Probes of name.c */
void doctor_probe_name_on_path(struct doctor_result *ret_result);
void doctor_probe_name_in_python(struct doctor_result *ret_result);
/* Probes of system.c */
void doctor_probe_kernel_release(struct doctor_result *ret_result);
void doctor_probe_btf(struct doctor_result *ret_result);
void doctor_probe_procmap_query(struct doctor_result *ret_result);
void doctor_probe_map_files(struct doctor_result *ret_result);
void doctor_probe_other_processes(struct doctor_result *ret_result);
void doctor_probe_kallsyms(struct doctor_result *ret_result);
void doctor_probe_capabilities(struct doctor_result *ret_result);
void doctor_probe_tracefs(struct doctor_result *ret_result);
void doctor_probe_cgroup2(struct doctor_result *ret_result);
void doctor_probe_pid_namespace(struct doctor_result *ret_result);
void doctor_probe_debug_info(struct doctor_result *ret_result);
