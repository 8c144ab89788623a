/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `jit SECONDS [nomap|atexit]`: machine code written at run time into anonymous memory, as a JIT
 * compiler does: jit_outer calls jit_inner, both keep frame pointers. Their names go to
 * /tmp/perf-PID.map at the start, or at the end as Java's DumpPerfMapAtExit writes them, or not at
 * all.
 */
#include <sys/mman.h>

#include "workload.h"

/* push rbp; mov rbp,rsp; call inner; pop rbp; ret; at 16 inner: push rbp; mov rbp,rsp; loop edi
 * times; pop rbp; ret */
static const unsigned char code[] = {
	0x55,
	0x48,
	0x89,
	0xe5,
	0xe8,
	0x07,
	0x00,
	0x00,
	0x00,
	0x5d,
	0xc3,
	0x90,
	0x90,
	0x90,
	0x90,
	0x90,
	0x55,
	0x48,
	0x89,
	0xe5,
	0x48,
	0x0f,
	0xaf,
	0xc0,
	0xff,
	0xcf,
	0x75,
	0xf8,
	0x5d,
	0xc3,
};
#define INNER_OFFSET 16

static void write_map(const void *start, char path[64])
{
	FILE *map;

	snprintf(path, 64, "/tmp/perf-%d.map", getpid());
	map = fopen(path, "we");
	if (!map)
		die(path);
	fprintf(map, "%lx %x jit_outer\n", (unsigned long)start, INNER_OFFSET);
	fprintf(map, "%lx %x jit_inner\n", (unsigned long)start + INNER_OFFSET,
		(unsigned)sizeof(code) - INNER_OFFSET);
	fclose(map);
}

static NOINLINE void call_generated(void (*function)(unsigned))
{
	function(100000);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);
	bool at_exit = argc > 2 && strcmp(argv[2], "atexit") == 0;
	bool write_names = argc < 3;
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*function)(unsigned);
	char path[64];

	if (memory == MAP_FAILED)
		die("mmap");
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) < 0)
		die("mprotect");
	if (write_names)
		write_map(memory, path);
	*(void **)&function = memory;
	ready();
	while (cpu_s() < end)
		call_generated(function);
	if (write_names)
		unlink(path);
	if (at_exit)
		write_map(memory, path);
	return 0;
}
