#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on an OpenCL device: real kernels to profile, on a GPU or on the CPU (PoCL).

One hidden layer learns the product of two numbers. Data loading, forward pass, backward pass and update are separate
functions and separate kernels, so that a profile shows who launched what. Needs PyOpenCL and NumPy.

    python3 examples/train_opencl.py --steps 1000
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("PYOPENCL_CTX", "0")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import pyopencl as cl  # noqa: E402

INPUTS = 2
HIDDEN = 128
ROWS = 256

SOURCE = """
__kernel void hidden_forward(__global const float *x, __global const float *w, __global float *h) {
    int row = get_global_id(0), unit = get_global_id(1);
    float sum = w[unit * 3 + 2];
    for (int i = 0; i < 2; i++)
        sum += x[row * 2 + i] * w[unit * 3 + i];
    h[row * HIDDEN + unit] = tanh(sum);
}
__kernel void output_forward(__global const float *h, __global const float *v, __global const float *y,
                             __global float *error) {
    int row = get_global_id(0);
    float sum = v[HIDDEN];
    for (int i = 0; i < HIDDEN; i++)
        sum += h[row * HIDDEN + i] * v[i];
    error[row] = sum - y[row];
}
__kernel void hidden_backward(__global const float *x, __global const float *h, __global const float *v,
                              __global const float *error, __global float *dw) {
    int unit = get_global_id(0), i = get_global_id(1);
    float sum = 0;
    for (int row = 0; row < ROWS; row++) {
        float a = h[row * HIDDEN + unit];
        sum += error[row] * v[unit] * (1 - a * a) * (i < 2 ? x[row * 2 + i] : 1);
    }
    dw[unit * 3 + i] = sum / ROWS;
}
__kernel void output_backward(__global const float *h, __global const float *error, __global float *dv) {
    int unit = get_global_id(0);
    float sum = 0;
    for (int row = 0; row < ROWS; row++)
        sum += error[row] * (unit < HIDDEN ? h[row * HIDDEN + unit] : 1);
    dv[unit] = sum / ROWS;
}
__kernel void update(__global float *weights, __global const float *gradient, float rate) {
    weights[get_global_id(0)] -= rate * gradient[get_global_id(0)];
}
"""


class Network:
    def __init__(self, seed):
        draw = np.random.default_rng(seed)
        self.context = cl.create_some_context(interactive=False)
        self.queue = cl.CommandQueue(self.context)
        program = cl.Program(self.context, SOURCE).build(f"-DHIDDEN={HIDDEN} -DROWS={ROWS}")
        self.hidden_forward, self.output_forward = program.hidden_forward, program.output_forward
        self.hidden_backward, self.output_backward = program.hidden_backward, program.output_backward
        self.update = program.update
        self.x = self.buffer(np.zeros(ROWS * INPUTS))
        self.y = self.buffer(np.zeros(ROWS))
        self.h = self.buffer(np.zeros(ROWS * HIDDEN))
        self.error = self.buffer(np.zeros(ROWS))
        self.w = self.buffer(draw.normal(0, 1, HIDDEN * (INPUTS + 1)))
        self.v = self.buffer(draw.normal(0, 0.1, HIDDEN + 1))
        self.dw = self.buffer(np.zeros(HIDDEN * (INPUTS + 1)))
        self.dv = self.buffer(np.zeros(HIDDEN + 1))

    def buffer(self, values):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=values.astype(np.float32))

    def forward(self):
        self.hidden_forward(self.queue, (ROWS, HIDDEN), None, self.x, self.w, self.h)
        self.output_forward(self.queue, (ROWS,), None, self.h, self.v, self.y, self.error)

    def backward(self):
        self.hidden_backward(self.queue, (HIDDEN, INPUTS + 1), None, self.x, self.h, self.v, self.error, self.dw)
        self.output_backward(self.queue, (HIDDEN + 1,), None, self.h, self.error, self.dv)

    def update_weights(self, rate):
        self.update(self.queue, (HIDDEN * (INPUTS + 1),), None, self.w, self.dw, np.float32(rate))
        self.update(self.queue, (HIDDEN + 1,), None, self.v, self.dv, np.float32(rate))

    def loss(self):
        error = np.empty(ROWS, dtype=np.float32)
        cl.enqueue_copy(self.queue, error, self.error)
        return float((error**2).mean())


def load_batch(network, draw):
    x = draw.uniform(-1, 1, (ROWS, INPUTS)).astype(np.float32)
    cl.enqueue_copy(network.queue, network.x, x)
    cl.enqueue_copy(network.queue, network.y, x.prod(axis=1))


def train(steps, every, seed):
    network, draw = Network(seed), np.random.default_rng(seed + 1)
    begin = time.monotonic()
    for step in range(1, steps + 1):
        load_batch(network, draw)
        network.forward()
        network.backward()
        network.update_weights(0.02)
        if step % every == 0 or step == steps:
            print(f"step {step}: loss {network.loss():.4f}", flush=True)
    network.queue.finish()
    print(f"{steps} steps in {time.monotonic() - begin:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000, help="training steps (1000)")
    parser.add_argument("--every", type=int, default=200, help="print the loss every so many steps (200)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    train(arguments.steps, arguments.every, arguments.seed)


if __name__ == "__main__":
    main()
