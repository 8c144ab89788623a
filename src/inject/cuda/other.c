/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of CUDA that launch nothing: what is written of all of them, and the tables of
 * cupti_other_calls.h, of which all but allocations are recorded with `--cuda-api all` alone. Of
 * the runtime's call and the driver's within it the outer one is written, as of launches; only
 * where code is loaded within another call both are, for that is what took its time. A thread is in
 * at most one such call of each domain: CUPTI calls back for what programs call, not for what the
 * driver calls of itself.
 */
#include "inject/cuda/cuda.h"

#include <string.h>

#include "inject/launch/stack.h"

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY, cudaErrorNotReady: what a query answers */

struct other_call {
	bool active;
	uint8_t role; /* CUDA_ROLE_ALLOCATE, _OTHER or _LOAD */
	uint32_t id;  /* CUPTI's correlation id */
	uint32_t opening;
	uint64_t correlation, enter_ns;
};

static __thread struct other_call driver_call __attribute__((tls_model("initial-exec")));
static __thread struct other_call runtime_call __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t openings; /* how often the callbacks were enabled */

static struct other_call *call_of(int domain)
{
	return domain == CUPTI_DOMAIN_DRIVER ? &driver_call : &runtime_call;
}

/* The call of the runtime that is under way; NULL: none. */
static const struct other_call *current_runtime_call(void)
{
	uint32_t now = atomic_load_explicit(&openings, memory_order_relaxed);

	return runtime_call.active && runtime_call.opening == now ? &runtime_call : NULL;
}

static bool is_within(unsigned role, bool in_runtime)
{
	const struct other_call *outer = current_runtime_call();

	if (role == CUDA_ROLE_LOAD)
		return outer && outer->role == CUDA_ROLE_LOAD;
	return in_runtime || outer;
}

/* 0 within a call that has this id: it is known by it, and joined to its work and waits. */
static uint64_t own_correlation(int domain, uint32_t id)
{
	const struct cuda_call *launch = cuda_current_call();
	const struct other_call *outer =
		domain == CUPTI_DOMAIN_DRIVER ? current_runtime_call() : NULL;

	if ((launch && launch->id == id) || (outer && outer->id == id))
		return 0;
	return cuda_correlation(id);
}

void cuda_enter_other(
	int domain, unsigned role, const struct cupti_call_data *data, bool in_runtime)
{
	if (domain == CUPTI_DOMAIN_DRIVER && is_within(role, in_runtime))
		return;
	*call_of(domain) = (struct other_call){
		.active = true,
		.role = (uint8_t)role,
		.id = data->correlation,
		.opening = atomic_load_explicit(&openings, memory_order_relaxed),
		.correlation = own_correlation(domain, data->correlation),
		.enter_ns = inject_now_ns(),
	};
}

void cuda_leave_other(int domain, const struct cupti_call_data *data)
{
	struct other_call *call = call_of(domain);

	if (!call->active || call->id != data->correlation)
		return;
	call->active = false;
	if (cuda_write_call(call->correlation, call->enter_ns, inject_now_ns(), data) &&
		call->correlation)
		cuda_stack_of_call(call->correlation, call->enter_ns);
}

void cuda_stack_of_call(uint64_t correlation, uint64_t enter_ns)
{
	if (inject_is_open() && inject_takes_stacks())
		inject_launch_stack(correlation, enter_ns);
}

bool cuda_write_call(uint64_t correlation, uint64_t enter_ns, uint64_t exit_ns,
	const struct cupti_call_data *data)
{
	const char *name = data->function_name ? data->function_name : "";
	size_t bytes = strnlen(name, WIRE_DEVICE_CALL_NAME_BYTES), padded = (bytes + 7) / 8 * 8;
	struct inject_place place;
	struct wire_device_call *call = inject_reserve((uint32_t)(sizeof(*call) + padded), &place);

	if (!call)
		return false;
	*call = (struct wire_device_call){
		.record = {.type = WIRE_RECORD_DEVICE_CALL,
			.length_bytes = (uint32_t)(sizeof(*call) + padded)},
		.correlation = correlation,
		.enter_ns = enter_ns,
		.exit_ns = exit_ns,
		.tid = inject_tid(),
		.text_bytes = (uint32_t)bytes,
		.failed = data->result && *data->result != 0 && *data->result != NOT_READY,
	};
	if (padded)
		memset((char *)(call + 1) + padded - 8, 0, 8);
	memcpy(call + 1, name, bytes);
	inject_commit(&place);
	return true;
}

struct listed_call {
	uint16_t id;
	uint8_t role;
};

#define LISTED(name, number, role) {number, CUDA_ROLE_##role},
static const struct listed_call driver_calls[] = {CUPTI_OTHER_DRIVER_CALLS(LISTED)};
static const struct listed_call runtime_calls[] = {CUPTI_OTHER_RUNTIME_CALLS(LISTED)};
#undef LISTED

static void enable_calls(
	int domain, const struct listed_call *calls, size_t count, bool allocations, bool on)
{
	for (size_t i = 0; i < count; i++)
		if ((calls[i].role == CUDA_ROLE_ALLOCATE) == allocations)
			cupti_enable_callback(&cuda.cupti, domain, calls[i].id, on);
}

static void enable(bool allocations, bool on)
{
	enable_calls(CUPTI_DOMAIN_DRIVER, driver_calls,
		sizeof(driver_calls) / sizeof(*driver_calls), allocations, on);
	enable_calls(CUPTI_DOMAIN_RUNTIME, runtime_calls,
		sizeof(runtime_calls) / sizeof(*runtime_calls), allocations, on);
}

void cuda_enable_others(bool on)
{
	if (on)
		atomic_fetch_add_explicit(&openings, 1, memory_order_relaxed);
	if (on != cuda.allocations_are_on)
		enable(true, on);
	cuda.allocations_are_on = on;
	/* A session that wants less may follow one that wanted all. */
	on = on && inject_call_mode() == WIRE_CALLS_ALL;
	if (on == atomic_load_explicit(&cuda.others_are_on, memory_order_relaxed))
		return;
	enable(false, on);
	atomic_store_explicit(&cuda.others_are_on, on, memory_order_relaxed);
}
