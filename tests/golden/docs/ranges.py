# SPDX-License-Identifier: Apache-2.0
"""Steps that NVTX names, on an OpenCL device: docs/ranges.md."""
import time

import nvtx
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
source = "__kernel void work(__global float *x, int n) { int i = get_global_id(0); for (int k = 0; k < n; k++) x[i] = x[i] * 1.0001f + k; }"
kernel = cl.Program(context, source).build().work
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * 65536)


@nvtx.annotate("load batch", domain="data")
def load_batch():
    time.sleep(0.001)


@nvtx.annotate("forward")
def forward():
    kernel(queue, (65536,), None, buffer, cl.cltypes.int(20))


@nvtx.annotate("backward")
def backward():
    kernel(queue, (65536,), None, buffer, cl.cltypes.int(60))
    queue.flush()


@nvtx.annotate("step")
def step():
    load_batch()
    forward()
    backward()
    queue.finish()


for _ in range(100):
    step()
