# SPDX-License-Identifier: Apache-2.0
"""What reading, analysing, linking and converting traces costs, beside chakra_trace_link, chakra_converter and HTA.

The traces are the real ones of SONDE_TRACES, by default ../shared/traces beside the checkout, and the same repeated in
time (trace_scale.py). The Python tools take part where their sources are at hand (trace_peers.py). Programs take turns,
so that what else the machine does meets all of them; figures are medians.
"""

import json
import statistics
import subprocess

import trace_scale
import trace_truth
from needs import TRACE_PEERS, TRACE_PROCESSOR, TRACES, trace_processor, traces_folder
from trace_peers import BIG_TRACE, HTA, TracePeers
from workbench import Failed, report_progress

NEEDS = (TRACES,)
NEEDS_OF_PARTS = (TRACE_PEERS, TRACE_PROCESSOR)

GB = 10**9
SCALES = (1, 4, 16, 64)
PEERS_SCALES = (1, 4)  # the next one takes minutes, and the linker did not finish the last one in an hour


class Traces:
    def __init__(self, bench):
        self.bench = bench
        bench.take(TRACES)
        self.real = traces_folder()
        self.peers = TracePeers(bench, bench.peers)
        self.folder = bench.folder / "traces"
        self.folder.mkdir()

    def path(self, name):
        return self.folder / name

    def once(self, command, environment=None):
        """What a command took; raises Failed unless it ends well."""
        usage, log = self.path("usage.json"), self.path("log.txt")
        with open(log, "w") as sink:
            done = subprocess.run(
                [self.bench.build / "bench" / "measured", usage, *command],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd=self.folder,
                env={**self.bench.environment(), **(environment or {})},
            )
        if done.returncode != 0:
            raise Failed(
                f"{' '.join(map(str, command[:4]))} … ended with {done.returncode}: {log.read_text()[-500:].strip()}"
            )
        return json.loads(usage.read_text())

    def in_turn(self, commands, rounds):
        """Medians for each of {name: (command, environment)}."""
        runs = {name: [] for name in commands}
        for _ in range(rounds):
            for name, (command, environment) in commands.items():
                runs[name].append(self.once(command, environment))
        return {name: middle(each) for name, each in runs.items()}


def middle(runs):
    result = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    walls = [run["wall_s"] for run in runs]
    return {**result, "wall_s_lowest": min(walls), "wall_s_highest": max(walls), "runs": len(runs)}


# ---- linking and converting ----


def own_commands(traces, et, kineto):
    sonde, link = traces.bench.sonde, ["chakra", "link", "--rank", "0"]
    pair = ["--chakra-host-trace", et, "--chakra-device-trace", kineto]
    linked, out = traces.path("own.json"), traces.path("own.et")
    return {
        "link": ([sonde, *link, *pair, "--output-file", linked, "--format", "json"], {}),
        "convert": ([sonde, "chakra", "convert", "--input", linked, "--output", out], {}),
        "one step": ([sonde, *link, *pair, "--output-file", traces.path("one.et"), "--format", "et"], {}),
    }


def peer_commands(traces, et, kineto):
    peers, linked = traces.peers, traces.path("peer.json")
    environment = peers.environment("link")
    return {
        "link": (peers.link(et, kineto, linked), environment),
        "convert": (peers.convert(linked, traces.path("peer.et")), environment),
    }


def measure_pair(traces, count):
    """`count`: how often the pair is repeated."""
    et, kineto = traces.path(f"et_{count}.json"), traces.path(f"kineto_{count}.json")
    quick = traces.bench.quick
    rounds = 3 if quick else {1: 21, 4: 11}.get(count, 5)
    run = {
        "bytes": et.stat().st_size + kineto.stat().st_size,
        "sonde": traces.in_turn(own_commands(traces, et, kineto), rounds),
    }
    if traces.peers.missing:
        run["peers"] = {"missing": traces.peers.missing}
    elif count not in (PEERS_SCALES[:1] if quick else PEERS_SCALES):
        run["peers"] = {"missing": "not run"}
    else:
        run["peers"] = traces.in_turn(peer_commands(traces, et, kineto), 5 if count == 1 and not quick else 1)
    report_progress(f"traces, pair × {count}: {run}")
    return run


