#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the seed inputs of corpus/nsys, rocprofv3, torch-memory and xplane from what the end-to-end tests make.

They are committed: run this only to add some.
"""

import gzip
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import memory_snapshot  # noqa: E402
import nsys_export  # noqa: E402
import rocprof_result  # noqa: E402
import xplane_profile  # noqa: E402


def folder(name):
    path = HERE / "corpus" / name
    path.mkdir(exist_ok=True)
    return path


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
    nsys()
    rocprofv3()
    torch_memory()
    xplane()
