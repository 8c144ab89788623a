/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/map_guard.h"

#include <stdint.h>
#include <sys/mman.h>

static struct sigaction previous;
static __thread struct map_guard *current;

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	struct map_guard *guard = current;
	uintptr_t at = (uintptr_t)info->si_addr;

	if (guard && info->si_code == BUS_ADRERR && at - (uintptr_t)guard->memory < guard->bytes &&
		mmap(guard->memory, guard->bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			0) != MAP_FAILED) {
		guard->is_cut = 1;
		return;
	}
	/* It happens again, and then it is theirs. */
	sigaction(signal, &previous, NULL);
}

void map_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, now;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, &action, &now) == 0 && now.sa_sigaction != on_bus_error)
		previous = now;
}

void map_guard_enter(struct map_guard *guard)
{
	current = guard;
}

void map_guard_leave(void)
{
	current = NULL;
}
