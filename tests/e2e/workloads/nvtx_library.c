/* SPDX-License-Identifier: Apache-2.0 */
/* A library with NVTX of its own: the second module of the program nvtx. */
#include "doubles/nvtx/nvtx.h"

__attribute__((visibility("default"))) int library_work(int count);

/* Returns how many calls did not return what they should have, of a program that is recorded. */
int library_work(int count)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
	nvtxEventAttributes_t event = {.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_REGISTERED};
	int wrong = 0;

	event.message.registered = nvtxDomainRegisterStringA(domain, "library work");
	for (int i = 0; i < count; i++) {
		wrong += nvtxDomainRangePushEx(domain, &event) != 0;
		wrong += nvtxDomainRangePop(domain) != 0;
	}
	nvtxDomainDestroy(domain);
	return wrong;
}
