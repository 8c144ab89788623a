/* SPDX-License-Identifier: Apache-2.0 */
/* A part of model/model.h: what NCCL's calls say of the kernels that they launched, by the ranges
 * of NVTX that NCCL opens around each call. */
#pragma once

#include <stdint.h>

/* Why the size of what a kernel of NCCL moves is not known. */
enum model_size_unknown {
	MODEL_SIZE_KNOWN,
	MODEL_SIZE_NO_RANGES,  /* its process reported no call of NCCL */
	MODEL_SIZE_OUTSIDE,    /* it was launched outside of the calls */
	MODEL_SIZE_NO_LAUNCH,  /* its launch, or the call that captured it, was not recorded */
	MODEL_SIZE_NO_PAYLOAD, /* the calls do not say what they move */
	MODEL_SIZE_NO_RANKS,   /* they say one rank's share, and not how many ranks there are */
	MODEL_SIZE_SEVERAL,    /* several kernels ran the calls of a group: which ran which? */
	MODEL_SIZE_MAX,
};

/* Names of groups of ncclSend and ncclRecv: with each rank once, the own one included, as PyTorch
 * makes an all-to-all; and any other. */
#define MODEL_ALL_TO_ALL "all-to-all by ncclSend and ncclRecv"
#define MODEL_SEND_RECV  "send/recv group"

/* What kernels of NCCL move among whom. */
struct model_collective {
	const char *name; /* of NCCL's function, "ncclAllReduce", or the above; "": several, or not
			   * known */
	uint64_t communicator; /* all its ranks have the same; 0: not known */
	uint64_t bytes;        /* as NCCL counts a call's; of all calls that one kernel ran; 0: see
				* `unknown` */
	uint64_t received;     /* of a group of sends and receives, whose `bytes` are sent */
	uint32_t ranks;        /* of the communicator; 0: not known */
	uint32_t sequence;     /* among the communicator's calls, from 1 on; 0: not known */
	uint8_t unknown;       /* enum model_size_unknown */
};
