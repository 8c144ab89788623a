# SPDX-License-Identifier: Apache-2.0
"""Run by package.py in the Python that is measured, with the package on its path; prints JSON.

package_costs.py calls                 nanoseconds of single calls, without a recording
package_costs.py loop ROUNDS STEPS     a training loop with training_profiler(enabled=False) against none
package_costs.py export OPERATORS      how long a window's export stops the worker's thread
"""

import json
import os
import sys
import tempfile
import threading
import time
import timeit


def nanoseconds(call, number=200_000):
    return min(timeit.repeat(call, number=number, repeat=7)) / number * 1e9


def calls():
    import sonde

    with sonde.training_profiler(enabled=False) as disabled:
        pass

    def step():
        if disabled is not None:
            disabled.step()

    def nothing():
        pass

    folder = tempfile.mkdtemp()
    off = sonde.get_global_manager()
    os.environ.update(VLLM_CHAKRA_TRACE="1", VLLM_CHAKRA_TRACE_DIR=folder)
    from sonde.manager import ChakraTraceManager

    on = ChakraTraceManager()
    while on._due:
        on.tick_by_flag()
    phase = sonde.phase("bench")

    def in_phase():
        with phase:
            pass

    return {
        "empty_function": nanoseconds(nothing),
        "disabled_step": nanoseconds(step),
        "sonde_step": nanoseconds(sonde.step),
        "tick_off": nanoseconds(off.tick_by_flag),
        "tick_without_flag": nanoseconds(on.tick_by_flag),
        "phase": nanoseconds(in_phase, 50_000),
    }


def loop(rounds, steps):
    import sonde
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(16, 64)

    def train():
        optimizer.zero_grad()
        model(inputs).pow(2).mean().backward()
        optimizer.step()

    def without():
        for _ in range(steps):
            train()

    def disabled():
        with sonde.training_profiler(enabled=False) as prof:
            for _ in range(steps):
                train()
                if prof is not None:
                    prof.step()

    def seconds(run):
        begin = time.thread_time()
        run()
        return time.thread_time() - begin

    for run in (without, disabled):
        run()
    ratios, plain = [], []
    for number in range(rounds):
        first, second = (without, disabled) if number % 2 == 0 else (disabled, without)
        times = {first: seconds(first), second: seconds(second)}
        ratios.append(times[disabled] / times[without])
        plain.append(times[without] / steps)
    return {"torch": torch.__version__, "ratios": sorted(ratios), "step_us": sorted(plain)[rounds // 2] * 1e6}


def export(operators):
    import torch
    from sonde import _chakra_files

    data = torch.ones(2, 2)
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)
    with profile:
        for _ in range(operators):
            data @ data
    path = os.path.join(tempfile.mkdtemp(), "kineto.json")
    result = {"torch": torch.__version__}
    for name, write in (
        ("by_us", profile.export_chrome_trace),
        ("by_a_child", _chakra_files._in_child(profile.export_chrome_trace)),
    ):
        thread = threading.Thread(target=write, args=(path,))
        worst, last = 0.0, time.perf_counter()
        thread.start()
        while thread.is_alive():
            now = time.perf_counter()
            worst, last = max(worst, now - last), now
        result[name + "_stall_s"] = worst
    result["bytes"] = os.stat(path).st_size
    return result


def main():
    measure, *numbers = sys.argv[1:]
    result = {"calls": calls, "loop": loop, "export": export}[measure](*map(int, numbers))
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