def measure_placed(traces):
    """Needs the linked traces of the pair that is not repeated."""
    kineto = traces.path("kineto_1.json")
    found = {"sonde": trace_truth.placed(kineto, traces.path("own.json"))}
    if not traces.peers.missing:
        found["peers"] = trace_truth.placed(kineto, traces.path("peer.json"))
    return found


def measure_pairs(traces):
    source = traces.real / "megatron-tp8-upgraded"
    trace_scale.scale_pair(
        source / "et_0.json.gz",
        source / "kineto_0.json.gz",
        SCALES,
        lambda kind, count: traces.path(f"{kind}_{count}.json"),
    )
    runs, found = {}, None
    for count in SCALES:
        runs[count] = measure_pair(traces, count)
        found = found or measure_placed(traces)
    return runs, found


# ---- reading and analysing ----


def measure_reading(traces):
    """Of one trace of 1 GB: what the reader itself does with one core, and the whole report."""
    bench, path = traces.bench, traces.path("big.json")
    trace_scale.scale_kineto(traces.real / "kineto" / "df_index_resolver.json.gz", bench.pick(GB, GB // 10), path)
    lines = bench.run(bench.build / "bench" / "kineto-read", path, str(bench.pick(7, 3))).output.splitlines()
    result = {
        "bytes": path.stat().st_size,
        "events": int(lines[0]),
        "seconds": sorted(float(line) for line in lines[1:]),
        "report": traces.in_turn({"report": ([bench.sonde, "report", path], {})}, bench.pick(7, 3))["report"],
    }
    path.unlink()
    report_progress(f"traces, reading: {result}")
    return result


def big_trace(traces):
    """MTIA's of HTA's own tests, where HTA's sources are at hand; else a shared one repeated to its size."""
    path = traces.path("analyses.json.gz")
    if traces.peers.missing:
        trace_scale.scale_kineto(traces.real / "kineto" / "mtia_inference_rank_0.json.gz", 87_000_000, path)
    else:
        path.write_bytes(traces.peers.file("HolisticTraceAnalysis", HTA, BIG_TRACE))
    return path


def measure_analyses(traces):
    bench, path = traces.bench, big_trace(traces)
    # Ours is the whole report: more than the four analyses that HTA is asked for.
    commands = {"sonde": ([bench.sonde, "report", path], {})}
    if not traces.peers.missing:
        commands["HTA"] = (traces.peers.analyse(path), traces.peers.environment("hta"))
    processor = trace_processor()
    if processor:
        query = traces.path("query.sql")
        query.write_text("select count(*) from slice;\n")
        commands["trace_processor, load only"] = ([processor, "-q", query, path], {})
    result = {
        "real": not traces.peers.missing,
        "runs": traces.in_turn(commands, bench.pick(5, 3)),
        "peers_missing": traces.peers.missing,
    }
    report_progress(f"traces, analyses: {result}")
    return result


def measure_import(traces):
    """Bytes of a capture per slice of each shared trace, as it is written and before it is compressed."""
    result = {}
    for path in sorted((traces.real / "kineto").glob("*.json*")):
        out, plain = traces.path("imported.pftrace"), traces.path("plain.pftrace")
        traces.once([traces.bench.sonde, "import", path, "-o", out])
        traces.once([traces.bench.sonde, "import", "--uncompressed", path, "-o", plain])
        events = trace_truth.load(path)["traceEvents"]
        slices = sum(event.get("ph") == "X" and event.get("cat") != "Trace" for event in events)
        if slices >= 1000:  # below it is the names that count
            result[path.name] = {"slices": slices, "bytes": plain.stat().st_size, "written_bytes": out.stat().st_size}
    report_progress(f"traces, import: {result}")
    return result


def measure(bench):
    traces = Traces(bench)
    pairs, found = measure_pairs(traces)
    return {
        "pairs": pairs,
        "placed": found,
        "reading": measure_reading(traces),
        "analyses": measure_analyses(traces),
        "import": measure_import(traces),
    }
