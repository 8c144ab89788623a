/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind_workload.h"

#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define shape __attribute__((noinline, noclone))

static volatile int sink;

/* Needs rbp and rbx for itself, so that both are saved and hold no frame. */
static shape int busy_registers(int seed)
{
	int result = seed;

	for (int i = 0; i < 3; i++) {
		__asm__ volatile("lea 1(%0), %%ebx\n\tmov %%ebx, %%ebp\n\tmov %%ebp, %0"
				 : "+r"(result)
				 :
				 : "rbx", "rbp");
		sink += result;
	}
	return result;
}

static shape int tail_called(int seed)
{
	return busy_registers(seed) + sink;
}

static shape int calls_in_tail_position(int seed)
{
	sink = seed;
	return tail_called(seed + 1);
}

static shape int variable_frame(size_t size)
{
	char *room = alloca(size);

	memset(room, (int)size, size);
	return calls_in_tail_position(room[size / 2]) + room[0];
}

static shape int realigned_frame(int seed)
{
	_Alignas(64) char room[128];

	memset(room, seed, sizeof(room));
	return variable_frame((size_t)(100 + (room[seed & 63] & 15))) + room[1];
}

/* Both at once: the frame is found through a saved pointer. */
static shape int realigned_variable_frame(int seed, int a, int b, int c, int d, int e, int f, int g)
{
	_Alignas(32) char room[64];
	char *more = alloca((size_t)(seed + 40));

	memset(room, a + g, sizeof(room));
	memset(more, b + f, (size_t)(seed + 40));
	return realigned_frame(room[c & 31] + more[d & 31] + e);
}

static shape int recursive(int depth)
{
	char room[48];

	memset(room, depth, sizeof(room));
	return depth ? recursive(depth - 1) + room[depth & 15]
		     : realigned_variable_frame(1, 2, 3, 4, 5, 6, 7, 8);
}

/* Called from libc, through the PLT and back. */
static int compare(const void *left, const void *right)
{
	return busy_registers(*(const int *)left) - busy_registers(*(const int *)right);
}

static shape int called_back(int seed)
{
	int numbers[] = {seed, 3, 1, 2};

	qsort(numbers, 4, sizeof(*numbers), compare);
	return numbers[0];
}

static void on_signal(int number)
{
	sink += busy_registers(number);
}

static shape int interrupted(int number)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(number, &action, NULL);
	return raise(number) + sink;
}

/* By this name: the wrapper that sanitizers put around vfork() hides its return address in memory
 * of its own. */
pid_t __vfork(void) __attribute__((returns_twice));

/* The return address waits in a register while the child runs on this stack. */
static shape int divides(int seed)
{
	pid_t child = __vfork();

	if (child == 0)
		_exit(seed);
	return child > 0;
}

int unwind_workload_inner(int seed)
{
	return busy_registers(seed);
}

static shape int run_assembly(int seed)
{
	int result = unwind_assembly_in_rbx(seed);

	result += unwind_assembly_in_memory(result & 7);
	result += unwind_assembly_pushes(0);
	result += unwind_assembly_pushes(1);
	result += unwind_assembly_frame_pointer(result & 7);
	result += unwind_assembly_tail(3);
	return result + unwind_assembly_leaf(result & 7);
}

int unwind_workload_run(void)
{
	int result = recursive(3) + run_assembly(2);

	result += called_back(result);
	result += interrupted(SIGUSR1);
	result += divides(result & 1);
	return result + sink;
}
