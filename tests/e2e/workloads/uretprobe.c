/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `uretprobe SECONDS`: puts return probes on its own probed_outer and probed_inner (two on the
 * latter, so that they chain) and then works below them: on the stack both return addresses are the
 * kernel's trampoline. Prints "no uprobes" and ends with status 77 where that is not allowed.
 */
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "workload.h"

SPIN_FUNCTION(probed_spin)

static NOINLINE void probed_inner(double end)
{
	while (cpu_s() < end)
		probed_spin(100);
	KEEP_FRAME();
}

static NOINLINE void probed_outer(double end)
{
	probed_inner(end);
	KEEP_FRAME();
}

static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

static int probe_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (file && fscanf(file, "%d", &type) != 1)
		type = -1;
	if (file)
		fclose(file);
	return type;
}

/* The program's own text begins at a file offset equal to its virtual address, as linkers lay out
 * small programs. */
static int probe_return(const void *function)
{
	struct perf_event_attr attributes = {
		.size = sizeof(attributes),
		.type = (uint32_t)probe_type(),
		.config = 1, /* return probe */
		.uprobe_path = (uintptr_t)self_path(),
	};
	uintptr_t base = 0;

	dl_iterate_phdr(find_base, &base);
	attributes.probe_offset = (uintptr_t)function - base;
	return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);

	if (probe_return((void *)probed_outer) < 0 || probe_return((void *)probed_inner) < 0 ||
		probe_return((void *)probed_inner) < 0) {
		printf("no uprobes: %s\n", strerror(errno));
		return 77;
	}
	ready();
	probed_outer(end);
	return 0;
}
