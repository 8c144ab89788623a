# SPDX-License-Identifier: Apache-2.0
"""Sleeps where a training loop would load a batch: docs/gpu.md."""
import time

import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
source = "__kernel void scale(__global float *x) { int i = get_global_id(0); for (int k = 0; k < 100; k++) x[i] = x[i] * 1.0001f + k; }"
kernel = cl.Program(context, source).build().scale
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * 65536)


def load_batch():
    time.sleep(0.03)


def train_step():
    kernel(queue, (65536,), None, buffer)
    queue.finish()


for _ in range(60):
    load_batch()
    train_step()
