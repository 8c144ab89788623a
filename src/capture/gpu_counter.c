/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/gpu_counter.h"

static const char *const names[WIRE_PM_MAX] = {
	[WIRE_PM_SM_BUSY] = "SM busy (%)",
	[WIRE_PM_TENSOR_BUSY] = "tensor pipe busy (%)",
	[WIRE_PM_DRAM_READ] = "DRAM read (% of peak)",
	[WIRE_PM_DRAM_WRITE] = "DRAM write (% of peak)",
	[WIRE_PM_DRAM_READ_BYTES] = "DRAM read (GB/s)",
	[WIRE_PM_DRAM_WRITE_BYTES] = "DRAM write (GB/s)",
	[WIRE_PM_NVLINK_RECEIVED_BYTES] = "NVLink received (GB/s)",
	[WIRE_PM_NVLINK_SENT_BYTES] = "NVLink sent (GB/s)",
	[WIRE_PM_PCIE_READ_BYTES] = "PCIe read (GB/s)",
	[WIRE_PM_PCIE_WRITE_BYTES] = "PCIe write (GB/s)",
};

const char *capture_gpu_counter_name(enum wire_pm_counter counter)
{
	return names[counter];
}
