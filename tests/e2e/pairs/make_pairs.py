# SPDX-License-Identifier: Apache-2.0
"""make_pairs.py FOLDER KIND…: execution traces and Kineto traces of real PyTorch programs, each pair of one profile.

Writes FOLDER/KIND/et_<rank>.json and kineto_<rank>.json, for each KIND:

    train    three steps of a training loop with their ProfilerStep marks
    threads  a forward pass here and its backward pass in another thread, beside threads that only compute
    compile  a step of a model under torch.compile
    gloo     two processes that reduce, gather, broadcast and send to one another over gloo, and train under DDP
    names    ranges whose names have quotes and control characters, which torch does not escape in an execution trace

Each pair is made in processes of its own, all at once. Prints a line for each: KIND SECONDS, or KIND failed.
"""

import os
import socket
import sys
import threading
import time
import traceback

STEPS = 3


class Pair:
    """A profile with an execution trace of the same time; its files are there when the block has ended."""

    def __init__(self, folder, rank=0, **options):
        self.et = os.path.join(folder, f"et_{rank}.json")
        self.kineto = os.path.join(folder, f"kineto_{rank}.json")
        self.options = options

    def __enter__(self):
        from torch.profiler import ExecutionTraceObserver, ProfilerAction, ProfilerActivity, profile

        self.profile = profile(
            activities=[ProfilerActivity.CPU],
            schedule=lambda step: ProfilerAction.RECORD,
            record_shapes=True,
            execution_trace_observer=ExecutionTraceObserver().register_callback(self.et),
            **self.options,
        )
        return self.profile.__enter__()

    def __exit__(self, *error):
        self.profile.__exit__(*error)
        self.profile.export_chrome_trace(self.kineto)


def model():
    import torch

    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))


def train_steps(net, profile, count=STEPS):
    import torch

    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(count):
        optimizer.zero_grad()
        net(torch.randn(8, 32)).pow(2).mean().backward()
        optimizer.step()
        if number + 1 < count:
            profile.step()


def train(folder):
    with Pair(folder, profile_memory=True) as profile:
        train_steps(model(), profile)


def threads(folder):
    import torch
    from torch._C._profiler import _ExperimentalConfig

    net, losses = model(), []

    def compute():
        with torch.profiler.record_function("compute"):
            for _ in range(4):
                torch.ones(16, 16) @ torch.ones(16, 16)

    with Pair(folder, experimental_config=_ExperimentalConfig(profile_all_threads=True)) as profile:
        for number in range(STEPS):
            losses.append(net(torch.randn(8, 32)).pow(2).mean())
            workers = [threading.Thread(target=compute) for _ in range(2)]
            workers.append(threading.Thread(target=losses[-1].backward))
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            if number + 1 < STEPS:
                profile.step()


def compiled(folder):
    import torch

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")
    net = model()
    fast = torch.compile(net)
    fast(torch.randn(8, 32)).sum().backward()
    with Pair(folder) as profile:
        train_steps(fast, profile)


def gloo(folder, rank, port):
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    half = dist.new_group([0, 1], group_desc="half")
    net = torch.nn.parallel.DistributedDataParallel(model())
    train_steps(net, profile=NoProfile())
    with Pair(folder, rank) as profile:
        data = torch.ones(128)
        dist.all_reduce(data, group=half)
        dist.all_gather([torch.empty(128), torch.empty(128)], data)
        dist.broadcast(data, src=1)
        if rank == 0:
            dist.send(data, dst=1)
        else:
            dist.recv(data, src=0)
        dist.barrier()
        train_steps(net, profile)
        time.sleep(0.2)  # gloo's threads end their records a little after they told the result
    dist.destroy_process_group()


class NoProfile:
    def step(self):
        pass


def names(folder):
    import torch

    with Pair(folder):
        for name in ('say "quoted"', "back\\slash", "line\nbreak", "bell\a", "plain"):
            with torch.profiler.record_function(name):
                torch.ones(2, 2) @ torch.ones(2, 2)


KINDS = {"train": train, "threads": threads, "compile": compiled, "gloo": gloo, "names": names}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def fork(make, *arguments):
    """Runs one in a child, which has torch already. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        make(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def start(folder, kind):
    """The pids of the processes of a pair."""
    place = os.path.join(folder, kind)
    os.makedirs(place, exist_ok=True)
    if kind == "gloo":
        port = free_port()
        return [fork(gloo, place, rank, port) for rank in range(2)]
    return [fork(KINDS[kind], place)]


def main():
    folder, *kinds = sys.argv[1:]
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # once for all children, with what making an optimizer imports
    import torch._dynamo

    assert torch.profiler.ExecutionTraceObserver
    begin = time.monotonic()
    running = {kind: start(folder, kind) for kind in kinds}
    for kind, pids in running.items():
        failed = [os.waitpid(pid, 0)[1] for pid in pids]
        print(kind, "failed" if any(failed) else f"{time.monotonic() - begin:.1f}", flush=True)


if __name__ == "__main__":
    main()
