/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/occupancy.h"

#include "base/macros.h"

#define REGISTER_UNIT  256
#define QUARTERS       4 /* of a multiprocessor, with a scheduler each */
#define RESERVED_BYTES 1024

const char *occupancy_limit_name(enum occupancy_limit limit)
{
	static const char *const names[OCCUPANCY_LIMIT_MAX] = {
		[OCCUPANCY_WARPS] = "warps",
		[OCCUPANCY_BLOCKS] = "blocks",
		[OCCUPANCY_REGISTERS] = "registers",
		[OCCUPANCY_SHARED] = "shared memory",
	};

	return limit < OCCUPANCY_LIMIT_MAX ? names[limit] : NULL;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static bool is_known(const struct capture_gpu *gpu)
{
	return gpu->warp_threads && gpu->multiprocessor_warps && gpu->multiprocessor_blocks &&
	       gpu->multiprocessor_registers && gpu->multiprocessor_shared_bytes;
}

static uint64_t by_registers(
	const struct capture_gpu *gpu, const struct occupancy_launch *launch, uint64_t warps)
{
	uint64_t of_warp = round_up((uint64_t)launch->registers * gpu->warp_threads, REGISTER_UNIT);

	if (!of_warp)
		return UINT64_MAX;
	if (gpu->block_registers && of_warp * round_up(warps, QUARTERS) > gpu->block_registers)
		return 0;
	return gpu->multiprocessor_registers / QUARTERS / of_warp * QUARTERS / warps;
}

static uint64_t by_shared(const struct capture_gpu *gpu, const struct occupancy_launch *launch)
{
	bool is_new = gpu->capability_major >= 8;
	uint64_t of_block =
		round_up(launch->shared_bytes + (is_new ? RESERVED_BYTES : 0), is_new ? 128 : 256);

	return of_block ? gpu->multiprocessor_shared_bytes / of_block : UINT64_MAX;
}

bool occupancy_of(const struct capture_gpu *gpu, const struct occupancy_launch *launch,
	struct occupancy *ret_occupancy)
{
	uint64_t limits[OCCUPANCY_LIMIT_MAX], warps;
	unsigned least = OCCUPANCY_WARPS;

	if (!is_known(gpu) || !launch->block_threads)
		return false;
	warps = round_up(launch->block_threads, gpu->warp_threads) / gpu->warp_threads;
	limits[OCCUPANCY_WARPS] = gpu->multiprocessor_warps / warps;
	limits[OCCUPANCY_BLOCKS] = gpu->multiprocessor_blocks;
	limits[OCCUPANCY_REGISTERS] = by_registers(gpu, launch, warps);
	limits[OCCUPANCY_SHARED] = by_shared(gpu, launch);
	for (unsigned i = 1; i < OCCUPANCY_LIMIT_MAX; i++)
		least = limits[i] < limits[least] ? i : least;
	if (!limits[least])
		return false;
	*ret_occupancy = (struct occupancy){
		.blocks = (uint32_t)limits[least],
		.warps = (uint32_t)(limits[least] * warps),
		.share = (double)(limits[least] * warps) / gpu->multiprocessor_warps,
		.limit = (enum occupancy_limit)least,
	};
	return true;
}

bool occupancy_of_work(
	const struct trace *trace, const struct trace_work *work, struct occupancy *ret_occupancy)
{
	const struct occupancy_launch launch = {
		.block_threads = work->block[0] * work->block[1] * work->block[2],
		.registers = work->registers,
		.shared_bytes = work->shared_bytes,
	};
	const struct model *model = trace->recorded;
	uint32_t gpu = model && work->recorded ? model->device_works.items[work->recorded - 1].gpu
					       : MODEL_NONE;

	return gpu != MODEL_NONE &&
	       occupancy_of(&model->gpus.items[gpu].facts, &launch, ret_occupancy);
}
