# SPDX-License-Identifier: Apache-2.0
"""What files are: traces of XLA, traces that are cut, standard input, and files that other commands read."""

import io
import json
import os
import sqlite3
import subprocess
import tarfile

import pytest


def row(name, start, duration, pid, tid, **arguments):
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": arguments}


def name(kind, text, pid, tid=0):
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}


def xla_trace():
    """As JAX's profiler writes it: no categories; ten short kernels, each launched by a call of the driver."""
    events = [
        name("process_name", "/device:GPU:0", 1),
        name("process_name", "/host:CPU", 701),
        name("thread_name", "Stream #13(Compute)", 1, 13),
        name("thread_name", "Stream #14(MemcpyH2D)", 1, 14),
        name("thread_name", "XLA Modules", 1, 2),
        name("thread_name", "XLA Ops", 1, 3),
        name("thread_name", "python", 701, 50),
        row("MemcpyH2D", 0, 20, 1, 14, correlation_id="900", memcpy_details="kind_src:pinned size:400"),
    ]
    for number in range(10):
        start = 100 + number * 100
        call = row("cuLaunchKernel", start, 10, 701, 50, correlation_id=str(number + 1))
        work = row("loop_add_fusion", start + 12, 5, 1, 13, correlation_id=str(number + 1), hlo_op="add.1")
        events += [row("PjitFunction(step)", start - 5, 40, 701, 50), call, work]
        events += [row("jit_step", start + 12, 5, 1, 2), row("add.1", start + 12, 5, 1, 3)]
        events += [row("$train.py:12 step", start - 10, 60, 701, 50)]
    return {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}


@pytest.fixture
def xla(tmp_path):
    path = tmp_path / "host.trace.json"
    path.write_text(json.dumps(xla_trace()))
    return path


def test_device_work_of_xla_is_recognised(xla, sonde, report):
    found = report(xla, "--by", "kernel")
    kernels = {kernel["name"]: kernel for kernel in found["kernel"]["kernels"]}
    assert set(kernels) == {"loop_add_fusion", "MemcpyH2D"}  # rows of modules and operators are sums of these
    assert kernels["loop_add_fusion"]["count"] == 10
    assert report(xla)["traces"][0]["device_works"] == 11
    assert report(xla)["traces"][0]["works_without_launch"] == 1
    shown = sonde("report", "--by", "annotations", xla, check=0).stdout
    assert "jit_step" in shown


def test_advice_fits_the_framework(xla, sonde):
    shown = " ".join(sonde("report", xla, check=0).stdout.split())
    assert "GPU 0 computed" in shown
    assert "jax.jit" in shown and "torch" not in shown


def test_an_imported_trace_of_xla_is_the_same(xla, sonde, report, tmp_path):
    capture, again = tmp_path / "xla.pftrace", tmp_path / "again.json"
    sonde("import", "-o", capture, xla, check=0)
    sonde("export", "-f", "chrome", "-o", again, capture, check=0)
    first = report(xla, "--by", "kernel")
    for path in (capture, again):
        other = report(path, "--by", "kernel")
        assert {key: value for key, value in other.items() if key != "traces"} == {
            key: value for key, value in first.items() if key != "traces"
        }


def test_standard_input_has_several_names(xla):
    for path in ("-", "/dev/stdin", "/dev/fd/0"):
        done = subprocess.run(
            [os.environ["SONDE"], "report", "--json", path], input=xla.read_bytes(), capture_output=True, check=True
        )
        assert json.loads(done.stdout)["traces"][0]["device_works"] == 11, path


@pytest.mark.parametrize("text", ["[]", "{}", " [ ] "])
def test_nothing_is_no_trace(sonde, tmp_path, text):
    path = tmp_path / "empty.json"
    path.write_text(text)
    refused = sonde("report", path)
    assert refused.status != 0 and "no event of a Kineto or Chrome trace" in refused.stderr


def test_a_trace_without_events_is_one(sonde, tmp_path):
    path = tmp_path / "empty.json"
    path.write_text('{"traceEvents": []}')
    assert "There is no device work: no kernel" in sonde("report", path, check=0).stdout


