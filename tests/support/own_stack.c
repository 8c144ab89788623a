/* SPDX-License-Identifier: Apache-2.0 */
#include "own_stack.h"

#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define shape __attribute__((noinline, noclone))

/* A function's own return address, without what the processor signs it with. */
#define NOTE_CALLER()                                                                              \
	(own_stack.callers[own_stack.count++] =                                                    \
			(uint64_t)(uintptr_t)__builtin_extract_return_addr(                        \
				__builtin_return_address(0)))

struct own_stack own_stack;

static volatile int sink;
static own_stack_function *innermost;

static shape int run_inner(own_stack_function *inner)
{
	NOTE_CALLER();
	inner();
	return ++sink;
}

/* Needs a register that calls keep for itself. */
static shape int keeps_registers(own_stack_function *inner, int a, int b, int c)
{
	NOTE_CALLER();
	return run_inner(inner) + a * b + c;
}

static shape int variable_frame(own_stack_function *inner, size_t size)
{
	char *room = alloca(size);

	NOTE_CALLER();
	memset(room, (int)size, size);
	return keeps_registers(inner, room[size / 2], 2, 3) + room[0];
}

static shape int realigned_frame(own_stack_function *inner, int seed)
{
	_Alignas(64) char room[128];

	NOTE_CALLER();
	memset(room, seed, sizeof(room));
	return variable_frame(inner, (size_t)(100 + (room[seed & 63] & 15))) + room[1];
}

/* Too large for the offsets of one instruction. */
static shape int large_frame(own_stack_function *inner, int seed)
{
	char room[20000];

	NOTE_CALLER();
	memset(room, seed, sizeof(room));
	return realigned_frame(inner, 5) + room[seed & 255];
}

static shape int recursive(own_stack_function *inner, int depth)
{
	char room[48];

	NOTE_CALLER();
	memset(room, depth, sizeof(room));
	return depth ? recursive(inner, depth - 1) + room[depth & 15] : large_frame(inner, 3);
}

int own_stack_plain(own_stack_function *inner)
{
	NOTE_CALLER();
	return recursive(inner, 3) + sink;
}

static int compare(const void *left, const void *right)
{
	if (innermost) {
		own_stack_function *inner = innermost;

		innermost = NULL;
		NOTE_CALLER();
		run_inner(inner);
	}
	return *(const int *)left - *(const int *)right;
}

int own_stack_called_back(own_stack_function *inner)
{
	int numbers[] = {4, 3, 1, 2};

	NOTE_CALLER();
	innermost = inner;
	qsort(numbers, 4, sizeof(*numbers), compare);
	return numbers[0] + sink;
}

/* ---- signals ---- */

#if defined(__aarch64__)
#define UNDEFINED       "udf #0"
#define UNDEFINED_BYTES 4
#define SA_RESTORER     0x04000000

/* Without call frame information, as in static programs with other C libraries. */
void own_stack_restorer(void);
__asm__(".text\n"
	".p2align 4\n"
	".globl own_stack_restorer\n"
	".hidden own_stack_restorer\n"
	".type own_stack_restorer, @function\n"
	".p2align 5\n"
	"nop\n"
	"own_stack_restorer:\n"
	"mov x8, #139\n"
	"svc #0\n"
	".p2align 5\n"
	".size own_stack_restorer, . - own_stack_restorer\n");

static uint64_t *pc_of(ucontext_t *context)
{
	return (uint64_t *)&context->uc_mcontext.pc;
}

/* The kernel's own way back lies in its vDSO, which an emulator has not. */
static void install(void (*handler)(int, siginfo_t *, void *))
{
	const struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {handler, SA_SIGINFO | SA_RESTORER, own_stack_restorer, 0};

	syscall(SYS_rt_sigaction, SIGILL, &action, NULL, sizeof(action.mask));
}
#else
#define UNDEFINED       "ud2"
#define UNDEFINED_BYTES 2

static uint64_t *pc_of(ucontext_t *context)
{
	return (uint64_t *)&context->uc_mcontext.gregs[REG_RIP];
}

static void install(void (*handler)(int, siginfo_t *, void *))
{
	const struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	sigaction(SIGILL, &action, NULL);
}
#endif

static void on_signal(int number, siginfo_t *info, void *context)
{
	uint64_t *pc = pc_of(context);

	(void)number;
	(void)info;
	/* Interrupted, not called: the address is looked up as it is. */
	own_stack.callers[own_stack.count++] = *pc + 1;
	run_inner(innermost);
	*pc += UNDEFINED_BYTES;
}

/* Saves nothing, so that its return address is where the call left it. */
void own_stack_leaf(void);
__asm__(".text\n"
	".p2align 4\n"
	".globl own_stack_leaf\n"
	".hidden own_stack_leaf\n"
	".type own_stack_leaf, @function\n"
	"own_stack_leaf:\n"
	".cfi_startproc\n" UNDEFINED "\n"
	"ret\n"
	".cfi_endproc\n"
	".size own_stack_leaf, . - own_stack_leaf\n");

int own_stack_interrupted(own_stack_function *inner)
{
	NOTE_CALLER();
	innermost = inner;
	install(on_signal);
	own_stack_leaf();
	signal(SIGILL, SIG_DFL);
	return ++sink;
}
