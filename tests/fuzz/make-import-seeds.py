#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the seed inputs of corpus/astra-sim, nsys, rocprofv3, torch-memory and xplane from what the end-to-end tests make.

They are committed: run this only to add some.
"""

import gzip
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import astra_log  # noqa: E402
import memory_snapshot  # noqa: E402
import nsys_export  # noqa: E402
import rocprof_result  # noqa: E402
import xplane_profile  # noqa: E402


def folder(name):
    path = HERE / "corpus" / name
    path.mkdir(exist_ok=True)
    return path


def astra_sim():
    corpus = folder("astra-sim")
    nodes = [{"id": "1", "name": "aten::mm, x", "type": "COMP_NODE", "durationMicros": "5",
              "attr": [{"name": "is_cpu_op", "boolVal": True}]},
             {"id": "2", "name": "gemm", "type": "COMP_NODE", "durationMicros": "9", "ctrlDeps": ["1"], "attr": []},
             {"id": "3", "name": "allreduce", "type": "COMM_COLL_NODE", "durationMicros": "7", "dataDeps": ["2"], "attr": []},
             {"id": "4", "name": "send", "type": "COMM_SEND_NODE", "durationMicros": "7", "dataDeps": ["3"], "attr": []},
             {"id": "5", "name": "load", "type": "MEM_LOAD_NODE", "durationMicros": "7", "attr": []}]
    lines = [line for system in range(2) for line in astra_log.simulate(nodes, system)]
    (corpus / "all").write_text("\n".join(lines))
    (corpus / "cut").write_text("\n".join(lines[2:6])[:-20])
    (corpus / "old").write_text("issue,sys->id=0,tick=5,node->id=1,node->name=COMP_NODE_x,node->node_type=4\r\n"
                                "callback,sys->id=0,tick=3,node->id=1\ncallback,sys->id=0,tick=3,node->id=1\n")
    (corpus / "numbers").write_text("issue,sys->id=4294967295,tick=9223372036854775807,node->id=18446744073709551615\n"
                                    "issue,sys->id=0,tick=18446744073709551616,node->id=1\nissue,sys->id=,tick=,node->id=\n[")


def nsys():
    corpus = folder("nsys")
    for name, options in {
        "all": {},
        "no-names": {"left_out": ("StringIds", "TARGET_INFO_GPU", "PROCESSES")},
        "old": {"left_out": ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",), "without": ("globalPid", "graphNodeId", "domainId")},
    }.items():
        (corpus / name).unlink(missing_ok=True)
        nsys_export.write(corpus / name, page_size=512, **options)
    everything = (corpus / "all").read_bytes()
    (corpus / "cut").write_bytes(everything[: len(everything) // 2])
    (corpus / "damaged").write_bytes(everything[:3000] + bytes(1024) + everything[4024:])
    (corpus / "empty").write_bytes(b"SQLite format 3\0")


def xplane():
    corpus = folder("xplane")
    whole = xplane_profile.gpu()
    (corpus / "gpu").write_bytes(whole)
    (corpus / "tpu").write_bytes(xplane_profile.tpu())
    (corpus / "cut").write_bytes(whole[: len(whole) * 2 // 3])
    (corpus / "packed").write_bytes(gzip.compress(whole, mtime=0))
    (corpus / "overlong").write_bytes(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01/host:CPU")


def rocprofv3():
    corpus = folder("rocprofv3")
    whole = rocprof_result.text()
    (corpus / "all").write_text(whole)
    (corpus / "cut").write_text(whole[:-500])
    (corpus / "one").write_text(whole.replace("[", "", 1)[:-2] + "}")
    (corpus / "wrong-types").write_text(whole.replace('{"handle": 22}', '"x"').replace('"kind": 2', '"kind": -1'))


def torch_memory():
    corpus = folder("torch-memory")
    for protocol in range(2, 6):
        (corpus / f"protocol-{protocol}").write_bytes(memory_snapshot.pickled(protocol))
    (corpus / "json").write_bytes(memory_snapshot.as_json())
    (corpus / "itself").write_bytes(b"\x80\x04}\x94\x8c\x08segments\x94]\x94h\x02as.")
    (corpus / "calls").write_bytes(b"\x80\x04\x8c\x08segmentsc__builtin__\nprint\n(tR.")
    (corpus / "marks").write_bytes(b"\x80\x02((((]e}utd.segments")


if __name__ == "__main__":
    astra_sim()
    nsys()
    rocprofv3()
    torch_memory()
    xplane()