def test_a_trace_that_ends_before_its_device_rows(sonde, tmp_path):
    """Threads stand before devices in the file: what is left has none, which says nothing about the run."""
    text = json.dumps({"traceEvents": [dict(row("aten::mm", 10, 5, 1, 1), cat="cpu_op") for _ in range(20)]})
    path = tmp_path / "cut.json"
    path.write_text(text[: len(text) // 2])
    shown = " ".join(sonde("report", path, check=0).stdout.split())
    assert "no device work in what is left of the trace" in shown


def tar(path):
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("rank0.json")
        archive.addfile(member, io.BytesIO(b""))


def database(path):
    with sqlite3.connect(path) as store:
        store.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")


@pytest.mark.parametrize(
    "file, content, said",
    [
        ("traces.tar.gz", tar, "is an archive: unpack it"),
        ("x.zip", b"PK\3\4....", "is an archive: unpack it"),
        ("x_kernel_trace.csv", b'"Kind","Agent_Id","Queue_Id"\n', "--output-format json"),
        ("x.sqlite", database, "an export of Nsight Systems would have"),
        ("x.nsys-rep", b"\0\1\2\3", "`nsys export --type sqlite`"),
        ("x.et", b"\7\n\0050.0.4", "`sonde chakra stat`"),
    ],
)
def test_the_right_command_is_named(sonde, tmp_path, file, content, said):
    path = tmp_path / file
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    refused = sonde("report", path)
    assert refused.status != 0 and said in refused.stderr


def test_an_et_of_sonde_is_recognised(sonde, xla, tmp_path):
    capture, out = tmp_path / "xla.pftrace", tmp_path / "out.0.et"
    sonde("import", "-o", capture, xla, check=0)
    sonde("export", "-f", "chakra", "-o", out, capture, check=0)
    assert "loop_add_fusion" in sonde("report", "--by", "kernel", out, check=0).stdout


def kineto_kernel(name, start, correlation):
    call = dict(row("hipLaunchKernel", start, 5, 100, 100, correlation=correlation), cat="hip_runtime")
    work = row(name, start + 10, 5, 0, 7, device=0, stream=7, correlation=correlation)
    return [call, dict(work, cat="kernel")]


def test_mangled_kernels_of_rocm_are_demangled(sonde, report, tmp_path):
    path = tmp_path / "rocm.json"
    names = ["_ZN2ck4gemmIfLi128EEEvi.kd", "_ZN2ck4gemmIfLi256EEEvi.kd", "gemm_plain"]
    events = [event for i, name in enumerate(names) for event in kineto_kernel(name, 100 * i, i + 1)]
    path.write_text(json.dumps({"traceEvents": events}))
    found = {kernel["name"] for kernel in report(path, "--by", "kernel")["kernel"]["kernels"]}
    assert found == {"ck::gemm<float, 128>(int)", "ck::gemm<float, 256>(int)", "gemm_plain"}
    shown = sonde("report", "--by", "kernel", path, check=0).stdout
    assert "gemm<float, 128>" in shown and "gemm<float, 256>" in shown
    graph = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", path, check=0).stdout
    assert "ck::gemm<float, 128>(int)" in graph and "_ZN2ck" not in graph
    assert "ck::gemm<float, 128>(int)" in " ".join(sonde("report", path, check=0).stdout.split())


def test_kernels_do_not_look_alike(sonde, tmp_path):
    """The names of PyTorch's elementwise kernels begin and end alike: the functor stays."""
    path = tmp_path / "alike.json"
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::%s, at::detail::Array<char*, 3> >(int, at::native::%s)"
    functors = ["FillFunctor<float>", "CUDAFunctor_add<float>", "BinaryFunctor<float, float, float, MulFunctor<float> >"]
    events = [event for i, each in enumerate(functors) for event in kineto_kernel(name % (each, each), 100 * i, i + 1)]
    path.write_text(json.dumps({"traceEvents": events}))
    shown = sonde("report", "--by", "kernel", path, check=0).stdout
    for functor in ("FillFunctor", "CUDAFunctor_add", "BinaryFunctor"):
        assert functor in shown
