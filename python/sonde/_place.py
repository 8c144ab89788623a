# SPDX-License-Identifier: Apache-2.0
"""Which worker this process is: its host, rank and process id, and file names with them.

What is not known is None and left out of names: a rank that nobody set is not rank 0.
"""

import os
import re
import sys
from typing import List, NamedTuple, Optional

# In the order of asking. A Slurm batch script has a SLURM_PROCID, too, but it is 0 and so is its only rank.
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_WORLD_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


class Place(NamedTuple):
    """This process among those of its job."""

    host: str
    pid: int
    rank: Optional[int]
    world_size: Optional[int]
    worker: Optional[str]  # the local rank, or the name of a process that multiprocessing started


def _number(names: "tuple[str, ...]") -> Optional[int]:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def _distributed() -> "tuple[Optional[int], Optional[int]]":
    """Rank and world size of an initialised process group; never imports torch.distributed."""
    module = sys.modules.get("torch.distributed")
    try:
        if module is not None and module.is_available() and module.is_initialized():
            return int(module.get_rank()), int(module.get_world_size())
    except Exception:
        pass  # half imported, or being shut down: the environment answers
    return None, None


def _process_name() -> Optional[str]:
    module = sys.modules.get("multiprocessing.process")
    name = module.current_process().name if module is not None else "MainProcess"
    return None if name == "MainProcess" else str(name)


def safe_name(text: str) -> str:
    """`text` with everything but letters, digits, dot, minus and underscore replaced, for use in a file name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:64] or "-"


def here() -> Place:
    """Asks again each time: a process group may have been initialised meanwhile, the process may be a fork."""
    rank, world_size = _distributed()
    if rank is None:
        rank, world_size = _number(_RANK), _number(_WORLD_SIZE)
    local_rank = _number(_LOCAL_RANK)
    worker = str(local_rank) if local_rank is not None else _process_name()
    return Place(os.uname().nodename, os.getpid(), rank, world_size, worker)


def worker_name(place: Place) -> str:
    """The worker part of a trace's file name, as TensorBoard shows it: HOST[_rankR][_workerW]_PID."""
    parts: List[str] = [safe_name(place.host)]
    if place.rank is not None:
        parts.append(f"rank{place.rank}")
    if place.worker is not None:
        parts.append("worker" + safe_name(place.worker))
    parts.append(str(place.pid))
    return "_".join(parts)
